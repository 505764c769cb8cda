/* A plugged-in board and a minimal reader: libusb with several transfers, and a bcp1 parser. These
 * functions fail the calling test on errors. */
#ifndef BC_TESTS_SUPPORT_USB_DESK_H
#define BC_TESTS_SUPPORT_USB_DESK_H

#include <errno.h>
#include <fcntl.h>
#include <libusb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "formats/bus/bcp1.h"
#include "tests/board/board.h"
#include "tests/board/usbfs.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

#define VID       0x1209
#define PID       0x0001
#define TRANSFERS 16
#ifndef BYTES
#define BYTES 65536 /* of a transfer */
#endif

#define GET_INFO 1
#define START    2
#define STOP     3

#define STATUSES (LIBUSB_TRANSFER_OVERFLOW + 1)

/* Reads with several transfers in flight and parses the frames. */
struct reader {
	libusb_device_handle *handle;
	struct libusb_transfer *transfers[TRANSFERS];
	uint8_t *buffers;
	unsigned in_flight;
	unsigned callbacks;
	pthread_t thread;        /* of the latest callback */
	unsigned ends[STATUSES]; /* how transfers ended */
	bool is_ending;          /* do not resubmit */
	bool is_ignoring;        /* do not parse the data */
	uint64_t bytes;
	uint64_t cancelled_bytes; /* from cancelled transfers */
	uint64_t frames;
	uint64_t samples;
	uint64_t damaged;
	uint32_t sequence;
	uint64_t jumps;
	struct bc_bcp1_reader bcp1;
};

struct desk {
	struct board *board;
	struct usbfs_port *port;
	libusb_context *context;
	libusb_device_handle *handle;
	struct reader *reader;
	int free_fd;
	unsigned arrived;
	unsigned left;
	libusb_device *device; /* the latest arrival */
};

static inline void desk_command(struct desk *desk, const char *line)
{
	char answer[BOARD_ANSWER];

	if (!usbfs_command(desk->port, line, answer))
		fail_msg("%s: %s", line, answer);
}

static inline void set_up_desk(struct desk *desk)
{
	static const struct board_options options = {.serial = "B-0001", .seed = 3, .agents = 2};

	desk->reader = calloc(1, sizeof(*desk->reader));
	desk->free_fd = first_free_fd();
	desk->board = board_new(&options);
	assert_non_null(desk->board);
	usbfs_start();
}

static inline void tear_down_desk(struct desk *desk)
{
	usbfs_stop(); /* if the test has failed */
	board_free(desk->board);
	free(desk->reader);
}

TEST_FIXTURE(desk, set_up_desk, tear_down_desk)

#define TEST_DESK(name) TEST_WITH(desk, desk, name)

static inline void desk_init(struct desk *desk)
{
	desk->port = usbfs_plug(desk->board);
	assert_int_equal(libusb_init(&desk->context), 0);
}

static inline void open_board(struct desk *desk)
{
	desk->handle = libusb_open_device_with_vid_pid(desk->context, VID, PID);
	assert_non_null(desk->handle);
	assert_int_equal(libusb_claim_interface(desk->handle, 0), 0);
}

static inline void close_board(struct desk *desk)
{
	libusb_release_interface(desk->handle, 0);
	libusb_close(desk->handle);
	desk->handle = NULL;
}

static inline void desk_finish(struct desk *desk)
{
	libusb_exit(desk->context);
	struct usbfs_leaks leaks = usbfs_stop();
	assert_int_equal(leaks.nodes, 0);
	assert_int_equal(leaks.claims, 0);
	assert_int_equal(leaks.urbs, 0);
	assert_int_equal(leaks.unclaimed, 0);
	assert_int_equal(leaks.monitors, 0);
	assert_int_equal(first_free_fd(), desk->free_fd);
}

static inline void desk_open(struct desk *desk)
{
	desk_init(desk);
	open_board(desk);
}

static inline void desk_close(struct desk *desk)
{
	close_board(desk);
	desk_finish(desk);
}

static inline int desk_request(
	libusb_device_handle *handle, uint8_t type, uint8_t number, uint8_t *data, uint16_t length)
{
	return libusb_control_transfer(handle, type, number, 0, 0, data, length, 1000);
}

static inline void start_board(struct desk *desk)
{
	assert_int_equal(desk_request(desk->handle, 0x41, START, NULL, 0), 0);
}

static inline void desk_turn(struct desk *desk)
{
	struct timeval wait = {.tv_usec = 20000};

	assert_int_equal(libusb_handle_events_timeout_completed(desk->context, &wait, NULL), 0);
}

static inline void desk_poll(struct desk *desk)
{
	struct timeval none = {0};

	assert_int_equal(libusb_handle_events_timeout_completed(desk->context, &none, NULL), 0);
}

static inline void reader_parse(struct reader *r, const uint8_t *data, size_t n)
{
	struct bc_bcp1_frame frame;
	enum bc_bcp1_found found;

	while ((found = bc_bcp1_next(&r->bcp1, &data, &n, false, &frame)) != BC_BCP1_MORE) {
		if (found == BC_BCP1_DAMAGED) {
			r->damaged++;
			continue;
		}
		r->jumps += r->frames != 0 && frame.header.sequence != r->sequence + 1;
		r->sequence = frame.header.sequence;
		r->frames++;
		r->samples += frame.header.samples;
	}
}

static inline void LIBUSB_CALL on_transfer(struct libusb_transfer *t)
{
	struct reader *r = t->user_data;

	r->in_flight--;
	r->callbacks++;
	r->thread = pthread_self();
	assert_true(t->status < STATUSES);
	r->ends[t->status]++;
	assert_true(t->actual_length >= 0 && t->actual_length <= t->length);
	r->bytes += (uint64_t)t->actual_length;
	if (t->status == LIBUSB_TRANSFER_CANCELLED)
		r->cancelled_bytes += (uint64_t)t->actual_length;
	if (!r->is_ignoring)
		reader_parse(r, t->buffer, (size_t)t->actual_length);
	if (r->is_ending)
		return;
	if (t->status == LIBUSB_TRANSFER_COMPLETED && libusb_submit_transfer(t) == 0)
		r->in_flight++;
	else
		r->is_ending = true;
}

/* Returns 0, or libusb's code of the first transfer that can't be submitted. */
static inline int reader_start(struct reader *r, libusb_device_handle *handle, unsigned timeout_ms)
{
	memset(r, 0, sizeof(*r));
	bc_bcp1_reader_init(&r->bcp1);
	r->handle = handle;
	r->buffers = malloc((size_t)TRANSFERS * BYTES);
	assert_non_null(r->buffers);
	for (unsigned i = 0; i < TRANSFERS; i++) {
		r->transfers[i] = libusb_alloc_transfer(0);
		libusb_fill_bulk_transfer(r->transfers[i], handle, BOARD_ENDPOINT,
			r->buffers + (size_t)i * BYTES, BYTES, on_transfer, r, timeout_ms);
	}
	for (unsigned i = 0; i < TRANSFERS; i++) {
		int rc = libusb_submit_transfer(r->transfers[i]);
		if (rc != 0)
			return rc;
		r->in_flight++;
	}
	return 0;
}

static inline void reader_cancel(struct reader *r)
{
	r->is_ending = true;
	for (unsigned i = 0; i < TRANSFERS; i++)
		libusb_cancel_transfer(r->transfers[i]);
}

static inline void reader_stop(struct desk *desk)
{
	struct reader *r = desk->reader;

	reader_cancel(r);
	for (unsigned turns = 0; r->in_flight != 0; turns++) {
		desk_turn(desk);
		assert_true(turns < 1000);
	}
	for (unsigned i = 0; i < TRANSFERS; i++)
		libusb_free_transfer(r->transfers[i]);
	free(r->buffers);
}

static inline void read_samples(struct desk *desk, uint64_t samples)
{
	for (unsigned turns = 0; desk->reader->samples < samples; turns++) {
		assert_false(desk->reader->is_ending);
		assert_true(turns < 100000);
		desk_turn(desk);
	}
}

static inline void read_to_end(struct desk *desk)
{
	for (unsigned turns = 0; desk->reader->in_flight != 0; turns++) {
		assert_true(turns < 1000);
		desk_turn(desk);
	}
}

static inline int LIBUSB_CALL on_hotplug(
	libusb_context *context, libusb_device *device, libusb_hotplug_event event, void *data)
{
	struct desk *desk = data;

	(void)context;
	if (event == LIBUSB_HOTPLUG_EVENT_DEVICE_ARRIVED) {
		desk->arrived++;
		desk->device = device;
	} else {
		desk->left++;
	}
	return 0;
}

static inline void desk_watch(struct desk *desk, int flags)
{
	assert_int_equal(
		libusb_hotplug_register_callback(desk->context,
			LIBUSB_HOTPLUG_EVENT_DEVICE_ARRIVED | LIBUSB_HOTPLUG_EVENT_DEVICE_LEFT,
			flags, VID, PID, LIBUSB_HOTPLUG_MATCH_ANY, on_hotplug, desk, NULL),
		0);
}

static inline libusb_device *desk_find(struct desk *desk)
{
	libusb_device **list;
	libusb_device *found = NULL;
	ssize_t n = libusb_get_device_list(desk->context, &list);

	for (ssize_t i = 0; i < n; i++) {
		struct libusb_device_descriptor d;
		assert_int_equal(libusb_get_device_descriptor(list[i], &d), 0);
		if (d.idVendor == VID && d.idProduct == PID)
			found = libusb_ref_device(list[i]);
	}
	libusb_free_device_list(list, 1);
	return found;
}

#endif
