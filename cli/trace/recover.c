/* buscap recover: the command around formats/segment/recover. IN is opened as a segment without
 * detection, because its header may be damaged, and is never changed. OUT is created only if IN has
 * a whole chunk, and never replaces a file. */
#include "cli/term/commands.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/io/file.h"
#include "cli/term/options.h"
#include "formats/recording/segments.h"
#include "formats/segment/recover.h"

static const struct bc_usage_option options[] = {
	{'o', "output", "OUT", "file", "output file"},
	{0},
};

const struct bc_usage bc_recover_usage = {
	.name = "recover",
	.required = "-o OUT",
	.operands = "IN",
	.kind = "file",
	.summary = "write a repaired copy of a torn or damaged segment",
	.text = "Writes a whole, sealed segment with every whole chunk of a torn or damaged one, "
		"and gaps for the rest. IN is not changed; OUT must not exist.",
	.options = options,
	.exits = "0 everything was kept, 1 failed and OUT was not created, 2 wrong usage, 3 IN was "
		 "damaged: OUT has its whole chunks.",
	.example = "buscap recover X-00000.byu.lz4.partial -o X-00000.byu.lz4",
};

struct job {
	const struct bc_console *console;
	const char *in;
	const char *out;
};

/* Checks that OUT does not exist. Returns false after printing an error. */
static bool is_free(const struct job *job, int in)
{
	struct stat in_st;
	struct stat out_st;

	if (basename(job->out)[0] == '\0') {
		bc_print_error(job->console, job->out, "is a directory; -o needs a file");
		return false;
	}
	if (lstat(job->out, &out_st) != 0)
		return true;
	if (fstat(in, &in_st) == 0 && in_st.st_dev == out_st.st_dev &&
		in_st.st_ino == out_st.st_ino)
		bc_print_error(job->console, job->out, "is the input itself; choose another -o");
	else
		bc_print_error(
			job->console, job->out, "already exists; remove it or choose another -o");
	return false;
}

/* Prints what was damaged, kept and lost. */
static void print_result(const struct job *job, const struct bc_recovered *r)
{
	const struct bc_console *console = job->console;

	if (r->damages != 0) {
		bc_print_damage(console, job->in, r->first.offset, r->first.bytes, r->first.what);
		if (r->damages > 1)
			bc_print_error(console, job->in,
				"%s more damaged place%s; %s damaged byte%s in total",
				BC_GROUPED(r->damages - 1), bc_plural(r->damages - 1),
				BC_GROUPED(r->damaged_bytes), bc_plural(r->damaged_bytes));
	}
	if (r->is_written)
		bc_print_error(console, job->out, "sealed with %s chunk%s, %s record%s",
			BC_GROUPED(r->chunks), bc_plural(r->chunks), BC_GROUPED(r->records),
			bc_plural(r->records));
	if (r->missing != 0)
		bc_print_error(console, job->out, "%s record%s missing, marked by gaps",
			BC_GROUPED(r->missing), bc_plural(r->missing));
}

static enum bc_exit finish_recover(const struct job *job, const struct bc_recovered *r, int rc)
{
	const struct bc_console *console = job->console;

	if (rc == -EEXIST)
		return bc_print_error(console, job->out,
			"not created: it or %s%s already exists; remove the latter if it is from "
			"an interrupted recovery",
			basename(job->out), BC_RECOVER_SUFFIX);
	if (rc != 0)
		return bc_print_error(console, job->out, "not created: %s",
			rc == -EIO ? "read or write error, or the input changed" : strerror(-rc));
	print_result(job, r);
	if (!r->is_written)
		return bc_print_error(
			console, job->out, "not created: the input has no whole chunk");
	return r->damages != 0 ? BC_EXIT_DAMAGED : BC_EXIT_OK;
}

static enum bc_exit recover_file(const struct job *job, const struct bc_file *file)
{
	struct bc_recovered recovered;
	struct bc_segment_name fallback;
	char boot_id[BC_BOOT_ID_BYTES];
	int dir = is_free(job, file->fd) ? bc_open_directory(job->console, job->out) : -1;

	if (dir < 0)
		return BC_EXIT_FAILED;
	bool has_name = bc_segment_name_read(&fallback, basename(job->in)) ||
			bc_segment_name_read(&fallback, basename(job->out));
	bc_boot_id_read(boot_id);
	int rc = bc_recover(&recovered, file->fd, dir, basename(job->out),
		&(struct bc_recover_options){
			.fallback = has_name ? &fallback : NULL,
			.boot_id = file->is_killed ? boot_id : NULL,
		});
	close(dir);
	return finish_recover(job, &recovered, rc);
}

static enum bc_exit run_recover(const struct job *job)
{
	struct bc_file file;
	enum bc_exit code = BC_EXIT_FAILED;

	bc_give_way(job->in);
	if (bc_file_open(&file, job->console, job->in, BC_FORMAT_SEGMENT) != BC_EXIT_OK)
		return BC_EXIT_FAILED;
	if (file.is_regular)
		code = recover_file(job, &file);
	else
		bc_print_error(job->console, job->in,
			file.is_ours && file.probe.packing != BC_PACKING_NONE
				? "compressed; decompress it first"
				: "not a regular file; only those can be recovered");
	bc_file_close(&file);
	return code;
}

enum bc_exit bc_cmd_recover(const struct bc_console *console, int argc, char **argv)
{
	struct job job = {.console = console};
	struct bc_options o;
	int letter;

	bc_options_start(&o, console, &bc_recover_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1) {
		if (letter != 'o')
			return o.exit;
		job.out = optarg;
	}
	if (argc - optind != 1)
		return bc_print_usage_error(
			console, argc == optind ? "no file given" : "give one file at a time");
	if (job.out == NULL || strcmp(job.out, "-") == 0)
		return bc_print_usage_error(console, "-o is required: the output file");
	job.in = argv[optind];
	return run_recover(&job);
}
