#include "capture/sim/sim.h"
#include "formats/bus/sample.h"
#include "tests/board/rig.h"
#include "tests/support/test.h"

/* The stream */

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
		samples += rig->bytes / BC_SAMPLE_BYTES;
		uint64_t captured = board_sent(rig->board).captured;
		struct board_sent before = board_sent(rig->board);
		board_unplug(rig->board);
		struct board_sent after = board_sent(rig->board);
		assert_int_equal(after.samples, samples);
		assert_int_equal(after.dropped_samples - before.dropped_samples,
			captured - rig->bytes / BC_SAMPLE_BYTES);
		board_plug(rig->board, rig->now_ns);
	}
}
