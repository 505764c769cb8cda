#include "capture/usb/usb_source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/usb/usb_framer.h"
#include "capture/usb/usb_jobs.h"
#include "capture/usb/usb_loop.h"

/* How a board is found, opened, started, watched, stopped and found again: the state machine of a
 * USB source, whose public side is capture/usb/usb_source.h.
 *
 * Whatever happens (a device comes, a job or a request is done, a transfer fails, a timer is due)
 * is noted with usb_post(), also from within libusb. usb_turn() deals with what was noted,
 * outside of libusb and of the sink. The state is board.state; usb_set_state() alone changes it,
 * and does what a state begins with.
 *
 *     detached ──found──> opening ──started──> streaming ──fault, unplug, stop──> stopping
 *        ^                   │                     ^                              │ │ │
 *        │                   └──────failed─────────┼──────────> stopping          │ │ │
 *        ├──after a while── back-off <─────────────┼──────closed, try again───────┘ │ │
 *        └─────────────────────────────────────────┼──────closed, it is gone────────┘ │
 *                                                  └──────its stall is cleared────────┘
 */

/* How often a streaming board is looked after: silence, lost transfers, the end of a drain. */
#define LOOK_MS 50

/* Whoever sent a last frame, and more within this time, has gone on. */
#define LAST_NS UINT64_C(1000000000)

/* A board that streamed for so long doesn't flap. */
#define STEADY_NS UINT64_C(5000000000)

/* So many faults without data in between, and the board is reset. */
#define FAULTS_MAX 8u

/* A transfer that gives up its memory for a request takes no longer to come back. */
#define ASK_AGAIN_MS 10

/* A board that is told to stop may take so long in all, and has ended when it sent nothing for
 * DRAIN_NS. */
#define STOP_MS  1000
#define COUNT_MS 300 /* and for its counters after that */
#define DRAIN_NS UINT64_C(150000000)

/* A loop that was held up finds the time over first, and what has come meanwhile then. */
#define LATE_MS 50

enum usb_event {
	USB_ON_LOOK, /* a device came or left, or it is time to look for one */
	USB_ON_WORK, /* a job is done */
	USB_ON_GONE, /* the board was unplugged */
	USB_ON_STALL,
	USB_ON_TROUBLE, /* transfers fail, and go on failing; or the board is silent */
	USB_ON_ANSWER,  /* a request is answered; what is wrong with the board comes before */
	USB_ON_TIMER,   /* of the state: a back-off is over, a stop takes too long */
	USB_ON_WATCH,   /* time to look after a streaming board */
	USB_ON_STOP,    /* the owner wants the end */
};

/* What follows when the transfers have come back. */
enum usb_then {
	USB_THEN_END,    /* the board is closed for good */
	USB_THEN_AWAY,   /* closed; it is gone, or left alone for a while */
	USB_THEN_RETRY,  /* closed, after a reset, and opened anew */
	USB_THEN_RESUME, /* its halt is cleared, and the stream goes on */
};

/* The stations of a stop, in their order; those that a board can't have are left out. */
enum usb_stopping {
	USB_ASKING,     /* told to stop */
	USB_DRAINING,   /* what it still holds is coming */
	USB_COUNTING,   /* asked for its counters */
	USB_CANCELLING, /* the transfers are coming back */
	USB_CLEARING,   /* its halt is being cleared */
	USB_CLOSING,    /* it is being closed */
};

/* For what doesn't come any more: is_over(). */
enum usb_wait {
	USB_WAIT_DATA,    /* for a silent board */
	USB_WAIT_ANOTHER, /* for a frame behind the last */
	USB_WAIT_REST,    /* for what a board still holds that has stopped */
	USB_WAITS,
};

struct usb_source {
	struct bc_source source;
	struct bc_usb_options options;
	struct bc_board board;
	uv_loop_t *loop;
	struct bc_usb_loop *usb;
	struct bc_usb_stream *stream;
	struct bc_usb_request *request;
	struct bc_usb_jobs work;
	struct bc_usb_framer feed;
	uv_timer_t timer; /* of the state: USB_ON_TIMER */
	uv_timer_t watch; /* USB_ON_WATCH */
	uv_timer_t wait;  /* for the first board */
	unsigned open_handles;

	unsigned pending; /* events, a bit each */
	bool is_turning;
	bool has_started;
	bool is_ending; /* the owner wants the end, or the stream has come to it */
	bool has_ended;
	bool is_closed;  /* by the owner */
	bool has_closed; /* and what it held is */
	int end_status;
	char end_what[512];

	bool wants_look; /* while a job runs */
	unsigned step;   /* of opening */
	int answer;      /* of the request last sent */
	enum usb_then then;
	enum usb_stopping stopping;
	uint64_t back_off_ns;

	bool is_started;             /* the board was told to, and not closed since */
	bool is_late;                /* the time for a stop is over, but for a last look */
	uint64_t streaming_ns;       /* when the board began to stream; 0: it hasn't */
	bool is_short;               /* fewer transfers than configured, and that was said */
	uint64_t over_ns[USB_WAITS]; /* since when, where is_over() found it so */
	bool has_counters_first;
	struct bc_board_counters counters_first; /* as the board was started */

	char said[256];   /* the failure that was told last: not again and again */
	char others[256]; /* the boards that were named last */
};

static void usb_set_state(struct usb_source *m, enum bc_board_state state);
static void on_timer(uv_timer_t *timer);
static void on_watch(uv_timer_t *timer);

static void usb_post(struct usb_source *m, enum usb_event event)
{
	m->pending |= 1u << event;
}

/* Transfers */

static void on_data(void *context, uint8_t *bytes, size_t count)
{
	struct usb_source *m = context;

	bc_usb_framer_bytes(&m->feed, bytes, count, m->work.identity.packet_bytes);
}

static void on_fault(void *context, enum bc_usb_fault fault)
{
	struct usb_source *m = context;

	bc_usb_framer_fault(&m->feed, fault);
	if (fault == BC_USB_TIMEOUT)
		return;
	if (fault == BC_USB_GONE)
		usb_post(m, USB_ON_GONE);
	else if (m->feed.faults >= FAULTS_MAX)
		usb_post(m, USB_ON_TROUBLE);
	else if (fault == BC_USB_STALL)
		usb_post(m, USB_ON_STALL);
	if (fault == BC_USB_GONE || fault == BC_USB_STALL)
		bc_usb_stream_cancel(m->stream);
}

/* States. Each function deals with the events of one; usb_set_state() does what a state begins
 * with. */

/* Ends the stream, for what `then` says. */
static void usb_stop_for(struct usb_source *m, enum usb_then then)
{
	m->then = then;
	usb_set_state(m, BC_BOARD_STOPPING);
}

/* The last word to the sink: of the stream nothing more will come. */
static void tell_end(struct usb_source *m)
{
	const struct bc_source_sink *sink = &m->source.sink;

	if (m->feed.is_cut)
		return;
	uv_timer_stop(&m->timer);
	uv_timer_stop(&m->watch);
	uv_timer_stop(&m->wait);
	bc_usb_framer_resume(&m->feed);
	m->feed.is_cut = true;
	sink->end(sink->context, m->end_status, m->end_what);
}

/* It has ended, and holds no device. */
static void usb_finish(struct usb_source *m)
{
	tell_end(m);
	uv_timer_stop(&m->timer);
	uv_timer_stop(&m->watch);
	uv_timer_stop(&m->wait);
	bc_usb_jobs_forget(&m->work);
	m->has_ended = true;
	m->board.state = BC_BOARD_DETACHED;
}

/* The source shall end, with that status and phrase. */
static void usb_end_with(struct usb_source *m, int status, const char *what)
{
	if (m->is_ending)
		return;
	m->is_ending = true;
	m->end_status = status;
	snprintf(m->end_what, sizeof(m->end_what), "%s", what);
	usb_post(m, USB_ON_STOP);
}

/* Tells a failure, once, however often it is met while the board is tried again. */
static void tell_failure(struct usb_source *m, const char *format, ...)
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
	bc_usb_framer_log_text(&m->feed, BC_NOTICE_WARNING, format, what);
}

/* The boards that match as well are named, when they are others than before. */
static void name_others(struct usb_source *m)
{
	if (strcmp(m->others, m->work.others) == 0)
		return;
	memcpy(m->others, m->work.others, sizeof(m->others));
	if (m->others[0] == '\0')
		return;
	if (m->options.wish.serial[0] != '\0')
		bc_usb_framer_log(&m->feed, BC_NOTICE_INFO,
			"other boards are on the USB, and left alone: %s", m->others);
	else if (m->board.state == BC_BOARD_DETACHED && m->feed.has_streamed)
		bc_usb_framer_log(&m->feed, BC_NOTICE_WARNING,
			"other boards are on the USB, and ignored: %s; this recording is of serial "
			"number %s and waits for it",
			m->others, m->work.wish.serial);
	else
		bc_usb_framer_log(&m->feed, BC_NOTICE_WARNING,
			"other boards are on the USB, and ignored: %s; serial= chooses a board",
			m->others);
}

static void look(struct usb_source *m)
{
	if (m->work.is_busy) {
		m->wants_look = true;
		return;
	}
	m->wants_look = false;
	bc_usb_jobs_start(&m->work, m->loop, BC_USB_FIND);
}

static void tell_missing(struct usb_source *m)
{
	char wish[BC_USB_WISH_TEXT];

	bc_usb_wish_write(wish, &m->work.wish);
	m->board.last_error[0] = '\0';
	if (m->work.status != 0)
		tell_failure(
			m, "the devices on the USB can't be listed: %s", strerror(-m->work.status));
	else if (m->work.why_not[0] != '\0')
		tell_failure(m, "no board %s on the USB: %s", wish, m->work.why_not);
	else if (strcmp(m->said, "no board") != 0 && !m->feed.has_streamed)
		bc_usb_framer_log(
			&m->feed, BC_NOTICE_NOTICE, "no board %s on the USB: waiting for it", wish);
	if (m->board.last_error[0] == '\0')
		snprintf(m->said, sizeof(m->said), "no board");
}

/* The board is gone: counts and tells it, and begins a break. */
static void note_unplug(struct usb_source *m)
{
	m->board.unplugs++;
	bc_usb_framer_log(&m->feed, BC_NOTICE_WARNING,
		"%s: unplugged; the recording goes on when it comes back", m->source.name);
	bc_usb_framer_break(&m->feed, BC_GAP_UNPLUGGED, true);
}

/* Whether it failed first, and if it is gone now, that is what was wrong. */
static bool was_in_trouble(const struct usb_source *m)
{
	return m->feed.has_break && m->feed.broken.cause == BC_GAP_TRANSFER && !m->is_ending;
}

static void in_detached(struct usb_source *m, enum usb_event event)
{
	switch (event) {
	case USB_ON_LOOK:
	case USB_ON_TIMER:
		look(m);
		break;
	case USB_ON_STOP:
		if (!m->work.is_busy)
			usb_finish(m);
		break;
	case USB_ON_WORK:
		if (m->is_ending) {
			usb_finish(m);
			break;
		}
		name_others(m);
		if (m->work.status == 0 && m->work.found != NULL) {
			usb_set_state(m, BC_BOARD_OPENING);
			break;
		}
		if (was_in_trouble(m))
			note_unplug(m);
		tell_missing(m);
		if (m->wants_look)
			look(m);
		else if (m->work.is_unread)
			uv_timer_start(&m->timer, on_timer,
				(m->options.back_off_max_ns + 999999) / 1000000, 0);
		break;
	default:
		break;
	}
}

static void tell_streaming(struct usb_source *m)
{
	const struct bc_board *b = &m->board;
	char clock[64] = "its clock is not known";

	if (m->source.clock_hz != 0)
		snprintf(clock, sizeof(clock), "%" PRIu64 " Hz%s", m->source.clock_hz,
			m->options.protocol == BC_FORMAT_RAW6 ? " by the host's clock" : "");
	bc_usb_framer_log(&m->feed, BC_NOTICE_NOTICE,
		"%s: streaming; %s speed, %s%s%s, %u transfers of %" PRIu32 " bytes",
		m->source.name, b->identity.speed, b->has_info ? b->firmware : "",
		b->has_info ? ", " : "", clock, b->transfers, b->transfer_bytes);
}

/* Gets back into flight what isn't. Fewer transfers than wished for, or shorter ones: told, and
 * told when they are back. */
static void look_at_transfers(struct usb_source *m)
{
	struct bc_board *b = &m->board;
	int rc = bc_usb_stream_fill(m->stream);

	if (rc == -ENODEV)
		usb_post(m, USB_ON_GONE);
	else if (rc != 0 && rc != -ENOMEM && bc_usb_stream_is_idle(m->stream))
		on_fault(m, BC_USB_REFUSED);
	b->transfers = bc_usb_stream_flying(m->stream);
	b->transfer_bytes = bc_usb_stream_bytes(m->stream);
	bool is_short = b->transfers < m->options.transfers ||
			b->transfer_bytes + b->identity.packet_bytes <= m->options.transfer_bytes;
	if (is_short != m->is_short)
		bc_usb_framer_log(&m->feed, is_short ? BC_NOTICE_WARNING : BC_NOTICE_NOTICE,
			is_short ? "%s: only %u transfers of %" PRIu32 " bytes: %s"
				 : "%s: %u transfers of %" PRIu32 " bytes again",
			m->source.name, b->transfers, b->transfer_bytes,
			rc != 0 && rc != -ENOMEM
				? strerror(-rc)
				: "no more usbfs memory; see usbfs_memory_mb in docs/usb.md");
	m->is_short = is_short;
}

static void start_streaming(struct usb_source *m)
{
	const struct bc_board_identity *id = &m->work.identity;

	m->board.plugs++;
	m->said[0] = '\0';
	m->board.last_error[0] = '\0';
	m->feed.has_streamed = true;
	/* The recording is of this board from now on. */
	memcpy(m->work.wish.serial, id->serial, sizeof(id->serial));
	usb_set_state(m, BC_BOARD_STREAMING);
	if (m->board.plugs == 1)
		tell_streaming(m);
	else
		bc_usb_framer_log(&m->feed, BC_NOTICE_NOTICE, "%s: back, after %.3f s",
			m->source.name, (double)m->feed.broken.duration_ns * 1e-9);
	if (m->is_ending)
		usb_post(m, USB_ON_STOP);
}

static void restart(struct usb_source *m)
{
	bc_usb_framer_log(&m->feed, BC_NOTICE_WARNING,
		"%s: resetting it, to begin anew, for %s; a gap stands at this place",
		m->source.name, m->feed.is_silent ? "it is silent" : "its faults don't end");
	bc_usb_framer_break(&m->feed, BC_GAP_TRANSFER, true);
	usb_stop_for(m, USB_THEN_RETRY);
}

/* Whether nothing has come for `time_ns` since that moment. Only the second look in a row that
 * finds it so says so: a loop that was held up hears first what has come meanwhile. */
static bool is_over(struct usb_source *m, enum usb_wait wait, uint64_t since_ns, uint64_t time_ns)
{
	bool is_over = uv_hrtime() - since_ns >= time_ns;
	bool was_over = m->over_ns[wait] == since_ns;

	m->over_ns[wait] = is_over ? since_ns : 0;
	return is_over && was_over;
}

static void watch_streaming(struct usb_source *m)
{
	struct bc_usb_framer *feed = &m->feed;

	look_at_transfers(m);
	if (feed->last_frame_ns != 0 &&
		is_over(m, USB_WAIT_ANOTHER, feed->last_frame_ns, LAST_NS)) {
		bc_usb_framer_log(&m->feed, BC_NOTICE_NOTICE,
			"%s: it has sent its last frame: the stream is over", m->source.name);
		usb_end_with(m, 0, "");
		return;
	}
	if (m->options.silence_ns == 0 ||
		!is_over(m, USB_WAIT_DATA, feed->heard_ns, m->options.silence_ns))
		return;
	if (!feed->is_silent) {
		m->board.silences++;
		bc_usb_framer_log(&m->feed, BC_NOTICE_WARNING, "%s: no data for %.1f s; %s",
			m->source.name, (double)(uv_hrtime() - feed->heard_ns) * 1e-9,
			m->options.restarts_silent
				? "it is reset"
				: "waiting for more: is the machine on, and its bus wired?");
	}
	feed->is_silent = true;
	if (m->options.restarts_silent)
		usb_post(m, USB_ON_TROUBLE);
}

static void in_streaming(struct usb_source *m, enum usb_event event)
{
	switch (event) {
	case USB_ON_LOOK:
		look(m); /* a second board is to be named */
		break;
	case USB_ON_WORK:
		name_others(m);
		if (m->wants_look)
			look(m);
		break;
	case USB_ON_GONE:
		note_unplug(m);
		usb_stop_for(m, USB_THEN_AWAY);
		break;
	case USB_ON_STALL:
		bc_usb_framer_break(&m->feed, BC_GAP_TRANSFER, false);
		usb_stop_for(m, USB_THEN_RESUME);
		break;
	case USB_ON_TROUBLE:
		restart(m);
		break;
	case USB_ON_WATCH:
		watch_streaming(m);
		break;
	case USB_ON_STOP:
		usb_stop_for(m, USB_THEN_END);
		break;
	default:
		break;
	}
}

static void in_back_off(struct usb_source *m, enum usb_event event)
{
	switch (event) {
	case USB_ON_TIMER:
		/* It has to be watched, or nobody would hear of a board. */
		usb_set_state(
			m, bc_usb_loop_sync(m->usb) == 0 ? BC_BOARD_DETACHED : BC_BOARD_BACK_OFF);
		break;
	case USB_ON_STOP:
		usb_finish(m);
		break;
	default:
		break;
	}
}

/* Whether the board has streamed for long enough not to flap. */
static bool is_steady(const struct usb_source *m)
{
	return m->streaming_ns != 0 && m->feed.heard_ns > m->streaming_ns &&
	       m->feed.heard_ns - m->streaming_ns >= STEADY_NS;
}

static void begin_back_off(struct usb_source *m)
{
	uint64_t delay = m->back_off_ns;

	if (is_steady(m))
		delay = m->options.back_off_ns;
	m->back_off_ns = delay * 2 < m->options.back_off_max_ns ? delay * 2
								: m->options.back_off_max_ns;
	m->streaming_ns = 0;
	uv_update_time(m->loop);
	uv_timer_start(&m->timer, on_timer, (delay + 999999) / 1000000, 0);
}

/* Opening */

/* Requests */

/* Sends a request. Returns whether its answer will follow; if not, `answer` says why. With -EAGAIN
 * there was no memory for it, and a transfer gives up its own: it is to be asked again soon. */
static bool usb_ask(struct usb_source *m, enum bc_usb_step step)
{
	struct bc_usb_target target = {
		.handle = m->work.handle,
		.interface = m->work.identity.interface,
		.ftdi = m->options.ftdi,
	};

	m->answer = bc_usb_request_send(m->request, &target, step);
	if (m->answer == -ENOMEM && bc_usb_stream_spare(m->stream))
		m->answer = -EAGAIN;
	return m->answer == 0;
}

/* What it counted before it was started is not this recording's. */
static void take_counters(struct usb_source *m, const uint8_t *data, unsigned count)
{
	struct bc_board *b = &m->board;

	if (b->state == BC_BOARD_OPENING) {
		m->has_counters_first = bc_usb_read_counters(&m->counters_first, data, count);
		return;
	}
	b->has_counters = bc_usb_read_counters(&b->counters, data, count);
	if (b->has_counters && b->counters.lost > m->counters_first.lost)
		bc_usb_framer_lost(&m->feed, b->counters.lost - m->counters_first.lost);
}

static void on_answer(
	void *context, enum bc_usb_step step, int status, const uint8_t *data, unsigned count)
{
	struct usb_source *m = context;
	struct bc_board *b = &m->board;

	m->answer = status;
	usb_post(m, USB_ON_ANSWER);
	if (status == -ENODEV)
		usb_post(m, USB_ON_GONE);
	if (status != 0) {
		if (b->state == BC_BOARD_OPENING && status != -EPIPE && status != -ECANCELED &&
			status != -ENODEV)
			bc_usb_framer_log(&m->feed, BC_NOTICE_WARNING,
				"%s: no answer to %s: %s; going on without it", m->source.name,
				bc_usb_step_name(step), strerror(-status));
		/* A board may do without requests; FTDI's chips don't. */
		if (b->state == BC_BOARD_OPENING && status == -EPIPE && step == BC_USB_FTDI_RESET)
			bc_usb_framer_log(&m->feed, BC_NOTICE_WARNING,
				"%s: it doesn't know FTDI's requests: is link = ftdi right for it?",
				m->source.name);
		return;
	}
	if (step == BC_USB_GET_INFO && !bc_usb_read_info(b, data, count))
		bc_usb_framer_log(&m->feed, BC_NOTICE_WARNING,
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
static void set_clock(struct usb_source *m)
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
		bc_usb_framer_log(&m->feed, BC_NOTICE_WARNING,
			"%s: it says now that its clock is %" PRIu64
			" Hz; the recording was begun without one, and stays so",
			m->source.name, m->source.clock_hz);
	else
		bc_usb_framer_log(&m->feed, BC_NOTICE_WARNING,
			"%s: its clock is %" PRIu64 " Hz now, the recording's %" PRIu64
			" Hz: times behind this place are by the recording's",
			m->source.name, m->source.clock_hz, before);
	m->source.clock_hz = before;
}

static void fail_opening(struct usb_source *m, const char *what, int rc)
{
	tell_failure(m, "%s: can't submit %s: %s%s; trying again", m->source.name, what,
		strerror(-rc), rc == -ENOMEM ? "; see usbfs_memory_mb in docs/usb.md" : "");
	/* A reset makes no memory. */
	usb_stop_for(m, rc == -ENODEV || rc == -ENOMEM ? USB_THEN_AWAY : USB_THEN_RETRY);
}

/* Goes on with what an opened board is asked and told. */
static void next_step(struct usb_source *m)
{
	struct opening opening = opening_of(m->options.link);
	const struct bc_board_identity *id = &m->work.identity;

	if (m->step == opening.count) {
		start_streaming(m);
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
		bc_usb_framer_start(&m->feed);
	}
	if (usb_ask(m, opening.steps[m->step]))
		m->step++;
	else if (m->answer == -EAGAIN)
		uv_timer_start(&m->timer, on_timer, ASK_AGAIN_MS, 0);
	else
		fail_opening(m, bc_usb_step_name(opening.steps[m->step]), m->answer);
}

static void name_board(struct usb_source *m)
{
	const struct bc_board_identity *id = &m->work.identity;

	snprintf(m->source.name, sizeof(m->source.name), "board %04x:%04x%s%s at %s", id->vid,
		id->pid, id->serial[0] != '\0' ? " " : "", id->serial, id->port);
}

/* `watched`: what came of taking up its descriptor. */
static void after_open(struct usb_source *m, int watched)
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
		tell_failure(m, "%s: can't %s: %s%s; trying again", m->source.name, what,
			strerror(-status), advice(status));
		usb_stop_for(
			m, status == -ENODEV || status == -ENOENT ? USB_THEN_AWAY : USB_THEN_RETRY);
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

static bool is_reported_to_send(const struct usb_source *m)
{
	return bc_usb_request_is_flying(m->request) &&
	       m->step > opening_of(m->options.link).stream_at;
}

static void in_opening(struct usb_source *m, enum usb_event event)
{
	switch (event) {
	case USB_ON_LOOK:
		m->wants_look = true;
		break;
	case USB_ON_WORK: {
		int watched = bc_usb_loop_sync(m->usb);
		if (m->is_ending)
			usb_stop_for(m, USB_THEN_END);
		else
			after_open(m, watched);
		break;
	}
	case USB_ON_ANSWER:
		next_step(m);
		break;
	case USB_ON_TIMER:
		if (!m->work.is_busy && !bc_usb_request_is_flying(m->request))
			next_step(m);
		break;
	case USB_ON_GONE:
		usb_stop_for(m, USB_THEN_AWAY);
		break;
	case USB_ON_STALL:
	case USB_ON_TROUBLE:
		usb_stop_for(m, USB_THEN_RETRY);
		break;
	case USB_ON_STOP:
		/* Else when it is open, or, told to send already, when it does: then it can be told
		 * to stop. */
		if (!m->work.is_busy && (!is_reported_to_send(m) || m->is_closed))
			usb_stop_for(m, USB_THEN_END);
		break;
	default:
		break;
	}
}

/* Stopping */

static void cancel(struct usb_source *m)
{
	m->stopping = USB_CANCELLING;
	bc_usb_stream_cancel(m->stream);
	bc_usb_request_cancel(m->request);
}

/* It was unplugged while it was told to stop: what it still held went with it. */
static void cancel_gone(struct usb_source *m)
{
	if (m->stopping != USB_COUNTING && m->feed.last_frame_ns == 0) {
		m->board.unplugs++;
		bc_usb_framer_break(&m->feed, BC_GAP_UNPLUGGED, true);
		bc_usb_framer_log(&m->feed, BC_NOTICE_WARNING,
			"%s: unplugged before it had stopped: what it still held is missing, and a "
			"gap at the end says so",
			m->source.name);
	}
	cancel(m);
}

/* Asked again at the next look when there was no memory for it. */
static void ask_or_cancel(struct usb_source *m, enum bc_usb_step step)
{
	if (usb_ask(m, step) || m->answer == -EAGAIN)
		return;
	if (m->answer == -ENODEV)
		cancel_gone(m);
	else
		cancel(m);
}

static void ask_to_stop(struct usb_source *m)
{
	ask_or_cancel(m, m->options.link == BC_USB_FTDI ? BC_USB_FTDI_MODE_RESET : BC_USB_STOP);
}

static void begin_time(struct usb_source *m, uint64_t ms)
{
	m->is_late = false;
	uv_timer_start(&m->timer, on_timer, ms, 0);
}

static void start_stopping(struct usb_source *m)
{
	m->stopping = USB_ASKING;
	/* A board is told to stop when it was told to start, and the owner wants what it still
	 * holds. */
	if (m->then == USB_THEN_END && !m->is_closed && m->is_started &&
		!bc_usb_request_is_flying(m->request)) {
		uv_update_time(m->loop);
		begin_time(m, STOP_MS);
		ask_to_stop(m);
	} else {
		cancel(m);
	}
}

static void count_or_cancel(struct usb_source *m)
{
	m->stopping = USB_COUNTING;
	if (m->has_counters_first)
		ask_or_cancel(m, BC_USB_GET_COUNTERS);
	else
		cancel(m);
}

/* A board that sends frames ends with a last one. */
static bool has_last_frame(const struct usb_source *m)
{
	return m->options.protocol == BC_FORMAT_BCP1 && m->options.link == BC_USB_PLAIN;
}

/* Where there is no last frame it is taken for the end when nothing more comes. */
static bool is_drained(struct usb_source *m)
{
	uint64_t since_ns = m->feed.heard_ns > m->board.since_ns ? m->feed.heard_ns
								 : m->board.since_ns;

	if (m->feed.last_frame_ns != 0)
		return true;
	return !has_last_frame(m) && is_over(m, USB_WAIT_REST, since_ns, DRAIN_NS);
}

/* Time to look after a board that is being stopped. */
static void watch_stopping(struct usb_source *m)
{
	if (bc_usb_request_is_flying(m->request))
		return;
	if (m->stopping == USB_ASKING)
		ask_to_stop(m);
	else if (m->stopping == USB_COUNTING || (m->stopping == USB_DRAINING && is_drained(m)))
		count_or_cancel(m);
}

/* The board has had its time. */
static void on_stop_time(struct usb_source *m)
{
	const char *what = m->stopping == USB_ASKING     ? "it doesn't answer STOP"
			   : m->stopping == USB_COUNTING ? "it doesn't answer GET_COUNTERS"
							 : "it has sent no last frame";

	if (m->stopping >= USB_CANCELLING)
		return;
	if (m->stopping != USB_DRAINING || has_last_frame(m))
		bc_usb_framer_log(&m->feed, BC_NOTICE_WARNING,
			"%s: %s: what it still held may be missing, and a gap at the end says so",
			m->source.name, what);
	if (m->stopping != USB_COUNTING && has_last_frame(m))
		bc_usb_framer_break(&m->feed, BC_GAP_TRANSFER, false);
	if (m->stopping == USB_DRAINING) {
		begin_time(m, COUNT_MS);
		count_or_cancel(m);
	} else {
		cancel(m);
	}
}

static void on_stop_answer(struct usb_source *m)
{
	if (m->stopping == USB_ASKING && m->answer == 0)
		m->stopping = USB_DRAINING;
	else if (m->stopping == USB_ASKING && m->answer == -ETIMEDOUT)
		on_stop_time(m); /* the request's own time may be over before ours is */
	else if (m->stopping <= USB_COUNTING)
		cancel(m); /* the counters are here; or it doesn't know how to stop */
}

/* The transfers are back: what follows? */
static void after_transfers(struct usb_source *m)
{
	uv_timer_stop(&m->timer);
	if (m->then == USB_THEN_RESUME && !m->is_closed) {
		m->stopping = USB_CLEARING;
		bc_usb_loop_release(m->usb);
		bc_usb_jobs_start(&m->work, m->loop, BC_USB_CLEAR);
		return;
	}
	m->stopping = USB_CLOSING;
	m->is_started = false;
	m->work.wants_reset = m->then == USB_THEN_RETRY && m->board.is_present && !m->is_ending;
	m->board.restarts += m->work.wants_reset;
	m->board.is_present = false;
	m->board.transfers = 0;
	/* Closing may take its time; what there is of the stream can be sealed meanwhile. */
	if (m->is_ending)
		tell_end(m);
	bc_usb_loop_release(m->usb);
	bc_usb_jobs_start(&m->work, m->loop, BC_USB_CLOSE);
}

/* Its halt is cleared, or not. A stop that came meanwhile finds it streaming, and takes what it
 * holds. */
static void resume(struct usb_source *m)
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
		bc_usb_framer_start(&m->feed);
	}
	if (rc == 0 && !m->is_closed) {
		usb_set_state(m, BC_BOARD_STREAMING);
		if (m->is_ending)
			usb_post(m, USB_ON_STOP);
		return;
	}
	if (rc != 0)
		tell_failure(m, "%s: can't %s: %s", m->source.name, what, strerror(-rc));
	/* A reset makes no memory. */
	m->then = rc == -ENODEV || rc == -ENOMEM ? USB_THEN_AWAY : USB_THEN_RETRY;
	bc_usb_framer_break(&m->feed, BC_GAP_TRANSFER, true);
	cancel(m);
}

static void after_close(struct usb_source *m)
{
	int rc = bc_usb_loop_sync(m->usb);

	if (rc != 0)
		tell_failure(m, "the USB can't be watched: %s", strerror(-rc));
	if (m->is_ending) {
		usb_finish(m);
	} else if (rc != 0) {
		usb_set_state(m, BC_BOARD_BACK_OFF);
	} else if (m->then == USB_THEN_AWAY && is_steady(m)) {
		m->streaming_ns = 0;
		m->back_off_ns = m->options.back_off_ns;
		usb_set_state(m, BC_BOARD_DETACHED);
	} else {
		usb_set_state(m, BC_BOARD_BACK_OFF);
	}
}

static void on_stop_gone(struct usb_source *m)
{
	/* It was in trouble, and now it is gone. */
	if (was_in_trouble(m)) {
		note_unplug(m);
		m->then = USB_THEN_AWAY;
	}
	if (m->stopping < USB_CANCELLING)
		cancel_gone(m);
}

static void in_stopping(struct usb_source *m, enum usb_event event)
{
	bool is_asking = m->stopping < USB_CANCELLING;

	switch (event) {
	case USB_ON_ANSWER:
		on_stop_answer(m);
		break;
	case USB_ON_WORK:
		if (m->stopping == USB_CLEARING)
			resume(m);
		else if (m->stopping == USB_CLOSING)
			after_close(m);
		break;
	case USB_ON_GONE:
		on_stop_gone(m);
		break;
	case USB_ON_STALL:
	case USB_ON_TROUBLE:
		if (is_asking)
			cancel(m);
		break;
	case USB_ON_TIMER:
		if (m->is_late) {
			on_stop_time(m);
			break;
		}
		m->is_late = true;
		uv_timer_start(&m->timer, on_timer, LATE_MS, 0);
		break;
	case USB_ON_WATCH:
		watch_stopping(m);
		break;
	case USB_ON_LOOK:
		m->wants_look = true;
		break;
	case USB_ON_STOP:
		if (is_asking && m->is_closed)
			cancel(m);
		break;
	default:
		break;
	}
}

static bool is_back(const struct usb_source *m)
{
	return m->board.state == BC_BOARD_STOPPING && m->stopping == USB_CANCELLING &&
	       bc_usb_stream_is_idle(m->stream) && !bc_usb_request_is_flying(m->request) &&
	       !m->work.is_busy;
}

static void usb_set_state(struct usb_source *m, enum bc_board_state state)
{
	m->board.state = state;
	m->board.since_ns = uv_hrtime();
	switch (state) {
	case BC_BOARD_DETACHED:
		usb_post(m, USB_ON_LOOK);
		break;
	case BC_BOARD_OPENING:
		uv_timer_stop(&m->timer);
		bc_usb_loop_release(m->usb);
		bc_usb_jobs_start(&m->work, m->loop, BC_USB_OPEN);
		break;
	case BC_BOARD_STREAMING:
		m->is_started = true;
		m->streaming_ns = m->streaming_ns != 0 ? m->streaming_ns : m->board.since_ns;
		bc_usb_framer_resume(&m->feed);
		look_at_transfers(m);
		uv_timer_start(&m->watch, on_watch, LOOK_MS, LOOK_MS);
		if (m->wants_look)
			usb_post(m, USB_ON_LOOK);
		break;
	case BC_BOARD_STOPPING:
		start_stopping(m);
		break;
	case BC_BOARD_BACK_OFF:
		uv_timer_stop(&m->watch);
		begin_back_off(m);
		break;
	}
}

static void handle(struct usb_source *m, enum usb_event event)
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
		in_stopping(m, event);
		break;
	case BC_BOARD_BACK_OFF:
		in_back_off(m, event);
		break;
	}
}

static void on_usb_closed(void *context)
{
	struct usb_source *m = context;

	if (--m->open_handles == 0)
		free(m);
}

static void on_timer_closed(uv_handle_t *handle)
{
	on_usb_closed(handle->data);
}

/* No transfer is in flight, no job runs, no device is open. */
static void close_all(struct usb_source *m)
{
	m->has_closed = true;
	bc_usb_stream_close(m->stream);
	bc_usb_request_close(m->request);
	bc_usb_jobs_forget(&m->work);
	uv_close((uv_handle_t *)&m->timer, on_timer_closed);
	uv_close((uv_handle_t *)&m->watch, on_timer_closed);
	uv_close((uv_handle_t *)&m->wait, on_timer_closed);
	bc_usb_loop_close(m->usb);
}

/* Deals with what has been noted, and with what is noted meanwhile, and frees all when that was the
 * end of it. Called from within itself, it does nothing. */
static void usb_turn(struct usb_source *m)
{
	if (m->is_turning || (!m->has_started && !m->is_closed))
		return;
	m->is_turning = true;
	while (!m->has_ended && (m->pending != 0 || is_back(m))) {
		if (m->pending == 0) {
			after_transfers(m);
			continue;
		}
		enum usb_event event = (enum usb_event)__builtin_ctz(m->pending);
		m->pending &= m->pending - 1;
		handle(m, event);
	}
	m->is_turning = false;
	if (m->has_ended && m->is_closed && !m->has_closed)
		close_all(m);
}

static void on_turn(void *context)
{
	usb_turn(context);
}

static void on_hotplug(void *context, libusb_device *device, bool has_left)
{
	struct usb_source *m = context;

	usb_post(m, USB_ON_LOOK);
	if (has_left && !m->work.is_busy && device == m->work.device)
		usb_post(m, USB_ON_GONE);
}

static void on_work(struct bc_usb_jobs *work)
{
	struct usb_source *m = container_of(work, struct usb_source, work);

	usb_post(m, USB_ON_WORK);
	usb_turn(m);
}

static void on_timer(uv_timer_t *timer)
{
	struct usb_source *m = timer->data;

	usb_post(m, USB_ON_TIMER);
	usb_turn(m);
}

static void on_watch(uv_timer_t *timer)
{
	struct usb_source *m = timer->data;

	usb_post(m, USB_ON_WATCH);
	usb_turn(m);
}

static void on_wait(uv_timer_t *timer)
{
	struct usb_source *m = timer->data;
	char what[sizeof(m->end_what)];

	if (m->feed.has_streamed)
		return;
	/* Why one that is there could not be used, was told when it was met. */
	snprintf(what, sizeof(what),
		m->board.last_error[0] != '\0' ? "it could not be recorded from within %.0f s"
					       : "none has come within %.0f s",
		(double)m->options.wait_ns * 1e-9);
	usb_end_with(m, -ENODEV, what);
	usb_turn(m);
}

/* The source's own calls */

static int usb_start(struct bc_source *source)
{
	struct usb_source *m = container_of(source, struct usb_source, source);

	m->has_started = true;
	if (m->options.wait_ns != 0)
		uv_timer_start(&m->wait, on_wait, (m->options.wait_ns + 999999) / 1000000, 0);
	usb_set_state(m, BC_BOARD_DETACHED);
	usb_turn(m);
	return 0;
}

static void usb_resume(struct bc_source *source)
{
	(void)source; /* never refused */
}

static void usb_stop(struct bc_source *source)
{
	struct usb_source *m = container_of(source, struct usb_source, source);

	if (m->options.wait_ns != 0 && !m->feed.has_streamed)
		usb_end_with(m, -ENODEV, "stopped before one had come");
	else
		usb_end_with(m, 0, "");
	usb_turn(m);
}

static void usb_last(struct bc_source *source)
{
	struct usb_source *m = container_of(source, struct usb_source, source);

	m->feed.last_frame_ns = uv_hrtime();
}

static void usb_close(struct bc_source *source)
{
	struct usb_source *m = container_of(source, struct usb_source, source);

	m->is_closed = true;
	m->feed.is_cut = true;
	if (!m->has_started)
		m->has_ended = true;
	m->is_ending = true;
	usb_post(m, USB_ON_STOP);
	usb_turn(m);
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

static void init_timer(struct usb_source *m, uv_timer_t *timer)
{
	uv_timer_init(m->loop, timer);
	timer->data = m;
	m->open_handles++;
}

int bc_usb_source_open(
	struct bc_source **source, uv_loop_t *loop, const struct bc_usb_options *options)
{
	struct usb_source *m = calloc(1, sizeof(*m));

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
		.on_data = on_data,
		.on_fault = on_fault,
	};
	struct bc_usb_loop_options usb = {
		.loop = loop,
		.context = m,
		.on_turn = on_turn,
		.on_hotplug = on_hotplug,
		.on_closed = on_usb_closed,
	};
	int rc = bc_usb_request_open(&m->request, on_answer, m);
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
	m->feed = (struct bc_usb_framer){
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
