#include "cli/term/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

int bc_interrupt_open(void)
{
	sigset_t signals;
	sigset_t before;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &signals, &before) != 0)
		return -errno;
	int fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	int rc = fd >= 0 ? fd : -errno;
	if (fd < 0)
		sigprocmask(SIG_SETMASK, &before, NULL);
	return rc;
}

bool bc_interrupt_wait(int fd, int timeout_ms)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};

	return poll(&pollfd, 1, timeout_ms) > 0;
}
