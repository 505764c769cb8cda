/* The state of the simulated USB, and the functions shared by its files: ports and descriptors
 * (usbfs.c), URBs (usbfs_urb.c), other requests (usbfs_request.c). All require usbfs_k to be
 * locked. They return 0 or more, or a negative errno. */
#ifndef BC_TESTS_BOARD_USBFS_STATE_H
#define BC_TESTS_BOARD_USBFS_STATE_H

#include <linux/usbdevice_fs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "tests/board/usbfs.h"
#include "tests/board/usbfs_device.h"
#include "tests/board/usbfs_kernel.h"

struct usbfs_node;

/* A URB in flight or waiting to be reaped. Unlike in the kernel, data is copied to the program's
 * buffer when it arrives, not when the URB is reaped; that saves a copy. */
struct usbfs_urb {
	struct usbfs_urb *next;
	struct usbdevfs_urb *user;
	struct usbfs_node *node;
	uint8_t endpoint; /* 0: control */
	int interface;    /* -1: none */
	uint8_t *data;
	size_t length;
	int status;
	size_t actual;
	uint64_t memory;
	bool is_continuation;
	bool is_hung; /* the board will never answer; `actual` bytes arrived */
};

struct usbfs_queue {
	struct usbfs_urb *first;
	struct usbfs_urb **last;
};

/* An open descriptor. */
struct usbfs_node {
	struct usbfs_node *next; /* of the same port */
	struct usbfs_port *port;
	unsigned references;
	int fd;       /* the write end of a one-slot pipe; full: nothing to reap */
	int drain_fd; /* its read end; -1: unplugged */
	struct usbfs_queue completed;
	uint32_t disabled; /* endpoints whose continuations are refused: IN from bit 16 on */
	bool is_closed;
};

struct usbfs_port {
	struct usbfs_port *next;
	struct board *board;   /* NULL: the root hub */
	pthread_mutex_t mutex; /* the kernel's device lock; taken before usbfs_k's */
	struct usbfs_name name;
	struct usbfs_device device;
	bool is_plugged;
	bool is_dead;
	struct usbfs_node *nodes;
	struct usbfs_node *owners[USBFS_INTERFACES]; /* nodes that claimed each interface */
	char driver[16];                             /* bound to interface 0 */
	bool has_driver;
	struct usbfs_queue pending;
	uint64_t due_ns; /* the board has no data before that */
	const uint8_t *replay;
	size_t replay_bytes;
	size_t replay_at;
};

struct usbfs_state {
	pthread_mutex_t mutex; /* protects everything below, and the boards */
	struct usbfs_port *ports;
	unsigned address; /* the latest one assigned */
	uint32_t caps;
	uint64_t memory_limit;
	uint64_t memory;
	size_t discard_bytes;
	unsigned discard_count;
	struct usbfs_leaks leaks;
	struct usbfs_urb *spare;

	bool is_threaded;
	bool has_thread;
	bool is_stopping;
	pthread_t thread;
	pthread_cond_t wake;
	uint64_t thread_until_ns; /* until when it sleeps; 0: it does not sleep */
};

extern struct usbfs_state usbfs_k;

static inline void usbfs_lock(void)
{
	pthread_mutex_lock(&usbfs_k.mutex);
}

static inline void usbfs_unlock(void)
{
	pthread_mutex_unlock(&usbfs_k.mutex);
}

static inline uint64_t usbfs_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* usbfs_urb.c */

/* Executes a control transfer. Returns the bytes moved, or -ETIMEDOUT if there will never be an
 * answer. */
int usbfs_control_board(struct usbfs_port *port, const uint8_t setup[8], uint8_t *data);

/* Serves the URBs that the board has data for, here or on the thread. */
void usbfs_serve(struct usbfs_port *port);

int usbfs_submit(struct usbfs_node *node, struct usbdevfs_urb *user);
int usbfs_discard(struct usbfs_node *node, const struct usbdevfs_urb *user);
int usbfs_reap(struct usbfs_node *node, struct usbdevfs_urb **user);

/* Finishes the URBs of a node, of an interface, or of both; NULL and -1 mean any. */
void usbfs_finish_all(
	struct usbfs_port *port, const struct usbfs_node *node, int interface, int status);

/* Drops completed URBs that will never be reaped, and counts them as leaks. */
void usbfs_drop_all(struct usbfs_queue *queue);

/* Makes the descriptor writable, or not. */
void usbfs_set_reapable(struct usbfs_node *node, bool is_reapable);

/* Ends the thread, if there is one. usbfs_k must not be locked. */
void usbfs_stop_thread(void);

/* usbfs_request.c */

int usbfs_configure(struct usbfs_port *port, unsigned value);

/* Claims the interface for this node, unless another node has it. */
int usbfs_check_claim(struct usbfs_node *node, unsigned interface);

enum usbfs_call usbfs_call_of(unsigned long request);

/* Handles any ioctl. */
int usbfs_answer(struct usbfs_node *node, unsigned long request, void *argument);

#endif
