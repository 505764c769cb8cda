#include "tests/board/usbredir_describe.h"

#include <stdbool.h>
#include <string.h>

#include "formats/base/bytes.h"

#define CONFIG_MAX 4096u

/* Descriptor types. */
#define INTERFACE 4u
#define ENDPOINT  5u

static uint8_t speed_of(uint16_t packet_bytes)
{
	if (packet_bytes == 64)
		return usb_redir_speed_full;
	return packet_bytes == 1024 ? usb_redir_speed_super : usb_redir_speed_high;
}

void describe_device(const struct board *board, uint16_t packet_bytes,
	struct usb_redir_device_connect_header *device)
{
	uint8_t d[18] = {0};

	board_descriptor(board, 1, 0, d, sizeof(d));
	device->speed = speed_of(packet_bytes);
	device->device_class = d[4];
	device->device_subclass = d[5];
	device->device_protocol = d[6];
	device->vendor_id = bc_le16(d + 8);
	device->product_id = bc_le16(d + 10);
	device->device_version_bcd = bc_le16(d + 12);
}

static void add_interface(struct usb_redir_interface_info_header *info, const uint8_t *d)
{
	uint32_t i = info->interface_count;

	if (i == DESCRIBE_INTERFACES)
		return;
	info->interface[i] = d[2];
	info->interface_class[i] = d[5];
	info->interface_subclass[i] = d[6];
	info->interface_protocol[i] = d[7];
	info->interface_count = i + 1;
}

/* The first 16 entries are the OUT endpoints. */
static void set_endpoint(
	struct usb_redir_ep_info_header *endpoints, const uint8_t *d, uint8_t interface)
{
	unsigned i = (d[2] & 0x80u) >> 3 | (d[2] & 15u);

	endpoints->type[i] = d[3] & 3u;
	endpoints->interval[i] = d[6];
	endpoints->interface[i] = interface;
	endpoints->max_packet_size[i] = bc_le16(d + 4) & 0x7FFu;
}

void describe_interfaces(const struct board *board, const uint8_t alternates[DESCRIBE_INTERFACES],
	struct usb_redir_interface_info_header *info, struct usb_redir_ep_info_header *endpoints)
{
	uint8_t config[CONFIG_MAX];
	size_t n = board_descriptor(board, 2, 0, config, sizeof(config));
	bool is_chosen = false;
	uint8_t number = 0;

	memset(info, 0, sizeof(*info));
	memset(endpoints, 0, sizeof(*endpoints));
	memset(endpoints->type, usb_redir_type_invalid, sizeof(endpoints->type));
	endpoints->type[0] = endpoints->type[16] = usb_redir_type_control;
	for (size_t at = 0; at + 2 <= n; at += config[at]) {
		const uint8_t *d = config + at;
		if (d[0] < 2 || d[0] > n - at)
			break;
		if (d[1] == INTERFACE && d[0] >= 9) {
			number = d[2];
			is_chosen = d[3] == (number < DESCRIBE_INTERFACES ? alternates[number] : 0);
			if (is_chosen)
				add_interface(info, d);
		} else if (d[1] == ENDPOINT && d[0] >= 7 && is_chosen) {
			set_endpoint(endpoints, d, number);
		}
	}
}
