#include "tests/board/usbfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/board/usbfs_kernel.h"
#include "tests/board/usbfs_state.h"

#define NODES 4096 /* descriptors; some of them are nodes */

struct usbfs_state usbfs_k = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static atomic_bool is_started;
static _Atomic(struct usbfs_node *) nodes[NODES];

bool usbfs_is_started(void)
{
	return atomic_load_explicit(&is_started, memory_order_acquire);
}

/* Plugging */

static struct usbfs_port *new_port(struct board *board)
{
	struct usbfs_port *port = calloc(1, sizeof(*port));

	if (port == NULL)
		abort();
	pthread_mutex_init(&port->mutex, NULL);
	port->board = board;
	port->pending.last = &port->pending.first;
	port->next = usbfs_k.ports;
	port->is_plugged = true;
	usbfs_k.ports = port;
	usbfs_device_read(&port->device, board);
	return port;
}

/* Returns an address from 1 to 127 that is not in use. */
static unsigned next_address(void)
{
	const struct usbfs_port *port;

	do {
		usbfs_k.address = usbfs_k.address % 127 + 1;
		port = usbfs_k.ports;
		while (port != NULL && (!port->is_plugged || port->name.address != usbfs_k.address))
			port = port->next;
	} while (port != NULL);
	return usbfs_k.address;
}

static unsigned free_number(void)
{
	char name[sizeof(((struct usbfs_name *)0)->device)];

	for (unsigned n = 1; n <= USBFS_PORTS; n++) {
		const struct usbfs_port *port = usbfs_k.ports;
		snprintf(name, sizeof(name), "%u-%u", USBFS_BUS, n);
		while (port != NULL && (!port->is_plugged || strcmp(port->name.device, name) != 0))
			port = port->next;
		if (port == NULL)
			return n;
	}
	abort();
}

struct usbfs_port *usbfs_plug(struct board *board)
{
	usbfs_lock();
	unsigned number = free_number();
	unsigned address = next_address();
	if (!board_is_plugged(board))
		board_plug(board, usbfs_now());
	struct usbfs_port *port = new_port(board);
	port->name.address = address;
	snprintf(port->name.device, sizeof(port->name.device), "%u-%u", USBFS_BUS, number);
	usbfs_configure(port, port->device.first_configuration);
	usbfs_udev_send("add", &port->name);
	usbfs_udev_send("bind", &port->name);
	usbfs_unlock();
	return port;
}

static void unplug(struct usbfs_port *port)
{
	if (!port->is_plugged)
		return;
	port->is_plugged = false;
	if (port->board != NULL)
		board_unplug(port->board);
	usbfs_finish_all(port, NULL, -1, -ESHUTDOWN);
	memset(port->owners, 0, sizeof(port->owners));
	for (struct usbfs_node *node = port->nodes; node != NULL; node = node->next) {
		close(node->drain_fd);
		node->drain_fd = -1;
	}
	usbfs_udev_send("unbind", &port->name);
	usbfs_udev_send("remove", &port->name);
}

void usbfs_unplug(struct usbfs_port *port)
{
	usbfs_lock();
	unplug(port);
	usbfs_unlock();
}

void usbfs_lose_power(struct usbfs_port *port)
{
	usbfs_lock();
	if (port->is_plugged && !port->is_dead) {
		port->is_dead = true;
		board_unplug(port->board);
		usbfs_serve(port);
	}
	usbfs_unlock();
}

bool usbfs_command(struct usbfs_port *port, const char *line, char answer[BOARD_ANSWER])
{
	usbfs_lock();
	bool is_done = board_command(port->board, line, answer, usbfs_now());
	port->due_ns = 0;
	usbfs_serve(port);
	usbfs_unlock();
	return is_done;
}

struct board_sent usbfs_sent(struct usbfs_port *port)
{
	usbfs_lock();
	struct board_sent sent = board_sent(port->board);
	usbfs_unlock();
	return sent;
}

void usbfs_replay(struct usbfs_port *port, const uint8_t *bytes, size_t n)
{
	usbfs_lock();
	port->replay = bytes;
	port->replay_bytes = n;
	port->replay_at = 0;
	usbfs_serve(port);
	usbfs_unlock();
}

void usbfs_bind_driver(struct usbfs_port *port, const char *name)
{
	usbfs_lock();
	port->has_driver = name != NULL;
	snprintf(port->driver, sizeof(port->driver), "%s", name != NULL ? name : "");
	usbfs_unlock();
}

unsigned usbfs_names(struct usbfs_name names[USBFS_PORTS + 1])
{
	unsigned n = 0;

	usbfs_lock();
	for (const struct usbfs_port *port = usbfs_k.ports; port != NULL; port = port->next)
		if (port->is_plugged)
			names[n++] = port->name;
	usbfs_unlock();
	return n;
}

int usbfs_attribute_open(const char *device, const char *attribute)
{
	uint8_t bytes[USBFS_ATTRIBUTE_BYTES];
	const struct usbfs_port *port;
	int n = -ENOENT;

	int error = usbfs_enter(USBFS_SYSFS);
	usbfs_nap(USBFS_SYSFS);
	if (error != 0)
		return -error;
	usbfs_lock();
	for (port = usbfs_k.ports; port != NULL && n < 0; port = port->next)
		if (port->is_plugged && strcmp(port->name.device, device) == 0)
			n = usbfs_device_attribute(
				&port->device, port->name.address, attribute, bytes);
	usbfs_unlock();
	if (n < 0)
		return n;
	int fd = memfd_create(attribute, MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, bytes, (size_t)n) != n || lseek(fd, 0, SEEK_SET) != 0)
		abort();
	return fd;
}

/* Nodes */

bool usbfs_is_node(int fd)
{
	return fd >= 0 && fd < NODES &&
	       atomic_load_explicit(&nodes[fd], memory_order_acquire) != NULL;
}

static struct usbfs_node *get_node(int fd)
{
	usbfs_lock();
	struct usbfs_node *node = atomic_load(&nodes[fd]);
	if (node != NULL)
		node->references++;
	usbfs_unlock();
	return node;
}

static void unref_node(struct usbfs_node *node, unsigned references)
{
	usbfs_lock();
	node->references -= references;
	bool is_last = node->references == 0;
	usbfs_unlock();
	if (is_last)
		free(node);
}

static void lock_device(struct usbfs_port *port)
{
	if (pthread_mutex_trylock(&port->mutex) == 0)
		return;
	usbfs_waited();
	pthread_mutex_lock(&port->mutex);
}

static struct usbfs_port *find_address(unsigned bus, unsigned address)
{
	struct usbfs_port *port = bus == USBFS_BUS ? usbfs_k.ports : NULL;

	while (port != NULL && (!port->is_plugged || port->name.address != address))
		port = port->next;
	return port;
}

static int new_node(struct usbfs_port *port)
{
	struct usbfs_node *node = calloc(1, sizeof(*node));
	int ends[2];

	if (node == NULL || pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
		free(node);
		return -ENOMEM;
	}
	if (ends[1] >= NODES || fcntl(ends[1], F_SETPIPE_SZ, 4096) != 4096)
		abort();
	*node = (struct usbfs_node){.port = port,
		.references = 1,
		.fd = ends[1],
		.drain_fd = ends[0],
		.completed.last = &node->completed.first,
		.next = port->nodes};
	port->nodes = node;
	usbfs_set_reapable(node, false);
	atomic_store(&nodes[node->fd], node);
	return node->fd;
}

int usbfs_node_open(unsigned bus, unsigned address)
{
	int error = usbfs_enter(USBFS_OPEN);

	usbfs_lock();
	struct usbfs_port *port = find_address(bus, address);
	usbfs_unlock();
	if (port == NULL || error != 0) {
		usbfs_nap(USBFS_OPEN);
		return error != 0 ? -error : -ENOENT;
	}
	lock_device(port);
	usbfs_nap(USBFS_OPEN);
	usbfs_lock();
	int fd = port->board == NULL ? -EACCES : !port->is_plugged ? -ENODEV : new_node(port);
	usbfs_unlock();
	pthread_mutex_unlock(&port->mutex);
	return fd;
}

/* Removes a node from its port; its descriptor stays open. */
static void detach(struct usbfs_node *node)
{
	struct usbfs_port *port = node->port;
	struct usbfs_node **at = &port->nodes;

	for (unsigned i = 0; i < USBFS_INTERFACES; i++) {
		usbfs_k.leaks.claims += port->owners[i] == node;
		port->owners[i] = port->owners[i] == node ? NULL : port->owners[i];
	}
	usbfs_finish_all(port, node, -1, -ENOENT);
	usbfs_drop_all(&node->completed);
	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
	node->is_closed = true;
	if (node->drain_fd >= 0)
		close(node->drain_fd);
	node->drain_fd = -1;
	atomic_store(&nodes[node->fd], NULL);
	if (port->is_plugged)
		usbfs_serve(port);
}

int usbfs_node_close(int fd)
{
	struct usbfs_node *node = get_node(fd);

	if (node == NULL)
		return -EBADF;
	struct usbfs_port *port = node->port;
	usbfs_enter(USBFS_CLOSE);
	lock_device(port);
	usbfs_nap(USBFS_CLOSE);
	usbfs_lock();
	bool is_first = !node->is_closed;
	if (is_first)
		detach(node);
	usbfs_unlock();
	pthread_mutex_unlock(&port->mutex);
	if (is_first)
		close(fd); /* no longer a node */
	unref_node(node, is_first ? 2 : 1);
	return is_first ? 0 : -EBADF;
}

int usbfs_node_ioctl(int fd, unsigned long request, void *argument)
{
	struct usbfs_node *node = get_node(fd);
	enum usbfs_call call = usbfs_call_of(request);

	if (node == NULL)
		return -EBADF;
	struct usbfs_port *port = node->port;
	int error = usbfs_enter(call);
	lock_device(port);
	usbfs_nap(call);
	usbfs_lock();
	int n = error != 0 ? -error : usbfs_answer(node, request, argument);
	usbfs_unlock();
	pthread_mutex_unlock(&port->mutex);
	unref_node(node, 1);
	return n;
}

/* Settings */

void usbfs_set_caps(uint32_t caps)
{
	usbfs_lock();
	usbfs_k.caps = caps;
	usbfs_unlock();
}

void usbfs_set_memory(uint64_t bytes)
{
	usbfs_lock();
	usbfs_k.memory_limit = bytes;
	usbfs_unlock();
}

void usbfs_set_threaded(bool is_threaded)
{
	usbfs_lock();
	usbfs_k.is_threaded = is_threaded;
	usbfs_unlock();
}

void usbfs_hold_events(bool is_held)
{
	usbfs_udev_hold(is_held);
}

void usbfs_discard_with(size_t bytes, unsigned count)
{
	usbfs_lock();
	usbfs_k.discard_bytes = bytes;
	usbfs_k.discard_count = count;
	usbfs_unlock();
}

/* Start and stop */

void usbfs_start(void)
{
	pthread_condattr_t attributes;

	usbfs_faults_reset();
	usbfs_lock();
	if (usbfs_is_started())
		abort();
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&usbfs_k.wake, &attributes);
	pthread_condattr_destroy(&attributes);
	usbfs_k.caps = USBFS_CAPS_XHCI;
	usbfs_k.memory_limit = UINT64_C(16) << 20;
	usbfs_k.memory = 0;
	usbfs_k.discard_count = 0;
	usbfs_k.is_threaded = false;
	usbfs_k.leaks = (struct usbfs_leaks){0};
	usbfs_k.address = 1;
	struct usbfs_port *hub = new_port(NULL);
	hub->name.address = 1;
	snprintf(hub->name.device, sizeof(hub->name.device), "usb%u", USBFS_BUS);
	usbfs_unlock();
	atomic_store_explicit(&is_started, true, memory_order_release);
}

static void free_port(struct usbfs_port *port)
{
	while (port->nodes != NULL) {
		struct usbfs_node *node = port->nodes;
		usbfs_k.leaks.nodes++;
		detach(node);
		close(node->fd);
		free(node);
	}
	pthread_mutex_destroy(&port->mutex);
	free(port);
}

struct usbfs_leaks usbfs_stop(void)
{
	if (!usbfs_is_started())
		return (struct usbfs_leaks){0};
	usbfs_stop_thread();
	usbfs_lock();
	usbfs_k.is_threaded = false;
	usbfs_k.leaks.monitors = usbfs_udev_stop();
	for (struct usbfs_port *next, *port = usbfs_k.ports; port != NULL; port = next) {
		next = port->next;
		unplug(port);
		free_port(port);
	}
	usbfs_k.ports = NULL;
	for (struct usbfs_urb *next, *urb = usbfs_k.spare; urb != NULL; urb = next) {
		next = urb->next;
		free(urb);
	}
	usbfs_k.spare = NULL;
	struct usbfs_leaks leaks = usbfs_k.leaks;
	pthread_cond_destroy(&usbfs_k.wake);
	usbfs_unlock();
	usbfs_faults_reset();
	atomic_store_explicit(&is_started, false, memory_order_release);
	return leaks;
}
