/* How a board is found, opened, started, watched, stopped and found again: the state machine of a
 * USB source, whose public side is capture/usb_source.h.
 *
 * Whatever happens (a device comes, a job or a request is done, a transfer fails, a timer is due)
 * is noted with bc_usb_post(), also from within libusb. bc_usb_turn() deals with what was noted,
 * outside of libusb and of the sink. The state is board.state; bc_usb_set_state() alone changes it,
 * and does what a state begins with.
 *
 *     detached ──found──> opening ──started──> streaming ──fault, unplug, stop──> stopping
 *        ^                   │                     ^                              │ │ │
 *        │                   └──────failed─────────┼──────────> stopping          │ │ │
 *        ├──after a while── back-off <─────────────┼──────closed, try again───────┘ │ │
 *        └─────────────────────────────────────────┼──────closed, it is gone────────┘ │
 *                                                  └──────its stall is cleared────────┘
 */
#ifndef BC_CAPTURE_USB_MACHINE_H
#define BC_CAPTURE_USB_MACHINE_H

#include <uv.h>

#include "capture/usb_feed.h"
#include "capture/usb_loop.h"
#include "capture/usb_request.h"
#include "capture/usb_source.h"
#include "capture/usb_stream.h"
#include "capture/usb_work.h"

enum bc_usb_event {
	BC_USB_ON_LOOK, /* a device came or left, or it is time to look for one */
	BC_USB_ON_WORK, /* a job is done */
	BC_USB_ON_GONE, /* the board was unplugged */
	BC_USB_ON_STALL,
	BC_USB_ON_TROUBLE, /* transfers fail, and go on failing; or the board is silent */
	BC_USB_ON_ANSWER,  /* a request is answered; what is wrong with the board comes before */
	BC_USB_ON_TIMER,   /* of the state: a back-off is over, a stop takes too long */
	BC_USB_ON_WATCH,   /* time to look after a streaming board */
	BC_USB_ON_STOP,    /* the owner wants the end */
};

/* What follows when the transfers have come back. */
enum bc_usb_then {
	BC_USB_THEN_END,    /* the board is closed for good */
	BC_USB_THEN_AWAY,   /* closed; it is gone, or left alone for a while */
	BC_USB_THEN_RETRY,  /* closed, after a reset, and opened anew */
	BC_USB_THEN_RESUME, /* its halt is cleared, and the stream goes on */
};

/* The stations of a stop, in their order; those that a board can't have are left out. */
enum bc_usb_stopping {
	BC_USB_ASKING,     /* told to stop */
	BC_USB_DRAINING,   /* what it still holds is coming */
	BC_USB_COUNTING,   /* asked for its counters */
	BC_USB_CANCELLING, /* the transfers are coming back */
	BC_USB_CLEARING,   /* its halt is being cleared */
	BC_USB_CLOSING,    /* it is being closed */
};

/* For what doesn't come any more: bc_usb_is_over(). */
enum bc_usb_wait {
	BC_USB_WAIT_DATA,    /* for a silent board */
	BC_USB_WAIT_ANOTHER, /* for a frame behind the last */
	BC_USB_WAIT_REST,    /* for what a board still holds that has stopped */
	BC_USB_WAITS,
};

struct bc_usb_machine {
	struct bc_source source;
	struct bc_usb_options options;
	struct bc_board board;
	uv_loop_t *loop;
	struct bc_usb_loop *usb;
	struct bc_usb_stream *stream;
	struct bc_usb_request *request;
	struct bc_usb_work work;
	struct bc_usb_feed feed;
	uv_timer_t timer; /* of the state: BC_USB_ON_TIMER */
	uv_timer_t watch; /* BC_USB_ON_WATCH */
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
	enum bc_usb_then then;
	enum bc_usb_stopping stopping;
	uint64_t back_off_ns;

	bool is_started;                /* the board was told to, and not closed since */
	bool is_late;                   /* the time for a stop is over, but for a last look */
	uint64_t streaming_ns;          /* when the board began to stream; 0: it hasn't */
	bool is_short;                  /* fewer transfers than configured, and that was said */
	uint64_t over_ns[BC_USB_WAITS]; /* since when, where bc_usb_is_over() found it so */
	bool has_counters_first;
	struct bc_board_counters counters_first; /* as the board was started */

	char said[256];   /* the failure that was told last: not again and again */
	char others[256]; /* the boards that were named last */
};

void bc_usb_post(struct bc_usb_machine *m, enum bc_usb_event event);

/* Deals with what has been noted. What is noted meanwhile, it deals with too; called from within
 * itself, it does nothing. */
void bc_usb_turn(struct bc_usb_machine *m);

void bc_usb_set_state(struct bc_usb_machine *m, enum bc_board_state state);

/* Ends the stream, for what `then` says. */
void bc_usb_stop_for(struct bc_usb_machine *m, enum bc_usb_then then);

/* The source shall end, with that status and phrase. */
void bc_usb_end_with(struct bc_usb_machine *m, int status, const char *what);

/* The last word to the sink: of the stream nothing more will come. */
void bc_usb_tell_end(struct bc_usb_machine *m);

/* It has ended, and holds no device. */
void bc_usb_finish(struct bc_usb_machine *m);

/* Sends a request. Returns whether its answer will follow; if not, `answer` says why. With -EAGAIN
 * there was no memory for it, and a transfer gives up its own: it is to be asked again soon. */
bool bc_usb_ask(struct bc_usb_machine *m, enum bc_usb_step step);

/* Tells a failure, once, however often it is met while the board is tried again. */
void bc_usb_tell_failure(struct bc_usb_machine *m, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Whether it failed first, and if it is gone now, that is what was wrong. */
bool bc_usb_was_in_trouble(const struct bc_usb_machine *m);

/* The board is gone: counts and tells it, and begins a break. */
void bc_usb_note_unplug(struct bc_usb_machine *m);

/* Whether nothing has come for `time_ns` since that moment. Only the second look in a row that
 * finds it so says so: a loop that was held up hears first what has come meanwhile. */
bool bc_usb_is_over(
	struct bc_usb_machine *m, enum bc_usb_wait wait, uint64_t since_ns, uint64_t time_ns);

/* Whether the board has streamed for long enough not to flap. */
bool bc_usb_is_steady(const struct bc_usb_machine *m);

/* What transfers and requests call. */
void bc_usb_on_data(void *machine, uint8_t *bytes, size_t count);
void bc_usb_on_fault(void *machine, enum bc_usb_fault fault);
void bc_usb_on_answer(
	void *machine, enum bc_usb_step step, int status, const uint8_t *data, unsigned count);

/* And what timers do: data is the machine. */
void bc_usb_on_timer(uv_timer_t *timer);
void bc_usb_on_watch(uv_timer_t *timer);

/* The state `opening`, capture/usb_opening.c: its events; and what it ends with. */
void bc_usb_in_opening(struct bc_usb_machine *m, enum bc_usb_event event);
void bc_usb_begin_streaming(struct bc_usb_machine *m);

/* The state `stopping`, capture/usb_stopping.c: what it begins with, its events, and what follows
 * when all that was in flight is back. */
void bc_usb_begin_stopping(struct bc_usb_machine *m);
void bc_usb_in_stopping(struct bc_usb_machine *m, enum bc_usb_event event);
bool bc_usb_is_back(const struct bc_usb_machine *m);
void bc_usb_go_on(struct bc_usb_machine *m);

#endif
