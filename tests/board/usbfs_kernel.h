/* Between the files of the shim that tests/board/usbfs.h describes: what the calls of libusb
 * (usbfs_calls.c, usbfs_udev.c) ask of the devices (usbfs.c), and what all of them ask before they
 * do anything (usbfs_faults.c). Results are 0 or more, or a negative errno. */
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

/* A descriptor to read a device's file of sysfs from. */
int usbfs_attribute_open(const char *device, const char *attribute);

struct usbfs_name {
	char device[16];  /* "1-1", "usb1" */
	unsigned address; /* on bus USBFS_BUS */
};

/* What is plugged in, the root hub included. */
unsigned usbfs_names(struct usbfs_name names[USBFS_PORTS + 1]);

/* usbfs_udev.c */

/* What udev says to those who listen. */
void usbfs_udev_tell(const char *action, const struct usbfs_name *name);
void usbfs_udev_hold(bool is_held);

/* Nobody says anything any more. Returns how many still listen. */
unsigned usbfs_udev_stop(void);

/* usbfs_faults.c */

void usbfs_faults_reset(void);

/* A call begins: counts it, lets the hook in. Returns 0 or the errno that it shall fail with. */
int usbfs_enter(enum usbfs_call call);

/* Sleeps, if such calls are to be slow. */
void usbfs_nap(enum usbfs_call call);

/* The calling thread had to wait for a device. */
void usbfs_waited(void);

#endif
