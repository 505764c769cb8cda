#include "tests/board/board_internal.h"

#include <string.h>

#include "formats/base/bytes.h"

enum {
	DEVICE = 1,
	CONFIGURATION = 2,
	STRING = 3,
	INTERFACE = 4,
	ENDPOINT = 5,
	COMPANION = 48,
};

enum { MANUFACTURER = 1, PRODUCT, SERIAL };

#define FULL_SPEED_PACKET  64
#define SUPER_SPEED_PACKET 1024

#define VENDOR_CLASS 0xFF
#define DATA_CLASS   0x0A /* CDC data, which no driver claims by itself */

/* The most that a host accepts. */
#define MANY_INTERFACES 32

#define LONG_CONFIG_BYTES 4096

struct descriptors {
	uint8_t bytes[512];
	size_t n;
};

static uint8_t *add(struct descriptors *d, uint8_t length, uint8_t type)
{
	uint8_t *p = d->bytes + d->n;

	p[0] = length;
	p[1] = type;
	d->n += length;
	return p;
}

static bool is_super(const struct board *board)
{
	return board->options.packet_bytes == SUPER_SPEED_PACKET;
}

static uint16_t usb_version(const struct board *board)
{
	if (is_super(board))
		return 0x0300;
	return board->options.packet_bytes == FULL_SPEED_PACKET ? 0x0110 : 0x0200;
}

static void add_device(const struct board *board, struct descriptors *d)
{
	uint8_t *p = add(d, 18, DEVICE);

	bc_write_le16(p + 2, usb_version(board));
	p[7] = is_super(board) ? 9 : 64; /* at super speed, the exponent of 2 */
	bc_write_le16(p + 8, board->options.vid);
	bc_write_le16(p + 10, board->options.pid);
	bc_write_le16(p + 12, board->options.is_ftdi ? 0x0900 : 0x0100);
	p[14] = MANUFACTURER;
	p[15] = PRODUCT;
	p[16] = board->serial.length != 0 || board->lie == BOARD_LIE_WILD_SERIAL ? SERIAL : 0;
	p[17] = 1;
}

static void add_interface(struct descriptors *d, unsigned number, unsigned alternate,
	unsigned endpoints, uint8_t class)
{
	uint8_t *p = add(d, 9, INTERFACE);

	p[2] = (uint8_t)number;
	p[3] = (uint8_t)alternate;
	p[4] = (uint8_t)endpoints;
	p[5] = class;
	p[6] = class == VENDOR_CLASS ? 0xFF : 0;
	p[7] = class == VENDOR_CLASS ? 0xFF : 0;
}

static void add_endpoint(const struct board *board, struct descriptors *d, uint8_t address,
	uint8_t attributes, uint16_t packet)
{
	uint8_t *p = add(d, 7, ENDPOINT);

	p[2] = address;
	p[3] = attributes;
	bc_write_le16(p + 4, packet);
	if (attributes == 1)
		p[6] = 1; /* interval of an isochronous endpoint */
	if (is_super(board))
		add(d, 6, COMPANION);
}

static void add_endpoints(const struct board *board, struct descriptors *d)
{
	uint16_t packet = board->options.packet_bytes;
	uint8_t address = board->lie == BOARD_LIE_OUT_ENDPOINT ? BOARD_ENDPOINT & 0x7F
							       : BOARD_ENDPOINT;
	uint8_t attributes = board->lie == BOARD_LIE_ISO_ENDPOINT ? 1 : 2;
	uint16_t reported = packet;

	if (board->lie == BOARD_LIE_ZERO_PACKET)
		reported = 0;
	else if (board->lie == BOARD_LIE_HUGE_PACKET)
		reported = 0xFFFF;
	add_endpoint(board, d, address, attributes, reported);
	if (board->options.is_ftdi)
		add_endpoint(board, d, 0x02, 2, packet);
}

unsigned board_interface(const struct board *board)
{
	return board->lie == BOARD_LIE_MANY_INTERFACES ? MANY_INTERFACES - 1 : 0;
}

static void add_configuration(const struct board *board, struct descriptors *d)
{
	unsigned number = board_interface(board);
	unsigned endpoints = board->options.is_ftdi ? 2 : 1;
	uint8_t class = board->lie == BOARD_LIE_WRONG_CLASS ? DATA_CLASS : VENDOR_CLASS;
	uint8_t *p = add(d, 9, CONFIGURATION);

	p[4] = (uint8_t)(number + 1);
	p[5] = 1;
	p[7] = board->is_self_powered ? 0xC0 : 0x80;
	p[8] = 50;
	for (unsigned i = 0; i < number; i++)
		add_interface(d, i, 0, 0, i % 2 == 0 ? VENDOR_CLASS : DATA_CLASS);
	if (board->lie == BOARD_LIE_ALTERNATE)
		add_interface(d, number, 0, 0, class);
	if (board->lie == BOARD_LIE_NO_ENDPOINT) {
		add_interface(d, number, 0, 0, class);
	} else {
		add_interface(d, number, board->lie == BOARD_LIE_ALTERNATE, endpoints, class);
		add_endpoints(board, d);
	}
	if (board->lie == BOARD_LIE_TRUNCATED_CONFIG)
		d->n -= 3; /* cut within the endpoint descriptor */
	bc_write_le16(p + 2, (uint16_t)d->n);
	if (board->lie == BOARD_LIE_LONG_CONFIG)
		bc_write_le16(p + 2, LONG_CONFIG_BYTES);
}

/* Characters that must not reach a file name, a log line or a JSON text. */
static const uint16_t wild[] = {'.', '.', '/', '.', '.', '/', 0, '"', '\\', '\n', '\r', 0x1B, '%',
	's', 0x7F, 0xFF, 0xD800, 0xFFFE, 0x4E2D, 0xDC00, 0x202E, ' ', '&', ';', '|', '$', '`'};

static uint16_t wild_unit(size_t i)
{
	return i < sizeof(wild) / sizeof(wild[0]) ? wild[i] : 'A';
}

size_t board_serial(const struct board *board, uint8_t *out, size_t room)
{
	bool is_wild = board->lie == BOARD_LIE_WILD_SERIAL;
	size_t length = is_wild ? BOARD_TEXT_MAX : board->serial.length;

	for (size_t i = 0; i < length && i < room; i++)
		out[i] = is_wild ? (uint8_t)wild_unit(i) : board->serial.bytes[i];
	return length;
}

static void add_text(struct descriptors *d, const char *text)
{
	size_t length = strlen(text);
	uint8_t *p = add(d, (uint8_t)(2 + 2 * length), STRING);

	for (size_t i = 0; i < length; i++)
		bc_write_le16(p + 2 + 2 * i, (uint8_t)text[i]);
}

static void add_serial(const struct board *board, struct descriptors *d)
{
	uint8_t serial[BOARD_TEXT_MAX];
	size_t length = board_serial(board, serial, sizeof(serial));

	if (length == 0)
		return;
	uint8_t *p = add(d, (uint8_t)(2 + 2 * length), STRING);
	for (size_t i = 0; i < length; i++)
		bc_write_le16(p + 2 + 2 * i,
			board->lie == BOARD_LIE_WILD_SERIAL ? wild_unit(i) : serial[i]);
}

static void add_string(const struct board *board, struct descriptors *d, unsigned index)
{
	switch (index) {
	case 0:
		bc_write_le16(add(d, 4, STRING) + 2, 0x0409); /* English */
		break;
	case MANUFACTURER:
		add_text(d, "buscap");
		break;
	case PRODUCT:
		add_text(d, "bus capture board (simulated)");
		break;
	case SERIAL:
		add_serial(board, d);
		break;
	default:
		break;
	}
}

size_t board_descriptor(
	const struct board *board, unsigned type, unsigned index, uint8_t *out, size_t room)
{
	struct descriptors d = {0};

	if (type == STRING)
		add_string(board, &d, index);
	else if (index != 0)
		return 0;
	else if (type == DEVICE)
		add_device(board, &d);
	else if (type == CONFIGURATION)
		add_configuration(board, &d);
	if (d.n > room)
		d.n = room;
	memcpy(out, d.bytes, d.n);
	return d.n;
}
