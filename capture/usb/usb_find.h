/* Lists the USB devices, and says which of them are capture boards and why the others are not.
 *
 * It sends nothing to a device: the kernel read the descriptors when the device was plugged in. So
 * it needs no permissions and no device can block it. It reads files, so call it off the loop. */
#ifndef BC_CAPTURE_USB_USB_FIND_H
#define BC_CAPTURE_USB_USB_FIND_H

#include <libusb.h>
#include <stddef.h>

#include "capture/usb/board.h"
#include "formats/base/must_check.h"

/* The board to use. */
struct bc_usb_match {
	uint16_t vid;
	uint16_t pid;
	char serial[BC_SERIAL_MAX + 1]; /* empty: any, */
	bool is_exact;                  /* or only a board without a serial number */
	char port[BC_PORT_MAX + 1];     /* empty: any */
};

struct bc_usb_device {
	libusb_device *device; /* a reference owned by the list */
	struct bc_board_identity identity;
	char reject_reason[160]; /* a phrase; empty: a board that matches */
	bool is_other;           /* a board, but with another serial number or at another port */
	bool is_unreadable;      /* something could not be read; a later attempt may succeed */
	bool is_gone;            /* unplugged during the check */
};

struct bc_usb_list {
	struct bc_usb_device *devices; /* matching boards first, then sorted by port */
	size_t count;
	size_t matching;
};

/* Lists all devices. Returns 0, or a negative errno with an empty list. */
int bc_usb_list(struct bc_usb_list *list, libusb_context *context,
	const struct bc_usb_match *match) BC_MUST_CHECK;
void bc_usb_list_free(struct bc_usb_list *list);

/* Writes "1209:0001 with serial number X" or the like, for messages. */
#define BC_USB_MATCH_TEXT 224
void bc_usb_match_write(char out[BC_USB_MATCH_TEXT], const struct bc_usb_match *match);

/* Finds the stream's endpoint in a configuration: the first bulk IN of the first vendor-specific
 * interface. Returns NULL after filling in the identity's fields, or what is missing, a phrase. */
const char *bc_usb_find_endpoint(
	struct bc_board_identity *identity, const struct libusb_config_descriptor *config);

/* True if the text is a port as in sysfs: "1-2", "1-2.3". */
bool bc_usb_is_port(const char *text);

/* Translates a libusb code to a negative errno; 0 for success. */
int bc_usb_errno(int code);

/* Replaces every byte outside ' ' .. '~' with '?'. */
void bc_usb_make_printable(char *text);

#endif
