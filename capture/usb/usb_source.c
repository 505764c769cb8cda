/* The state machine of a USB source: finds, opens, starts, watches, stops and reopens a board.
 *
 * Callbacks (hotplug, finished jobs and requests, failed transfers, timers) run inside libusb or
 * the sink, so they only record an event with usb_post(). usb_process_events() handles the recorded
 * events afterwards. The state is board.state. Only usb_set_state() changes it; it also performs
 * the actions on entering a state. usb_in_STATE() handles the events of one state.
 *
 *     detached --found--> opening --started--> streaming --fault, unplug, stop--> stopping
 *        ^                   |                     ^                              | | |
 *        |                   +------failed---------+----------> stopping          | | |
 *        +--after a while-- back-off <-------------+------closed, retry-----------+ | |
 *        +-----------------------------------------+--closed; unplugged, or the next-+ |
 *                                                  +------stall cleared---------------+
 */
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

/* How often a streaming or stopping board is checked: silence, missing transfers, deadlines. */
#define WATCH_MS 50

/* The stream has ended if nothing follows the last frame for this long. */
#define LAST_FRAME_NS UINT64_C(1000000000)

/* A board that streamed for this long is not flapping: its back-off starts again at the minimum. */
#define STEADY_NS UINT64_C(5000000000)

/* Consecutive faults, with no data in between, after which the board is reset. */
#define FAULTS_MAX 8u

/* Retry a request after this time: a transfer that was cancelled to free memory for it is back. */
#define REQUEST_RETRY_MS 10

/* A board has this long to answer STOP, and between the data that it then still sends, and to
 * answer GET_COUNTERS. One that sends no last frame has stopped when it sends nothing for DRAIN_NS.
 * One that never stops is given up after DRAIN_MAX_NS: a large FIFO takes seconds. */
#define STOP_NS      UINT64_C(1000000000)
#define DRAIN_NS     UINT64_C(150000000)
#define DRAIN_MAX_NS UINT64_C(8000000000)
#define COUNT_NS     UINT64_C(300000000) /* for GET_COUNTERS, if it did not stop in time */

enum usb_event {
	USB_ON_SCAN, /* a device was plugged in or unplugged, or it is time to search again */
	USB_ON_JOB,  /* a job has finished */
	USB_ON_GONE, /* the board was unplugged */
	USB_ON_STALL,
	USB_ON_TROUBLE, /* repeated faults, or silence: the board has to be reset */
	USB_ON_ANSWER,  /* a request was answered. Handled after the faults above */
	USB_ON_TIMER,   /* the state's timer: the back-off is over */
	USB_ON_WATCH,   /* time to check a streaming or stopping board */
	USB_ON_STOP,    /* the stream has to end */
};

/* What to do when the transfers have come back. */
enum usb_next_step {
	USB_THEN_END,    /* close the board; the stream ends */
	USB_THEN_AWAY,   /* close the board, which is gone or needs a pause */
	USB_THEN_NEXT,   /* close the board and try another */
	USB_THEN_RETRY,  /* reset, close and reopen the board */
	USB_THEN_RESUME, /* clear the halt and continue the stream */
};

/* The steps of a stop, in order. Steps that do not apply are skipped. */
enum usb_stopping {
	USB_REQUESTING, /* STOP was sent */
	USB_DRAINING,   /* reading what the board still holds */
	USB_COUNTING,   /* GET_COUNTERS was sent */
	USB_CANCELLING, /* waiting for the transfers to come back */
	USB_CLEARING,   /* clearing the halt */
	USB_CLOSING,    /* closing the device */
};

/* What usb_is_overdue() waits for. */
enum usb_wait {
	USB_WAIT_DATA,    /* any data */
	USB_WAIT_ANOTHER, /* a frame after the last one */
	USB_WAIT_REST,    /* more data from a board that was told to stop */
	USB_WAIT_STOP,    /* the end of a stop, or of its last step */
	USB_WAITS,
};

struct usb_source {
	struct bc_source source;
	struct bc_usb_options options;
	struct bc_board board;
	uv_loop_t *loop;
	struct bc_usb_loop *usb_loop;
	struct bc_usb_stream *stream;
	struct bc_usb_request *request;
	struct bc_usb_jobs jobs;
	struct bc_usb_framer framer;
	uv_timer_t timer; /* the state's timer: USB_ON_TIMER */
	uv_timer_t watch; /* USB_ON_WATCH */
	uv_timer_t wait;  /* for the first board */
	unsigned open_handles;

	unsigned pending; /* recorded events, one bit each */
	bool is_turning;  /* inside usb_process_events() */
	bool has_started;
	bool is_ending; /* the owner stopped it, or the stream is over */
	bool has_ended; /* it no longer holds a device */
	bool is_closed; /* the owner closed it */
	bool is_bound;  /* bc_source_bind() */
	int end_status;
	char end_what[512];

	bool scan_pending; /* search for boards when the running job has finished */
	bool needs_look;   /* the next search looks at the bus itself */
	bool is_deaf;      /* a board appeared without an event */
	unsigned failed;   /* boards that could not be opened since one streamed */
	unsigned step;     /* index of the next opening request */
	int answer;        /* status of the latest request */
	enum usb_next_step next_step;
	enum usb_stopping stopping;
	uint64_t stop_since_ns; /* a stop, or its last step, has stop_limit_ns from then on */
	uint64_t stop_limit_ns;
	uint64_t back_off_ns;

	bool is_started;                /* START was sent and the board has not been closed since */
	uint64_t streaming_ns;          /* when the board started to stream; 0: it has not */
	bool is_other;                  /* the board is not the one that streamed before */
	bool is_short;                  /* logged: fewer or shorter transfers than configured */
	uint64_t overdue_ns[USB_WAITS]; /* since_ns that was found overdue; 0: none */
	bool has_counters_first;
	struct bc_board_counters counters_first; /* before START */

	char last_failure[1024]; /* those logged since a board streamed: each is logged only once */
	char others[256];        /* the other boards last logged */
};

static void usb_set_state(struct usb_source *u, enum bc_board_state state);
static void on_timer(uv_timer_t *timer);

static void usb_post(struct usb_source *u, enum usb_event event)
{
	u->pending |= 1u << event;
}

/* Transfers */

static void on_data(void *context, uint8_t *bytes, size_t count)
{
	struct usb_source *u = context;

	bc_usb_framer_bytes(&u->framer, bytes, count, u->jobs.identity.packet_bytes);
}

static void on_fault(void *context, enum bc_usb_fault fault)
{
	struct usb_source *u = context;

	bc_usb_framer_fault(&u->framer, fault);
	if (fault == BC_USB_TIMEOUT)
		return;
	if (fault == BC_USB_GONE)
		usb_post(u, USB_ON_GONE);
	else if (u->framer.faults >= FAULTS_MAX)
		usb_post(u, USB_ON_TROUBLE);
	else if (fault == BC_USB_STALL)
		usb_post(u, USB_ON_STALL);
	if (fault == BC_USB_GONE || fault == BC_USB_STALL)
		bc_usb_stream_cancel(u->stream);
}

/* Stops the transfers; `next` selects the next step. A board that is closed and opened again leaves
 * a break, even while it is opening: data may have arrived before the last request is answered. */
static void usb_stop_for(struct usb_source *u, enum usb_next_step next)
{
	if (next == USB_THEN_AWAY || next == USB_THEN_RETRY)
		bc_usb_framer_break(&u->framer, BC_GAP_TRANSFER, true);
	u->next_step = next;
	usb_set_state(u, BC_BOARD_STOPPING);
}

/* Reports the end of the stream to the sink. */
static void usb_report_end(struct usb_source *u)
{
	const struct bc_source_sink *sink = &u->source.sink;

	if (u->framer.is_ended)
		return;
	bc_usb_framer_resume(&u->framer);
	u->framer.is_ended = true;
	sink->end(sink->context, u->end_status, u->end_what);
}

/* Ends the source when it holds no device. */
static void usb_finish(struct usb_source *u)
{
	usb_report_end(u);
	uv_timer_stop(&u->timer);
	uv_timer_stop(&u->watch);
	uv_timer_stop(&u->wait);
	bc_usb_jobs_drop_found(&u->jobs);
	u->has_ended = true;
	u->board.state = BC_BOARD_DETACHED;
}

/* Starts the end of the source; the sink will receive this status and phrase. */
static void usb_end_with(struct usb_source *u, int status, const char *what)
{
	if (u->is_ending)
		return;
	u->is_ending = true;
	u->end_status = status;
	snprintf(u->end_what, sizeof(u->end_what), "%s", what);
	usb_post(u, USB_ON_STOP);
}

/* Logs a failure once, although each attempt repeats it, perhaps in turn with other boards'. */
static void usb_log_failure(struct usb_source *u, const char *format, ...)
{
	char what[sizeof(u->board.last_error)];
	size_t used = strlen(u->last_failure);
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	memcpy(u->board.last_error, what, sizeof(what));
	if (strstr(u->last_failure, what) != NULL)
		return;
	if (used + strlen(what) >= sizeof(u->last_failure))
		used = 0;
	memcpy(u->last_failure + used, what, strlen(what) + 1);
	bc_usb_framer_log_text(&u->framer, BC_SOURCE_WARNING, format, what);
}

/* Logs further boards that match, if they have changed. */
static void usb_log_others(struct usb_source *u)
{
	if (strcmp(u->others, u->jobs.others) == 0)
		return;
	memcpy(u->others, u->jobs.others, sizeof(u->others));
	if (u->others[0] == '\0')
		return;
	if (u->board.state == BC_BOARD_DETACHED && u->is_bound && u->board.plugs != 0)
		bc_usb_framer_log(&u->framer, BC_SOURCE_WARNING,
			"other boards found, not used: %s; this recording waits for %s%s%s%s",
			u->others,
			u->jobs.match.serial[0] != '\0' ? "serial number "
							: "the board without one",
			u->jobs.match.serial, u->jobs.matching != 0 ? " at port " : "",
			u->jobs.matching != 0 ? u->board.identity.port : "");
	else if (u->options.match.serial[0] != '\0' || u->options.match.port[0] != '\0')
		bc_usb_framer_log(
			&u->framer, BC_SOURCE_INFO, "other boards found, not used: %s", u->others);
	else
		bc_usb_framer_log(&u->framer, BC_SOURCE_WARNING,
			"other boards found, not used: %s; select one with serial= or port=",
			u->others);
}

/* The board that may be used. The identity is the latest board's, also after it was unplugged. */
static struct bc_usb_match usb_wanted(const struct usb_source *u)
{
	struct bc_usb_match match = u->options.match;

	if (u->is_bound && u->board.plugs != 0) {
		memcpy(match.serial, u->board.identity.serial, sizeof(match.serial));
		match.is_exact = true;
	}
	return match;
}

/* True if the wanted board has changed since the latest search. */
static bool usb_wants_another(const struct usb_source *u)
{
	struct bc_usb_match match = usb_wanted(u);

	return match.is_exact != u->jobs.match.is_exact ||
	       strcmp(match.serial, u->jobs.match.serial) != 0;
}

static void usb_scan(struct usb_source *u)
{
	if (u->jobs.is_busy) {
		u->scan_pending = true;
		return;
	}
	u->scan_pending = false;
	u->jobs.match = usb_wanted(u);
	u->jobs.is_look = u->needs_look;
	u->jobs.skip = u->failed;
	memcpy(u->jobs.home, u->board.identity.port, sizeof(u->jobs.home));
	u->needs_look = false;
	bc_usb_jobs_start(&u->jobs, u->loop, BC_USB_JOB_FIND);
}

static void usb_log_missing(struct usb_source *u)
{
	char match[BC_USB_MATCH_TEXT];

	bc_usb_match_write(match, &u->jobs.match);
	u->board.last_error[0] = '\0';
	if (u->jobs.status != 0)
		usb_log_failure(u, "USB: can't list devices: %s", strerror(-u->jobs.status));
	else if (u->jobs.reject_reason[0] != '\0')
		usb_log_failure(u, "no board %s found: %s", match, u->jobs.reject_reason);
	else if (strcmp(u->last_failure, "no board") != 0 && !u->framer.has_streamed)
		bc_usb_framer_log(
			&u->framer, BC_SOURCE_NOTICE, "no board %s found: waiting for it", match);
	if (u->board.last_error[0] == '\0')
		snprintf(u->last_failure, sizeof(u->last_failure), "no board");
}

/* The board was unplugged: counts and logs it, and opens a break. */
static void usb_note_unplug(struct usb_source *u)
{
	u->board.unplugs++;
	u->others[0] = '\0'; /* they can be mistaken for it: name them again */
	bc_usb_framer_log(&u->framer, BC_SOURCE_BOARD_GONE,
		"%s: unplugged; the recording continues when it is plugged in again",
		u->source.name);
	bc_usb_framer_break(&u->framer, BC_GAP_UNPLUGGED, true);
}

/* True if transfers failed before the board disappeared. They are the unplug's first sign. */
static bool usb_failed_first(const struct usb_source *u)
{
	return u->framer.has_break && u->framer.broken.cause == BC_GAP_TRANSFER && !u->is_ending;
}

/* Replaces libusb's context with one that knows the board. Nothing may hold an old device. */
static int usb_adopt_found(struct usb_source *u)
{
	int rc = bc_usb_stream_forget_device(u->stream);

	if (rc == 0)
		rc = bc_usb_request_forget_device(u->request);
	if (rc != 0) {
		bc_usb_jobs_drop_found(&u->jobs);
		return rc;
	}
	u->jobs.context = u->jobs.found_context;
	u->jobs.found_context = NULL;
	return bc_usb_loop_adopt(u->usb_loop, u->jobs.context);
}

/* Uses the board that was found, perhaps although no event announced it. */
static void usb_open_found(struct usb_source *u)
{
	const struct bc_board_identity *id = &u->jobs.found_id;
	int rc = 0;

	if (u->jobs.found_context != NULL) {
		rc = usb_adopt_found(u);
		if (!u->is_deaf)
			bc_usb_framer_log(&u->framer, BC_SOURCE_WARNING,
				"board at %s: found without an event from udev, as in a container "
				"or another network namespace: a plug is noticed within %.3g s",
				id->port, (double)u->options.back_off_max_ns * 1e-9);
		u->is_deaf = true;
	}
	if (rc != 0) {
		usb_log_failure(u, "USB: can't poll for devices: %s", strerror(-rc));
		usb_set_state(u, BC_BOARD_BACK_OFF);
		return;
	}
	usb_set_state(u, BC_BOARD_OPENING);
}

/* Looks at the bus after some time, whatever udev says: its events may not arrive. */
static void usb_look_later(struct usb_source *u)
{
	if (!uv_is_active((uv_handle_t *)&u->timer))
		uv_timer_start(
			&u->timer, on_timer, (u->options.back_off_max_ns + 999999) / 1000000, 0);
}

static void usb_in_detached(struct usb_source *u, enum usb_event event)
{
	switch (event) {
	case USB_ON_TIMER:
		u->needs_look = true;
		usb_scan(u);
		break;
	case USB_ON_SCAN:
		usb_scan(u);
		break;
	case USB_ON_STOP:
		if (!u->jobs.is_busy)
			usb_finish(u);
		break;
	case USB_ON_JOB:
		if (u->is_ending) {
			usb_finish(u);
			break;
		}
		if (usb_wants_another(u)) {
			usb_scan(u); /* bound or released meanwhile */
			break;
		}
		usb_log_others(u);
		if (u->jobs.status == 0 && u->jobs.found != NULL) {
			usb_open_found(u);
			break;
		}
		if (usb_failed_first(u) && u->jobs.status == 0)
			usb_note_unplug(u);
		usb_log_missing(u);
		usb_look_later(u);
		if (u->scan_pending)
			usb_scan(u);
		break;
	default:
		break;
	}
}

static void usb_log_streaming(struct usb_source *u)
{
	const struct bc_board *b = &u->board;
	char clock[64] = "unknown clock";

	if (u->source.clock_hz != 0)
		snprintf(clock, sizeof(clock), "%" PRIu64 " Hz%s", u->source.clock_hz,
			u->options.protocol == BC_FORMAT_RAW6 ? " (host's clock)" : "");
	bc_usb_framer_log(&u->framer, BC_SOURCE_BOARD_BACK,
		"%s: streaming: %s speed, %s%s%s, %u transfers of %" PRIu32 " bytes",
		u->source.name, b->identity.speed, b->has_info ? b->firmware : "",
		b->has_info ? ", " : "", clock, b->transfers, b->transfer_bytes);
}

/* Submits missing transfers again. Logs when there are fewer or shorter transfers than configured,
 * and when there no longer are. */
static void usb_refill_transfers(struct usb_source *u)
{
	struct bc_board *b = &u->board;
	int rc = bc_usb_stream_fill(u->stream);

	if (rc == -ENODEV)
		usb_post(u, USB_ON_GONE);
	else if (rc != 0 && rc != -ENOMEM && bc_usb_stream_is_idle(u->stream))
		on_fault(u, BC_USB_REFUSED);
	b->transfers = bc_usb_stream_in_flight(u->stream);
	b->transfer_bytes = bc_usb_stream_bytes(u->stream);
	bool is_short = b->transfers < u->options.transfers ||
			b->transfer_bytes + b->identity.packet_bytes <= u->options.transfer_bytes;
	if (is_short != u->is_short)
		bc_usb_framer_log(&u->framer, is_short ? BC_SOURCE_WARNING : BC_SOURCE_NOTICE,
			is_short ? "%s: only %u transfers of %" PRIu32 " bytes: %s"
				 : "%s: %u transfers of %" PRIu32 " bytes again",
			u->source.name, b->transfers, b->transfer_bytes,
			rc != 0 && rc != -ENOMEM
				? strerror(-rc)
				: "out of usbfs memory; see usbfs_memory_mb in docs/usb.md");
	u->is_short = is_short;
}

static void usb_start_streaming(struct usb_source *u)
{
	u->board.plugs++;
	u->failed = 0;
	u->last_failure[0] = '\0';
	u->board.last_error[0] = '\0';
	u->framer.has_streamed = true;
	usb_set_state(u, BC_BOARD_STREAMING);
	if (u->board.plugs == 1 || u->is_other)
		usb_log_streaming(u);
	else
		bc_usb_framer_log(&u->framer, BC_SOURCE_BOARD_BACK, "%s: back after %.3f s",
			u->source.name, (double)u->framer.broken.duration_ns * 1e-9);
	u->is_other = false;
}

/* True if nothing has arrived for `time_ns` since `since_ns`. Returns true only on the second
 * consecutive check: after a delay of the loop, data that arrived in time is handled in between. */
static bool usb_is_overdue(
	struct usb_source *u, enum usb_wait wait, uint64_t since_ns, uint64_t time_ns)
{
	bool is_over = uv_hrtime() - since_ns >= time_ns;
	bool was_over = u->overdue_ns[wait] == since_ns;

	u->overdue_ns[wait] = is_over ? since_ns : 0;
	return is_over && was_over;
}

static void usb_check_streaming(struct usb_source *u)
{
	struct bc_usb_framer *framer = &u->framer;

	usb_refill_transfers(u);
	if (framer->last_frame_ns != 0 &&
		usb_is_overdue(u, USB_WAIT_ANOTHER, framer->last_frame_ns, LAST_FRAME_NS)) {
		bc_usb_framer_log(&u->framer, BC_SOURCE_NOTICE,
			"%s: sent its last frame: stream ended", u->source.name);
		usb_end_with(u, 0, "");
		return;
	}
	if (u->options.silence_ns == 0 ||
		!usb_is_overdue(u, USB_WAIT_DATA, framer->last_data_ns, u->options.silence_ns))
		return;
	if (!framer->is_silent) {
		u->board.silences++;
		bc_usb_framer_log(&u->framer, BC_SOURCE_WARNING, "%s: no data for %.1f s; %s",
			u->source.name, (double)(uv_hrtime() - framer->last_data_ns) * 1e-9,
			u->options.reset_on_silence ? "resetting"
						    : "is the machine on and its bus connected?");
	}
	framer->is_silent = true;
	if (u->options.reset_on_silence)
		usb_post(u, USB_ON_TROUBLE);
}

static void usb_in_streaming(struct usb_source *u, enum usb_event event)
{
	switch (event) {
	case USB_ON_SCAN:
		usb_scan(u); /* to log further boards */
		break;
	case USB_ON_JOB:
		usb_log_others(u);
		if (u->scan_pending)
			usb_scan(u);
		break;
	case USB_ON_GONE:
		usb_note_unplug(u);
		usb_stop_for(u, USB_THEN_AWAY);
		break;
	case USB_ON_STALL:
		bc_usb_framer_break(&u->framer, BC_GAP_TRANSFER, false);
		usb_stop_for(u, USB_THEN_RESUME);
		break;
	case USB_ON_TROUBLE:
		bc_usb_framer_log(&u->framer, BC_SOURCE_WARNING, "%s: resetting: %s; gap recorded",
			u->source.name, u->framer.is_silent ? "no data" : "repeated faults");
		usb_stop_for(u, USB_THEN_RETRY);
		break;
	case USB_ON_WATCH:
		usb_check_streaming(u);
		break;
	case USB_ON_STOP:
		usb_stop_for(u, USB_THEN_END);
		break;
	default:
		break;
	}
}

static void usb_in_back_off(struct usb_source *u, enum usb_event event)
{
	switch (event) {
	case USB_ON_TIMER:
		/* Without polling, a plugged board would go unnoticed. */
		usb_set_state(u,
			bc_usb_loop_sync(u->usb_loop) == 0 ? BC_BOARD_DETACHED : BC_BOARD_BACK_OFF);
		break;
	case USB_ON_STOP:
		usb_finish(u);
		break;
	default:
		break;
	}
}

static bool usb_was_steady(const struct usb_source *u)
{
	return u->streaming_ns != 0 && u->framer.last_data_ns > u->streaming_ns &&
	       u->framer.last_data_ns - u->streaming_ns >= STEADY_NS;
}

static void usb_start_back_off(struct usb_source *u)
{
	uint64_t delay = u->back_off_ns;

	if (usb_was_steady(u))
		delay = u->options.back_off_ns;
	u->back_off_ns = delay * 2 < u->options.back_off_max_ns ? delay * 2
								: u->options.back_off_max_ns;
	u->streaming_ns = 0;
	uv_update_time(u->loop);
	uv_timer_start(&u->timer, on_timer, (delay + 999999) / 1000000, 0);
}

/* Requests */

/* Sends a request. Returns whether an answer will follow; if not, `answer` is the error. -EAGAIN:
 * there was no memory, and a transfer was cancelled to free some. Retry soon. */
static bool usb_send_request(struct usb_source *u, enum bc_usb_request_id id)
{
	struct bc_usb_target target = {
		.handle = u->jobs.handle,
		.interface = u->jobs.identity.interface,
		.ftdi = u->options.ftdi,
	};

	u->answer = bc_usb_request_send(u->request, &target, id);
	if (u->answer == -ENOMEM && bc_usb_stream_release_one(u->stream))
		u->answer = -EAGAIN;
	return u->answer == 0;
}

/* Losses counted before START are subtracted: they do not belong to this recording. */
static void usb_parse_counters(struct usb_source *u, const uint8_t *data, unsigned count)
{
	struct bc_board *b = &u->board;

	if (b->state == BC_BOARD_OPENING) {
		u->has_counters_first = bc_usb_parse_counters(&u->counters_first, data, count);
		return;
	}
	if (!u->has_counters_first)
		return; /* the first answer, but a stop or an unplug came before it */
	b->has_counters = bc_usb_parse_counters(&b->counters, data, count);
	if (b->has_counters && b->counters.lost > u->counters_first.lost)
		bc_usb_framer_lost(&u->framer, b->counters.lost - u->counters_first.lost);
}

static void on_answer(
	void *context, enum bc_usb_request_id id, int status, const uint8_t *data, unsigned count)
{
	struct usb_source *u = context;
	struct bc_board *b = &u->board;

	u->answer = status;
	usb_post(u, USB_ON_ANSWER);
	if (status == -ENODEV)
		usb_post(u, USB_ON_GONE);
	if (status != 0) {
		if (b->state == BC_BOARD_OPENING && status != -EPIPE && status != -ECANCELED &&
			status != -ENODEV)
			bc_usb_framer_log(&u->framer, BC_SOURCE_WARNING,
				"%s: no answer to %s: %s; continuing without it", u->source.name,
				bc_usb_request_name(id), strerror(-status));
		/* A board need not implement the requests, but an FTDI chip does. */
		if (b->state == BC_BOARD_OPENING && status == -EPIPE && id == BC_USB_FTDI_RESET)
			bc_usb_framer_log(&u->framer, BC_SOURCE_WARNING,
				"%s: FTDI requests rejected: is link = ftdi correct?",
				u->source.name);
		return;
	}
	if (id == BC_USB_GET_INFO && !bc_usb_parse_info(b, data, count))
		bc_usb_framer_log(&u->framer, BC_SOURCE_WARNING,
			"%s: GET_INFO answer ignored: not protocol version 1", u->source.name);
	if (id == BC_USB_GET_COUNTERS)
		usb_parse_counters(u, data, count);
}

/* Opening */

/* Returns the requests sent to an opened board, in order, up to BC_USB_REQUESTS. The last makes it
 * send; transfers precede it. */
static const enum bc_usb_request_id *usb_opening_of(enum bc_usb_link link)
{
	static const enum bc_usb_request_id plain[] = {
		BC_USB_GET_INFO, BC_USB_GET_COUNTERS, BC_USB_START, BC_USB_REQUESTS};
	static const enum bc_usb_request_id ftdi[] = {BC_USB_FTDI_RESET, BC_USB_FTDI_MODE_RESET,
		BC_USB_FTDI_LATENCY, BC_USB_FTDI_FLUSH_OUTPUT, BC_USB_FTDI_FLUSH_INPUT,
		BC_USB_FTDI_MODE, BC_USB_REQUESTS};

	return link == BC_USB_FTDI ? ftdi : plain;
}

static const char *usb_open_hint(int status)
{
	return status == -EACCES  ? "; is the udev rule installed and this user in group buscap?"
	       : status == -EBUSY ? "; another program uses it"
				  : "";
}

/* The clock that the board reports, else the configured one, else for raw6 the host's. */
static uint64_t usb_clock_hz(const struct usb_source *u)
{
	uint64_t clock_hz = u->options.clock_hz;

	if (u->board.has_info && u->board.clock_hz != 0)
		clock_hz = u->board.clock_hz;
	if (clock_hz == 0 && u->options.protocol == BC_FORMAT_RAW6)
		clock_hz = BC_USB_HOST_CLOCK_HZ;
	return clock_hz;
}

/* The clock of a running recording does not change. */
static void usb_set_clock(struct usb_source *u)
{
	uint64_t before = u->source.clock_hz;
	uint64_t clock_hz = usb_clock_hz(u);

	if (!u->is_bound || !u->framer.has_streamed || before == clock_hz)
		u->source.clock_hz = clock_hz;
	else if (before == 0)
		bc_usb_framer_log(&u->framer, BC_SOURCE_WARNING,
			"%s: now reports a clock of %" PRIu64
			" Hz; the recording started without one and continues without it",
			u->source.name, clock_hz);
	else
		bc_usb_framer_log(&u->framer, BC_SOURCE_WARNING,
			"%s: clock is now %" PRIu64 " Hz, the recording's is %" PRIu64
			" Hz; times still use the recording's",
			u->source.name, clock_hz, before);
}

static void usb_fail_opening(struct usb_source *u, const char *what, int rc)
{
	usb_log_failure(u, "%s: can't submit %s: %s%s; retrying", u->source.name, what,
		strerror(-rc), rc == -ENOMEM ? "; see usbfs_memory_mb in docs/usb.md" : "");
	/* A reset would not free memory. */
	usb_stop_for(u, rc == -ENODEV || rc == -ENOMEM ? USB_THEN_AWAY : USB_THEN_RETRY);
}

/* Sends the next opening request, or starts to stream after the last. */
static void usb_next_step(struct usb_source *u)
{
	const enum bc_usb_request_id *next = usb_opening_of(u->options.link) + u->step;
	const struct bc_board_identity *id = &u->jobs.identity;

	if (next[0] == BC_USB_REQUESTS) {
		usb_start_streaming(u);
		return;
	}
	if (next[1] == BC_USB_REQUESTS && bc_usb_stream_is_idle(u->stream)) {
		usb_set_clock(u);
		int rc = bc_usb_stream_start(
			u->stream, u->jobs.handle, id->endpoint, id->packet_bytes);
		if (rc != 0) {
			usb_fail_opening(u, "a transfer", rc);
			return;
		}
		bc_usb_framer_start(&u->framer);
	}
	if (usb_send_request(u, next[0]))
		u->step++;
	else if (u->answer == -EAGAIN)
		uv_timer_start(&u->timer, on_timer, REQUEST_RETRY_MS, 0);
	else
		usb_fail_opening(u, bc_usb_request_name(next[0]), u->answer);
}

static void usb_name_board(struct usb_source *u)
{
	const struct bc_board_identity *id = &u->jobs.identity;

	snprintf(u->source.name, sizeof(u->source.name), "board %04x:%04x%s%s at %s", id->vid,
		id->pid, id->serial[0] != '\0' ? " " : "", id->serial, id->port);
}

/* The board can't be opened. Tries the next one, unless bound to this, and then all again. */
static void usb_fail_open(struct usb_source *u, const char *what, int rc)
{
	bool is_gone = rc == -ENODEV || rc == -ENOENT;
	bool has_next = !u->jobs.match.is_exact && ++u->failed % u->jobs.matching != 0;

	usb_log_failure(u, "%s: can't %s: %s%s; %s", u->source.name, what, strerror(-rc),
		usb_open_hint(rc), has_next ? "trying the next board" : "retrying");
	u->needs_look = is_gone; /* perhaps without an event */
	if (has_next)
		usb_stop_for(u, USB_THEN_NEXT);
	else
		usb_stop_for(u, is_gone ? USB_THEN_AWAY : USB_THEN_RETRY);
}

/* After a job with the device, polls it again. Returns 0, or the first error and what failed. */
static int usb_after_job(struct usb_source *u, const char **what)
{
	int watched = bc_usb_loop_sync(u->usb_loop);
	int status = u->jobs.status;

	*what = status != 0 ? u->jobs.what : "poll device";
	return status != 0 ? status : watched;
}

static void usb_after_open(struct usb_source *u)
{
	struct bc_board *b = &u->board;
	const char *what;
	int status = usb_after_job(u, &what);
	bool is_other = strcmp(b->identity.serial, u->jobs.identity.serial) != 0;

	if (u->is_ending) {
		usb_stop_for(u, USB_THEN_END);
		return;
	}
	if (u->is_bound && b->plugs != 0 && is_other) {
		usb_stop_for(u, USB_THEN_AWAY); /* bound since it was found */
		return;
	}
	usb_name_board(u);
	if (status != 0) {
		usb_fail_open(u, what, status);
		return;
	}
	b->is_present = true;
	b->identity = u->jobs.identity;
	u->is_other = u->is_other || is_other;
	b->has_info = false;
	b->has_counters = false;
	u->has_counters_first = false;
	u->step = 0;
	usb_next_step(u);
}

static bool usb_is_start_sent(const struct usb_source *u)
{
	return bc_usb_request_is_in_flight(u->request) &&
	       usb_opening_of(u->options.link)[u->step] == BC_USB_REQUESTS;
}

static void usb_in_opening(struct usb_source *u, enum usb_event event)
{
	switch (event) {
	case USB_ON_SCAN:
		u->scan_pending = true;
		break;
	case USB_ON_JOB:
		usb_after_open(u);
		break;
	case USB_ON_ANSWER:
		usb_next_step(u);
		break;
	case USB_ON_TIMER:
		if (!u->jobs.is_busy && !bc_usb_request_is_in_flight(u->request))
			usb_next_step(u);
		break;
	case USB_ON_GONE:
		/* Without a break, data has arrived since the board was found. */
		if (u->framer.has_streamed && !u->framer.has_break)
			usb_note_unplug(u);
		usb_stop_for(u, USB_THEN_AWAY);
		break;
	case USB_ON_STALL:
	case USB_ON_TROUBLE:
		usb_stop_for(u, USB_THEN_RETRY);
		break;
	case USB_ON_STOP:
		/* Otherwise wait: until the device is open, or, if START was already sent, until
		 * the board streams and can be stopped. */
		if (!u->jobs.is_busy && (!usb_is_start_sent(u) || u->is_closed))
			usb_stop_for(u, USB_THEN_END);
		break;
	default:
		break;
	}
}

/* Stopping */

static void usb_cancel(struct usb_source *u)
{
	u->stopping = USB_CANCELLING;
	bc_usb_stream_cancel(u->stream);
	bc_usb_request_cancel(u->request);
}

/* The board was unplugged while stopping: the samples it still held are lost. */
static void usb_cancel_unplugged(struct usb_source *u)
{
	if (u->stopping != USB_COUNTING && u->framer.last_frame_ns == 0) {
		u->board.unplugs++;
		bc_usb_framer_break(&u->framer, BC_GAP_UNPLUGGED, true);
		bc_usb_framer_log(&u->framer, BC_SOURCE_BOARD_GONE,
			"%s: unplugged while stopping: its buffered samples are lost; gap recorded",
			u->source.name);
	}
	usb_cancel(u);
}

/* True if the board ends its stream with a last frame. */
static bool usb_expects_last_frame(const struct usb_source *u)
{
	return u->options.protocol == BC_FORMAT_BCP1 && u->options.link == BC_USB_PLAIN;
}

/* Gives up what the board may still hold, unless the stream is complete; `why` is a phrase. */
static void usb_give_up_rest(struct usb_source *u, const char *why)
{
	bool is_gap = usb_expects_last_frame(u);

	if (u->framer.last_frame_ns != 0)
		return;
	bc_usb_framer_log(&u->framer, BC_SOURCE_WARNING,
		"%s: %s: its buffered samples may be lost%s", u->source.name, why,
		is_gap ? "; gap recorded" : "");
	if (is_gap)
		bc_usb_framer_break(&u->framer, BC_GAP_TRANSFER, false);
}

/* STOP or GET_COUNTERS failed, or was not answered in time. */
static void usb_cancel_unanswered(struct usb_source *u)
{
	if (u->stopping == USB_COUNTING)
		bc_usb_framer_log(&u->framer, BC_SOURCE_WARNING,
			"%s: no answer to GET_COUNTERS: its total of lost samples is unknown",
			u->source.name);
	else
		usb_give_up_rest(u, "no answer to STOP");
	usb_cancel(u);
}

/* If there is no memory for the request, usb_check_stopping() sends it again. */
static void usb_request_or_cancel(struct usb_source *u, enum bc_usb_request_id id)
{
	if (usb_send_request(u, id) || u->answer == -EAGAIN)
		return;
	if (u->answer == -ENODEV)
		usb_cancel_unplugged(u);
	else
		usb_cancel_unanswered(u);
}

static void usb_request_stop(struct usb_source *u)
{
	usb_request_or_cancel(
		u, u->options.link == BC_USB_FTDI ? BC_USB_FTDI_MODE_RESET : BC_USB_STOP);
}

static void usb_start_deadline(struct usb_source *u, uint64_t limit_ns)
{
	u->stop_since_ns = uv_hrtime();
	u->stop_limit_ns = limit_ns;
}

static void usb_start_stopping(struct usb_source *u)
{
	u->stopping = USB_REQUESTING;
	/* Send STOP only if START was sent and the owner still wants the rest of the stream. */
	if (u->next_step == USB_THEN_END && !u->is_closed && u->is_started &&
		!bc_usb_request_is_in_flight(u->request)) {
		usb_start_deadline(u, STOP_NS);
		usb_request_stop(u);
	} else {
		usb_cancel(u);
	}
}

static void usb_read_counters_or_cancel(struct usb_source *u)
{
	if (u->has_counters_first)
		usb_request_or_cancel(u, BC_USB_GET_COUNTERS);
	else
		usb_cancel(u);
}

static void usb_start_counting(struct usb_source *u, uint64_t limit_ns)
{
	u->stopping = USB_COUNTING;
	usb_start_deadline(u, limit_ns);
	usb_read_counters_or_cancel(u);
}

/* Since when the time limit of this step of the stop runs. While the board sends what it still
 * holds, data restarts it, as long as all is over after DRAIN_MAX_NS. */
static uint64_t usb_stop_since(const struct usb_source *u)
{
	uint64_t since_ns = u->stop_since_ns;
	uint64_t last_ns = since_ns + DRAIN_MAX_NS - STOP_NS;
	uint64_t data_ns = u->framer.last_data_ns;

	if (u->stopping != USB_DRAINING || data_ns < since_ns)
		return since_ns;
	return data_ns < last_ns ? data_ns : last_ns;
}

/* Without a last frame, the stream has ended when no more data arrives. */
static bool usb_is_drained(struct usb_source *u)
{
	uint64_t since_ns = u->framer.last_data_ns > u->board.since_ns ? u->framer.last_data_ns
								       : u->board.since_ns;

	if (u->framer.last_frame_ns != 0)
		return true;
	return !usb_expects_last_frame(u) && usb_is_overdue(u, USB_WAIT_REST, since_ns, DRAIN_NS);
}

/* The board took too long to stop. */
static void usb_stop_timed_out(struct usb_source *u)
{
	if (u->stopping == USB_DRAINING) {
		usb_give_up_rest(
			u, usb_expects_last_frame(u) ? "no last frame" : "it does not stop");
		usb_start_counting(u, COUNT_NS);
	} else {
		usb_cancel_unanswered(u);
	}
}

static void usb_check_stopping(struct usb_source *u)
{
	if (u->stopping < USB_CANCELLING &&
		usb_is_overdue(u, USB_WAIT_STOP, usb_stop_since(u), u->stop_limit_ns)) {
		usb_stop_timed_out(u);
		return;
	}
	if (bc_usb_request_is_in_flight(u->request))
		return;
	if (u->stopping == USB_REQUESTING)
		usb_request_stop(u);
	else if (u->stopping == USB_COUNTING)
		usb_read_counters_or_cancel(u);
	else if (u->stopping == USB_DRAINING && usb_is_drained(u))
		usb_start_counting(u, STOP_NS);
}

static void usb_on_stop_answer(struct usb_source *u)
{
	if (u->stopping >= USB_CANCELLING)
		return;
	if (u->stopping == USB_REQUESTING && u->answer == 0)
		u->stopping = USB_DRAINING;
	else if (u->answer == 0 || u->answer == -EPIPE)
		usb_cancel(u); /* the counters have arrived, or the board does not know STOP */
	else
		usb_cancel_unanswered(u); /* its own time-out may also come first */
}

/* The transfers have come back: does what next_step says. */
static void usb_after_transfers(struct usb_source *u)
{
	uv_timer_stop(&u->timer);
	uv_timer_stop(&u->watch);
	if (u->next_step == USB_THEN_RESUME && !u->is_closed) {
		u->stopping = USB_CLEARING;
		bc_usb_loop_release(u->usb_loop);
		bc_usb_jobs_start(&u->jobs, u->loop, BC_USB_JOB_CLEAR);
		return;
	}
	u->stopping = USB_CLOSING;
	u->is_started = false;
	u->jobs.reset_first = u->next_step == USB_THEN_RETRY && u->board.is_present &&
			      !u->is_ending;
	u->jobs.is_deaf = u->is_deaf && u->is_bound && u->next_step == USB_THEN_AWAY &&
			  !u->is_ending;
	u->board.restarts += u->jobs.reset_first;
	u->board.is_present = false;
	u->board.transfers = 0;
	/* Closing may be slow; the recording can be sealed meanwhile. */
	if (u->is_ending)
		usb_report_end(u);
	bc_usb_loop_release(u->usb_loop);
	bc_usb_jobs_start(&u->jobs, u->loop, BC_USB_JOB_CLOSE);
}

/* After the attempt to clear the halt: streams again, or closes the board. If a stop is pending, it
 * still streams first, so that the board can be stopped in the regular way. */
static void usb_continue(struct usb_source *u)
{
	const struct bc_board_identity *id = &u->jobs.identity;
	const char *what;
	int rc = usb_after_job(u, &what);

	if (rc == 0 && !u->is_closed) {
		what = "submit transfers";
		rc = bc_usb_stream_start(u->stream, u->jobs.handle, id->endpoint, id->packet_bytes);
		bc_usb_framer_start(&u->framer);
	}
	if (rc == 0 && !u->is_closed) {
		usb_set_state(u, BC_BOARD_STREAMING);
		return;
	}
	if (rc != 0)
		usb_log_failure(u, "%s: can't %s: %s", u->source.name, what, strerror(-rc));
	/* A reset would not free memory. */
	u->next_step = rc == -ENODEV || rc == -ENOMEM ? USB_THEN_AWAY : USB_THEN_RETRY;
	bc_usb_framer_break(&u->framer, BC_GAP_TRANSFER, true);
	usb_cancel(u);
}

static void usb_after_close(struct usb_source *u)
{
	int rc = bc_usb_loop_sync(u->usb_loop);

	if (rc != 0)
		usb_log_failure(u, "USB: can't poll for devices: %s", strerror(-rc));
	if (u->is_ending) {
		usb_finish(u);
	} else if (rc != 0) {
		usb_set_state(u, BC_BOARD_BACK_OFF);
	} else if (u->next_step == USB_THEN_NEXT) {
		usb_set_state(u, BC_BOARD_DETACHED);
	} else if (u->next_step == USB_THEN_AWAY && usb_was_steady(u)) {
		u->streaming_ns = 0;
		u->back_off_ns = u->options.back_off_ns;
		usb_set_state(u, BC_BOARD_DETACHED);
	} else {
		usb_set_state(u, BC_BOARD_BACK_OFF);
	}
}

static void usb_on_stop_unplugged(struct usb_source *u)
{
	if (usb_failed_first(u)) {
		usb_note_unplug(u);
		u->next_step = USB_THEN_AWAY;
	}
	if (u->stopping < USB_CANCELLING)
		usb_cancel_unplugged(u);
}

static void usb_in_stopping(struct usb_source *u, enum usb_event event)
{
	bool is_asking = u->stopping < USB_CANCELLING;

	switch (event) {
	case USB_ON_ANSWER:
		usb_on_stop_answer(u);
		break;
	case USB_ON_JOB:
		if (u->stopping == USB_CLEARING)
			usb_continue(u);
		else if (u->stopping == USB_CLOSING)
			usb_after_close(u);
		break;
	case USB_ON_GONE:
		usb_on_stop_unplugged(u);
		break;
	case USB_ON_STALL:
	case USB_ON_TROUBLE:
		if (is_asking)
			usb_cancel(u);
		break;
	case USB_ON_WATCH:
		usb_check_stopping(u);
		break;
	case USB_ON_SCAN:
		u->scan_pending = true;
		break;
	case USB_ON_STOP:
		if (is_asking && u->is_closed)
			usb_cancel(u);
		break;
	default:
		break;
	}
}

static bool usb_transfers_are_back(const struct usb_source *u)
{
	return u->board.state == BC_BOARD_STOPPING && u->stopping == USB_CANCELLING &&
	       bc_usb_stream_is_idle(u->stream) && !bc_usb_request_is_in_flight(u->request) &&
	       !u->jobs.is_busy;
}

static void usb_set_state(struct usb_source *u, enum bc_board_state state)
{
	u->board.state = state;
	u->board.since_ns = uv_hrtime();
	switch (state) {
	case BC_BOARD_DETACHED:
		usb_post(u, USB_ON_SCAN);
		break;
	case BC_BOARD_OPENING:
		uv_timer_stop(&u->timer);
		bc_usb_loop_release(u->usb_loop);
		bc_usb_jobs_start(&u->jobs, u->loop, BC_USB_JOB_OPEN);
		break;
	case BC_BOARD_STREAMING:
		u->is_started = true;
		u->streaming_ns = u->streaming_ns != 0 ? u->streaming_ns : u->board.since_ns;
		bc_usb_framer_resume(&u->framer);
		usb_refill_transfers(u);
		uv_timer_start(&u->watch, on_timer, WATCH_MS, WATCH_MS);
		if (u->scan_pending)
			usb_post(u, USB_ON_SCAN);
		if (u->is_ending)
			usb_post(u, USB_ON_STOP);
		break;
	case BC_BOARD_STOPPING:
		usb_start_stopping(u);
		break;
	case BC_BOARD_BACK_OFF:
		usb_start_back_off(u);
		break;
	}
}

static void usb_handle(struct usb_source *u, enum usb_event event)
{
	switch (u->board.state) {
	case BC_BOARD_DETACHED:
		usb_in_detached(u, event);
		break;
	case BC_BOARD_OPENING:
		usb_in_opening(u, event);
		break;
	case BC_BOARD_STREAMING:
		usb_in_streaming(u, event);
		break;
	case BC_BOARD_STOPPING:
		usb_in_stopping(u, event);
		break;
	case BC_BOARD_BACK_OFF:
		usb_in_back_off(u, event);
		break;
	}
}

static void on_usb_closed(void *context)
{
	struct usb_source *u = context;

	if (--u->open_handles == 0)
		free(u);
}

static void on_timer_closed(uv_handle_t *handle)
{
	on_usb_closed(handle->data);
}

/* Call it when no transfer is in flight, no job runs and no device is open. */
static void usb_close_handles(struct usb_source *u)
{
	bc_usb_stream_close(u->stream);
	bc_usb_request_close(u->request);
	bc_usb_jobs_drop_found(&u->jobs);
	uv_close((uv_handle_t *)&u->timer, on_timer_closed);
	uv_close((uv_handle_t *)&u->watch, on_timer_closed);
	uv_close((uv_handle_t *)&u->wait, on_timer_closed);
	bc_usb_loop_close(u->usb_loop);
}

/* Handles the recorded events, including those recorded meanwhile. Frees everything if the source
 * has ended and is closed. A nested call does nothing. */
static void usb_process_events(void *context)
{
	struct usb_source *u = context;

	if (u->is_turning || (!u->has_started && !u->is_closed))
		return;
	u->is_turning = true;
	while (!u->has_ended && (u->pending != 0 || usb_transfers_are_back(u))) {
		if (u->pending == 0) {
			usb_after_transfers(u);
			continue;
		}
		enum usb_event event = (enum usb_event)__builtin_ctz(u->pending);
		u->pending &= u->pending - 1;
		usb_handle(u, event);
	}
	u->is_turning = false;
	if (u->has_ended && u->is_closed)
		usb_close_handles(u);
}

static void on_hotplug(void *context, libusb_device *device, bool has_left)
{
	struct usb_source *u = context;

	usb_post(u, USB_ON_SCAN);
	if (has_left && !u->jobs.is_busy && device == u->jobs.device)
		usb_post(u, USB_ON_GONE);
}

static void on_work(struct bc_usb_jobs *jobs)
{
	struct usb_source *u = container_of(jobs, struct usb_source, jobs);

	usb_post(u, USB_ON_JOB);
	usb_process_events(u);
}

static void on_timer(uv_timer_t *timer)
{
	struct usb_source *u = timer->data;

	usb_post(u, timer == &u->watch ? USB_ON_WATCH : USB_ON_TIMER);
	usb_process_events(u);
}

static void on_wait(uv_timer_t *timer)
{
	struct usb_source *u = timer->data;
	char what[sizeof(u->end_what)];

	if (u->framer.has_streamed)
		return;
	snprintf(what, sizeof(what),
		u->board.last_error[0] != '\0'
			? "not usable within %.3g s; see the message above"
			: "not found within %.3g s; buscapd --list-boards shows what "
			  "is connected",
		(double)u->options.wait_ns * 1e-9);
	usb_end_with(u, -ENODEV, what);
	usb_process_events(u);
}

/* Source operations */

static int usb_start(struct bc_source *source)
{
	struct usb_source *u = container_of(source, struct usb_source, source);

	u->has_started = true;
	if (u->options.wait_ns != 0)
		uv_timer_start(&u->wait, on_wait, (u->options.wait_ns + 999999) / 1000000, 0);
	usb_set_state(u, BC_BOARD_DETACHED);
	usb_process_events(u);
	return 0;
}

static void usb_stop(struct bc_source *source)
{
	struct usb_source *u = container_of(source, struct usb_source, source);

	if (u->options.wait_ns != 0 && !u->framer.has_streamed)
		usb_end_with(u, -ENODEV, "stopped before it streamed");
	else
		usb_end_with(u, 0, "");
	usb_process_events(u);
}

static void usb_last_frame(struct bc_source *source)
{
	struct usb_source *u = container_of(source, struct usb_source, source);

	u->framer.last_frame_ns = uv_hrtime();
}

static void usb_bind(struct bc_source *source, bool is_bound)
{
	struct usb_source *u = container_of(source, struct usb_source, source);

	u->is_bound = is_bound;
	if (!is_bound && u->is_started)
		u->source.clock_hz = usb_clock_hz(u);
	if (!is_bound && u->board.state == BC_BOARD_DETACHED && u->has_started && !u->is_ending) {
		usb_post(u, USB_ON_SCAN); /* another board may be plugged in */
		usb_process_events(u);
	}
}

static void usb_close(struct bc_source *source)
{
	struct usb_source *u = container_of(source, struct usb_source, source);

	u->is_closed = true;
	u->framer.is_ended = true;
	if (!u->has_started)
		u->has_ended = true;
	u->is_ending = true;
	usb_post(u, USB_ON_STOP);
	usb_process_events(u);
}

static const struct bc_source_ops usb_ops = {
	.start = usb_start,
	.stop = usb_stop,
	.last_frame = usb_last_frame,
	.bind = usb_bind,
	.close = usb_close,
};

static void usb_init_timer(struct usb_source *u, uv_timer_t *timer)
{
	uv_timer_init(u->loop, timer);
	timer->data = u;
	u->open_handles++;
}

int bc_usb_source_open(
	struct bc_source **source, uv_loop_t *loop, const struct bc_usb_options *options)
{
	struct usb_source *u = calloc(1, sizeof(*u));

	if (u == NULL)
		return -ENOMEM;
	u->options = *options;
	u->loop = loop;
	u->back_off_ns = options->back_off_ns;
	struct bc_usb_stream_options stream = {
		.transfers = options->transfers,
		.transfer_bytes = options->transfer_bytes,
		.timeout_ms = options->timeout_ms,
		.context = u,
		.on_data = on_data,
		.on_fault = on_fault,
	};
	struct bc_usb_loop_options usb = {
		.loop = loop,
		.context = u,
		.on_events = usb_process_events,
		.on_hotplug = on_hotplug,
		.on_closed = on_usb_closed,
	};
	int rc = bc_usb_request_open(&u->request, on_answer, u);
	if (rc == 0)
		rc = bc_usb_stream_open(&u->stream, &stream);
	if (rc == 0)
		rc = bc_usb_loop_open(&u->usb_loop, &usb);
	if (rc != 0) {
		bc_usb_stream_close(u->stream);
		bc_usb_request_close(u->request);
		free(u);
		return rc;
	}
	u->jobs.context = bc_usb_loop_context(u->usb_loop);
	u->jobs.match = options->match;
	u->jobs.done = on_work;
	u->framer = (struct bc_usb_framer){
		.source = &u->source,
		.board = &u->board,
		.protocol = options->protocol,
		.link = options->link,
	};
	u->source.ops = &usb_ops;
	u->source.kind = "usb";
	u->source.is_live = true;
	u->source.clock_hz = options->clock_hz;
	u->source.board = &u->board;
	char match[BC_USB_MATCH_TEXT];
	bc_usb_match_write(match, &options->match);
	snprintf(u->source.name, sizeof(u->source.name), "board %s", match);
	u->board.since_ns = uv_hrtime();
	u->open_handles = 1;
	usb_init_timer(u, &u->timer);
	usb_init_timer(u, &u->watch);
	usb_init_timer(u, &u->wait);
	*source = &u->source;
	return 0;
}

const char *bc_board_state_name(enum bc_board_state state)
{
	static const char *const names[] = {
		[BC_BOARD_DETACHED] = "detached",
		[BC_BOARD_OPENING] = "opening",
		[BC_BOARD_STREAMING] = "streaming",
		[BC_BOARD_STOPPING] = "stopping",
		[BC_BOARD_BACK_OFF] = "back-off",
	};

	return names[state];
}
