/* The kernel's side of /dev/bus/usb for a software board: what drivers/usb/core/devio.c and a host
 * controller do with a program's ioctls. It does not access the program's memory or a clock:
 * umockdev_board.c copies data from and to the program and passes in the time.
 *
 *     host_plug()                   plugs a board in and reads its descriptors
 *     host_open(), host_close()    the program opens its node
 *     host_call()                   claims, settings, halts, drivers: synchronous calls
 *     host_submit(), host_discard(), host_reap()   transfers
 *     host_run(), host_due_ns()    whenever the board may have data
 *     host_unplug()
 *     host_unref()                  releases the port's reference
 *
 * As on real hardware, transfers are filled when the board has data, not when they are reaped:
 * that data is delivered even if the board is then unplugged or the transfer cancelled. Errors are
 * the kernel's negative errnos. Not thread-safe. */
#ifndef BC_TESTS_BOARD_UMOCKDEV_HOST_H
#define BC_TESTS_BOARD_UMOCKDEV_HOST_H

#include "tests/board/board.h"

#include <linux/usbdevice_fs.h>
#include <sys/queue.h>

/* Shared by all devices. */
struct host {
	uint32_t capabilities; /* USBDEVFS_CAP_*, for files opened from now on */
	uint64_t memory_limit; /* for the buffers of all unreaped transfers; 0: no limit */
	uint64_t memory_used;
	/* If not 0, this many bytes (rounded to packets) of each transfer arrive 2 ms before the
	 * rest, so that it can be discarded with data in it. */
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

/* A transfer. The caller sets the fields above the line, and reads those below after reaping. */
struct host_urb {
	uint64_t address; /* in the program; identifies it when it is discarded */
	unsigned char type;
	unsigned char endpoint;
	unsigned flags;
	size_t length;
	uint8_t setup[8]; /* control */
	uint8_t *data;    /* malloc()ed `length` bytes for a control transfer, else NULL */
	void *cookie;     /* for the caller */
	/* ---- */
	int status;
	size_t actual;
	/* private */
	struct host_file *file;
	uint64_t go_on_ns;
	bool is_stuck;
	TAILQ_ENTRY(host_urb) link;
};

TAILQ_HEAD(host_urbs, host_urb);

struct host_device;

/* Plugs the board in and configures it. Calls `ready` when the first transfer becomes reapable,
 * and when the last one was reaped. Returns NULL if out of memory. */
struct host_device *host_plug(struct host *host, struct board *board, uint64_t now_ns,
	void (*ready)(void *owner, bool is_ready), void *owner);

/* Unplugs it: transfers end with -ESHUTDOWN, and calls fail with -ENODEV. Completed transfers can
 * still be reaped. Calls `ready` for the transfers that end, and not after that. */
void host_unplug(struct host_device *device);

/* Frees it when the last file is closed. */
void host_unref(struct host_device *device);

/* The descriptors as in sysfs: the device's, followed by the configuration's. */
const uint8_t *host_descriptors(const struct host_device *device, size_t *bytes);

/* 12, 480 or 5000, according to the packet size of the bulk endpoint. */
unsigned host_megabits(const struct host_device *device);

/* Binds a kernel driver (up to 15 characters) to all interfaces; NULL or "": none. */
void host_set_driver(struct host_device *device, const char *driver);

/* Returns NULL if out of memory. */
struct host_file *host_open(struct host_device *device);

/* Ends its transfers, returns each cookie and frees it. Bytes in unreaped transfers, and the
 * `lost` bytes before them that were reaped but did not reach the program, are reported to the
 * board as undelivered if it is still plugged in; otherwise returns their number. */
uint64_t host_close(struct host_file *file, size_t lost, void (*release)(void *cookie));

/* CLAIMINTERFACE, RELEASEINTERFACE, SETINTERFACE, SETCONFIGURATION, CLEAR_HALT, RESETEP, RESET,
 * GETDRIVER, IOCTL (its DISCONNECT and CONNECT), DISCONNECT_CLAIM, GET_CAPABILITIES, GET_SPEED.
 * `argument` is a copy of the structure, in and out; host_call_bytes() says how large it is
 * (0: none, NULL may be passed). Returns 0 or more as the ioctl would. */
int host_call(struct host_file *file, unsigned long request, void *argument, uint64_t now_ns);
size_t host_call_bytes(unsigned long request);

/* Takes over the transfer (made with calloc()) unless it fails. Fills it immediately if the board
 * has data. */
int host_submit(struct host_file *file, struct host_urb *urb, uint64_t now_ns);

/* Returns -EINVAL if there is no such transfer, or it has already completed. */
int host_discard(struct host_file *file, uint64_t address, uint64_t now_ns);

/* Returns the next completed transfer, which the caller has to free() with its data. -EAGAIN:
 * none. */
int host_reap(struct host_file *file, struct host_urb **urb);

/* Fills transfers with the board's data. */
void host_run(struct host_device *device, uint64_t now_ns);

/* Returns when host_run() has to be called next, if nothing else happens; UINT64_MAX: never. */
uint64_t host_due_ns(const struct host_device *device, uint64_t now_ns);

/* Open files, claimed interfaces, pending and completed transfers. */
struct host_state {
	unsigned files;
	unsigned claimed;
	unsigned pending;
	unsigned completed;
};

struct host_state host_state(const struct host_device *device);

#endif
