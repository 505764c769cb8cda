/* A fixture for the tests of tests/board: a board, a receiver and a clock.
 *
 * The receiver follows section 6 of docs/board-protocol.md and counts what it finds. At the end of
 * a test, its counts must agree with the board's own. */
#ifndef BC_TESTS_BOARD_RIG_H
#define BC_TESTS_BOARD_RIG_H

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/bus/bcp1.h"
#include "tests/board/board.h"
#include "tests/support/test.h"

#define SECOND_NS UINT64_C(1000000000)
#define MS_NS     UINT64_C(1000000)

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

static inline void check_samples(struct receiver *r, const struct bc_bcp1_frame *frame)
{
	const uint8_t *sample = frame->samples;

	for (uint32_t i = 0; i < frame->header.samples; i++, sample += BC_BCP1_SAMPLE_BYTES) {
		if (i == 0)
			assert_int_equal(bc_le16(sample + 6), 0);
		r->tick += bc_le16(sample + 6);
	}
}

static inline void take_header(struct receiver *r, const struct bc_bcp1_header *header)
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

static inline void receive(struct receiver *r, const uint8_t *data, size_t bytes, bool last)
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

/* The connection broke: the current frame is torn, and the next stream starts afresh. */
static inline void receive_end(struct receiver *r)
{
	receive(r, NULL, 0, true);
	assert_int_equal(r->reader.skipped_bytes, r->bytes - r->frame_bytes);
	r->has_sequence = false;
}

struct rig {
	struct board *board;
	uint64_t now_ns;
	size_t room; /* size of a transfer */
	struct receiver receiver;
	char answer[BOARD_ANSWER];
	size_t bytes; /* of the last transfer */
	uint8_t data[1 << 17];
};

static inline void tear_down_rig(struct rig *rig)
{
	board_free(rig->board);
}

TEST_FIXTURE(rig, NOTHING, tear_down_rig)

#define TEST_RIG(name) TEST_WITH(rig, rig, name)

/* Puts a new board and a new receiver into the rig. */
static inline void open_board(struct rig *rig, const struct board_options *options)
{
	board_free(rig->board);
	memset(rig, 0, sizeof(*rig));
	bc_bcp1_reader_init(&rig->receiver.reader);
	rig->now_ns = 7 * SECOND_NS;
	rig->room = 65536;
	rig->board = board_new(options);
	assert_non_null(rig->board);
}

static inline int control(struct rig *rig, uint8_t type, uint8_t request, uint16_t value,
	uint16_t index, uint16_t length)
{
	uint8_t setup_packet[8] = {type, request};

	bc_write_le16(setup_packet + 2, value);
	bc_write_le16(setup_packet + 4, index);
	bc_write_le16(setup_packet + 6, length);
	return board_control(rig->board, setup_packet, rig->data, rig->now_ns);
}

static inline void start(struct rig *rig)
{
	assert_int_equal(control(rig, 0x41, 2, 0, 0, 0), 0);
}

static inline void stop(struct rig *rig)
{
	assert_int_equal(control(rig, 0x41, 3, 0, 0, 0), 0);
}

static inline void clear_halt(struct rig *rig)
{
	assert_int_equal(control(rig, 0x02, 1, 0, BOARD_ENDPOINT, 0), 0);
}

static inline void command(struct rig *rig, const char *line)
{
	bool is_taken = board_command(rig->board, line, rig->answer, rig->now_ns);

	assert_string_equal(rig->answer, "ok");
	assert_true(is_taken);
}

static inline void command_n(struct rig *rig, const char *name, uint64_t n)
{
	char line[64];

	snprintf(line, sizeof(line), "%s %" PRIu64, name, n);
	command(rig, line);
}

/* One transfer. */
static inline int transfer(struct rig *rig)
{
	int rc = board_bulk_in(rig->board, rig->data, rig->room, &rig->bytes, rig->now_ns);

	assert_true(rig->bytes <= rig->room);
	if (rc == BOARD_NAK)
		assert_int_equal(rig->bytes, 0);
	receive(&rig->receiver, rig->data, rig->bytes, false);
	return rc;
}

static inline void transfers(struct rig *rig, unsigned n)
{
	while (n-- > 0)
		assert_int_equal(transfer(rig), 0);
}

/* Runs transfers until the board has no data. */
static inline void drain(struct rig *rig)
{
	int rc;

	while ((rc = transfer(rig)) == 0)
		continue;
	assert_int_equal(rc, BOARD_NAK);
}

/* Advances the time in steps, running a transfer whenever the board says that it has data. */
static inline void run_for(struct rig *rig, uint64_t ns)
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

static inline void unplug(struct rig *rig)
{
	board_unplug(rig->board);
	receive_end(&rig->receiver);
}

/* The receiver's counts must equal the board's. */
static inline void check_ledger(struct rig *rig)
{
	struct board_sent sent = board_sent(rig->board);
	const struct receiver *r = &rig->receiver;

	assert_int_equal(sent.bytes, r->bytes);
	assert_int_equal(sent.frames, r->frames);
	assert_int_equal(sent.samples, r->samples);
	assert_int_equal(sent.lost, r->board_lost);
}

/* The same, for a board that has nothing left to send and never lost its power. */
static inline void check_ledger_at_end(struct rig *rig)
{
	receive_end(&rig->receiver);
	check_ledger(rig);
	struct board_sent sent = board_sent(rig->board);
	assert_int_equal(sent.captured, sent.samples + sent.torn_samples + sent.dropped_samples);
	assert_true(sent.torn_samples >= rig->receiver.damaged_samples);
}

static inline void stop_and_check(struct rig *rig)
{
	stop(rig);
	drain(rig);
	check_ledger_at_end(rig);
	assert_int_equal(rig->receiver.lasts, 1);
}

#endif
