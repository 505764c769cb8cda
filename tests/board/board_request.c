/* The control requests of a board: those of the USB, of docs/board-protocol.md, or of an FTDI chip.
 *
 * The daemon's tests can't find a mistake that capture/usb and this folder have in common. So each
 * fact that both rely on was checked against a source that is not ours:
 *
 * Linux, include/uapi/linux/usb/ch9.h:
 * - standard requests, bmRequestType, ENDPOINT_HALT, the types of descriptors
 *
 * USB 2.0:
 * - 5.8.3: packets of a bulk endpoint have up to 64 bytes at full speed, 512 at high speed
 * - 9.4.5: SET_CONFIGURATION and SET_INTERFACE end a halt, even if they change nothing
 *
 * Linux, include/uapi/linux/usbdevice_fs.h, which usbfs*.c compiles against:
 * - the ioctls of usbfs, their structures and capabilities
 *
 * libusbredirparser, which usbredir_*.c call:
 * - the packets of usbredir
 *
 * Linux, drivers/usb/serial/ftdi_sio.h:
 * - FTDI's bmRequestType is 40; wIndex is the port, counted from 1
 * - bRequest 0 resets: wValue 0 empties both buffers, 1 and 2 one of them each
 * - bRequest 9 sets the latency in milliseconds; it is 16 at first
 * - two status bytes begin each packet, also those that the chip sends without data
 *
 * libftdi 1.5, src/ftdi.h and ftdi.c:
 * - wValue 1 empties the buffer from the host, 2 the one towards the host ("History": the names RX
 *   and TX are the chip's, and earlier versions confused them)
 * - bRequest 11 sets the bit mode: the mode is in the high byte of wValue, the pins in the low one;
 *   mode 0 is a reset, 40 the synchronous FIFO
 *
 * No such source says that bit mode 0 stops the chip within a frame and keeps its buffer. The
 * daemon must work if it does, and if it does not. */
#include "tests/board/board_internal.h"

#include <errno.h>
#include <string.h>

#include "formats/base/bytes.h"

/* bmRequestType */
#define IN        0x80
#define VENDOR    0x40
#define TYPE      0x60
#define RECIPIENT 0x1F
#define DEVICE    0
#define INTERFACE 1
#define ENDPOINT  2

#define INFO_BYTES     64
#define FIRMWARE_AT    16
#define FIRMWARE_BYTES 16
#define SERIAL_AT      32
#define SERIAL_BYTES   32
#define COUNTERS_BYTES 24

#define FTDI_BUFFER_BYTES 1024 /* of an FT232H, towards the host */

struct setup {
	uint8_t type;
	uint8_t request;
	uint16_t value;
	uint16_t index;
	uint16_t length;
};

/* Answers an IN request with n bytes, cut to wLength. */
static int answer(const struct setup *s, uint8_t *data, const uint8_t *bytes, size_t n)
{
	if (n > s->length)
		n = s->length;
	if (n != 0)
		memcpy(data, bytes, n);
	return (int)n;
}

static bool is_endpoint(const struct board *board, uint16_t index)
{
	return index == BOARD_ENDPOINT || (board->options.is_ftdi && index == 0x02);
}

static int get_status(const struct board *board, const struct setup *s, uint8_t *data)
{
	uint8_t status[2] = {0};

	switch (s->type & RECIPIENT) {
	case DEVICE:
		status[0] = board->is_self_powered;
		break;
	case INTERFACE:
		break;
	case ENDPOINT:
		status[0] = s->index == BOARD_ENDPOINT && board->is_halted;
		break;
	default:
		return -EPIPE;
	}
	return answer(s, data, status, sizeof(status));
}

/* ENDPOINT_HALT is the only feature. */
static int clear_feature(struct board *board, const struct setup *s)
{
	if ((s->type & RECIPIENT) != ENDPOINT || s->value != 0 || !is_endpoint(board, s->index))
		return -EPIPE;
	if (s->index == BOARD_ENDPOINT)
		board->is_halted = false;
	return 0;
}

static int set_interface(struct board *board, const struct setup *s)
{
	unsigned settings = board->lie == BOARD_LIE_ALTERNATE ? 2 : 1;

	if (s->index > board_interface(board) || s->value >= settings)
		return -EPIPE;
	if (s->index == board_interface(board)) {
		board->alternate = (uint8_t)s->value;
		board->is_halted = false;
	}
	return 0;
}

static int get_interface(const struct board *board, const struct setup *s, uint8_t *data)
{
	if (s->index > board_interface(board))
		return -EPIPE;
	uint8_t alternate = s->index == board_interface(board) ? board->alternate : 0;
	return answer(s, data, &alternate, 1);
}

static int set_configuration(struct board *board, const struct setup *s)
{
	if (s->value > 1)
		return -EPIPE;
	board->configuration = (uint8_t)s->value;
	board->alternate = 0;
	board->is_halted = false;
	return 0;
}

static int get_descriptor(const struct board *board, const struct setup *s, uint8_t *data)
{
	uint8_t bytes[512];
	size_t n = board_descriptor(board, s->value >> 8, s->value & 0xFF, bytes, sizeof(bytes));

	return n == 0 ? -EPIPE : answer(s, data, bytes, n);
}

static int standard_in(const struct board *board, const struct setup *s, uint8_t *data)
{
	switch (s->request) {
	case 0:
		return get_status(board, s, data);
	case 6:
		return get_descriptor(board, s, data);
	case 8:
		return answer(s, data, &board->configuration, 1);
	case 10:
		return get_interface(board, s, data);
	default:
		return -EPIPE;
	}
}

static int standard_out(struct board *board, const struct setup *s)
{
	switch (s->request) {
	case 1:
		return clear_feature(board, s);
	case 9:
		return set_configuration(board, s);
	case 11:
		return set_interface(board, s);
	default:
		return -EPIPE;
	}
}

static int get_info(const struct board *board, const struct setup *s, uint8_t *data)
{
	uint8_t info[INFO_BYTES] = {0};
	size_t firmware = board->firmware.length < FIRMWARE_BYTES ? board->firmware.length
								  : FIRMWARE_BYTES;

	bc_write_le32(info, 1);
	bc_write_le32(info + 4, (uint32_t)board_clock_hz(board));
	bc_write_le32(info + 12, board->options.fifo_samples);
	memcpy(info + FIRMWARE_AT, board->firmware.bytes, firmware);
	board_serial(board, info + SERIAL_AT, SERIAL_BYTES);
	if (board->lie == BOARD_LIE_WILD_INFO)
		memset(info, 0xFF, sizeof(info));
	return answer(s, data, info, board->lie == BOARD_LIE_SHORT_INFO ? 20 : sizeof(info));
}

static int get_counters(const struct board *board, const struct setup *s, uint8_t *data)
{
	uint8_t counters[COUNTERS_BYTES];

	bc_write_le64(counters, board->ledger.sums.captured);
	bc_write_le64(counters + 8, board->ledger.sums.captured_lost);
	bc_write_le64(counters + 16, board->held_most);
	return answer(s, data, counters, sizeof(counters));
}

/* Handles the requests of docs/board-protocol.md. */
static int board_request(struct board *board, const struct setup *s, uint8_t *data)
{
	bool is_in = (s->type & IN) != 0;

	if ((s->type & RECIPIENT) != INTERFACE || s->value != 0 ||
		s->index != board_interface(board) || (!is_in && s->length != 0))
		return -EPIPE;
	if (is_in && s->request == 1)
		return get_info(board, s, data);
	if (is_in && s->request == 4)
		return get_counters(board, s, data);
	if (!is_in && s->request == 2) {
		board->ledger.sums.starts++;
		board_stream_start(board);
		return 0;
	}
	if (!is_in && s->request == 3) {
		board->ledger.sums.stops++;
		board_stream_stop(board);
		return 0;
	}
	return -EPIPE;
}

static int set_bit_mode(struct board *board, const struct setup *s)
{
	board->ftdi.bit_mode = (uint8_t)(s->value >> 8);
	board->ftdi.bit_mask = (uint8_t)s->value;
	if (board->ftdi.bit_mode == BOARD_FTDI_SYNC_FIFO) {
		board->ledger.sums.starts++;
		board_stream_start(board);
	} else if (board->ftdi.bit_mode == 0) {
		board->ledger.sums.stops++;
		board_stream_halt(board, FTDI_BUFFER_BYTES);
	}
	return 0;
}

/* FTDI's reset: wValue 0 empties both buffers, 1 the one from the host, which holds nothing here, 2
 * the one towards the host. */
static int reset(struct board *board, const struct setup *s)
{
	if (s->value > 2)
		return -EPIPE;
	if (s->value == 0)
		board->ftdi.resets++;
	else
		board->ftdi.purges++;
	if (s->value != 1)
		board_stream_cut(board);
	return 0;
}

static int ftdi_request(struct board *board, const struct setup *s)
{
	if (s->type != VENDOR || s->length != 0)
		return -EPIPE;
	switch (s->request) {
	case 0:
		return reset(board, s);
	case 9:
		if (s->value < 1 || s->value > 255)
			return -EPIPE;
		board->ftdi.latency_ms = (uint8_t)s->value;
		return 0;
	case 11:
		return set_bit_mode(board, s);
	default:
		return -EPIPE;
	}
}

int board_control(struct board *board, const uint8_t setup[8], uint8_t *data, uint64_t now_ns)
{
	struct setup s = {
		.type = setup[0],
		.request = setup[1],
		.value = bc_le16(setup + 2),
		.index = bc_le16(setup + 4),
		.length = bc_le16(setup + 6),
	};

	if (!board->is_plugged)
		return -ENODEV;
	board_advance(board, now_ns);
	if ((s.type & TYPE) == 0)
		return (s.type & IN) != 0 ? standard_in(board, &s, data) : standard_out(board, &s);
	if ((s.type & TYPE) != VENDOR)
		return -EPIPE;
	if (board->requests == BOARD_STALLS)
		return -EPIPE;
	if (board->requests == BOARD_HANGS)
		return -ETIMEDOUT;
	return board->options.is_ftdi ? ftdi_request(board, &s) : board_request(board, &s, data);
}
