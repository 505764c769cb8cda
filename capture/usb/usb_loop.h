/* A libusb context whose file descriptors are watched by a libuv loop, so that transfers finish and
 * devices come and go on the loop's thread, and nothing there ever waits for the USB.
 *
 * Events are handled whenever one of the descriptors says so; on_turn() follows each time, outside
 * of libusb, where what the callbacks noted can be acted upon. A device is opened and closed on
 * another thread: bc_usb_loop_release() before it, bc_usb_loop_sync() behind it. The descriptors of
 * what was opened are taken up then; those of what is closed must be let go of before, since their
 * numbers may be used again at once. */
#ifndef BC_CAPTURE_USB_USB_LOOP_H
#define BC_CAPTURE_USB_USB_LOOP_H

#include "formats/base/must_check.h"

#include <libusb.h>
#include <stdbool.h>
#include <uv.h>

struct bc_usb_loop;

struct bc_usb_loop_options {
	uv_loop_t *loop;
	void *context;
	void (*on_turn)(void *context);

	/* A device came or left. Called from within libusb: notes it, and no more. */
	void (*on_hotplug)(void *context, libusb_device *device, bool has_left);

	/* bc_usb_loop_close() is through; the usb loop is freed. */
	void (*on_closed)(void *context);
};

/* Starts libusb, which looks through the USB once. Returns 0 or a negative errno: -ENOTSUP where
 * libusb can't be driven so (no udev, or a netlink socket denied). */
int bc_usb_loop_open(
	struct bc_usb_loop **usb, const struct bc_usb_loop_options *options) BC_MUST_CHECK;

libusb_context *bc_usb_loop_context(struct bc_usb_loop *usb);

/* Watches what libusb has opened since. Returns 0 or a negative errno. */
int bc_usb_loop_sync(struct bc_usb_loop *usb) BC_MUST_CHECK;

/* Lets go of the descriptors of devices, and handles no events until bc_usb_loop_sync(): for while
 * another thread works on one. libusb would look at it, and wait for the call that the other
 * thread is in. */
void bc_usb_loop_release(struct bc_usb_loop *usb);

/* Ends it: no device may be open and no transfer in flight. on_closed() follows. */
void bc_usb_loop_close(struct bc_usb_loop *usb);

#endif
