/* What sysfs and udev report about a device on bus 1. */
#ifndef BC_TESTS_BOARD_UMOCKDEV_SYSFS_H
#define BC_TESTS_BOARD_UMOCKDEV_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/board/board.h"

#define SYSFS_HUB "/devices/pci0000:00/0000:00:14.0/usb1"

struct sysfs_device {
	unsigned port; /* from 1; 0: the hub */
	unsigned devnum;
	unsigned megabits;
	const uint8_t *descriptors; /* the device's, followed by the configuration's */
	size_t bytes;
	const struct board *board; /* NULL: no strings */
};

/* Returns the device for umockdev_testbed_add_from_string(). Free it with g_free(). */
char *sysfs_text(const struct sysfs_device *device);

/* Returns the properties of its udev events, one per line. Free it with g_free(). */
char *sysfs_event(const struct sysfs_device *device);

/* Sends an event to all udev listeners of the testbed at `root`. Replaces
 * umockdev_testbed_uevent(), which aborts when ten events are unread, and requires that the device
 * is still present and that the caller runs under the preload library. Returns false if a
 * listener's queue stayed full for 5 s. */
bool sysfs_send_event(const char *root, const char *action, uint64_t number, const char *event);

#endif
