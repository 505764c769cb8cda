/* What the kernel reads from a device when it is plugged in: descriptors and strings, and what it
 * derives from them. */
#ifndef BC_TESTS_BOARD_USBFS_DEVICE_H
#define BC_TESTS_BOARD_USBFS_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "tests/board/board.h"

#define USBFS_INTERFACES      32
#define USBFS_SETTINGS        32
#define USBFS_ENDPOINTS       64
#define USBFS_ATTRIBUTE_BYTES 4096

struct usbfs_endpoint {
	uint8_t address;
	uint8_t type; /* 2: bulk, 3: interrupt */
	uint8_t interface;
	uint8_t setting;
	uint16_t packet_bytes;
};

struct usbfs_device {
	uint8_t descriptors[USBFS_ATTRIBUTE_BYTES]; /* the device's, and the configuration's */
	size_t descriptors_bytes;
	unsigned first_configuration; /* 0: unreadable */
	uint32_t
		settings[USBFS_INTERFACES]; /* bitmap of alternate settings; 0: no such interface */
	struct usbfs_endpoint endpoints[USBFS_ENDPOINTS];
	unsigned endpoints_n;
	char strings[3][400]; /* manufacturer, product, serial number, in UTF-8; empty: none */

	unsigned configuration;               /* the current one */
	uint8_t alternates[USBFS_INTERFACES]; /* current alternate settings */
};

/* NULL: a root hub. */
void usbfs_device_read(struct usbfs_device *device, const struct board *board);

/* Returns the endpoint, preferably in the current setting; NULL if it is in none. */
const struct usbfs_endpoint *usbfs_device_endpoint(
	const struct usbfs_device *device, unsigned address);

/* USB_SPEED_* of linux/usb/ch9.h. */
int usbfs_device_speed(const struct usbfs_device *device);

/* Reads a sysfs file. Returns its length or -ENOENT. */
int usbfs_device_attribute(const struct usbfs_device *device, unsigned address,
	const char *attribute, uint8_t out[USBFS_ATTRIBUTE_BYTES]);

#endif
