/* What of a board's handling has to wait for the kernel or the device: done on another thread, one
 * job at a time, each with its result in the struct. */
#ifndef BC_CAPTURE_USB_USB_JOBS_H
#define BC_CAPTURE_USB_USB_JOBS_H

#include <uv.h>

#include "capture/usb/usb_find.h"

enum bc_usb_job {
	BC_USB_FIND,  /* looks for the board wished for, or, when one is open, for others */
	BC_USB_OPEN,  /* opens `device` and claims its interface: sets handle */
	BC_USB_CLEAR, /* clears the halt of its endpoint */
	BC_USB_CLOSE, /* resets the device first, when wants_reset; lets go of all */
};

struct bc_usb_jobs {
	uv_work_t work;
	libusb_context *context;
	void (*done)(struct bc_usb_jobs *work); /* on the loop */
	bool is_busy;

	enum bc_usb_job job;
	struct bc_usb_wish wish;
	bool wants_reset;
	libusb_device *device; /* NULL: none. A reference, until BC_USB_CLOSE or the next FIND */
	libusb_device_handle *handle;
	bool is_claimed;
	struct bc_board_identity identity;

	/* Results of the last job. */
	int status;           /* 0 or a negative errno */
	const char *what;     /* what failed, as a verb: "open it" */
	libusb_device *found; /* FIND: the board; a reference as above */
	struct bc_board_identity found_id;
	char others[256];                     /* FIND: boards that match as well, or but for their
					       * serial number; or empty */
	char why_not[BC_USB_WISH_TEXT + 256]; /* FIND: of a device that has the right id */
	bool is_unread; /* FIND: something couldn't be read; it is to be looked for again */
};

/* Starts a job; done() follows on the loop. None may be running. */
void bc_usb_jobs_start(struct bc_usb_jobs *work, uv_loop_t *loop, enum bc_usb_job job);

/* Drops what FIND has found. */
void bc_usb_jobs_forget(struct bc_usb_jobs *work);

#endif
