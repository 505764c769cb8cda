#include "formats/base/input_stream.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

static void report_progress(struct bc_input_stream stream)
{
	if (stream.progress != NULL)
		stream.progress->on_progress(stream.progress->context);
}

static int wait_readable(struct bc_input_stream stream)
{
	struct pollfd fds[2] = {
		{.fd = stream.fd, .events = POLLIN},
		{.fd = stream.wake_fd, .events = POLLIN},
	};

	while (poll(fds, 2, -1) < 0)
		if (errno != EINTR)
			return -errno;
	return fds[1].revents != 0 ? -ECANCELED : 0;
}

ssize_t bc_input_stream_read(struct bc_input_stream stream, void *out, size_t size)
{
	if (stream.read != NULL)
		return stream.read(stream.context, out, size);
	if (stream.end != 0) {
		off_t at = lseek(stream.fd, 0, SEEK_CUR);
		if (at < 0)
			return -errno;
		uint64_t left = (uint64_t)at < stream.end ? stream.end - (uint64_t)at : 0;
		size = left < size ? (size_t)left : size;
	}
	for (;;) {
		int rc = stream.wake_fd >= 0 ? wait_readable(stream) : 0;
		if (rc != 0)
			return rc;
		ssize_t n = read(stream.fd, out, size);
		if (n > 0)
			report_progress(stream);
		if (n >= 0)
			return n;
		if (errno == EAGAIN)
			rc = wait_readable(stream);
		else if (errno != EINTR)
			rc = -errno;
		if (rc != 0)
			return rc;
	}
}

int bc_input_stream_poll(struct bc_input_stream stream)
{
	struct pollfd wake = {.fd = stream.wake_fd, .events = POLLIN};

	report_progress(stream);
	return stream.wake_fd >= 0 && poll(&wake, 1, 0) > 0 ? -ECANCELED : 0;
}
