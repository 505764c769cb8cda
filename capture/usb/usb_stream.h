/* The bulk IN transfers of an open board: keeps some in flight and passes on their data in order.
 *
 *     bc_usb_stream_open()     allocates the memory
 *     bc_usb_stream_start()    submits the transfers; on_data() and on_fault() are called from now
 *     bc_usb_stream_cancel()   cancels them; bc_usb_stream_is_idle() when all have come back
 *     ... start again, or
 *     bc_usb_stream_close()    only when idle
 *
 * A transfer that can't be submitted is left out. If there is not enough usbfs memory for even one,
 * transfers get shorter. bc_usb_stream_fill() tries to restore both. */
#ifndef BC_CAPTURE_USB_USB_STREAM_H
#define BC_CAPTURE_USB_USB_STREAM_H

#include "formats/base/must_check.h"

#include <libusb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The shortest transfer; holds a packet of any endpoint. */
#define BC_USB_TRANSFER_BYTES_MIN 4096u

struct bc_usb_stream;

enum bc_usb_fault {
	BC_USB_STALL,    /* the endpoint is halted, until the halt is cleared */
	BC_USB_OVERFLOW, /* the board sent more than requested: the excess is lost */
	BC_USB_TIMEOUT,  /* the transfer timed out; nothing is lost */
	BC_USB_ERROR,    /* the transfer failed */
	BC_USB_REFUSED,  /* no transfer can be submitted, though there is memory; nothing is lost
			  * yet */
	BC_USB_GONE,     /* the device is gone */
};
#define BC_USB_FAULTS (BC_USB_GONE + 1)

struct bc_usb_stream_options {
	unsigned transfers;
	uint32_t transfer_bytes; /* at least BC_USB_TRANSFER_BYTES_MIN; rounded down to packets */
	uint32_t timeout_ms;     /* 0: none */
	void *context;

	/* Bytes of the stream, at least one; valid until it returns. */
	void (*on_data)(void *context, uint8_t *bytes, size_t count);

	/* A transfer failed; any data it carried came first. Call bc_usb_stream_cancel() to end the
	 * stream. After that only BC_USB_GONE is reported, possibly more than once. */
	void (*on_fault)(void *context, enum bc_usb_fault fault);
};

/* Allocates the transfers. Returns 0 or -ENOMEM. */
int bc_usb_stream_open(
	struct bc_usb_stream **stream, const struct bc_usb_stream_options *options) BC_MUST_CHECK;

/* Frees it; it must be idle. NULL may be passed. */
void bc_usb_stream_close(struct bc_usb_stream *stream);

/* Replaces libusb's transfers, which refer to the device of their last submission. It must be
 * idle. Returns 0, or -ENOMEM, after which some of them still do. */
int bc_usb_stream_forget_device(struct bc_usb_stream *stream) BC_MUST_CHECK;

/* Submits the transfers to an endpoint. Returns 0 if at least one is in flight, else a negative
 * errno, and the stream is idle. */
int bc_usb_stream_start(struct bc_usb_stream *stream, libusb_device_handle *handle,
	uint8_t endpoint, uint16_t packet_bytes) BC_MUST_CHECK;

/* Submits the transfers that are not in flight. If all are, but shortened, they get longer when
 * they are next submitted. Returns 0 or the first failure. The stream continues either way, as
 * long as a transfer is in flight. */
int bc_usb_stream_fill(struct bc_usb_stream *stream);

/* Cancels one transfer to free its usbfs memory; it is left out until bc_usb_stream_fill(). If it
 * is the only one, it is resubmitted shorter. Returns false if it can't get any shorter. */
bool bc_usb_stream_release_one(struct bc_usb_stream *stream);

/* Cancels all transfers. Data that they carry is still passed on; nothing is resubmitted. */
void bc_usb_stream_cancel(struct bc_usb_stream *stream);

bool bc_usb_stream_is_idle(const struct bc_usb_stream *stream);

/* The number of transfers in flight, and the length of the shortest. */
unsigned bc_usb_stream_in_flight(const struct bc_usb_stream *stream);
uint32_t bc_usb_stream_bytes(const struct bc_usb_stream *stream);

#endif
