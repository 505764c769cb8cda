#include "tests/board/umockdev_bus.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "tests/board/umockdev_sysfs.h"

uint64_t bus_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void bus_set_timer(struct bus *bus)
{
	uint64_t now = bus_now_ns();
	uint64_t due = UINT64_MAX;

	for (unsigned i = 0; i < bus->boards; i++) {
		const struct port *port = &bus->ports[i];
		if (port->device == NULL)
			continue;
		uint64_t at = host_due_ns(port->device, now);
		due = at < due ? at : due;
	}
	if (due == bus->timer_ns)
		return;
	bus->timer_ns = due;
	struct itimerspec set = {0};
	if (due != UINT64_MAX) {
		/* Zero would disarm the timer. */
		due = due == 0 ? 1 : due;
		set.it_value.tv_sec = (time_t)(due / 1000000000u);
		set.it_value.tv_nsec = (long)(due % 1000000000u);
	}
	timerfd_settime(bus->timer, TFD_TIMER_ABSTIME, &set, NULL);
}

void bus_run(struct bus *bus)
{
	for (unsigned i = 0; i < bus->boards; i++)
		if (bus->ports[i].device != NULL)
			host_run(bus->ports[i].device, bus_now_ns());
	bus_set_timer(bus);
}

static char *node_path(const struct bus *bus, unsigned devnum)
{
	return g_strdup_printf("%s/dev/bus/usb/001/%03u", bus->root, devnum);
}

/* POLLOUT on the node signals that something can be reaped: flow control of the pty switches it. */
static void on_ready(void *owner, bool is_ready)
{
	const struct port *port = owner;
	tcflow(port->slave, is_ready ? TCOON : TCOOFF);
}

static bool open_pty(struct port *port, char *name, size_t room)
{
	struct termios raw;

	port->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (port->master < 0)
		return false;
	if (grantpt(port->master) == 0 && unlockpt(port->master) == 0 &&
		ptsname_r(port->master, name, room) == 0)
		port->slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (port->slave < 0 || tcgetattr(port->slave, &raw) != 0)
		return false;
	cfmakeraw(&raw);
	return tcsetattr(port->slave, TCSANOW, &raw) == 0 && tcflow(port->slave, TCOOFF) == 0;
}

/* The slave first: closing the master then hangs up the programs' descriptors. */
static void close_pty(struct port *port)
{
	if (port->slave >= 0)
		close(port->slave);
	if (port->master >= 0)
		close(port->master);
	port->slave = port->master = -1;
}

/* Returns a file that not even root can open for writing. */
static const char *unopenable(void)
{
	static const char *const tried[] = {"/sys/kernel/notes", "/sys/devices/system/cpu/online"};

	for (size_t i = 0; i < sizeof tried / sizeof tried[0]; i++) {
		int fd = open(tried[i], O_RDWR | O_CLOEXEC);
		if (fd < 0 && errno == EACCES)
			return tried[i];
		if (fd >= 0)
			close(fd);
	}
	return NULL;
}

/* Points the node at the pty, or at a file that can't be opened. */
static bool set_node(const struct port *port)
{
	char name[64];
	const char *target = port->is_denied ? unopenable() : name;
	char *path = node_path(port->bus, port->devnum);
	char *fresh = g_strconcat(path, ".new", NULL);
	char *folder = g_path_get_dirname(path);
	bool is_set = target != NULL && ptsname_r(port->master, name, sizeof name) == 0 &&
		      g_mkdir_with_parents(folder, 0755) == 0 && symlink(target, fresh) == 0 &&
		      rename(fresh, path) == 0;

	g_free(folder);
	g_free(fresh);
	g_free(path);
	return is_set;
}

/* Listeners are never detached: a program that has connected but was not accepted yet would find a
 * dead connection, and the preload library would abort. */
static void attach(struct bus *bus, unsigned devnum)
{
	char node[32];

	if (bus->is_attached[devnum])
		return;
	snprintf(node, sizeof node, "/dev/bus/usb/001/%03u", devnum);
	umockdev_testbed_attach_ioctl(bus->testbed, node, bus->handler, NULL);
	bus->is_attached[devnum] = true;
}

/* Returns the next unused device number, as the kernel assigns them. */
static unsigned next_devnum(struct bus *bus)
{
	for (;;) {
		unsigned devnum = (bus->last_devnum + 1) % BUS_DEVNUMS;
		bool is_free = devnum > 1;
		bus->last_devnum = devnum;
		for (unsigned i = 0; i < bus->boards; i++)
			is_free &= bus->ports[i].device == NULL || bus->ports[i].devnum != devnum;
		if (is_free)
			return devnum;
	}
}

static bool add_device(struct bus *bus, const struct sysfs_device *device)
{
	GError *error = NULL;
	char *text = sysfs_text(device);
	bool is_added = umockdev_testbed_add_from_string(bus->testbed, text, &error);

	g_clear_error(&error);
	g_free(text);
	return is_added;
}

static const char *send_udev_event(struct port *port, const char *action)
{
	struct bus *bus = port->bus;

	if (sysfs_send_event(bus->root, action, ++bus->events, port->event))
		return "ok";
	return "error: a udev listener does not read its events";
}

const char *port_plug(struct port *port)
{
	struct bus *bus = port->bus;
	char pty[64];

	if (port->device != NULL)
		return "error: already plugged in";
	unsigned devnum = next_devnum(bus);
	if (!open_pty(port, pty, sizeof pty)) {
		close_pty(port);
		return "error: no pty";
	}
	attach(bus, devnum);
	pthread_mutex_lock(&bus->lock);
	port->devnum = devnum;
	port->device = host_plug(&bus->host, port->board, bus_now_ns(), on_ready, port);
	g_assert_nonnull(port->device);
	host_set_driver(port->device, port->driver);
	struct sysfs_device device = {.port = port->number,
		.devnum = devnum,
		.megabits = host_megabits(port->device),
		.board = port->board};
	device.descriptors = host_descriptors(port->device, &device.bytes);
	pthread_mutex_unlock(&bus->lock);
	g_free(port->event);
	port->event = sysfs_event(&device);
	if (!set_node(port) || !add_device(bus, &device))
		return "error: can't add it to sysfs";
	return send_udev_event(port, "add");
}

/* Makes all open files fail from now on. */
static void fail_open_files(struct port *port)
{
	struct bus *bus = port->bus;

	pthread_mutex_lock(&bus->lock);
	struct host_device *device = port->device;
	port->device = NULL;
	host_unplug(device);
	host_unref(device);
	close_pty(port);
	bus_set_timer(bus);
	pthread_mutex_unlock(&bus->lock);
}

static const char *forget(struct port *port)
{
	char *path = g_strdup_printf("/sys" SYSFS_HUB "/1-%u", port->number);

	umockdev_testbed_remove_device(port->bus->testbed, path);
	g_free(path);
	return send_udev_event(port, "remove");
}

const char *port_unplug(struct port *port, bool is_event_first)
{
	const char *answer;

	if (port->device == NULL)
		return "error: not plugged in";
	if (!is_event_first)
		fail_open_files(port);
	answer = forget(port);
	if (is_event_first)
		fail_open_files(port);
	return answer;
}

const char *port_deny(struct port *port, bool is_denied)
{
	struct bus *bus = port->bus;

	if (is_denied && unopenable() == NULL)
		return "error: no file here that root can't open";
	pthread_mutex_lock(&bus->lock);
	port->is_denied = is_denied;
	pthread_mutex_unlock(&bus->lock);
	if (port->device == NULL)
		return "ok";
	if (!set_node(port))
		return "error: can't change the node";
	return is_denied ? "ok" : send_udev_event(port, "add");
}

static bool add_hub(struct bus *bus)
{
	static const uint8_t d[] = {18, 1, 0, 2, 9, 0, 1, 64, 0x6b, 0x1d, 2, 0, 1, 6, 0, 0, 0, 1, 9,
		2, 25, 0, 1, 1, 0, 0xe0, 0, 9, 4, 0, 0, 1, 9, 0, 0, 0, 7, 5, 0x81, 3, 4, 0, 12};
	struct sysfs_device hub = {
		.devnum = 1, .megabits = 480, .descriptors = d, .bytes = sizeof d};
	char *node = node_path(bus, 1);
	char *folder = g_path_get_dirname(node);
	bool is_added = add_device(bus, &hub) && g_mkdir_with_parents(folder, 0755) == 0 &&
			g_file_set_contents(node, "", 0, NULL);

	g_free(folder);
	g_free(node);
	return is_added;
}

/* ---- the bus */

bool bus_add(struct bus *bus, const struct board_options *options)
{
	if (bus->boards == BUS_PORTS)
		return false;
	struct port *port = &bus->ports[bus->boards];
	*port = (struct port){.bus = bus, .number = bus->boards + 1, .master = -1, .slave = -1};
	port->board = board_new(options);
	if (port->board == NULL)
		return false;
	board_unplug(port->board);
	bus->boards++;
	return true;
}

bool bus_start(struct bus *bus)
{
	/* Socket paths are short there, and nothing is written to a disk. */
	if (access("/dev/shm", W_OK | X_OK) == 0)
		setenv("TMPDIR", "/dev/shm", 1);
	bus->testbed = umockdev_testbed_new();
	bus->root = umockdev_testbed_get_root_dir(bus->testbed);
	bus->host = (struct host){
		.capabilities = HOST_CAPABILITIES_XHCI, .memory_limit = 16u << 20};
	bus->last_devnum = 1;
	bus->timer_ns = UINT64_MAX;
	bus->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	pthread_mutex_init(&bus->lock, NULL);
	bus_listen(bus);
	return bus->timer >= 0 && add_hub(bus);
}

void bus_stop(struct bus *bus)
{
	for (unsigned i = 0; i < bus->boards; i++) {
		if (bus->ports[i].device != NULL)
			fail_open_files(&bus->ports[i]);
		g_free(bus->ports[i].event);
	}
	/* Its thread still runs for a while, so keep what it uses. */
	g_object_unref(bus->testbed);
}
