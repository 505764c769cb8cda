/* The simulated USB (tests/board/usbfs.h) with only libusb above it. Shows in small examples what a
 * reader must expect from libusb and usbfs. */
#include <errno.h>
#include <fcntl.h>
#include <libusb.h>
#include <poll.h>
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

TEST_THREADS;
TEST_VALGRIND;

/* A plugged-in board and a minimal reader: several transfers, and a bcp1 parser. */

#define VID       0x1209
#define PID       0x0001
#define TRANSFERS 16
#define BYTES     65536 /* of a transfer */

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
	uint64_t bytes;
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

static void desk_command(struct desk *desk, const char *line)
{
	char answer[BOARD_ANSWER];

	if (!usbfs_command(desk->port, line, answer))
		fail_msg("%s: %s", line, answer);
}

static void set_up_desk(struct desk *desk)
{
	static const struct board_options options = {.serial = "B-0001", .seed = 3, .agents = 2};

	desk->reader = calloc(1, sizeof(*desk->reader));
	desk->free_fd = first_free_fd();
	desk->board = board_new(&options);
	assert_non_null(desk->board);
	usbfs_start();
}

static void tear_down_desk(struct desk *desk)
{
	usbfs_stop(); /* if the test has failed */
	board_free(desk->board);
	free(desk->reader);
}

TEST_FIXTURE(desk, set_up_desk, tear_down_desk)

#define TEST_DESK(name) TEST_WITH(desk, desk, name)

static void desk_init(struct desk *desk)
{
	desk->port = usbfs_plug(desk->board);
	assert_int_equal(libusb_init(&desk->context), 0);
}

static void open_board(struct desk *desk)
{
	desk->handle = libusb_open_device_with_vid_pid(desk->context, VID, PID);
	assert_non_null(desk->handle);
	assert_int_equal(libusb_claim_interface(desk->handle, 0), 0);
}

static void close_board(struct desk *desk)
{
	libusb_release_interface(desk->handle, 0);
	libusb_close(desk->handle);
	desk->handle = NULL;
}

static void desk_finish(struct desk *desk)
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

static void desk_open(struct desk *desk)
{
	desk_init(desk);
	open_board(desk);
}

static void desk_close(struct desk *desk)
{
	close_board(desk);
	desk_finish(desk);
}

static int desk_request(
	libusb_device_handle *handle, uint8_t type, uint8_t number, uint8_t *data, uint16_t length)
{
	return libusb_control_transfer(handle, type, number, 0, 0, data, length, 1000);
}

static void start_board(struct desk *desk)
{
	assert_int_equal(desk_request(desk->handle, 0x41, START, NULL, 0), 0);
}

static void desk_turn(struct desk *desk)
{
	struct timeval wait = {.tv_usec = 20000};

	assert_int_equal(libusb_handle_events_timeout_completed(desk->context, &wait, NULL), 0);
}

static void desk_poll(struct desk *desk)
{
	struct timeval none = {0};

	assert_int_equal(libusb_handle_events_timeout_completed(desk->context, &none, NULL), 0);
}

static void reader_parse(struct reader *r, const uint8_t *data, size_t n)
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

static void LIBUSB_CALL on_transfer(struct libusb_transfer *t)
{
	struct reader *r = t->user_data;

	r->in_flight--;
	r->callbacks++;
	r->thread = pthread_self();
	assert_true(t->status < STATUSES);
	r->ends[t->status]++;
	assert_true(t->actual_length >= 0 && t->actual_length <= t->length);
	r->bytes += (uint64_t)t->actual_length;
	reader_parse(r, t->buffer, (size_t)t->actual_length);
	if (r->is_ending)
		return;
	if (t->status == LIBUSB_TRANSFER_COMPLETED && libusb_submit_transfer(t) == 0)
		r->in_flight++;
	else
		r->is_ending = true;
}

/* Returns 0, or libusb's code of the first transfer that can't be submitted. */
static int reader_start(struct reader *r, libusb_device_handle *handle, unsigned timeout_ms)
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

static void reader_cancel(struct reader *r)
{
	r->is_ending = true;
	for (unsigned i = 0; i < TRANSFERS; i++)
		libusb_cancel_transfer(r->transfers[i]);
}

static void reader_stop(struct desk *desk)
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

static void read_samples(struct desk *desk, uint64_t samples)
{
	for (unsigned turns = 0; desk->reader->samples < samples; turns++) {
		assert_false(desk->reader->is_ending);
		assert_true(turns < 100000);
		desk_turn(desk);
	}
}

static void read_to_end(struct desk *desk)
{
	for (unsigned turns = 0; desk->reader->in_flight != 0; turns++) {
		assert_true(turns < 1000);
		desk_turn(desk);
	}
}

static int LIBUSB_CALL on_hotplug(
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

static void desk_watch(struct desk *desk, int flags)
{
	assert_int_equal(
		libusb_hotplug_register_callback(desk->context,
			LIBUSB_HOTPLUG_EVENT_DEVICE_ARRIVED | LIBUSB_HOTPLUG_EVENT_DEVICE_LEFT,
			flags, VID, PID, LIBUSB_HOTPLUG_MATCH_ANY, on_hotplug, desk, NULL),
		0);
}

static libusb_device *desk_find(struct desk *desk)
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

/* Enumeration */

TEST_DESK(a_board_is_listed_with_its_kernel_attributes)
{
	struct libusb_config_descriptor *config;
	libusb_device **list;
	uint8_t ports[7];
	char serial[32] = "";

	desk_init(desk);
	assert_int_equal(libusb_get_device_list(desk->context, &list), 2); /* and the hub */
	libusb_free_device_list(list, 1);

	libusb_device *device = desk_find(desk);
	assert_non_null(device);
	assert_int_equal(libusb_get_bus_number(device), 1);
	assert_int_equal(libusb_get_device_address(device), 2);
	assert_int_equal(libusb_get_port_numbers(device, ports, 7), 1);
	assert_int_equal(ports[0], 1);
	assert_int_equal(libusb_get_device_speed(device), LIBUSB_SPEED_HIGH);
	assert_int_equal(libusb_get_active_config_descriptor(device, &config), 0);
	assert_int_equal(config->bNumInterfaces, 1);
	assert_int_equal(config->interface->altsetting->endpoint->bEndpointAddress, BOARD_ENDPOINT);
	libusb_free_config_descriptor(config);
	libusb_unref_device(device);

	FILE *file = fopen("/sys/bus/usb/devices/1-1/serial", "r");
	assert_non_null(file);
	assert_non_null(fgets(serial, sizeof(serial), file));
	fclose(file);
	assert_string_equal(serial, "B-0001\n");
	assert_null(fopen("/sys/bus/usb/devices/1-2/serial", "r"));
	assert_int_equal(open("/dev/bus/usb/001/001", O_RDWR), -1);
	desk_finish(desk);
}

/* The stream */

static void assert_whole(struct desk *desk, uint64_t samples)
{
	const struct reader *r = desk->reader;
	struct board_sent sent = usbfs_sent(desk->port);

	assert_int_equal(r->samples, samples);
	assert_int_equal(sent.samples, samples);
	assert_int_equal(r->bytes, sent.bytes);
	assert_int_equal(r->frames, sent.frames);
	assert_int_equal(sent.torn_frames, 0);
	assert_int_equal(sent.dropped_samples, 0);
	assert_int_equal(r->damaged, 0);
	assert_int_equal(r->jumps, 0);
	assert_int_equal(r->bcp1.skipped_bytes, 0);
}

static void read_stream(struct desk *desk, uint64_t samples)
{
	char line[48];

	open_board(desk);
	snprintf(line, sizeof(line), "send %llu", (unsigned long long)samples);
	desk_command(desk, line);
	start_board(desk);
	assert_int_equal(reader_start(desk->reader, desk->handle, 0), 0);
	read_samples(desk, samples);
	reader_stop(desk);
	assert_whole(desk, samples);
	close_board(desk);
}

TEST_DESK(a_stream_arrives_whole)
{
	for (unsigned way = 0; way < 8; way++) {
		struct desk fresh = *desk;
		if (way != 0)
			usbfs_start();
		usbfs_set_caps((way & 1) != 0 ? USBFS_CAPS_SPLIT : USBFS_CAPS_XHCI);
		usbfs_set_threaded((way & 2) != 0);
		static const struct board_options options = {.seed = 5};
		fresh.board = board_new(&options);
		desk_init(&fresh);
		if ((way & 4) != 0)
			desk_command(&fresh, "short on");
		read_stream(&fresh, 300000); /* more than two laps of the board */
		desk_finish(&fresh);
		board_free(fresh.board);
	}
}

/* If a split transfer finds no memory for all of its URBs, it is submitted anyway: it ends with an
 * error and the data of its first URBs. */
TEST_DESK(a_split_transfer_half_submitted_is_an_error_later)
{
	struct reader *r = desk->reader;

	usbfs_set_caps(USBFS_CAPS_SPLIT);
	desk_open(desk);
	desk_command(desk, "send 0");
	usbfs_set_memory(UINT64_C(4) * BYTES + BYTES / 2);
	assert_int_equal(reader_start(r, desk->handle, 0), LIBUSB_ERROR_NO_MEM);
	assert_int_equal(r->in_flight, 5);
	desk_turn(desk);
	assert_int_equal(r->ends[LIBUSB_TRANSFER_ERROR], 1);
	reader_stop(desk);
	desk_close(desk);
}

/* libusb released the interface for the reset and still believes that it has it. */
TEST_DESK(after_a_failed_reset_the_device_must_be_reopened)
{
	desk_open(desk);
	usbfs_fail(USBFS_RESET, EIO, 0, 1);
	assert_int_equal(libusb_reset_device(desk->handle), LIBUSB_ERROR_OTHER);
	unsigned claims = usbfs_calls_of(USBFS_CLAIM);
	assert_int_equal(libusb_claim_interface(desk->handle, 0), 0);
	assert_int_equal(usbfs_calls_of(USBFS_CLAIM), claims);
	assert_int_equal(libusb_release_interface(desk->handle, 0), LIBUSB_ERROR_OTHER);
	libusb_close(desk->handle);
	open_board(desk);
	desk_close(desk);
}

TEST_DESK(releasing_an_interface_resets_its_alternate_setting)
{
	struct reader *r = desk->reader;
	char answer[BOARD_ANSWER];

	assert_true(board_command(desk->board, "lie alternate", answer, 0));
	desk_open(desk);
	assert_int_equal(reader_start(r, desk->handle, 0), LIBUSB_ERROR_IO);
	reader_stop(desk);
	assert_int_equal(libusb_set_interface_alt_setting(desk->handle, 0, 1), 0);
	assert_int_equal(reader_start(r, desk->handle, 0), 0);
	reader_stop(desk);
	assert_int_equal(libusb_reset_device(desk->handle), 0); /* releases and claims */
	assert_int_equal(reader_start(r, desk->handle, 0), LIBUSB_ERROR_IO);
	reader_stop(desk);
	desk_close(desk);
}

TEST_DESK(leaks_are_reported)
{
	desk_open(desk);
	int fd = open("/dev/bus/usb/001/002", O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	libusb_close(desk->handle);
	struct usbfs_leaks leaks = usbfs_stop();
	assert_int_equal(leaks.claims, 1);
	assert_int_equal(leaks.nodes, 1);
	assert_int_equal(leaks.urbs, 0);
	assert_int_equal(leaks.monitors, 1);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	libusb_exit(desk->context);
}

/* Threads waiting for each other */

static void *reset_device(void *context)
{
	assert_int_equal(libusb_reset_device(context), 0);
	return NULL;
}

TEST_DESK(while_a_thread_resets_the_device_others_wait_for_it)
{
	pthread_t thread;
	libusb_device_handle *other;
	unsigned tries = 0;

	desk_open(desk);
	usbfs_slow(USBFS_RESET, 20);
	do {
		usbfs_forget_calls();
		assert_int_equal(pthread_create(&thread, NULL, reset_device, desk->handle), 0);
		while (usbfs_calls_of(USBFS_RESET) == 0)
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		assert_int_equal(usbfs_blocking_calls(pthread_self()), 0);
		assert_int_equal(usbfs_calls_by(thread, USBFS_RESET), 1);
		assert_int_equal(libusb_open(libusb_get_device(desk->handle), &other), 0);
		assert_int_equal(usbfs_calls_by(pthread_self(), USBFS_OPEN), 1);
		libusb_close(other);
		assert_int_equal(usbfs_calls_by(pthread_self(), USBFS_CLOSE), 1);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(usbfs_blocking_calls(thread), 3); /* with release and claim */
		assert_true(++tries < 100);
	} while (usbfs_waits(pthread_self()) == 0);
	desk_close(desk);
}

static void *close_device(void *context)
{
	libusb_close(context);
	return NULL;
}

static void meet_twice(void *context)
{
	pthread_barrier_wait(context);
	pthread_barrier_wait(context);
}

/* While libusb closes a device, no thread of that context can handle events, but libusb's own
 * descriptor stays readable: a loop that polls it spins. */
TEST_DESK(while_a_thread_closes_a_device_no_other_thread_gets_events)
{
	struct reader *r = desk->reader;
	libusb_device_handle *other;
	pthread_barrier_t barrier;
	pthread_t thread;

	desk_open(desk);
	assert_int_equal(libusb_open(libusb_get_device(desk->handle), &other), 0);
	desk_poll(desk);
	start_board(desk);
	assert_int_equal(reader_start(r, desk->handle, 0), 0);
	assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
	usbfs_hook(1, meet_twice, &barrier);
	assert_int_equal(pthread_create(&thread, NULL, close_device, other), 0);
	pthread_barrier_wait(&barrier);
	unsigned callbacks = r->callbacks;
	desk_poll(desk);
	assert_int_equal(r->callbacks, callbacks);
	const struct libusb_pollfd **fds = libusb_get_pollfds(desk->context);
	struct pollfd event = {.fd = fds[0]->fd, .events = POLLIN};
	libusb_free_pollfds(fds);
	assert_int_equal(poll(&event, 1, 0), 1);
	pthread_barrier_wait(&barrier);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pthread_barrier_destroy(&barrier);
	desk_poll(desk);
	assert_true(r->callbacks > callbacks);
	assert_int_equal(poll(&event, 1, 0), 0);
	reader_stop(desk);
	desk_close(desk);
}

static void *hang(void *context)
{
	assert_int_equal(
		desk_request(context, 0xC1, GET_INFO, (uint8_t[64]){0}, 64), LIBUSB_ERROR_TIMEOUT);
	return NULL;
}

TEST_DESK(a_thread_waiting_for_a_request_runs_all_callbacks)
{
	struct reader *r = desk->reader;
	unsigned tries = 0;
	pthread_t thread;

	desk_open(desk);
	desk_command(desk, "rate 100000");
	start_board(desk);
	desk_command(desk, "requests hang");
	assert_int_equal(reader_start(r, desk->handle, 0), 0);
	/* If the machine stands still for a second, the request times out before the first frame.
	 */
	do {
		assert_true(tries++ < 20);
		assert_int_equal(pthread_create(&thread, NULL, hang, desk->handle), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
	} while (r->callbacks == 0);
	assert_true(pthread_equal(r->thread, thread));
	reader_stop(desk);
	desk_close(desk);
}

/* Plugs */

TEST_DESK(every_transfer_comes_back_after_an_unplug_in_mid_stream)
{
	struct reader *r = desk->reader;

	usbfs_set_threaded(true);
	desk_init(desk);
	desk_watch(desk, 0);
	open_board(desk);
	start_board(desk);
	assert_int_equal(reader_start(r, desk->handle, 0), 0);
	read_samples(desk, 100000);
	usbfs_unplug(desk->port);
	read_to_end(desk);
	assert_int_equal(r->bytes, usbfs_sent(desk->port).bytes);
	assert_int_equal(r->damaged, 0);
	reader_stop(desk);
	while (desk->left == 0)
		desk_turn(desk);
	close_board(desk);
	assert_null(desk_find(desk));
	desk_finish(desk);
}

TEST_DESK(an_unplug_is_noticed_before_udevs_event)
{
	struct reader *r = desk->reader;

	desk_init(desk);
	desk_watch(desk, LIBUSB_HOTPLUG_ENUMERATE);
	assert_int_equal(desk->arrived, 1);
	open_board(desk);
	desk_command(desk, "send 0");
	assert_int_equal(reader_start(r, desk->handle, 0), 0);
	usbfs_hold_events(true);
	usbfs_unplug(desk->port);
	read_to_end(desk);
	assert_int_equal(r->ends[LIBUSB_TRANSFER_NO_DEVICE], TRANSFERS);
	reader_stop(desk);
	desk_poll(desk);
	assert_int_equal(desk->left, 1);
	usbfs_hold_events(false);
	assert_null(desk_find(desk));
	desk_poll(desk);
	assert_int_equal(desk->left, 1); /* once */
	desk_close(desk);
}

/* libusb 1.0.26 reports a device twice if it arrived between libusb_init() and this call. */
TEST_DESK(an_arrival_may_be_reported_twice)
{
	assert_int_equal(libusb_init(&desk->context), 0);
	desk->port = usbfs_plug(desk->board);
	libusb_unref_device(desk_find(desk));
	desk_watch(desk, LIBUSB_HOTPLUG_ENUMERATE);
	desk_poll(desk);
	assert_int_equal(desk->arrived, 2);
	desk_finish(desk);
}
