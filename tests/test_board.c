#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/sim.h"
#include "formats/bcp1.h"
#include "formats/bytes.h"
#include "formats/sample.h"
#include "tests/board/board.h"
#include "tests/dice.h"

#define SECOND_NS UINT64_C(1000000000)
#define MS_NS     UINT64_C(1000000)

/* A receiver, as docs/board-protocol.md has it in section 6. */
struct receiver {
	uint64_t bytes;
	uint64_t frames; /* valid ones */
	uint64_t frame_bytes;
	uint64_t empty_frames;
	uint64_t samples;
	uint64_t board_lost;
	uint64_t damaged_samples;
	uint64_t sequence_gaps;
	uint64_t epochs;
	uint64_t triggers;
	uint64_t lasts;
	uint64_t tick; /* the last one seen */
	struct bc_bcp1_header header;
	bool has_sequence;
	uint32_t sequence; /* of the next header */
	struct bc_bcp1_reader reader;
};

static void check_samples(struct receiver *r, const struct bc_bcp1_frame *frame)
{
	const uint8_t *sample = frame->samples;

	for (uint32_t i = 0; i < frame->header.samples; i++, sample += BC_BCP1_SAMPLE_BYTES) {
		if (i == 0)
			assert_int_equal(bc_le16(sample + 6), 0);
		r->tick += bc_le16(sample + 6);
	}
}

static void take_header(struct receiver *r, const struct bc_bcp1_header *header)
{
	if (r->has_sequence && header->sequence != r->sequence)
		r->sequence_gaps++;
	r->sequence = header->sequence + 1;
	r->has_sequence = (header->flags & BC_BCP1_LAST) == 0;
	assert_int_equal((header->flags & BC_BCP1_LOSS) != 0, header->lost != 0);
	r->board_lost += header->lost;
	r->triggers += (header->flags & BC_BCP1_TRIGGER) != 0;
	r->lasts += (header->flags & BC_BCP1_LAST) != 0;
	r->epochs += header->tick < r->tick;
	r->tick = header->tick;
	r->header = *header;
}

static void receive(struct receiver *r, const uint8_t *data, size_t bytes, bool last)
{
	struct bc_bcp1_frame frame;
	enum bc_bcp1_found found;

	r->bytes += bytes;
	while ((found = bc_bcp1_next(&r->reader, &data, &bytes, last, &frame)) != BC_BCP1_MORE) {
		take_header(r, &frame.header);
		if (found == BC_BCP1_DAMAGED) {
			r->damaged_samples += frame.header.samples;
			continue;
		}
		check_samples(r, &frame);
		r->frames++;
		r->frame_bytes += bc_bcp1_frame_bytes(frame.header.samples);
		r->empty_frames += frame.header.samples == 0;
		r->samples += frame.header.samples;
	}
}

/* The connection broke: what was begun is torn, and the next stream begins anew. */
static void receive_end(struct receiver *r)
{
	receive(r, NULL, 0, true);
	assert_int_equal(r->reader.skipped_bytes, r->bytes - r->frame_bytes);
	r->has_sequence = false;
}

/* A board, who listens to it, and the clock of both. */
struct rig {
	struct board *board;
	uint64_t now_ns;
	size_t room; /* of a transfer */
	struct receiver receiver;
	char answer[BOARD_ANSWER];
	size_t bytes; /* of the last transfer */
	uint8_t data[1 << 17];
};

static int setup(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	*state = rig;
	return 0;
}

static int teardown(void **state)
{
	struct rig *rig = *state;

	board_free(rig->board);
	free(rig);
	return 0;
}

/* A new board in the rig, and a receiver that knows nothing. */
static void open_board(struct rig *rig, const struct board_options *options)
{
	board_free(rig->board);
	memset(rig, 0, sizeof(*rig));
	bc_bcp1_reader_init(&rig->receiver.reader);
	rig->now_ns = 7 * SECOND_NS;
	rig->room = 65536;
	rig->board = board_new(options);
	assert_non_null(rig->board);
}

static int control(struct rig *rig, uint8_t type, uint8_t request, uint16_t value, uint16_t index,
	uint16_t length)
{
	uint8_t setup_packet[8] = {type, request};

	bc_put_le16(setup_packet + 2, value);
	bc_put_le16(setup_packet + 4, index);
	bc_put_le16(setup_packet + 6, length);
	return board_control(rig->board, setup_packet, rig->data, rig->now_ns);
}

static void start(struct rig *rig)
{
	assert_int_equal(control(rig, 0x41, 2, 0, 0, 0), 0);
}

static void stop(struct rig *rig)
{
	assert_int_equal(control(rig, 0x41, 3, 0, 0, 0), 0);
}

static void clear_halt(struct rig *rig)
{
	assert_int_equal(control(rig, 0x02, 1, 0, BOARD_ENDPOINT, 0), 0);
}

static void command(struct rig *rig, const char *line)
{
	bool is_taken = board_command(rig->board, line, rig->answer, rig->now_ns);

	assert_string_equal(rig->answer, "ok");
	assert_true(is_taken);
}

static void command_n(struct rig *rig, const char *name, uint64_t n)
{
	char line[64];

	snprintf(line, sizeof(line), "%s %" PRIu64, name, n);
	command(rig, line);
}

/* One transfer. */
static int transfer(struct rig *rig)
{
	int rc = board_bulk_in(rig->board, rig->data, rig->room, &rig->bytes, rig->now_ns);

	assert_true(rig->bytes <= rig->room);
	if (rc == BOARD_NAK)
		assert_int_equal(rig->bytes, 0);
	receive(&rig->receiver, rig->data, rig->bytes, false);
	return rc;
}

static void transfers(struct rig *rig, unsigned n)
{
	while (n-- > 0)
		assert_int_equal(transfer(rig), 0);
}

/* Transfers until the board has nothing. */
static void drain(struct rig *rig)
{
	int rc;

	while ((rc = transfer(rig)) == 0)
		continue;
	assert_int_equal(rc, BOARD_NAK);
}

/* Lets the time pass, asking the board when it says that it has something. Each time it has. */
static void run_for(struct rig *rig, uint64_t ns)
{
	uint64_t end_ns = rig->now_ns + ns;

	for (;;) {
		drain(rig);
		uint64_t due_ns = board_due_ns(rig->board, rig->now_ns);
		assert_true(due_ns > rig->now_ns);
		if (due_ns > end_ns)
			break;
		rig->now_ns = due_ns - 1;
		assert_int_equal(transfer(rig), BOARD_NAK);
		rig->now_ns = due_ns;
		assert_int_equal(transfer(rig), 0);
	}
	rig->now_ns = end_ns;
	drain(rig);
}

static void unplug(struct rig *rig)
{
	board_unplug(rig->board);
	receive_end(&rig->receiver);
}

/* The board's truth is what the receiver found. */
static void check_ledger(struct rig *rig)
{
	struct board_sent sent = board_sent(rig->board);
	const struct receiver *r = &rig->receiver;

	assert_int_equal(sent.bytes, r->bytes);
	assert_int_equal(sent.frames, r->frames);
	assert_int_equal(sent.samples, r->samples);
	assert_int_equal(sent.lost, r->board_lost);
}

/* The same, when the board has nothing left to send and its power was never lost. */
static void check_ledger_at_end(struct rig *rig)
{
	receive_end(&rig->receiver);
	check_ledger(rig);
	struct board_sent sent = board_sent(rig->board);
	assert_int_equal(sent.captured, sent.samples + sent.torn_samples + sent.dropped_samples);
	assert_true(sent.torn_samples >= rig->receiver.damaged_samples);
}

static void stop_and_check(struct rig *rig)
{
	stop(rig);
	drain(rig);
	check_ledger_at_end(rig);
	assert_int_equal(rig->receiver.lasts, 1);
}

/* The stream */

static void test_a_board_sends_nothing_until_it_is_started(void **state)
{
	struct rig *rig = *state;

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

static void test_frames_are_whole_for_every_transfer_size(void **state)
{
	struct rig *rig = *state;
	static const uint16_t packets[] = {64, 512, 1024};

	for (size_t i = 0; i < sizeof(packets) / sizeof(packets[0]); i++) {
		open_board(rig, &(struct board_options){.packet_bytes = packets[i], .agents = 2});
		start(rig);
		for (rig->room = packets[i]; rig->room <= 70000; rig->room += packets[i]) {
			transfers(rig, 1);
			assert_int_equal(rig->bytes, rig->room); /* at rate max there is more */
		}
		rig->room = packets[i];
		stop_and_check(rig);
		assert_int_equal(rig->receiver.reader.skipped_bytes, 0);
		assert_int_equal(rig->receiver.sequence_gaps, 0);
		assert_int_equal(rig->receiver.epochs, 0);
		assert_true(rig->receiver.samples > 70000);
	}
}

static void test_the_stream_is_the_same_for_every_transfer_size(void **state)
{
	struct rig *rig = *state;
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

static void test_the_samples_are_those_of_the_simulated_bus(void **state)
{
	struct rig *rig = *state;
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

static void test_ticks_rise_from_lap_to_lap(void **state)
{
	struct rig *rig = *state;

	open_board(rig, &(struct board_options){.seed = 2});
	command(rig, "send 1000000");
	start(rig);
	drain(rig);
	assert_int_equal(rig->receiver.samples, 1000000);
	assert_int_equal(rig->receiver.epochs, 0);
	stop_and_check(rig);
}

static void test_a_stopped_board_ends_with_its_last_frame(void **state)
{
	struct rig *rig = *state;
	static const uint64_t rates[] = {0, 1, 30, 12345, 5000000};

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		open_board(rig, &(struct board_options){.rate = rates[i]});
		start(rig);
		rig->now_ns += 90 * MS_NS; /* none of the slow ones has sent its first frame */
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

static void test_the_same_calls_give_the_same_stream(void **state)
{
	struct rig *rig = *state;
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

static void test_a_paced_board_makes_its_samples_by_the_time(void **state)
{
	struct rig *rig = *state;
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

static void test_a_frame_goes_out_when_it_is_full_or_a_tenth_of_a_second_old(void **state)
{
	struct rig *rig = *state;

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

static void test_an_idle_board_sends_heartbeats(void **state)
{
	struct rig *rig = *state;

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

static void test_a_heartbeat_is_not_ahead_of_samples_that_wait(void **state)
{
	struct rig *rig = *state;

	open_board(rig, &(struct board_options){.rate = 50});
	command(rig, "heartbeat 7");
	start(rig);
	run_for(rig, 5 * SECOND_NS);
	assert_true(rig->receiver.empty_frames > 100);
	assert_true(rig->receiver.frames > rig->receiver.empty_frames + 10);
	assert_int_equal(rig->receiver.epochs, 0);
	check_ledger(rig);
}

static void test_a_rate_can_change(void **state)
{
	struct rig *rig = *state;

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

static void test_send_makes_exactly_so_many(void **state)
{
	struct rig *rig = *state;
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

static void test_a_frozen_board_sends_nothing_and_goes_on(void **state)
{
	struct rig *rig = *state;

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

static void test_frames_have_so_many_samples_at_most(void **state)
{
	struct rig *rig = *state;
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

/* Losses */

static void test_what_the_fifo_has_no_room_for_is_lost_and_told(void **state)
{
	struct rig *rig = *state;
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

static void test_a_fifo_smaller_than_a_frame_works(void **state)
{
	struct rig *rig = *state;

	open_board(rig, &(struct board_options){.rate = 1000, .fifo_samples = 1});
	start(rig);
	run_for(rig, SECOND_NS);
	assert_int_equal(
		board_sent(rig->board).captured + board_sent(rig->board).captured_lost, 1000);
	stop_and_check(rig);
	assert_true(rig->receiver.samples < 12);
}

static void test_a_loss_is_told_in_the_next_header(void **state)
{
	struct rig *rig = *state;

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

static void test_a_loss_without_a_sample_behind_it_is_told_all_the_same(void **state)
{
	struct rig *rig = *state;

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

static void test_lost_frames_are_a_jump_of_the_sequence(void **state)
{
	struct rig *rig = *state;
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

static void test_a_corrupt_frame_is_torn(void **state)
{
	struct rig *rig = *state;

	open_board(rig, &(struct board_options){.agents = 2});
	command(rig, "frame 3"); /* so that a header is often hit */
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

static void test_garbage_stands_between_frames(void **state)
{
	struct rig *rig = *state;
	static const uint64_t lengths[] = {1, 31, 100, 16384, 100000};
	uint64_t garbage = 0;

	open_board(rig, &(struct board_options){0});
	command(rig, "garbage 77"); /* it is the first that comes */
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

static void test_a_trigger_marks_one_frame_with_samples(void **state)
{
	struct rig *rig = *state;

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

static void test_a_board_can_stop_unasked(void **state)
{
	struct rig *rig = *state;

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

static void test_a_stall_lasts_until_it_is_cleared_and_loses_nothing(void **state)
{
	struct rig *rig = *state;

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

static void test_protocol_errors_and_timeouts_lose_nothing(void **state)
{
	struct rig *rig = *state;

	open_board(rig, &(struct board_options){0});
	command(rig, "timeout 5");
	assert_int_equal(transfer(rig), -ETIMEDOUT); /* though it has nothing */
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

static void test_an_overflow_drops_so_many_bytes_and_the_ledger_knows_which_frames(void **state)
{
	struct rig *rig = *state;

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
	/* Of those with a whole header the receiver knows how much they held. */
	assert_true(rig->receiver.damaged_samples > 500);
}

static void test_the_last_frame_can_be_cut_off_too(void **state)
{
	struct rig *rig = *state;

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

static void test_a_buffer_of_no_whole_packets_overflows(void **state)
{
	struct rig *rig = *state;

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

	/* What ends with the buffer, or before it, is no overflow. */
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

static void test_short_transfers_lose_nothing(void **state)
{
	struct rig *rig = *state;
	unsigned empty = 0, cut = 0;

	open_board(rig, &(struct board_options){.packet_bytes = 64});
	command(rig, "short on");
	start(rig);
	rig->room = 128;
	for (int i = 0; i < 5000; i++) {
		transfers(rig, 1);
		empty += rig->bytes == 0;
		cut += rig->bytes % 64 != 0;
	}
	assert_true(empty > 5);
	assert_true(cut > 1000);
	command(rig, "short off");
	transfers(rig, 1);
	assert_int_equal(rig->bytes, 128);
	stop_and_check(rig);
	assert_int_equal(rig->receiver.reader.skipped_bytes, 0);
}

/* Power */

static void test_an_unplugged_board_begins_anew(void **state)
{
	struct rig *rig = *state;

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
	board_plug(rig->board, rig->now_ns); /* says nothing new */
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

static void test_the_tick_falls_after_a_loss_of_power(void **state)
{
	struct rig *rig = *state;

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

static void test_a_board_with_its_own_power_goes_on_over_an_unplug(void **state)
{
	struct rig *rig = *state;

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

static void test_bytes_that_did_not_arrive_are_taken_back(void **state)
{
	struct rig *rig = *state;
	size_t total = 0;

	for (size_t back = 0; back == 0 || back <= total; back += back < 600 ? 1 : 97) {
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
		if (back % 3 == 0) /* before it was unplugged, or behind */
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

static void test_more_than_is_remembered_is_not_taken_back(void **state)
{
	struct rig *rig = *state;

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
	transfers(rig, 1); /* and the stream goes on */
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

/* Hands over what comes, some of it lost on the way when the connection breaks. Returns what was
 * captured up to then. */
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

static void test_the_ledger_is_exact_whatever_happens(void **state)
{
	struct rig *rig = *state;

	for (uint64_t seed = 1; seed <= 40; seed++) {
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
		assert_true(sent.torn_frames > 3);
	}
}

/* raw6 */

static void test_raw6_is_the_samples_and_nothing_else(void **state)
{
	struct rig *rig = *state;
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

/* Of raw6: takes all there is and returns the bytes. */
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

static void test_raw6_stops_without_a_word(void **state)
{
	struct rig *rig = *state;

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

static void test_raw6_counts_whole_samples_of_each_run(void **state)
{
	struct rig *rig = *state;

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

static void test_raw6_loses_without_a_word(void **state)
{
	struct rig *rig = *state;
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

/* FTDI */

static void ftdi_set(struct rig *rig, uint8_t request, uint16_t value, uint16_t index)
{
	assert_int_equal(control(rig, 0x40, request, value, index, 0), 0);
}

/* One transfer, its status bytes checked and taken off. */
static int ftdi_transfer(struct rig *rig, size_t packet)
{
	static uint8_t data[sizeof(rig->data)];
	int rc = board_bulk_in(rig->board, data, rig->room, &rig->bytes, rig->now_ns);
	size_t n = 0;

	for (size_t at = 0; at < rig->bytes; at += packet) {
		size_t piece = rig->bytes - at < packet ? rig->bytes - at : packet;
		assert_true(piece >= 2);
		assert_int_equal(data[at], 0x32);
		assert_int_equal(data[at + 1], 0x60);
		memcpy(rig->data + n, data + at + 2, piece - 2);
		n += piece - 2;
	}
	receive(&rig->receiver, rig->data, n, false);
	return rc;
}

static const struct board_options ftdi = {.is_ftdi = true, .serial = "FT1"};

static void test_ftdi_sends_status_each_latency_time(void **state)
{
	struct rig *rig = *state;

	open_board(rig, &ftdi);
	assert_int_equal(ftdi_transfer(rig, 512), 0);
	assert_int_equal(rig->bytes, 2);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(ftdi_transfer(rig, 512), BOARD_NAK);
		assert_true(board_due_ns(rig->board, rig->now_ns) == rig->now_ns + 16 * MS_NS);
		rig->now_ns += 16 * MS_NS;
		assert_int_equal(ftdi_transfer(rig, 512), 0);
		assert_int_equal(rig->bytes, 2);
	}
	ftdi_set(rig, 9, 2, 1);
	assert_true(board_due_ns(rig->board, rig->now_ns) == rig->now_ns + 2 * MS_NS);
	command(rig, "freeze");
	assert_true(board_due_ns(rig->board, rig->now_ns) == UINT64_MAX);
	assert_int_equal(board_sent(rig->board).bytes, 0);
}

static void test_ftdi_streams_in_sync_fifo_mode(void **state)
{
	struct rig *rig = *state;
	static const uint16_t packets[] = {64, 512, 1024};

	for (size_t i = 0; i < sizeof(packets) / sizeof(packets[0]); i++) {
		struct board_options options = ftdi;
		options.packet_bytes = packets[i];
		open_board(rig, &options);
		rig->now_ns += SECOND_NS;
		ftdi_set(rig, 11, 0x40FF, 1);
		for (rig->room = packets[i]; rig->room < 40000; rig->room += packets[i] * 3) {
			assert_int_equal(ftdi_transfer(rig, packets[i]), 0);
			assert_int_equal(rig->bytes, rig->room);
		}
		assert_true(rig->receiver.samples > 5000);
		assert_int_equal(rig->receiver.reader.skipped_bytes, 0);
		assert_int_equal(board_sent(rig->board).starts, 1);
		check_ledger(rig);

		ftdi_set(rig, 11, 0, 1);
		assert_int_equal(board_sent(rig->board).stops, 1);
		rig->now_ns += SECOND_NS;
		assert_int_equal(ftdi_transfer(rig, packets[i]), 0);
		assert_int_equal(rig->bytes, 2);
		check_ledger_at_end(rig);
		assert_true(board_sent(rig->board).torn_frames <= 1);

		ftdi_set(rig, 11, 0x40FF, 1);
		assert_int_equal(ftdi_transfer(rig, packets[i]), 0);
		assert_int_equal(rig->bytes, rig->room);
	}
}

static void test_ftdi_data_end_with_a_packet_that_is_not_full(void **state)
{
	struct rig *rig = *state;

	open_board(rig, &ftdi);
	command(rig, "send 59"); /* 508 bytes of a frame */
	ftdi_set(rig, 11, 0x40FF, 1);
	assert_int_equal(ftdi_transfer(rig, 512), 0);
	assert_int_equal(rig->bytes, 510);
	command(rig, "send 59");
	command(rig, "garbage 2");
	assert_int_equal(ftdi_transfer(rig, 512), 0);
	assert_int_equal(rig->bytes, 514); /* a full one, and status alone */
	assert_int_equal(ftdi_transfer(rig, 512), BOARD_NAK);
	assert_int_equal(rig->receiver.samples, 118);
	check_ledger(rig);
}

static void test_ftdi_remembers_what_was_set(void **state)
{
	struct rig *rig = *state;

	open_board(rig, &ftdi);
	ftdi_set(rig, 0, 0, 1);
	ftdi_set(rig, 0, 1, 1);
	ftdi_set(rig, 0, 2, 1);
	ftdi_set(rig, 1, 0x0303, 1);
	ftdi_set(rig, 2, 0, 0x0101);
	ftdi_set(rig, 3, 0x4138, 1);
	ftdi_set(rig, 9, 3, 1);
	ftdi_set(rig, 11, 0x40AB, 1);
	assert_true(board_command(rig->board, "ftdi", rig->answer, rig->now_ns));
	assert_string_equal(rig->answer,
		"{\"latency_ms\":3,\"bit_mode\":64,\"bit_mask\":171,\"flow\":256,"
		"\"resets\":1,\"purges\":2}");
	assert_int_equal(control(rig, 0xC0, 10, 0, 1, 1), 1);
	assert_int_equal(rig->data[0], 3);
	assert_int_equal(control(rig, 0xC0, 5, 0, 1, 2), 2);
	assert_int_equal(rig->data[0], 0x32);
	assert_int_equal(control(rig, 0x40, 9, 0, 1, 0), -EPIPE);
	assert_int_equal(control(rig, 0x41, 2, 0, 0, 0), -EPIPE);
	assert_int_equal(control(rig, 0xC1, 1, 0, 0, 64), -EPIPE);
	board_unplug(rig->board);
	board_plug(rig->board, rig->now_ns);
	board_command(rig->board, "ftdi", rig->answer, rig->now_ns);
	assert_string_equal(rig->answer,
		"{\"latency_ms\":16,\"bit_mode\":0,\"bit_mask\":0,\"flow\":0,"
		"\"resets\":1,\"purges\":2}");
}

static void test_an_ftdi_purge_drops_the_rest_of_a_frame(void **state)
{
	struct rig *rig = *state;

	open_board(rig, &ftdi);
	rig->room = 5120;
	ftdi_set(rig, 11, 0x40FF, 1);
	for (uint16_t i = 0; i < 20; i++) {
		assert_int_equal(ftdi_transfer(rig, 512), 0);
		ftdi_set(rig, 0, i % 3, 1);
	}
	ftdi_set(rig, 11, 0, 1);
	check_ledger_at_end(rig);
	assert_in_range(board_sent(rig->board).torn_frames, 10, 20);
}

static void test_ftdi_bytes_that_did_not_arrive_are_taken_back(void **state)
{
	struct rig *rig = *state;
	static uint8_t data[8][5000];
	size_t total = 8 * 4608;

	for (size_t back = 0; back <= total; back += 61) {
		if (rig->board == NULL)
			open_board(rig, &ftdi);
		struct board_sent before = board_sent(rig->board);
		memset(&rig->receiver, 0, sizeof(rig->receiver));
		command(rig, "frame 50");
		ftdi_set(rig, 11, 0x40FF, 1);
		size_t left = total - back;
		for (size_t i = 0; i < 8; i++)
			assert_int_equal(
				board_bulk_in(rig->board, data[i], 4608, &rig->bytes, rig->now_ns),
				0);
		board_unplug(rig->board);
		assert_true(board_undelivered(rig->board, back));
		for (size_t i = 0; i < 8 * 9 && left != 0; i++) {
			size_t n = left < 512 ? left : 512;
			if (n > 2)
				receive(&rig->receiver, data[i / 9] + i % 9 * 512 + 2, n - 2,
					false);
			left -= n;
		}
		receive_end(&rig->receiver);
		struct board_sent sent = board_sent(rig->board);
		assert_int_equal(sent.bytes - before.bytes, rig->receiver.bytes);
		assert_int_equal(sent.samples - before.samples, rig->receiver.samples);
		board_plug(rig->board, rig->now_ns);
	}
}

static void test_a_board_that_answers_no_requests_sends_unasked(void **state)
{
	struct rig *rig = *state;

	for (int i = 0; i < 4; i++) {
		open_board(rig, &(struct board_options){.is_ftdi = i % 2 == 1});
		command(rig, i < 2 ? "requests stall" : "requests hang");
		int rc = i < 2 ? -EPIPE : -ETIMEDOUT;
		assert_int_equal(control(rig, 0xC1, 1, 0, 0, 64), rc);
		assert_int_equal(control(rig, 0x41, 2, 0, 0, 0), rc);
		assert_int_equal(control(rig, 0x40, 11, 0x40FF, 1, 0), rc);
		assert_int_equal(control(rig, 0x80, 6, 0x0100, 0, 18), 18);
		assert_int_equal(i % 2 == 1 ? ftdi_transfer(rig, 512) : transfer(rig), 0);
		assert_int_equal(rig->bytes, rig->room);
		assert_true(rig->receiver.samples > 1000);
		assert_int_equal(board_sent(rig->board).starts, 0);
		board_unplug(rig->board);
		board_plug(rig->board, rig->now_ns);
		assert_int_equal(transfer(rig), 0);
		command(rig, "requests answer");
		assert_int_equal(control(rig, 0x80, 8, 0, 0, 1), 1);
	}
}

/* Descriptors and requests */

/* A configuration as a host walks it. */
struct walk {
	unsigned interfaces;
	unsigned settings;
	unsigned endpoints;
	unsigned companions;
	const uint8_t *interface; /* the last one */
	const uint8_t *endpoint;  /* the first one */
};

static struct walk walk(const uint8_t *config, size_t n)
{
	struct walk w = {0};

	assert_true(n >= 9);
	for (size_t at = 9; at < n; at += config[at]) {
		const uint8_t *d = config + at;
		assert_true(n - at >= 2 && d[0] >= 2 && d[0] <= n - at);
		if (d[1] == 4) {
			w.interfaces += d[3] == 0;
			w.settings++;
			w.interface = d;
		} else if (d[1] == 5) {
			w.endpoint = w.endpoint == NULL ? d : w.endpoint;
			w.endpoints++;
		} else {
			assert_int_equal(d[1], 48);
			w.companions++;
		}
	}
	return w;
}

static size_t get_descriptor(struct rig *rig, unsigned type, unsigned index)
{
	int n = control(rig, 0x80, 6, (uint16_t)(type << 8 | index), 0, 4096);

	return n < 0 ? 0 : (size_t)n;
}

static void assert_text(struct rig *rig, unsigned index, const char *text)
{
	size_t n = get_descriptor(rig, 3, index);

	assert_int_equal(n, 2 + 2 * strlen(text));
	assert_int_equal(rig->data[0], n);
	assert_int_equal(rig->data[1], 3);
	for (size_t i = 0; text[i] != '\0'; i++)
		assert_int_equal(bc_le16(rig->data + 2 + 2 * i), (uint8_t)text[i]);
}

static void test_descriptors_are_complete_at_every_speed(void **state)
{
	struct rig *rig = *state;
	static const struct {
		uint16_t packet;
		uint16_t version;
		uint8_t control;
	} speeds[] = {{64, 0x0110, 64}, {512, 0x0200, 64}, {1024, 0x0300, 9}};

	for (size_t i = 0; i < 6; i++) {
		bool is_ftdi = i >= 3;
		uint16_t packet = speeds[i % 3].packet;
		open_board(rig,
			&(struct board_options){
				.packet_bytes = packet, .is_ftdi = is_ftdi, .serial = "B-0001"});
		assert_int_equal(get_descriptor(rig, 1, 0), 18);
		assert_int_equal(rig->data[0], 18);
		assert_int_equal(bc_le16(rig->data + 2), speeds[i % 3].version);
		assert_int_equal(rig->data[7], speeds[i % 3].control);
		assert_int_equal(bc_le16(rig->data + 8), is_ftdi ? 0x0403 : 0x1209);
		assert_int_equal(bc_le16(rig->data + 10), is_ftdi ? 0x6014 : 0x0001);
		assert_int_equal(rig->data[17], 1);
		uint8_t serial = rig->data[16];
		assert_text(rig, 1, "buscap");
		assert_text(rig, 2, "bus capture board (simulated)");
		assert_text(rig, serial, "B-0001");
		assert_int_equal(get_descriptor(rig, 3, 0), 4);
		assert_int_equal(get_descriptor(rig, 3, 9), 0);

		size_t n = get_descriptor(rig, 2, 0);
		assert_int_equal(bc_le16(rig->data + 2), n);
		assert_int_equal(rig->data[4], 1);
		struct walk w = walk(rig->data, n);
		assert_int_equal(w.settings, 1);
		assert_int_equal(w.interface[5], 0xFF);
		assert_int_equal(w.interface[4], w.endpoints);
		assert_int_equal(w.endpoints, is_ftdi ? 2 : 1);
		assert_int_equal(w.companions, packet == 1024 ? w.endpoints : 0);
		assert_int_equal(w.endpoint[2], BOARD_ENDPOINT);
		assert_int_equal(w.endpoint[3], 2);
		assert_int_equal(bc_le16(w.endpoint + 4), packet);

		assert_int_equal(get_descriptor(rig, 6, 0), packet == 512 ? 10 : 0);
		assert_int_equal(get_descriptor(rig, 7, 0) != 0, packet == 512);
		n = get_descriptor(rig, 15, 0);
		assert_int_equal(n, packet == 1024 ? 22 : 0);
		if (n != 0)
			assert_int_equal(bc_le16(rig->data + 2), n);
	}
}

static void test_descriptors_are_cut_to_the_room(void **state)
{
	struct rig *rig = *state;

	open_board(rig, &(struct board_options){.serial = "0"});
	for (unsigned type = 0; type < 256; type++) {
		uint8_t whole[512];
		size_t n = board_descriptor(rig->board, type, type == 3, whole, sizeof(whole));
		for (size_t room = 0; room <= n; room++) {
			uint8_t *cut = malloc(room + 1);
			cut[room] = 0xA5;
			assert_int_equal(
				board_descriptor(rig->board, type, type == 3, cut, room), room);
			assert_memory_equal(cut, whole, room);
			assert_int_equal(cut[room], 0xA5);
			free(cut);
		}
	}
}

static void test_ids_and_texts_are_as_told(void **state)
{
	struct rig *rig = *state;

	open_board(rig, &(struct board_options){.vid = 0xABCD, .pid = 0x1234});
	get_descriptor(rig, 1, 0);
	assert_int_equal(bc_le16(rig->data + 8), 0xABCD);
	assert_int_equal(bc_le16(rig->data + 10), 0x1234);
	assert_int_equal(rig->data[16], 0); /* no serial number */
	assert_int_equal(get_descriptor(rig, 3, 3), 0);

	command(rig, "serial A \\x00\\xff\\x5C");
	command(rig, "firmware a version of more than 16");
	get_descriptor(rig, 1, 0);
	assert_int_equal(rig->data[16], 0); /* not before it is plugged in anew */
	board_unplug(rig->board);
	board_plug(rig->board, rig->now_ns);
	get_descriptor(rig, 1, 0);
	assert_int_equal(rig->data[16], 3);
	assert_int_equal(get_descriptor(rig, 3, 3), 12);
	assert_memory_equal(rig->data + 2, "A\0 \0\0\0\xff\0\\\0", 10);
	assert_int_equal(control(rig, 0xC1, 1, 0, 0, 64), 64);
	assert_memory_equal(rig->data + 16, "a version of mor", 16);
	assert_memory_equal(rig->data + 32, "A \0\xff\\\0\0", 7);
}

static void test_get_info_says_what_the_board_is(void **state)
{
	struct rig *rig = *state;
	static const uint8_t zeros[32];

	open_board(rig, &(struct board_options){.serial = "XY"});
	assert_int_equal(control(rig, 0xC1, 1, 0, 0, 64), 64);
	assert_int_equal(bc_le32(rig->data), 1);
	assert_int_equal(bc_le32(rig->data + 4), BC_SIM_CLOCK_HZ);
	assert_int_equal(bc_le32(rig->data + 8), 0);
	assert_int_equal(bc_le32(rig->data + 12), 524288);
	assert_memory_equal(rig->data + 16, "sim-1.0\0\0\0\0\0\0\0\0", 16);
	assert_memory_equal(rig->data + 32, "XY", 2);
	assert_memory_equal(rig->data + 34, zeros, 30);
	assert_int_equal(control(rig, 0xC1, 1, 0, 0, 10), 10);
	assert_int_equal(control(rig, 0xC1, 1, 0, 0, 1000), 64);
	assert_int_equal(control(rig, 0xC1, 1, 1, 0, 64), -EPIPE);
	assert_int_equal(control(rig, 0xC1, 1, 0, 1, 64), -EPIPE);
	assert_int_equal(control(rig, 0xC0, 1, 0, 0, 64), -EPIPE);
	assert_int_equal(control(rig, 0x41, 1, 0, 0, 0), -EPIPE);
	assert_int_equal(control(rig, 0xC1, 2, 0, 0, 0), -EPIPE);
	assert_int_equal(control(rig, 0x41, 2, 0, 0, 1), -EPIPE);
	assert_int_equal(board_sent(rig->board).starts, 0);
}

static void test_standard_requests_are_answered(void **state)
{
	struct rig *rig = *state;

	open_board(rig, &(struct board_options){0});
	assert_int_equal(control(rig, 0x80, 8, 0, 0, 1), 1);
	assert_int_equal(rig->data[0], 0);
	assert_int_equal(control(rig, 0x00, 9, 1, 0, 0), 0);
	assert_int_equal(control(rig, 0x00, 9, 2, 0, 0), -EPIPE);
	assert_int_equal(control(rig, 0x80, 8, 0, 0, 1), 1);
	assert_int_equal(rig->data[0], 1);
	assert_int_equal(control(rig, 0x81, 10, 0, 0, 1), 1);
	assert_int_equal(rig->data[0], 0);
	assert_int_equal(control(rig, 0x01, 11, 0, 0, 0), 0);
	assert_int_equal(control(rig, 0x01, 11, 1, 0, 0), -EPIPE);
	assert_int_equal(control(rig, 0x01, 11, 0, 1, 0), -EPIPE);
	assert_int_equal(control(rig, 0x80, 0, 0, 0, 2), 2);
	assert_int_equal(rig->data[0], 0);
	command(rig, "self-powered on");
	assert_int_equal(control(rig, 0x80, 0, 0, 0, 2), 2);
	assert_int_equal(rig->data[0], 1);
	assert_int_equal(control(rig, 0x02, 3, 0, BOARD_ENDPOINT, 0), 0);
	assert_int_equal(transfer(rig), -EPIPE);
	assert_int_equal(control(rig, 0x02, 1, 0, 0x05, 0), -EPIPE);
	clear_halt(rig);
	assert_int_equal(transfer(rig), BOARD_NAK);
	assert_int_equal(control(rig, 0x80, 6, 0x2100, 0, 64), -EPIPE);
	assert_int_equal(control(rig, 0xA0, 6, 0x0100, 0, 64), -EPIPE);
}

static void test_hostile_set_up_packets_never_write_beyond_their_data(void **state)
{
	struct rig *rig = *state;
	static const uint16_t lengths[] = {0, 1, 2, 7, 18, 63, 64, 255, 4096, 65535};
	static const char *const lies[] = {"lie none", "lie wild-info", "lie many-interfaces"};
	struct dice dice = {1};

	for (unsigned board = 0; board < 3; board++) {
		open_board(rig, &(struct board_options){
					.is_ftdi = board == 1,
					.packet_bytes = board == 2 ? 1024 : 512,
					.serial = "0",
				});
		for (unsigned i = 0; i < 256 * 256; i++) {
			uint16_t length = lengths[i % (sizeof(lengths) / sizeof(lengths[0]))];
			uint8_t *data = malloc(length);
			uint8_t setup_packet[8] = {(uint8_t)(i >> 8), (uint8_t)i};
			bc_put_le16(setup_packet + 2, (uint16_t)(dice_below(&dice, 4) << 8));
			bc_put_le16(setup_packet + 4, (uint16_t)dice_below(&dice, 3));
			bc_put_le16(setup_packet + 6, length);
			if (dice_below(&dice, 8) == 0)
				dice_fill(&dice, setup_packet + 2, 4);
			if (i % 1000 == 0)
				command(rig, lies[i / 1000 % 3]);
			if ((setup_packet[0] & 0x80) == 0 && length != 0)
				memset(data, 0, length);
			int rc = board_control(
				rig->board, setup_packet, length == 0 ? NULL : data, rig->now_ns);
			assert_true(rc == -EPIPE || (rc >= 0 && rc <= length));
			free(data);
		}
		assert_in_range(transfer(rig) + 32, 0, 32);
	}
}

static struct walk walk_with_lie(struct rig *rig, const char *lie)
{
	command(rig, lie);
	size_t n = get_descriptor(rig, 2, 0);
	return walk(rig->data, n);
}

static void test_each_lie_about_the_endpoint_is_told(void **state)
{
	struct rig *rig = *state;
	struct walk w;

	open_board(rig, &(struct board_options){0});
	w = walk_with_lie(rig, "lie no-endpoint");
	assert_int_equal(w.endpoints, 0);
	assert_int_equal(w.interface[4], 0);
	w = walk_with_lie(rig, "lie iso-endpoint");
	assert_int_equal(w.endpoint[3], 1);
	w = walk_with_lie(rig, "lie out-endpoint");
	assert_int_equal(w.endpoint[2], 0x01);
	w = walk_with_lie(rig, "lie zero-packet");
	assert_int_equal(bc_le16(w.endpoint + 4), 0);
	w = walk_with_lie(rig, "lie huge-packet");
	assert_int_equal(bc_le16(w.endpoint + 4), 0xFFFF);
	w = walk_with_lie(rig, "lie wrong-class");
	assert_int_equal(w.interface[5], 0x0A);
	w = walk_with_lie(rig, "lie none");
	assert_int_equal(w.interface[5], 0xFF);
	assert_int_equal(bc_le16(w.endpoint + 4), 512);
}

static void test_each_lie_about_lengths_is_told(void **state)
{
	struct rig *rig = *state;

	open_board(rig, &(struct board_options){0});
	command(rig, "lie truncated-config");
	size_t n = get_descriptor(rig, 2, 0);
	assert_int_equal(n, 22); /* 9 + 9 + 7 - 3 */
	assert_int_equal(bc_le16(rig->data + 2), n);
	assert_int_equal(rig->data[18], 7);
	command(rig, "lie long-config");
	assert_int_equal(get_descriptor(rig, 2, 0), 25);
	assert_int_equal(bc_le16(rig->data + 2), 4096);
	command(rig, "lie short-info");
	assert_int_equal(control(rig, 0xC1, 1, 0, 0, 64), 20);
	command(rig, "lie wild-info");
	assert_int_equal(control(rig, 0xC1, 1, 0, 0, 64), 64);
	for (int i = 0; i < 64; i++)
		assert_int_equal(rig->data[i], 0xFF);
	command(rig, "lie wild-serial");
	get_descriptor(rig, 1, 0);
	assert_int_equal(rig->data[16], 3);
	assert_int_equal(get_descriptor(rig, 3, 3), 254);
	assert_int_equal(control(rig, 0xC1, 1, 0, 0, 64), 64);
	assert_memory_equal(rig->data + 32, "../../\0\"\\\n", 10);
	command(rig, "lie none");
	assert_int_equal(get_descriptor(rig, 3, 3), 0);
}

static void test_among_many_interfaces_the_last_is_the_boards(void **state)
{
	struct rig *rig = *state;

	open_board(rig, &(struct board_options){0});
	struct walk w = walk_with_lie(rig, "lie many-interfaces");
	assert_int_equal(w.interfaces, 32);
	assert_int_equal(rig->data[4], 32);
	assert_int_equal(w.endpoints, 1);
	assert_int_equal(w.interface[2], 31);
	assert_int_equal(control(rig, 0xC1, 1, 0, 0, 64), -EPIPE);
	assert_int_equal(control(rig, 0xC1, 1, 0, 31, 64), 64);
	assert_int_equal(control(rig, 0x41, 2, 0, 31, 0), 0);
	transfers(rig, 1);
}

static void test_the_endpoint_can_be_in_an_alternate_setting_alone(void **state)
{
	struct rig *rig = *state;

	open_board(rig, &(struct board_options){0});
	struct walk w = walk_with_lie(rig, "lie alternate");
	assert_int_equal(w.interfaces, 1);
	assert_int_equal(w.settings, 2);
	assert_int_equal(w.endpoints, 1);
	assert_int_equal(w.interface[3], 1);
	start(rig);
	assert_int_equal(transfer(rig), BOARD_NAK);
	assert_true(board_due_ns(rig->board, rig->now_ns) == UINT64_MAX);
	assert_int_equal(control(rig, 0x01, 11, 1, 0, 0), 0);
	transfers(rig, 1);
	assert_int_equal(control(rig, 0x81, 10, 0, 0, 1), 1);
	assert_int_equal(rig->data[0], 1);
}

/* Commands and options */

static void test_a_command_that_is_wrong_changes_nothing(void **state)
{
	struct rig *rig = *state;
	static const char *const wrong[] = {"", " ", "rat 5", "rate", "rate ", "rate 0", "rate -1",
		"rate 5x", "rate 1000000001", "rate 99999999999999999999999", "send", "send x",
		"frame 0", "frame 2049", "short", "short maybe", "overflow", "timeout -1",
		"lose 1099511627777", "heartbeat 0", "heartbeat", "requests", "requests no",
		"self-powered 1", "serial \\", "serial \\x", "serial \\x1", "serial \\xgg",
		"serial \\n", "lie", "lie x", "stall 5", "sent x", "ftdi", "STALL"};

	open_board(rig, &(struct board_options){0});
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_false(board_command(rig->board, wrong[i], rig->answer, rig->now_ns));
		assert_memory_equal(rig->answer, "error: ", 7);
	}
	char line[7 + 127 + 1] = "serial ";
	memset(line + 7, 'x', 127);
	assert_false(board_command(rig->board, line, rig->answer, rig->now_ns));
	for (int i = 0; i < 16; i++)
		command(rig, "stall");
	assert_false(board_command(rig->board, "stall", rig->answer, rig->now_ns));
}

static void test_sent_is_one_json_object(void **state)
{
	struct rig *rig = *state;

	open_board(rig, &(struct board_options){0});
	command(rig, "send 5");
	command(rig, "lose 2");
	start(rig);
	drain(rig);
	stop(rig);
	drain(rig);
	assert_true(board_command(rig->board, "sent", rig->answer, rig->now_ns));
	assert_string_equal(rig->answer,
		"{\"bytes\":108,\"frames\":2,\"samples\":5,\"torn_frames\":0,"
		"\"torn_samples\":0,\"dropped_samples\":0,\"lost\":2,\"captured\":5,"
		"\"captured_lost\":2,\"starts\":1,\"stops\":1,\"plugs\":1}");
}

static void test_options_out_of_range_are_refused(void **state)
{
	(void)state;
	assert_null(board_new(&(struct board_options){.packet_bytes = 63}));
	assert_null(board_new(&(struct board_options){.packet_bytes = 2048}));
	assert_null(board_new(&(struct board_options){.agents = 5}));
	assert_null(board_new(&(struct board_options){.rate = (uint64_t)BOARD_RATE_MAX + 1}));
	board_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_a_board_sends_nothing_until_it_is_started, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_frames_are_whole_for_every_transfer_size, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_the_stream_is_the_same_for_every_transfer_size, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_the_samples_are_those_of_the_simulated_bus, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ticks_rise_from_lap_to_lap, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_stopped_board_ends_with_its_last_frame, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_the_same_calls_give_the_same_stream, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_paced_board_makes_its_samples_by_the_time, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_frame_goes_out_when_it_is_full_or_a_tenth_of_a_second_old, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			test_an_idle_board_sends_heartbeats, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_heartbeat_is_not_ahead_of_samples_that_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_rate_can_change, setup, teardown),
		cmocka_unit_test_setup_teardown(test_send_makes_exactly_so_many, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_frozen_board_sends_nothing_and_goes_on, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_frames_have_so_many_samples_at_most, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_what_the_fifo_has_no_room_for_is_lost_and_told, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_fifo_smaller_than_a_frame_works, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_loss_is_told_in_the_next_header, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_loss_without_a_sample_behind_it_is_told_all_the_same, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			test_lost_frames_are_a_jump_of_the_sequence, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_corrupt_frame_is_torn, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_garbage_stands_between_frames, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_trigger_marks_one_frame_with_samples, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_board_can_stop_unasked, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_stall_lasts_until_it_is_cleared_and_loses_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_protocol_errors_and_timeouts_lose_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_an_overflow_drops_so_many_bytes_and_the_ledger_knows_which_frames,
			setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_the_last_frame_can_be_cut_off_too, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_buffer_of_no_whole_packets_overflows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_short_transfers_lose_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_an_unplugged_board_begins_anew, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_the_tick_falls_after_a_loss_of_power, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_board_with_its_own_power_goes_on_over_an_unplug, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_bytes_that_did_not_arrive_are_taken_back, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_more_than_is_remembered_is_not_taken_back, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_the_ledger_is_exact_whatever_happens, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_raw6_is_the_samples_and_nothing_else, setup, teardown),
		cmocka_unit_test_setup_teardown(test_raw6_stops_without_a_word, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_raw6_counts_whole_samples_of_each_run, setup, teardown),
		cmocka_unit_test_setup_teardown(test_raw6_loses_without_a_word, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_ftdi_sends_status_each_latency_time, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_ftdi_streams_in_sync_fifo_mode, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_ftdi_data_end_with_a_packet_that_is_not_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ftdi_remembers_what_was_set, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_an_ftdi_purge_drops_the_rest_of_a_frame, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_ftdi_bytes_that_did_not_arrive_are_taken_back, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_board_that_answers_no_requests_sends_unasked, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_descriptors_are_complete_at_every_speed, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_descriptors_are_cut_to_the_room, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ids_and_texts_are_as_told, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_get_info_says_what_the_board_is, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_standard_requests_are_answered, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_hostile_set_up_packets_never_write_beyond_their_data, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_each_lie_about_the_endpoint_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_each_lie_about_lengths_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_among_many_interfaces_the_last_is_the_boards, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_the_endpoint_can_be_in_an_alternate_setting_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_command_that_is_wrong_changes_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sent_is_one_json_object, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_options_out_of_range_are_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
