#include "tests/board/umockdev_host.h"

#include <assert.h>
#include <errno.h>
#include <linux/usb/ch9.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "formats/base/bytes.h"

#define MAX_INTERFACES  32
#define MAX_DESCRIPTORS 4096
#define MAX_DRIVER      16
#define PAUSE_NS        UINT64_C(2000000)

struct host_file {
	struct host_device *device;
	uint32_t capabilities;
	uint32_t claims; /* bitmap of interfaces */
	struct host_urbs completed;
	TAILQ_ENTRY(host_file) link;
};

struct host_device {
	unsigned references; /* the owner's, and one per file */
	struct host *host;
	struct board *board; /* NULL: unplugged */
	void (*ready)(void *owner, bool is_ready);
	void *owner;
	uint8_t descriptors[MAX_DESCRIPTORS];
	size_t descriptor_bytes;
	uint8_t setting[MAX_INTERFACES];
	char driver[MAX_DRIVER];
	uint32_t detached;     /* interfaces from which the driver was detached */
	bool is_bulk_disabled; /* a short transfer has ended a series of continuations */
	TAILQ_HEAD(host_files, host_file) files;
	struct host_urbs bulk;    /* in order of submission */
	struct host_urbs hanging; /* control transfers that the board does not answer */
	unsigned completed;
};

/* ---- descriptors */

struct endpoint {
	unsigned interface;
	unsigned type; /* 2: bulk */
	unsigned packet_bytes;
};

/* Walks the interface and endpoint descriptors. With `address`, it looks for that endpoint in the
 * current settings, else for interface `wanted.interface` with `setting` (-1: any). Counts the
 * settings of the interface in *settings. Stops at invalid descriptors. */
static bool walk_descriptors(const struct host_device *device, unsigned address, int setting,
	struct endpoint *wanted, unsigned *settings)
{
	unsigned interface = MAX_INTERFACES;
	unsigned current = 0;
	bool is_found = false;

	for (size_t at = 0; at + 2 <= device->descriptor_bytes;) {
		const uint8_t *d = device->descriptors + at;
		if (d[0] < 2 || d[0] > device->descriptor_bytes - at)
			break;
		if (d[1] == USB_DT_INTERFACE && d[0] >= 9) {
			interface = d[2];
			current = d[3];
			if (address == 0 && interface == wanted->interface) {
				*settings += 1;
				is_found |= setting < 0 || current == (unsigned)setting;
			}
		} else if (d[1] == USB_DT_ENDPOINT && d[0] >= 7 && address != 0 && !is_found &&
			   d[2] == address && interface < MAX_INTERFACES &&
			   current == device->setting[interface]) {
			*wanted = (struct endpoint){interface, d[3] & 3u, bc_le16(d + 4) & 0x7ffu};
			is_found = true;
		}
		at += d[0];
	}
	return is_found;
}

static bool find_endpoint(
	const struct host_device *device, unsigned address, struct endpoint *endpoint)
{
	unsigned settings = 0;
	return address != 0 && walk_descriptors(device, address, -1, endpoint, &settings);
}

static bool has_setting(
	const struct host_device *device, unsigned interface, int setting, unsigned *settings)
{
	struct endpoint wanted = {.interface = interface};
	*settings = 0;
	return interface < MAX_INTERFACES &&
	       walk_descriptors(device, 0, setting, &wanted, settings);
}

static unsigned packet_bytes(const struct host_device *device)
{
	struct endpoint endpoint;
	if (!find_endpoint(device, BOARD_ENDPOINT, &endpoint) || endpoint.packet_bytes == 0)
		return 512;
	return endpoint.packet_bytes;
}

const uint8_t *host_descriptors(const struct host_device *device, size_t *bytes)
{
	*bytes = device->descriptor_bytes;
	return device->descriptors;
}

unsigned host_megabits(const struct host_device *device)
{
	unsigned bytes = packet_bytes(device);
	return bytes <= 64 ? 12 : bytes <= 512 ? 480 : 5000;
}

/* ---- transfers */

static void finish(struct host_device *device, struct host_urb *urb, int status);

/* The rest of a split transfer ends with its first short part. */
static void cancel_continuations(struct host_device *device, struct host_urb *after)
{
	device->is_bulk_disabled = true;
	for (struct host_urb *urb = after, *next; urb != NULL; urb = next) {
		next = TAILQ_NEXT(urb, link);
		if ((urb->flags & USBDEVFS_URB_BULK_CONTINUATION) == 0) {
			device->is_bulk_disabled = false;
			return;
		}
		finish(device, urb, -ENOENT);
	}
}

/* Ends a transfer of the bulk queue or a hanging control transfer. */
static void finish(struct host_device *device, struct host_urb *urb, int status)
{
	bool is_bulk = urb->type == USBDEVFS_URB_TYPE_BULK;
	struct host_urb *next = TAILQ_NEXT(urb, link);

	TAILQ_REMOVE(is_bulk ? &device->bulk : &device->hanging, urb, link);
	if (status == 0 && (urb->flags & USBDEVFS_URB_SHORT_NOT_OK) && urb->actual < urb->length)
		status = -EREMOTEIO;
	urb->status = status;
	TAILQ_INSERT_TAIL(&urb->file->completed, urb, link);
	if (device->completed++ == 0 && device->ready != NULL)
		device->ready(device->owner, true);
	if (is_bulk && status < 0 && status != -ENOENT &&
		(urb->flags & (USBDEVFS_URB_SHORT_NOT_OK | USBDEVFS_URB_BULK_CONTINUATION)))
		cancel_continuations(device, next);
}

/* Lets the board fill a transfer up to `room` bytes. Returns the board's result. */
static int fill(struct host_device *device, struct host_urb *urb, size_t room, uint64_t now_ns)
{
	if (urb->data == NULL && urb->length > 0) {
		urb->data = malloc(urb->length);
		if (urb->data == NULL)
			return -ENOMEM;
	}
	size_t bytes = 0;
	int rc = board_bulk_in(
		device->board, urb->data + urb->actual, room - urb->actual, &bytes, now_ns);
	assert(bytes <= room - urb->actual);
	urb->actual += bytes;
	return rc;
}

/* Returns how much of a transfer arrives before the pause in which it can be discarded; 0: no
 * pause. */
static size_t first_part(const struct host_device *device, const struct host_urb *urb)
{
	size_t part = device->host->discard_bytes;

	part -= part % packet_bytes(device);
	return part < urb->length ? part : 0;
}

/* Fills the first transfer of the queue as far as possible. Returns false if it has to wait for
 * its time or for the board. */
static bool advance(struct host_device *device, struct host_urb *urb, uint64_t now_ns)
{
	size_t part = first_part(device, urb);
	bool is_first = part > 0 && urb->actual == 0;

	if (urb->is_stuck || (urb->actual > 0 && now_ns < urb->go_on_ns))
		return false;
	int rc = fill(device, urb, is_first ? part : urb->length, now_ns);
	if (rc == BOARD_NAK && urb->actual == 0)
		return false;
	if (rc == 0 && is_first && urb->actual == part) {
		urb->go_on_ns = now_ns + PAUSE_NS;
		return false;
	}
	/* A host has no timeout: the transfer stays pending until the program cancels it. */
	if (rc == -ETIMEDOUT)
		urb->is_stuck = true;
	else
		finish(device, urb, rc == BOARD_NAK ? 0 : rc);
	return true;
}

void host_run(struct host_device *device, uint64_t now_ns)
{
	struct host_urb *urb;

	while (device->board != NULL && (urb = TAILQ_FIRST(&device->bulk)) != NULL)
		if (!advance(device, urb, now_ns))
			return;
}

uint64_t host_due_ns(const struct host_device *device, uint64_t now_ns)
{
	const struct host_urb *urb = TAILQ_FIRST(&device->bulk);
	if (device->board == NULL || urb == NULL || urb->is_stuck)
		return UINT64_MAX;
	if (urb->actual > 0)
		return urb->go_on_ns;
	return board_due_ns(device->board, now_ns);
}

static uint64_t urb_memory(const struct host_urb *urb)
{
	return urb->length + sizeof(struct usbdevfs_urb);
}

/* Claims an interface for a file, unless another file or a driver has it. */
static int claim(struct host_file *file, unsigned interface)
{
	struct host_device *device = file->device;
	struct host_file *other;
	unsigned settings;

	if (!has_setting(device, interface, -1, &settings))
		return -ENOENT;
	uint32_t bit = UINT32_C(1) << interface;
	TAILQ_FOREACH(other, &device->files, link)
	if (other != file && (other->claims & bit))
		return -EBUSY;
	if (device->driver[0] != '\0' && (device->detached & bit) == 0)
		return -EBUSY;
	file->claims |= bit;
	return 0;
}

static int submit_bulk(struct host_file *file, struct host_urb *urb, uint64_t now_ns)
{
	struct host_device *device = file->device;
	struct endpoint endpoint;

	if (!find_endpoint(device, urb->endpoint, &endpoint))
		return -ENOENT;
	if (endpoint.type != 2)
		return -EINVAL;
	if (endpoint.packet_bytes == 0)
		return -EMSGSIZE;
	/* As the kernel does, which also logs a warning. */
	int rc = claim(file, endpoint.interface);
	if (rc < 0)
		return rc;
	if (urb->endpoint != BOARD_ENDPOINT)
		return -EPIPE;
	if ((urb->flags & USBDEVFS_URB_BULK_CONTINUATION) == 0)
		device->is_bulk_disabled = false;
	if (device->is_bulk_disabled)
		return -EREMOTEIO;
	TAILQ_INSERT_TAIL(&device->bulk, urb, link);
	host_run(device, now_ns);
	return 0;
}

static int submit_control(struct host_file *file, struct host_urb *urb, uint64_t now_ns)
{
	struct host_device *device = file->device;

	if (bc_le16(urb->setup + 6) != urb->length)
		return -EINVAL;
	TAILQ_INSERT_TAIL(&device->hanging, urb, link);
	int rc = board_control(device->board, urb->setup, urb->data, now_ns);
	if (rc != -ETIMEDOUT) {
		urb->actual = rc < 0 ? 0 : (size_t)rc;
		finish(device, urb, rc < 0 ? rc : 0);
	}
	host_run(device, now_ns);
	return 0;
}

int host_submit(struct host_file *file, struct host_urb *urb, uint64_t now_ns)
{
	struct host *host = file->device->host;
	int rc = -EINVAL;

	if (file->device->board == NULL)
		return -ENODEV;
	if (host->memory_limit != 0 && host->memory_used + urb_memory(urb) > host->memory_limit)
		return -ENOMEM;
	urb->file = file;
	/* Count it first: the transfer may complete before this returns. */
	host->memory_used += urb_memory(urb);
	if (urb->type == USBDEVFS_URB_TYPE_BULK)
		rc = submit_bulk(file, urb, now_ns);
	else if (urb->type == USBDEVFS_URB_TYPE_CONTROL)
		rc = submit_control(file, urb, now_ns);
	if (rc < 0)
		host->memory_used -= urb_memory(urb);
	return rc;
}

int host_discard(struct host_file *file, uint64_t address, uint64_t now_ns)
{
	struct host_device *device = file->device;
	struct host_urb *urb;

	if (device->board == NULL)
		return -ENODEV;
	TAILQ_FOREACH(urb, &device->bulk, link)
	{
		if (urb->file == file && urb->address == address) {
			finish(device, urb, -ENOENT);
			host_run(device, now_ns);
			return 0;
		}
	}
	TAILQ_FOREACH(urb, &device->hanging, link)
	{
		if (urb->file == file && urb->address == address) {
			finish(device, urb, -ENOENT);
			return 0;
		}
	}
	return -EINVAL;
}

/* Removes the first completed transfer from the list. */
static struct host_urb *pop_completed(struct host_file *file)
{
	struct host_device *device = file->device;
	struct host_urb *urb = TAILQ_FIRST(&file->completed);

	if (urb == NULL)
		return NULL;
	TAILQ_REMOVE(&file->completed, urb, link);
	device->host->memory_used -= urb_memory(urb);
	if (--device->completed == 0 && device->ready != NULL)
		device->ready(device->owner, false);
	return urb;
}

int host_reap(struct host_file *file, struct host_urb **urb)
{
	*urb = pop_completed(file);
	if (*urb != NULL)
		return 0;
	return file->device->board == NULL ? -ENODEV : -EAGAIN;
}

/* Ends the pending transfers of one file, or of all if NULL. */
static void finish_all(struct host_device *device, const struct host_file *file, int status)
{
	struct host_urbs *lists[] = {&device->bulk, &device->hanging};

	for (size_t i = 0; i < 2; i++) {
		for (struct host_urb *urb = TAILQ_FIRST(lists[i]), *next; urb != NULL; urb = next) {
			next = TAILQ_NEXT(urb, link);
			if (file != NULL && urb->file != file)
				continue;
			/* Each one ends here by itself, not as a continuation. */
			urb->flags = 0;
			finish(device, urb, status);
		}
	}
}

/* ---- calls that complete immediately */

static int standard(struct host_device *device, unsigned recipient, unsigned request,
	unsigned value, unsigned index, uint64_t now_ns)
{
	uint8_t setup[8] = {(uint8_t)recipient, (uint8_t)request};

	bc_write_le16(setup + 2, (uint16_t)value);
	bc_write_le16(setup + 4, (uint16_t)index);
	int rc = board_control(device->board, setup, NULL, now_ns);
	return rc < 0 ? rc : 0;
}

static int set_interface(
	struct host_file *file, unsigned interface, unsigned setting, uint64_t now_ns)
{
	struct host_device *device = file->device;
	unsigned settings;
	int rc = claim(file, interface);

	if (rc < 0)
		return rc;
	if (setting > 255 || !has_setting(device, interface, (int)setting, &settings))
		return -EINVAL;
	rc = standard(device, 1, 11, setting, interface, now_ns);
	if (rc < 0 && (rc != -EPIPE || settings > 1))
		return rc;
	finish_all(device, NULL, -ENOENT);
	device->setting[interface] = (uint8_t)setting;
	return 0;
}

static int set_configuration(struct host_device *device, int value, uint64_t now_ns)
{
	struct host_file *file;

	TAILQ_FOREACH(file, &device->files, link)
	if (file->claims != 0)
		return -EBUSY;
	int rc = standard(device, 0, 9, value < 0 ? 0 : (unsigned)value, 0, now_ns);
	if (rc < 0)
		return rc == -EPIPE ? -EINVAL : rc;
	memset(device->setting, 0, sizeof device->setting);
	return 0;
}

static int clear_halt(struct host_device *device, unsigned address, uint64_t now_ns)
{
	struct endpoint endpoint;

	if (!find_endpoint(device, address, &endpoint))
		return -ENOENT;
	int rc = standard(device, 2, 1, 0, address, now_ns);
	host_run(device, now_ns);
	return rc;
}

static int reset(struct host_device *device, uint64_t now_ns)
{
	finish_all(device, NULL, -EPROTO);
	memset(device->setting, 0, sizeof device->setting);
	int rc = standard(device, 0, 9, device->descriptors[18 + 5], 0, now_ns);
	return rc < 0 ? -ENODEV : 0;
}

/* Returns who has an interface: "usbfs", a driver's name, or "". */
static const char *driver_of(const struct host_device *device, unsigned interface)
{
	const struct host_file *file;

	if (interface >= MAX_INTERFACES)
		return "";
	TAILQ_FOREACH(file, &device->files, link)
	if (file->claims & UINT32_C(1) << interface)
		return "usbfs";
	return device->detached & UINT32_C(1) << interface ? "" : device->driver;
}

static int get_driver(struct host_device *device, struct usbdevfs_getdriver *get)
{
	const char *name = driver_of(device, get->interface);

	if (name[0] == '\0')
		return -ENODATA;
	memset(get->driver, 0, sizeof get->driver);
	memcpy(get->driver, name, strlen(name));
	return 0;
}

static int driver_call(struct host_device *device, const struct usbdevfs_ioctl *call)
{
	unsigned settings;

	if (call->ifno < 0 || !has_setting(device, (unsigned)call->ifno, -1, &settings))
		return -EINVAL;
	uint32_t bit = UINT32_C(1) << call->ifno;
	const char *name = driver_of(device, (unsigned)call->ifno);
	switch ((unsigned)call->ioctl_code) {
	case USBDEVFS_DISCONNECT:
		if (name[0] == '\0')
			return -ENODATA;
		if (strcmp(name, "usbfs") != 0)
			device->detached |= bit;
		return 0;
	case USBDEVFS_CONNECT:
		if (name[0] != '\0')
			return -EBUSY;
		device->detached &= ~bit;
		return device->driver[0] != '\0';
	default:
		return -ENOTTY;
	}
}

static int disconnect_claim(struct host_file *file, const struct usbdevfs_disconnect_claim *call)
{
	struct host_device *device = file->device;
	unsigned settings;

	if (!has_setting(device, call->interface, -1, &settings))
		return -EINVAL;
	const char *name = driver_of(device, call->interface);
	if (name[0] != '\0') {
		bool is_named = strncmp(name, call->driver, sizeof call->driver) == 0;
		if ((call->flags & USBDEVFS_DISCONNECT_CLAIM_IF_DRIVER) && !is_named)
			return -EBUSY;
		if ((call->flags & USBDEVFS_DISCONNECT_CLAIM_EXCEPT_DRIVER) && is_named)
			return -EBUSY;
		if (strcmp(name, "usbfs") != 0)
			device->detached |= UINT32_C(1) << call->interface;
	}
	return claim(file, call->interface);
}

static int release(struct host_file *file, unsigned interface)
{
	if (interface >= MAX_INTERFACES || (file->claims & UINT32_C(1) << interface) == 0)
		return -EINVAL;
	file->claims &= ~(UINT32_C(1) << interface);
	finish_all(file->device, file, -ENOENT);
	return 0;
}

size_t host_call_bytes(unsigned long request)
{
	switch (request) {
	case USBDEVFS_CLAIMINTERFACE:
	case USBDEVFS_RELEASEINTERFACE:
	case USBDEVFS_SETCONFIGURATION:
	case USBDEVFS_CLEAR_HALT:
	case USBDEVFS_RESETEP:
	case USBDEVFS_GET_CAPABILITIES:
		return sizeof(unsigned);
	case USBDEVFS_SETINTERFACE:
		return sizeof(struct usbdevfs_setinterface);
	case USBDEVFS_GETDRIVER:
		return sizeof(struct usbdevfs_getdriver);
	case USBDEVFS_IOCTL:
		return sizeof(struct usbdevfs_ioctl);
	case USBDEVFS_DISCONNECT_CLAIM:
		return sizeof(struct usbdevfs_disconnect_claim);
	default:
		return 0;
	}
}

int host_call(struct host_file *file, unsigned long request, void *argument, uint64_t now_ns)
{
	struct host_device *device = file->device;
	const struct usbdevfs_setinterface *set = argument;
	unsigned number = 0;

	if (device->board == NULL)
		return -ENODEV;
	if (host_call_bytes(request) == sizeof number)
		memcpy(&number, argument, sizeof number);
	switch (request) {
	case USBDEVFS_CLAIMINTERFACE:
		return claim(file, number);
	case USBDEVFS_RELEASEINTERFACE:
		return release(file, number);
	case USBDEVFS_SETINTERFACE:
		return set_interface(file, set->interface, set->altsetting, now_ns);
	case USBDEVFS_SETCONFIGURATION:
		return set_configuration(device, (int)number, now_ns);
	case USBDEVFS_CLEAR_HALT:
		return clear_halt(device, number, now_ns);
	case USBDEVFS_RESETEP:
		return 0;
	case USBDEVFS_RESET:
		return reset(device, now_ns);
	case USBDEVFS_GETDRIVER:
		return get_driver(device, argument);
	case USBDEVFS_IOCTL:
		return driver_call(device, argument);
	case USBDEVFS_DISCONNECT_CLAIM:
		return disconnect_claim(file, argument);
	case USBDEVFS_GET_CAPABILITIES:
		memcpy(argument, &file->capabilities, sizeof file->capabilities);
		return 0;
	case USBDEVFS_GET_SPEED:
		return host_megabits(device) == 12 ? 2 : host_megabits(device) == 480 ? 3 : 5;
	default:
		return -ENOTTY;
	}
}

/* ---- plugging and opening */

struct host_device *host_plug(struct host *host, struct board *board, uint64_t now_ns,
	void (*ready)(void *owner, bool is_ready), void *owner)
{
	struct host_device *device = calloc(1, sizeof *device);
	if (device == NULL)
		return NULL;
	device->references = 1;
	device->host = host;
	device->board = board;
	device->ready = ready;
	device->owner = owner;
	TAILQ_INIT(&device->files);
	TAILQ_INIT(&device->bulk);
	TAILQ_INIT(&device->hanging);
	board_plug(board, now_ns);
	size_t bytes = board_descriptor(board, 1, 0, device->descriptors, MAX_DESCRIPTORS);
	bytes += board_descriptor(
		board, 2, 0, device->descriptors + bytes, MAX_DESCRIPTORS - bytes);
	device->descriptor_bytes = bytes;
	if (bytes > 18 + 5)
		(void)standard(device, 0, 9, device->descriptors[18 + 5], 0, now_ns);
	return device;
}

void host_unplug(struct host_device *device)
{
	finish_all(device, NULL, -ESHUTDOWN);
	device->ready = NULL;
	board_unplug(device->board);
	device->board = NULL;
}

void host_unref(struct host_device *device)
{
	if (--device->references > 0)
		return;
	assert(device->board == NULL && TAILQ_EMPTY(&device->files));
	free(device);
}

void host_set_driver(struct host_device *device, const char *driver)
{
	size_t length = driver == NULL ? 0 : strnlen(driver, MAX_DRIVER - 1);

	memset(device->driver, 0, sizeof device->driver);
	if (length > 0)
		memcpy(device->driver, driver, length);
	device->detached = 0;
}

struct host_file *host_open(struct host_device *device)
{
	struct host_file *file = calloc(1, sizeof *file);
	if (file == NULL)
		return NULL;
	file->device = device;
	file->capabilities = device->host->capabilities;
	TAILQ_INIT(&file->completed);
	TAILQ_INSERT_TAIL(&device->files, file, link);
	device->references++;
	return file;
}

uint64_t host_close(struct host_file *file, size_t lost, void (*release_cookie)(void *cookie))
{
	struct host_device *device = file->device;
	struct host_urb *urb;

	finish_all(device, file, -ENOENT);
	while ((urb = pop_completed(file)) != NULL) {
		if (urb->type == USBDEVFS_URB_TYPE_BULK)
			lost += urb->actual;
		if (release_cookie != NULL && urb->cookie != NULL)
			release_cookie(urb->cookie);
		free(urb->data);
		free(urb);
	}
	if (lost > 0 && device->board != NULL && board_undelivered(device->board, lost))
		lost = 0;
	TAILQ_REMOVE(&device->files, file, link);
	free(file);
	host_unref(device);
	return lost;
}

struct host_state host_state(const struct host_device *device)
{
	struct host_state state = {.completed = device->completed};
	const struct host_file *file;
	const struct host_urb *urb;

	TAILQ_FOREACH(file, &device->files, link)
	{
		state.files++;
		for (uint32_t bits = file->claims; bits != 0; bits &= bits - 1)
			state.claimed++;
	}
	TAILQ_FOREACH(urb, &device->bulk, link)
	state.pending++;
	TAILQ_FOREACH(urb, &device->hanging, link)
	state.pending++;
	return state;
}
