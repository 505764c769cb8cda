/* Sends the control requests of the board protocol and FTDI's, from one table. One transfer,
 * allocated at the start, serves them all, one at a time. */
#include "capture/usb/usb_request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/usb/usb_find.h"
#include "formats/base/bytes.h"

#define TIMEOUT_MS 1000

#define INFO_BYTES     64
#define COUNTERS_BYTES 24

#define PROTOCOL_VERSION 1

/* Requests of the board protocol go to the interface. FTDI's go to the device, with the port
 * number, counted from 1, in wIndex. */
#define TO_INTERFACE   (LIBUSB_REQUEST_TYPE_VENDOR | LIBUSB_RECIPIENT_INTERFACE)
#define FROM_INTERFACE (LIBUSB_ENDPOINT_IN | TO_INTERFACE)
#define TO_FTDI        (LIBUSB_REQUEST_TYPE_VENDOR | LIBUSB_RECIPIENT_DEVICE)

/* FTDI's requests, as in libftdi's ftdi.h and Linux's ftdi_sio.h. */
enum { FTDI_RESET = 0, FTDI_SET_LATENCY = 9, FTDI_SET_BITMODE = 11 };
/* The directions are the host's, as in tcflush(): libftdi had them the wrong way round before 1.5,
 * and Linux's names are the chip's. */
enum { FTDI_RESET_ALL = 0, FTDI_FLUSH_OUTPUT = 1, FTDI_FLUSH_INPUT = 2 };
#define FTDI_ALL_PINS  0xFF
#define FTDI_SYNC_FIFO 0x40

struct bc_usb_request {
	bc_usb_request_cb callback;
	void *context;
	struct libusb_transfer *transfer;
	enum bc_usb_request_id id;
	bool is_in_flight;
	uint8_t buffer[LIBUSB_CONTROL_SETUP_SIZE + INFO_BYTES];
};

struct setup {
	const char *name;
	uint8_t type;
	uint8_t request;
	uint16_t value;
	uint16_t bytes;
};

static const struct setup setups[BC_USB_REQUESTS] = {
	[BC_USB_GET_INFO] = {"GET_INFO", FROM_INTERFACE, 1, 0, INFO_BYTES},
	[BC_USB_START] = {"START", TO_INTERFACE, 2, 0, 0},
	[BC_USB_STOP] = {"STOP", TO_INTERFACE, 3, 0, 0},
	[BC_USB_GET_COUNTERS] = {"GET_COUNTERS", FROM_INTERFACE, 4, 0, COUNTERS_BYTES},
	[BC_USB_FTDI_RESET] = {"FTDI reset", TO_FTDI, FTDI_RESET, FTDI_RESET_ALL, 0},
	[BC_USB_FTDI_FLUSH_OUTPUT] = {"FTDI output purge", TO_FTDI, FTDI_RESET, FTDI_FLUSH_OUTPUT,
		0},
	[BC_USB_FTDI_FLUSH_INPUT] = {"FTDI input purge", TO_FTDI, FTDI_RESET, FTDI_FLUSH_INPUT, 0},
	[BC_USB_FTDI_LATENCY] = {"FTDI latency timer", TO_FTDI, FTDI_SET_LATENCY, 0, 0},
	[BC_USB_FTDI_MODE_RESET] = {"FTDI bit mode reset", TO_FTDI, FTDI_SET_BITMODE, 0, 0},
	[BC_USB_FTDI_MODE] = {"FTDI bit mode", TO_FTDI, FTDI_SET_BITMODE, 0, 0},
};

const char *bc_usb_request_name(enum bc_usb_request_id id)
{
	return setups[id].name;
}

static void LIBUSB_CALL on_transfer(struct libusb_transfer *transfer)
{
	static const int statuses[] = {
		[LIBUSB_TRANSFER_COMPLETED] = 0,
		[LIBUSB_TRANSFER_ERROR] = -EIO,
		[LIBUSB_TRANSFER_TIMED_OUT] = -ETIMEDOUT,
		[LIBUSB_TRANSFER_CANCELLED] = -ECANCELED,
		[LIBUSB_TRANSFER_STALL] = -EPIPE,
		[LIBUSB_TRANSFER_NO_DEVICE] = -ENODEV,
		[LIBUSB_TRANSFER_OVERFLOW] = -EOVERFLOW,
	};
	struct bc_usb_request *r = transfer->user_data;
	int count = transfer->actual_length;

	r->is_in_flight = false;
	r->callback(r->context, r->id, statuses[transfer->status],
		libusb_control_transfer_get_data(transfer), count > 0 ? (unsigned)count : 0);
}

int bc_usb_request_send(
	struct bc_usb_request *r, const struct bc_usb_target *target, enum bc_usb_request_id id)
{
	const struct setup *setup = &setups[id];
	uint16_t value = setup->value;
	uint16_t index = target->interface;

	if (setup->type == TO_FTDI)
		index++;
	if (id == BC_USB_FTDI_LATENCY)
		value = target->ftdi.latency_ms;
	if (id == BC_USB_FTDI_MODE)
		value = FTDI_ALL_PINS | (target->ftdi.keeps_mode ? 0 : FTDI_SYNC_FIFO << 8);
	memset(r->buffer, 0, sizeof(r->buffer));
	libusb_fill_control_setup(
		r->buffer, setup->type, setup->request, value, index, setup->bytes);
	libusb_fill_control_transfer(
		r->transfer, target->handle, r->buffer, on_transfer, r, TIMEOUT_MS);
	errno = 0;
	int rc = libusb_submit_transfer(r->transfer);
	r->id = id;
	r->is_in_flight = rc == 0;
	/* libusb reports LIBUSB_ERROR_NO_MEM only for bulk transfers. */
	return rc == LIBUSB_ERROR_IO && errno == ENOMEM ? -ENOMEM : bc_usb_errno(rc);
}

void bc_usb_request_cancel(struct bc_usb_request *r)
{
	if (r->is_in_flight)
		libusb_cancel_transfer(r->transfer);
}

bool bc_usb_request_is_in_flight(const struct bc_usb_request *r)
{
	return r->is_in_flight;
}

int bc_usb_request_open(struct bc_usb_request **request, bc_usb_request_cb callback, void *context)
{
	struct bc_usb_request *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return -ENOMEM;
	r->callback = callback;
	r->context = context;
	r->transfer = libusb_alloc_transfer(0);
	if (r->transfer == NULL) {
		free(r);
		return -ENOMEM;
	}
	*request = r;
	return 0;
}

int bc_usb_request_forget_device(struct bc_usb_request *r)
{
	struct libusb_transfer *transfer = libusb_alloc_transfer(0);

	if (transfer == NULL)
		return -ENOMEM;
	libusb_free_transfer(r->transfer);
	r->transfer = transfer;
	return 0;
}

void bc_usb_request_close(struct bc_usb_request *r)
{
	if (r == NULL)
		return;
	libusb_free_transfer(r->transfer);
	free(r);
}

/* Text that fills its field is not zero-terminated. */
static void read_text(char *out, const uint8_t *in, size_t bytes)
{
	memcpy(out, in, bytes);
	out[bytes] = '\0';
	bc_usb_make_printable(out);
}

bool bc_usb_parse_info(struct bc_board *board, const uint8_t *data, unsigned count)
{
	if (count < INFO_BYTES || bc_le32(data) != PROTOCOL_VERSION)
		return false;
	board->has_info = true;
	board->protocol_version = bc_le32(data);
	board->clock_hz = bc_le32(data + 4);
	board->features = bc_le32(data + 8);
	board->fifo_samples = bc_le32(data + 12);
	read_text(board->firmware, data + 16, 16);
	read_text(board->own_serial, data + 32, 32);
	return true;
}

bool bc_usb_parse_counters(struct bc_board_counters *counters, const uint8_t *data, unsigned count)
{
	if (count < COUNTERS_BYTES)
		return false;
	counters->samples = bc_le64(data);
	counters->lost = bc_le64(data + 8);
	counters->fifo_high = bc_le64(data + 16);
	return true;
}
