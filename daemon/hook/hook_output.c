#include "daemon/hook/hook_output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "daemon/base/log.h"

/* So much is read in one go, then nothing for a while. */
#define BURST_BYTES (64u << 10)
#define PAUSE_MS    100

/* A pipe holds half of this. What comes still when a command has ended is of another. */
#define DRAIN_BYTES (128u << 10)

static void end_line(struct bc_hook_output *o)
{
	if (o->lines >= o->lines_max) {
		o->left_out++;
	} else {
		o->lines++;
		bc_log(BC_LOG_INFO, "%s: %.*s%s", o->name, (int)o->used, o->line,
			o->is_long ? "..." : "");
	}
	o->used = 0;
	o->is_long = false;
}

static void take(struct bc_hook_output *o, const char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (bytes[i] == '\n')
			end_line(o);
		else if (o->used < sizeof(o->line))
			o->line[o->used++] = bytes[i];
		else
			o->is_long = true;
	}
}

static void on_pause_end(uv_timer_t *timer);

static void end_reading(struct bc_hook_output *o)
{
	uv_poll_stop(&o->poll);
	o->is_over = true;
	o->on_end(o->context);
}

/* Returns whether there may be more at once. */
static bool read_piece(struct bc_hook_output *o)
{
	char bytes[4096];
	ssize_t n = read(o->fd, bytes, sizeof(bytes));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return errno == EINTR;
	if (n <= 0 || (o->is_draining && o->burst >= DRAIN_BYTES)) {
		end_reading(o);
		return false;
	}
	take(o, bytes, (size_t)n);
	o->burst += (size_t)n;
	return true;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	struct bc_hook_output *o = poll->data;

	(void)events;
	if (status != 0) {
		end_reading(o);
		return;
	}
	if (!read_piece(o) || o->is_draining || o->burst < BURST_BYTES)
		return;
	uv_poll_stop(poll);
	uv_timer_start(&o->pause, on_pause_end, PAUSE_MS, 0);
}

static int start_reading(struct bc_hook_output *o)
{
	o->burst = 0;
	return uv_poll_start(&o->poll, UV_READABLE, on_readable);
}

static void on_pause_end(uv_timer_t *timer)
{
	struct bc_hook_output *o = timer->data;

	if (start_reading(o) != 0)
		end_reading(o);
}

static void on_handle_closed(uv_handle_t *handle)
{
	struct bc_hook_output *o = handle->data;

	if (--o->open_handles == 0)
		o->on_closed(o->context);
}

int bc_hook_output_open(struct bc_hook_output *o, uv_loop_t *loop, int *write_fd, const char *name,
	void (*on_end)(void *context), void *context)
{
	int fds[2];

	*o = (struct bc_hook_output){.name = name, .context = context, .on_end = on_end};
	if (pipe2(fds, O_CLOEXEC) != 0)
		return -errno;
	int rc = uv_poll_init(loop, &o->poll, fds[0]);
	if (rc != 0) {
		close(fds[0]);
		close(fds[1]);
		return rc;
	}
	uv_timer_init(loop, &o->pause);
	o->fd = fds[0];
	o->poll.data = o;
	o->pause.data = o;
	o->open_handles = 2;
	*write_fd = fds[1];
	/* Where it can't be read, the command is run without. */
	o->is_over = start_reading(o) != 0;
	return 0;
}

void bc_hook_output_drain(struct bc_hook_output *o)
{
	if (o->is_over)
		return;
	uv_timer_stop(&o->pause);
	o->is_draining = true;
	o->burst = 0;
	if (!uv_is_active((uv_handle_t *)&o->poll) && start_reading(o) != 0) {
		end_reading(o);
		return;
	}
	/* Now: of what comes later, the time for it may be over before the loop looks. */
	while (read_piece(o))
		;
}

void bc_hook_output_close(struct bc_hook_output *o, void (*on_closed)(void *context))
{
	if (o->used != 0 || o->is_long)
		end_line(o);
	if (o->left_out != 0)
		bc_log_limited(o->limits, BC_LOG_WARNING,
			"%s: %" PRIu64 " lines more are not logged", o->name, o->left_out);
	o->on_closed = on_closed;
	uv_close((uv_handle_t *)&o->poll, on_handle_closed);
	close(o->fd); /* libuv looks at it no more */
	uv_close((uv_handle_t *)&o->pause, on_handle_closed);
}
