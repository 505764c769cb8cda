/* Boards that come and go, at any time, under libusb and nothing else. */
#include "tests/support/test.h"
#include "tests/support/usb_desk.h"

TEST_THREADS;

TEST_DESK(unplugged_in_mid_stream_every_transfer_comes_back)
{
	struct reader *r = desk->reader;

	usbfs_set_threaded(true);
	begin(desk);
	watch(desk, 0);
	open_board(desk);
	start_board(desk);
	assert_int_equal(reader_start(r, desk->handle, 0), 0);
	read_samples(desk, 100000);
	usbfs_unplug(desk->port);
	read_to_end(desk);
	assert_true(r->ends[LIBUSB_TRANSFER_NO_DEVICE] != 0 || r->is_ending);
	assert_int_equal(r->bytes, usbfs_sent(desk->port).bytes);
	assert_int_equal(r->damaged, 0);
	reader_stop(desk);
	while (desk->left == 0)
		turn(desk);
	close_board(desk);
	assert_null(find(desk));
	end(desk);
}

TEST_DESK(an_idle_device_is_known_to_be_gone_before_udev_says_so)
{
	struct reader *r = desk->reader;

	begin(desk);
	watch(desk, LIBUSB_HOTPLUG_ENUMERATE);
	assert_int_equal(desk->arrived, 1);
	open_board(desk);
	command(desk, "send 0");
	assert_int_equal(reader_start(r, desk->handle, 0), 0);
	usbfs_hold_events(true);
	usbfs_unplug(desk->port);
	read_to_end(desk);
	assert_int_equal(r->ends[LIBUSB_TRANSFER_NO_DEVICE], TRANSFERS);
	reader_stop(desk);
	turn_at_once(desk);
	assert_int_equal(desk->left, 1);
	usbfs_hold_events(false);
	assert_null(find(desk));
	turn_at_once(desk);
	assert_int_equal(desk->left, 1); /* once */
	close_board(desk);
	end(desk);
}

TEST_DESK(a_board_without_power_fails_until_the_hub_notices)
{
	struct reader *r = desk->reader;

	begin(desk);
	open_board(desk);
	command(desk, "send 0");
	start_board(desk);
	assert_int_equal(reader_start(r, desk->handle, 0), 0);
	usbfs_lose_power(desk->port);
	read_to_end(desk);
	assert_int_equal(r->ends[LIBUSB_TRANSFER_ERROR], TRANSFERS);
	assert_int_equal(request(desk->handle, 0x41, START, NULL, 0), LIBUSB_ERROR_IO);
	reader_stop(desk);
	usbfs_unplug(desk->port);
	close_board(desk);
	end(desk);
}

/* A device that came between libusb_init() and this is told twice by libusb 1.0.26. */
TEST_DESK(an_arrival_may_be_reported_twice)
{
	assert_int_equal(libusb_init(&desk->context), 0);
	desk->port = usbfs_plug(desk->board);
	libusb_unref_device(find(desk));
	watch(desk, LIBUSB_HOTPLUG_ENUMERATE);
	turn_at_once(desk);
	assert_int_equal(desk->arrived, 2);
	end(desk);
}

TEST_DESK(a_thousand_plugs_leave_nothing_behind)
{
	begin(desk);
	watch(desk, LIBUSB_HOTPLUG_ENUMERATE);
	int fd = free_fd();
	for (unsigned i = 0; i < 1000; i++) {
		while (desk->arrived == i)
			turn(desk);
		assert_int_equal(desk->arrived, i + 1);
		assert_int_equal(libusb_get_device_address(desk->device), 2 + i % 126);
		assert_int_equal(libusb_open(desk->device, &desk->handle), 0);
		assert_int_equal(libusb_claim_interface(desk->handle, 0), 0);
		if (i % 10 == 0) {
			start_board(desk);
			assert_int_equal(reader_start(desk->reader, desk->handle, 0), 0);
			turn_at_once(desk);
		}
		usbfs_unplug(desk->port);
		if (i % 10 == 0) {
			read_to_end(desk);
			reader_stop(desk);
		}
		close_board(desk);
		while (desk->left == i)
			turn(desk);
		assert_int_equal(free_fd(), fd);
		desk->port = usbfs_plug(desk->board);
	}
	end(desk);
}

static void unplug(void *context)
{
	struct desk *desk = context;

	usbfs_unplug(desk->port);
}

/* A session that goes wrong wherever it likes: says whether it got through. */
static bool try_session(struct desk *desk)
{
	struct reader *r = desk->reader;
	uint8_t info[64];
	bool is_through = false;

	desk->handle = libusb_open_device_with_vid_pid(desk->context, VID, PID);
	if (desk->handle == NULL)
		return false;
	if (libusb_claim_interface(desk->handle, 0) == 0 &&
		request(desk->handle, 0xC1, GET_INFO, info, 64) == 64 &&
		request(desk->handle, 0x41, START, NULL, 0) == 0) {
		is_through = reader_start(r, desk->handle, 0) == 0;
		for (unsigned i = 0; is_through && i < 3; i++)
			turn_at_once(desk);
		reader_stop(desk);
		is_through = is_through && r->ends[LIBUSB_TRANSFER_NO_DEVICE] == 0;
		is_through = is_through && libusb_reset_device(desk->handle) == 0;
	}
	is_through = libusb_release_interface(desk->handle, 0) == 0 && is_through;
	libusb_close(desk->handle);
	return is_through;
}

TEST_DESK(unplugged_at_any_call_nothing_is_left_behind)
{
	bool is_through = false;
	unsigned n = 1;

	begin(desk);
	int fd = free_fd();
	for (; !is_through; n++) {
		usbfs_hook(n, unplug, desk);
		is_through = try_session(desk);
		assert_int_equal(free_fd(), fd);
		assert_int_equal(usbfs_in_flight(), 0);
		usbfs_hook(0, NULL, NULL);
		usbfs_unplug(desk->port);
		desk->port = usbfs_plug(desk->board);
		assert_true(n < 100000);
	}
	assert_true(n > 3 * TRANSFERS);
	end(desk);
}

TEST_DESK(any_call_may_say_that_the_device_is_gone)
{
	begin(desk);
	int fd = free_fd();
	for (enum usbfs_call call = 0; call < USBFS_CALLS; call++) {
		/* A device that says so but isn't keeps libusb's transfers: none is discarded,
		 * and none reaped. */
		if (call == USBFS_DISCARD || call == USBFS_REAP)
			continue;
		for (unsigned skip = 0; skip < 20; skip++) {
			usbfs_fail(call, ENODEV, skip, 1);
			try_session(desk);
			assert_int_equal(free_fd(), fd);
			assert_int_equal(usbfs_in_flight(), 0);
			usbfs_fail(call, 0, 0, 0);
		}
	}
	libusb_exit(desk->context);
	usbfs_stop();
}
