#include "cli/trace/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/io/recording_dir.h"
#include "cli/term/humanize.h"
#include "cli/term/interrupt.h"
#include "cli/term/options.h"
#include "cli/term/output.h"
#include "cli/term/progress.h"
#include "formats/base/cores.h"
#include "formats/segment/archive.h"
#include "formats/segment/segment_name.h"

#define JOBS_MAX 64

static const struct bc_usage_option options[] = {
	{'j', "jobs", "N", "number", "files at a time (default: one per core)"},
	{0},
};

const struct bc_usage bc_archive_usage = {
	.name = "archive",
	.operands = "DIR|FILE...",
	.kind = "file",
	.summary = "make sealed segments smaller",
	.text = "Encodes the records of sealed segments again, at the level archive. Nothing else "
		"changes. The new file is read back and compared before it replaces the old one, "
		"and its hash is entered in the manifest. Until then, the disk must have room for "
		"both. For a directory, archives all sealed segments in it, even while the daemon "
		"records there. Segments that are archived, open or damaged, raw captures, "
		"and symbolic links stay as they are.",
	.options = options,
	.exits = "0 all done, 1 failed for a file, 2 wrong usage, 3 a file is not a whole, sealed "
		 "segment.",
	.example = "buscap archive *.byu.lz4",
};

/* A segment to be archived. */
struct file {
	struct file *next;
	dev_t dev;
	ino_t ino;
	uint64_t bytes;
	struct bc_archived result;
	int rc;
	bool is_found; /* in a directory: the daemon may have deleted it since */
	bool is_done;
	char path[];
};

struct archive {
	const struct bc_console *console;
	struct bc_archive_options options;
	struct file *first;
	struct file **end; /* where the next one is linked */
	size_t count;
	atomic_uint_fast64_t done_bytes; /* read and written so far */
	pthread_mutex_t mutex;           /* of the rest, and of each file's result */
	pthread_cond_t done;             /* signalled when a file is done */
	struct file *next;               /* to be started */
};

/* Whether the file was named before. */
static bool is_listed(const struct archive *a, const struct stat *st)
{
	for (const struct file *file = a->first; file != NULL; file = file->next)
		if (file->ino == st->st_ino && file->dev == st->st_dev)
			return true;
	return false;
}

static enum bc_exit add_file(struct archive *a, const char *path, bool is_found)
{
	struct stat st = {.st_ino = 0};
	size_t bytes = strlen(path) + 1;

	/* A symbolic link is not the file that it points to. */
	if (lstat(path, &st) == 0 && is_listed(a, &st))
		return BC_EXIT_OK;
	struct file *file = calloc(1, sizeof(*file) + bytes);
	if (file == NULL)
		return bc_print_no_memory(a->console);
	file->dev = st.st_dev;
	file->ino = st.st_ino;
	file->bytes = (uint64_t)st.st_size;
	file->is_found = is_found;
	memcpy(file->path, path, bytes);
	*a->end = file;
	a->end = &file->next;
	a->count++;
	return BC_EXIT_OK;
}

static bool is_sealed_segment(const char *path)
{
	struct bc_segment_name name;

	return bc_segment_name_read(&name, basename(path)) && !name.is_partial;
}

/* Adds the sealed segments of a directory. */
static enum bc_exit add_directory(struct archive *a, const char *dir)
{
	struct bc_path_list list;
	int rc = bc_path_list_fill_dir(&list, dir);
	enum bc_exit code = BC_EXIT_OK;

	if (rc != 0) {
		bc_print_error(a->console, dir, "%s", strerror(-rc));
		code = BC_EXIT_FAILED;
	}
	int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd >= 0) {
		bc_segment_archive_recover(dir_fd, &a->options);
		close(dir_fd);
	}
	int sealed = 0;
	for (int i = 0; i < list.count && code == BC_EXIT_OK; i++) {
		if (!is_sealed_segment(list.paths[i]))
			continue;
		sealed++;
		code = add_file(a, list.paths[i], true);
	}
	if (rc == 0 && sealed == 0)
		bc_print_error(a->console, dir, "no sealed segments");
	bc_path_list_free(&list);
	return code;
}

static enum bc_exit add_operand(struct archive *a, const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return add_directory(a, path);
	return add_file(a, path, false);
}

static int archive_file(struct archive *a, struct file *file)
{
	const char *name = basename(file->path);
	char *dir = name == file->path ? strdup(".")
				       : strndup(file->path, (size_t)(name - file->path));

	if (dir == NULL)
		return -ENOMEM;
	int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = dir_fd < 0 ? -errno : bc_segment_archive(&file->result, dir_fd, name, &a->options);
	if (dir_fd >= 0)
		close(dir_fd);
	free(dir);
	return rc;
}

static void *archive_files(void *context)
{
	struct archive *a = context;

	pthread_mutex_lock(&a->mutex);
	while (a->next != NULL) {
		struct file *file = a->next;
		a->next = file->next;
		pthread_mutex_unlock(&a->mutex);
		int rc = archive_file(a, file);
		pthread_mutex_lock(&a->mutex);
		file->rc = rc;
		file->is_done = true;
		pthread_cond_broadcast(&a->done);
	}
	pthread_mutex_unlock(&a->mutex);
	return NULL;
}

static void on_bytes(void *context, uint64_t bytes)
{
	struct archive *a = context;

	atomic_fetch_add(&a->done_bytes, bytes);
}

/* Prints why a file stays as it is. Returns the exit code. */
static enum bc_exit print_failure(const struct archive *a, const struct file *file)
{
	const char *why = file->result.why;
	int rc = file->rc;

	if (rc == -EBADMSG) {
		bc_print_error(a->console, file->path, "left as it is: %s", why);
		return BC_EXIT_DAMAGED;
	}
	if (rc == -ENOTSUP || rc == -EBUSY) {
		bc_print_error(a->console, file->path, "left as it is: %s",
			rc == -ENOTSUP ? "a raw capture"
				       : "another process is archiving or sealing it");
		return BC_EXIT_OK;
	}
	if (rc == -ENOENT && why[0] == '\0') {
		if (file->is_found)
			return BC_EXIT_OK;
		bc_print_error(a->console, file->path, "can't open: %s", strerror(-rc));
		return BC_EXIT_FAILED;
	}
	bc_print_error(a->console, file->path, "left as it is: %s%s%s", why,
		why[0] != '\0' ? ": " : "",
		rc == -ELOOP && why[0] == '\0'   ? "it is a symbolic link"
		: rc == -ECANCELED               ? "interrupted"
		: rc == -EPERM && why[0] == '\0' ? "only its owner or root can archive it"
		: rc == -ENOSPC                  ? "no room for the new file on the disk"
						 : strerror(-rc));
	return BC_EXIT_FAILED;
}

static void print_sizes(struct bc_output *output, const char *name, uint64_t after, uint64_t before)
{
	char was[BC_HUMANIZE_MAX];
	char is[BC_HUMANIZE_MAX];

	bc_output_safe(output, name);
	bc_output_format(output, ": %s, was %s (%.2f x)\n", bc_humanize_bytes(is, (double)after),
		bc_humanize_bytes(was, (double)before), (double)after / (double)before);
	bc_output_flush(output);
}

/* Waits until a file is done, and draws the progress line meanwhile. */
static void wait_for(struct archive *a, const struct file *file, struct bc_progress *progress)
{
	pthread_mutex_lock(&a->mutex);
	while (!file->is_done) {
		struct timespec until;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec++;
		pthread_cond_timedwait(&a->done, &a->mutex, &until);
		progress->done_bytes = atomic_load(&a->done_bytes);
		if (bc_progress_is_on(progress) && bc_progress_is_due(progress))
			bc_progress_show(progress);
	}
	pthread_mutex_unlock(&a->mutex);
}

/* Prints the result of each file in turn. */
static enum bc_exit print_results(struct archive *a, struct bc_output *output)
{
	struct bc_progress progress;
	enum bc_exit code = BC_EXIT_OK;
	uint64_t total = 0;
	uint64_t before = 0;
	uint64_t after = 0;
	size_t replaced = 0;
	size_t archived_before = 0;
	size_t interrupted = 0;

	/* Each file is read twice; its copy, which is smaller, is written and read. */
	for (const struct file *file = a->first; file != NULL; file = file->next)
		total += 4 * file->bytes;
	bc_progress_start(&progress, a->console, total);
	for (const struct file *file = a->first; file != NULL; file = file->next) {
		const struct bc_archived *result = &file->result;
		wait_for(a, file, &progress);
		bc_progress_clear(&progress);
		if (file->rc == -ECANCELED && interrupted++ != 0)
			continue;
		if (file->rc != 0) {
			code = bc_exit_worse(code, print_failure(a, file));
		} else if (result->is_replaced) {
			replaced++;
			before += result->bytes_before;
			after += result->bytes_after;
			print_sizes(output, file->path, result->bytes_after, result->bytes_before);
		} else {
			archived_before++;
		}
	}
	if (interrupted > 1)
		bc_print_error(a->console, NULL, "%zu more files not archived", interrupted - 1);
	if (replaced > 1)
		print_sizes(output, "total", after, before);
	if (replaced == 0 && archived_before != 0)
		bc_output_format(output, "%zu segment%s archived before\n", archived_before,
			bc_plural(archived_before));
	return code;
}

/* Archives all files, in as many threads as can be started; without any, one after another. */
static enum bc_exit run_archive(struct archive *a, unsigned jobs, struct bc_output *output)
{
	pthread_t threads[JOBS_MAX];
	unsigned started = 0;

	a->next = a->first;
	while (started < jobs && started < a->count &&
		pthread_create(&threads[started], NULL, archive_files, a) == 0)
		started++;
	if (started == 0)
		archive_files(a);
	enum bc_exit code = print_results(a, output);
	for (unsigned i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	return code;
}

int bc_cmd_archive(const struct bc_console *console, int argc, char **argv)
{
	struct archive a = {.console = console, .end = &a.first};
	struct bc_options o;
	struct bc_output output;
	uint64_t jobs = bc_cores();
	enum bc_exit code = BC_EXIT_OK;
	int letter;

	bc_options_start(&o, console, &bc_archive_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1)
		if (letter != 'j' || !bc_option_u64(console, "-j", &jobs))
			return o.exit;
	if (optind == argc)
		return bc_print_usage_error(console, "no directory or file given");
	if (jobs == 0)
		return bc_print_usage_error(console, "-j 0: at least 1");
	if (!bc_output_open(&output, console))
		return BC_EXIT_FAILED;
	a.options = (struct bc_archive_options){
		.wake_fd = bc_interrupt_open(), .on_bytes = on_bytes, .context = &a};
	atomic_init(&a.done_bytes, 0);
	pthread_mutex_init(&a.mutex, NULL);
	pthread_cond_init(&a.done, NULL);
	for (int i = optind; i < argc; i++)
		code = bc_exit_worse(code, add_operand(&a, argv[i]));
	unsigned most = jobs < JOBS_MAX ? (unsigned)jobs : JOBS_MAX;
	code = bc_exit_worse(code, run_archive(&a, most, &output));
	for (struct file *file = a.first, *next; file != NULL; file = next) {
		next = file->next;
		free(file);
	}
	pthread_cond_destroy(&a.done);
	pthread_mutex_destroy(&a.mutex);
	return bc_exit_worse(code, bc_output_close(&output, console));
}
