/* Runs libusb on a libuv loop: its file descriptors are polled by the loop, transfers and hotplug
 * events are handled on the loop's thread, and the loop never waits for the USB.
 *
 * on_events() is called after each round of events, outside libusb, where the caller can act on
 * what the callbacks noted. Devices are opened and closed on another thread: call
 * bc_usb_loop_release() before that and bc_usb_loop_sync() after it. sync() adds the descriptors
 * of newly opened devices. release() must drop the old ones before a device is closed, because the
 * kernel may reuse their numbers immediately. */
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
	void (*on_events)(void *context);

	/* A device was plugged in or unplugged. Called inside libusb: only record the event. */
	void (*on_hotplug)(void *context, libusb_device *device, bool has_left);

	/* bc_usb_loop_close() has finished and the object is freed. */
	void (*on_closed)(void *context);
};

/* Starts libusb, which enumerates the devices once. Returns 0 or a negative errno: -ENOTSUP if
 * libusb can't be used this way (no udev, or netlink sockets are denied). */
int bc_usb_loop_open(
	struct bc_usb_loop **usb, const struct bc_usb_loop_options *options) BC_MUST_CHECK;

libusb_context *bc_usb_loop_context(struct bc_usb_loop *usb);

/* Replaces the context, while no device is open, with a newer one, which it owns from then on.
 * Returns 0 or a negative errno; then bc_usb_loop_sync() tries again, but events may not arrive. */
int bc_usb_loop_adopt(struct bc_usb_loop *usb, libusb_context *context) BC_MUST_CHECK;

/* Polls libusb's descriptors; events are handled again after a release. Returns 0 or an errno. */
int bc_usb_loop_sync(struct bc_usb_loop *usb) BC_MUST_CHECK;

/* Stops polling the devices and handling events until bc_usb_loop_sync(). Needed while another
 * thread opens or closes a device: libusb would otherwise wait on the loop for that thread. */
void bc_usb_loop_release(struct bc_usb_loop *usb);

/* Closes it. No device may be open and no transfer in flight. on_closed() follows. */
void bc_usb_loop_close(struct bc_usb_loop *usb);

#endif
