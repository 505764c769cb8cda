#include "tests/board/umockdev_bus.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

/* An open file of a program. All of this runs on the testbed's thread. Copying from and to a
 * program waits for it, so it is done without the lock. */
struct client {
	struct port *port;
	struct host_file *file;
	size_t lost; /* bytes that were reaped but could not be copied */
};

static void release_data(void *cookie)
{
	g_object_unref(cookie);
}

static void on_client_gone(gpointer data, GObject *where)
{
	struct client *client = data;
	struct bus *bus = client->port->bus;

	(void)where;
	pthread_mutex_lock(&bus->lock);
	client->port->lost_bytes += host_close(client->file, client->lost, release_data);
	bus_set_timer(bus);
	pthread_mutex_unlock(&bus->lock);
	free(client);
}

static void on_client_connected(UMockdevIoctlBase *base, UMockdevIoctlClient *mock, struct bus *bus)
{
	struct client *client = calloc(1, sizeof *client);
	const char *node = umockdev_ioctl_client_get_devnode(mock);
	const char *slash = node == NULL ? NULL : strrchr(node, '/');

	(void)base;
	g_assert_nonnull(client);
	pthread_mutex_lock(&bus->lock);
	for (unsigned i = 0; slash != NULL && i < bus->boards; i++) {
		struct port *port = &bus->ports[i];
		/* The preload library connects even if open() fails. */
		if (port->device != NULL && port->devnum == (unsigned)atoi(slash + 1) &&
			!port->is_denied) {
			client->port = port;
			client->file = host_open(port->device);
			g_assert_nonnull(client->file);
			port->opens++;
		}
	}
	pthread_mutex_unlock(&bus->lock);
	if (client->file == NULL) {
		free(client);
		return;
	}
	g_object_set_data(G_OBJECT(mock), "client", client);
	g_object_weak_ref(G_OBJECT(mock), on_client_gone, client);
}

/* Copies the data that the program's pointer at `offset` of `data` points to. Returns NULL on
 * failure. */
static UMockdevIoctlData *resolve(UMockdevIoctlData *data, size_t offset, size_t bytes)
{
	GError *error = NULL;
	UMockdevIoctlData *there = umockdev_ioctl_data_resolve(data, offset, bytes, &error);
	g_clear_error(&error);
	return there;
}

static int submit(struct client *client, UMockdevIoctlData *arg)
{
	UMockdevIoctlData *data = resolve(arg, 0, sizeof(struct usbdevfs_urb));
	if (data == NULL)
		return -EFAULT;
	struct usbdevfs_urb there;
	memcpy(&there, data->data, sizeof there);
	struct host_urb *urb = calloc(1, sizeof *urb);
	int rc = -EINVAL;
	g_assert_nonnull(urb);
	if (there.buffer_length < 0)
		goto out;
	*urb = (struct host_urb){.address = data->client_addr,
		.type = there.type,
		.endpoint = there.endpoint,
		.flags = there.flags,
		.length = (size_t)there.buffer_length,
		.cookie = data};
	if (urb->type == USBDEVFS_URB_TYPE_CONTROL) {
		if (urb->length < 8 || urb->length > 8 + 65535)
			goto out;
		UMockdevIoctlData *buffer = resolve(
			data, offsetof(struct usbdevfs_urb, buffer), urb->length);
		rc = -EFAULT;
		if (buffer == NULL)
			goto out;
		urb->length -= 8;
		memcpy(urb->setup, buffer->data, 8);
		urb->data = malloc(urb->length + 1);
		g_assert_nonnull(urb->data);
		memcpy(urb->data, buffer->data + 8, urb->length);
		g_object_unref(buffer);
	}
	pthread_mutex_lock(&client->port->bus->lock);
	rc = host_submit(client->file, urb, bus_now_ns());
	bus_set_timer(client->port->bus);
	pthread_mutex_unlock(&client->port->bus->lock);
out:
	if (rc < 0) {
		free(urb->data);
		free(urb);
		g_object_unref(data);
	}
	return rc;
}

/* Copies a transfer's data into the program's buffer. */
static int copy_back(UMockdevIoctlData *data, const struct host_urb *urb)
{
	bool is_control = urb->type == USBDEVFS_URB_TYPE_CONTROL;
	size_t bytes = urb->actual;

	if (bytes == 0 || (is_control && (urb->setup[0] & 0x80) == 0))
		return 0;
	/* For a control transfer it is already resolved as a whole. */
	UMockdevIoctlData *buffer = resolve(data, offsetof(struct usbdevfs_urb, buffer), bytes);
	if (buffer == NULL)
		return -EFAULT;
	memcpy(buffer->data + (is_control ? 8 : 0), urb->data, bytes);
	g_object_unref(buffer);
	return 0;
}

static int reap(struct client *client, UMockdevIoctlData *arg)
{
	struct bus *bus = client->port->bus;
	struct host_urb *urb;

	pthread_mutex_lock(&bus->lock);
	int rc = host_reap(client->file, &urb);
	pthread_mutex_unlock(&bus->lock);
	if (rc < 0)
		return rc;
	UMockdevIoctlData *data = urb->cookie;
	UMockdevIoctlData *pointer = resolve(arg, 0, sizeof(void *));
	rc = pointer == NULL ? -EFAULT : copy_back(data, urb);
	if (rc == 0) {
		struct usbdevfs_urb there;
		memcpy(&there, data->data, sizeof there);
		there.status = urb->status;
		there.actual_length = (int)urb->actual;
		memcpy(data->data, &there, sizeof there);
		umockdev_ioctl_data_set_ptr(pointer, 0, data);
	} else if (urb->type == USBDEVFS_URB_TYPE_BULK) {
		client->lost += urb->actual;
	}
	if (pointer != NULL)
		g_object_unref(pointer);
	g_object_unref(data);
	free(urb->data);
	free(urb);
	return rc;
}

static int call(struct client *client, unsigned long request, UMockdevIoctlData *arg)
{
	struct bus *bus = client->port->bus;
	size_t bytes = host_call_bytes(request);
	UMockdevIoctlData *data = NULL;

	if (bytes > 0) {
		data = resolve(arg, 0, bytes);
		if (data == NULL)
			return -EFAULT;
	}
	pthread_mutex_lock(&bus->lock);
	int rc = host_call(client->file, request, data == NULL ? NULL : data->data, bus_now_ns());
	bus_set_timer(bus);
	pthread_mutex_unlock(&bus->lock);
	if (data != NULL)
		g_object_unref(data);
	return rc;
}

static int discard(struct client *client, uint64_t address)
{
	struct bus *bus = client->port->bus;

	pthread_mutex_lock(&bus->lock);
	int rc = host_discard(client->file, address, bus_now_ns());
	bus_set_timer(bus);
	pthread_mutex_unlock(&bus->lock);
	return rc;
}

static gboolean on_ioctl(UMockdevIoctlBase *base, UMockdevIoctlClient *mock, struct bus *bus)
{
	struct client *client = g_object_get_data(G_OBJECT(mock), "client");
	unsigned long request = umockdev_ioctl_client_get_request(mock);
	UMockdevIoctlData *arg = umockdev_ioctl_client_get_arg(mock);
	unsigned long address;
	int rc;

	(void)base;
	(void)bus;
	memcpy(&address, arg->data, sizeof address);
	if (client == NULL)
		rc = -ENODEV;
	else if (request == USBDEVFS_SUBMITURB)
		rc = submit(client, arg);
	else if (request == USBDEVFS_REAPURBNDELAY)
		rc = reap(client, arg);
	else if (request == USBDEVFS_DISCARDURB)
		rc = discard(client, address);
	else
		rc = call(client, request, arg);
	umockdev_ioctl_client_complete(mock, rc < 0 ? -1 : rc, rc < 0 ? -rc : 0);
	return TRUE;
}

void bus_listen(struct bus *bus)
{
	bus->handler = umockdev_ioctl_base_new();
	g_signal_connect(bus->handler, "handle-ioctl", G_CALLBACK(on_ioctl), bus);
	g_signal_connect(bus->handler, "client-connected", G_CALLBACK(on_client_connected), bus);
}
