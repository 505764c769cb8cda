/* A USB with boards in software, in a testbed of umockdev: what is plugged in, and the programs
 * that have it open.
 *
 *     bus_add()          a board for each port, before
 *     bus_start()        the testbed and its hub are there
 *     port_plug(), port_unplug(), port_deny()
 *     bus_run()          at every time that bus->timer tells, and after a command to a board
 *     bus_stop()
 *
 * Programs' ioctls come from a thread of the testbed's: whoever touches a board or the state below
 * holds bus->lock. Functions that say so want it held; the others take it. */
#ifndef BC_TESTS_BOARD_UMOCKDEV_BUS_H
#define BC_TESTS_BOARD_UMOCKDEV_BUS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <umockdev.h>

#include "tests/board/board.h"
#include "tests/board/umockdev_host.h"

#define BUS_PORTS   8
#define BUS_DEVNUMS 128

struct bus;

struct port {
	struct bus *bus;
	unsigned number; /* from 1 */
	struct board *board;
	struct host_device *device; /* NULL: nothing is plugged in */
	unsigned devnum;
	int master, slave; /* of the pty that stands for the node; -1: none */
	bool is_denied;
	char driver[16];     /* bound to it when it is plugged in; "": none */
	uint64_t opens;      /* of its nodes, since the start */
	uint64_t lost_bytes; /* given by the board, got by no program, and not told to the board */
	char *event;         /* what udev says of the device */
};

struct bus {
	UMockdevTestbed *testbed;
	UMockdevIoctlBase *handler;
	char *root; /* directory of the testbed */
	pthread_mutex_t lock;
	struct host host;
	struct port ports[BUS_PORTS];
	unsigned boards;
	unsigned last_devnum;
	bool is_attached[BUS_DEVNUMS];
	int timer; /* a timerfd */
	uint64_t timer_ns;
	uint64_t events;
};

uint64_t bus_now_ns(void);

/* false: there is no port left, or no such board can be. */
bool bus_add(struct bus *bus, const struct board_options *options);

bool bus_start(struct bus *bus);
void bus_stop(struct bus *bus);

/* Lets every board send what it has, and sets the timer. With the lock held. */
void bus_run(struct bus *bus);
void bus_set_timer(struct bus *bus);

/* Each returns "ok" or "error: ...". */
const char *port_plug(struct port *port);
const char *port_unplug(struct port *port, bool is_event_first);
const char *port_deny(struct port *port, bool is_denied);

/* umockdev_ioctl.c: answers the ioctls of the programs. */
void bus_listen(struct bus *bus);

#endif
