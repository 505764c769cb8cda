/* The bulk IN transfers of an open board: a number of them always in flight, their data handed on
 * in the order of the stream.
 *
 *     bc_usb_stream_open()     takes the memory
 *     bc_usb_stream_start()    submits them; on_data() and on_fault() are called from then on
 *     bc_usb_stream_cancel()   takes them back; bc_usb_stream_is_idle() when all are
 *     ... start again, or
 *     bc_usb_stream_close()    only when idle
 *
 * A transfer that can't be submitted stays out, and where there is no usbfs memory for a single one
 * they become shorter. bc_usb_stream_fill() tries to get back what is missing. */
#ifndef BC_CAPTURE_USB_USB_STREAM_H
#define BC_CAPTURE_USB_USB_STREAM_H

#include "formats/base/must_check.h"

#include <libusb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The shortest transfer: any endpoint's packets fit into it. */
#define BC_USB_TRANSFER_LEAST 4096u

struct bc_usb_stream;

enum bc_usb_fault {
	BC_USB_STALL,    /* the endpoint is halted, until somebody clears that */
	BC_USB_OVERFLOW, /* the board sent more than was asked for: the excess is lost */
	BC_USB_TIMEOUT,  /* the transfer's time was up; nothing is lost */
	BC_USB_ERROR,    /* the transfer failed on its way */
	BC_USB_REFUSED,  /* none can be submitted, though there is memory; nothing is lost yet */
	BC_USB_GONE,     /* the device is gone */
};
#define BC_USB_FAULTS (BC_USB_GONE + 1)

struct bc_usb_stream_options {
	unsigned transfers;
	uint32_t transfer_bytes; /* BC_USB_TRANSFER_LEAST or more; cut to whole packets */
	uint32_t timeout_ms;     /* 0: none */
	void *context;

	/* Bytes of the stream, valid until it returns, at least one. */
	void (*on_data)(void *context, uint8_t *bytes, size_t count);

	/* What a transfer ended with; what data it had came before. Calls bc_usb_stream_cancel() if
	 * the stream shall not go on; from then on only BC_USB_GONE is told, and may be again. */
	void (*on_fault)(void *context, enum bc_usb_fault fault);
};

/* Takes the memory. Returns 0 or -ENOMEM. */
int bc_usb_stream_open(
	struct bc_usb_stream **stream, const struct bc_usb_stream_options *options) BC_MUST_CHECK;

/* Frees it; it must be idle. NULL is none. */
void bc_usb_stream_close(struct bc_usb_stream *stream);

/* Submits the transfers to an endpoint. Returns 0 when at least one is in flight, else a negative
 * errno, and the stream is idle. */
int bc_usb_stream_start(struct bc_usb_stream *stream, libusb_device_handle *handle,
	uint8_t endpoint, uint16_t packet_bytes) BC_MUST_CHECK;

/* Submits what of the transfers is not in flight, once more; when all are, but short, they grow
 * when they are submitted next. Returns 0, or what the first failure says; the stream goes on
 * either way, unless it is idle then. */
int bc_usb_stream_fill(struct bc_usb_stream *stream);

/* Takes one back, for the sake of its usbfs memory; until the next bc_usb_stream_fill() there is
 * one less. The last one is submitted again, shorter. Returns false when that is as short as can
 * be. */
bool bc_usb_stream_spare(struct bc_usb_stream *stream);

/* Takes all transfers back. What data they carry still comes; nothing is submitted any more. */
void bc_usb_stream_cancel(struct bc_usb_stream *stream);

bool bc_usb_stream_is_idle(const struct bc_usb_stream *stream);

/* How many transfers are in flight, and how long the shortest of them is. */
unsigned bc_usb_stream_flying(const struct bc_usb_stream *stream);
uint32_t bc_usb_stream_bytes(const struct bc_usb_stream *stream);

#endif
