/* Fuzz target: what a USB device may send: descriptors as parsed by libusb, answers to requests,
 * and FTDI packets. */
#include <stdlib.h>
#include <string.h>

#include "capture/usb/usb_find.h"
#include "capture/usb/usb_framer.h"
#include "capture/usb/usb_request.h"

#define INTERFACES 4
#define SETTINGS   3
#define ENDPOINTS  3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
	const uint8_t *at;
	size_t left;
};

static uint8_t next(struct bytes *in)
{
	if (in->left == 0)
		return 0;
	in->left--;
	return *in->at++;
}

static void check_descriptors(struct bytes in)
{
	static struct libusb_endpoint_descriptor endpoints[INTERFACES][SETTINGS][ENDPOINTS];
	static struct libusb_interface_descriptor settings[INTERFACES][SETTINGS];
	static struct libusb_interface interfaces[INTERFACES];
	struct libusb_config_descriptor config = {.interface = interfaces};
	struct bc_board_identity id = {0};

	config.bNumInterfaces = next(&in) % (INTERFACES + 1);
	for (unsigned i = 0; i < config.bNumInterfaces; i++) {
		interfaces[i].altsetting = settings[i];
		interfaces[i].num_altsetting = next(&in) % (SETTINGS + 1);
		for (int k = 0; k < interfaces[i].num_altsetting; k++) {
			struct libusb_interface_descriptor *s = &settings[i][k];
			s->bInterfaceClass = next(&in) % 2 != 0 ? LIBUSB_CLASS_VENDOR_SPEC
								: next(&in);
			s->bInterfaceNumber = next(&in);
			s->bAlternateSetting = next(&in);
			s->bNumEndpoints = next(&in) % (ENDPOINTS + 1);
			s->endpoint = endpoints[i][k];
			for (unsigned e = 0; e < s->bNumEndpoints; e++) {
				endpoints[i][k][e].bEndpointAddress = next(&in);
				endpoints[i][k][e].bmAttributes = next(&in);
				endpoints[i][k][e].wMaxPacketSize = (uint16_t)(next(&in) << 8 |
									       next(&in));
			}
		}
	}
	if (bc_usb_find_endpoint(&id, &config) != NULL)
		return;
	if ((id.endpoint & LIBUSB_ENDPOINT_IN) == 0 || id.packet_bytes < 8 ||
		id.packet_bytes > 1024)
		abort();
}

static void check_text(const char *text, size_t room)
{
	size_t n = strnlen(text, room);

	if (n == room)
		abort();
	for (size_t i = 0; i < n; i++)
		if (text[i] < ' ' || text[i] > '~')
			abort();
}

static void check_answers(const uint8_t *data, size_t size)
{
	struct bc_board board = {0};
	struct bc_board_counters counters;
	uint8_t *copy = malloc(
		size + 1); /* exact size, so that the sanitizer finds reads past it */

	memcpy(copy, data, size);
	if (bc_usb_parse_info(&board, copy, (unsigned)size) && size < 64)
		abort();
	check_text(board.firmware, sizeof(board.firmware));
	check_text(board.own_serial, sizeof(board.own_serial));
	if (bc_usb_parse_counters(&counters, copy, (unsigned)size) && size < 24)
		abort();
	free(copy);
}

static void check_ftdi(const uint8_t *data, size_t size, size_t packet_bytes)
{
	uint8_t *copy = malloc(size + 1);

	memcpy(copy, data, size);
	size_t packets = (size + packet_bytes - 1) / packet_bytes;
	size_t left = bc_ftdi_strip(copy, size, packet_bytes);
	if (left > size || size - left > packets * BC_FTDI_STATUS_BYTES)
		abort();
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	check_descriptors((struct bytes){data, size});
	check_answers(data + 1, size - 1);
	check_ftdi(data + 1, size - 1, (size_t)8 << data[0] % 8);
	return 0;
}
