/* Descriptors that a test program closes twice, or leaves open. */
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/test.h"

#define DESCRIPTORS 1000

/* Only in programs with libuv, which keeps two descriptors open until then. */
extern void uv_library_shutdown(void) __attribute__((weak));

#ifndef __SANITIZE_THREAD__
/* A descriptor that is closed twice, or removed from a loop after it was closed, may by then be one
 * that another thread has just opened. Nothing else notices, so these end the program. Libraries
 * call them, too. */
static int checked(long rc, int fd, const char *what)
{
	if (rc == 0 || errno != EBADF || fd < 0)
		return (int)rc;
	fprintf(stderr, "%s of the closed descriptor %d\n", what, fd);
	abort();
}

/* The tests with a USB of their own have another one. */
__attribute__((weak)) int close(int fd)
{
	return checked(syscall(SYS_close, fd), fd, "close");
}

int epoll_ctl(int epoll_fd, int operation, int fd, struct epoll_event *event)
{
	return checked(syscall(SYS_epoll_ctl, epoll_fd, operation, fd, event), fd, "epoll_ctl");
}
#endif

/* Not counted: those that have no file, as of signals and events, which a program may keep. */
static bool is_open(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) != 0;
}

unsigned test_count_open(void)
{
	unsigned open = 0;

	for (int fd = 0; fd < DESCRIPTORS; fd++)
		open += is_open(fd);
	return open;
}

bool test_has_closed_all(unsigned before)
{
	char link[32];
	char name[128];

	if (uv_library_shutdown != NULL)
		uv_library_shutdown();
	if (test_count_open() <= before)
		return true;
	for (int fd = 0; fd < DESCRIPTORS; fd++) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		ssize_t n = is_open(fd) ? readlink(link, name, sizeof(name)) : 0;
		if (n > 0)
			print_error("descriptor %d is open: %.*s\n", fd, (int)n, name);
	}
	return false;
}
