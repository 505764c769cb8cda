#include "capture/usb_machine.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* How often a streaming board is looked after: silence, lost transfers, the end of a drain. */
#define LOOK_MS 50

/* A transfer that gives up its memory for a request takes no longer to come back. */
#define ASK_AGAIN_MS 10

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

/* Requests */

static struct bc_usb_target target_of(const struct bc_usb_machine *m)
{
	return (struct bc_usb_target){
		.handle = m->work.handle,
		.interface = m->work.identity.interface,
		.ftdi = m->options.ftdi,
	};
}

bool bc_usb_ask(struct bc_usb_machine *m, enum bc_usb_step step)
{
	struct bc_usb_target target = target_of(m);

	m->answer = bc_usb_request_send(m->request, &target, step);
	if (m->answer == -ENOMEM && bc_usb_stream_spare(m->stream))
		m->answer = -EAGAIN;
	return m->answer == 0;
}

/* What it counted before it was started is not this recording's. */
static void take_counters(struct bc_usb_machine *m, const uint8_t *data, unsigned count)
{
	struct bc_board *b = &m->board;

	if (b->state == BC_BOARD_OPENING) {
		m->has_counters_first = bc_usb_read_counters(&m->counters_first, data, count);
		return;
	}
	b->has_counters = bc_usb_read_counters(&b->counters, data, count);
	if (b->has_counters && b->counters.lost > m->counters_first.lost)
		bc_usb_feed_lost(&m->feed, b->counters.lost - m->counters_first.lost);
}

void bc_usb_on_answer(
	void *context, enum bc_usb_step step, int status, const uint8_t *data, unsigned count)
{
	struct bc_usb_machine *m = context;
	struct bc_board *b = &m->board;

	m->answer = status;
	bc_usb_post(m, BC_USB_ON_ANSWER);
	if (status == -ENODEV)
		bc_usb_post(m, BC_USB_ON_GONE);
	if (status != 0) {
		if (b->state == BC_BOARD_OPENING && status != -EPIPE && status != -ECANCELED &&
			status != -ENODEV)
			bc_usb_feed_tell(&m->feed, BC_NEWS_WARNING,
				"%s: no answer to %s: %s; going on without it", m->source.name,
				bc_usb_step_name(step), strerror(-status));
		return;
	}
	if (step == BC_USB_GET_INFO && !bc_usb_read_info(b, data, count))
		bc_usb_feed_tell(&m->feed, BC_NEWS_WARNING,
			"%s: what it answers to GET_INFO is not that of protocol version 1, and "
			"passed over",
			m->source.name);
	if (step == BC_USB_GET_COUNTERS)
		take_counters(m, data, count);
}

/* What an opened board is asked and told, in this order; the transfers are submitted before the
 * step at which it begins to send. */
struct opening {
	const enum bc_usb_step *steps;
	unsigned count;
	unsigned stream_at;
};

static struct opening opening_of(enum bc_usb_link link)
{
	static const enum bc_usb_step plain[] = {
		BC_USB_GET_INFO, BC_USB_GET_COUNTERS, BC_USB_START};
	static const enum bc_usb_step ftdi[] = {BC_USB_FTDI_RESET, BC_USB_FTDI_MODE_RESET,
		BC_USB_FTDI_LATENCY, BC_USB_FTDI_PURGE, BC_USB_FTDI_MODE};

	if (link == BC_USB_FTDI)
		return (struct opening){ftdi, sizeof(ftdi) / sizeof(ftdi[0]), 4};
	return (struct opening){plain, sizeof(plain) / sizeof(plain[0]), 2};
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
	bc_usb_feed_tell(&m->feed, BC_NEWS_WARNING, "%s", what);
}

static const char *advice(int status)
{
	switch (status) {
	case -EACCES:
		return "; is the udev rule installed, and this user in group buscap?";
	case -EBUSY:
		return "; another program has it";
	default:
		return "";
	}
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

static void begin_streaming(struct bc_usb_machine *m);

/* The board's own word, then the configuration's; raw6 has the host's clock in any case. */
static void set_clock(struct bc_usb_machine *m)
{
	uint64_t before = m->source.clock_hz;

	m->source.clock_hz = m->options.clock_hz;
	if (m->board.has_info && m->board.clock_hz != 0)
		m->source.clock_hz = m->board.clock_hz;
	if (m->source.clock_hz == 0 && m->options.protocol == BC_FORMAT_RAW6)
		m->source.clock_hz = BC_USB_HOST_CLOCK_HZ;
	if (!m->feed.has_streamed || before == m->source.clock_hz)
		return;
	if (before == 0)
		bc_usb_feed_tell(&m->feed, BC_NEWS_WARNING,
			"%s: it says now that its clock is %" PRIu64
			" Hz; the recording was begun without one, and stays so",
			m->source.name, m->source.clock_hz);
	else
		bc_usb_feed_tell(&m->feed, BC_NEWS_WARNING,
			"%s: its clock is %" PRIu64 " Hz now, the recording's %" PRIu64
			" Hz: times behind this place are by the recording's",
			m->source.name, m->source.clock_hz, before);
	m->source.clock_hz = before;
}

static void fail_opening(struct bc_usb_machine *m, const char *what, int rc)
{
	bc_usb_tell_failure(m, "%s: can't submit %s: %s%s; trying again", m->source.name, what,
		strerror(-rc), rc == -ENOMEM ? "; see usbfs_memory_mb in docs/usb.md" : "");
	/* A reset makes no memory. */
	bc_usb_stop_for(m, rc == -ENODEV || rc == -ENOMEM ? BC_USB_THEN_AWAY : BC_USB_THEN_RETRY);
}

/* Goes on with what an opened board is asked and told. */
static void next_step(struct bc_usb_machine *m)
{
	struct opening opening = opening_of(m->options.link);
	const struct bc_board_identity *id = &m->work.identity;

	if (m->step == opening.count) {
		begin_streaming(m);
		return;
	}
	if (m->step == opening.stream_at && bc_usb_stream_is_idle(m->stream)) {
		set_clock(m);
		int rc = bc_usb_stream_start(
			m->stream, m->work.handle, id->endpoint, id->packet_bytes);
		if (rc != 0) {
			fail_opening(m, "a transfer", rc);
			return;
		}
		bc_usb_feed_begin(&m->feed);
	}
	if (bc_usb_ask(m, opening.steps[m->step]))
		m->step++;
	else if (m->answer == -EAGAIN)
		uv_timer_start(&m->timer, bc_usb_on_timer, ASK_AGAIN_MS, 0);
	else
		fail_opening(m, bc_usb_step_name(opening.steps[m->step]), m->answer);
}

static void name_board(struct bc_usb_machine *m)
{
	const struct bc_board_identity *id = &m->work.identity;

	snprintf(m->source.name, sizeof(m->source.name), "board %04x:%04x%s%s at %s", id->vid,
		id->pid, id->serial[0] != '\0' ? " " : "", id->serial, id->port);
}

static void after_open(struct bc_usb_machine *m)
{
	struct bc_board *b = &m->board;
	int status = m->work.status;
	const char *what = m->work.what;

	if (status == 0) {
		what = "watch it";
		status = bc_usb_loop_sync(m->usb);
	}
	name_board(m);
	if (status != 0) {
		bc_usb_tell_failure(m, "%s: can't %s: %s%s; trying again", m->source.name, what,
			strerror(-status), advice(status));
		bc_usb_stop_for(m, status == -ENODEV || status == -ENOENT ? BC_USB_THEN_AWAY
									  : BC_USB_THEN_RETRY);
		return;
	}
	b->is_present = true;
	b->identity = m->work.identity;
	b->has_info = false;
	b->has_counters = false;
	m->has_counters_first = false;
	m->step = 0;
	next_step(m);
}

static bool is_told_to_send(const struct bc_usb_machine *m)
{
	return bc_usb_request_is_flying(m->request) &&
	       m->step > opening_of(m->options.link).stream_at;
}

static void in_opening(struct bc_usb_machine *m, enum bc_usb_event event)
{
	switch (event) {
	case BC_USB_ON_LOOK:
		m->wants_look = true;
		break;
	case BC_USB_ON_WORK:
		if (m->is_ending)
			bc_usb_stop_for(m, BC_USB_THEN_END);
		else
			after_open(m);
		break;
	case BC_USB_ON_ANSWER:
		next_step(m);
		break;
	case BC_USB_ON_TIMER:
		if (!m->work.is_busy && !bc_usb_request_is_flying(m->request))
			next_step(m);
		break;
	case BC_USB_ON_GONE:
		bc_usb_stop_for(m, BC_USB_THEN_AWAY);
		break;
	case BC_USB_ON_STALL:
	case BC_USB_ON_TROUBLE:
		bc_usb_stop_for(m, BC_USB_THEN_RETRY);
		break;
	case BC_USB_ON_STOP:
		/* Else when it is open, or, told to send already, when it does: then it can be told
		 * to stop. */
		if (!m->work.is_busy && (!is_told_to_send(m) || m->is_closed))
			bc_usb_stop_for(m, BC_USB_THEN_END);
		break;
	default:
		break;
	}
}

static void tell_streaming(struct bc_usb_machine *m)
{
	const struct bc_board *b = &m->board;
	char clock[48] = "its clock is not known";

	if (m->source.clock_hz != 0)
		snprintf(clock, sizeof(clock), "%" PRIu64 " Hz", m->source.clock_hz);
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

static void begin_streaming(struct bc_usb_machine *m)
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
	bc_usb_feed_tell(
		&m->feed, BC_NEWS_WARNING, "%s: resetting it, to begin anew", m->source.name);
	bc_usb_feed_break(&m->feed, BC_GAP_TRANSFER, true);
	bc_usb_stop_for(m, BC_USB_THEN_RETRY);
}

static void watch(struct bc_usb_machine *m)
{
	uint64_t now = uv_hrtime();

	look_at_transfers(m);
	if (m->feed.last_frame_ns != 0 && now - m->feed.last_frame_ns >= LAST_NS) {
		bc_usb_feed_tell(
			&m->feed, BC_NEWS_NOTICE, "%s: it has sent its last frame", m->source.name);
		bc_usb_end_with(m, 0, "");
		return;
	}
	if (m->options.silence_ns == 0 || now - m->feed.heard_ns < m->options.silence_ns)
		return;
	if (!m->feed.is_silent) {
		m->board.silences++;
		bc_usb_feed_tell(&m->feed, BC_NEWS_WARNING, "%s: no data for %.1f s",
			m->source.name, (double)(now - m->feed.heard_ns) * 1e-9);
	}
	m->feed.is_silent = true;
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
		in_opening(m, event);
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
