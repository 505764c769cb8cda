/* The kernel's side of /dev/bus/usb in software, in front of a board: what drivers/usb/core/devio.c
 * and a host controller do with the ioctls of a program. It has no access to the program's memory
 * and knows no clock: umockdev_board.c copies from and to the program and hands in the time.
 *
 *     host_plug()                   a board is there; its descriptors are read
 *     host_open(), host_close()    the program opens its node
 *     host_call()                   claims, settings, halts, drivers: what is done at once
 *     host_submit(), host_discard(), host_reap()   transfers
 *     host_run(), host_due_ns()    whenever the board may have something to send
 *     host_unplug()
 *     host_unref()                  the owner of the port is done with it
 *
 * As with a real host, transfers are filled when the board has something, not when they are
 * reaped: what was filled is delivered even if the board is pulled out or the transfer cancelled
 * meanwhile. Failures are returned as negative errnos, those of the kernel. One thread at a time.
 */
#ifndef BC_TESTS_BOARD_UMOCKDEV_HOST_H
#define BC_TESTS_BOARD_UMOCKDEV_HOST_H

#include "tests/board/board.h"

#include <linux/usbdevice_fs.h>
#include <sys/queue.h>

/* What all devices share. */
struct host {
	uint32_t capabilities; /* USBDEVFS_CAP_*, of what is opened from now on */
	uint64_t memory_limit; /* for the buffers of all transfers not reaped; 0: none */
	uint64_t memory_used;
	/* Not 0: of each transfer so many bytes (of whole packets) come 2 ms before the rest. That
	 * is when a program can discard it with data in it. */
	size_t discard_bytes;
};

#define HOST_CAPABILITIES_XHCI                                        \
	(USBDEVFS_CAP_ZERO_PACKET | USBDEVFS_CAP_NO_PACKET_SIZE_LIM | \
		USBDEVFS_CAP_BULK_SCATTER_GATHER | USBDEVFS_CAP_REAP_AFTER_DISCONNECT)
/* A host without scatter-gather: libusb splits transfers into 16 KiB. */
#define HOST_CAPABILITIES_SPLIT                                       \
	(USBDEVFS_CAP_ZERO_PACKET | USBDEVFS_CAP_NO_PACKET_SIZE_LIM | \
		USBDEVFS_CAP_BULK_CONTINUATION | USBDEVFS_CAP_REAP_AFTER_DISCONNECT)

struct host_file;

/* A transfer. The caller sets what is above the line and reads what is below, when reaped. */
struct host_urb {
	uint64_t address; /* where the program has it: by this it is discarded */
	unsigned char type;
	unsigned char endpoint;
	unsigned flags;
	size_t length;
	uint8_t setup[8]; /* control */
	uint8_t *data;    /* malloc()ed: `length` bytes of a control transfer, else NULL */
	void *cookie;     /* the caller's own */
	/* ---- */
	int status;
	size_t actual;
	/* its own */
	struct host_file *file;
	uint64_t go_on_ns;
	bool is_stuck;
	TAILQ_ENTRY(host_urb) link;
};

TAILQ_HEAD(host_urbs, host_urb);

struct host_device;

/* Plugs the board in and configures it. `ready` is called whenever a transfer can be reaped where
 * none could, and when the last was. NULL when memory ran out. */
struct host_device *host_plug(struct host *host, struct board *board, uint64_t now_ns,
	void (*ready)(void *owner, bool is_ready), void *owner);

/* Pulls it out: transfers end with -ESHUTDOWN, calls fail with -ENODEV from now on; what can be
 * reaped stays so. `ready` is called for the transfers that end, and no more after that. */
void host_unplug(struct host_device *device);

/* Freed when the last file on it is closed, too. */
void host_unref(struct host_device *device);

/* The descriptors as sysfs has them: the device's, behind it the configuration's. */
const uint8_t *host_descriptors(const struct host_device *device, size_t *bytes);

/* 12, 480 or 5000, by the packets of the bulk endpoint. */
unsigned host_megabits(const struct host_device *device);

/* A kernel driver that is bound to all interfaces, NULL or "" for none (up to 15 characters). */
void host_set_driver(struct host_device *device, const char *driver);

/* NULL when memory ran out. */
struct host_file *host_open(struct host_device *device);

/* Ends its transfers, gives each cookie back, frees it. What was in transfers nobody reaped, and
 * the `lost` bytes before them that were reaped but did not get to the program, the board is told
 * to have been given for nothing, if it is still plugged in; else their number is returned. */
uint64_t host_close(struct host_file *file, size_t lost, void (*release)(void *cookie));

/* CLAIMINTERFACE, RELEASEINTERFACE, SETINTERFACE, SETCONFIGURATION, CLEAR_HALT, RESETEP, RESET,
 * GETDRIVER, IOCTL (its DISCONNECT and CONNECT), DISCONNECT_CLAIM, GET_CAPABILITIES, GET_SPEED.
 * `argument` is a copy of the structure, in and out; host_call_bytes() says how large it is
 * (0: none, NULL may be passed). Returns 0 or more as the ioctl would. */
int host_call(struct host_file *file, unsigned long request, void *argument, uint64_t now_ns);
size_t host_call_bytes(unsigned long request);

/* Takes the transfer (made with calloc()) unless it fails. The board is asked at once. */
int host_submit(struct host_file *file, struct host_urb *urb, uint64_t now_ns);

/* -EINVAL: there is none such, or it has ended and waits to be reaped. */
int host_discard(struct host_file *file, uint64_t address, uint64_t now_ns);

/* The next that ended; its data and itself are the caller's to free(). -EAGAIN: none yet. */
int host_reap(struct host_file *file, struct host_urb **urb);

/* Fills transfers with what the board has. */
void host_run(struct host_device *device, uint64_t now_ns);

/* When host_run() is to be called next, if nothing else happens; UINT64_MAX: not at all. */
uint64_t host_due_ns(const struct host_device *device, uint64_t now_ns);

/* What is going on: files open, interfaces claimed, transfers waiting for data and for reaping. */
struct host_state {
	unsigned files;
	unsigned claimed;
	unsigned pending;
	unsigned completed;
};

struct host_state host_state(const struct host_device *device);

#endif
