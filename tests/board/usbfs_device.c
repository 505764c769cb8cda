#include "tests/board/usbfs_device.h"

#include <errno.h>
#include <linux/usb/ch9.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "tests/board/usbfs_kernel.h"

#define DEVICE_BYTES        18u
#define CONFIGURATION_BYTES 9u

static const uint8_t hub_descriptors[] = {18, 1, 0x00, 0x02, 9, 0, 1, 64, 0x6B, 0x1D, 0x02, 0x00,
	0x01, 0x06, 0, 0, 0, 1,        /* */
	9, 2, 25, 0, 1, 1, 0, 0xE0, 0, /* */
	9, 4, 0, 0, 1, 9, 0, 0, 0,     /* */
	7, 5, 0x81, 3, 4, 0, 12};

static void add_endpoint(
	struct usbfs_device *device, const uint8_t *d, unsigned interface, unsigned setting)
{
	uint16_t packet_bytes = bc_le16(d + 4) & 0x7FF;

	/* Like the kernel, skips endpoints with a packet size of 0. */
	if (packet_bytes == 0 || device->endpoints_n == USBFS_ENDPOINTS)
		return;
	device->endpoints[device->endpoints_n++] = (struct usbfs_endpoint){.address = d[2],
		.type = d[3] & 3,
		.interface = (uint8_t)interface,
		.setting = (uint8_t)setting,
		.packet_bytes = packet_bytes};
}

/* Parses the descriptors as far as they are valid. */
static void parse(struct usbfs_device *device)
{
	const uint8_t *d = device->descriptors + DEVICE_BYTES;
	const uint8_t *end = device->descriptors + device->descriptors_bytes;
	unsigned interface = USBFS_INTERFACES;
	unsigned setting = 0;

	if (device->descriptors_bytes < DEVICE_BYTES + CONFIGURATION_BYTES)
		return;
	device->first_configuration = d[5];
	for (; end - d >= 2 && d[0] >= 2 && end - d >= d[0]; d += d[0]) {
		if (d[1] == USB_DT_INTERFACE && d[0] >= USB_DT_INTERFACE_SIZE &&
			d[2] < USBFS_INTERFACES && d[3] < USBFS_SETTINGS) {
			interface = d[2];
			setting = d[3];
			device->settings[interface] |= UINT32_C(1) << setting;
		} else if (d[1] == USB_DT_ENDPOINT && d[0] >= USB_DT_ENDPOINT_SIZE &&
			   interface < USBFS_INTERFACES) {
			add_endpoint(device, d, interface, setting);
		}
	}
}

static size_t put_utf8(char *out, uint32_t c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const uint8_t heads[] = {0, 0, 0xC0, 0xE0, 0xF0};
	for (size_t i = n - 1; i != 0; i--, c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3F));
	out[0] = (char)(heads[n] | c);
	return n;
}

/* Reads up to the first zero; skips unpaired surrogates. */
static void read_string(const struct board *board, unsigned index, char *out, size_t room)
{
	uint8_t d[256];
	size_t n = index != 0 ? board_descriptor(board, USB_DT_STRING, index, d, sizeof(d)) : 0;
	size_t at = 0;

	if (n >= 2 && d[1] == USB_DT_STRING && d[0] < n)
		n = d[0];
	for (size_t i = 2; i + 2 <= n && d[1] == USB_DT_STRING && at + 5 < room; i += 2) {
		uint32_t c = bc_le16(d + i);
		uint32_t low = i + 4 <= n ? bc_le16(d + i + 2) : 0;
		if (c == 0)
			break;
		if (c >= 0xD800 && c < 0xDC00 && low >= 0xDC00 && low < 0xE000) {
			c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
			i += 2;
		}
		if (c < 0xD800 || c >= 0xE000)
			at += put_utf8(out + at, c);
	}
	out[at] = '\0';
}

void usbfs_device_read(struct usbfs_device *device, const struct board *board)
{
	uint8_t *d = device->descriptors;

	memset(device, 0, sizeof(*device));
	if (board == NULL) {
		memcpy(d, hub_descriptors, sizeof(hub_descriptors));
		device->descriptors_bytes = sizeof(hub_descriptors);
		snprintf(device->strings[1], sizeof(device->strings[1]), "root hub");
	} else {
		size_t n = board_descriptor(board, USB_DT_DEVICE, 0, d, DEVICE_BYTES);
		if (n == DEVICE_BYTES) {
			n = board_descriptor(board, USB_DT_CONFIG, 0, d + DEVICE_BYTES,
				sizeof(device->descriptors) - DEVICE_BYTES);
			size_t total = n >= CONFIGURATION_BYTES ? bc_le16(d + DEVICE_BYTES + 2) : 0;
			n = DEVICE_BYTES + (n < total ? n : total);
		}
		device->descriptors_bytes = n;
		for (unsigned i = 0; i < 3; i++)
			read_string(
				board, d[14 + i], device->strings[i], sizeof(device->strings[i]));
	}
	parse(device);
	if (board == NULL)
		device->configuration = device->first_configuration;
}

const struct usbfs_endpoint *usbfs_device_endpoint(
	const struct usbfs_device *device, unsigned address)
{
	const struct usbfs_endpoint *found = NULL;

	for (unsigned i = 0; i < device->endpoints_n; i++) {
		const struct usbfs_endpoint *e = &device->endpoints[i];
		if (e->address != address)
			continue;
		if (device->alternates[e->interface] == e->setting)
			return e;
		found = found != NULL ? found : e;
	}
	return found;
}

int usbfs_device_speed(const struct usbfs_device *device)
{
	for (unsigned i = 0; i < device->endpoints_n; i++) {
		const struct usbfs_endpoint *e = &device->endpoints[i];
		if (e->type == USB_ENDPOINT_XFER_BULK)
			return e->packet_bytes < 512    ? USB_SPEED_FULL
			       : e->packet_bytes < 1024 ? USB_SPEED_HIGH
							: USB_SPEED_SUPER;
	}
	return USB_SPEED_HIGH;
}

static int write_text(uint8_t *out, const char *text)
{
	return text[0] != '\0' ? snprintf((char *)out, USBFS_ATTRIBUTE_BYTES, "%s\n", text)
			       : -ENOENT;
}

static int write_number(uint8_t *out, const char *format, unsigned number)
{
	return snprintf((char *)out, USBFS_ATTRIBUTE_BYTES, format, number);
}

int usbfs_device_attribute(const struct usbfs_device *device, unsigned address,
	const char *attribute, uint8_t out[USBFS_ATTRIBUTE_BYTES])
{
	static const unsigned speeds[] = {
		[USB_SPEED_FULL] = 12, [USB_SPEED_HIGH] = 480, [USB_SPEED_SUPER] = 5000};
	static const char *const strings[] = {"manufacturer", "product", "serial"};

	if (strcmp(attribute, "descriptors") == 0) {
		memcpy(out, device->descriptors, device->descriptors_bytes);
		return (int)device->descriptors_bytes;
	}
	for (unsigned i = 0; i < 3; i++)
		if (strcmp(attribute, strings[i]) == 0)
			return write_text(out, device->strings[i]);
	if (strcmp(attribute, "busnum") == 0)
		return write_number(out, "%u\n", USBFS_BUS);
	if (strcmp(attribute, "devnum") == 0)
		return write_number(out, "%u\n", address);
	if (strcmp(attribute, "speed") == 0)
		return write_number(out, "%u\n", speeds[usbfs_device_speed(device)]);
	if (strcmp(attribute, "bConfigurationValue") == 0)
		return device->configuration != 0 ? write_number(out, "%u\n", device->configuration)
						  : 0;
	return -ENOENT;
}
