/* The functions of libudev that libusb calls. A monitor's descriptor is an eventfd that counts its
 * pending events. They are declared here because libudev's header would need another package. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/board/usbfs_kernel.h"

#define SYSPATH "/sys/bus/usb/devices/"

struct udev {
	unsigned references;
};

struct udev_list_entry {
	struct udev_list_entry *next;
	char path[224];
};

struct udev_enumerate {
	unsigned references;
	struct udev_list_entry entries[USBFS_PORTS + 1];
	unsigned count;
};

struct udev_device {
	struct udev_device *next; /* in a monitor's queue */
	unsigned references;
	char action[8];
	struct usbfs_name name;
	char node[32];
};

struct udev_monitor {
	struct udev_monitor *next;
	unsigned references;
	int fd;
	bool is_receiving;
	struct udev_device *first;
	struct udev_device **last;
};

/* Events held back, oldest first. */
struct reported {
	struct reported *next;
	char action[8];
	struct usbfs_name name;
};

static struct {
	pthread_mutex_t lock;
	struct udev_monitor *monitors;
	bool is_held;
	struct reported *first;
	struct reported **last;
} u = {.lock = PTHREAD_MUTEX_INITIALIZER, .last = &u.first};

struct udev *udev_new(void);
struct udev *udev_ref(struct udev *udev);
struct udev *udev_unref(struct udev *udev);
struct udev_monitor *udev_monitor_new_from_netlink(struct udev *udev, const char *name);
int udev_monitor_filter_add_match_subsystem_devtype(
	struct udev_monitor *monitor, const char *subsystem, const char *devtype);
int udev_monitor_enable_receiving(struct udev_monitor *monitor);
int udev_monitor_get_fd(struct udev_monitor *monitor);
struct udev_device *udev_monitor_receive_device(struct udev_monitor *monitor);
struct udev_monitor *udev_monitor_unref(struct udev_monitor *monitor);
struct udev_enumerate *udev_enumerate_new(struct udev *udev);
int udev_enumerate_add_match_subsystem(struct udev_enumerate *list, const char *subsystem);
int udev_enumerate_add_match_property(
	struct udev_enumerate *list, const char *property, const char *value);
int udev_enumerate_scan_devices(struct udev_enumerate *list);
struct udev_list_entry *udev_enumerate_get_list_entry(struct udev_enumerate *list);
struct udev_enumerate *udev_enumerate_unref(struct udev_enumerate *list);
struct udev_list_entry *udev_list_entry_get_next(struct udev_list_entry *entry);
const char *udev_list_entry_get_name(struct udev_list_entry *entry);
struct udev_device *udev_device_new_from_syspath(struct udev *udev, const char *path);
const char *udev_device_get_action(struct udev_device *device);
const char *udev_device_get_devnode(struct udev_device *device);
const char *udev_device_get_sysname(struct udev_device *device);
struct udev_device *udev_device_unref(struct udev_device *device);

static void *allocate(size_t bytes)
{
	void *memory = calloc(1, bytes);

	if (memory == NULL)
		abort();
	return memory;
}

static struct udev_device *make_device(const char *action, const struct usbfs_name *name)
{
	struct udev_device *device = allocate(sizeof(*device));

	device->references = 1;
	device->name = *name;
	snprintf(device->action, sizeof(device->action), "%s", action);
	snprintf(device->node, sizeof(device->node), "/dev/bus/usb/%03u/%03u", USBFS_BUS,
		name->address);
	return device;
}

/* Events */

static void send_to_monitors(const char *action, const struct usbfs_name *name)
{
	for (struct udev_monitor *m = u.monitors; m != NULL; m = m->next) {
		if (!m->is_receiving)
			continue;
		*m->last = make_device(action, name);
		m->last = &(*m->last)->next;
		eventfd_write(m->fd, 1);
	}
}

void usbfs_udev_send(const char *action, const struct usbfs_name *name)
{
	pthread_mutex_lock(&u.lock);
	if (u.is_held) {
		struct reported *reported = allocate(sizeof(*reported));
		snprintf(reported->action, sizeof(reported->action), "%s", action);
		reported->name = *name;
		*u.last = reported;
		u.last = &reported->next;
	} else {
		send_to_monitors(action, name);
	}
	pthread_mutex_unlock(&u.lock);
}

static struct reported *next_held(void)
{
	struct reported *reported = u.first;

	if (reported != NULL) {
		u.first = reported->next;
		u.last = u.first != NULL ? u.last : &u.first;
	}
	return reported;
}

void usbfs_udev_hold(bool is_held)
{
	pthread_mutex_lock(&u.lock);
	u.is_held = is_held;
	for (struct reported *reported; !is_held && (reported = next_held()) != NULL;
		free(reported))
		send_to_monitors(reported->action, &reported->name);
	pthread_mutex_unlock(&u.lock);
}

unsigned usbfs_udev_stop(void)
{
	unsigned n = 0;

	pthread_mutex_lock(&u.lock);
	u.is_held = false;
	for (struct reported *reported; (reported = next_held()) != NULL;)
		free(reported);
	for (struct udev_monitor *m = u.monitors; m != NULL; m = m->next)
		n++;
	pthread_mutex_unlock(&u.lock);
	return n;
}

/* libudev */

struct udev *udev_new(void)
{
	struct udev *udev = allocate(sizeof(*udev));

	udev->references = 1;
	return udev;
}

struct udev *udev_ref(struct udev *udev)
{
	udev->references++;
	return udev;
}

struct udev *udev_unref(struct udev *udev)
{
	if (udev != NULL && --udev->references == 0)
		free(udev);
	return NULL;
}

struct udev_monitor *udev_monitor_new_from_netlink(struct udev *udev, const char *name)
{
	struct udev_monitor *monitor = allocate(sizeof(*monitor));

	(void)udev;
	(void)name;
	monitor->references = 1;
	monitor->last = &monitor->first;
	monitor->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
	if (monitor->fd < 0)
		abort();
	pthread_mutex_lock(&u.lock);
	monitor->next = u.monitors;
	u.monitors = monitor;
	pthread_mutex_unlock(&u.lock);
	return monitor;
}

int udev_monitor_filter_add_match_subsystem_devtype(
	struct udev_monitor *monitor, const char *subsystem, const char *devtype)
{
	(void)monitor;
	(void)subsystem;
	(void)devtype;
	return 0;
}

int udev_monitor_enable_receiving(struct udev_monitor *monitor)
{
	pthread_mutex_lock(&u.lock);
	monitor->is_receiving = true;
	pthread_mutex_unlock(&u.lock);
	return 0;
}

int udev_monitor_get_fd(struct udev_monitor *monitor)
{
	return monitor->fd;
}

struct udev_device *udev_monitor_receive_device(struct udev_monitor *monitor)
{
	eventfd_t one;

	pthread_mutex_lock(&u.lock);
	struct udev_device *device = monitor->first;
	if (device != NULL) {
		eventfd_read(monitor->fd, &one);
		monitor->first = device->next;
		if (monitor->first == NULL)
			monitor->last = &monitor->first;
	}
	pthread_mutex_unlock(&u.lock);
	return device;
}

struct udev_monitor *udev_monitor_unref(struct udev_monitor *monitor)
{
	if (monitor == NULL || --monitor->references != 0)
		return NULL;
	pthread_mutex_lock(&u.lock);
	struct udev_monitor **at = &u.monitors;
	while (*at != monitor)
		at = &(*at)->next;
	*at = monitor->next;
	pthread_mutex_unlock(&u.lock);
	for (struct udev_device *next, *d = monitor->first; d != NULL; d = next) {
		next = d->next;
		free(d);
	}
	close(monitor->fd);
	free(monitor);
	return NULL;
}

struct udev_enumerate *udev_enumerate_new(struct udev *udev)
{
	struct udev_enumerate *list = allocate(sizeof(*list));

	(void)udev;
	list->references = 1;
	return list;
}

int udev_enumerate_add_match_subsystem(struct udev_enumerate *list, const char *subsystem)
{
	(void)list;
	(void)subsystem;
	return 0;
}

int udev_enumerate_add_match_property(
	struct udev_enumerate *list, const char *property, const char *value)
{
	(void)list;
	(void)property;
	(void)value;
	return 0;
}

int udev_enumerate_scan_devices(struct udev_enumerate *list)
{
	struct usbfs_name names[USBFS_PORTS + 1];

	list->count = usbfs_names(names);
	for (unsigned i = 0; i < list->count; i++) {
		struct udev_list_entry *entry = &list->entries[i];
		snprintf(entry->path, sizeof(entry->path), SYSPATH "%s", names[i].device);
		entry->next = i + 1 < list->count ? entry + 1 : NULL;
	}
	return 0;
}

struct udev_list_entry *udev_enumerate_get_list_entry(struct udev_enumerate *list)
{
	return list->count != 0 ? list->entries : NULL;
}

struct udev_enumerate *udev_enumerate_unref(struct udev_enumerate *list)
{
	if (list != NULL && --list->references == 0)
		free(list);
	return NULL;
}

struct udev_list_entry *udev_list_entry_get_next(struct udev_list_entry *entry)
{
	return entry != NULL ? entry->next : NULL;
}

const char *udev_list_entry_get_name(struct udev_list_entry *entry)
{
	return entry != NULL ? entry->path : NULL;
}

/* Returns NULL if the device was unplugged since. libusb 1.0.26 does not check and passes NULL to
 * the functions below, as with the real libudev. */
struct udev_device *udev_device_new_from_syspath(struct udev *udev, const char *path)
{
	struct usbfs_name names[USBFS_PORTS + 1];
	unsigned count = usbfs_names(names);

	(void)udev;
	for (unsigned i = 0; i < count; i++)
		if (strcmp(path + strlen(SYSPATH), names[i].device) == 0)
			return make_device("", &names[i]);
	return NULL;
}

const char *udev_device_get_action(struct udev_device *device)
{
	return device != NULL && device->action[0] != '\0' ? device->action : NULL;
}

const char *udev_device_get_devnode(struct udev_device *device)
{
	return device != NULL ? device->node : NULL;
}

const char *udev_device_get_sysname(struct udev_device *device)
{
	return device != NULL ? device->name.device : NULL;
}

struct udev_device *udev_device_unref(struct udev_device *device)
{
	if (device != NULL && --device->references == 0)
		free(device);
	return NULL;
}
