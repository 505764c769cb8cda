#include "tests/board/rig.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

/* Losses */

TEST_RIG(samples_that_do_not_fit_the_fifo_are_lost_and_reported)
{
	uint64_t most;

	open_board(rig, &(struct board_options){.rate = 100000, .fifo_samples = 3000});
	start(rig);
	rig->now_ns += 30 * MS_NS;
	transfer(rig);
	assert_int_equal(board_sent(rig->board).captured_lost, 0);
	for (int i = 1; i <= 5; i++) {
		struct board_sent before = board_sent(rig->board);
		rig->now_ns += SECOND_NS;
		transfers(rig, 1);
		struct board_sent after = board_sent(rig->board);
		uint64_t lost = after.captured_lost - before.captured_lost;
		assert_in_range(lost, 97000, 99999);
		assert_int_equal(after.lost, after.captured_lost);
		assert_int_equal(after.captured - before.captured, 100000 - lost);
	}
	assert_int_equal(control(rig, 0xC1, 4, 0, 0, 24), 24);
	struct board_sent sent = board_sent(rig->board);
	assert_true(bc_le64(rig->data) == sent.captured);
	assert_true(bc_le64(rig->data + 8) == sent.captured_lost);
	most = bc_le64(rig->data + 16);
	assert_int_equal(most, 3000);
	stop_and_check(rig);
	assert_int_equal(rig->receiver.sequence_gaps, 0);
}

TEST_RIG(a_fifo_smaller_than_a_frame_works)
{
	open_board(rig, &(struct board_options){.rate = 1000, .fifo_samples = 1});
	start(rig);
	run_for(rig, SECOND_NS);
	assert_int_equal(
		board_sent(rig->board).captured + board_sent(rig->board).captured_lost, 1000);
	stop_and_check(rig);
	assert_true(rig->receiver.samples < 12);
}

TEST_RIG(a_loss_is_reported_in_the_next_header)
{
	open_board(rig, &(struct board_options){0});
	start(rig);
	transfers(rig, 1);
	assert_int_equal(rig->receiver.board_lost, 0);
	uint64_t tick = rig->receiver.tick;
	command(rig, "lose 5");
	command(rig, "lose 70000");
	transfers(rig, 2);
	assert_int_equal(rig->receiver.board_lost, 70005);
	assert_true(rig->receiver.tick > tick + 70005);
	command(rig, "lose 1099511627776");
	transfers(rig, 2);
	assert_true(rig->receiver.board_lost == 70005 + UINT64_C(0xFFFFFFFF));
	assert_true(board_sent(rig->board).captured_lost == 70005 + (UINT64_C(1) << 40));
	stop_and_check(rig);
	assert_int_equal(rig->receiver.epochs, 0);
	assert_int_equal(rig->receiver.sequence_gaps, 0);
}

TEST_RIG(a_loss_without_a_following_sample_is_reported)
{
	open_board(rig, &(struct board_options){0});
	command(rig, "send 0");
	command(rig, "heartbeat off");
	start(rig);
	command(rig, "lose 12");
	run_for(rig, 99 * MS_NS);
	assert_int_equal(rig->receiver.frames, 0);
	run_for(rig, MS_NS);
	assert_int_equal(rig->receiver.frames, 1);
	assert_int_equal(rig->receiver.board_lost, 12);
	run_for(rig, 10 * SECOND_NS);
	assert_int_equal(rig->receiver.frames, 1);
	command(rig, "lose 3");
	stop_and_check(rig);
	assert_int_equal(rig->receiver.header.lost, 3);
}

TEST_RIG(lost_frames_skip_sequence_numbers)
{
	static const uint64_t rates[] = {0, 100000};

	for (size_t i = 0; i < 2; i++) {
		open_board(rig, &(struct board_options){.rate = rates[i]});
		start(rig);
		rig->now_ns += SECOND_NS;
		transfers(rig, 1);
		command(rig, "lose-frames 3");
		for (int n = 0; n < 10; n++) {
			rig->now_ns += SECOND_NS;
			transfer(rig);
		}
		stop_and_check(rig);
		assert_int_equal(rig->receiver.sequence_gaps, 1);
		assert_int_equal(rig->receiver.damaged_samples, 0);
		assert_int_equal(rig->receiver.reader.skipped_bytes, 0);
		assert_in_range(board_sent(rig->board).dropped_samples, 3, 3 * 2048);
		assert_int_equal(board_sent(rig->board).torn_frames, 0);
	}
}

TEST_RIG(a_corrupt_frame_is_torn)
{
	open_board(rig, &(struct board_options){.agents = 2});
	command(rig, "frame 3"); /* small frames, so that headers are often corrupted */
	start(rig);
	rig->room = 1024;
	for (int i = 1; i <= 500; i++) {
		command(rig, "lose 1");
		transfers(rig, 1);
		command(rig, "corrupt");
		transfers(rig, 1);
	}
	uint64_t torn = board_sent(rig->board).torn_frames;
	assert_int_equal(torn, 500);
	stop_and_check(rig);
	assert_true(rig->receiver.sequence_gaps > 20);
	assert_true(rig->receiver.damaged_samples > 500);
	assert_true(board_sent(rig->board).torn_samples > rig->receiver.damaged_samples);
}

TEST_RIG(garbage_is_between_frames)
{
	static const uint64_t lengths[] = {1, 31, 100, 16384, 100000};
	uint64_t garbage = 0;

	open_board(rig, &(struct board_options){0});
	command(rig, "garbage 77"); /* the first bytes */
	start(rig);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		transfers(rig, 2);
		command_n(rig, "garbage", lengths[i]);
		garbage += lengths[i];
		transfers(rig, 2);
	}
	stop_and_check(rig);
	assert_int_equal(rig->receiver.reader.skipped_bytes, 77 + garbage);
	assert_int_equal(rig->receiver.sequence_gaps, 0);
	assert_int_equal(board_sent(rig->board).torn_frames, 0);
}

TEST_RIG(a_trigger_marks_one_frame_with_samples)
{
	open_board(rig, &(struct board_options){0});
	command(rig, "send 0");
	start(rig);
	command(rig, "trigger");
	run_for(rig, 5 * SECOND_NS);
	assert_int_equal(rig->receiver.triggers, 0);
	command(rig, "send 1");
	drain(rig);
	assert_int_equal(rig->receiver.triggers, 1);
	assert_int_equal(rig->receiver.header.flags, BC_BCP1_TRIGGER);
	command(rig, "send 10000");
	drain(rig);
	assert_int_equal(rig->receiver.triggers, 1);
	stop_and_check(rig);
}

static bool is_idle(struct rig *rig)
{
	assert_true(board_command(rig->board, "sent", rig->answer, rig->now_ns));
	return strstr(rig->answer, ",\"idle\":true}") != NULL;
}

TEST_RIG(a_board_is_idle_once_all_is_sent)
{
	static const char *const more[] = {"send 1000", "lose 5", "garbage 7"};
	static const uint64_t rates[] = {0, 100000};

	for (size_t i = 0; i < 2; i++) {
		open_board(rig, &(struct board_options){.rate = rates[i]});
		assert_false(is_idle(rig));
		command(rig, "send 0");
		start(rig);
		for (size_t k = 0; k < sizeof(more) / sizeof(more[0]); k++) {
			run_for(rig, SECOND_NS);
			assert_true(is_idle(rig));
			command(rig, more[k]);
			assert_false(is_idle(rig));
		}
		run_for(rig, SECOND_NS);
		command(rig, "stall");
		assert_false(is_idle(rig));
		assert_int_equal(transfer(rig), -EPIPE);
		assert_true(is_idle(rig));
		board_unplug(rig->board);
		command(rig, "send 1");
		assert_false(is_idle(rig));
	}
}

TEST_RIG(a_board_can_stop_by_itself)
{
	open_board(rig, &(struct board_options){0});
	start(rig);
	transfers(rig, 3);
	command(rig, "last");
	drain(rig);
	assert_int_equal(rig->receiver.lasts, 1);
	assert_int_equal(board_sent(rig->board).stops, 0);
	check_ledger_at_end(rig);
	start(rig);
	transfers(rig, 3);
}

/* Faults of a transfer */

TEST_RIG(a_stall_lasts_until_it_is_cleared_and_loses_nothing)
{
	open_board(rig, &(struct board_options){0});
	start(rig);
	transfers(rig, 2);
	command(rig, "stall");
	assert_int_equal(transfer(rig), -EPIPE);
	assert_int_equal(rig->bytes, rig->room / 2);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(transfer(rig), -EPIPE);
		assert_int_equal(rig->bytes, 0);
	}
	assert_int_equal(control(rig, 0x82, 0, 0, BOARD_ENDPOINT, 2), 2);
	assert_int_equal(rig->data[0], 1);
	clear_halt(rig);
	assert_int_equal(control(rig, 0x82, 0, 0, BOARD_ENDPOINT, 2), 2);
	assert_int_equal(rig->data[0], 0);
	transfers(rig, 2);
	stop_and_check(rig);
	assert_int_equal(rig->receiver.reader.skipped_bytes, 0);
	assert_int_equal(rig->receiver.sequence_gaps, 0);
}

TEST_RIG(protocol_errors_and_timeouts_lose_nothing)
{
	open_board(rig, &(struct board_options){0});
	command(rig, "timeout 5");
	assert_int_equal(transfer(rig), -ETIMEDOUT); /* although it has no data */
	assert_int_equal(rig->bytes, 0);
	start(rig);
	transfers(rig, 2);
	command(rig, "protocol-error");
	command(rig, "timeout 1000");
	command(rig, "timeout 0");
	command(rig, "timeout 4000000000");
	assert_int_equal(transfer(rig), -EPROTO);
	assert_int_equal(rig->bytes, rig->room / 2);
	assert_int_equal(transfer(rig), -ETIMEDOUT);
	assert_int_equal(rig->bytes, 1000);
	assert_int_equal(transfer(rig), -ETIMEDOUT);
	assert_int_equal(rig->bytes, 0);
	assert_int_equal(transfer(rig), -ETIMEDOUT);
	assert_int_equal(rig->bytes, rig->room);
	transfers(rig, 2);
	stop_and_check(rig);
	assert_int_equal(rig->receiver.reader.skipped_bytes, 0);
	assert_int_equal(rig->receiver.sequence_gaps, 0);
}

TEST_RIG(an_overflow_drops_bytes_and_the_ledger_knows_their_frames)
{
	open_board(rig, &(struct board_options){0});
	command(rig, "frame 5");
	command(rig, "lose 1");
	start(rig);
	for (uint64_t n = 0; n < 400; n++) {
		struct board_sent before = board_sent(rig->board);
		rig->room = 512 * (1 + n % 3);
		command_n(rig, "overflow", n);
		assert_int_equal(transfer(rig), -EOVERFLOW);
		assert_int_equal(rig->bytes, rig->room);
		command(rig, "lose 1");
		transfers(rig, 2);
		struct board_sent after = board_sent(rig->board);
		assert_true(after.torn_frames - before.torn_frames <= 2);
		assert_true(after.dropped_samples - before.dropped_samples <= n / 8);
	}
	rig->room = 65536;
	stop_and_check(rig);
	struct board_sent sent = board_sent(rig->board);
	assert_true(sent.dropped_samples > 1000);
	assert_true(sent.torn_frames > 500);
	/* The receiver knows the sample count of frames with a whole header. */
	assert_true(rig->receiver.damaged_samples > 500);
}

TEST_RIG(the_last_frame_can_be_truncated_too)
{
	open_board(rig, &(struct board_options){0});
	command(rig, "send 100");
	start(rig);
	drain(rig);
	stop(rig);
	command(rig, "overflow 1000000");
	rig->room = 0;
	assert_int_equal(transfer(rig), -EOVERFLOW);
	rig->room = 512;
	drain(rig);
	assert_int_equal(rig->receiver.lasts, 0);
	check_ledger_at_end(rig);
}

TEST_RIG(a_buffer_of_partial_packets_overflows)
{
	open_board(rig, &(struct board_options){0});
	start(rig);
	rig->room = 1000;
	for (int i = 0; i < 300; i++) {
		assert_int_equal(transfer(rig), -EOVERFLOW);
		assert_int_equal(rig->bytes, 1000);
	}
	rig->room = 1024;
	stop_and_check(rig);
	assert_true(board_sent(rig->board).torn_frames > 10);

	/* Data that ends with the buffer, or before it, does not overflow. */
	open_board(rig, &(struct board_options){0});
	command(rig, "send 0");
	start(rig);
	rig->now_ns += SECOND_NS;
	rig->room = 32;
	assert_int_equal(transfer(rig), 0);
	assert_int_equal(rig->bytes, 32);
	rig->now_ns += SECOND_NS;
	rig->room = 100;
	assert_int_equal(transfer(rig), 0);
	assert_int_equal(rig->bytes, 32);
	rig->now_ns += SECOND_NS;
	rig->room = 31;
	assert_int_equal(transfer(rig), -EOVERFLOW);
	assert_int_equal(transfer(rig), BOARD_NAK);
	check_ledger_at_end(rig);
}

TEST_RIG(short_transfers_lose_nothing)
{
	unsigned empty = 0, short_packets = 0;

	open_board(rig, &(struct board_options){.packet_bytes = 64});
	command(rig, "short on");
	start(rig);
	rig->room = 128;
	for (int i = 0; i < 5000; i++) {
		transfers(rig, 1);
		empty += rig->bytes == 0;
		short_packets += rig->bytes % 64 != 0;
	}
	assert_true(empty > 5);
	assert_true(short_packets > 1000);
	command(rig, "short off");
	transfers(rig, 1);
	assert_int_equal(rig->bytes, 128);
	stop_and_check(rig);
	assert_int_equal(rig->receiver.reader.skipped_bytes, 0);
}

/* Losses after the board */

TEST_RIG(bytes_that_did_not_arrive_are_counted_as_lost)
{
	size_t total = 0;

	for (size_t back = 0; back == 0 || back <= total;
		back += back < 600 ? test_stride(15) : 97) {
		if (back % 2 == 0) {
			open_board(rig, &(struct board_options){0});
		} else {
			unplug(rig);
			board_plug(rig->board, rig->now_ns);
			struct receiver *r = &rig->receiver;
			memset(r, 0, sizeof(*r));
		}
		struct board_sent before = board_sent(rig->board);
		command(rig, "frame 20");
		command(rig, "lose 9");
		start(rig);
		total = 0;
		for (rig->room = 512; rig->room <= 4096; rig->room += 512) {
			assert_int_equal(board_bulk_in(rig->board, rig->data + total, rig->room,
						 &rig->bytes, rig->now_ns),
				0);
			total += rig->bytes;
		}
		if (back % 3 == 0) /* before it was unplugged, or after */
			assert_true(board_undelivered(rig->board, back));
		board_unplug(rig->board);
		if (back % 3 != 0)
			assert_true(board_undelivered(rig->board, back));
		receive(&rig->receiver, rig->data, total - back, false);
		receive_end(&rig->receiver);

		struct board_sent sent = board_sent(rig->board);
		assert_int_equal(sent.bytes - before.bytes, total - back);
		assert_int_equal(sent.frames - before.frames, rig->receiver.frames);
		assert_int_equal(sent.samples - before.samples, rig->receiver.samples);
		assert_int_equal(sent.lost - before.lost, rig->receiver.board_lost);
		assert_true(sent.torn_frames - before.torn_frames <= 1);
		assert_in_range(sent.samples + sent.torn_samples + sent.dropped_samples -
					before.samples - before.torn_samples -
					before.dropped_samples,
			total / 10, total / 8);
	}
}

TEST_RIG(only_remembered_bytes_can_be_counted_as_lost)
{
	open_board(rig, &(struct board_options){0});
	assert_true(board_undelivered(rig->board, 0));
	assert_false(board_undelivered(rig->board, 1));
	start(rig);
	transfers(rig, 1);
	assert_false(board_undelivered(rig->board, rig->bytes + 1));
	check_ledger(rig);
	assert_true(board_undelivered(rig->board, rig->bytes));
	assert_int_equal(board_sent(rig->board).bytes, 0);
	assert_int_equal(board_sent(rig->board).samples, 0);
	transfers(rig, 1); /* and the stream continues */
	assert_int_equal(board_sent(rig->board).bytes, rig->bytes);
}

/* Everything at once */

static void misbehave(struct rig *rig, struct dice *dice)
{
	static const char *const lines[] = {
		"stall",
		"protocol-error",
		"overflow 1",
		"overflow 700",
		"overflow 40000",
		"timeout 0",
		"timeout 333",
		"corrupt",
		"corrupt",
		"garbage 50",
		"garbage 5000",
		"lose 7",
		"lose 100000",
		"lose-frames 1",
		"lose-frames 4",
		"trigger",
		"frame 1",
		"frame 100",
		"frame 2048",
		"short on",
		"short off",
		"freeze",
		"thaw",
		"thaw",
		"send 1000",
		"send 0",
		"send all",
		"send all",
		"rate 1000",
		"rate 2000000",
		"rate max",
		"heartbeat 20",
		"heartbeat off",
	};
	const char *line = lines[dice_below(dice, sizeof(lines) / sizeof(lines[0]))];

	board_command(rig->board, line, rig->answer, rig->now_ns);
}

/* Reads the board's data, part of which is lost when the connection breaks. Returns the number of
 * samples captured up to then. */
static uint64_t unplug_with_loss(struct rig *rig, struct dice *dice)
{
	size_t n = 0;
	int rc = 0;

	for (int i = 0; i < 3 && rc == 0; i++) {
		rc = board_bulk_in(rig->board, rig->data + n, 8192, &rig->bytes, rig->now_ns);
		n += rig->bytes;
	}
	uint64_t captured = board_sent(rig->board).captured;
	size_t back = dice_below(dice, (uint32_t)n + 1);
	board_unplug(rig->board);
	assert_true(board_undelivered(rig->board, back));
	receive(&rig->receiver, rig->data, n - back, false);
	receive_end(&rig->receiver);
	rig->now_ns += dice_below(dice, 300) * MS_NS;
	board_plug(rig->board, rig->now_ns);
	return captured;
}

static void run_wild(struct rig *rig, struct dice *dice)
{
	rig->room = 512 * (1 + dice_below(dice, 40)) + dice_below(dice, 20) / 19;
	rig->now_ns += dice_below(dice, 5) * dice_below(dice, 5) * MS_NS;
	if (transfer(rig) == -EPIPE)
		clear_halt(rig);
	if (dice_below(dice, 3) == 0)
		misbehave(rig, dice);
	if (dice_below(dice, 30) == 0)
		stop(rig);
	if (dice_below(dice, 10) == 0)
		start(rig);
}

TEST_RIG(the_ledger_is_exact_with_all_faults)
{
	uint64_t torn = 0;

	for (uint64_t seed = 1; seed <= 40; seed += test_stride(7)) {
		struct dice dice = {seed};
		bool is_self_powered = seed % 2 == 0;
		uint64_t captured = 0;
		open_board(rig, &(struct board_options){.seed = seed, .fifo_samples = 20000});
		command(rig, is_self_powered ? "self-powered on" : "self-powered off");
		start(rig);
		for (int step = 0; step < 600; step++) {
			run_wild(rig, &dice);
			if (dice_below(&dice, 60) != 0)
				continue;
			uint64_t by_now = unplug_with_loss(rig, &dice);
			captured += is_self_powered ? 0 : by_now;
			check_ledger(rig);
		}
		command(rig, "thaw");
		command(rig, "short off");
		stop(rig);
		for (int rc = 0; rc != BOARD_NAK; rc = transfer(rig)) {
			if (rc == -EPIPE)
				clear_halt(rig);
		}
		receive_end(&rig->receiver);
		check_ledger(rig);
		struct board_sent sent = board_sent(rig->board);
		assert_int_equal(captured + sent.captured,
			sent.samples + sent.torn_samples + sent.dropped_samples);
		assert_true(sent.torn_samples >= rig->receiver.damaged_samples);
		torn += sent.torn_frames;
	}
	assert_true(torn > 1000 / test_stride(7));
}
