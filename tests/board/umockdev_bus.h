/* Software boards on a USB bus in an umockdev testbed: the boards plugged in, and the programs that
 * have them open.
 *
 *     bus_add()          a board for each port, first
 *     bus_start()        creates the testbed and its hub
 *     port_plug(), port_unplug(), port_deny()
 *     bus_run()          whenever bus->timer fires, and after a command to a board
 *     bus_stop()
 *
 * The programs' ioctls arrive on a thread of the testbed, so bus->lock protects the boards and the
 * state below. Functions that require the lock to be held say so; the others take it. */
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
	int master, slave; /* of the pty that stands in for the node; -1: none */
	bool is_denied;
	char driver[16];     /* bound at the next plug; "": none */
	uint64_t opens;      /* of its nodes, in total */
	uint64_t lost_bytes; /* sent by the board but received by no program, and not reported to
				the board */
	char *event;         /* udev's properties of the device */
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

/* Returns false if there is no free port or the options are invalid. */
bool bus_add(struct bus *bus, const struct board_options *options);

bool bus_start(struct bus *bus);
void bus_stop(struct bus *bus);

/* Lets every board send its data, and sets the timer. Requires the lock. */
void bus_run(struct bus *bus);
void bus_set_timer(struct bus *bus);

/* Each returns "ok" or "error: ...". */
const char *port_plug(struct port *port);
const char *port_unplug(struct port *port, bool is_event_first);
const char *port_deny(struct port *port, bool is_denied);

/* umockdev_ioctl.c: handles the programs' ioctls. */
void bus_listen(struct bus *bus);

#endif
