/* Turns the transfers of a USB board into pieces for the sink: adds arrival times, and inserts a
 * break where samples may be missing. It also tracks how long the board has sent nothing.
 *
 * bc_usb_framer_break() opens a break when something goes wrong; the next data closes it, and the
 * sink then receives it with its duration. Further faults meanwhile do not add a break, but can
 * make the open one more severe. */
#ifndef BC_CAPTURE_USB_USB_FRAMER_H
#define BC_CAPTURE_USB_USB_FRAMER_H

#include <stddef.h>
#include <stdint.h>

#include "capture/source/source.h"
#include "capture/usb/board.h"
#include "capture/usb/usb_request.h"
#include "capture/usb/usb_stream.h"

struct bc_usb_framer {
	struct bc_source *source;
	struct bc_board *board;
	enum bc_format protocol;
	enum bc_usb_link link;
	bool is_ended;     /* no longer call the sink */
	bool has_streamed; /* a board has streamed since the source was started */

	uint64_t base_ns;       /* when transfers were first submitted; 0: not yet */
	uint64_t arrived_ns;    /* arrival of the latest piece, relative to base_ns */
	uint64_t last_data_ns;  /* when data last arrived */
	uint64_t last_frame_ns; /* when the last frame arrived; 0: none, or data followed it */
	bool is_silent;         /* the silence has been logged */
	unsigned faults;        /* consecutive, with no data in between */
	uint64_t reported_ns[BC_USB_FAULTS]; /* when each fault was last logged */

	bool has_break;
	bool has_resubmitted; /* transfers were submitted again after the restart */
	struct bc_source_break broken;
	uint64_t broken_ns; /* when the break was opened */
};

/* Logs a sentence through the sink. The format is its kind (see bc_source_sink.log). Use the first
 * function if the kind is not the format. */
void bc_usb_framer_log_text(struct bc_usb_framer *framer, enum bc_source_level level,
	const char *kind, const char *what);
void bc_usb_framer_log(struct bc_usb_framer *framer, enum bc_source_level level, const char *format,
	...) __attribute__((format(printf, 3, 4)));

/* Starts the clock. Call it whenever transfers have been submitted. */
void bc_usb_framer_start(struct bc_usb_framer *framer);

/* Passes on the data of a transfer, which consists of packets of packet_bytes. Changes `bytes`. */
void bc_usb_framer_bytes(
	struct bc_usb_framer *framer, uint8_t *bytes, size_t count, uint16_t packet_bytes);

/* Counts and logs a failed transfer. Opens a break if samples may be lost. */
void bc_usb_framer_fault(struct bc_usb_framer *framer, enum bc_usb_fault fault);

/* Opens a break. Does nothing before the first board has streamed. */
void bc_usb_framer_break(struct bc_usb_framer *framer, enum bc_gap_cause cause, bool is_restart);

/* Closes the break, if one is open, and passes it to the sink. */
void bc_usb_framer_resume(struct bc_usb_framer *framer);

/* Passes on the board's own count of samples lost since it was started. */
void bc_usb_framer_lost(struct bc_usb_framer *framer, uint64_t lost);

/* The FT2232H and FT232H send two bytes of modem and line status at the start of each packet. */

#define BC_FTDI_STATUS_BYTES 2

/* Removes the status bytes from the data of one transfer, in place. The data starts with a packet;
 * all packets except the last have packet_bytes. Returns the number of bytes left at `bytes`. */
size_t bc_ftdi_strip(uint8_t *bytes, size_t count, size_t packet_bytes);

#endif
