/* Boards that are plugged and unplugged at any time, with only libusb above the simulated USB. */
#define BYTES 4096 /* of a transfer: most tests here plug the board hundreds of times */

#include "tests/support/test.h"
#include "tests/support/usb_desk.h"

TEST_THREADS;

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

TEST_DESK(a_board_without_power_fails_until_the_hub_notices)
{
	struct reader *r = desk->reader;

	desk_open(desk);
	desk_command(desk, "send 0");
	start_board(desk);
	assert_int_equal(reader_start(r, desk->handle, 0), 0);
	usbfs_lose_power(desk->port);
	read_to_end(desk);
	assert_int_equal(r->ends[LIBUSB_TRANSFER_ERROR], TRANSFERS);
	assert_int_equal(desk_request(desk->handle, 0x41, START, NULL, 0), LIBUSB_ERROR_IO);
	reader_stop(desk);
	usbfs_unplug(desk->port);
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

TEST_DESK(a_thousand_plugs_leak_nothing)
{
	desk_init(desk);
	desk_watch(desk, LIBUSB_HOTPLUG_ENUMERATE);
	int fd = first_free_fd();
	for (unsigned i = 0; i < 1000 / test_stride(5); i++) {
		while (desk->arrived == i)
			desk_turn(desk);
		assert_int_equal(desk->arrived, i + 1);
		assert_int_equal(libusb_get_device_address(desk->device), 2 + i % 126);
		assert_int_equal(libusb_open(desk->device, &desk->handle), 0);
		assert_int_equal(libusb_claim_interface(desk->handle, 0), 0);
		if (i % 10 == 0) {
			start_board(desk);
			assert_int_equal(reader_start(desk->reader, desk->handle, 0), 0);
			desk_poll(desk);
		}
		usbfs_unplug(desk->port);
		if (i % 10 == 0) {
			read_to_end(desk);
			reader_stop(desk);
		}
		close_board(desk);
		while (desk->left == i)
			desk_turn(desk);
		assert_int_equal(first_free_fd(), fd);
		desk->port = usbfs_plug(desk->board);
	}
	desk_finish(desk);
}

static void unplug(void *context)
{
	struct desk *desk = context;

	usbfs_unplug(desk->port);
}

/* A session that may fail anywhere. Returns whether it succeeded. */
static bool try_session(struct desk *desk)
{
	struct reader *r = desk->reader;
	uint8_t info[64];
	bool is_through = false;

	desk->handle = libusb_open_device_with_vid_pid(desk->context, VID, PID);
	if (desk->handle == NULL)
		return false;
	if (libusb_claim_interface(desk->handle, 0) == 0 &&
		desk_request(desk->handle, 0xC1, GET_INFO, info, 64) == 64 &&
		desk_request(desk->handle, 0x41, START, NULL, 0) == 0) {
		is_through = reader_start(r, desk->handle, 0) == 0;
		for (unsigned i = 0; is_through && i < 3; i++)
			desk_poll(desk);
		reader_stop(desk);
		is_through = is_through && r->ends[LIBUSB_TRANSFER_NO_DEVICE] == 0;
		is_through = is_through && libusb_reset_device(desk->handle) == 0;
	}
	is_through = libusb_release_interface(desk->handle, 0) == 0 && is_through;
	libusb_close(desk->handle);
	return is_through;
}

TEST_DESK(an_unplug_at_any_call_leaks_nothing)
{
	bool is_through = false;
	unsigned n = 1;

	desk_init(desk);
	int fd = first_free_fd();
	for (; !is_through; n++) {
		usbfs_hook(n, unplug, desk);
		is_through = try_session(desk);
		assert_int_equal(first_free_fd(), fd);
		assert_int_equal(usbfs_in_flight(), 0);
		usbfs_hook(0, NULL, NULL);
		usbfs_unplug(desk->port);
		desk->port = usbfs_plug(desk->board);
		assert_true(n < 100000);
	}
	assert_true(n > 3 * TRANSFERS);
	desk_finish(desk);
}

TEST_DESK(any_call_may_report_that_the_device_is_gone)
{
	desk_init(desk);
	int fd = first_free_fd();
	for (enum usbfs_call call = 0; call < USBFS_CALLS; call++) {
		/* A device falsely reported as gone keeps libusb's transfers: none is discarded or
		 * reaped. */
		if (call == USBFS_DISCARD || call == USBFS_REAP)
			continue;
		for (unsigned skip = 0; skip < 20; skip++) {
			usbfs_fail(call, ENODEV, skip, 1);
			try_session(desk);
			assert_int_equal(first_free_fd(), fd);
			assert_int_equal(usbfs_in_flight(), 0);
			usbfs_fail(call, 0, 0, 0);
		}
	}
	libusb_exit(desk->context);
	usbfs_stop();
}
