#include "capture/usb_machine.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* How often a streaming board is looked after: silence, lost transfers, the end of a drain. */
#define LOOK_MS 50

/* Whoever sent a last frame, and more within this time, has gone on. */
#define LAST_NS UINT64_C(1000000000)

/* A board that streamed for so long doesn't flap. */
#define STEADY_NS UINT64_C(5000000000)

/* So many faults without data in between, and the board is reset. */
#define FAULTS_MAX 8u

void bc_usb_post(struct bc_usb_machine *m, enum bc_usb_event event)
{
	m->pending |= 1u << event;
}

/* Transfers */

void bc_usb_on_data(void *context, uint8_t *bytes, size_t count)
{
	struct bc_usb_machine *m = context;

	bc_usb_feed_bytes(&m->feed, bytes, count, m->work.identity.packet_bytes);
}

void bc_usb_on_fault(void *context, enum bc_usb_fault fault)
{
	struct bc_usb_machine *m = context;

	bc_usb_feed_fault(&m->feed, fault);
	if (fault == BC_USB_TIMEOUT)
		return;
	if (fault == BC_USB_GONE)
		bc_usb_post(m, BC_USB_ON_GONE);
	else if (m->feed.faults >= FAULTS_MAX)
		bc_usb_post(m, BC_USB_ON_TROUBLE);
	else if (fault == BC_USB_STALL)
		bc_usb_post(m, BC_USB_ON_STALL);
	if (fault == BC_USB_GONE || fault == BC_USB_STALL)
		bc_usb_stream_cancel(m->stream);
}

/* States. Each function deals with the events of one; bc_usb_set_state() does what a state begins
 * with. */

void bc_usb_stop_for(struct bc_usb_machine *m, enum bc_usb_then then)
{
	m->then = then;
	bc_usb_set_state(m, BC_BOARD_STOPPING);
}

void bc_usb_tell_end(struct bc_usb_machine *m)
{
	const struct bc_source_sink *sink = &m->source.sink;

	if (m->feed.is_cut)
		return;
	uv_timer_stop(&m->timer);
	uv_timer_stop(&m->watch);
	uv_timer_stop(&m->wait);
	bc_usb_feed_resume(&m->feed);
	m->feed.is_cut = true;
	sink->end(sink->context, m->end_status, m->end_what);
}

void bc_usb_finish(struct bc_usb_machine *m)
{
	bc_usb_tell_end(m);
	uv_timer_stop(&m->timer);
	uv_timer_stop(&m->watch);
	uv_timer_stop(&m->wait);
	bc_usb_work_forget(&m->work);
	m->has_ended = true;
	m->board.state = BC_BOARD_DETACHED;
}

void bc_usb_end_with(struct bc_usb_machine *m, int status, const char *what)
{
	if (m->is_ending)
		return;
	m->is_ending = true;
	m->end_status = status;
	snprintf(m->end_what, sizeof(m->end_what), "%s", what);
	bc_usb_post(m, BC_USB_ON_STOP);
}

void bc_usb_tell_failure(struct bc_usb_machine *m, const char *format, ...)
{
	char what[sizeof(m->said)];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	snprintf(m->board.last_error, sizeof(m->board.last_error), "%s", what);
	if (strcmp(what, m->said) == 0)
		return;
	memcpy(m->said, what, sizeof(what));
	bc_usb_feed_tell_text(&m->feed, BC_NEWS_WARNING, format, what);
}

/* The boards that match as well are named, when they are others than before. */
static void name_others(struct bc_usb_machine *m)
{
	if (strcmp(m->others, m->work.others) == 0)
		return;
	memcpy(m->others, m->work.others, sizeof(m->others));
	if (m->others[0] == '\0')
		return;
	if (m->options.wish.serial[0] != '\0')
		bc_usb_feed_tell(&m->feed, BC_NEWS_INFO,
			"other boards are on the USB, and left alone: %s", m->others);
	else if (m->board.state == BC_BOARD_DETACHED && m->feed.has_streamed)
		bc_usb_feed_tell(&m->feed, BC_NEWS_WARNING,
			"other boards are on the USB, and ignored: %s; this recording is of serial "
			"number %s and waits for it",
			m->others, m->work.wish.serial);
	else
		bc_usb_feed_tell(&m->feed, BC_NEWS_WARNING,
			"other boards are on the USB, and ignored: %s; serial= chooses a board",
			m->others);
}

static void look(struct bc_usb_machine *m)
{
	if (m->work.is_busy) {
		m->wants_look = true;
		return;
	}
	m->wants_look = false;
	bc_usb_work_start(&m->work, m->loop, BC_USB_FIND);
}

static void tell_missing(struct bc_usb_machine *m)
{
	char wish[BC_USB_WISH_TEXT];

	bc_usb_wish_write(wish, &m->work.wish);
	m->board.last_error[0] = '\0';
	if (m->work.status != 0)
		bc_usb_tell_failure(
			m, "the devices on the USB can't be listed: %s", strerror(-m->work.status));
	else if (m->work.why_not[0] != '\0')
		bc_usb_tell_failure(m, "no board %s on the USB: %s", wish, m->work.why_not);
	else if (strcmp(m->said, "no board") != 0 && !m->feed.has_streamed)
		bc_usb_feed_tell(
			&m->feed, BC_NEWS_NOTICE, "no board %s on the USB: waiting for it", wish);
	if (m->board.last_error[0] == '\0')
		snprintf(m->said, sizeof(m->said), "no board");
}

void bc_usb_note_unplug(struct bc_usb_machine *m)
{
	m->board.unplugs++;
	bc_usb_feed_tell(&m->feed, BC_NEWS_WARNING,
		"%s: unplugged; the recording goes on when it comes back", m->source.name);
	bc_usb_feed_break(&m->feed, BC_GAP_UNPLUGGED, true);
}

bool bc_usb_was_in_trouble(const struct bc_usb_machine *m)
{
	return m->feed.has_break && m->feed.broken.cause == BC_GAP_TRANSFER && !m->is_ending;
}

static void in_detached(struct bc_usb_machine *m, enum bc_usb_event event)
{
	switch (event) {
	case BC_USB_ON_LOOK:
	case BC_USB_ON_TIMER:
		look(m);
		break;
	case BC_USB_ON_STOP:
		if (!m->work.is_busy)
			bc_usb_finish(m);
		break;
	case BC_USB_ON_WORK:
		if (m->is_ending) {
			bc_usb_finish(m);
			break;
		}
		name_others(m);
		if (m->work.status == 0 && m->work.found != NULL) {
			bc_usb_set_state(m, BC_BOARD_OPENING);
			break;
		}
		if (bc_usb_was_in_trouble(m))
			bc_usb_note_unplug(m);
		tell_missing(m);
		if (m->wants_look)
			look(m);
		else if (m->work.is_unread)
			uv_timer_start(&m->timer, bc_usb_on_timer,
				(m->options.back_off_max_ns + 999999) / 1000000, 0);
		break;
	default:
		break;
	}
}

static void tell_streaming(struct bc_usb_machine *m)
{
	const struct bc_board *b = &m->board;
	char clock[64] = "its clock is not known";

	if (m->source.clock_hz != 0)
		snprintf(clock, sizeof(clock), "%" PRIu64 " Hz%s", m->source.clock_hz,
			m->options.protocol == BC_FORMAT_RAW6 ? " by the host's clock" : "");
	bc_usb_feed_tell(&m->feed, BC_NEWS_NOTICE,
		"%s: streaming; %s speed, %s%s%s, %u transfers of %" PRIu32 " bytes",
		m->source.name, b->identity.speed, b->has_info ? b->firmware : "",
		b->has_info ? ", " : "", clock, b->transfers, b->transfer_bytes);
}

/* Gets back into flight what isn't. Fewer transfers than wished for, or shorter ones: told, and
 * told when they are back. */
static void look_at_transfers(struct bc_usb_machine *m)
{
	struct bc_board *b = &m->board;
	int rc = bc_usb_stream_fill(m->stream);

	if (rc == -ENODEV)
		bc_usb_post(m, BC_USB_ON_GONE);
	else if (rc != 0 && rc != -ENOMEM && bc_usb_stream_is_idle(m->stream))
		bc_usb_on_fault(m, BC_USB_REFUSED);
	b->transfers = bc_usb_stream_flying(m->stream);
	b->transfer_bytes = bc_usb_stream_bytes(m->stream);
	bool is_short = b->transfers < m->options.transfers ||
			b->transfer_bytes + b->identity.packet_bytes <= m->options.transfer_bytes;
	if (is_short != m->is_short)
		bc_usb_feed_tell(&m->feed, is_short ? BC_NEWS_WARNING : BC_NEWS_NOTICE,
			is_short ? "%s: only %u transfers of %" PRIu32 " bytes: %s"
				 : "%s: %u transfers of %" PRIu32 " bytes again",
			m->source.name, b->transfers, b->transfer_bytes,
			rc != 0 && rc != -ENOMEM
				? strerror(-rc)
				: "no more usbfs memory; see usbfs_memory_mb in docs/usb.md");
	m->is_short = is_short;
}

void bc_usb_begin_streaming(struct bc_usb_machine *m)
{
	const struct bc_board_identity *id = &m->work.identity;

	m->board.plugs++;
	m->said[0] = '\0';
	m->board.last_error[0] = '\0';
	m->feed.has_streamed = true;
	/* The recording is of this board from now on. */
	memcpy(m->work.wish.serial, id->serial, sizeof(id->serial));
	bc_usb_set_state(m, BC_BOARD_STREAMING);
	if (m->board.plugs == 1)
		tell_streaming(m);
	else
		bc_usb_feed_tell(&m->feed, BC_NEWS_NOTICE, "%s: back, after %.3f s", m->source.name,
			(double)m->feed.broken.duration_ns * 1e-9);
	if (m->is_ending)
		bc_usb_post(m, BC_USB_ON_STOP);
}

/* Whatever happened, the board's transfers are on their way back, or it can't be waited for. */
static void unplugged(struct bc_usb_machine *m)
{
	bc_usb_note_unplug(m);
	bc_usb_stop_for(m, BC_USB_THEN_AWAY);
}

static void restart(struct bc_usb_machine *m)
{
	bc_usb_feed_tell(&m->feed, BC_NEWS_WARNING,
		"%s: resetting it, to begin anew, for %s; a gap stands at this place",
		m->source.name, m->feed.is_silent ? "it is silent" : "its faults don't end");
	bc_usb_feed_break(&m->feed, BC_GAP_TRANSFER, true);
	bc_usb_stop_for(m, BC_USB_THEN_RETRY);
}

bool bc_usb_is_over(
	struct bc_usb_machine *m, enum bc_usb_wait wait, uint64_t since_ns, uint64_t time_ns)
{
	bool is_over = uv_hrtime() - since_ns >= time_ns;
	bool was_over = m->over_ns[wait] == since_ns;

	m->over_ns[wait] = is_over ? since_ns : 0;
	return is_over && was_over;
}

static void watch(struct bc_usb_machine *m)
{
	struct bc_usb_feed *feed = &m->feed;

	look_at_transfers(m);
	if (feed->last_frame_ns != 0 &&
		bc_usb_is_over(m, BC_USB_WAIT_ANOTHER, feed->last_frame_ns, LAST_NS)) {
		bc_usb_feed_tell(&m->feed, BC_NEWS_NOTICE,
			"%s: it has sent its last frame: the stream is over", m->source.name);
		bc_usb_end_with(m, 0, "");
		return;
	}
	if (m->options.silence_ns == 0 ||
		!bc_usb_is_over(m, BC_USB_WAIT_DATA, feed->heard_ns, m->options.silence_ns))
		return;
	if (!feed->is_silent) {
		m->board.silences++;
		bc_usb_feed_tell(&m->feed, BC_NEWS_WARNING, "%s: no data for %.1f s; %s",
			m->source.name, (double)(uv_hrtime() - feed->heard_ns) * 1e-9,
			m->options.restarts_silent
				? "it is reset"
				: "waiting for more: is the machine on, and its bus wired?");
	}
	feed->is_silent = true;
	if (m->options.restarts_silent)
		bc_usb_post(m, BC_USB_ON_TROUBLE);
}

static void in_streaming(struct bc_usb_machine *m, enum bc_usb_event event)
{
	switch (event) {
	case BC_USB_ON_LOOK:
		look(m); /* a second board is to be named */
		break;
	case BC_USB_ON_WORK:
		name_others(m);
		if (m->wants_look)
			look(m);
		break;
	case BC_USB_ON_GONE:
		unplugged(m);
		break;
	case BC_USB_ON_STALL:
		bc_usb_feed_break(&m->feed, BC_GAP_TRANSFER, false);
		bc_usb_stop_for(m, BC_USB_THEN_RESUME);
		break;
	case BC_USB_ON_TROUBLE:
		restart(m);
		break;
	case BC_USB_ON_WATCH:
		watch(m);
		break;
	case BC_USB_ON_STOP:
		bc_usb_stop_for(m, BC_USB_THEN_END);
		break;
	default:
		break;
	}
}

static void in_back_off(struct bc_usb_machine *m, enum bc_usb_event event)
{
	switch (event) {
	case BC_USB_ON_TIMER:
		/* It has to be watched, or nobody would hear of a board. */
		bc_usb_set_state(
			m, bc_usb_loop_sync(m->usb) == 0 ? BC_BOARD_DETACHED : BC_BOARD_BACK_OFF);
		break;
	case BC_USB_ON_STOP:
		bc_usb_finish(m);
		break;
	default:
		break;
	}
}

bool bc_usb_is_steady(const struct bc_usb_machine *m)
{
	return m->streaming_ns != 0 && m->feed.heard_ns > m->streaming_ns &&
	       m->feed.heard_ns - m->streaming_ns >= STEADY_NS;
}

static void begin_back_off(struct bc_usb_machine *m)
{
	uint64_t delay = m->back_off_ns;

	if (bc_usb_is_steady(m))
		delay = m->options.back_off_ns;
	m->back_off_ns = delay * 2 < m->options.back_off_max_ns ? delay * 2
								: m->options.back_off_max_ns;
	m->streaming_ns = 0;
	uv_update_time(m->loop);
	uv_timer_start(&m->timer, bc_usb_on_timer, (delay + 999999) / 1000000, 0);
}

void bc_usb_set_state(struct bc_usb_machine *m, enum bc_board_state state)
{
	m->board.state = state;
	m->board.since_ns = uv_hrtime();
	switch (state) {
	case BC_BOARD_DETACHED:
		bc_usb_post(m, BC_USB_ON_LOOK);
		break;
	case BC_BOARD_OPENING:
		uv_timer_stop(&m->timer);
		bc_usb_loop_release(m->usb);
		bc_usb_work_start(&m->work, m->loop, BC_USB_OPEN);
		break;
	case BC_BOARD_STREAMING:
		m->is_started = true;
		m->streaming_ns = m->streaming_ns != 0 ? m->streaming_ns : m->board.since_ns;
		bc_usb_feed_resume(&m->feed);
		look_at_transfers(m);
		uv_timer_start(&m->watch, bc_usb_on_watch, LOOK_MS, LOOK_MS);
		if (m->wants_look)
			bc_usb_post(m, BC_USB_ON_LOOK);
		break;
	case BC_BOARD_STOPPING:
		bc_usb_begin_stopping(m);
		break;
	case BC_BOARD_BACK_OFF:
		uv_timer_stop(&m->watch);
		begin_back_off(m);
		break;
	}
}

static void handle(struct bc_usb_machine *m, enum bc_usb_event event)
{
	switch (m->board.state) {
	case BC_BOARD_DETACHED:
		in_detached(m, event);
		break;
	case BC_BOARD_OPENING:
		bc_usb_in_opening(m, event);
		break;
	case BC_BOARD_STREAMING:
		in_streaming(m, event);
		break;
	case BC_BOARD_STOPPING:
		bc_usb_in_stopping(m, event);
		break;
	case BC_BOARD_BACK_OFF:
		in_back_off(m, event);
		break;
	}
}

void bc_usb_turn(struct bc_usb_machine *m)
{
	if (m->is_turning)
		return;
	m->is_turning = true;
	while (!m->has_ended && (m->pending != 0 || bc_usb_is_back(m))) {
		if (m->pending == 0) {
			bc_usb_go_on(m);
			continue;
		}
		enum bc_usb_event event = (enum bc_usb_event)__builtin_ctz(m->pending);
		m->pending &= m->pending - 1;
		handle(m, event);
	}
	m->is_turning = false;
}
