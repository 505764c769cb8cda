#include "daemon/main/boards.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "capture/usb/usb_find.h"
#include "daemon/base/log.h"
#include "daemon/config/config_keys.h"

/* Returns NULL if the device may be opened, else the reason why not. */
static const char *permission(const struct bc_board_identity *id)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/bus/usb/%03u/%03u", id->bus, id->address);
	if (access(path, R_OK | W_OK) == 0)
		return NULL;
	if (errno == EACCES || errno == EPERM)
		return "permission denied: is the udev rule installed, and this user in "
		       "group buscap?";
	return "no node in /dev/bus/usb";
}

/* Prints one device. Returns whether it is a usable board. */
static bool print_device(const struct bc_usb_device *d)
{
	const struct bc_board_identity *id = &d->identity;
	const char *denied = d->reject_reason[0] == '\0' ? permission(id) : NULL;

	printf("%-8s %04x:%04x  %-10s  %-16s  %-32s  ", id->port, id->vid, id->pid, id->speed,
		id->serial[0] != '\0' ? id->serial : "-",
		id->product[0] != '\0' ? id->product : "-");
	if (d->reject_reason[0] != '\0')
		printf("no: %s\n", d->reject_reason);
	else if (denied != NULL)
		printf("board, but %s\n", denied);
	else
		printf("board: interface %u, endpoint %02x, %u-byte packets\n", id->interface,
			id->endpoint, id->packet_bytes);
	return d->reject_reason[0] == '\0' && denied == NULL;
}

static enum bc_exit print_all(libusb_context *context, const struct bc_usb_match *match)
{
	struct bc_usb_list list;
	unsigned usable = 0;
	char text[BC_USB_MATCH_TEXT];
	int rc = bc_usb_list(&list, context, match);

	if (rc != 0) {
		bc_log(BC_LOG_ERROR, "can't list USB devices: %s", strerror(-rc));
		return BC_EXIT_FAILED;
	}
	bc_usb_match_write(text, match);
	if (list.count != 0)
		printf("%-8s %-9s  %-10s  %-16s  %-32s  %s\n", "PORT", "ID", "SPEED", "SERIAL",
			"PRODUCT", "BOARD?");
	for (size_t i = 0; i < list.count; i++)
		usable += print_device(&list.devices[i]);
	if (usable == 0)
		printf("no usable board %s; USB devices found: %zu\n", text, list.count);
	else if (usable > 1)
		printf("%u boards match: the first is used unless serial= or port= selects "
		       "another\n",
			usable);
	bc_usb_list_free(&list);
	return usable != 0 ? BC_EXIT_OK : BC_EXIT_NO_DEVICE;
}

enum bc_exit bc_boards_print(const struct bc_config *config)
{
	struct bc_usb_options usb = bc_config_usb(config);
	libusb_context *context;
	int rc = libusb_init(&context);

	if (rc != 0) {
		bc_log(BC_LOG_ERROR, "can't initialize libusb: %s; is AF_NETLINK allowed?",
			libusb_strerror((enum libusb_error)rc));
		return BC_EXIT_FAILED;
	}
	enum bc_exit code = print_all(context, &usb.match);
	libusb_exit(context);
	if (fflush(stdout) != 0) {
		bc_log(BC_LOG_ERROR, "can't write the list: %s", strerror(errno));
		return BC_EXIT_FAILED;
	}
	return code;
}
