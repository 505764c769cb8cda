#include "cli/output.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int bc_output_open(struct bc_output *o, int fd)
{
	*o = (struct bc_output){.fd = fd, .buffer = malloc(BC_OUTPUT_BYTES)};
	return o->buffer != NULL ? 0 : -ENOMEM;
}

/* A standard output that is set not to wait, as some shells' children find theirs. */
static bool wait_writable(int fd)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLOUT};

	return poll(&pollfd, 1, -1) >= 0 || errno == EINTR;
}

static void write_all(struct bc_output *o, const char *p, size_t bytes)
{
	while (bytes != 0 && o->error == 0) {
		ssize_t n = write(o->fd, p, bytes);
		if (n < 0 && (errno == EINTR || (errno == EAGAIN && wait_writable(o->fd))))
			continue;
		if (n < 0) {
			o->error = -errno;
			return;
		}
		p += n;
		bytes -= (size_t)n;
	}
}

void bc_output_flush(struct bc_output *o)
{
	write_all(o, o->buffer, o->used);
	o->used = 0;
}

char *bc_output_room(struct bc_output *o, size_t bytes)
{
	assert(bytes <= BC_OUTPUT_BYTES);
	if (BC_OUTPUT_BYTES - o->used < bytes)
		bc_output_flush(o);
	return o->buffer + o->used;
}

void bc_output_text(struct bc_output *o, const void *text, size_t bytes)
{
	if (bytes > BC_OUTPUT_BYTES / 2) {
		bc_output_flush(o);
		write_all(o, text, bytes);
		return;
	}
	memcpy(bc_output_room(o, bytes), text, bytes);
	o->used += bytes;
}

void bc_output_vformat(struct bc_output *o, const char *format, va_list args)
{
	char *text;
	int n = vasprintf(&text, format, args);

	if (n < 0) {
		o->error = -ENOMEM;
		return;
	}
	bc_output_text(o, text, (size_t)n);
	free(text);
}

void bc_output_format(struct bc_output *o, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	bc_output_vformat(o, format, args);
	va_end(args);
}

enum bc_exit bc_output_close(struct bc_output *o, const struct bc_console *console)
{
	bc_output_flush(o);
	free(o->buffer);
	o->buffer = NULL;
	if (o->error == 0 || o->error == -EPIPE)
		return BC_EXIT_OK;
	if (o->name != NULL)
		bc_complain(
			console, o->name, "can't write it: %s; it is cut off", strerror(-o->error));
	else
		bc_complain(console, NULL, "can't write the output: %s; it is cut off",
			strerror(-o->error));
	return BC_EXIT_FAILED;
}
