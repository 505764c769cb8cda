/* What a USB board's stream becomes for the sink: pieces with their times, and breaks where samples
 * may be missing. It keeps the time of the stream, and knows how long the board has been silent.
 *
 * A break is begun when something goes wrong and ended when the stream goes on, so that it knows
 * how long it lasted; what goes wrong in between makes it no second one, but may make it a worse
 * one. */
#ifndef BC_CAPTURE_USB_USB_FRAMER_H
#define BC_CAPTURE_USB_USB_FRAMER_H

#include "capture/source/source.h"
#include "capture/usb/board.h"
#include "capture/usb/usb_request.h"
#include "capture/usb/usb_stream.h"

struct bc_usb_framer {
	struct bc_source *source;
	struct bc_board *board;
	enum bc_format protocol;
	enum bc_usb_link link;
	bool is_cut;       /* the sink is not to be called any more */
	bool has_streamed; /* a board has begun to send */

	uint64_t base_ns;       /* when transfers were in flight first; 0: not yet */
	uint64_t arrived_ns;    /* of the latest piece, since base_ns */
	uint64_t heard_ns;      /* when there was data last */
	uint64_t last_frame_ns; /* when the board sent its last frame; 0: it hasn't, or went on */
	bool is_silent;         /* and that was told */
	unsigned faults;        /* in a row, without data in between */
	uint64_t reported_ns[BC_USB_FAULTS]; /* when each fault was told last */

	bool has_break;
	bool is_begun_again; /* transfers have been submitted since that restart */
	struct bc_source_break broken;
	uint64_t broken_ns; /* since when */
};

/* A sentence for the log; its format is its kind. The other is of a kind that is known otherwise.
 */
void bc_usb_framer_log_text(
	struct bc_usb_framer *feed, enum bc_news news, const char *kind, const char *what);
void bc_usb_framer_log(struct bc_usb_framer *feed, enum bc_news news, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Transfers are in flight from now on, for the first time or again: time runs. */
void bc_usb_framer_start(struct bc_usb_framer *feed);

/* Bytes as a transfer brought them, in packets of packet_bytes; they may be moved. */
void bc_usb_framer_bytes(
	struct bc_usb_framer *feed, uint8_t *bytes, size_t count, uint16_t packet_bytes);

/* Counts and tells what a transfer ended with. What costs samples begins a break. */
void bc_usb_framer_fault(struct bc_usb_framer *feed, enum bc_usb_fault fault);

/* The stream breaks off here. Before any board has streamed there is nothing to break. */
void bc_usb_framer_break(struct bc_usb_framer *feed, enum bc_gap_cause cause, bool is_restart);

/* It goes on, or ends: tells the sink of the break, if there is one. */
void bc_usb_framer_resume(struct bc_usb_framer *feed);

/* The board counts so many samples as lost since it was started. */
void bc_usb_framer_lost(struct bc_usb_framer *feed, uint64_t lost);

#endif
