/* Keeps transfers in flight and delivers their data in the order of the stream.
 *
 * `order` is a ring of the transfers in flight in the order of their submission. One that comes
 * back early is marked done and waits for those before it. After its data is passed on it is
 * submitted again, at the end of the ring, or left out: while cancelling, when memory is to be
 * released, or when the system accepts no more.
 *
 * Invariant: a transfer is in the ring exactly while libusb has it or its data is not passed on
 * yet; only its own callback takes it out. */
#include "capture/usb/usb_stream.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "capture/usb/usb_find.h"

struct transfer {
	struct bc_usb_stream *stream;
	struct libusb_transfer *usb;
	uint8_t *buffer;
	bool is_in_flight; /* submitted, and its data not passed on yet */
	bool is_done;
};

struct bc_usb_stream {
	struct bc_usb_stream_options options;
	libusb_device_handle *handle;
	uint8_t endpoint;
	uint16_t packet_bytes;
	uint32_t bytes; /* length of new transfers */
	bool is_cancelling;
	bool is_releasing; /* do not resubmit the next transfer that comes back */

	/* Ring of the transfers in flight, in the order of submission, which is the order of the
	 * stream. A transfer that finishes early waits for those before it. */
	unsigned first;
	unsigned in_flight;
	struct transfer **order;
	struct transfer transfers[];
};

static void LIBUSB_CALL on_transfer(struct libusb_transfer *usb);

static uint32_t round_down(uint32_t bytes, uint16_t packet)
{
	return bytes < packet ? packet : bytes - bytes % packet;
}

static int submit(struct transfer *t)
{
	struct bc_usb_stream *s = t->stream;

	libusb_fill_bulk_transfer(t->usb, s->handle, s->endpoint, t->buffer, (int)s->bytes,
		on_transfer, t, s->options.timeout_ms);
	t->is_done = false;
	int rc = libusb_submit_transfer(t->usb);
	if (rc != 0)
		return bc_usb_errno(rc);
	t->is_in_flight = true;
	s->order[(s->first + s->in_flight++) % s->options.transfers] = t;
	return 0;
}

/* If there is no memory for even one transfer, halves the length until there is. */
static int submit_or_shorten(struct transfer *t)
{
	struct bc_usb_stream *s = t->stream;
	int rc = submit(t);

	while (rc == -ENOMEM && s->in_flight == 0 && s->bytes / 2 >= BC_USB_TRANSFER_BYTES_MIN) {
		s->bytes = round_down(s->bytes / 2, s->packet_bytes);
		rc = submit(t);
	}
	return rc;
}

int bc_usb_stream_fill(struct bc_usb_stream *s)
{
	uint32_t whole = round_down(s->options.transfer_bytes, s->packet_bytes);
	int rc = 0;

	if (s->is_cancelling)
		return 0;
	s->is_releasing = false;
	if (s->in_flight == s->options.transfers && s->bytes < whole)
		s->bytes = s->bytes > whole / 2 ? whole : s->bytes * 2;
	for (unsigned i = 0; i < s->options.transfers && rc == 0; i++)
		if (!s->transfers[i].is_in_flight)
			rc = submit_or_shorten(&s->transfers[i]);
	return rc;
}

static const enum bc_usb_fault faults[] = {
	[LIBUSB_TRANSFER_ERROR] = BC_USB_ERROR,
	[LIBUSB_TRANSFER_TIMED_OUT] = BC_USB_TIMEOUT,
	[LIBUSB_TRANSFER_STALL] = BC_USB_STALL,
	[LIBUSB_TRANSFER_NO_DEVICE] = BC_USB_GONE,
	[LIBUSB_TRANSFER_OVERFLOW] = BC_USB_OVERFLOW,
};

/* Passes on the data of a transfer, reports its failure and submits it again. */
static void complete_transfer(struct bc_usb_stream *s, struct transfer *t)
{
	enum libusb_transfer_status status = t->usb->status;
	bool was_cancelling = s->is_cancelling;
	int count = t->usb->actual_length;

	/* A transfer may carry data regardless of its status, but never more than its length. */
	assert(count <= t->usb->length);
	if (count > 0)
		s->options.on_data(s->options.context, t->buffer, (size_t)count);
	t->is_in_flight = false;
	/* A cancelled transfer is not a fault. While the rest are being cancelled, they may all
	 * repeat a fault that was already reported. */
	if (status == LIBUSB_TRANSFER_NO_DEVICE ||
		(status != LIBUSB_TRANSFER_COMPLETED && status != LIBUSB_TRANSFER_CANCELLED &&
			!was_cancelling))
		s->options.on_fault(s->options.context, faults[status]);
	if (s->is_cancelling)
		return;
	if (s->is_releasing && s->in_flight != 0) {
		s->is_releasing = false;
		return;
	}
	int rc = submit_or_shorten(t);
	/* If it fails, it is left out until bc_usb_stream_fill(). The board waits. */
	if (rc == -ENODEV)
		s->options.on_fault(s->options.context, BC_USB_GONE);
	else if (rc != 0 && rc != -ENOMEM && s->in_flight == 0)
		s->options.on_fault(s->options.context, BC_USB_REFUSED);
}

static void LIBUSB_CALL on_transfer(struct libusb_transfer *usb)
{
	struct transfer *done = usb->user_data;
	struct bc_usb_stream *s = done->stream;

	done->is_done = true;
	while (s->in_flight != 0 && s->order[s->first]->is_done) {
		struct transfer *t = s->order[s->first];
		s->first = (s->first + 1) % s->options.transfers;
		s->in_flight--;
		complete_transfer(s, t);
	}
}

int bc_usb_stream_start(struct bc_usb_stream *s, libusb_device_handle *handle, uint8_t endpoint,
	uint16_t packet_bytes)
{
	assert(s->in_flight == 0);
	s->handle = handle;
	s->endpoint = endpoint;
	s->packet_bytes = packet_bytes;
	s->bytes = round_down(s->options.transfer_bytes, packet_bytes);
	s->is_cancelling = false;
	int rc = bc_usb_stream_fill(s);
	return s->in_flight != 0 ? 0 : rc;
}

bool bc_usb_stream_release_one(struct bc_usb_stream *s)
{
	struct transfer *last = NULL;
	unsigned pending = 0;

	for (unsigned i = 0; i < s->in_flight; i++) {
		struct transfer *t = s->order[(s->first + i) % s->options.transfers];
		if (t->is_done)
			continue;
		last = t;
		pending++;
	}
	if (last == NULL || (pending == 1 && s->bytes / 2 < BC_USB_TRANSFER_BYTES_MIN))
		return false;
	if (pending == 1)
		s->bytes = round_down(s->bytes / 2, s->packet_bytes);
	else
		s->is_releasing = true;
	libusb_cancel_transfer(last->usb);
	return true;
}

void bc_usb_stream_cancel(struct bc_usb_stream *s)
{
	s->is_cancelling = true;
	/* Last one first: data that arrives meanwhile then still precedes the cancelled part. */
	for (unsigned i = s->in_flight; i-- > 0;) {
		struct transfer *t = s->order[(s->first + i) % s->options.transfers];
		if (!t->is_done)
			libusb_cancel_transfer(t->usb);
	}
}

bool bc_usb_stream_is_idle(const struct bc_usb_stream *s)
{
	return s->in_flight == 0;
}

unsigned bc_usb_stream_in_flight(const struct bc_usb_stream *s)
{
	return s->in_flight;
}

uint32_t bc_usb_stream_bytes(const struct bc_usb_stream *s)
{
	uint32_t bytes = UINT32_MAX;

	for (unsigned i = 0; i < s->in_flight; i++) {
		const struct transfer *t = s->order[(s->first + i) % s->options.transfers];
		if ((uint32_t)t->usb->length < bytes)
			bytes = (uint32_t)t->usb->length;
	}
	return s->in_flight != 0 ? bytes : s->bytes;
}

void bc_usb_stream_close(struct bc_usb_stream *s)
{
	if (s == NULL)
		return;
	assert(s->in_flight == 0);
	for (unsigned i = 0; i < s->options.transfers; i++) {
		libusb_free_transfer(s->transfers[i].usb);
		free(s->transfers[i].buffer);
	}
	free(s->order);
	free(s);
}

int bc_usb_stream_forget_device(struct bc_usb_stream *s)
{
	assert(s->in_flight == 0);
	for (unsigned i = 0; i < s->options.transfers; i++) {
		struct libusb_transfer *usb = libusb_alloc_transfer(0);
		if (usb == NULL)
			return -ENOMEM;
		libusb_free_transfer(s->transfers[i].usb);
		s->transfers[i].usb = usb;
	}
	return 0;
}

int bc_usb_stream_open(struct bc_usb_stream **stream, const struct bc_usb_stream_options *options)
{
	assert(options->transfers != 0 && options->transfer_bytes >= BC_USB_TRANSFER_BYTES_MIN);
	struct bc_usb_stream *s = calloc(
		1, sizeof(*s) + options->transfers * sizeof(s->transfers[0]));

	if (s == NULL)
		return -ENOMEM;
	s->options = *options;
	s->order = calloc(options->transfers, sizeof(struct transfer *));
	bool is_whole = s->order != NULL;
	for (unsigned i = 0; i < options->transfers; i++) {
		struct transfer *t = &s->transfers[i];
		t->stream = s;
		t->usb = libusb_alloc_transfer(0);
		t->buffer = malloc(options->transfer_bytes);
		is_whole = is_whole && t->usb != NULL && t->buffer != NULL;
	}
	if (!is_whole) {
		bc_usb_stream_close(s);
		return -ENOMEM;
	}
	*stream = s;
	return 0;
}
