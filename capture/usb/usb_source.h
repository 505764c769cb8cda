/* A USB capture board as a source. The board may be absent at the start, be unplugged and come
 * back: the stream then has a break and continues. Events are logged through sink.log() and counted
 * in source.board. A break marks each place where samples may be missing.
 *
 * The stream ends when the source is stopped: it tells the board to stop and reads what the board
 * still holds. It also ends when the board sends its last frame unasked (bc_source_last_frame())
 * and then nothing for a second. With wait_ns it ends with -ENODEV if no board streams by then. */
#ifndef BC_CAPTURE_USB_USB_SOURCE_H
#define BC_CAPTURE_USB_USB_SOURCE_H

#include <uv.h>

#include "capture/source/source.h"
#include "capture/usb/usb_find.h"
#include "capture/usb/usb_request.h"
#include "capture/usb/usb_stream.h"
#include "formats/base/must_check.h"

/* The clock of raw6 samples if none is configured or reported: the host's nanoseconds. */
#define BC_USB_HOST_CLOCK_HZ 1000000000u

#define BC_USB_TRANSFERS_MAX      256u
#define BC_USB_TRANSFER_BYTES_MAX (16u << 20)

struct bc_usb_options {
	struct bc_usb_match match;
	bool has_id;             /* the VID:PID was configured and is not the default */
	enum bc_format protocol; /* BC_FORMAT_BCP1 or BC_FORMAT_RAW6 */
	enum bc_usb_link link;
	struct bc_usb_ftdi ftdi;
	unsigned transfers;       /* in flight: 1 .. BC_USB_TRANSFERS_MAX */
	uint32_t transfer_bytes;  /* BC_USB_TRANSFER_BYTES_MIN .. BC_USB_TRANSFER_BYTES_MAX */
	uint32_t timeout_ms;      /* per transfer; 0: none */
	uint64_t clock_hz;        /* if the board does not report it; 0: unknown */
	uint64_t wait_ns;         /* for the first board; 0: forever */
	uint64_t silence_ns;      /* warn after this long without data; 0: never */
	bool reset_on_silence;    /* and reset and reopen the board */
	uint64_t back_off_ns;     /* before the next attempt; doubles each time, */
	uint64_t back_off_max_ns; /* up to this */
};

/* Creates the source and starts libusb. Returns 0 or a negative errno: -ENOTSUP if libusb can't be
 * used, see bc_usb_loop_open(). */
int bc_usb_source_open(struct bc_source **source, uv_loop_t *loop,
	const struct bc_usb_options *options) BC_MUST_CHECK;

#endif
