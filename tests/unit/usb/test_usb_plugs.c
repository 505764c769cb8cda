/* The USB source when boards are plugged and unplugged, with several boards, and with boards that
 * can't be used. */
#include <dirent.h>
#include <errno.h>
#include <malloc.h>

#include "tests/board/usbfs_state.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"
#include "tests/support/usb_run.h"

TEST_THREADS;
TEST_VALGRIND;

TEST_RUN(an_unplug_in_mid_stream_is_a_break_and_the_stream_continues)
{
	for (unsigned i = 0; i < 4; i++) {
		usbfs_set_threaded(i % 2 != 0);
		usb_run_streaming(run);
		if (i >= 2)
			usbfs_hold_events(true);
		usbfs_unplug(run->port);
		usb_run_until(run, usb_run_logged(run, "unplugged"));
		assert_false(board_of(run)->state == BC_BOARD_STREAMING);
		usb_run_wait(run, 30);
		usbfs_hold_events(false);
		usb_run_replug(run);
		assert_int_equal(run->breaks_count, 1);
		assert_int_equal(run->breaks[0].cause, BC_GAP_UNPLUGGED);
		assert_true(run->breaks[0].is_restart);
		assert_true(run->breaks[0].duration_ns >= 30000000);
		assert_int_equal(board_of(run)->plugs, 2);
		assert_int_equal(board_of(run)->unplugs, 1);
		assert_int_equal(board_of(run)->restarts, 0);
		assert_true(usb_run_logged(run, "back after"));
		usb_run_finish(run);
		usb_run_open(run);
	}
}

/* A board that ignores requests sends while the answer to START is still awaited. */
TEST_RUN(an_unplug_before_start_is_answered_is_a_break)
{
	/* If the test was delayed, START has timed out before; then retry. */
	for (unsigned tries = 1;; tries++) {
		usb_run_board_raw6(run);
		usb_run_plug(run);
		usb_run_command(run, "requests hang");
		usb_run_start(run);
		usb_run_until(run, run->bytes > 0);
		if (board_of(run)->state == BC_BOARD_OPENING)
			break;
		assert_true(tries < 20);
		usb_run_again(run);
	}
	usbfs_unplug(run->port);
	usb_run_until(run, board_of(run)->state != BC_BOARD_OPENING);
	usb_run_plug(run);
	uint64_t before = run->bytes;
	usb_run_until(run, board_of(run)->plugs == 1 && run->bytes > before);
	assert_true(usb_run_logged(run, "unplugged; "));
	assert_int_equal(board_of(run)->unplugs, 1);
	assert_int_equal(run->breaks_count, 1);
	assert_int_equal(run->breaks[0].cause, BC_GAP_UNPLUGGED);
	assert_true(run->breaks[0].is_restart);
	usb_run_stop(run);
}

/* The break is reported at the end if no data follows it. */
TEST_RUN(a_stop_while_the_board_is_away_reports_the_break)
{
	usb_run_streaming(run);
	usbfs_unplug(run->port);
	usb_run_until(run, usb_run_logged(run, "unplugged"));
	usb_run_wait(run, 20);
	usb_run_finish(run);
	assert_int_equal(run->breaks_count, 1);
	assert_int_equal(run->breaks[0].cause, BC_GAP_UNPLUGGED);
	assert_true(run->breaks[0].duration_ns >= 20000000);
}

TEST_RUN(a_board_that_keeps_its_power_reports_what_it_lost_meanwhile)
{
	const struct board_options options = {
		.serial = "A1", .rate = 1000000, .seed = 7, .fifo_samples = 10000};

	usb_run_board_of(run, &options);
	usb_run_plug(run);
	usb_run_command(run, "self-powered on");
	usb_run_start(run);
	usb_run_receive(run, 10000);
	usbfs_unplug(run->port);
	usb_run_until(run, usb_run_logged(run, "unplugged"));
	usb_run_wait(run, 50);
	usb_run_plug(run);
	usb_run_receive(run, 20000);
	usb_run_stop(run);
	struct board_sent sent = usbfs_sent(run->port);
	assert_int_equal(run->samples, sent.samples);
	assert_true(sent.lost > 0);
	assert_int_equal(run->breaks_count, 2);
	assert_int_equal(run->breaks[0].cause, BC_GAP_UNPLUGGED);
	assert_int_equal(run->breaks[1].cause, BC_GAP_BOARD);
	assert_true(run->breaks[1].lost <= sent.lost);
}

/* Several boards */

struct other {
	struct board *board;
	struct usbfs_port *port;
};

static struct other plug_other(const char *serial)
{
	const struct board_options options = {
		.serial = serial, .rate = 1000000, .seed = 9, .fifo_samples = RUN_FIFO_SAMPLES};
	struct other other = {.board = board_new(&options)};

	assert_non_null(other.board);
	other.port = usbfs_plug(other.board);
	return other;
}

TEST_RUN(a_second_board_is_logged_and_not_used)
{
	usb_run_board(run, 1000000);
	usb_run_plug(run);
	struct other b2 = plug_other("B2");
	usb_run_start(run);
	usb_run_until(run, usb_run_logged(run, "not used: B2 at 1-2"));
	usb_run_receive(run, 10000);
	/* And one that is plugged in later. */
	struct other c3 = plug_other("C3");
	usb_run_until(run, usb_run_logged(run, "not used: B2 at 1-2, C3 at 1-3"));
	unsigned news = run->log_count;
	usb_run_wait(run, 100);
	assert_int_equal(run->log_count, news);
	assert_int_equal(usbfs_sent(b2.port).starts, 0);
	assert_int_equal(usbfs_sent(c3.port).starts, 0);
	usb_run_finish(run);
	board_free(b2.board);
	board_free(c3.board);
}

TEST_RUN(after_an_unplug_only_the_same_board_is_used_again)
{
	usb_run_stream(run, 1000000);
	bc_source_bind(run->source, true);
	usb_run_receive(run, 10000);
	usbfs_unplug(run->port);
	usb_run_until(run, usb_run_logged(run, "unplugged"));
	struct other b2 = plug_other("B2"); /* into the same port */
	usb_run_until(run, usb_run_logged(run, "not used: B2 at 1-1"));
	usb_run_wait(run, 50);
	assert_int_equal(usbfs_sent(b2.port).starts, 0);
	assert_int_equal(board_of(run)->plugs, 1);
	usb_run_replug(run);
	assert_string_equal(board_of(run)->identity.port, "1-2");
	assert_int_equal(run->breaks_count, 1);
	usb_run_finish(run);
	board_free(b2.board);
}

/* B2 does not report a clock. */
TEST_RUN(a_source_that_is_not_bound_uses_another_board_with_its_clock)
{
	char answer[BOARD_ANSWER];

	run->options.clock_hz = 12345678;
	usb_run_stream(run, 1000000);
	bc_source_bind(run->source, true);
	usb_run_receive(run, 10000);
	uint64_t clock_hz = run->source->clock_hz;
	assert_int_equal(clock_hz, board_of(run)->clock_hz);
	usbfs_unplug(run->port);
	struct other b2 = plug_other("B2");
	assert_true(usbfs_command(b2.port, "requests stall", answer));
	usb_run_until(run, usb_run_logged(run, "waits for serial number A1"));
	assert_int_equal(usbfs_sent(b2.port).bytes, 0);

	bc_source_bind(run->source, false);
	usb_run_receive(run, 10000);
	assert_string_equal(board_of(run)->identity.serial, "B2");
	assert_int_equal(run->source->clock_hz, 12345678);
	assert_int_equal(run->breaks_count, 1);
	assert_true(run->breaks[0].is_restart);

	/* Now it waits for B2. */
	usbfs_unplug(b2.port);
	usb_run_plug(run);
	bc_source_bind(run->source, true);
	usb_run_until(run, usb_run_logged(run, "waits for serial number B2"));
	assert_false(usb_run_logged(run, "back after"));
	assert_int_equal(run->source->clock_hz, 12345678);
	usb_run_stop(run);
	assert_int_equal(run->status, 0);
	usb_run_close(run);
	board_free(b2.board);
}

TEST_RUN(a_board_without_a_serial_number_streams_and_comes_back)
{
	usb_run_board_named(run, NULL, 1000000);
	usb_run_plug(run);
	usb_run_start(run);
	usb_run_receive(run, 10000);
	assert_string_equal(board_of(run)->identity.serial, "");
	assert_string_equal(run->source->name, "board 1209:0001 at 1-1");
	usb_run_unplug(run);
	usb_run_replug(run);
	usb_run_finish(run);
}

/* The other one precedes it in the list. */
TEST_RUN(a_board_without_a_serial_number_is_found_next_to_one_with_it)
{
	usb_run_board_named(run, NULL, 1000000);
	usb_run_plug(run);
	usb_run_start(run);
	usb_run_receive(run, 10000);
	bc_source_bind(run->source, true);
	usb_run_unplug(run);
	struct other b2 = plug_other("B2"); /* into the same port */
	usb_run_until(run, usb_run_logged(run, "B2 at 1-1; this recording waits for the board"));
	usb_run_replug(run);
	assert_string_equal(board_of(run)->identity.port, "1-2");
	assert_int_equal(usbfs_sent(b2.port).starts, 0);
	usb_run_finish(run);
	board_free(b2.board);
}

/* It follows the other one in the list, but is not reported as unused. */
TEST_RUN(the_board_in_use_is_never_reported_as_unused)
{
	struct other first = plug_other("X");

	usb_run_board_named(run, NULL, 1000000);
	usb_run_plug(run);
	usbfs_unplug(first.port);
	usb_run_start(run);
	usb_run_receive(run, 10000);
	assert_string_equal(board_of(run)->identity.port, "1-2");
	first.port = usbfs_plug(first.board);
	usb_run_until(run, usb_run_logged(run, "not used: X at 1-1;"));
	usb_run_receive(run, 10000);
	assert_false(usb_run_logged(run, "at 1-2;"));
	usb_run_finish(run);
	board_free(first.board);
}

/* Boards with the same serial number, or without any: what was present together with the recorded
 * one can't be it. */

static void start_with_twin(struct usb_run *run, struct other *twin, const char *serial)
{
	usb_run_board_named(run, serial, 1000000);
	usb_run_plug(run);
	*twin = plug_other(serial);
	usb_run_start(run);
	usb_run_receive(run, 10000);
	bc_source_bind(run->source, true);
}

/* Unplugs the recorded board and waits until it is sure that the other one is not used instead. */
static void unplug_and_wait(struct usb_run *run, const struct other *twin, const char *waits)
{
	usbfs_unplug(run->port);
	usb_run_until(run, usb_run_logged(run, waits));
	usb_run_wait(run, 50);
	assert_int_equal(usbfs_sent(twin->port).starts, 0);
	assert_int_equal(board_of(run)->plugs, 1);
}

static void finish_with(struct usb_run *run, const struct other *twin)
{
	assert_int_equal(usbfs_sent(twin->port).starts, 0);
	usb_run_finish(run);
	board_free(twin->board);
}

TEST_RUN(a_board_that_was_present_at_the_same_time_does_not_continue_the_recording)
{
	struct other twin;

	for (unsigned i = 0; i < 2; i++) {
		start_with_twin(run, &twin, i == 0 ? "A1" : NULL);
		unplug_and_wait(run, &twin,
			i == 0 ? "not used: A1 at 1-2; this recording waits for serial number A1 "
				 "at "
				 "port 1-1"
			       : "1-2; this recording waits for the board without one at port 1-1");
		usb_run_replug(run);
		finish_with(run, &twin);
		usb_run_open(run);
	}
}

TEST_RUN(nor_does_one_that_came_while_it_was_recorded)
{
	usb_run_streaming(run);
	bc_source_bind(run->source, true);
	struct other twin = plug_other("A1");
	usb_run_until(run, usb_run_logged(run, "not used: A1 at 1-2"));
	unplug_and_wait(run, &twin, "waits for serial number A1 at port 1-1");
	usb_run_replug(run);
	finish_with(run, &twin);
}

TEST_RUN(nor_does_one_that_is_plugged_in_again)
{
	struct other twin;

	start_with_twin(run, &twin, "A1");
	struct other first = plug_other("X"); /* takes 1-3 */
	unplug_and_wait(run, &twin, "waits for serial number A1 at port 1-1");
	usbfs_unplug(first.port);
	first.port = usbfs_plug(first.board); /* takes 1-1 */
	usbfs_unplug(twin.port);
	usb_run_wait(run, 30);
	twin.port = usbfs_plug(twin.board);
	usb_run_wait(run, 100);
	assert_int_equal(usbfs_sent(twin.port).starts, 0);
	/* Or moved to another port. */
	usbfs_unplug(twin.port);
	struct other second = plug_other("Y"); /* takes 1-2 */
	twin.port = usbfs_plug(twin.board);
	usb_run_until(run, usb_run_logged(run, "A1 at 1-3"));
	usb_run_wait(run, 100);
	assert_int_equal(board_of(run)->plugs, 1);
	usbfs_unplug(first.port);
	usb_run_replug(run);
	finish_with(run, &twin);
	board_free(first.board);
	board_free(second.board);
}

TEST_RUN(the_recorded_board_may_move_while_the_others_stay)
{
	struct other twin;

	start_with_twin(run, &twin, "A1");
	unplug_and_wait(run, &twin, "waits for serial number A1 at port 1-1");
	struct other first = plug_other("X"); /* takes 1-1 */
	usb_run_replug(run);
	assert_string_equal(board_of(run)->identity.port, "1-3");
	finish_with(run, &twin);
	board_free(first.board);
}

/* The other one comes while the recorded board is away, to a port that precedes it. */
TEST_RUN(of_two_new_boards_the_one_at_the_recorded_port_is_used)
{
	struct other first = plug_other("X"); /* takes 1-1 */

	snprintf(run->options.match.serial, sizeof(run->options.match.serial), "A1");
	usb_run_streaming(run);
	assert_string_equal(board_of(run)->identity.port, "1-2");
	bc_source_bind(run->source, true);
	usbfs_hold_events(true); /* it sees both at once */
	usbfs_unplug(first.port);
	usbfs_unplug(run->port);
	struct other twin = plug_other("A1"); /* takes 1-1 */
	usb_run_plug(run);
	usb_run_until(run, board_of(run)->plugs == 2);
	usb_run_receive(run, 10000);
	assert_string_equal(board_of(run)->identity.port, "1-2");
	finish_with(run, &twin);
	board_free(first.board);
}

TEST_RUN(of_two_new_boards_at_other_ports_none_is_used)
{
	usb_run_streaming(run);
	bc_source_bind(run->source, true);
	usbfs_hold_events(true); /* it sees both at once */
	usbfs_unplug(run->port);
	struct other first = plug_other("X"); /* takes 1-1 */
	struct other twin = plug_other("A1");
	usb_run_plug(run);
	usb_run_until(
		run, usb_run_logged(run,
			     "A1 at 1-2, A1 at 1-3, X at 1-1; this recording waits for serial "
			     "number A1 at port 1-1"));
	usb_run_wait(run, 50);
	assert_int_equal(board_of(run)->plugs, 1);
	assert_int_equal(usbfs_sent(run->port).starts, 1);
	/* The last one left is used. A scan may see each state in between. */
	usbfs_unplug(first.port);
	usbfs_unplug(twin.port);
	usb_run_receive(run, 10000);
	assert_string_equal(board_of(run)->identity.port, "1-3");
	finish_with(run, &twin);
	board_free(first.board);
}

TEST_RUN(a_source_that_is_not_bound_uses_the_other_board_with_the_same_serial_number)
{
	struct other twin;

	start_with_twin(run, &twin, "A1");
	bc_source_bind(run->source, false);
	usbfs_unplug(run->port);
	usb_run_receive(run, 10000);
	assert_string_equal(board_of(run)->identity.port, "1-2");
	usb_run_stop(run);
	usb_run_close(run);
	board_free(twin.board);
}

/* Boards that libusb gets no event for */

TEST_RUN(a_board_without_an_event_is_found)
{
	usbfs_hold_events(true);
	usb_run_board(run, 1000000);
	usb_run_start(run);
	usb_run_until(run, usb_run_logged(run, "waiting for it"));
	for (unsigned plugs = 1; plugs <= 3; plugs++) {
		usb_run_replug(run);
		if (plugs == 1)
			bc_source_bind(run->source, true);
		assert_int_equal(board_of(run)->plugs, plugs);
		if (plugs == 3)
			break;
		usbfs_unplug(run->port);
		usb_run_until(run, board_of(run)->unplugs == plugs);
		usb_run_until(run, board_of(run)->state == BC_BOARD_DETACHED);
	}
	assert_int_equal(usb_run_logged(run, "board at 1-1: found without an event"), 1);
	assert_int_equal(run->breaks_count, 2);
	usb_run_finish(run);
}

TEST_RUN(a_board_that_moved_without_an_event_is_found)
{
	usb_run_stream(run, 1000000);
	bc_source_bind(run->source, true);
	usb_run_receive(run, 10000);
	usbfs_hold_events(true);
	usbfs_unplug(run->port);
	struct other b2 = plug_other("B2"); /* into the same port */
	usb_run_until(run, usb_run_logged(run, "not used: B2 at 1-1"));
	usb_run_replug(run);
	assert_string_equal(board_of(run)->identity.port, "1-2");
	assert_true(usb_run_logged(run, "board at 1-2: found without an event"));
	usb_run_finish(run);
	board_free(b2.board);
}

/* libusb still lists the board that has left, at the same port. */
TEST_RUN(a_board_that_was_replaced_without_events_is_found)
{
	usb_run_board(run, 1000000);
	usb_run_plug(run);
	usb_run_source(run);
	usbfs_hold_events(true);
	usbfs_unplug(run->port);
	usb_run_plug(run);
	usb_run_start(run);
	usb_run_receive(run, 10000);
	assert_true(usb_run_logged(run, "board at 1-1: found without an event"));
	usb_run_finish(run);
}

TEST_RUN(without_events_a_board_that_came_while_another_was_recorded_does_not_continue_it)
{
	usbfs_hold_events(true);
	usb_run_board(run, 1000000);
	usb_run_start(run);
	usb_run_until(run, usb_run_logged(run, "waiting for it"));
	usb_run_replug(run);
	bc_source_bind(run->source, true);
	struct other twin = plug_other("A1");
	unplug_and_wait(run, &twin, "waits for serial number A1 at port 1-1");
	usb_run_replug(run);
	finish_with(run, &twin);
}

TEST_RUN(looking_for_a_board_leaves_nothing_open)
{
	run->options.back_off_max_ns = 1000000;
	usb_run_start(run);
	usb_run_until(run, usb_run_logged(run, "waiting for it"));
	int free_fd = first_free_fd();
	usbfs_forget_calls();
	usb_run_until(run, usbfs_calls_of(USBFS_SYSFS) >= 100);
	usb_run_stop(run);
	assert_int_equal(first_free_fd(), free_fd);
}

TEST_RUN(an_event_after_all_changes_nothing)
{
	usbfs_hold_events(true);
	usb_run_board(run, 1000000);
	usb_run_start(run);
	usb_run_until(run, usb_run_logged(run, "waiting for it"));
	usb_run_replug(run);
	usbfs_hold_events(false);
	usb_run_receive(run, 10000);
	assert_int_equal(board_of(run)->plugs, 1);
	/* Now events arrive. */
	usb_run_unplug(run);
	usb_run_replug(run);
	assert_int_equal(board_of(run)->plugs, 2);
	usb_run_finish(run);
}

/* Boards that can't be used */

/* Each fault hits the first call only, which is for the first board. */
TEST_RUN(if_a_board_cannot_be_opened_the_next_is_tried)
{
	static const struct {
		enum usbfs_call call;
		int error;
	} faults[] = {{USBFS_OPEN, EACCES}, {USBFS_OPEN, ENODEV}, {USBFS_CLAIM, EBUSY}};

	for (size_t i = 0; i < COUNT_OF(faults); i++) {
		struct other b2 = plug_other("B2");
		usb_run_board(run, 1000000);
		usb_run_plug(run);
		/* The back-off is too long to wait for. */
		run->options.back_off_ns = UINT64_C(3600000000000);
		run->options.back_off_max_ns = run->options.back_off_ns;
		usbfs_fail(faults[i].call, faults[i].error, 0, 1);
		usb_run_start(run);
		usb_run_receive(run, 10000);
		assert_string_equal(board_of(run)->identity.port, "1-2");
		assert_true(usb_run_logged(run, "B2 at 1-1: can't"));
		assert_true(usb_run_logged(run, "; trying the next board"));
		assert_int_equal(usbfs_sent(b2.port).starts, 0);
		assert_int_equal(usbfs_calls_of(USBFS_RESET), 0);
		usb_run_finish(run);
		board_free(b2.board);
		usb_run_open(run);
	}
}

TEST_RUN(if_no_board_can_be_opened_all_are_retried)
{
	struct other b2 = plug_other("B2");

	usb_run_board(run, 1000000);
	usb_run_plug(run);
	usbfs_fail(USBFS_OPEN, EACCES, 0, 7);
	usb_run_start(run);
	usb_run_receive(run, 10000);
	assert_int_equal(usbfs_calls_of(USBFS_OPEN), 8);
	assert_string_equal(board_of(run)->identity.port, "1-2");
	assert_int_equal(usb_run_logged(run, "Permission denied"), 2); /* each is logged once */
	usb_run_finish(run);
	board_free(b2.board);
}

TEST_RUN(a_recording_waits_for_its_board_even_if_it_cannot_be_opened)
{
	struct other b2 = plug_other("B2");

	snprintf(run->options.match.port, sizeof(run->options.match.port), "1-2");
	usb_run_streaming(run);
	bc_source_bind(run->source, true);
	usbfs_unplug(run->port);
	usb_run_until(run, board_of(run)->state == BC_BOARD_DETACHED);
	usbfs_fail(USBFS_OPEN, EACCES, 0, 5);
	usb_run_replug(run);
	assert_true(usb_run_logged(run, "Permission denied; is the udev rule"));
	assert_false(usb_run_logged(run, "trying the next board"));
	finish_with(run, &b2);
}

/* The back-off doubles from 1 ms to 64 ms: 383 ms between the first and the twelfth attempt. Each
 * interval may be up to a millisecond shorter. */
TEST_RUN(retries_become_less_frequent)
{
	run->options.back_off_ns = 1000000;
	run->options.back_off_max_ns = 64000000;
	usb_run_board(run, 1000000);
	usb_run_plug(run);
	usbfs_fail(USBFS_OPEN, EACCES, 0, 100000);
	uint64_t since_ns = uv_hrtime();
	usb_run_start(run);
	usb_run_until(run, usbfs_calls_of(USBFS_OPEN) >= 12);
	assert_true(uv_hrtime() - since_ns >= UINT64_C(383000000 - 11000000));
	usbfs_fail(USBFS_OPEN, 0, 0, 0);
	usb_run_receive(run, 10000);
	usb_run_finish(run);
}

/* Returns the duration in milliseconds. */
static uint64_t flap(struct usb_run *run, unsigned times)
{
	uint64_t since_ns = uv_hrtime();

	for (unsigned i = 0; i < times; i++) {
		uint64_t unplugs = board_of(run)->unplugs;
		usb_run_receive(run, 100);
		usbfs_unplug(run->port);
		/* Or a frame of this plug could be taken for one of the next. */
		usb_run_until(run, board_of(run)->unplugs > unplugs);
		usb_run_plug(run);
	}
	return (uv_hrtime() - since_ns) / 1000000;
}

TEST_RUN(the_back_off_of_a_flapping_board_doubles)
{
	run->options.back_off_ns = 1000000;
	run->options.back_off_max_ns = 128000000;
	usb_run_stream(run, 1000000);
	/* Back-offs after all but the last: 1, 2, 4 .. 64, 128, 128 .. ms. */
	assert_true(flap(run, 16) >= 127 + 8 * 128 - 15);
	usb_run_receive(run, 100);
	assert_int_equal(board_of(run)->unplugs, 16);
	assert_int_equal(board_of(run)->plugs, 17);
	assert_int_equal(run->breaks_count, 16);
	usb_run_finish(run);
}

static void count_timer(uv_handle_t *handle, void *count)
{
	*(unsigned *)count += handle->type == UV_TIMER && uv_is_active(handle);
}

/* It was steady once: after the next unplug it is reopened at once, but after further ones no
 * sooner than any other board. While it is away, one timer wakes the loop, to look for it. */
TEST_RUN(a_steady_board_that_starts_to_flap_backs_off_again)
{
	unsigned timers = 0;

	run->options.back_off_ns = 1000000;
	run->options.back_off_max_ns = 128000000;
	usb_run_stream(run, 100000);
	usb_run_wait(run, 5200);
	usbfs_unplug(run->port);
	usb_run_until(run, board_of(run)->state == BC_BOARD_DETACHED);
	uv_walk(&run->loop, count_timer, &timers);
	assert_true(timers <= 2); /* the test's own is another */
	usb_run_plug(run);
	/* 1, 2, 4 .. ms. */
	assert_true(flap(run, 16) >= 127 + 8 * 128 - 15);
	usb_run_finish(run);
}

TEST_RUN(a_kernel_driver_is_detached)
{
	usb_run_board(run, 1000000);
	usb_run_plug(run);
	usbfs_bind_driver(run->port, "ftdi_sio");
	usb_run_start(run);
	usb_run_receive(run, 10000);
	assert_false(usb_run_logged(run, "can't claim"));
	usb_run_finish(run);
}

TEST_RUN(an_interface_used_by_another_program_is_reported_and_retried)
{
	usb_run_board(run, 1000000);
	usb_run_plug(run);
	usbfs_fail(USBFS_CLAIM, EBUSY, 0, 100000);
	usb_run_start(run);
	usb_run_until(run, usb_run_logged(run, "can't claim interface"));
	assert_true(usb_run_logged(run, "another program uses it"));
	usbfs_fail(USBFS_CLAIM, 0, 0, 0);
	usb_run_receive(run, 10000);
	assert_int_equal(run->breaks_count, 0);
	usb_run_finish(run);
}

/* Slow calls run off the loop's thread, which waits for none of them: usb_run_close() checks both.
 */
TEST_RUN(slow_calls_do_not_block_the_loop)
{
	static const enum usbfs_call slow[] = {USBFS_OPEN, USBFS_CLAIM, USBFS_RELEASE,
		USBFS_CLEAR_HALT, USBFS_RESET, USBFS_CLOSE, USBFS_SET_INTERFACE, USBFS_SYSFS};

	for (unsigned i = 0; i < COUNT_OF(slow); i++) {
		usb_run_board(run, 1000000);
		char answer[BOARD_ANSWER];
		if (slow[i] == USBFS_SET_INTERFACE)
			assert_true(board_command(run->board, "lie alternate", answer, 0));
		usb_run_plug(run);
		usbfs_slow(slow[i], slow[i] == USBFS_SYSFS ? 2 : 40);
		usb_run_start(run);
		usb_run_receive(run, 10000);
		usb_run_command(run, "stall");
		usb_run_until(run, board_of(run)->stalls == 1);
		usb_run_receive(run, 10000);
		usbfs_fail(USBFS_CLEAR_HALT, EIO, 0, 1);
		usb_run_command(run, "stall");
		usb_run_until(run, board_of(run)->restarts == 1);
		usb_run_receive(run, 10000);
		usb_run_unplug(run);
		usb_run_replug(run);
		usb_run_stop(run);
		usb_run_again(run);
	}
}

/* Many plugs */

static unsigned count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(dir);
	while (readdir(dir) != NULL)
		count++;
	closedir(dir);
	return count;
}

/* Waits until no scan for boards is running: the number of descriptors is stable. */
static unsigned settle(struct usb_run *run)
{
	unsigned fds = count_fds();

	for (unsigned looks = 0; looks < 20; looks++) {
		usb_run_wait(run, 5);
		if (count_fds() == fds)
			continue;
		fds = count_fds();
		looks = 0;
	}
	return fds;
}

static size_t memory_in_use(void)
{
	return mallinfo2().uordblks;
}

/* The simulated kernel keeps each port until the end. */
static size_t port_memory(unsigned ports)
{
	return ports * (sizeof(struct usbfs_port) + 2 * sizeof(size_t));
}

TEST_RUN(a_thousand_unplugs_in_mid_stream_leak_nothing)
{
	unsigned times = 1000 / test_stride(25);
	size_t memory = 0;
	unsigned fds = 0;

	run->options.back_off_ns = 1;
	run->options.back_off_max_ns = 1;
	run->options.transfer_bytes = 8192;
	usb_run_stream(run, 0);
	usb_run_until(run, board_of(run)->state == BC_BOARD_STREAMING);
	for (unsigned i = 0; i < times; i++) {
		usb_run_receive(run, 100);
		if (i == times / 2) {
			fds = settle(run);
			memory = memory_in_use();
		}
		usbfs_unplug(run->port);
		usb_run_plug(run);
		usb_run_until(run, board_of(run)->plugs == i + 2);
	}
	usb_run_receive(run, 100);
	usb_run_until(run, count_fds() <= fds);
	assert_true(memory_in_use() < memory + port_memory(times / 2) + 65536);
	assert_int_equal(board_of(run)->unplugs, times);
	assert_int_equal(run->breaks_count, times);
	usb_run_finish(run);
}
