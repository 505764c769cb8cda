/* Which of the devices on the USB are capture boards, and why the others aren't.
 *
 * Nothing is asked of a device: what is told here, the kernel read when the device came. So it
 * takes no permission, and a device that hangs can't hold it up. It reads files all the same: off
 * the loop. */
#ifndef BC_CAPTURE_USB_USB_FIND_H
#define BC_CAPTURE_USB_USB_FIND_H

#include <libusb.h>
#include <stddef.h>

#include "capture/usb/board.h"
#include "formats/base/must_check.h"

struct bc_usb_wish {
	uint16_t vid;
	uint16_t pid;
	char serial[BC_SERIAL_MAX + 1]; /* empty: any */
};

struct bc_usb_device {
	libusb_device *device; /* a reference of the list's own */
	struct bc_board_identity identity;
	char why_not[160]; /* a phrase; empty: it is a board, and the one wished for */
	bool is_other;     /* it is one but for the serial number */
	bool is_unread;    /* something of it couldn't be read: later it may be another */
	bool is_gone;      /* it went while it was looked at */
};

struct bc_usb_list {
	struct bc_usb_device *devices; /* boards wished for first, then by port */
	size_t count;
	size_t matching;
};

/* Lists what is on the USB. Returns 0 or a negative errno with an empty list. */
int bc_usb_list(struct bc_usb_list *list, libusb_context *context,
	const struct bc_usb_wish *wish) BC_MUST_CHECK;
void bc_usb_list_free(struct bc_usb_list *list);

/* "1209:0001 with serial number X", for messages. */
#define BC_USB_WISH_TEXT 192
void bc_usb_wish_write(char out[BC_USB_WISH_TEXT], const struct bc_usb_wish *wish);

/* Finds the stream's endpoint in a configuration: the first bulk IN of the first vendor-specific
 * interface. Returns NULL with the identity's fields set, or a phrase that says what is missing. */
const char *bc_usb_find_endpoint(
	struct bc_board_identity *identity, const struct libusb_config_descriptor *config);

/* An errno for libusb's code; 0 for success. */
int bc_usb_errno(int code);

/* Makes a text printable: whatever is not ASCII from ' ' to '~' becomes '?'. */
void bc_usb_clean(char *text);

#endif
