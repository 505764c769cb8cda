/* The state of the USB in software, and what its files do for one another: ports and descriptors
 * (usbfs.c), URBs (usbfs_urb.c), the other requests (usbfs_request.c). All of it is called with
 * usbfs_k locked; results are 0 or more, or a negative errno. */
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

/* A URB in flight or waiting to be reaped. Data go to the program's buffer as they come, not, as in
 * a kernel, when they are reaped: a copy less. */
struct usbfs_urb {
	struct usbfs_urb *next;
	struct usbdevfs_urb *user;
	struct usbfs_node *node;
	uint8_t endpoint; /* 0: control */
	int interface;    /* -1: of none */
	uint8_t *data;
	size_t length;
	int status;
	size_t actual;
	uint64_t memory;
	bool is_continuation;
	bool is_hung; /* the board will never answer; `actual` bytes came */
};

struct usbfs_queue {
	struct usbfs_urb *first;
	struct usbfs_urb **last;
};

/* An open descriptor. */
struct usbfs_node {
	struct usbfs_node *next; /* of the port */
	struct usbfs_port *port;
	unsigned references;
	int fd;       /* the write end of a pipe of one slot: full is nothing to reap */
	int drain_fd; /* its read end; -1: unplugged */
	struct usbfs_queue completed;
	uint32_t disabled; /* endpoints whose continuations are refused: IN from bit 16 on */
	bool is_closed;
};

struct usbfs_port {
	struct usbfs_port *next;
	struct board *board;   /* NULL: the root hub */
	pthread_mutex_t mutex; /* what a kernel calls the device's lock; taken before usbfs_k's */
	struct usbfs_name name;
	struct usbfs_device device;
	bool is_plugged;
	bool is_dead;
	struct usbfs_node *nodes;
	struct usbfs_node *owners[USBFS_INTERFACES]; /* who claimed them */
	char driver[16];                             /* of interface 0 */
	bool has_driver;
	struct usbfs_queue pending;
	uint64_t due_ns; /* the board has nothing before that */
	const uint8_t *replay;
	size_t replay_bytes;
	size_t replay_at;
};

struct usbfs_state {
	pthread_mutex_t mutex; /* all below, and the boards */
	struct usbfs_port *ports;
	unsigned address; /* the last that was given */
	unsigned in_flight;
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
	uint64_t thread_until_ns; /* how long it sleeps; 0: it doesn't */
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

/* A control transfer, at once: bytes moved, or -ETIMEDOUT where there will never be an answer. */
int usbfs_ask_board(struct usbfs_port *port, const uint8_t setup[8], uint8_t *data);

/* Serves what the board now has something for, here or on the thread. */
void usbfs_go_on(struct usbfs_port *port);

int usbfs_submit(struct usbfs_node *node, struct usbdevfs_urb *user);
int usbfs_discard(struct usbfs_node *node, const struct usbdevfs_urb *user);
int usbfs_reap(struct usbfs_node *node, struct usbdevfs_urb **user);

/* Finishes those of a node, of an interface, or of both; NULL and -1: of any. */
void usbfs_finish_all(
	struct usbfs_port *port, const struct usbfs_node *node, int interface, int status);

/* Forgets what is complete and will never be reaped, and counts it as a leak. */
void usbfs_drop_all(struct usbfs_queue *queue);

/* Makes the descriptor ready to write, or not. */
void usbfs_set_reapable(struct usbfs_node *node, bool is_reapable);

/* Ends the thread, if there is one. Not with usbfs_k locked. */
void usbfs_stop_thread(void);

/* usbfs_request.c */

int usbfs_configure(struct usbfs_port *port, unsigned value);

/* The interface is this node's, or becomes it. */
int usbfs_check_claim(struct usbfs_node *node, unsigned interface);

enum usbfs_call usbfs_call_of(unsigned long request);

/* Any request. */
int usbfs_answer(struct usbfs_node *node, unsigned long request, void *argument);

#endif
