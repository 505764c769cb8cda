#include "capture/usb_source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "capture/usb_machine.h"

static void on_handle_closed(struct bc_usb_machine *m)
{
	if (--m->open_handles == 0)
		free(m);
}

static void on_timer_closed(uv_handle_t *handle)
{
	on_handle_closed(handle->data);
}

static void on_usb_closed(void *context)
{
	on_handle_closed(context);
}

/* No transfer is in flight, no job runs, no device is open. */
static void close_all(struct bc_usb_machine *m)
{
	m->has_closed = true;
	bc_usb_stream_close(m->stream);
	bc_usb_request_close(m->request);
	bc_usb_work_forget(&m->work);
	uv_close((uv_handle_t *)&m->timer, on_timer_closed);
	uv_close((uv_handle_t *)&m->watch, on_timer_closed);
	uv_close((uv_handle_t *)&m->wait, on_timer_closed);
	bc_usb_loop_close(m->usb);
}

/* Deals with what has been noted, and frees all when that was the end of it. */
static void turn(struct bc_usb_machine *m)
{
	if (!m->has_started && !m->is_closed)
		return; /* nobody listens yet */
	bc_usb_turn(m);
	if (m->has_ended && m->is_closed && !m->is_turning && !m->has_closed)
		close_all(m);
}

static void on_turn(void *context)
{
	turn(context);
}

static void on_hotplug(void *context, libusb_device *device, bool has_left)
{
	struct bc_usb_machine *m = context;

	bc_usb_post(m, BC_USB_ON_LOOK);
	if (has_left && !m->work.is_busy && device == m->work.device)
		bc_usb_post(m, BC_USB_ON_GONE);
}

static void on_work(struct bc_usb_work *work)
{
	struct bc_usb_machine *m = container_of(work, struct bc_usb_machine, work);

	bc_usb_post(m, BC_USB_ON_WORK);
	turn(m);
}

void bc_usb_on_timer(uv_timer_t *timer)
{
	struct bc_usb_machine *m = timer->data;

	bc_usb_post(m, BC_USB_ON_TIMER);
	turn(m);
}

void bc_usb_on_watch(uv_timer_t *timer)
{
	struct bc_usb_machine *m = timer->data;

	bc_usb_post(m, BC_USB_ON_WATCH);
	turn(m);
}

static void on_wait(uv_timer_t *timer)
{
	struct bc_usb_machine *m = timer->data;
	char what[sizeof(m->end_what)];

	if (m->feed.has_streamed)
		return;
	/* Why one that is there could not be used, was told when it was met. */
	snprintf(what, sizeof(what),
		m->board.last_error[0] != '\0' ? "it could not be recorded from within %.0f s"
					       : "none has come within %.0f s",
		(double)m->options.wait_ns * 1e-9);
	bc_usb_end_with(m, -ENODEV, what);
	turn(m);
}

/* The source's own calls */

static int usb_start(struct bc_source *source)
{
	struct bc_usb_machine *m = container_of(source, struct bc_usb_machine, source);

	m->has_started = true;
	if (m->options.wait_ns != 0)
		uv_timer_start(&m->wait, on_wait, (m->options.wait_ns + 999999) / 1000000, 0);
	bc_usb_set_state(m, BC_BOARD_DETACHED);
	turn(m);
	return 0;
}

static void usb_resume(struct bc_source *source)
{
	(void)source; /* never refused */
}

static void usb_stop(struct bc_source *source)
{
	struct bc_usb_machine *m = container_of(source, struct bc_usb_machine, source);

	if (m->options.wait_ns != 0 && !m->feed.has_streamed)
		bc_usb_end_with(m, -ENODEV, "stopped before one had come");
	else
		bc_usb_end_with(m, 0, "");
	turn(m);
}

static void usb_last(struct bc_source *source)
{
	struct bc_usb_machine *m = container_of(source, struct bc_usb_machine, source);

	m->feed.last_frame_ns = uv_hrtime();
}

static void usb_close(struct bc_source *source)
{
	struct bc_usb_machine *m = container_of(source, struct bc_usb_machine, source);

	m->is_closed = true;
	m->feed.is_cut = true;
	if (!m->has_started)
		m->has_ended = true;
	m->is_ending = true;
	bc_usb_post(m, BC_USB_ON_STOP);
	turn(m);
}

static const struct bc_source_ops usb_ops = {
	.start = usb_start,
	.resume = usb_resume,
	.stop = usb_stop,
	.last = usb_last,
	.close = usb_close,
};

struct bc_usb_options bc_usb_options_default(void)
{
	return (struct bc_usb_options){
		.wish = {.vid = 0x1209, .pid = 0x0001},
		.protocol = BC_FORMAT_BCP1,
		.link = BC_USB_PLAIN,
		.ftdi = {.latency_ms = 16, .mode = 0x40},
		.transfers = 16,
		.transfer_bytes = 64u << 10,
		.wait_ns = UINT64_C(10000000000),
		.silence_ns = UINT64_C(10000000000),
		.back_off_ns = 100000000,
		.back_off_max_ns = UINT64_C(5000000000),
	};
}

static void init_timer(struct bc_usb_machine *m, uv_timer_t *timer)
{
	uv_timer_init(m->loop, timer);
	timer->data = m;
	m->open_handles++;
}

int bc_usb_source_open(
	struct bc_source **source, uv_loop_t *loop, const struct bc_usb_options *options)
{
	struct bc_usb_machine *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return -ENOMEM;
	m->options = *options;
	m->loop = loop;
	m->back_off_ns = options->back_off_ns;
	struct bc_usb_stream_options stream = {
		.transfers = options->transfers,
		.transfer_bytes = options->transfer_bytes,
		.timeout_ms = options->timeout_ms,
		.context = m,
		.on_data = bc_usb_on_data,
		.on_fault = bc_usb_on_fault,
	};
	struct bc_usb_loop_options usb = {
		.loop = loop,
		.context = m,
		.on_turn = on_turn,
		.on_hotplug = on_hotplug,
		.on_closed = on_usb_closed,
	};
	int rc = bc_usb_request_open(&m->request, bc_usb_on_answer, m);
	if (rc == 0)
		rc = bc_usb_stream_open(&m->stream, &stream);
	if (rc == 0)
		rc = bc_usb_loop_open(&m->usb, &usb);
	if (rc != 0) {
		bc_usb_stream_close(m->stream);
		bc_usb_request_close(m->request);
		free(m);
		return rc;
	}
	m->work.context = bc_usb_loop_context(m->usb);
	m->work.wish = options->wish;
	m->work.done = on_work;
	m->feed = (struct bc_usb_feed){
		.source = &m->source,
		.board = &m->board,
		.protocol = options->protocol,
		.link = options->link,
	};
	m->source.ops = &usb_ops;
	m->source.kind = "usb";
	m->source.is_live = true;
	m->source.clock_hz = options->clock_hz;
	m->source.board = &m->board;
	char wish[BC_USB_WISH_TEXT];
	bc_usb_wish_write(wish, &options->wish);
	snprintf(m->source.name, sizeof(m->source.name), "board %s", wish);
	m->board.since_ns = uv_hrtime();
	m->open_handles = 1;
	init_timer(m, &m->timer);
	init_timer(m, &m->watch);
	init_timer(m, &m->wait);
	*source = &m->source;
	return 0;
}
