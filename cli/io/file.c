/* Input files, with their format, and output files. An input that was listed under the name of an
 * open segment may have been sealed, and so renamed, since: it is found under either name. An
 * output appears under its name when it is whole; until then it is FILE.partial. */
#include "cli/io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/ioprio.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "formats/base/host.h"
#include "formats/recording/segments.h"
#include "formats/segment/segment_name.h"

#define NICE 19 /* the lowest priority */

static const char *advice(int error)
{
	return error == ENOENT                     ? "; check the name"
	       : error == EACCES || error == EPERM ? "; check its owner and mode"
	       : error == EISDIR                   ? "; give the files in it instead"
						   : "";
}

int bc_open_readable(const struct bc_console *console, const char *path)
{
	struct stat st;
	int rc = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		rc = -errno;
	else if (fstat(fd, &st) != 0)
		rc = -errno;
	else if (S_ISDIR(st.st_mode))
		rc = -EISDIR;
	if (rc == 0)
		return fd;
	bc_print_error(console, path, "can't open: %s%s", strerror(-rc), advice(-rc));
	if (fd >= 0)
		close(fd);
	return rc;
}

int bc_open_parent(const char *path)
{
	char directory[PATH_MAX] = ".";
	size_t n = (size_t)(basename(path) - path);

	if (n >= sizeof(directory)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(directory, path, n);
	directory[n != 0 ? n : 1] = '\0';
	return open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int bc_open_directory(const struct bc_console *console, const char *path)
{
	int fd = bc_open_parent(path);
	char why[BC_PATH_ERROR_MAX];

	if (fd < 0)
		bc_print_error(console, path, "can't open its directory: %s",
			bc_path_error(why, path, errno));
	return fd;
}

void bc_give_way(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		fd = bc_open_parent(path);

	/* A daemon that starts in this moment waits for our lock (daemon/base/lock). */
	bool is_recording = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
	if (fd >= 0)
		close(fd);
	if (!is_recording)
		return;
	(void)!setpriority(PRIO_PROCESS, 0, NICE);
	(void)!syscall(
		SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0));
}

static int open_input(struct bc_file *file, enum bc_format wanted)
{
	/* Read to its end, a command that is slower than the recording would never end. */
	struct bc_input_stream stream = {
		.fd = file->fd, .wake_fd = -1, .end = file->is_written ? file->bytes : 0};
	struct bc_segment_name name;
	int rc = bc_input_open(&file->input, stream, wanted, BC_WINDOW_LOG, &file->probe);

	if (rc != -EINVAL || !file->is_regular || wanted != BC_FORMAT_UNKNOWN ||
		!bc_segment_name_read(&name, basename(file->name)))
		return rc;
	if (lseek(file->fd, 0, SEEK_SET) < 0)
		return -errno;
	return bc_input_open(&file->input, stream, BC_FORMAT_SEGMENT, BC_WINDOW_LOG, &file->probe);
}

/* The path of a file that may have been sealed, and so renamed, meanwhile. NULL: it is gone. */
static const char *find(const char *path, char now[PATH_MAX])
{
	if (strlen(path) >= PATH_MAX)
		return path;
	strcpy(now, path);
	return bc_segment_path_find(now) ? now : NULL;
}

bool bc_file_is_gone(const char *path)
{
	char now[PATH_MAX];

	return strcmp(path, "-") != 0 && find(path, now) == NULL;
}

enum bc_exit bc_file_open(struct bc_file *file, const struct bc_console *console, const char *path,
	enum bc_format wanted)
{
	enum bc_exit code = bc_file_open_any(file, console, path, wanted);

	if (code != BC_EXIT_OK || wanted != BC_FORMAT_UNKNOWN || !file->probe.needs_layout)
		return code;
	bc_print_error(console, file->name, "%s", file->probe.err);
	bc_file_close(file);
	return BC_EXIT_FAILED;
}

enum bc_exit bc_file_open_any(struct bc_file *file, const struct bc_console *console,
	const char *path, enum bc_format wanted)
{
	struct bc_segment_name name;
	char now[PATH_MAX];
	struct stat st;

	*file = (struct bc_file){.name = path, .is_ours = strcmp(path, "-") != 0};
	if (file->is_ours) {
		const char *found = find(path, now);
		path = found != NULL ? found : path;
		file->fd = bc_open_readable(console, path);
		if (file->fd < 0)
			return BC_EXIT_FAILED;
		file->is_partial = bc_segment_name_read(&name, basename(path)) && name.is_partial;
	} else {
		file->name = "standard input";
		file->fd = console->in;
	}
	/* Standard input may be a file that another process has read in part. */
	if (file->is_ours && fstat(file->fd, &st) == 0 && S_ISREG(st.st_mode)) {
		file->is_regular = true;
		file->bytes = (uint64_t)st.st_size;
		file->is_written = file->is_partial && bc_is_being_written(file->fd);
		file->is_killed = bc_segment_path_is_killed(path, file->fd);
	}
	int rc = open_input(file, wanted);
	/* Compressed data is not seekable. */
	if (rc == 0 && file->probe.format == BC_FORMAT_SEGMENT &&
		file->probe.packing != BC_PACKING_NONE)
		file->is_regular = false;
	if (rc == 0)
		return BC_EXIT_OK;
	if (rc == -EINVAL && file->is_regular && file->bytes == 0)
		bc_print_error(console, file->name, "empty file");
	else if (rc == -EINVAL && (wanted != BC_FORMAT_UNKNOWN || file->probe.is_foreign))
		bc_print_error(console, file->name, "%s", file->probe.err);
	else if (rc == -EINVAL)
		bc_print_error(console, file->name, "unknown format: %s; specify it with -I%s",
			file->probe.err,
			file->probe.is_table
				? ", or name its columns: -I 'csv:addr=NAME,type=NAME'; "
				  "see buscap-formats(5)"
			: file->probe.is_lines ? ", or describe it as in -I 'lines:{type} {addr}': "
						 "see buscap-formats(5)"
					       : "");
	else
		bc_print_read_error(console, file, rc);
	bc_file_close(file);
	return BC_EXIT_FAILED;
}

void bc_file_close(struct bc_file *file)
{
	bc_input_close(file->input);
	file->input = NULL;
	if (file->is_ours && file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}

bool bc_file_would_wait(const struct bc_file *file)
{
	struct pollfd pollfd = {.fd = file->fd, .events = POLLIN};

	return !file->is_regular && poll(&pollfd, 1, 0) == 0;
}

enum bc_exit bc_print_read_error(
	const struct bc_console *console, const struct bc_file *file, int error)
{
	char err[128];

	if (error == -ENOMEM)
		bc_print_error(console, file->name, "out of memory");
	else if (error == -EBADMSG)
		bc_print_packing(console, file, "; the rest can't be read");
	else if (error != -ENOBUFS)
		bc_print_error(
			console, file->name, "read error: %s%s", strerror(-error), advice(-error));
	if (error == -ENOBUFS) {
		bc_unpack_too_large(err, sizeof(err), file->probe.packing, BC_WINDOW_LOG);
		bc_print_error(console, file->name, "%s", err);
	}
	return error == -EBADMSG ? BC_EXIT_DAMAGED : BC_EXIT_FAILED;
}

const char *bc_packing_text(enum bc_packing packing)
{
	static const char *const texts[] = {
		[BC_PACKING_NONE] = "",
		[BC_PACKING_LZ4] = ", LZ4 compressed",
		[BC_PACKING_GZIP] = ", gzip compressed",
		[BC_PACKING_ZSTD] = ", zstd compressed",
		[BC_PACKING_XZ] = ", xz compressed",
	};

	return texts[packing];
}

void bc_print_packing(
	const struct bc_console *console, const struct bc_file *file, const char *where)
{
	bc_print_error(console, file->name, "damaged or torn %s data%s",
		bc_packing_name(file->probe.packing), where);
}

/* Returns true if an open file is one of the inputs. */
static bool is_input(int fd, const struct bc_console *console, const char *const *inputs, int count)
{
	struct stat st;
	struct stat in;

	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return false;
	for (int i = 0; i < count; i++) {
		bool is_console = strcmp(inputs[i], "-") == 0;
		int rc = is_console ? fstat(console->in, &in) : stat(inputs[i], &in);
		if (rc == 0 && in.st_dev == st.st_dev && in.st_ino == st.st_ino)
			return true;
	}
	return false;
}

/* Returns true if the path names a regular file or nothing, so that rename() can replace it. */
static bool is_replaceable(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 ? S_ISREG(st.st_mode) : errno == ENOENT;
}

/* Opens for writing without truncating. Errors name the path that the caller was given. */
static int open_path(const struct bc_console *console, const char *path, const char *given,
	const char *const *inputs, int count)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	char why[BC_PATH_ERROR_MAX];

	if (fd < 0) {
		bc_print_error(console, given, "can't open for writing: %s",
			bc_path_error(why, given, errno));
		return -1;
	}
	if (!is_input(fd, console, inputs, count))
		return fd;
	bc_print_error(console, path, "is also an input; choose another -o");
	close(fd);
	return -1;
}

/* Checks before the work starts that an existing file is writable and not an input. */
static bool may_replace(
	const struct bc_console *console, const char *path, const char *const *inputs, int count)
{
	if (access(path, F_OK) != 0)
		return true;
	int fd = open_path(console, path, path, inputs, count);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

enum bc_exit bc_output_file_open(struct bc_output_file *file, const struct bc_console *console,
	const char *path, const char *const *inputs, int count)
{
	*file = (struct bc_output_file){.fd = console->out, .path = path};
	if (path == NULL) {
		if (!is_input(console->out, console, inputs, count))
			return BC_EXIT_OK;
		return bc_print_error(
			console, NULL, "standard output is also an input; choose another file");
	}
	if (is_replaceable(path)) {
		if (!may_replace(console, path, inputs, count))
			return BC_EXIT_FAILED;
		if (asprintf(&file->partial, "%s.partial", path) < 0) {
			file->partial = NULL;
			return bc_print_no_memory(console);
		}
	}
	const char *name = file->partial != NULL ? file->partial : path;
	file->fd = open_path(console, name, path, inputs, count);
	if (file->fd >= 0 && ftruncate(file->fd, 0) != 0 && errno != EINVAL) {
		bc_print_error(console, name, "write error: %s", strerror(errno));
		close(file->fd);
		file->fd = -1;
	}
	if (file->fd >= 0) {
		if (file->partial != NULL)
			bc_interrupt_note(console, path, file->partial);
		return BC_EXIT_OK;
	}
	free(file->partial);
	return BC_EXIT_FAILED;
}

/* Reports a file that was not written to its end. */
static void print_incomplete(const struct bc_output_file *file, const struct bc_console *console,
	uint64_t bytes, int error)
{
	if (file->partial == NULL)
		bc_print_error(console, file->path, "write error: %s; the file is incomplete",
			strerror(-error));
	else
		bc_print_error(console, file->path, "%s%s; incomplete data (%s byte%s) is in %s",
			error != 0 ? "write error: " : "not created",
			error != 0 ? strerror(-error) : "", BC_GROUPED(bytes), bc_plural(bytes),
			file->partial);
}

enum bc_exit bc_output_file_close(struct bc_output_file *file, const struct bc_console *console,
	struct bc_output *output, bool is_whole)
{
	struct stat st;

	if (file->path == NULL)
		return output != NULL ? bc_output_close(output, console) : BC_EXIT_OK;
	bc_interrupt_note_clear();
	int error = output != NULL ? bc_output_end(output) : 0;
	uint64_t bytes = fstat(file->fd, &st) == 0 ? (uint64_t)st.st_size : 0;
	if (close(file->fd) != 0 && error == 0)
		error = -errno;
	if (error != 0 || (!is_whole && file->partial != NULL)) {
		print_incomplete(file, console, bytes, error);
	} else if (file->partial != NULL && rename(file->partial, file->path) != 0) {
		error = -errno;
		bc_print_error(console, file->path, "not created: can't rename %s: %s",
			file->partial, strerror(-error));
	}
	free(file->partial);
	file->partial = NULL;
	return error == 0 ? BC_EXIT_OK : BC_EXIT_FAILED;
}
