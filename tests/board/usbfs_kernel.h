/* Shared by the files of the shim (tests/board/usbfs.h): the replaced calls (usbfs_calls.c,
 * usbfs_udev.c) use the devices (usbfs.c), and all of them check for faults first
 * (usbfs_faults.c). Functions return 0 or more, or a negative errno. */
#ifndef BC_TESTS_BOARD_USBFS_KERNEL_H
#define BC_TESTS_BOARD_USBFS_KERNEL_H

#include <stdatomic.h>
#include <stdbool.h>

#include "tests/board/usbfs.h"

#define USBFS_PORTS 8
#define USBFS_BUS   1u

/* usbfs.c */

bool usbfs_is_started(void);

int usbfs_node_open(unsigned bus, unsigned address);
bool usbfs_is_node(int fd);
int usbfs_node_close(int fd);
int usbfs_node_ioctl(int fd, unsigned long request, void *argument);

/* Opens a device's sysfs file for reading. Returns a descriptor. */
int usbfs_attribute_open(const char *device, const char *attribute);

struct usbfs_name {
	char device[16];  /* "1-1", "usb1" */
	unsigned address; /* on bus USBFS_BUS */
};

/* Lists the plugged-in devices, including the root hub. */
unsigned usbfs_names(struct usbfs_name names[USBFS_PORTS + 1]);

/* usbfs_udev.c */

/* Sends a udev event to all monitors. */
void usbfs_udev_send(const char *action, const struct usbfs_name *name);
void usbfs_udev_hold(bool is_held);

/* Stops all events. Returns the number of monitors left. */
unsigned usbfs_udev_stop(void);

/* usbfs_faults.c */

void usbfs_faults_reset(void);

/* Called at the start of a call: counts it and runs the hook. Returns 0 or the errno to fail with.
 */
int usbfs_enter(enum usbfs_call call);

/* Sleeps if calls of this kind are slow. */
void usbfs_nap(enum usbfs_call call);

/* Counts that the calling thread had to wait for a device. */
void usbfs_waited(void);

#endif
