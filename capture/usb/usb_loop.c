/* Polls libusb's file descriptors on the loop. libusb may add and remove descriptors on any thread
 * (has_changed), so the list of watches is compared with libusb's before the loop waits again.
 *
 * States: open; released (another thread opens or closes a device: nothing is polled or handled);
 * closing (every watch is being closed, then libusb exits on the thread pool).
 *
 * Invariant: no libusb call that may wait for another thread is made on the loop, and a descriptor
 * is no longer polled when its device is closed, because the kernel reuses numbers at once. */
#include "capture/usb/usb_loop.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "capture/usb/usb_find.h"

/* libusb's event and timer descriptors, udev's monitor, one device, and a reserve. */
#define WATCHES_MAX 16

struct watch {
	uv_poll_t poll;
	struct bc_usb_loop *usb;
	int fd;
	bool is_own;     /* libusb's own, not a device's: open as long as the context */
	bool is_stopped; /* not polled: released, or libuv stopped after an error */
	bool is_seen;    /* found in libusb's current list */
};

struct bc_usb_loop {
	struct bc_usb_loop_options options;
	libusb_context *context;
	libusb_hotplug_callback_handle hotplug;
	struct watch *watches[WATCHES_MAX];
	atomic_bool has_changed; /* libusb's descriptors have changed; set on any thread */
	bool is_open;
	bool is_released; /* another thread is opening or closing a device */
	bool is_closing;
	unsigned closing; /* watches whose close callback is pending */
	uv_work_t exit_job;
};

static void on_fd_added(int fd, short events, void *context)
{
	struct bc_usb_loop *u = context;

	(void)fd;
	(void)events;
	atomic_store(&u->has_changed, true);
}

static void on_fd_removed(int fd, void *context)
{
	on_fd_added(fd, 0, context);
}

static int LIBUSB_CALL on_hotplug(
	libusb_context *context, libusb_device *device, libusb_hotplug_event event, void *data)
{
	struct bc_usb_loop *u = data;

	(void)context;
	if (!u->is_closing)
		u->options.on_hotplug(
			u->options.context, device, event == LIBUSB_HOTPLUG_EVENT_DEVICE_LEFT);
	return 0;
}

/* Runs off the loop: libusb_exit() waits for libusb's hotplug thread. */
static void exit_libusb(uv_work_t *job)
{
	struct bc_usb_loop *u = job->data;

	libusb_exit(u->context);
}

static void on_exited(uv_work_t *job, int status)
{
	struct bc_usb_loop *u = job->data;
	struct bc_usb_loop_options options = u->options;

	(void)status;
	free(u);
	if (options.on_closed != NULL)
		options.on_closed(options.context);
}

static void exit_when_closed(struct bc_usb_loop *u)
{
	if (u->is_closing && u->closing == 0)
		uv_queue_work(u->options.loop, &u->exit_job, exit_libusb, on_exited);
}

static void on_watch_closed(uv_handle_t *handle)
{
	struct watch *watch = handle->data;
	struct bc_usb_loop *u = watch->usb;

	free(watch);
	u->closing--;
	exit_when_closed(u);
}

static void close_watch(struct bc_usb_loop *u, struct watch **slot)
{
	struct watch *watch = *slot;

	*slot = NULL;
	u->closing++;
	uv_close((uv_handle_t *)&watch->poll, on_watch_closed);
}

static void handle_events(struct bc_usb_loop *u)
{
	struct timeval zero = {0, 0};

	/* The result is ignored: faults are reported by the transfers. */
	libusb_handle_events_timeout_completed(u->context, &zero, NULL);
	if (!u->is_released && atomic_load(&u->has_changed) && bc_usb_loop_sync(u) != 0)
		atomic_store(&u->has_changed, true); /* out of memory: retry at the next event */
	if (u->is_open && !u->is_closing)
		u->options.on_events(u->options.context);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct watch *watch = poll->data;

	(void)events;
	if (status < 0) {
		/* The descriptor of an unplugged device reports an error, and libuv stops polling
		 * it. libusb still has to handle it. If it can't now, sync() polls it again. */
		watch->is_stopped = true;
		atomic_store(&watch->usb->has_changed, true);
	}
	handle_events(watch->usb);
}

/* A usbfs descriptor becomes writable when a transfer has finished. */
static int uv_events_of(short events)
{
	return ((events & POLLIN) != 0 ? UV_READABLE : 0) |
	       ((events & POLLOUT) != 0 ? UV_WRITABLE : 0);
}

static struct watch *find_watch(struct bc_usb_loop *u, int fd)
{
	for (int i = 0; i < WATCHES_MAX; i++)
		if (u->watches[i] != NULL && u->watches[i]->fd == fd)
			return u->watches[i];
	return NULL;
}

static int add_watch(struct bc_usb_loop *u, const struct libusb_pollfd *pollfd)
{
	for (int i = 0; i < WATCHES_MAX; i++) {
		if (u->watches[i] != NULL)
			continue;
		struct watch *watch = calloc(1, sizeof(*watch));
		if (watch == NULL)
			return -ENOMEM;
		int rc = uv_poll_init(u->options.loop, &watch->poll, pollfd->fd);
		if (rc != 0) {
			free(watch);
			return rc;
		}
		watch->usb = u;
		watch->fd = pollfd->fd;
		watch->is_own = !u->is_open;
		watch->is_seen = true;
		watch->poll.data = watch;
		u->watches[i] = watch;
		return uv_poll_start(&watch->poll, uv_events_of(pollfd->events), on_poll);
	}
	return -EMFILE;
}

int bc_usb_loop_sync(struct bc_usb_loop *u)
{
	int rc = 0;

	u->is_released = false;
	atomic_store(&u->has_changed, false);
	const struct libusb_pollfd **pollfds = libusb_get_pollfds(u->context);
	if (pollfds == NULL)
		return -ENOMEM;
	for (int i = 0; i < WATCHES_MAX; i++)
		if (u->watches[i] != NULL)
			u->watches[i]->is_seen = false;
	for (int i = 0; pollfds[i] != NULL && rc == 0; i++) {
		struct watch *watch = find_watch(u, pollfds[i]->fd);
		if (watch == NULL) {
			rc = add_watch(u, pollfds[i]);
			continue;
		}
		watch->is_seen = true;
		if (watch->is_stopped)
			rc = uv_poll_start(&watch->poll, uv_events_of(pollfds[i]->events), on_poll);
		watch->is_stopped = false;
	}
	libusb_free_pollfds(pollfds);
	for (int i = 0; i < WATCHES_MAX && rc == 0; i++)
		if (u->watches[i] != NULL && !u->watches[i]->is_seen)
			close_watch(u, &u->watches[i]);
	return rc;
}

void bc_usb_loop_release(struct bc_usb_loop *u)
{
	u->is_released = true;
	for (int i = 0; i < WATCHES_MAX; i++) {
		struct watch *watch = u->watches[i];
		if (watch == NULL)
			continue;
		if (!watch->is_own) {
			close_watch(u, &u->watches[i]);
			continue;
		}
		/* While a thread closes a device, libusb blocks event handling but keeps its own
		 * descriptor readable: polling it would make the loop spin. */
		uv_poll_stop(&watch->poll);
		watch->is_stopped = true;
	}
}

libusb_context *bc_usb_loop_context(struct bc_usb_loop *u)
{
	return u->context;
}

/* Polls the context's descriptors and listens to its events. */
static int watch_context(struct bc_usb_loop *u)
{
	/* First add the descriptors that already exist, then set the notifiers. */
	u->is_open = false;
	int rc = bc_usb_loop_sync(u);
	libusb_set_pollfd_notifiers(u->context, on_fd_added, on_fd_removed, u);
	int registered = bc_usb_errno(libusb_hotplug_register_callback(u->context,
		LIBUSB_HOTPLUG_EVENT_DEVICE_ARRIVED | LIBUSB_HOTPLUG_EVENT_DEVICE_LEFT, 0,
		LIBUSB_HOTPLUG_MATCH_ANY, LIBUSB_HOTPLUG_MATCH_ANY, LIBUSB_HOTPLUG_MATCH_ANY,
		on_hotplug, u, &u->hotplug));
	return rc != 0 ? rc : registered;
}

static void unwatch_context(struct bc_usb_loop *u)
{
	libusb_hotplug_deregister_callback(u->context, u->hotplug);
	libusb_set_pollfd_notifiers(u->context, NULL, NULL, NULL);
	for (int i = 0; i < WATCHES_MAX; i++)
		if (u->watches[i] != NULL)
			close_watch(u, &u->watches[i]);
}

int bc_usb_loop_adopt(struct bc_usb_loop *u, libusb_context *context)
{
	libusb_context *old = u->context;

	unwatch_context(u);
	u->context = context;
	int rc = watch_context(u);
	u->is_open = true;
	libusb_exit(old); /* does not wait for libusb's thread: another context exists */
	return rc;
}

void bc_usb_loop_close(struct bc_usb_loop *u)
{
	u->is_closing = true;
	unwatch_context(u);
	exit_when_closed(u);
}

int bc_usb_loop_open(struct bc_usb_loop **usb, const struct bc_usb_loop_options *options)
{
	struct bc_usb_loop *u = calloc(1, sizeof(*u));

	if (u == NULL)
		return -ENOMEM;
	u->options = *options;
	u->exit_job.data = u;
	int rc = libusb_init(&u->context);
	if (rc != 0) {
		free(u);
		return rc == LIBUSB_ERROR_OTHER ? -ENOTSUP : bc_usb_errno(rc);
	}
	if (!libusb_has_capability(LIBUSB_CAP_HAS_HOTPLUG) ||
		libusb_pollfds_handle_timeouts(u->context) != 1) {
		libusb_exit(u->context);
		free(u);
		return -ENOTSUP;
	}
	rc = watch_context(u);
	if (rc != 0) {
		u->options.on_closed = NULL;
		bc_usb_loop_close(u);
		return rc;
	}
	u->is_open = true;
	*usb = u;
	return 0;
}
