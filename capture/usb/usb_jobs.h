/* The calls that wait for the kernel or the device. They run on libuv's thread pool, one at a time,
 * and leave their results in the struct. */
#ifndef BC_CAPTURE_USB_USB_JOBS_H
#define BC_CAPTURE_USB_USB_JOBS_H

#include <uv.h>

#include "capture/usb/usb_find.h"

enum bc_usb_job {
	BC_USB_JOB_FIND,  /* finds the board, or other boards if one is already open */
	BC_USB_JOB_OPEN,  /* opens `device` and claims its interface; sets `handle` */
	BC_USB_JOB_CLEAR, /* clears the halt of the endpoint */
	BC_USB_JOB_CLOSE, /* closes the device, after a reset if reset_first */
};

/* The ports of boards with the serial number of the recorded one that were present together with
 * it: they are not that board, and what returns to their ports is not either. */
#define BC_USB_TWINS 32
struct bc_usb_twins {
	char ports[BC_USB_TWINS][BC_PORT_MAX + 1];
	unsigned count;
	bool is_full; /* there were more */
};

struct bc_usb_jobs {
	uv_work_t work;
	libusb_context *context;
	void (*done)(struct bc_usb_jobs *jobs); /* called on the loop */
	bool is_busy;

	enum bc_usb_job job;
	struct bc_usb_match match;
	bool reset_first;
	bool is_look;  /* FIND: look at the bus itself, whatever events libusb has received */
	bool is_deaf;  /* CLOSE: it receives none, so look for twins then */
	unsigned skip; /* FIND: how many boards to pass over, if none is recorded */
	char home[BC_PORT_MAX + 1]; /* where the recorded board was last */
	struct bc_usb_twins twins;
	libusb_device *device; /* a reference, held from OPEN to CLOSE; else NULL */
	libusb_device_handle *handle;
	bool is_claimed;
	struct bc_board_identity identity;

	/* Results of the last job. */
	int status;           /* 0 or a negative errno */
	const char *what;     /* what failed, as a verb phrase: "open device" */
	libusb_device *found; /* FIND: the board, as a reference until OPEN or the next FIND */
	struct bc_board_identity found_id;
	libusb_context *found_context; /* FIND: the context that knows `found`, if `context` does
					* not; the caller adopts it, or drops it with `found` */
	unsigned matching;             /* FIND: how many boards could be used */
	char others[256]; /* FIND: further boards with this VID:PID, for the log; or empty */
	char reject_reason[BC_USB_MATCH_TEXT + 256]; /* FIND: why a device with this VID:PID was
						      * rejected; or empty */
	bool is_unreadable; /* FIND: something could not be read; try again later */
};

/* Starts a job; done() follows on the loop. No other job may be running. */
void bc_usb_jobs_start(struct bc_usb_jobs *jobs, uv_loop_t *loop, enum bc_usb_job job);

/* Drops the board that FIND found, if OPEN has not used it. */
void bc_usb_jobs_drop_found(struct bc_usb_jobs *jobs);

#endif
