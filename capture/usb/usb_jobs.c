/* The calls of libusb that block: listing, opening and closing devices. Each job runs on libuv's
 * pool, one at a time, and sees only struct bc_usb_jobs, which the loop leaves alone meanwhile.
 *
 * FIND also decides which board is the recorded one. Serial numbers need not be unique, so it
 * remembers the ports of boards that were present together with it: its twins. */
#include "capture/usb/usb_jobs.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static void name_other(struct bc_usb_jobs *w, const struct bc_board_identity *id)
{
	size_t at = strlen(w->others);

	snprintf(w->others + at, sizeof(w->others) - at, "%s%s at %s", at != 0 ? ", " : "",
		id->serial[0] != '\0' ? id->serial : "(no serial number)", id->port);
}

static bool is_board(const struct bc_usb_device *d)
{
	return d->reject_reason[0] == '\0' || d->is_other;
}

static bool has_port(const struct bc_usb_twins *twins, const char *port)
{
	for (unsigned i = 0; i < twins->count; i++)
		if (strcmp(twins->ports[i], port) == 0)
			return true;
	return false;
}

/* Remembers the boards that are present together with this one and have its serial number. */
static void note_twins(
	struct bc_usb_jobs *w, const struct bc_usb_list *list, const struct bc_board_identity *id)
{
	struct bc_usb_twins *twins = &w->twins;

	for (size_t i = 0; i < list->count; i++) {
		const struct bc_usb_device *d = &list->devices[i];
		if (!is_board(d) || d->is_unreadable ||
			strcmp(d->identity.serial, id->serial) != 0 ||
			strcmp(d->identity.port, id->port) == 0 ||
			has_port(twins, d->identity.port))
			continue;
		twins->is_full = twins->is_full || twins->count == BC_USB_TWINS;
		if (!twins->is_full)
			memcpy(twins->ports[twins->count++], d->identity.port,
				sizeof(d->identity.port));
	}
}

static bool is_match(const struct bc_usb_device *d)
{
	return d->reject_reason[0] == '\0';
}

/* True if a device that matches, away from the recorded board's port, may be that board: it is not
 * a twin, and all twins are at their ports, or it could be one of them. */
static bool may_have_moved(const struct bc_usb_jobs *w, const struct bc_usb_list *list,
	const struct bc_usb_device *device)
{
	unsigned present = 0;

	for (size_t i = 0; i < list->count; i++)
		present += is_match(&list->devices[i]) &&
			   has_port(&w->twins, list->devices[i].identity.port);
	return !has_port(&w->twins, device->identity.port) && !w->twins.is_full &&
	       present == w->twins.count;
}

/* Returns the recorded board: at its port, else the only one that may have moved; or NULL. */
static const struct bc_usb_device *find_recorded(
	const struct bc_usb_jobs *w, const struct bc_usb_list *list)
{
	const struct bc_usb_device *moved = NULL;
	unsigned count = 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct bc_usb_device *d = &list->devices[i];
		if (!is_match(d))
			continue;
		if (strcmp(d->identity.port, w->home) == 0)
			return d;
		if (may_have_moved(w, list, d)) {
			moved = d;
			count++;
		}
	}
	return count == 1 ? moved : NULL;
}

/* Returns the board to use: the recorded one, or of those that match the one after `skip` others.
 * They are first in the list. */
static const struct bc_usb_device *choose_board(
	const struct bc_usb_jobs *w, const struct bc_usb_list *list)
{
	if (list->matching == 0 || w->device != NULL)
		return NULL;
	return w->match.is_exact ? find_recorded(w, list)
				 : &list->devices[w->skip % list->matching];
}

static void select_board(struct bc_usb_jobs *w, const struct bc_usb_list *list)
{
	const struct bc_usb_device *chosen = choose_board(w, list);

	w->matching = (unsigned)list->matching;
	for (size_t i = 0; i < list->count; i++) {
		const struct bc_usb_device *d = &list->devices[i];
		bool is_named = d->identity.vid == w->match.vid && d->identity.pid == w->match.pid;
		if (d->device == w->device)
			continue;
		w->is_unreadable = w->is_unreadable || (is_named && d->is_unreadable);
		if (d->is_gone)
			continue;
		if (d == chosen) {
			w->found = libusb_ref_device(d->device);
			w->found_id = d->identity;
		} else if (is_board(d)) {
			name_other(w, &d->identity);
		} else if (is_named) {
			snprintf(w->reject_reason, sizeof(w->reject_reason),
				"device at %s is not a board: %s", d->identity.port,
				d->reject_reason);
		}
	}
}

/* If the context knows the board that was found, uses its object for it. */
static bool find_in_context(struct bc_usb_jobs *w, libusb_context *context)
{
	libusb_device **devices;
	ssize_t count = libusb_get_device_list(context, &devices);
	bool is_known = false;

	for (ssize_t i = 0; i < count && !is_known; i++) {
		is_known = libusb_get_bus_number(devices[i]) == w->found_id.bus &&
			   libusb_get_device_address(devices[i]) == w->found_id.address;
		if (is_known) {
			libusb_unref_device(w->found);
			w->found = libusb_ref_device(devices[i]);
		}
	}
	if (count >= 0)
		libusb_free_device_list(devices, 1);
	return is_known;
}

static void find_board(struct bc_usb_jobs *w)
{
	struct bc_usb_list list;
	libusb_context *fresh = NULL;

	bc_usb_jobs_drop_found(w);
	w->others[0] = '\0';
	w->reject_reason[0] = '\0';
	w->matching = 0;
	w->what = "list devices";
	/* A context lists what it found when it was made, and what events have told it since. */
	if (w->is_look && w->device == NULL && libusb_init(&fresh) != 0)
		fresh = NULL;
	w->status = bc_usb_list(&list, fresh != NULL ? fresh : w->context, &w->match);
	w->is_unreadable = w->status != 0;
	if (w->status == 0) {
		if (!w->match.is_exact && w->device == NULL)
			w->twins = (struct bc_usb_twins){0};
		select_board(w, &list);
		if (w->device != NULL)
			note_twins(w, &list, &w->identity);
		else if (w->found != NULL)
			note_twins(w, &list, &w->found_id);
		bc_usb_list_free(&list);
	}
	if (fresh == NULL)
		return;
	if (w->found != NULL && !find_in_context(w, w->context))
		w->found_context = fresh;
	else
		libusb_exit(fresh);
}

/* The board was unplugged a moment ago: whatever has its serial number now is another. */
static void look_for_twins(struct bc_usb_jobs *w)
{
	struct bc_usb_list list;
	libusb_context *fresh;

	if (libusb_init(&fresh) != 0)
		return;
	if (bc_usb_list(&list, fresh, &w->match) == 0) {
		note_twins(w, &list, &w->identity);
		bc_usb_list_free(&list);
	}
	libusb_exit(fresh);
}

static int open_and_claim(struct bc_usb_jobs *w)
{
	w->what = "open device";
	int rc = libusb_open(w->device, &w->handle);
	if (rc != 0) {
		w->handle = NULL;
		return rc;
	}
	/* The kernel's serial driver claims FTDI chips. If it can't be detached, claiming fails. */
	libusb_set_auto_detach_kernel_driver(w->handle, 1);
	w->what = "claim interface";
	rc = libusb_claim_interface(w->handle, w->identity.interface);
	if (rc != 0)
		return rc;
	w->is_claimed = true;
	w->what = "select alternate setting";
	if (w->identity.setting == 0)
		return 0;
	return libusb_set_interface_alt_setting(
		w->handle, w->identity.interface, w->identity.setting);
}

static void close_device(struct bc_usb_jobs *w)
{
	/* Errors are ignored: the device is gone or hangs, and is closed anyway. */
	if (w->handle != NULL && w->reset_first)
		libusb_reset_device(w->handle);
	if (w->is_claimed)
		libusb_release_interface(w->handle, w->identity.interface);
	if (w->handle != NULL)
		libusb_close(w->handle);
	if (w->device != NULL)
		libusb_unref_device(w->device);
	w->is_claimed = false;
	w->handle = NULL;
	w->device = NULL;
}

static void run_job(uv_work_t *work)
{
	struct bc_usb_jobs *w = work->data;

	w->status = 0;
	switch (w->job) {
	case BC_USB_JOB_FIND:
		find_board(w);
		break;
	case BC_USB_JOB_OPEN:
		w->status = bc_usb_errno(open_and_claim(w));
		break;
	case BC_USB_JOB_CLEAR:
		w->what = "clear endpoint halt";
		w->status = bc_usb_errno(libusb_clear_halt(w->handle, w->identity.endpoint));
		break;
	case BC_USB_JOB_CLOSE:
		close_device(w);
		if (w->is_deaf)
			look_for_twins(w);
		break;
	}
}

static void on_job_done(uv_work_t *work, int status)
{
	struct bc_usb_jobs *w = work->data;

	(void)status; /* never cancelled */
	w->is_busy = false;
	w->done(w);
}

void bc_usb_jobs_start(struct bc_usb_jobs *w, uv_loop_t *loop, enum bc_usb_job job)
{
	assert(!w->is_busy);
	if (job == BC_USB_JOB_OPEN) {
		w->device = w->found;
		w->identity = w->found_id;
		w->found = NULL;
	}
	w->job = job;
	w->is_busy = true;
	w->work.data = w;
	uv_queue_work(loop, &w->work, run_job, on_job_done);
}

void bc_usb_jobs_drop_found(struct bc_usb_jobs *w)
{
	if (w->found != NULL)
		libusb_unref_device(w->found);
	w->found = NULL;
	/* It does not wait for libusb's thread, because `context` still exists. */
	if (w->found_context != NULL)
		libusb_exit(w->found_context);
	w->found_context = NULL;
}
