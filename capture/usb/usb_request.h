/* The control requests that a board is spoken to with: those of docs/board-protocol.md, or, where
 * an FTDI FT2232H or FT232H stands between, that chip's. One transfer, used for one request after
 * the other, never waited for. */
#ifndef BC_CAPTURE_USB_USB_REQUEST_H
#define BC_CAPTURE_USB_USB_REQUEST_H

#include <libusb.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture/usb/board.h"
#include "formats/base/must_check.h"

enum bc_usb_link {
	BC_USB_PLAIN, /* the stream as it is, and the requests of the board protocol */
	BC_USB_FTDI,  /* two status bytes at the head of each packet, and FTDI's requests */
};

enum bc_usb_step {
	BC_USB_GET_INFO,
	BC_USB_GET_COUNTERS,
	BC_USB_START,
	BC_USB_STOP,
	BC_USB_FTDI_RESET,
	BC_USB_FTDI_PURGE, /* what its receive buffer holds is of an earlier time */
	BC_USB_FTDI_LATENCY,
	BC_USB_FTDI_MODE_RESET,
	BC_USB_FTDI_MODE, /* it begins to send */
	BC_USB_STEPS,
};

struct bc_usb_ftdi {
	uint8_t latency_ms; /* a packet that doesn't fill is sent after so long */
	uint8_t mode;       /* as SET_BITMODE takes it: 0x40 is synchronous FIFO, 0 leaves the
			     * asynchronous one that the chip's EEPROM chose */
};

/* What a request needs to know of its board. */
struct bc_usb_target {
	libusb_device_handle *handle;
	uint8_t interface;
	struct bc_usb_ftdi ftdi;
};

struct bc_usb_request;

/* Called when a request is done: `status` is 0, -EPIPE where the board doesn't know it, -ETIMEDOUT,
 * -ENODEV, -ECANCELED or another negative errno; `count` bytes of `data` were answered. */
typedef void (*bc_usb_answer)(
	void *context, enum bc_usb_step step, int status, const uint8_t *data, unsigned count);

/* Returns 0 or -ENOMEM. Closed only while none is in flight. */
int bc_usb_request_open(
	struct bc_usb_request **request, bc_usb_answer answer, void *context) BC_MUST_CHECK;
void bc_usb_request_close(struct bc_usb_request *request);

/* Sends one. Returns 0, and the answer follows, or a negative errno. */
int bc_usb_request_send(struct bc_usb_request *request, const struct bc_usb_target *target,
	enum bc_usb_step step) BC_MUST_CHECK;

/* Takes back the one in flight, if there is one; its answer follows all the same. */
void bc_usb_request_cancel(struct bc_usb_request *request);

bool bc_usb_request_is_flying(const struct bc_usb_request *request);

/* "GET_INFO", ... */
const char *bc_usb_step_name(enum bc_usb_step step);

/* Read what GET_INFO and GET_COUNTERS answered. Return false when that is too short, or says a
 * version of the protocol that nobody knows: the board is then as one that doesn't answer. */
bool bc_usb_read_info(struct bc_board *board, const uint8_t *data, unsigned count);
bool bc_usb_read_counters(struct bc_board_counters *counters, const uint8_t *data, unsigned count);

#endif
