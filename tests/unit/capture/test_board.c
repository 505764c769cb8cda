#include "capture/sim/sim.h"
#include "formats/bus/sample.h"
#include "tests/board/rig.h"
#include "tests/support/test.h"

/* The stream */

TEST_RIG(a_board_sends_nothing_until_it_is_started)
{
	open_board(rig, &(struct board_options){.rate = 1000});
	assert_int_equal(transfer(rig), BOARD_NAK);
	assert_true(board_due_ns(rig->board, rig->now_ns) == UINT64_MAX);
	rig->now_ns += 100 * SECOND_NS;
	assert_int_equal(transfer(rig), BOARD_NAK);
	stop(rig);
	assert_int_equal(transfer(rig), BOARD_NAK);
	start(rig);
	assert_true(board_due_ns(rig->board, rig->now_ns) > rig->now_ns);
	run_for(rig, SECOND_NS);
	assert_int_equal(board_sent(rig->board).captured, 1000);
	check_ledger(rig);
}

TEST_RIG(frames_are_whole_for_every_transfer_size)
{
	static const uint16_t packets[] = {64, 512, 1024};

	for (size_t i = 0; i < sizeof(packets) / sizeof(packets[0]); i++) {
		open_board(rig, &(struct board_options){.packet_bytes = packets[i], .agents = 2});
		start(rig);
		for (rig->room = packets[i]; rig->room <= 70000; rig->room += packets[i]) {
			transfers(rig, 1);
			assert_int_equal(
				rig->bytes, rig->room); /* at rate max there is always more data */
		}
		rig->room = packets[i];
		stop_and_check(rig);
		assert_int_equal(rig->receiver.reader.skipped_bytes, 0);
		assert_int_equal(rig->receiver.sequence_gaps, 0);
		assert_int_equal(rig->receiver.epochs, 0);
		assert_true(rig->receiver.samples > 70000);
	}
}

TEST_RIG(the_stream_is_the_same_for_every_transfer_size)
{
	static const size_t rooms[] = {512, 1536, 4608, 16384, 65536, 66048};
	static const struct board_options options = {.seed = 3, .agents = 4};
	size_t n = 1000000;
	uint8_t *expected = calloc(1, n);
	uint8_t *stream = calloc(1, n + sizeof(rig->data));

	for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
		open_board(rig, &options);
		rig->room = rooms[i];
		start(rig);
		for (size_t at = 0; at < n; at += rig->bytes) {
			transfers(rig, 1);
			memcpy(stream + at, rig->data, rig->bytes);
		}
		if (i == 0)
			memcpy(expected, stream, n);
		assert_memory_equal(stream, expected, n);
	}
	free(expected);
	free(stream);
}

TEST_RIG(the_samples_are_those_of_the_simulated_bus)
{
	static uint8_t frame[BC_SIM_FRAME_MAX];
	struct bc_sim *sim;

	assert_int_equal(bc_sim_open(&sim, &(struct bc_sim_options){.seed = 9, .agents = 3}), 0);
	open_board(rig, &(struct board_options){.seed = 9, .agents = 3});
	start(rig);
	transfers(rig, 1);
	for (size_t at = 0; at + BC_SIM_FRAME_MAX <= rig->bytes;) {
		struct bc_bcp1_header header;
		size_t n = bc_sim_next(sim, BC_SIM_FRAME_SAMPLES, frame);
		assert_true(bc_bcp1_read_header(&header, rig->data + at));
		assert_int_equal(header.flags, BC_BCP1_AGENT);
		assert_int_equal(header.sequence, (uint32_t)(0xFFFFFFF0 + bc_le32(frame + 8)));
		assert_true(header.tick == bc_le64(frame + 16));
		assert_memory_equal(rig->data + at + BC_BCP1_HEADER_BYTES,
			frame + BC_BCP1_HEADER_BYTES, n - BC_BCP1_HEADER_BYTES);
		at += n;
	}
	bc_sim_close(sim);
}

TEST_RIG(boards_with_the_same_bus_are_independent)
{
	static const struct board_options options = {.seed = 4};
	static uint8_t first[sizeof(rig->data)];

	open_board(rig, &options);
	start(rig);
	transfers(rig, 1);
	size_t n = rig->bytes;
	memcpy(first, rig->data, n);
	struct board *other = rig->board;
	rig->board = NULL;
	open_board(rig, &(struct board_options){.seed = 5});
	open_board(rig, &options);
	start(rig);
	transfers(rig, 1);
	assert_int_equal(rig->bytes, n);
	assert_memory_equal(rig->data, first, n);
	board_free(other);
	stop_and_check(rig);
}

TEST_RIG(ticks_increase_from_lap_to_lap)
{
	open_board(rig, &(struct board_options){.seed = 2});
	command(rig, "send 1000000");
	start(rig);
	drain(rig);
	assert_int_equal(rig->receiver.samples, 1000000);
	assert_int_equal(rig->receiver.epochs, 0);
	stop_and_check(rig);
}

/* Each lap lasts that much longer. */
TEST_RIG(an_idle_bus_runs_ahead_of_the_clock)
{
	uint64_t ticks[2];

	for (unsigned i = 0; i < 2; i++) {
		open_board(rig, &(struct board_options){.seed = 3});
		command_n(rig, "idle", i * 1000000000);
		start(rig);
		while (rig->receiver.samples < 3 * 131072 + 5000)
			transfers(rig, 1);
		ticks[i] = rig->receiver.tick;
	}
	assert_true(ticks[1] - ticks[0] == UINT64_C(3000000000));
}

TEST_RIG(a_stopped_board_ends_with_its_last_frame)
{
	static const uint64_t rates[] = {0, 1, 30, 12345, 5000000};

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		open_board(rig, &(struct board_options){.rate = rates[i]});
		start(rig);
		rig->now_ns += 90 * MS_NS; /* none of the slow ones has sent its first frame yet */
		transfer(rig);
		stop(rig);
		drain(rig);
		assert_int_equal(rig->receiver.lasts, 1);
		assert_int_equal(rig->receiver.header.flags, BC_BCP1_LAST);
		assert_int_equal(rig->receiver.header.samples, 0);
		assert_int_equal(rig->receiver.reader.start, rig->receiver.reader.end);
		if (rates[i] != 0)
			assert_int_equal(rig->receiver.samples, rates[i] * 9 / 100);
		rig->now_ns += 1000 * SECOND_NS;
		assert_int_equal(transfer(rig), BOARD_NAK);
		assert_true(board_due_ns(rig->board, rig->now_ns) == UINT64_MAX);
		stop(rig);
		assert_int_equal(transfer(rig), BOARD_NAK);
		check_ledger_at_end(rig);

		start(rig);
		rig->now_ns += 2 * SECOND_NS;
		transfers(rig, 1);
		assert_int_equal(rig->receiver.epochs, 0);
		assert_int_equal(board_sent(rig->board).starts, 2);
		assert_int_equal(board_sent(rig->board).stops, 2);
	}
}

TEST_RIG(the_same_calls_give_the_same_stream)
{
	static uint8_t streams[2][1 << 20];
	size_t lengths[2] = {0};

	for (int i = 0; i < 2; i++) {
		open_board(rig, &(struct board_options){.seed = 5, .rate = 300000});
		command(rig, "short on");
		start(rig);
		for (int step = 0; step < 60; step++) {
			rig->now_ns += 3 * MS_NS;
			if (step % 20 == 7)
				command(rig, "corrupt");
			if (step % 20 == 9)
				command(rig, "garbage 100");
			while (transfer(rig) == 0) {
				memcpy(streams[i] + lengths[i], rig->data, rig->bytes);
				lengths[i] += rig->bytes;
			}
		}
		assert_true(lengths[i] > 300000);
	}
	assert_int_equal(lengths[0], lengths[1]);
	assert_memory_equal(streams[0], streams[1], lengths[0]);
}

/* Time */

TEST_RIG(a_paced_board_makes_samples_at_its_rate)
{
	static const uint64_t rates[] = {1, 7, 1000, 99999, 1000003, 7777777};

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		open_board(rig, &(struct board_options){.rate = rates[i]});
		start(rig);
		run_for(rig, 3 * SECOND_NS);
		assert_int_equal(board_sent(rig->board).captured, 3 * rates[i]);
		assert_int_equal(board_sent(rig->board).captured_lost, 0);
		assert_int_equal(rig->receiver.epochs, 0);
		stop_and_check(rig);
		assert_int_equal(rig->receiver.samples, 3 * rates[i]);
	}
}

TEST_RIG(a_frame_is_sent_when_it_is_full_or_a_tenth_of_a_second_old)
{
	open_board(rig, &(struct board_options){.rate = 1000});
	start(rig);
	uint64_t first_ns = rig->now_ns + MS_NS;
	assert_int_equal(transfer(rig), BOARD_NAK);
	assert_true(board_due_ns(rig->board, rig->now_ns) == first_ns + 100 * MS_NS);
	rig->now_ns = first_ns + 100 * MS_NS;
	transfers(rig, 1);
	assert_int_equal(rig->receiver.frames, 1);
	assert_int_equal(rig->receiver.samples, 101);

	command(rig, "frame 10");
	rig->now_ns += 10 * MS_NS - 1;
	assert_int_equal(transfer(rig), BOARD_NAK);
	assert_true(board_due_ns(rig->board, rig->now_ns) == rig->now_ns + 1);
	rig->now_ns += 1;
	transfers(rig, 1);
	assert_int_equal(rig->receiver.frames, 2);
	assert_int_equal(rig->receiver.samples, 111);
}

TEST_RIG(an_idle_board_sends_heartbeats)
{
	open_board(rig, &(struct board_options){0});
	command(rig, "send 10");
	start(rig);
	drain(rig);
	assert_int_equal(rig->receiver.samples, 10);
	uint64_t tick = rig->receiver.tick;
	run_for(rig, 10 * SECOND_NS);
	assert_int_equal(rig->receiver.empty_frames, 10);
	assert_int_equal(rig->receiver.tick, tick + 10 * BC_SIM_CLOCK_HZ);

	command(rig, "heartbeat 50");
	run_for(rig, 10 * SECOND_NS);
	assert_int_equal(rig->receiver.empty_frames, 10 + 200);
	command(rig, "heartbeat off");
	run_for(rig, 10 * SECOND_NS);
	assert_int_equal(rig->receiver.empty_frames, 10 + 200);
	assert_true(board_due_ns(rig->board, rig->now_ns) == UINT64_MAX);

	command(rig, "send all");
	transfers(rig, 1);
	assert_int_equal(rig->receiver.epochs, 0);
	stop_and_check(rig);
}

TEST_RIG(a_heartbeat_is_not_ahead_of_pending_samples)
{
	open_board(rig, &(struct board_options){.rate = 50});
	command(rig, "heartbeat 7");
	start(rig);
	run_for(rig, 5 * SECOND_NS);
	assert_true(rig->receiver.empty_frames > 100);
	assert_true(rig->receiver.frames > rig->receiver.empty_frames + 10);
	assert_int_equal(rig->receiver.epochs, 0);
	check_ledger(rig);
}

TEST_RIG(the_rate_can_be_changed)
{
	open_board(rig, &(struct board_options){.rate = 1000});
	start(rig);
	run_for(rig, SECOND_NS);
	command(rig, "rate 50000");
	run_for(rig, SECOND_NS);
	assert_int_equal(board_sent(rig->board).captured, 51000);
	command(rig, "rate max");
	transfers(rig, 10);
	assert_int_equal(rig->bytes, rig->room);
	uint64_t captured = board_sent(rig->board).captured;
	command(rig, "rate 10");
	run_for(rig, SECOND_NS);
	assert_in_range(board_sent(rig->board).captured, captured + 10, captured + 2048 + 10);
	stop_and_check(rig);
	assert_int_equal(rig->receiver.sequence_gaps, 0);
}

TEST_RIG(send_makes_exactly_that_many_samples)
{
	static const uint64_t rates[] = {0, 4567};

	for (size_t i = 0; i < 2; i++) {
		open_board(rig, &(struct board_options){.rate = rates[i]});
		command(rig, "send 5000");
		start(rig);
		run_for(rig, 2 * SECOND_NS);
		assert_int_equal(rig->receiver.samples, 5000);
		command(rig, "send 1");
		run_for(rig, SECOND_NS);
		assert_int_equal(rig->receiver.samples, 5001);
		command(rig, "send 0");
		run_for(rig, SECOND_NS);
		stop_and_check(rig);
		assert_int_equal(rig->receiver.samples, 5001);
	}
}

TEST_RIG(a_frozen_board_sends_nothing_until_it_is_thawed)
{
	open_board(rig, &(struct board_options){.rate = 1000});
	start(rig);
	run_for(rig, SECOND_NS);
	command(rig, "freeze");
	uint64_t frames = rig->receiver.frames;
	assert_true(board_due_ns(rig->board, rig->now_ns) == UINT64_MAX);
	rig->now_ns += 5 * SECOND_NS;
	assert_int_equal(transfer(rig), BOARD_NAK);
	assert_int_equal(rig->receiver.frames, frames);
	command(rig, "thaw");
	drain(rig);
	run_for(rig, SECOND_NS);
	stop_and_check(rig);
	assert_int_equal(rig->receiver.samples, 7000);
	assert_int_equal(rig->receiver.sequence_gaps, 0);
}

TEST_RIG(frames_have_at_most_the_configured_samples)
{
	static const uint32_t sizes[] = {1, 2, 77, 2047, 2048};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		open_board(rig, &(struct board_options){0});
		command_n(rig, "frame", sizes[i]);
		command(rig, "send 20000");
		start(rig);
		drain(rig);
		assert_int_equal(rig->receiver.samples, 20000);
		assert_true(rig->receiver.frames >= 20000 / sizes[i]);
		stop_and_check(rig);
	}
}

/* Power */

TEST_RIG(an_unplug_resets_the_board)
{
	open_board(rig, &(struct board_options){.rate = 200000});
	start(rig);
	rig->now_ns += 50 * MS_NS;
	rig->room = 4096;
	transfers(rig, 1);
	assert_true(board_is_plugged(rig->board));
	unplug(rig);
	assert_false(board_is_plugged(rig->board));
	assert_int_equal(transfer(rig), -ENODEV);
	assert_int_equal(control(rig, 0xC1, 1, 0, 0, 64), -ENODEV);
	struct board_sent sent = board_sent(rig->board);
	assert_int_equal(sent.frames, 0);
	assert_int_equal(sent.torn_frames, 1);
	assert_int_equal(sent.torn_samples, rig->receiver.damaged_samples);
	assert_int_equal(sent.torn_samples + sent.dropped_samples, 10000);
	assert_int_equal(sent.captured, 0);
	check_ledger(rig);

	rig->now_ns += SECOND_NS;
	board_plug(rig->board, rig->now_ns);
	board_plug(rig->board, rig->now_ns); /* has no effect */
	assert_int_equal(board_sent(rig->board).plugs, 2);
	assert_int_equal(transfer(rig), BOARD_NAK);
	rig->now_ns += SECOND_NS;
	start(rig);
	rig->room = 65536;
	run_for(rig, SECOND_NS);
	assert_int_equal(board_sent(rig->board).captured, 200000);
	stop(rig);
	drain(rig);
	receive_end(&rig->receiver);
	check_ledger(rig);
	assert_int_equal(rig->receiver.samples, 200000);
}

TEST_RIG(the_tick_falls_after_a_loss_of_power)
{
	open_board(rig, &(struct board_options){0});
	for (int i = 0; i < 4; i++) {
		start(rig);
		transfers(rig, 5);
		assert_int_equal(rig->receiver.epochs, i);
		unplug(rig);
		board_plug(rig->board, rig->now_ns);
		check_ledger(rig);
	}
}

TEST_RIG(a_self_powered_board_keeps_running_over_an_unplug)
{
	open_board(rig, &(struct board_options){.rate = 100000, .fifo_samples = 50000});
	command(rig, "self-powered on");
	start(rig);
	rig->now_ns += 300 * MS_NS;
	rig->room = 10240;
	transfers(rig, 1);
	unplug(rig);
	assert_int_equal(board_sent(rig->board).torn_frames, 1);
	assert_int_equal(board_sent(rig->board).dropped_samples, 0);
	rig->now_ns += SECOND_NS;
	board_plug(rig->board, rig->now_ns);
	transfers(rig, 1);
	struct board_sent sent = board_sent(rig->board);
	assert_int_equal(sent.captured + sent.captured_lost, 130000);
	assert_int_equal(sent.captured, 50000 + sent.torn_samples);
	rig->room = 65536;
	stop_and_check(rig);
	assert_int_equal(rig->receiver.board_lost, sent.captured_lost);
	assert_int_equal(rig->receiver.epochs, 0);
}

/* raw6 */

TEST_RIG(raw6_contains_only_samples)
{
	static uint8_t raw[1 << 16], framed[1 << 16];
	size_t n = 0;

	open_board(rig, &(struct board_options){.seed = 4});
	start(rig);
	transfers(rig, 1);
	memcpy(framed, rig->data, sizeof(framed));
	open_board(rig, &(struct board_options){.seed = 4, .form = BOARD_RAW6});
	start(rig);
	for (rig->room = 512; n + rig->room <= sizeof(raw); n += rig->bytes) {
		transfers(rig, 1);
		memcpy(raw + n, rig->data, rig->bytes);
	}
	struct bc_bcp1_header header;
	const uint8_t *at = raw;
	for (size_t f = 0; f + BC_SIM_FRAME_MAX <= sizeof(framed);
		f += bc_bcp1_frame_bytes(header.samples)) {
		assert_true(bc_bcp1_read_header(&header, framed + f));
		for (uint32_t i = 0; i < header.samples; i++, at += BC_SAMPLE_BYTES) {
			const uint8_t *sample = framed + f + BC_BCP1_HEADER_BYTES +
						i * BC_BCP1_SAMPLE_BYTES;
			assert_memory_equal(at, sample, BC_SAMPLE_BYTES);
		}
	}
}

/* For raw6: reads everything and returns the bytes. */
static uint64_t drain_raw(struct rig *rig)
{
	uint64_t bytes = 0;
	int rc;

	while ((rc = board_bulk_in(rig->board, rig->data, rig->room, &rig->bytes, rig->now_ns)) ==
		0)
		bytes += rig->bytes;
	assert_int_equal(rc, BOARD_NAK);
	return bytes;
}

TEST_RIG(raw6_stops_without_a_last_frame)
{
	open_board(rig, &(struct board_options){
				.rate = 1234, .form = BOARD_RAW6, .packet_bytes = 64, .agents = 3});
	rig->room = 64;
	start(rig);
	rig->now_ns += SECOND_NS;
	uint64_t bytes = drain_raw(rig);
	stop(rig);
	bytes += drain_raw(rig);
	assert_int_equal(bytes, 1234 * BC_SAMPLE_BYTES);
	assert_true(board_due_ns(rig->board, rig->now_ns) == UINT64_MAX);
	assert_int_equal(board_sent(rig->board).samples, 1234);
	assert_int_equal(board_sent(rig->board).bytes, bytes);
	assert_int_equal(board_sent(rig->board).frames, 0);
	start(rig);
	rig->now_ns += SECOND_NS;
	drain_raw(rig);
	stop(rig);
	drain_raw(rig);
	assert_int_equal(board_sent(rig->board).samples, 2468);
	assert_int_equal(board_sent(rig->board).dropped_samples, 0);
}

TEST_RIG(raw6_counts_whole_samples_of_each_run)
{
	open_board(rig, &(struct board_options){.form = BOARD_RAW6});
	uint64_t samples = 0;
	for (size_t n = 1; n <= 20; n++) {
		start(rig);
		rig->room = 512 * n;
		assert_int_equal(
			board_bulk_in(rig->board, rig->data, rig->room, &rig->bytes, rig->now_ns),
			0);
		assert_int_equal(rig->bytes, rig->room);
		size_t back = n % 3 == 0 ? n : 0;
		assert_true(board_undelivered(rig->board, back));
		samples += (rig->bytes - back) / BC_SAMPLE_BYTES;
		uint64_t captured = board_sent(rig->board).captured;
		struct board_sent before = board_sent(rig->board);
		board_unplug(rig->board);
		struct board_sent after = board_sent(rig->board);
		assert_int_equal(after.samples, samples);
		assert_int_equal(after.dropped_samples - before.dropped_samples,
			captured - (rig->bytes - back) / BC_SAMPLE_BYTES);
		board_plug(rig->board, rig->now_ns);
	}
}

TEST_RIG(raw6_does_not_report_losses)
{
	static const char *const refused[] = {"corrupt", "garbage 5", "lose-frames 1", "trigger"};

	open_board(rig,
		&(struct board_options){.form = BOARD_RAW6, .rate = 1000, .fifo_samples = 100});
	start(rig);
	rig->now_ns += SECOND_NS;
	command(rig, "lose 50");
	assert_int_equal(drain_raw(rig), 600);
	rig->now_ns += 5 * MS_NS;
	stop(rig);
	assert_int_equal(drain_raw(rig), 30);
	assert_int_equal(board_sent(rig->board).captured, 105);
	assert_int_equal(board_sent(rig->board).captured_lost, 950);
	assert_int_equal(board_sent(rig->board).lost, 0);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		assert_false(board_command(rig->board, refused[i], rig->answer, rig->now_ns));
		assert_string_equal(rig->answer, "error: raw6 has no frames");
	}
}
