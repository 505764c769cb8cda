/* The USB source against a board in software, behind the real libusb. */
#include "tests/usb_run.h"

struct fixture {
	struct usb_run run;
	struct board *board;
	struct usbfs_port *port;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	usb_run_open(&f->run);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	board_free(f->board);
	free(f);
	return 0;
}

static void make_board(struct fixture *f, uint64_t rate)
{
	struct board_options options = {.serial = "A1", .rate = rate, .seed = 7};

	f->board = board_new(&options);
	assert_non_null(f->board);
}

static void plug(struct fixture *f)
{
	f->port = usbfs_plug(f->board);
	assert_non_null(f->port);
}

static void test_every_sample_of_a_streaming_board_arrives(void **state)
{
	struct fixture *f = *state;

	make_board(f, 1000000);
	plug(f);
	usb_run_start(&f->run);
	usb_run_until(&f->run, f->run.samples > 100000);
	assert_int_equal(f->run.source->board->state, BC_BOARD_STREAMING);
	usb_run_stop(&f->run);
	struct board_sent sent = usbfs_sent(f->port);
	assert_int_equal(f->run.status, 0);
	assert_int_equal(f->run.samples, sent.samples);
	assert_int_equal(f->run.last_frames, 1);
	assert_int_equal(f->run.damaged, 0);
	assert_int_equal(sent.starts, 1);
	assert_int_equal(sent.stops, 1);
	usb_run_close(&f->run);
}

static void test_a_board_that_comes_later_is_waited_for(void **state)
{
	struct fixture *f = *state;

	make_board(f, 1000000);
	usb_run_start(&f->run);
	usb_run_until(&f->run, usb_run_said(&f->run, "waiting for it"));
	plug(f);
	usb_run_until(&f->run, f->run.samples > 10000);
	usb_run_stop(&f->run);
	assert_int_equal(f->run.breaks_count, 0);
	usb_run_close(&f->run);
}

static void test_an_unplug_in_mid_stream_is_a_break_and_the_stream_goes_on(void **state)
{
	struct fixture *f = *state;

	make_board(f, 1000000);
	plug(f);
	usb_run_start(&f->run);
	usb_run_until(&f->run, f->run.samples > 10000);
	usbfs_unplug(f->port);
	usb_run_until(&f->run, usb_run_said(&f->run, "unplugged"));
	uint64_t before = f->run.samples;
	plug(f);
	usb_run_until(&f->run, f->run.samples > before + 10000);
	usb_run_stop(&f->run);
	assert_int_equal(f->run.breaks_count, 1);
	assert_int_equal(f->run.breaks[0].cause, BC_GAP_UNPLUGGED);
	assert_true(f->run.breaks[0].is_restart);
	assert_true(f->run.breaks[0].duration_ns > 0);
	assert_int_equal(f->run.samples, usbfs_sent(f->port).samples);
	usb_run_close(&f->run);
}

static void test_a_stall_is_cleared_and_the_stream_goes_on(void **state)
{
	struct fixture *f = *state;
	char answer[BOARD_ANSWER];

	make_board(f, 1000000);
	plug(f);
	usb_run_start(&f->run);
	usb_run_until(&f->run, f->run.samples > 10000);
	assert_true(usbfs_command(f->port, "stall", answer));
	usb_run_until(&f->run, f->run.breaks_count == 1);
	uint64_t before = f->run.samples;
	usb_run_until(&f->run, f->run.samples > before + 10000);
	usb_run_stop(&f->run);
	assert_int_equal(f->run.breaks[0].cause, BC_GAP_TRANSFER);
	assert_false(f->run.breaks[0].is_restart);
	assert_int_equal(f->run.source->board->stalls, 1);
	assert_int_equal(f->run.samples, usbfs_sent(f->port).samples);
	assert_int_equal(usbfs_calls_of(USBFS_CLEAR_HALT), 1);
	usb_run_close(&f->run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_every_sample_of_a_streaming_board_arrives, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_board_that_comes_later_is_waited_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_an_unplug_in_mid_stream_is_a_break_and_the_stream_goes_on, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_stall_is_cleared_and_the_stream_goes_on, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
