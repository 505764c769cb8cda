#include "cli/io/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

	if (fd < 0) {
		bc_print_error(console, given, "can't open for writing: %s", strerror(errno));
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
		bc_print_error(
			console, NULL, "standard output is also an input; choose another file");
		return BC_EXIT_FAILED;
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
			file->note = bc_interrupt_note_add(console, path, file->partial);
		return BC_EXIT_OK;
	}
	free(file->partial);
	return BC_EXIT_FAILED;
}

enum bc_exit bc_output_file_close(
	struct bc_output_file *file, const struct bc_console *console, bool is_whole)
{
	enum bc_exit code = BC_EXIT_OK;

	if (file->path == NULL)
		return code;
	bc_interrupt_note_remove(file->note);
	file->note = NULL;
	if (close(file->fd) != 0 && is_whole) {
		bc_print_error(console, file->path, "write error: %s", strerror(errno));
		code = BC_EXIT_FAILED;
	}
	if (file->partial != NULL && is_whole && code == BC_EXIT_OK &&
		rename(file->partial, file->path) != 0) {
		bc_print_error(
			console, file->path, "can't rename %s: %s", file->partial, strerror(errno));
		code = BC_EXIT_FAILED;
	}
	if (file->partial != NULL && (!is_whole || code != BC_EXIT_OK))
		bc_print_error(console, file->path, "not created; incomplete data is in %s",
			file->partial);
	free(file->partial);
	file->partial = NULL;
	return code;
}
