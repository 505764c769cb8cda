#include "capture/usb_machine.h"

#include <errno.h>
#include <string.h>

/* A board that is told to stop may take so long in all, and has ended when it sent nothing for
 * DRAIN_NS. */
#define STOP_MS  1000
#define COUNT_MS 300 /* and for its counters after that */
#define DRAIN_NS UINT64_C(150000000)

/* A loop that was held up finds the time over first, and what has come meanwhile then. */
#define LATE_MS 50

/* A board is told to stop when it was told to start, and the owner wants what it still holds. */
static bool may_ask(const struct bc_usb_machine *m)
{
	return m->then == BC_USB_THEN_END && !m->is_closed && m->is_started;
}

static void cancel(struct bc_usb_machine *m)
{
	m->stopping = BC_USB_CANCELLING;
	bc_usb_stream_cancel(m->stream);
	bc_usb_request_cancel(m->request);
}

/* It was unplugged while it was told to stop: what it still held went with it. */
static void cancel_gone(struct bc_usb_machine *m)
{
	if (m->stopping != BC_USB_COUNTING && m->feed.last_frame_ns == 0) {
		m->board.unplugs++;
		bc_usb_feed_break(&m->feed, BC_GAP_UNPLUGGED, true);
		bc_usb_feed_tell(&m->feed, BC_NEWS_WARNING,
			"%s: unplugged before it had stopped: what it still held is missing, and a "
			"gap at the end says so",
			m->source.name);
	}
	cancel(m);
}

/* Asked again at the next look when there was no memory for it. */
static void ask_or_cancel(struct bc_usb_machine *m, enum bc_usb_step step)
{
	if (bc_usb_ask(m, step) || m->answer == -EAGAIN)
		return;
	if (m->answer == -ENODEV)
		cancel_gone(m);
	else
		cancel(m);
}

static void ask_to_stop(struct bc_usb_machine *m)
{
	ask_or_cancel(m, m->options.link == BC_USB_FTDI ? BC_USB_FTDI_MODE_RESET : BC_USB_STOP);
}

static void begin_time(struct bc_usb_machine *m, uint64_t ms)
{
	m->is_late = false;
	uv_timer_start(&m->timer, bc_usb_on_timer, ms, 0);
}

void bc_usb_begin_stopping(struct bc_usb_machine *m)
{
	m->stopping = BC_USB_ASKING;
	if (may_ask(m) && !bc_usb_request_is_flying(m->request)) {
		uv_update_time(m->loop);
		begin_time(m, STOP_MS);
		ask_to_stop(m);
	} else {
		cancel(m);
	}
}

static void count_or_cancel(struct bc_usb_machine *m)
{
	m->stopping = BC_USB_COUNTING;
	if (m->has_counters_first)
		ask_or_cancel(m, BC_USB_GET_COUNTERS);
	else
		cancel(m);
}

/* A board that sends frames ends with a last one. */
static bool has_last_frame(const struct bc_usb_machine *m)
{
	return m->options.protocol == BC_FORMAT_BCP1 && m->options.link == BC_USB_PLAIN;
}

/* Where there is no last frame it is taken for the end when nothing more comes. */
static bool is_drained(struct bc_usb_machine *m)
{
	uint64_t since_ns = m->feed.heard_ns > m->board.since_ns ? m->feed.heard_ns
								 : m->board.since_ns;

	if (m->feed.last_frame_ns != 0)
		return true;
	return !has_last_frame(m) && bc_usb_is_over(m, BC_USB_WAIT_REST, since_ns, DRAIN_NS);
}

/* Time to look after a board that is being stopped. */
static void watch(struct bc_usb_machine *m)
{
	if (bc_usb_request_is_flying(m->request))
		return;
	if (m->stopping == BC_USB_ASKING)
		ask_to_stop(m);
	else if (m->stopping == BC_USB_COUNTING ||
		 (m->stopping == BC_USB_DRAINING && is_drained(m)))
		count_or_cancel(m);
}

/* The board has had its time. */
static void on_stop_time(struct bc_usb_machine *m)
{
	const char *what = m->stopping == BC_USB_ASKING     ? "it doesn't answer STOP"
			   : m->stopping == BC_USB_COUNTING ? "it doesn't answer GET_COUNTERS"
							    : "it has sent no last frame";

	if (m->stopping >= BC_USB_CANCELLING)
		return;
	if (m->stopping != BC_USB_DRAINING || has_last_frame(m))
		bc_usb_feed_tell(&m->feed, BC_NEWS_WARNING,
			"%s: %s: what it still held may be missing, and a gap at the end says so",
			m->source.name, what);
	if (m->stopping != BC_USB_COUNTING && has_last_frame(m))
		bc_usb_feed_break(&m->feed, BC_GAP_TRANSFER, false);
	if (m->stopping == BC_USB_DRAINING) {
		begin_time(m, COUNT_MS);
		count_or_cancel(m);
	} else {
		cancel(m);
	}
}

static void on_stop_timer(struct bc_usb_machine *m)
{
	if (m->is_late) {
		on_stop_time(m);
		return;
	}
	m->is_late = true;
	uv_timer_start(&m->timer, bc_usb_on_timer, LATE_MS, 0);
}

static void on_stop_answer(struct bc_usb_machine *m)
{
	if (m->stopping == BC_USB_ASKING && m->answer == 0)
		m->stopping = BC_USB_DRAINING;
	else if (m->stopping == BC_USB_ASKING && m->answer == -ETIMEDOUT)
		on_stop_time(m); /* the request's own time may be over before ours is */
	else if (m->stopping <= BC_USB_COUNTING)
		cancel(m); /* the counters are here; or it doesn't know how to stop */
}

/* The transfers are back: what follows? */
void bc_usb_go_on(struct bc_usb_machine *m)
{
	uv_timer_stop(&m->timer);
	if (m->then == BC_USB_THEN_RESUME && !m->is_closed) {
		m->stopping = BC_USB_CLEARING;
		bc_usb_loop_release(m->usb);
		bc_usb_work_start(&m->work, m->loop, BC_USB_CLEAR);
		return;
	}
	m->stopping = BC_USB_CLOSING;
	m->is_started = false;
	m->work.wants_reset = m->then == BC_USB_THEN_RETRY && m->board.is_present && !m->is_ending;
	m->board.restarts += m->work.wants_reset;
	m->board.is_present = false;
	m->board.transfers = 0;
	/* Closing may take its time; what there is of the stream can be sealed meanwhile. */
	if (m->is_ending)
		bc_usb_tell_end(m);
	bc_usb_loop_release(m->usb);
	bc_usb_work_start(&m->work, m->loop, BC_USB_CLOSE);
}

/* Its halt is cleared, or not. A stop that came meanwhile finds it streaming, and takes what it
 * holds. */
static void resume(struct bc_usb_machine *m)
{
	const struct bc_board_identity *id = &m->work.identity;
	int rc = m->work.status;
	const char *what = m->work.what;
	int watched = bc_usb_loop_sync(m->usb);

	if (rc == 0 && watched != 0) {
		what = "watch it";
		rc = watched;
	}
	if (rc == 0 && !m->is_closed) {
		what = "submit its transfers";
		rc = bc_usb_stream_start(m->stream, m->work.handle, id->endpoint, id->packet_bytes);
		bc_usb_feed_begin(&m->feed);
	}
	if (rc == 0 && !m->is_closed) {
		bc_usb_set_state(m, BC_BOARD_STREAMING);
		if (m->is_ending)
			bc_usb_post(m, BC_USB_ON_STOP);
		return;
	}
	if (rc != 0)
		bc_usb_tell_failure(m, "%s: can't %s: %s", m->source.name, what, strerror(-rc));
	/* A reset makes no memory. */
	m->then = rc == -ENODEV || rc == -ENOMEM ? BC_USB_THEN_AWAY : BC_USB_THEN_RETRY;
	bc_usb_feed_break(&m->feed, BC_GAP_TRANSFER, true);
	cancel(m);
}

static void after_close(struct bc_usb_machine *m)
{
	int rc = bc_usb_loop_sync(m->usb);

	if (rc != 0)
		bc_usb_tell_failure(m, "the USB can't be watched: %s", strerror(-rc));
	if (m->is_ending) {
		bc_usb_finish(m);
	} else if (rc != 0) {
		bc_usb_set_state(m, BC_BOARD_BACK_OFF);
	} else if (m->then == BC_USB_THEN_AWAY && bc_usb_is_steady(m)) {
		m->streaming_ns = 0;
		m->back_off_ns = m->options.back_off_ns;
		bc_usb_set_state(m, BC_BOARD_DETACHED);
	} else {
		bc_usb_set_state(m, BC_BOARD_BACK_OFF);
	}
}

static void on_stop_work(struct bc_usb_machine *m)
{
	if (m->stopping == BC_USB_CLEARING)
		resume(m);
	else if (m->stopping == BC_USB_CLOSING)
		after_close(m);
}

static void on_stop_gone(struct bc_usb_machine *m)
{
	/* It was in trouble, and now it is gone. */
	if (bc_usb_was_in_trouble(m)) {
		bc_usb_note_unplug(m);
		m->then = BC_USB_THEN_AWAY;
	}
	if (m->stopping < BC_USB_CANCELLING)
		cancel_gone(m);
}

void bc_usb_in_stopping(struct bc_usb_machine *m, enum bc_usb_event event)
{
	bool is_asking = m->stopping < BC_USB_CANCELLING;

	switch (event) {
	case BC_USB_ON_ANSWER:
		on_stop_answer(m);
		break;
	case BC_USB_ON_WORK:
		on_stop_work(m);
		break;
	case BC_USB_ON_GONE:
		on_stop_gone(m);
		break;
	case BC_USB_ON_STALL:
	case BC_USB_ON_TROUBLE:
		if (is_asking)
			cancel(m);
		break;
	case BC_USB_ON_TIMER:
		on_stop_timer(m);
		break;
	case BC_USB_ON_WATCH:
		watch(m);
		break;
	case BC_USB_ON_LOOK:
		m->wants_look = true;
		break;
	case BC_USB_ON_STOP:
		if (is_asking && m->is_closed)
			cancel(m);
		break;
	default:
		break;
	}
}

bool bc_usb_is_back(const struct bc_usb_machine *m)
{
	return m->board.state == BC_BOARD_STOPPING && m->stopping == BC_USB_CANCELLING &&
	       bc_usb_stream_is_idle(m->stream) && !bc_usb_request_is_flying(m->request) &&
	       !m->work.is_busy;
}
