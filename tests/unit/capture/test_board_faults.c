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

/* Faults of a transfer */

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

/* Reads some of the board's data before the connection breaks. Returns the number of samples
 * captured up to then. */
static uint64_t unplug_and_plug(struct rig *rig, struct dice *dice)
{
	size_t n = 0;
	int rc = 0;

	for (int i = 0; i < 3 && rc == 0; i++) {
		rc = board_bulk_in(rig->board, rig->data + n, 8192, &rig->bytes, rig->now_ns);
		n += rig->bytes;
	}
	uint64_t captured = board_sent(rig->board).captured;
	board_unplug(rig->board);
	receive(&rig->receiver, rig->data, n, false);
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
			uint64_t by_now = unplug_and_plug(rig, &dice);
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
