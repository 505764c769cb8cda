#include "capture/usb/usb_find.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PORTS_MAX 7 /* a chain of hubs is no longer */

int bc_usb_errno(int code)
{
	switch (code) {
	case LIBUSB_SUCCESS:
		return 0;
	case LIBUSB_ERROR_INVALID_PARAM:
		return -EINVAL;
	case LIBUSB_ERROR_ACCESS:
		return -EACCES;
	case LIBUSB_ERROR_NO_DEVICE:
		return -ENODEV;
	case LIBUSB_ERROR_NOT_FOUND:
		return -ENOENT;
	case LIBUSB_ERROR_BUSY:
		return -EBUSY;
	case LIBUSB_ERROR_TIMEOUT:
		return -ETIMEDOUT;
	case LIBUSB_ERROR_OVERFLOW:
		return -EOVERFLOW;
	case LIBUSB_ERROR_PIPE:
		return -EPIPE;
	case LIBUSB_ERROR_INTERRUPTED:
		return -EINTR;
	case LIBUSB_ERROR_NO_MEM:
		return -ENOMEM;
	case LIBUSB_ERROR_NOT_SUPPORTED:
		return -ENOTSUP;
	default:
		return -EIO;
	}
}

void bc_usb_clean(char *text)
{
	for (; *text != '\0'; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

void bc_usb_wish_write(char out[BC_USB_WISH_TEXT], const struct bc_usb_wish *wish)
{
	if (wish->serial[0] == '\0')
		snprintf(out, BC_USB_WISH_TEXT, "%04x:%04x", wish->vid, wish->pid);
	else
		snprintf(out, BC_USB_WISH_TEXT, "%04x:%04x with serial number %s", wish->vid,
			wish->pid, wish->serial);
}

/* A string of the device that the kernel keeps in a file; empty if it has none. Returns false if
 * there is one that can't be read. */
static bool read_attribute(char *out, size_t room, const char *port, const char *name)
{
	char path[128];

	out[0] = '\0';
	snprintf(path, sizeof(path), "/sys/bus/usb/devices/%s/%s", port, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT;
	ssize_t n = read(fd, out, room - 1);
	close(fd);
	out[n > 0 ? n : 0] = '\0';
	out[strcspn(out, "\n")] = '\0';
	bc_usb_clean(out);
	return n >= 0;
}

static void write_port(char *out, size_t room, libusb_device *device)
{
	uint8_t ports[PORTS_MAX];
	unsigned bus = libusb_get_bus_number(device);
	int count = libusb_get_port_numbers(device, ports, PORTS_MAX);

	if (count <= 0) { /* a root hub */
		snprintf(out, room, "usb%u", bus);
		return;
	}
	int at = snprintf(out, room, "%u-%u", bus, ports[0]);
	for (int i = 1; i < count; i++)
		at += snprintf(out + at, room - (size_t)at, ".%u", ports[i]);
}

static const char *speed_name(int speed)
{
	static const char *const names[] = {
		[LIBUSB_SPEED_UNKNOWN] = "unknown",
		[LIBUSB_SPEED_LOW] = "low",
		[LIBUSB_SPEED_FULL] = "full",
		[LIBUSB_SPEED_HIGH] = "high",
		[LIBUSB_SPEED_SUPER] = "super",
		[LIBUSB_SPEED_SUPER_PLUS] = "super-plus",
	};

	return speed >= 0 && (size_t)speed < sizeof(names) / sizeof(names[0]) ? names[speed]
									      : "unknown";
}

/* The bulk IN endpoint of one alternate setting, with packets of a size that bulk endpoints have.
 */
static const struct libusb_endpoint_descriptor *bulk_in(
	const struct libusb_interface_descriptor *setting, const char **err)
{
	/* Of a configuration that ends early libusb gives the number of endpoints as claimed, and
	 * none of them. */
	for (int i = 0; setting->endpoint != NULL && i < setting->bNumEndpoints; i++) {
		const struct libusb_endpoint_descriptor *e = &setting->endpoint[i];
		unsigned packet = e->wMaxPacketSize;
		if ((e->bmAttributes & LIBUSB_TRANSFER_TYPE_MASK) != LIBUSB_TRANSFER_TYPE_BULK ||
			(e->bEndpointAddress & LIBUSB_ENDPOINT_IN) == 0)
			continue;
		if (packet >= 8 && packet <= 1024 && (packet & (packet - 1)) == 0)
			return e;
		*err = "its bulk IN endpoint claims packets of a size that there isn't";
	}
	return NULL;
}

const char *bc_usb_find_endpoint(
	struct bc_board_identity *identity, const struct libusb_config_descriptor *config)
{
	const char *err = "it has no vendor-specific interface (class FF)";
	bool has_vendor = false;

	for (int i = 0; i < config->bNumInterfaces; i++) {
		const struct libusb_interface *interface = &config->interface[i];
		for (int k = 0; k < interface->num_altsetting; k++) {
			const struct libusb_interface_descriptor *s = &interface->altsetting[k];
			if (s->bInterfaceClass != LIBUSB_CLASS_VENDOR_SPEC)
				continue;
			if (!has_vendor)
				err = "its vendor-specific interface has no bulk IN endpoint";
			has_vendor = true;
			const struct libusb_endpoint_descriptor *e = bulk_in(s, &err);
			if (e == NULL)
				continue;
			identity->interface = s->bInterfaceNumber;
			identity->setting = s->bAlternateSetting;
			identity->endpoint = e->bEndpointAddress;
			identity->packet_bytes = e->wMaxPacketSize;
			return NULL;
		}
	}
	return err;
}

/* Looks at one device: who it is, and whether it is a board. */
static void judge(struct bc_usb_device *d, const struct bc_usb_wish *wish)
{
	struct bc_board_identity *id = &d->identity;
	struct libusb_device_descriptor device;
	struct libusb_config_descriptor *config;
	const char *err;

	id->bus = libusb_get_bus_number(d->device);
	id->address = libusb_get_device_address(d->device);
	write_port(id->port, sizeof(id->port), d->device);
	snprintf(
		id->speed, sizeof(id->speed), "%s", speed_name(libusb_get_device_speed(d->device)));
	d->is_unread = !read_attribute(id->serial, sizeof(id->serial), id->port, "serial");
	(void)read_attribute(id->product, sizeof(id->product), id->port, "product");
	if (libusb_get_device_descriptor(d->device, &device) != 0) {
		snprintf(d->why_not, sizeof(d->why_not), "it has no device descriptor");
		return;
	}
	id->vid = device.idVendor;
	id->pid = device.idProduct;
	if (id->vid != wish->vid || id->pid != wish->pid) {
		snprintf(d->why_not, sizeof(d->why_not), "not %04x:%04x", wish->vid, wish->pid);
		return;
	}
	int rc = libusb_get_active_config_descriptor(d->device, &config);
	if (rc != 0) {
		d->is_unread = true;
		d->is_gone = rc == LIBUSB_ERROR_NO_DEVICE;
		snprintf(d->why_not, sizeof(d->why_not),
			"its configuration can't be read, or it has none: %s",
			libusb_strerror((enum libusb_error)rc));
		return;
	}
	err = bc_usb_find_endpoint(id, config);
	libusb_free_config_descriptor(config);
	if (err != NULL) {
		snprintf(d->why_not, sizeof(d->why_not), "%s", err);
	} else if (wish->serial[0] != '\0' && strcmp(wish->serial, id->serial) != 0) {
		snprintf(d->why_not, sizeof(d->why_not), "its serial number is not the one wanted");
		d->is_other = true;
	}
}

static int compare(const void *a, const void *b)
{
	const struct bc_usb_device *x = a;
	const struct bc_usb_device *y = b;
	bool is_x = x->why_not[0] == '\0';
	bool is_y = y->why_not[0] == '\0';

	if (is_x != is_y)
		return is_x ? -1 : 1;
	return strverscmp(x->identity.port, y->identity.port);
}

int bc_usb_list(struct bc_usb_list *list, libusb_context *context, const struct bc_usb_wish *wish)
{
	libusb_device **devices;
	ssize_t count = libusb_get_device_list(context, &devices);

	memset(list, 0, sizeof(*list));
	if (count < 0)
		return bc_usb_errno((int)count);
	list->devices = calloc((size_t)count + 1, sizeof(*list->devices));
	if (list->devices == NULL) {
		libusb_free_device_list(devices, 1);
		return -ENOMEM;
	}
	list->count = (size_t)count;
	for (size_t i = 0; i < list->count; i++) {
		list->devices[i].device = devices[i];
		judge(&list->devices[i], wish);
		list->matching += list->devices[i].why_not[0] == '\0';
	}
	libusb_free_device_list(devices, 0); /* the references are the list's now */
	qsort(list->devices, list->count, sizeof(*list->devices), compare);
	return 0;
}

void bc_usb_list_free(struct bc_usb_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		libusb_unref_device(list->devices[i].device);
	free(list->devices);
	memset(list, 0, sizeof(*list));
}
