/* A capture board on the USB as a source. It may be absent at the start, leave and come back: the
 * stream then has a break, and goes on. What happens on the way is told to sink.news(), counted in
 * source.board, and where samples may be missing, a break says so at its place.
 *
 * The stream ends when the source is stopped (the board is told to stop, what it still holds is
 * taken), or when the board itself has sent its last frame (bc_source_last()) and nothing more for
 * a second. With a wait_ns it also ends, with -ENODEV, when no board has begun to stream by then.
 */
#ifndef BC_CAPTURE_USB_USB_SOURCE_H
#define BC_CAPTURE_USB_USB_SOURCE_H

#include <uv.h>

#include "capture/source/source.h"
#include "capture/usb/usb_find.h"
#include "capture/usb/usb_request.h"
#include "capture/usb/usb_stream.h"
#include "formats/base/must_check.h"

/* The clock of raw6 samples where nobody tells another: nanoseconds of the host. */
#define BC_USB_HOST_CLOCK_HZ 1000000000u

#define BC_USB_TRANSFERS_MAX      256u
#define BC_USB_TRANSFER_BYTES_MAX (16u << 20)

struct bc_usb_options {
	struct bc_usb_wish wish;
	bool has_id;             /* its VID:PID was chosen, and is not just the default */
	enum bc_format protocol; /* BC_FORMAT_BCP1 or BC_FORMAT_RAW6 */
	enum bc_usb_link link;
	struct bc_usb_ftdi ftdi;
	unsigned transfers;       /* in flight: 1 .. BC_USB_TRANSFERS_MAX */
	uint32_t transfer_bytes;  /* BC_USB_TRANSFER_LEAST .. BC_USB_TRANSFER_BYTES_MAX */
	uint32_t timeout_ms;      /* of a transfer; 0: none */
	uint64_t clock_hz;        /* for a board that doesn't tell; 0: not known */
	uint64_t wait_ns;         /* for the first board; 0: for ever */
	uint64_t silence_ns;      /* no data for so long while streaming is said; 0: never */
	bool restarts_silent;     /* and the board reset and opened anew */
	uint64_t back_off_ns;     /* before the next try; twice that each time, */
	uint64_t back_off_max_ns; /* up to this */
};

/* 1209:0001, bcp1, 16 transfers of 64 KiB, ... */
struct bc_usb_options bc_usb_options_default(void);

/* Makes the source and starts libusb. Returns 0, -ENOMEM, or -ENOTSUP where libusb can't work. */
int bc_usb_source_open(struct bc_source **source, uv_loop_t *loop,
	const struct bc_usb_options *options) BC_MUST_CHECK;

#endif
