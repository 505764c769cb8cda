/* The USB source with a software board, below the real libusb: start, streaming and end of a
 * stream. Failing transfers and requests are in test_usb_faults.c, plugs in test_usb_plugs.c. */
#include <errno.h>

#include "tests/support/test.h"
#include "tests/support/usb_run.h"

TEST_THREADS;
TEST_VALGRIND;

/* A clean end: exactly the samples that left the board have arrived. */
static void check_whole(struct usb_run *run)
{
	struct board_sent sent = usbfs_sent(run->port);

	assert_int_equal(run->status, 0);
	assert_int_equal(run->samples, sent.samples);
	assert_int_equal(run->bytes, sent.bytes);
	assert_int_equal(run->damaged, 0);
	assert_int_equal(run->breaks_count, 0);
	assert_int_equal(board_of(run)->bytes, run->bytes);
}

TEST_RUN(every_sample_of_a_streaming_board_arrives)
{
	usb_run_stream(run, 1000000);
	usb_run_receive(run, 100000);
	assert_int_equal(board_of(run)->state, BC_BOARD_STREAMING);
	usb_run_stop(run);
	check_whole(run);
	assert_int_equal(run->last_frames, 1);
	assert_int_equal(usbfs_sent(run->port).starts, 1);
	assert_int_equal(usbfs_sent(run->port).stops, 1);
	assert_int_equal(board_of(run)->plugs, 1);
	assert_int_equal(board_of(run)->unplugs, 0);
	assert_false(board_of(run)->is_present);
}

TEST_RUN(a_board_that_sends_no_last_frame_leaves_a_gap_at_the_end)
{
	usb_run_streaming(run);
	usb_run_command(run, "freeze");
	usb_run_stop(run);
	assert_int_equal(run->last_frames, 0);
	assert_int_equal(run->breaks_count, 1);
	assert_int_equal(run->breaks[0].cause, BC_GAP_TRANSFER);
	assert_true(usb_run_logged(run, "no last frame"));
}

TEST_RUN(a_board_unplugged_while_stopping_leaves_a_gap_at_the_end)
{
	for (unsigned tries = 0;; tries++) {
		usb_run_streaming(run);
		usb_run_command(run, "freeze");
		bc_source_stop(run->source);
		usb_run_until(run, usbfs_sent(run->port).stops == 1);
		usb_run_wait(run, 10);
		usbfs_unplug(run->port);
		usb_run_until(run, run->ends == 1);
		if (!usb_run_logged(run, "no last frame"))
			break;
		/* The machine stood still for a second, and the source gave up. */
		assert_true(tries < 20);
		usb_run_again(run);
	}
	assert_int_equal(run->breaks_count, 1);
	assert_int_equal(run->breaks[0].cause, BC_GAP_UNPLUGGED);
	assert_int_equal(board_of(run)->unplugs, 1);
	assert_true(usb_run_logged(run, "unplugged while stopping"));
}

/* Returns the duration. */
static uint64_t stop_slowly(struct usb_run *run)
{
	usb_run_streaming(run);
	usb_run_command(run, "freeze");
	uint64_t frozen_ns = uv_hrtime();
	bc_source_stop(run->source);
	usb_run_until(run, uv_hrtime() - frozen_ns > 300000000);
	usb_run_command(run, "thaw");
	usb_run_until(run, run->ends == 1);
	usb_run_frames(run, NULL, 0, true);
	return uv_hrtime() - frozen_ns;
}

TEST_RUN(a_board_that_stops_slowly_is_read_to_its_last_frame)
{
	/* If the test was delayed, the board had more than its second and may have been given up.
	 */
	for (unsigned tries = 1; stop_slowly(run) > 900000000; tries++) {
		assert_true(tries < 20);
		usb_run_again(run);
	}
	assert_int_equal(run->last_frames, 1);
	assert_int_equal(run->breaks_count, 0);
	assert_int_equal(run->samples, usbfs_sent(run->port).samples);
}

static void freeze_again(struct usb_run *run)
{
	usb_run_command(run, "freeze");
}

/* A full FIFO that is read in small pieces, each within a second of the one before. */
static void stop_in_pieces(struct usb_run *run)
{
	run->options.transfers = 2;
	run->options.transfer_bytes = 16384;
	usb_run_stream(run, 4000000);
	usb_run_receive(run, 10000);
	usb_run_command(run, "freeze");
	usb_run_wait(run, 300);
	bc_source_stop(run->source);
	usb_run_until(run, usbfs_sent(run->port).stops == 1);
	run->on_data = freeze_again;
	for (unsigned n = 0; n < 5 && run->ends == 0; n++) {
		unsigned pieces = (unsigned)run->pieces;
		usb_run_wait(run, 300);
		usb_run_command(run, "thaw");
		usb_run_until(run, run->pieces > pieces || run->ends == 1);
	}
	run->on_data = NULL;
	usb_run_command(run, "thaw");
	usb_run_until(run, run->ends == 1);
	usb_run_frames(run, NULL, 0, true);
}

TEST_RUN(a_board_is_read_to_its_last_frame_as_long_as_it_sends_data)
{
	for (unsigned tries = 1;; tries++) {
		stop_in_pieces(run);
		if (!usb_run_logged(run, "no last frame"))
			break;
		/* The machine stood still for a second, and the source gave up. */
		assert_true(tries < 5);
		usb_run_again(run);
	}
	assert_false(usb_run_logged(run, "no answer"));
	assert_int_equal(run->last_frames, 1);
	assert_int_equal(run->breaks_count, 0);
	assert_int_equal(run->samples, usbfs_sent(run->port).samples);
}

TEST_RUN(the_boards_answers_are_in_the_status)
{
	usb_run_stream(run, 1000000);
	usb_run_receive(run, 1000);
	const struct bc_board *b = run->source->board;
	assert_true(b->is_present);
	assert_true(b->has_info);
	assert_false(b->has_counters); /* only after the end, because they are read then */
	assert_int_equal(b->protocol_version, 1);
	assert_int_equal(b->clock_hz, run->source->clock_hz);
	assert_true(b->clock_hz != 0);
	assert_int_equal(b->fifo_samples, RUN_FIFO_SAMPLES);
	assert_string_equal(b->firmware, "sim-1.0");
	assert_string_equal(b->own_serial, "A1");
	assert_string_equal(b->identity.serial, "A1");
	assert_string_equal(b->identity.port, "1-1");
	assert_string_equal(b->identity.speed, "high");
	assert_int_equal(b->identity.endpoint, 0x81);
	assert_int_equal(b->identity.packet_bytes, 512);
	assert_int_equal(b->transfers, 64);
	assert_int_equal(b->transfer_bytes, 65536);
	assert_string_equal(run->source->name, "board 1209:0001 A1 at 1-1");
	usb_run_stop(run);
}

TEST_RUN(the_source_waits_for_a_board_that_is_plugged_in_later)
{
	usb_run_board(run, 1000000);
	usb_run_start(run);
	usb_run_until(run, usb_run_logged(run, "waiting for it"));
	usb_run_replug(run);
	usb_run_stop(run);
	check_whole(run);
}

/* Sizes */

struct size {
	uint16_t packet_bytes;
	uint32_t transfer_bytes;
	unsigned transfers;
	unsigned how;
};

/* Short packets, and empty ones; split by libusb into several URBs; completed by another thread. */
enum { SHORT = 1, SPLIT = 2, THREADED = 4 };

static void try_size(struct usb_run *run, const struct size *size)
{
	const struct board_options options = {.serial = "A1",
		.rate = 2000000,
		.seed = 7,
		.packet_bytes = size->packet_bytes,
		.fifo_samples = RUN_FIFO_SAMPLES};

	usbfs_set_caps((size->how & SPLIT) != 0 ? USBFS_CAPS_SPLIT : USBFS_CAPS_XHCI);
	usbfs_set_threaded((size->how & THREADED) != 0);
	usb_run_board_of(run, &options);
	run->options.transfer_bytes = size->transfer_bytes;
	run->options.transfers = size->transfers;
	usb_run_plug(run);
	usb_run_command(run, (size->how & SHORT) != 0 ? "short on" : "short off");
	usb_run_command(run, "frame 333");
	usb_run_start(run);
	usb_run_command(run, "send 60000"); /* little is left at the stop, however late that is */
	usb_run_receive(run, 40000);
	assert_int_equal(board_of(run)->transfer_bytes,
		size->transfer_bytes - size->transfer_bytes % size->packet_bytes);
	assert_int_equal(board_of(run)->transfers, size->transfers);
	usb_run_stop(run);
	check_whole(run);
	usb_run_again(run);
}

TEST_RUN(transfers_of_any_size_lose_nothing)
{
	static const struct size sizes[] = {
		{64, 4096, 1, 0},
		{512, 4097, 2, 0},
		{1024, 5000, 5, 0},
		{64, 10240, 1, 0},
		{512, 65535, 5, 0},
		{1024, 100000, 11, 0},
		{64, 65536, 16, SHORT},
		{512, 5000, 3, SHORT},
		{1024, 65536, 16, SHORT},
		{512, 200000, 4, SPLIT},
		{512, 200000, 4, SPLIT | SHORT},
		{512, 200000, 4, SPLIT | SHORT | THREADED},
		{512, 4096, 4, THREADED},
		{512, 65536, 4, THREADED | SHORT},
	};

	for (size_t i = 0; i < COUNT_OF(sizes); i++)
		try_size(run, &sizes[i]);
}

TEST_RUN(a_board_at_full_speed_is_accounted_for)
{
	usb_run_board(run, 0);
	usb_run_plug(run);
	usbfs_set_threaded(true);
	usb_run_command(run, "send 1000000");
	usb_run_start(run);
	usb_run_receive(run, 1000000);
	usb_run_stop(run);
	check_whole(run);
	assert_int_equal(run->samples, 1000000);
}

/* Ends */

TEST_RUN(a_stop_drains_the_board)
{
	usb_run_stream(run, 1000000);
	usb_run_receive(run, 1000);
	usb_run_command(run, "freeze");
	usb_run_wait(run, 60);
	uint64_t before = run->samples;
	bc_source_stop(run->source);
	usb_run_command(run, "thaw");
	usb_run_until(run, run->ends == 1);
	check_whole(run);
	assert_true(run->samples >= before + 50000);
	assert_int_equal(run->samples, usbfs_sent(run->port).captured);
	assert_int_equal(board_of(run)->counters.samples, run->samples);
	assert_int_equal(run->last_frames, 1);
}

TEST_RUN(an_unrequested_last_frame_ends_the_stream_a_second_later)
{
	usb_run_stream(run, 1000000);
	usb_run_receive(run, 1000);
	uint64_t since_ns = uv_hrtime();
	usb_run_command(run, "last");
	usb_run_until(run, run->last_frames == 1);
	assert_int_equal(run->ends, 0);
	usb_run_until(run, run->ends == 1);
	assert_true(uv_hrtime() - since_ns >= UINT64_C(1000000000));
	assert_true(usb_run_logged(run, "sent its last frame"));
	check_whole(run);
}

TEST_RUN(after_a_last_frame_a_stop_without_an_answer_leaves_no_gap)
{
	usb_run_stream(run, 1000000);
	usb_run_receive(run, 1000);
	usb_run_command(run, "requests hang");
	usb_run_command(run, "last");
	usb_run_until(run, run->ends == 1);
	check_whole(run);
	assert_false(usb_run_logged(run, "may be lost"));
}

TEST_RUN(data_after_a_last_frame_continues_the_stream)
{
	/* If the test was delayed, there may have been no data for a second; then retry. */
	for (unsigned tries = 1;; tries++) {
		usb_run_stream(run, 100000);
		usb_run_receive(run, 1000);
		bc_source_last_frame(run->source);
		usb_run_wait(run, 1200);
		if (run->ends == 0)
			break;
		assert_true(tries < 5);
		usb_run_again(run);
	}
	usb_run_stop(run);
	check_whole(run);
}

TEST_RUN(a_board_that_does_not_stop_sending_is_cut_off)
{
	static const uint8_t zeros[512];

	usb_run_stream(run, 0);
	usbfs_set_threaded(true);
	usbfs_replay(run->port, zeros, sizeof(zeros));
	usb_run_until(run, run->bytes > 100000);
	usbfs_slow(USBFS_SUBMIT, 3); /* or it sends gigabytes in that second */
	usb_run_stop(run);
	assert_int_equal(run->status, 0);
	assert_int_equal(usbfs_sent(run->port).stops, 1);
}

TEST_RUN(a_stop_works_in_any_state)
{
	/* No board. */
	usb_run_start(run);
	usb_run_stop(run);
	assert_int_equal(run->status, 0);
	usb_run_again(run);

	/* Waiting. */
	usb_run_start(run);
	usb_run_until(run, usb_run_logged(run, "waiting for it"));
	usb_run_stop(run);
	usb_run_again(run);

	/* Opening, and a little later. A loss before the start is not one of the stream. */
	for (unsigned turns = 0; turns < 16; turns++) {
		usb_run_board(run, 1000000);
		usb_run_plug(run);
		usb_run_command(run, "lose 1000");
		usb_run_start(run);
		for (unsigned i = 0; i < turns; i++)
			uv_run(&run->loop, UV_RUN_ONCE);
		usb_run_stop(run);
		assert_int_equal(run->status, 0);
		assert_int_equal(run->samples, usbfs_sent(run->port).samples);
		assert_int_equal(run->breaks_count, 0);
		usb_run_again(run);
	}

	/* Backing off. */
	run->options.back_off_ns = UINT64_C(3600000000000);
	run->options.back_off_max_ns = UINT64_C(3600000000000);
	usb_run_plug(run);
	usbfs_fail(USBFS_OPEN, EACCES, 0, 1000);
	usb_run_start(run);
	usb_run_until(run, board_of(run)->state == BC_BOARD_BACK_OFF);
	usb_run_stop(run);
	assert_int_equal(run->status, 0);
}

TEST_RUN(a_second_stop_changes_nothing)
{
	usb_run_stream(run, 1000000);
	usb_run_receive(run, 1000);
	bc_source_stop(run->source);
	bc_source_stop(run->source);
	usb_run_until(run, run->ends == 1);
	bc_source_stop(run->source);
	usb_run_wait(run, 20);
	check_whole(run);
}

TEST_RUN(a_source_that_was_never_started_closes)
{
	usb_run_board(run, 1000000);
	usb_run_plug(run);
	usb_run_source(run);
	bc_source_stop(run->source);
	usb_run_close(run);
	assert_int_equal(run->ends, 0);
}

/* Calls from the sink */

static void stop_at_1000(struct usb_run *run)
{
	if (run->samples >= 1000)
		bc_source_stop(run->source);
}

static void close_now(struct usb_run *run)
{
	if (run->is_closed)
		return;
	run->is_closed = true;
	bc_source_close(run->source);
}

static void close_at_1000(struct usb_run *run)
{
	if (run->samples >= 1000)
		close_now(run);
}

TEST_RUN(the_sink_may_stop_the_source)
{
	for (unsigned transfers = 1; transfers <= 2; transfers++) {
		run->options.transfers = transfers;
		run->on_data = stop_at_1000;
		usb_run_stream(run, 1000000);
		usb_run_until(run, run->ends == 1);
		check_whole(run);
		usb_run_again(run);
	}
	run->on_log = stop_at_1000;
}

TEST_RUN(the_sink_may_close_the_source)
{
	usb_run_board(run, 1000000);
	for (unsigned transfers = 1; transfers <= 2; transfers++) {
		run->options.transfers = transfers;
		run->on_data = close_at_1000;
		usb_run_plug(run);
		usb_run_start(run);
		usb_run_until(run, run->is_closed);
		usb_run_again(run);
	}
	/* The first log message, with a board. */
	run->on_log = close_now;
	usb_run_plug(run);
	usb_run_start(run);
	usb_run_until(run, run->is_closed);
	usb_run_again(run);
	/* And without one. */
	run->on_log = close_now;
	usb_run_start(run);
	usb_run_until(run, run->is_closed);
}

/* Losses reported by the board */

TEST_RUN(losses_counted_by_the_board_are_reported_at_the_end)
{
	usb_run_stream(run, 1000000);
	usb_run_receive(run, 1000);
	usb_run_command(run, "lose 1000");
	usb_run_receive(run, 10000);
	usb_run_stop(run);
	struct board_sent sent = usbfs_sent(run->port);
	assert_int_equal(run->samples, sent.samples);
	assert_int_equal(sent.lost, 1000);
	assert_int_equal(run->breaks_count, 1);
	assert_int_equal(run->breaks[0].cause, BC_GAP_BOARD);
	assert_int_equal(run->breaks[0].lost, 1000);
	assert_false(run->breaks[0].is_restart);
	assert_int_equal(board_of(run)->counters.lost, 1000);
}

TEST_RUN(losses_from_before_the_start_are_not_counted_again)
{
	usb_run_stream(run, 1000000);
	usb_run_receive(run, 1000);
	usb_run_command(run, "lose 1000");
	usb_run_receive(run, 10000);
	usb_run_stop(run);
	usb_run_close(run);
	uint64_t before = board_sent(run->board).samples;
	usb_run_open(run);
	usb_run_plug(run);
	usb_run_command(run, "self-powered on");
	usb_run_start(run);
	usb_run_receive(run, 1000);
	usb_run_stop(run);
	assert_int_equal(run->breaks_count, 0);
	assert_int_equal(run->samples, usbfs_sent(run->port).samples - before);
}

/* Waiting */

TEST_RUN(the_wait_for_a_board_ends_as_configured)
{
	run->options.wait_ns = 50000000;
	usb_run_start(run);
	usb_run_until(run, run->ends == 1);
	assert_int_equal(run->status, -ENODEV);
	assert_non_null(strstr(run->what, "not found within"));
	usb_run_again(run);

	/* A board that can't be opened: the message says so. */
	usb_run_board(run, 1000000);
	usb_run_plug(run);
	usbfs_fail(USBFS_OPEN, EACCES, 0, 100000);
	run->options.wait_ns = 600000000;
	usb_run_start(run);
	usb_run_until(run, run->ends == 1);
	assert_int_equal(run->status, -ENODEV);
	if (usb_run_logged(
		    run, "can't open device")) /* a slow machine may not have logged it yet */
		assert_non_null(strstr(run->what, "not usable within"));

	/* It streams in time (a slow machine needs longer): the source does not end. */
	unsigned wait_ms = 300;
	do {
		usb_run_again(run);
		wait_ms *= 2;
		run->options.wait_ns = wait_ms * UINT64_C(1000000);
		usb_run_plug(run);
		usb_run_start(run);
		usb_run_until(run, run->samples >= 100 || run->ends == 1);
	} while (run->ends == 1 && wait_ms < 20000);
	usb_run_wait(run, wait_ms + 100);
	assert_int_equal(run->ends, 0);
	usb_run_stop(run);
	assert_int_equal(run->status, 0);
}

/* raw6 and FTDI */

TEST_RUN(raw6_arrives_whole_with_increasing_times)
{
	usb_run_board_raw6(run);
	usb_run_plug(run);
	usb_run_start(run);
	usb_run_until(run, run->bytes > 100000);
	assert_int_equal(run->source->clock_hz, board_of(run)->clock_hz);
	usb_run_stop(run);
	assert_int_equal(run->status, 0);
	assert_int_equal(run->bytes, usbfs_sent(run->port).bytes);
	assert_int_equal(run->bytes / 6, usbfs_sent(run->port).samples);
}

TEST_RUN(an_unreported_clock_is_the_configured_one_or_the_hosts)
{
	static const uint64_t clocks[] = {0, 12345678};

	for (unsigned i = 0; i < 2; i++) {
		usb_run_board_raw6(run);
		run->options.clock_hz = clocks[i];
		usb_run_plug(run);
		usb_run_command(run, "requests stall");
		usb_run_start(run);
		usb_run_until(run, run->bytes > 10000);
		assert_int_equal(run->source->clock_hz, i == 0 ? BC_USB_HOST_CLOCK_HZ : clocks[i]);
		usb_run_again(run);
	}
}

static void use_ftdi(struct usb_run *run, uint16_t packet_bytes, uint64_t rate)
{
	const struct board_options options = {.serial = "F1",
		.is_ftdi = true,
		.rate = rate,
		.seed = 7,
		.packet_bytes = packet_bytes,
		.fifo_samples = RUN_FIFO_SAMPLES};

	usb_run_board_of(run, &options);
	run->options.match.vid = 0x0403;
	run->options.match.pid = 0x6014;
	run->options.link = BC_USB_FTDI;
}

static void try_ftdi(struct usb_run *run, uint16_t packet_bytes, uint8_t mode)
{
	char answer[BOARD_ANSWER];
	char wanted[64];

	use_ftdi(run, packet_bytes, 1000000);
	run->options.ftdi = (struct bc_usb_ftdi){.latency_ms = 3, .keeps_mode = mode == 0};
	run->options.clock_hz = 66000000;
	usb_run_plug(run);
	usb_run_start(run);
	usb_run_receive(run, 50000);
	assert_int_equal(run->source->clock_hz, 66000000);
	assert_true(usbfs_command(run->port, "ftdi", answer));
	snprintf(wanted, sizeof(wanted), "\"latency_ms\":3,\"bit_mode\":%u,\"bit_mask\":255", mode);
	assert_non_null(strstr(answer, wanted));
	assert_non_null(strstr(answer, "\"resets\":1,\"purges\":2"));
	usb_run_stop(run);
	assert_int_equal(run->status, 0);
	assert_int_equal(run->samples, usbfs_sent(run->port).samples);
	assert_int_equal(run->bytes, usbfs_sent(run->port).bytes);
	assert_true(usbfs_command(run->port, "ftdi", answer));
	assert_non_null(strstr(answer, "\"bit_mode\":0"));
	usb_run_again(run);
}

/* A run that crashed leaves the chip in its mode, and it fills its buffer until it is reset. */
TEST_RUN(what_an_ftdi_chip_holds_from_an_earlier_run_is_not_recorded)
{
	static const uint8_t sync_fifo[8] = {0x40, 11, 0xFF, 0x40, 1, 0, 0, 0};

	for (unsigned i = 0; i < 4; i++) {
		/* On demand, or with old samples in its FIFO. */
		use_ftdi(run, i % 2 == 0 ? 512 : 64, i < 2 ? 0 : 1000000);
		assert_int_equal(board_control(run->board, sync_fifo, NULL, 1), 0);
		if (i >= 2)
			assert_int_equal(
				board_control(run->board, sync_fifo, NULL, uv_hrtime()), 0);
		usb_run_plug(run);
		usb_run_start(run);
		usb_run_receive(run, 10000);
		assert_int_equal(run->reader.skipped_bytes, 0);
		assert_int_equal(run->damaged, 0);
		usb_run_again(run);
	}
}

TEST_RUN(an_ftdi_chips_status_bytes_are_removed)
{
	try_ftdi(run, 512, 0x40);
	try_ftdi(run, 64, 0x40);
}
