/* Decides which USB devices are capture boards: by VID:PID, serial number and port, then by a
 * vendor-specific interface with a bulk IN endpoint. For any other device it says why not, because
 * that is what a user asks when a board is not found. */
#include "capture/usb/usb_find.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PORTS_MAX 7 /* depth of hubs that USB allows */

int bc_usb_errno(int code)
{
	static const int errnos[] = {
		[-LIBUSB_SUCCESS] = 0,
		[-LIBUSB_ERROR_IO] = -EIO,
		[-LIBUSB_ERROR_INVALID_PARAM] = -EINVAL,
		[-LIBUSB_ERROR_ACCESS] = -EACCES,
		[-LIBUSB_ERROR_NO_DEVICE] = -ENODEV,
		[-LIBUSB_ERROR_NOT_FOUND] = -ENOENT,
		[-LIBUSB_ERROR_BUSY] = -EBUSY,
		[-LIBUSB_ERROR_TIMEOUT] = -ETIMEDOUT,
		[-LIBUSB_ERROR_OVERFLOW] = -EOVERFLOW,
		[-LIBUSB_ERROR_PIPE] = -EPIPE,
		[-LIBUSB_ERROR_INTERRUPTED] = -EINTR,
		[-LIBUSB_ERROR_NO_MEM] = -ENOMEM,
		[-LIBUSB_ERROR_NOT_SUPPORTED] = -ENOTSUP,
	};

	return code <= 0 && code >= LIBUSB_ERROR_NOT_SUPPORTED ? errnos[-code] : -EIO;
}

void bc_usb_make_printable(char *text)
{
	for (; *text != '\0'; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

void bc_usb_match_write(char out[BC_USB_MATCH_TEXT], const struct bc_usb_match *match)
{
	const char *without = match->is_exact ? " without serial number" : "";

	snprintf(out, BC_USB_MATCH_TEXT, "%04x:%04x%s%s%s%s", match->vid, match->pid,
		match->serial[0] != '\0' ? " with serial number " : without, match->serial,
		match->port[0] != '\0' ? " at port " : "", match->port);
}

/* Returns what follows a number at the start of the text, or NULL without one. */
static const char *skip_number(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	return digits >= 1 && digits <= 3 ? text + digits : NULL;
}

bool bc_usb_is_port(const char *text)
{
	const char *at = skip_number(text);

	for (int depth = 0; at != NULL && depth < PORTS_MAX; depth++) {
		if (*at != (depth == 0 ? '-' : '.'))
			return depth > 0 && *at == '\0';
		at = skip_number(at + 1);
	}
	return at != NULL && *at == '\0';
}

/* Reads a string descriptor from sysfs; empty if there is none. Returns false if unreadable. */
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
	bc_usb_make_printable(out);
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

/* Returns the bulk IN endpoint of one alternate setting, with a valid packet size; else NULL. */
static const struct libusb_endpoint_descriptor *bulk_in(
	const struct libusb_interface_descriptor *setting, const char **err)
{
	/* If a configuration is truncated, bNumEndpoints is as claimed, but endpoint is NULL. */
	for (int i = 0; setting->endpoint != NULL && i < setting->bNumEndpoints; i++) {
		const struct libusb_endpoint_descriptor *e = &setting->endpoint[i];
		unsigned packet = e->wMaxPacketSize;
		if ((e->bmAttributes & LIBUSB_TRANSFER_TYPE_MASK) != LIBUSB_TRANSFER_TYPE_BULK ||
			(e->bEndpointAddress & LIBUSB_ENDPOINT_IN) == 0)
			continue;
		if (packet >= 8 && packet <= 1024 && (packet & (packet - 1)) == 0)
			return e;
		*err = "bulk IN endpoint with an invalid packet size";
	}
	return NULL;
}

const char *bc_usb_find_endpoint(
	struct bc_board_identity *identity, const struct libusb_config_descriptor *config)
{
	const char *err = "no vendor-specific interface (class FF)";
	bool has_vendor = false;

	for (int i = 0; i < config->bNumInterfaces; i++) {
		const struct libusb_interface *interface = &config->interface[i];
		for (int k = 0; k < interface->num_altsetting; k++) {
			const struct libusb_interface_descriptor *s = &interface->altsetting[k];
			if (s->bInterfaceClass != LIBUSB_CLASS_VENDOR_SPEC)
				continue;
			if (!has_vendor)
				err = "vendor-specific interface without a bulk IN endpoint";
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

/* Fills in a device's identity and decides whether it is a matching board. */
static void check_device(struct bc_usb_device *d, const struct bc_usb_match *match)
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
	d->is_unreadable = !read_attribute(id->serial, sizeof(id->serial), id->port, "serial");
	(void)read_attribute(id->product, sizeof(id->product), id->port, "product");
	if (libusb_get_device_descriptor(d->device, &device) != 0) {
		snprintf(d->reject_reason, sizeof(d->reject_reason), "no device descriptor");
		return;
	}
	id->vid = device.idVendor;
	id->pid = device.idProduct;
	if (id->vid != match->vid || id->pid != match->pid) {
		snprintf(d->reject_reason, sizeof(d->reject_reason), "not %04x:%04x", match->vid,
			match->pid);
		return;
	}
	int rc = libusb_get_active_config_descriptor(d->device, &config);
	if (rc != 0) {
		d->is_unreadable = true;
		d->is_gone = rc == LIBUSB_ERROR_NO_DEVICE;
		snprintf(d->reject_reason, sizeof(d->reject_reason),
			"can't read its configuration: %s", libusb_strerror((enum libusb_error)rc));
		return;
	}
	err = bc_usb_find_endpoint(id, config);
	libusb_free_config_descriptor(config);
	if (err != NULL) {
		snprintf(d->reject_reason, sizeof(d->reject_reason), "%s", err);
	} else if ((match->serial[0] != '\0' || match->is_exact) &&
		   strcmp(match->serial, id->serial) != 0) {
		snprintf(d->reject_reason, sizeof(d->reject_reason), "different serial number");
		d->is_other = true;
	} else if (match->port[0] != '\0' && strcmp(match->port, id->port) != 0) {
		snprintf(d->reject_reason, sizeof(d->reject_reason), "not at port %s", match->port);
		d->is_other = true;
	}
}

static int compare_devices(const void *a, const void *b)
{
	const struct bc_usb_device *x = a;
	const struct bc_usb_device *y = b;
	bool is_x = x->reject_reason[0] == '\0';
	bool is_y = y->reject_reason[0] == '\0';

	if (is_x != is_y)
		return is_x ? -1 : 1;
	return strverscmp(x->identity.port, y->identity.port);
}

int bc_usb_list(struct bc_usb_list *list, libusb_context *context, const struct bc_usb_match *match)
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
		check_device(&list->devices[i], match);
		list->matching += list->devices[i].reject_reason[0] == '\0';
	}
	libusb_free_device_list(devices, 0); /* keeps the references: `list` owns them now */
	qsort(list->devices, list->count, sizeof(*list->devices), compare_devices);
	return 0;
}

void bc_usb_list_free(struct bc_usb_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		libusb_unref_device(list->devices[i].device);
	free(list->devices);
	memset(list, 0, sizeof(*list));
}
