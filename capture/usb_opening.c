#include "capture/usb_machine.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A transfer that gives up its memory for a request takes no longer to come back. */
#define ASK_AGAIN_MS 10

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
		/* A board may do without requests; FTDI's chips don't. */
		if (b->state == BC_BOARD_OPENING && status == -EPIPE && step == BC_USB_FTDI_RESET)
			bc_usb_feed_tell(&m->feed, BC_NEWS_WARNING,
				"%s: it doesn't know FTDI's requests: is link = ftdi right for it?",
				m->source.name);
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

/* Opening */

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
		bc_usb_begin_streaming(m);
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

/* `watched`: what came of taking up its descriptor. */
static void after_open(struct bc_usb_machine *m, int watched)
{
	struct bc_board *b = &m->board;
	int status = m->work.status;
	const char *what = m->work.what;

	if (status == 0) {
		what = "watch it";
		status = watched;
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

void bc_usb_in_opening(struct bc_usb_machine *m, enum bc_usb_event event)
{
	switch (event) {
	case BC_USB_ON_LOOK:
		m->wants_look = true;
		break;
	case BC_USB_ON_WORK: {
		int watched = bc_usb_loop_sync(m->usb);
		if (m->is_ending)
			bc_usb_stop_for(m, BC_USB_THEN_END);
		else
			after_open(m, watched);
		break;
	}
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
