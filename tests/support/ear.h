/* What is logged while somebody listens, from standard error, which is a pipe meanwhile: 64 KiB at
 * most. */
#ifndef BC_TESTS_SUPPORT_EAR_H
#define BC_TESTS_SUPPORT_EAR_H

#include <fcntl.h>
#include <unistd.h>

#include "tests/support/test.h"

struct ear {
	int stderr_fd;
	int pipe_fd;
	char text[65536];
};

static inline void listen_to(struct ear *ear)
{
	int fds[2] = {-1, -1};

	ear->stderr_fd = dup(STDERR_FILENO);
	assert_true(ear->stderr_fd >= 0 && pipe2(fds, O_CLOEXEC) == 0);
	assert_true(dup2(fds[1], STDERR_FILENO) >= 0);
	close(fds[1]);
	ear->pipe_fd = fds[0];
}

/* Returns what was heard. */
static inline char *end_listening(struct ear *ear)
{
	assert_true(dup2(ear->stderr_fd, STDERR_FILENO) >= 0);
	close(ear->stderr_fd);
	ssize_t n = read(ear->pipe_fd, ear->text, sizeof(ear->text) - 1);
	assert_true(n >= 0);
	ear->text[n] = '\0';
	close(ear->pipe_fd);
	return ear->text;
}

#endif
