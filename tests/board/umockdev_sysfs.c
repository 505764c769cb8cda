#include "tests/board/umockdev_sysfs.h"

#include <errno.h>
#include <glib.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "formats/base/bytes.h"

#define DEVICE_BYTES 18
#define CONFIG_BYTES 9
#define PATIENCE_S   5

static void append_hex(GString *text, const char *name, const uint8_t *bytes, size_t n)
{
	g_string_append_printf(text, "H: %s=", name);
	for (size_t i = 0; i < n; i++)
		g_string_append_printf(text, "%02X", bytes[i]);
	g_string_append_c(text, '\n');
}

/* Writes a string descriptor as the kernel's attribute; nothing if its index is 0. */
static void append_string(
	GString *text, const char *name, const struct board *board, unsigned index)
{
	uint8_t raw[256];
	size_t n = index == 0 ? 0 : board_descriptor(board, 3, index, raw, sizeof raw);
	GString *value = g_string_new(NULL);

	if (n >= 2 && raw[0] < n)
		n = raw[0];
	for (size_t i = 2; i + 2 <= n; i += 2) {
		gunichar c = bc_le16(raw + i);
		if (c == 0)
			break;
		if (c < 0xd800 || c > 0xdfff)
			g_string_append_unichar(value, c);
	}
	if (n >= 2) {
		g_string_append_c(value, '\n');
		append_hex(text, name, (const uint8_t *)value->str, value->len);
	}
	g_string_free(value, TRUE);
}

/* Copies the start of the descriptors, padded with zeros. */
static void copy_head(const struct sysfs_device *device, uint8_t head[DEVICE_BYTES + CONFIG_BYTES])
{
	size_t bytes = DEVICE_BYTES + CONFIG_BYTES;

	memset(head, 0, bytes);
	memcpy(head, device->descriptors, device->bytes < bytes ? device->bytes : bytes);
}

static void append_path(GString *text, const struct sysfs_device *device)
{
	g_string_append(text, SYSFS_HUB);
	if (device->port != 0)
		g_string_append_printf(text, "/1-%u", device->port);
	g_string_append_c(text, '\n');
}

static void append_properties(GString *text, const struct sysfs_device *device, const char *tag)
{
	uint8_t d[DEVICE_BYTES + CONFIG_BYTES];

	copy_head(device, d);
	g_string_append_printf(text, "%sSUBSYSTEM=usb\n%sDEVTYPE=usb_device\n", tag, tag);
	g_string_append_printf(text, "%sDEVNAME=/dev/bus/usb/001/%03u\n", tag, device->devnum);
	g_string_append_printf(text, "%sPRODUCT=%x/%x/%x\n", tag, bc_le16(d + 8), bc_le16(d + 10),
		bc_le16(d + 12));
	g_string_append_printf(text, "%sTYPE=%u/%u/%u\n", tag, d[4], d[5], d[6]);
	g_string_append_printf(text, "%sBUSNUM=001\n%sDEVNUM=%03u\n", tag, tag, device->devnum);
	g_string_append_printf(text, "%sMAJOR=189\n%sMINOR=%u\n", tag, tag, device->devnum - 1);
}

static void append_attributes(GString *text, const struct sysfs_device *device)
{
	uint8_t d[DEVICE_BYTES + CONFIG_BYTES];
	const uint8_t *config = d + DEVICE_BYTES;

	copy_head(device, d);
	g_string_append_printf(text,
		"A: dev=189:%u\nA: busnum=1\\n\nA: devnum=%u\\n\nA: devpath=%u\\n\n"
		"A: speed=%u\\n\nA: maxchild=%u\\n\n",
		device->devnum - 1, device->devnum, device->port, device->megabits,
		device->port == 0 ? 8 : 0);
	g_string_append_printf(text,
		"A: idVendor=%04x\\n\nA: idProduct=%04x\\n\nA: bcdDevice=%04x\\n\n"
		"A: version=%2x.%02x\\n\n",
		bc_le16(d + 8), bc_le16(d + 10), bc_le16(d + 12), d[3], d[2]);
	g_string_append_printf(text,
		"A: bDeviceClass=%02x\\n\nA: bDeviceSubClass=%02x\\n\n"
		"A: bDeviceProtocol=%02x\\n\nA: bMaxPacketSize0=%u\\n\n",
		d[4], d[5], d[6], d[7]);
	g_string_append_printf(text,
		"A: bNumConfigurations=%u\\n\nA: bConfigurationValue=%u\\n\n"
		"A: bNumInterfaces=%2u\\n\nA: bmAttributes=%02x\\n\nA: bMaxPower=%umA\\n\n",
		d[17], config[5], config[4], config[7], config[8] * 2u);
}

char *sysfs_text(const struct sysfs_device *device)
{
	GString *text = g_string_new("P: ");
	const uint8_t *d = device->descriptors;

	append_path(text, device);
	append_properties(text, device, "E: ");
	append_attributes(text, device);
	if (device->board != NULL && device->bytes >= DEVICE_BYTES) {
		append_string(text, "manufacturer", device->board, d[14]);
		append_string(text, "product", device->board, d[15]);
		append_string(text, "serial", device->board, d[16]);
	}
	/* libusb considers a device present when it can read these, so they come last. */
	append_hex(text, "descriptors", d, device->bytes);
	return g_string_free(text, FALSE);
}

char *sysfs_event(const struct sysfs_device *device)
{
	GString *event = g_string_new("DEVPATH=");

	append_path(event, device);
	append_properties(event, device, "");
	return g_string_free(event, FALSE);
}

/* The event header lets receivers filter: hashes of "usb" and "usb_device", computed as in systemd
 * (MurmurHash2, seed 0). */
#define HASH_USB        0x0577c5e5u
#define HASH_USB_DEVICE 0x27f8f50cu

/* Sends an event to one listener's socket in the testbed's directory. Returns false if its queue
 * is full. */
static bool send_event(const char *path, const struct iovec *parts, size_t count)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct msghdr message = {.msg_name = &address,
		.msg_namelen = sizeof address,
		.msg_iov = (struct iovec *)parts,
		.msg_iovlen = count};
	struct timeval patience = {.tv_sec = PATIENCE_S};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return false;
	snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
	int err = errno;
	close(fd);
	if (sent < 0 && err == ECONNREFUSED)
		unlink(path); /* its listener has closed it */
	return sent >= 0 || err == ECONNREFUSED || err == ENOENT;
}

bool sysfs_send_event(const char *root, const char *action, uint64_t number, const char *event)
{
	uint8_t header[40] = "libudev";
	char *body = g_strdup_printf(
		"ACTION=%s\nSEQNUM=%llu\n%s", action, (unsigned long long)number, event);
	size_t bytes = strlen(body);
	char *pattern = g_strdup_printf("%s/event[0-9]*", root);
	glob_t found;
	bool is_taken = true;

	for (size_t i = 0; i < bytes; i++)
		body[i] = body[i] == '\n' ? '\0' : body[i];
	bc_write_be32(header + 8, 0xfeedcafe);
	/* Lengths are in host byte order, the hashes big-endian. */
	memcpy(header + 12, &(uint32_t){sizeof header}, 4);
	memcpy(header + 16, &(uint32_t){sizeof header}, 4);
	memcpy(header + 20, &(uint32_t){(uint32_t)bytes}, 4);
	bc_write_be32(header + 24, HASH_USB);
	bc_write_be32(header + 28, HASH_USB_DEVICE);
	struct iovec parts[] = {{header, sizeof header}, {body, bytes}};
	if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0) {
		for (size_t i = 0; i < found.gl_pathc; i++)
			is_taken &= send_event(found.gl_pathv[i], parts, 2);
		globfree(&found);
	}
	g_free(pattern);
	g_free(body);
	return is_taken;
}
