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

static void find_board(struct bc_usb_jobs *w)
{
	struct bc_usb_list list;

	bc_usb_jobs_drop_found(w);
	w->others[0] = '\0';
	w->reject_reason[0] = '\0';
	w->what = "list devices";
	w->status = bc_usb_list(&list, w->context, &w->match);
	w->is_unreadable = w->status != 0;
	if (w->status != 0)
		return;
	for (size_t i = 0; i < list.count; i++) {
		const struct bc_usb_device *d = &list.devices[i];
		bool is_match = d->reject_reason[0] == '\0';
		bool is_named = d->identity.vid == w->match.vid && d->identity.pid == w->match.pid;
		if (d->device == w->device)
			continue;
		w->is_unreadable = w->is_unreadable || (is_named && d->is_unreadable);
		if (d->is_gone)
			continue;
		if (is_match && w->found == NULL && w->device == NULL) {
			w->found = libusb_ref_device(d->device);
			w->found_id = d->identity;
		} else if (is_match || d->is_other_serial) {
			name_other(w, &d->identity);
		} else if (is_named) {
			snprintf(w->reject_reason, sizeof(w->reject_reason),
				"device at %s is not a board: %s", d->identity.port,
				d->reject_reason);
		}
	}
	bc_usb_list_free(&list);
}

static int open_and_claim(struct bc_usb_jobs *w)
{
	w->what = "open device";
	int rc = libusb_open(w->device, &w->handle);
	if (rc != 0) {
		w->handle = NULL;
		return rc;
	}
	/* The kernel's serial driver claims FTDI chips. If detaching is not supported, claiming the
	 * interface fails. */
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
}
