/* A stream written into raw blocks and read back: the same pieces come out, except dropped bytes,
 * which appear as breaks. */
#include <stdlib.h>
#include <string.h>

#include "capture/source/block_replay.h"
#include "daemon/ingest/raw_keep.h"
#include "formats/bus/sample.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

#define EVENTS_MAX 4000u
#define BLOCKS_MAX 64u
#define STREAM_MAX (24u << 20)

/* What the sink receives: bytes of the stream, or a break. */
struct event {
	bool is_break;
	struct bc_source_break broken;
	size_t at;
	size_t count;
	bool has_times;
	uint64_t since;
	uint64_t until;
};

struct fixture {
	enum bc_format format;
	struct dice dice;
	struct bc_raw_keep keep;
	struct bc_raw_block *blocks;
	uint32_t count;
	uint8_t *stream;
	size_t sent;
	uint64_t now;
	size_t since_break; /* bytes since a sample boundary */
	bool is_dropping;
	struct event expected[EVENTS_MAX];
	uint32_t expected_count;
	struct event got[EVENTS_MAX];
	uint32_t got_count;
	uint8_t *out; /* the bytes of all pieces */
	size_t out_bytes;
	bool may_refuse;
	bool has_refused;
	const uint8_t *refused;
	uint64_t dropped;
};

static void set_up(struct fixture *f)
{
	f->dice.state = 99;
	f->blocks = calloc(BLOCKS_MAX, sizeof(*f->blocks));
	f->stream = malloc(STREAM_MAX);
	f->out = malloc(STREAM_MAX);
	assert_non_null(f->blocks);
	assert_non_null(f->stream);
	assert_non_null(f->out);
	dice_fill(&f->dice, f->stream, STREAM_MAX);
}

static void tear_down(struct fixture *f)
{
	free(f->blocks);
	free(f->stream);
	free(f->out);
}

TEST_FIXTURE(fixture, set_up, tear_down)

static void start_block(struct fixture *f)
{
	assert_true(f->count < BLOCKS_MAX);
	bc_raw_keep_start_block(&f->keep, &f->blocks[f->count++], 4711);
}

static struct bc_raw_block *block_for(struct fixture *f, size_t bytes)
{
	if (f->count == 0 || !bc_raw_block_has_room(&f->blocks[f->count - 1],
				     bc_raw_keep_entries(&f->keep), bytes))
		start_block(f);
	return &f->blocks[f->count - 1];
}

static struct event *expect(struct fixture *f)
{
	assert_true(f->expected_count < EVENTS_MAX);
	return &f->expected[f->expected_count++];
}

/* Bytes without times may be cut differently. */
static bool continues_piece(const struct fixture *f, bool has_times)
{
	const struct event *last = f->expected_count != 0 ? &f->expected[f->expected_count - 1]
							  : NULL;

	return !has_times && last != NULL && !last->is_break && !last->has_times;
}

static void send_bytes(struct fixture *f, size_t count, bool has_times, bool is_dropped)
{
	struct bc_source_data data = {
		.format = f->format,
		.bytes = f->stream + f->sent,
		.count = count,
		.has_times = has_times,
		.since_ns = f->now,
		.until_ns = f->now + count,
	};
	size_t left_out = 0;

	assert_true(f->sent + count <= STREAM_MAX);
	f->now = data.until_ns;
	if (is_dropped) {
		bc_raw_keep_drop(&f->keep, &data, 0, BC_GAP_BUFFER, f->now);
		if (!f->is_dropping)
			*expect(f) = (struct event){
				.is_break = true, .broken.cause = BC_GAP_BUFFER};
		f->is_dropping = true;
		f->dropped += count;
	} else {
		for (size_t from = 0; from < count;) {
			size_t left = count - from;
			size_t n = left < BC_RAW_BLOCK_BYTES ? left : BC_RAW_BLOCK_BYTES;
			struct bc_raw_block *block = block_for(f, n);
			left_out += bc_raw_keep_add(&f->keep, block, &data, from, n);
			from += n;
		}
		if (f->is_dropping && f->format == BC_FORMAT_RAW6) {
			size_t rest = (BC_SAMPLE_BYTES - f->since_break % BC_SAMPLE_BYTES) %
				      BC_SAMPLE_BYTES;
			assert_int_equal(left_out, rest < count ? rest : count);
			f->dropped += left_out;
		} else {
			assert_int_equal(left_out, 0);
		}
		if (left_out < count) {
			f->is_dropping = false;
			if (continues_piece(f, has_times))
				f->expected[f->expected_count - 1].count += count - left_out;
			else
				*expect(f) = (struct event){
					.at = f->sent + left_out,
					.count = count - left_out,
					.has_times = has_times,
					.since = has_times ? data.since_ns : 0,
					.until = has_times ? data.until_ns : 0,
				};
		}
	}
	f->sent += count;
	f->since_break += count;
}

static void send_break(struct fixture *f, enum bc_gap_cause cause, bool is_dropped)
{
	struct bc_source_break broken = {
		.cause = cause,
		.duration_ns = dice_below(&f->dice, 1000000),
		.is_cut = dice_below(&f->dice, 2) != 0,
		.is_restart = dice_below(&f->dice, 2) != 0,
		.lost = dice_below(&f->dice, 1000),
	};
	struct bc_source_data data = {.format = f->format, .broken = &broken};

	if (is_dropped)
		bc_raw_keep_drop(&f->keep, &data, 0, BC_GAP_BUFFER, f->now);
	else
		assert_int_equal(bc_raw_keep_add(&f->keep, block_for(f, 0), &data, 0, 0), 0);
	*expect(f) = (struct event){.is_break = true, .broken = broken};
	f->is_dropping = false;
	if (broken.is_cut)
		f->since_break = 0;
}

static bool on_data(void *context, const struct bc_source_data *data)
{
	struct fixture *f = context;

	assert_int_equal(data->format, f->format);
	if (f->has_refused && data->broken == NULL)
		assert_ptr_equal(f->refused, data->bytes);
	if (f->may_refuse && !f->has_refused && dice_below(&f->dice, 3) == 0) {
		f->has_refused = true;
		f->refused = data->bytes;
		return false;
	}
	f->has_refused = false;
	assert_true(f->got_count < EVENTS_MAX);
	struct event *event = &f->got[f->got_count];
	*event = (struct event){
		.is_break = data->broken != NULL,
		.at = f->out_bytes,
		.count = data->count,
		.has_times = data->has_times,
		.since = data->since_ns,
		.until = data->until_ns,
	};
	if (data->broken != NULL) {
		event->broken = *data->broken;
		f->got_count++;
		return true;
	}
	assert_true(data->count != 0);
	memcpy(f->out + f->out_bytes, data->bytes, data->count);
	f->out_bytes += data->count;
	struct event *last = f->got_count != 0 ? event - 1 : NULL;
	/* Only transfers of raw6 are never cut. */
	if (last != NULL && !last->is_break && !event->is_break &&
		((!last->has_times && !event->has_times) ||
			(f->format == BC_FORMAT_BCP1 && last->until == event->until)))
		last->count += data->count;
	else
		f->got_count++;
	return true;
}

static void replay(struct fixture *f)
{
	struct bc_source_sink sink = {.context = f, .data = on_data};
	struct bc_block_replay replay = {.next_entry = 0};
	uint64_t end = 0;
	bool is_over = false;

	if (f->keep.pending_count != 0)
		bc_raw_keep_flush(&f->keep, block_for(f, 0));
	for (uint32_t i = 0; i < f->count; i++) {
		assert_int_equal(f->blocks[i].offset, end);
		end += bc_raw_block_span(&f->blocks[i]);
		bc_block_replay_start(
			&replay, &f->blocks[i], i == 0 ? BC_RAW_FIRST : BC_RAW_CONTIGUOUS);
		while (!bc_block_replay_push(&replay, &f->blocks[i], NULL, &sink, &is_over))
			continue;
	}
	while (!bc_block_replay_flush(&replay, &sink))
		continue;
	bc_block_replay_free(&replay);
	assert_int_equal(end, f->sent);
	assert_int_equal(f->sent - f->dropped, f->out_bytes);
}

static void check(struct fixture *f)
{
	replay(f);
	assert_int_equal(f->got_count, f->expected_count);
	for (uint32_t i = 0; i < f->got_count; i++) {
		const struct event *got = &f->got[i];
		const struct event *expected = &f->expected[i];
		assert_int_equal(got->is_break, expected->is_break);
		if (got->is_break) {
			assert_int_equal(got->broken.cause, expected->broken.cause);
			if (got->broken.cause == BC_GAP_BUFFER)
				continue;
			assert_int_equal(got->broken.duration_ns, expected->broken.duration_ns);
			assert_int_equal(got->broken.is_cut, expected->broken.is_cut);
			assert_int_equal(got->broken.is_restart, expected->broken.is_restart);
			assert_int_equal(got->broken.lost, expected->broken.lost);
			continue;
		}
		assert_int_equal(got->count, expected->count);
		assert_memory_equal(f->out + got->at, f->stream + expected->at, got->count);
		assert_int_equal(got->has_times, expected->has_times);
		assert_int_equal(got->since, expected->since);
		assert_int_equal(got->until, expected->until);
	}
}

/* Sends random pieces, breaks and drops. */
static void send_anything(struct fixture *f, enum bc_format format)
{
	static const enum bc_gap_cause causes[] = {BC_GAP_UNPLUGGED, BC_GAP_BOARD, BC_GAP_TRANSFER};

	f->format = format;
	f->may_refuse = true;
	for (unsigned i = 0; i < 1500; i++) {
		uint32_t what = dice_below(&f->dice, 40);
		if (what == 0)
			send_break(f, causes[dice_below(&f->dice, 3)], false);
		else if (what == 1)
			for (uint32_t n = dice_below(&f->dice, 4); n != 0; n--)
				send_bytes(f, 1 + dice_below(&f->dice, 3000), true, true);
		else if (what == 2)
			start_block(f); /* a chunk was full or flushed */
		else if (what < 6)
			send_bytes(f, 1 + dice_below(&f->dice, 20000), false, false);
		else if (what < 20)
			send_bytes(f, 1 + dice_below(&f->dice, 10), true, false);
		else
			send_bytes(f, 1 + dice_below(&f->dice, 20000), true, false);
	}
	assert_true(f->count > 20);
}

TEST_F(raw6_comes_out_as_it_went_in)
{
	send_anything(f, BC_FORMAT_RAW6);
	check(f);
}

TEST_F(bcp1_comes_out_as_it_went_in)
{
	send_anything(f, BC_FORMAT_BCP1);
	check(f);
}

TEST_F(a_long_transfer_continues_in_the_next_block)
{
	f->format = BC_FORMAT_RAW6;
	f->may_refuse = true;
	send_bytes(f, 100, true, false);
	send_bytes(f, BC_RAW_BLOCK_BYTES * 3 + 5, true, false);
	send_bytes(f, 10, true, false);
	assert_true(f->count >= 4);
	check(f);
}

TEST_F(a_transfer_whose_rest_was_dropped_ends_where_it_was)
{
	struct bc_source_data data = {
		.format = BC_FORMAT_RAW6,
		.bytes = f->stream,
		.count = BC_RAW_BLOCK_BYTES + 1000,
		.has_times = true,
		.until_ns = 5,
	};

	f->format = BC_FORMAT_RAW6;
	bc_raw_keep_add(&f->keep, block_for(f, BC_RAW_BLOCK_BYTES), &data, 0, BC_RAW_BLOCK_BYTES);
	bc_raw_keep_drop(&f->keep, &data, BC_RAW_BLOCK_BYTES, BC_GAP_DISK, 7);
	f->sent = data.count;
	f->dropped = 1000;
	replay(f);
	assert_int_equal(f->got_count, 2);
	assert_int_equal(f->got[0].count, BC_RAW_BLOCK_BYTES);
	assert_int_equal(f->got[1].broken.cause, BC_GAP_DISK);
}

TEST_F(breaks_without_a_block_wait_for_one)
{
	f->format = BC_FORMAT_RAW6;
	send_bytes(f, 7, true, false);
	send_bytes(f, 7, true, true);
	send_break(f, BC_GAP_UNPLUGGED, true);
	send_bytes(f, 8, true, true);
	send_bytes(f, 9, true, false);
	assert_int_equal(f->keep.pending_count, 0);
	check(f);
}

TEST_F(more_breaks_than_can_wait_become_one)
{
	struct bc_raw_block *block = &f->blocks[0];

	f->format = BC_FORMAT_BCP1;
	for (int i = 0; i < 50; i++) {
		send_break(f, BC_GAP_UNPLUGGED, true);
		send_bytes(f, 3, true, true);
	}
	assert_int_equal(f->keep.pending_count, BC_RAW_PENDING);
	start_block(f);
	bc_raw_keep_flush(&f->keep, block);
	assert_int_equal(block->entries, BC_RAW_PENDING);
	assert_int_equal(bc_raw_block_span(block), 150);
}

/* After a hole a replay starts with a whole sample. */
TEST_F(the_rest_of_a_sample_after_a_hole_is_left_out)
{
	struct bc_source_sink sink = {.context = f, .data = on_data};
	struct bc_block_replay replay = {.next_entry = 0};
	bool is_over = false;

	f->format = BC_FORMAT_RAW6;
	send_bytes(f, 8, true, false);
	start_block(f);
	send_bytes(f, 3, true, false); /* all of it belongs to that sample */
	send_bytes(f, 5, true, false); /* one byte of it too */
	assert_int_equal(f->blocks[1].lead, 4);
	bc_block_replay_start(&replay, &f->blocks[1], BC_RAW_AFTER_HOLE);
	assert_true(bc_block_replay_push(&replay, &f->blocks[1], NULL, &sink, &is_over));
	assert_int_equal(f->got_count, 2);
	assert_int_equal(f->got[0].broken.cause, BC_GAP_DAMAGED);
	assert_int_equal(f->got[1].count, 4);
	assert_memory_equal(f->out, f->stream + 12, 4);
	bc_block_replay_start(&replay, &f->blocks[1], BC_RAW_OTHER_RECORDING);
	assert_true(bc_block_replay_push(&replay, &f->blocks[1], NULL, &sink, &is_over));
	assert_int_equal(f->got[2].broken.cause, BC_GAP_UNPLUGGED);
	assert_true(f->got[2].broken.is_restart);
	is_over = true;
	bc_block_replay_start(&replay, &f->blocks[0], BC_RAW_CONTIGUOUS);
	assert_true(bc_block_replay_push(&replay, &f->blocks[0], NULL, &sink, &is_over));
	assert_int_equal(f->got_count, 4);
	bc_block_replay_free(&replay);
}
