#include "cli/trace/archive.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/io/file.h"
#include "cli/term/humanize.h"
#include "cli/term/interrupt.h"
#include "cli/term/options.h"
#include "cli/term/output.h"
#include "cli/term/progress.h"
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
		"and its hash is entered in the manifest. Segments that are archived, open or "
		"damaged stay as they are. Of a directory, all segments are archived; the daemon "
		"may "
		"be recording there.",
	.options = options,
	.exits = "0 all done, 1 failed for a file, 2 wrong usage, 3 a file is damaged.",
	.example = "buscap archive *.byu.lz4",
};

/* A segment to be archived. */
struct file {
	char *path;
	uint64_t bytes;
	struct bc_archived result;
	int rc;
	bool is_done;
};

struct archive {
	const struct bc_console *console;
	struct bc_archive_options options;
	struct file *files;
	size_t count;
	size_t capacity;
	pthread_mutex_t mutex; /* of the rest, and of each file's result */
	pthread_cond_t done;   /* a file is */
	size_t next;           /* the next file to be started */
};

/* Adds a file, whose path it takes. */
static enum bc_exit add_file(struct archive *a, char *path)
{
	struct stat st;

	if (path != NULL && a->count == a->capacity) {
		size_t capacity = a->capacity != 0 ? 2 * a->capacity : 64;
		struct file *files = realloc(a->files, capacity * sizeof(*files));
		if (files != NULL) {
			a->files = files;
			a->capacity = capacity;
		}
	}
	if (path == NULL || a->count == a->capacity) {
		free(path);
		return bc_print_no_memory(a->console);
	}
	a->files[a->count++] = (struct file){
		.path = path,
		.bytes = stat(path, &st) == 0 ? (uint64_t)st.st_size : 0,
	};
	return BC_EXIT_OK;
}

static int is_sealed_segment(const struct dirent *entry)
{
	struct bc_segment_name name;

	return bc_segment_name_read(&name, entry->d_name) && !name.is_partial && name.damaged == 0;
}

/* Adds the sealed segments of a directory, which are named so that they sort by time. */
static enum bc_exit add_directory(struct archive *a, const char *dir)
{
	struct dirent **entries;
	int n = scandir(dir, &entries, is_sealed_segment, alphasort);
	enum bc_exit code = BC_EXIT_OK;

	if (n < 0) {
		bc_print_error(a->console, dir, "%s", strerror(errno));
		return BC_EXIT_FAILED;
	}
	for (int i = 0; i < n; i++) {
		char *path = NULL;
		if (asprintf(&path, "%s/%s", dir, entries[i]->d_name) < 0)
			path = NULL;
		if (code == BC_EXIT_OK)
			code = add_file(a, path);
		else
			free(path);
		free(entries[i]);
	}
	free(entries);
	return code;
}

static enum bc_exit add_operand(struct archive *a, const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return add_directory(a, path);
	return add_file(a, strdup(path));
}

static void *archive_files(void *context)
{
	struct archive *a = context;

	pthread_mutex_lock(&a->mutex);
	while (a->next < a->count) {
		struct file *file = &a->files[a->next++];
		pthread_mutex_unlock(&a->mutex);
		int dir_fd = bc_open_directory(a->console, file->path);
		int rc = dir_fd < 0 ? -ENOENT
				    : bc_segment_archive(&file->result, dir_fd,
					      basename(file->path), &a->options);
		if (dir_fd >= 0)
			close(dir_fd);
		pthread_mutex_lock(&a->mutex);
		file->rc = rc;
		file->is_done = true;
		pthread_cond_broadcast(&a->done);
	}
	pthread_mutex_unlock(&a->mutex);
	return NULL;
}

static enum bc_exit print_failure(const struct archive *a, const struct file *file)
{
	const struct bc_archived *result = &file->result;
	int rc = file->rc;

	if (rc == -EBADMSG) {
		bc_print_error(a->console, file->path, "left as it is: %s%s%s", result->why,
			result->what[0] != '\0' ? ": " : "", result->what);
		return BC_EXIT_DAMAGED;
	}
	bc_print_error(a->console, file->path, "left as it is: %s",
		rc == -EBUSY       ? "another process is archiving it"
		: rc == -ELOOP     ? "a symbolic link"
		: rc == -ECANCELED ? "interrupted"
		: rc == -EPERM     ? "only root or its owner can archive it"
		: rc == -EIO       ? "the copy is different, or a read error"
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
	bool is_interrupted = false;

	for (size_t i = 0; i < a->count; i++)
		total += a->files[i].bytes;
	bc_progress_start(&progress, a->console, total);
	for (size_t i = 0; i < a->count && !is_interrupted; i++) {
		struct file *file = &a->files[i];
		const struct bc_archived *result = &file->result;
		wait_for(a, file, &progress);
		bc_progress_clear(&progress);
		progress.done_bytes += file->bytes;
		is_interrupted = file->rc == -ECANCELED;
		if (file->rc != 0) {
			code = bc_exit_worse(code, print_failure(a, file));
			continue;
		}
		before += result->bytes_before;
		after += result->bytes_after;
		if (result->is_replaced) {
			replaced++;
			print_sizes(output, file->path, result->bytes_after, result->bytes_before);
		}
	}
	if (replaced > 1)
		print_sizes(output, "total", after, before);
	return code;
}

static unsigned cores(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

/* Archives all files, in as many threads as can be started; without any, one after another. */
static enum bc_exit run_archive(struct archive *a, unsigned jobs, struct bc_output *output)
{
	pthread_t threads[JOBS_MAX];
	unsigned started = 0;

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
	struct archive a = {.console = console};
	struct bc_options o;
	struct bc_output output;
	uint64_t jobs = cores();
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
	a.options.wake_fd = bc_interrupt_open();
	pthread_mutex_init(&a.mutex, NULL);
	pthread_cond_init(&a.done, NULL);
	for (int i = optind; i < argc; i++)
		code = bc_exit_worse(code, add_operand(&a, argv[i]));
	unsigned most = jobs < JOBS_MAX ? (unsigned)jobs : JOBS_MAX;
	code = bc_exit_worse(code, run_archive(&a, most, &output));
	for (size_t i = 0; i < a.count; i++)
		free(a.files[i].path);
	free(a.files);
	pthread_cond_destroy(&a.done);
	pthread_mutex_destroy(&a.mutex);
	return bc_exit_worse(code, bc_output_close(&output, console));
}
