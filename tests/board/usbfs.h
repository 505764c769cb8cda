/* The kernel's side of USB, for tests: software boards (tests/board/board.h) below the real
 * libusb, in the process of the test, without privileges, drivers or USB hardware.
 *
 *     usbfs_start()
 *     usbfs_plug()               plugs a board in; libusb is notified
 *     libusb_init() ...          as with any device
 *     usbfs_command(), usbfs_fail(), usbfs_slow(), usbfs_hook() ...   cause faults
 *     usbfs_unplug()             and usbfs_plug() again
 *     libusb_exit()
 *     usbfs_stop()               returns what was leaked
 *
 * It is linked into the test, or for the system tests with buscapd's objects (remote.c), and
 * replaces the functions that libusb calls: open, close, access, ioctl and statfs (paths
 * other than /dev/bus/usb and /sys/bus/usb go to the C library), and functions of libudev. A plug
 * is a few lines under a lock: immediate, in order, and the same under sanitizers and valgrind. The
 * real kernel, udev and permissions are tested in a virtual machine (tests/machine).
 *
 * Like the kernel it exists once per process. All functions except usbfs_start() and usbfs_stop()
 * may be called on any thread, also from a hook and from libusb's callbacks.
 *
 * It reproduces these details, which programs depend on (Linux, drivers/usb/core/devio.c):
 * - A descriptor is writable when a URB can be reaped, and has POLLERR when the device is gone.
 * - URB memory is limited (16 MiB) and freed when the URB is reaped.
 * - After an unplug, completed URBs can still be reaped, the rest with -ESHUTDOWN; then ENODEV.
 *   POLLERR comes first, udev's event later (usbfs_hold_events()).
 * - Every call takes the device's lock, even reaping: while one thread resets a device, another
 *   that reaps, submits or discards waits (usbfs_waits()).
 * - Releasing an interface cancels its URBs and resets its alternate setting to 0.
 * - A transfer split by libusb is continued or cut as in usbfs (usbfs_set_caps()).
 * - A port keeps its name, "1-1", over a replug; the device gets a new address. The hub "usb1" is
 *   always present and can't be opened.
 *
 * Not implemented: isochronous transfers, USBDEVFS_REAPURB, _BULK and _CONTROL,
 * mmap, wrapped descriptors. */
#ifndef BC_TESTS_BOARD_USBFS_H
#define BC_TESTS_BOARD_USBFS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/board/board.h"

void usbfs_start(void);

/* What was leaked since usbfs_start(); all 0 after a program that cleans up. */
struct usbfs_leaks {
	unsigned nodes;     /* descriptors still open; usbfs_stop() closes them */
	unsigned claims;    /* interfaces not released before their descriptor was closed */
	unsigned urbs;      /* URBs not reaped before their descriptor was closed */
	unsigned unclaimed; /* URBs for an interface that was not claimed */
	unsigned monitors;  /* udev monitors: libusb_exit() was not called */
};

/* Unplugs everything and resets all settings; does nothing if stopped. No other thread may be in
 * libusb. The caller keeps the boards and frees them after this. */
struct usbfs_leaks usbfs_stop(void);

/* A plugged-in board; valid until usbfs_stop(), also after the unplug. */
struct usbfs_port;

/* Plugs a board into the first free port: powers it up if necessary, reads its descriptors and
 * configures it, as the kernel does. Until the unplug, use usbfs_command() and usbfs_sent()
 * instead of the functions of board.h. At most 8 boards. */
struct usbfs_port *usbfs_plug(struct board *board);

/* Unplugs it. Does nothing if it is already unplugged. */
void usbfs_unplug(struct usbfs_port *port);

/* The board loses its power, but the hub has not noticed: until usbfs_unplug() every transfer
 * fails immediately with -EPROTO. */
void usbfs_lose_power(struct usbfs_port *port);

/* board_command(), followed by the transfers that it makes possible. */
bool usbfs_command(struct usbfs_port *port, const char *line, char answer[BOARD_ANSWER]);
struct board_sent usbfs_sent(struct usbfs_port *port);

/* Fills bulk IN transfers from these bytes, repeated, instead of from the board. NULL: transfers
 * are full, but their buffers unchanged. For measuring the code above it. */
void usbfs_replay(struct usbfs_port *port, const uint8_t *bytes, size_t n);

/* Binds a kernel driver to interface 0: claiming it fails with EBUSY until the driver is detached.
 * NULL: none. */
void usbfs_bind_driver(struct usbfs_port *port, const char *name);

/* Properties of the kernel and its host controller. */

/* USBDEVFS_CAP_* of linux/usbdevice_fs.h. Default is xHCI: libusb submits a transfer as one URB.
 * USBFS_CAPS_SPLIT, for controllers without scatter-gather: as URBs of 16 KiB. */
void usbfs_set_caps(uint32_t caps);
#define USBFS_CAPS_XHCI \
	0x1Du /* zero-packet, no-size-limit, scatter-gather, reap-after-disconnect */
#define USBFS_CAPS_SPLIT 0x17u /* continuation instead of scatter-gather */

/* Limits the memory of URBs in flight or not reaped, USBFS_URB_BYTES more than their data each; 0:
 * no limit. */
void usbfs_set_memory(uint64_t bytes);
#define USBFS_URB_BYTES 512u

/* Completes URBs on a separate thread, as hardware does, instead of within the submitting call if
 * the board has data. A board that is paced or waits is always served by that thread. */
void usbfs_set_threaded(bool is_threaded);

/* Holds back udev's events until called with false. */
void usbfs_hold_events(bool is_held);

/* Faults. */

enum usbfs_call {
	USBFS_OPEN,  /* a node in /dev/bus/usb */
	USBFS_CLOSE, /* can be slow, can't fail */
	USBFS_SUBMIT,
	USBFS_REAP,
	USBFS_DISCARD,
	USBFS_CLAIM, /* with or without detaching a driver */
	USBFS_RELEASE,
	USBFS_SET_INTERFACE,
	USBFS_CLEAR_HALT,
	USBFS_RESET,
	USBFS_DRIVER, /* reattaches the driver of an interface */
	USBFS_ASK,    /* capabilities */
	USBFS_SYSFS,  /* opens a file in /sys/bus/usb */
	USBFS_CALLS
};

/* Makes calls of this kind fail: from now on `skip` succeed, then `count` fail with this errno
 * without any effect. count 0 cancels it. */
void usbfs_fail(enum usbfs_call call, int error, unsigned skip, unsigned count);

/* Makes each of these calls take this long, with the device's lock held if the call takes it. */
void usbfs_slow(enum usbfs_call call, unsigned ms);

/* The next `count` discarded URBs at the head of the stream still carry up to `bytes` bytes. */
void usbfs_discard_with(size_t bytes, unsigned count);

/* Calls `hook` once, before the nth call from now (1: the next) of any kind, on that call's
 * thread. n 0 or NULL: no hook. */
void usbfs_hook(unsigned n, void (*hook)(void *context), void *context);

/* Call counts, since usbfs_start() or usbfs_forget_calls(). */

void usbfs_forget_calls(void);
unsigned usbfs_calls_of(enum usbfs_call call);

/* Returns the number of calls by this thread that may block on real hardware: all except submit,
 * reap, discard and ask. */
unsigned usbfs_blocking_calls(pthread_t thread);

/* Returns the number of calls by this thread that found the device's lock held by another thread.
 */
unsigned usbfs_waits(pthread_t thread);

#endif
