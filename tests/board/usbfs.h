/* The kernel's side of the USB, for tests: boards in software (tests/board/board.h) behind the real
 * libusb, in the process of the test, without rights, drivers or a USB.
 *
 *     usbfs_start()
 *     usbfs_plug()               a board is there from now on; libusb is told
 *     libusb_init() ...          as with any device
 *     usbfs_command(), usbfs_fail(), usbfs_slow(), usbfs_hook() ...   what shall go wrong
 *     usbfs_unplug()             it is gone; usbfs_plug() again
 *     libusb_exit()
 *     usbfs_stop()               says what was left behind
 *
 * It is linked into the test and stands where the calls of libusb go: open, close, ioctl, fopen and
 * statfs (what is not below /dev/bus/usb or /sys/bus/usb goes on to the C library), and those
 * functions of libudev that libusb calls. umockdev, the other way to have devices come and go,
 * needs a preloaded library, so a process started anew, and nodes that are made for it; here a plug
 * is a few lines under a lock: at once, in order, the same with sanitizers and valgrind. umockdev
 * is for tests of the daemon's own binary.
 *
 * Like a kernel there is one of it in a process. Every function here but usbfs_start() and
 * usbfs_stop() may be called from any thread, also from a hook and from libusb's callbacks.
 *
 * What it is faithful in, since programs trip over it (Linux, drivers/usb/core/devio.c):
 * - A descriptor is ready to write when a URB can be reaped, has POLLERR when the device is gone.
 * - Memory of URBs is limited (16 MiB), and theirs until they are reaped.
 * - What was complete at the unplug can still be reaped, the rest with -ESHUTDOWN; then ENODEV.
 *   POLLERR comes first, udev's word later (usbfs_hold_events()).
 * - Every call takes the device's lock, reaping too: while one thread resets a device, another that
 *   reaps, submits or discards waits (usbfs_waits()).
 * - Releasing an interface cancels its URBs, and sets its alternate setting back to 0.
 * - A transfer that libusb has split is continued or cut as usbfs does it (usbfs_set_caps()).
 * - A port keeps its name, "1-1", over a replug; the device's address is a new one. The hub "usb1"
 *   is always there, may not be opened, and is none of a capture program's business.
 *
 * Not there: isochronous transfers, USBDEVFS_REAPURB and _BULK, mmap, wrapped descriptors. */
#ifndef BC_TESTS_BOARD_USBFS_H
#define BC_TESTS_BOARD_USBFS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/board/board.h"

void usbfs_start(void);

/* What was left behind since usbfs_start(): all 0 after a program that cleans up. */
struct usbfs_leaks {
	unsigned nodes;     /* descriptors still open; usbfs_stop() closes them */
	unsigned claims;    /* interfaces not released before their descriptor was closed */
	unsigned urbs;      /* URBs not reaped before theirs was closed */
	unsigned unclaimed; /* URBs for an interface that was not claimed */
	unsigned monitors;  /* of udev: no libusb_exit() */
};

/* Unplugs everything, forgets all settings; does nothing if it is stopped. No other thread may be
 * in libusb. The boards stay the caller's, who frees them after this. */
struct usbfs_leaks usbfs_stop(void);

/* A board from being plugged in to being unplugged; valid until usbfs_stop(). */
struct usbfs_port;

/* Plugs a board into the first free port: powers it if it had lost its power, reads its descriptors
 * and configures it, as a kernel does. From here to the unplug the board is served here: use
 * usbfs_command() and usbfs_sent() instead of board.h's. At most 8 boards. */
struct usbfs_port *usbfs_plug(struct board *board);

/* Pulls it out. Nothing happens if it is out already. */
void usbfs_unplug(struct usbfs_port *port);

/* The board loses its power, and the hub hasn't noticed yet: until usbfs_unplug() every transfer
 * fails with -EPROTO at once. */
void usbfs_lose_power(struct usbfs_port *port);

/* board_command(); what it sets going goes. */
bool usbfs_command(struct usbfs_port *port, const char *line, char answer[BOARD_ANSWER]);
struct board_sent usbfs_sent(struct usbfs_port *port);

/* Bulk IN transfers are filled from these bytes, over and over, instead of by the board. NULL: they
 * are full, but what stands in the buffers stays. For measuring what is behind it. */
void usbfs_replay(struct usbfs_port *port, const uint8_t *bytes, size_t n);

/* A driver of the kernel has interface 0: claiming it is EBUSY until that is detached. NULL: none.
 */
void usbfs_bind_driver(struct usbfs_port *port, const char *name);

/* URBs that are submitted and not complete, on all devices. */
unsigned usbfs_in_flight(void);

/* Descriptors of devices that are open, unplugged ones included. */
unsigned usbfs_open_nodes(void);

/* How the kernel and its host controller are. */

/* USBDEVFS_CAP_* of linux/usbdevice_fs.h. At first as with xHCI: libusb submits a transfer in one
 * URB. USBFS_CAPS_SPLIT, as with controllers without scatter-gather: in URBs of 16 KiB. */
void usbfs_set_caps(uint32_t caps);
#define USBFS_CAPS_XHCI \
	0x1Du /* zero-packet, no-size-limit, scatter-gather, reap-after-disconnect */
#define USBFS_CAPS_SPLIT 0x17u /* continuation instead of scatter-gather */

/* The limit for URBs in flight or not reaped, USBFS_URB_BYTES more than their data each; 0: none.
 */
void usbfs_set_memory(uint64_t bytes);
#define USBFS_URB_BYTES 512u

/* URBs complete on a thread of their own, as hardware does it, instead of within the call that
 * submits them when the board has what they want. A board that is paced, or waits, is served by
 * that thread at all times. */
void usbfs_set_threaded(bool is_threaded);

/* Holds back what udev says, until told otherwise. */
void usbfs_hold_events(bool is_held);

/* What goes wrong. */

enum usbfs_call {
	USBFS_OPEN,  /* of a node below /dev/bus/usb */
	USBFS_CLOSE, /* can be slow, can't fail */
	USBFS_SUBMIT,
	USBFS_REAP,
	USBFS_DISCARD,
	USBFS_CLAIM, /* with or without detaching a driver */
	USBFS_RELEASE,
	USBFS_SET_INTERFACE,
	USBFS_SET_CONFIGURATION,
	USBFS_CLEAR_HALT,
	USBFS_RESET,
	USBFS_CONTROL, /* a control transfer that waits; libusb has none with sysfs there */
	USBFS_DRIVER,  /* asks for, detaches or attaches the driver of an interface */
	USBFS_ASK,     /* capabilities, speed, address */
	USBFS_SYSFS,   /* opens a file below /sys/bus/usb */
	USBFS_CALLS
};

const char *usbfs_call_name(enum usbfs_call call);

/* Of these calls, from now on, `skip` go well and `count` after them fail with this errno, without
 * having done anything. A count of 0 takes it back. */
void usbfs_fail(enum usbfs_call call, int error, unsigned skip, unsigned count);

/* Each of these calls takes so long, with the device's lock held where it takes that. */
void usbfs_slow(enum usbfs_call call, unsigned ms);

/* The next `count` URBs at the head of the stream that are discarded carry up to so many bytes of
 * it all the same. */
void usbfs_discard_with(size_t bytes, unsigned count);

/* Calls `hook` once, before the nth call from now (1: the next) of any kind is looked at, on its
 * thread. n of 0, or NULL: no hook. */
void usbfs_hook(unsigned n, void (*hook)(void *context), void *context);

/* Who did what. Counted since usbfs_start() or usbfs_forget_calls(). */

void usbfs_forget_calls(void);
unsigned usbfs_calls(void); /* of any kind, by all threads */
unsigned usbfs_calls_of(enum usbfs_call call);
unsigned usbfs_calls_by(pthread_t thread, enum usbfs_call call);

/* Calls by this thread that may take their time on real hardware: all but submit, reap, discard and
 * ask. */
unsigned usbfs_blocking_calls(pthread_t thread);

/* Calls by this thread that found the device's lock held by another. */
unsigned usbfs_waits(pthread_t thread);

#endif
