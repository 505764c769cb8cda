/* Control requests to a board: as in docs/board-protocol.md, or FTDI's for a board with an
 * FT2232H or FT232H. One asynchronous transfer is used for all of them, one at a time. */
#ifndef BC_CAPTURE_USB_USB_REQUEST_H
#define BC_CAPTURE_USB_USB_REQUEST_H

#include <libusb.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture/usb/board.h"
#include "formats/base/must_check.h"

enum bc_usb_link {
	BC_USB_PLAIN, /* the plain stream, and the requests of the board protocol */
	BC_USB_FTDI,  /* two status bytes at the start of each packet, and FTDI's requests */
};

enum bc_usb_request_id {
	BC_USB_GET_INFO,
	BC_USB_GET_COUNTERS,
	BC_USB_START,
	BC_USB_STOP,
	BC_USB_FTDI_RESET,
	BC_USB_FTDI_FLUSH_OUTPUT, /* drop old data from the chip's buffers: from the host, */
	BC_USB_FTDI_FLUSH_INPUT,  /* and towards the host */
	BC_USB_FTDI_LATENCY,
	BC_USB_FTDI_MODE_RESET,
	BC_USB_FTDI_MODE, /* the chip starts to send */
	BC_USB_REQUESTS,
};

struct bc_usb_ftdi {
	uint8_t latency_ms; /* the chip sends a partly filled packet after this time */
	bool keeps_mode;    /* the chip keeps the mode that its EEPROM selects */
};

/* The board that a request goes to. */
struct bc_usb_target {
	libusb_device_handle *handle;
	uint8_t interface;
	struct bc_usb_ftdi ftdi;
};

struct bc_usb_request;

/* Called when a request has finished. `status` is 0, -EPIPE if the board does not know the request,
 * -ETIMEDOUT, -ENODEV, -ECANCELED or another negative errno. `data`: the answer, `count` bytes. */
typedef void (*bc_usb_request_cb)(
	void *context, enum bc_usb_request_id id, int status, const uint8_t *data, unsigned count);

/* Returns 0 or -ENOMEM. Close it only while no request is in flight. */
int bc_usb_request_open(
	struct bc_usb_request **request, bc_usb_request_cb callback, void *context) BC_MUST_CHECK;
void bc_usb_request_close(struct bc_usb_request *request);

/* Replaces libusb's transfer, which refers to the device of the last request. None may be in
 * flight. Returns 0 or -ENOMEM. */
int bc_usb_request_forget_device(struct bc_usb_request *request) BC_MUST_CHECK;

/* Sends a request. Returns 0, and the callback follows; or a negative errno. */
int bc_usb_request_send(struct bc_usb_request *request, const struct bc_usb_target *target,
	enum bc_usb_request_id id) BC_MUST_CHECK;

/* Cancels the request in flight, if any. The callback still follows. */
void bc_usb_request_cancel(struct bc_usb_request *request);

bool bc_usb_request_is_in_flight(const struct bc_usb_request *request);

/* "GET_INFO", ... */
const char *bc_usb_request_name(enum bc_usb_request_id id);

/* Parse the answers to GET_INFO and GET_COUNTERS. Return false if the answer is too short or has an
 * unknown protocol version; the board is then treated as if it had not answered. */
bool bc_usb_parse_info(struct bc_board *board, const uint8_t *data, unsigned count);
bool bc_usb_parse_counters(struct bc_board_counters *counters, const uint8_t *data, unsigned count);

#endif
