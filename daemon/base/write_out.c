#include "daemon/base/write_out.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

int bc_write_out(int fd, const char *text, size_t bytes)
{
	while (bytes != 0) {
		ssize_t n = write(fd, text, bytes);
		if (n >= 0) {
			text += n;
			bytes -= (size_t)n;
		} else if (errno == EAGAIN) {
			struct pollfd reader = {.fd = fd, .events = POLLOUT};
			poll(&reader, 1, -1);
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}
