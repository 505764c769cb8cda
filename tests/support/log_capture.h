/* Captures the log without its times: replaces standard error with a pipe. At most 64 KiB. */
#ifndef BC_TESTS_SUPPORT_LOG_CAPTURE_H
#define BC_TESTS_SUPPORT_LOG_CAPTURE_H

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/test.h"

struct log_capture {
	int stderr_fd;
	int pipe_fd;
	char text[65536];
};

static inline void log_capture_start(struct log_capture *capture)
{
	int fds[2] = {-1, -1};

	capture->stderr_fd = dup(STDERR_FILENO);
	assert_true(capture->stderr_fd >= 0 && pipe2(fds, O_CLOEXEC) == 0);
	assert_true(dup2(fds[1], STDERR_FILENO) >= 0);
	close(fds[1]);
	capture->pipe_fd = fds[0];
}

/* Removes "2026-01-31T12:00:00.000Z " from the start of each line. */
static inline void log_capture_remove_times(char *text)
{
	const size_t bytes = strlen("2026-01-31T12:00:00.000Z ");
	char *out = text;

	for (const char *line = text; *line != '\0';) {
		size_t n = strcspn(line, "\n");
		n += line[n] == '\n';
		size_t skip = n >= bytes && line[10] == 'T' && line[bytes - 2] == 'Z' ? bytes : 0;
		memmove(out, line + skip, n - skip);
		out += n - skip;
		line += n;
	}
	*out = '\0';
}

/* Restores standard error. Returns the captured text. */
static inline char *log_capture_stop(struct log_capture *capture)
{
	assert_true(dup2(capture->stderr_fd, STDERR_FILENO) >= 0);
	close(capture->stderr_fd);
	ssize_t n = read(capture->pipe_fd, capture->text, sizeof(capture->text) - 1);
	assert_true(n >= 0);
	capture->text[n] = '\0';
	close(capture->pipe_fd);
	log_capture_remove_times(capture->text);
	return capture->text;
}

#endif
