/* What sysfs and udev say of a device on bus 1. */
#ifndef BC_TESTS_BOARD_UMOCKDEV_SYSFS_H
#define BC_TESTS_BOARD_UMOCKDEV_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/board/board.h"

#define SYSFS_HUB "/devices/pci0000:00/0000:00:14.0/usb1"

struct sysfs_device {
	unsigned port; /* from 1; 0: the hub itself */
	unsigned devnum;
	unsigned megabits;
	const uint8_t *descriptors; /* the device's, behind it the configuration's */
	size_t bytes;
	const struct board *board; /* NULL: it has no strings */
};

/* The device for umockdev_testbed_add_from_string(), as the kernel describes it. g_free() it. */
char *sysfs_text(const struct sysfs_device *device);

/* The properties that udev's events of it have, a line each. g_free() it. */
char *sysfs_event(const struct sysfs_device *device);

/* Tells all programs of the testbed at `root` that listen to udev. umockdev_testbed_uevent() would
 * do, but it aborts when ten events are not yet read, wants the device to be there still, and to
 * run under the preload library itself. false: someone's queue stayed full for 5 s. */
bool sysfs_tell(const char *root, const char *action, uint64_t number, const char *event);

#endif
