/* Compares formats/segment/sequence_check.h with a simple reference. */
#include <stdlib.h>
#include <string.h>

#include "formats/segment/sequence_check.h"
#include "tests/support/test.h"

#define TAG 77u

static enum bc_sequence_place check_chunk(
	struct bc_sequence_check *c, uint64_t first, uint32_t records, uint64_t *missing)
{
	static struct bc_chunk chunk;
	static uint32_t number;

	chunk.info.recording_tag = TAG;
	chunk.info.first_record = first;
	chunk.info.records = records;
	chunk.info.number = number++;
	struct bc_missing found;
	int place = bc_sequence_check_chunk(c, &chunk, &found);
	assert_true(place >= 0);
	assert_int_equal(found.samples, 0);
	*missing = found.place.records;
	return (enum bc_sequence_place)place;
}

#define RECORDS 48u

/* Chunks in any order and with any records: a chunk is new if none of its records was seen before,
 * and a duplicate if one was. */
TEST(chunks_in_any_order_are_accepted_once)
{
	uint32_t seed = 1;

	for (unsigned round = 0; round < 20000; round += test_stride(5)) {
		struct bc_sequence_check c = {0};
		bool was_there[RECORDS] = {false};
		uint64_t next = 0;
		uint64_t missing;
		bc_sequence_check_jump(&c, TAG, 0);
		for (unsigned i = 0; i < 24; i++) {
			seed = seed * 1664525 + 1013904223;
			uint32_t first = (seed >> 8) % RECORDS;
			uint32_t records = 1 + (seed >> 20) % 6;
			/* A chunk after all others is next, possibly with missing records before
			 * it. */
			if (first + records > RECORDS || (first < next && first + records > next))
				continue;
			bool is_new = true;
			for (uint32_t r = first; r < first + records; r++)
				is_new &= !was_there[r];
			enum bc_sequence_place place = check_chunk(&c, first, records, &missing);
			assert_int_equal(missing, first > next ? first - next : 0);
			assert_int_equal(place, first >= next ? BC_SEQUENCE_NEXT
						: is_new      ? BC_SEQUENCE_LATE
							      : BC_SEQUENCE_DUPLICATE);
			if (is_new)
				memset(was_there + first, true, records * sizeof(bool));
			next = first + records > next ? first + records : next;
		}
		bc_sequence_check_reset(&c);
	}
}

/* Which segments are missing, and the sentence for it. */
TEST(missing_segments_are_named)
{
	static const struct {
		struct bc_missing_segments missing;
		const char *text;
	} cases[] = {
		{{3, 1, 2446668, 9, 0, 0}, "2,446,668 records missing: segment 3 is not here"},
		{{3, 3, 1, 9, 0, 0}, "1 record missing: segments 3 to 5 are not here"},
		{{3, 1, 0, 0, 0, 0}, "segment 3 is not here"},
		{{UINT32_MAX - 1, 2, UINT64_MAX, 0, 0, 0},
			"18,446,744,073,709,551,615 records missing: segments 4294967294 to "
			"4294967295 are not here"},
		{{0, 0, 4096, 8192, 0, 0}, "4,096 records missing from record 8192 on"},
	};
	static const struct bc_segment_span before = {1, 2, true, 100, 200, 5, 7};
	static const struct {
		struct bc_segment_span after;
		struct bc_missing_segments missing;
	} pairs[] = {
		{{1, 3, true, 200, 300, 0, 0}, {.first = 3}},
		{{1, 3, true, 250, 300, 0, 0}, {.first = 3}}, /* sequence_check finds these */
		{{1, 4, true, 250, 300, 9, 9}, {3, 1, 50, 200, 7, 9}},
		{{1, 4, true, 200, 300, 6, 9}, {3, 1, 0, 200, 7, 7}}, /* the clock went back */
		{{1, 6, false, 0, 0, 0, 0}, {.first = 3, .count = 3}},
		{{2, 6, true, 250, 300, 0, 0}, {.count = 0}},
		{{1, 1, true, 0, 100, 0, 0}, {.count = 0}},
	};
	char text[BC_MISSING_TEXT];

	for (size_t i = 0; i < COUNT_OF(cases); i++)
		assert_string_equal(bc_missing_write(text, &cases[i].missing), cases[i].text);
	for (size_t i = 0; i < COUNT_OF(pairs); i++) {
		struct bc_missing_segments found;
		assert_int_equal(bc_missing_between(&found, &before, &pairs[i].after),
			pairs[i].missing.count != 0);
		assert_memory_equal(&found, &pairs[i].missing, sizeof(found));
	}
}

/* A segment whose header is here is not missing, even if none of its chunks is. */
TEST(a_segment_without_whole_chunks_is_not_missing)
{
	for (unsigned headers = 0; headers < 1u << 4; headers++) {
		struct bc_sequence_check c = {0};
		static struct bc_chunk chunk;
		struct bc_segment_header header = {.recording = "20261120T091500Z-3f9a2c"};
		struct bc_missing missing;
		bool is_one = true; /* the missing ones are one run, as the sentence needs */
		uint32_t first = 0;
		uint32_t count = 0;
		chunk.info = (struct bc_chunk_info){
			.recording_tag = bc_recording_tag(header.recording), .records = 10};
		assert_int_equal(bc_sequence_check_chunk(&c, &chunk, &missing), BC_SEQUENCE_NEXT);
		for (header.segment = 1; header.segment < 5; header.segment++) {
			if ((headers >> (header.segment - 1) & 1) != 0) {
				bc_sequence_check_expect(&c, &header);
				continue;
			}
			is_one = is_one && (count == 0 || first + count == header.segment);
			first = count == 0 ? header.segment : first;
			count++;
		}
		chunk.info.segment = 5;
		chunk.info.first_record = 50;
		assert_int_equal(bc_sequence_check_chunk(&c, &chunk, &missing), BC_SEQUENCE_NEXT);
		assert_int_equal(missing.records, 40);
		assert_int_equal(missing.place.from, 10);
		assert_int_equal(missing.place.count != 0, count != 0);
		if (is_one && count != 0) {
			assert_int_equal(missing.place.first, first);
			assert_int_equal(missing.place.count, count);
		}
		bc_sequence_check_reset(&c);
	}
}

#define SEGMENTS 3u
#define CHUNKS   6u

struct segments {
	struct bc_chunk chunks[SEGMENTS][CHUNKS];
	bool was_there[SEGMENTS][CHUNKS];
};

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* Segments whose chunks have 0 to 2 records each. */
static void make_segments(struct segments *s, uint32_t *seed)
{
	uint64_t first = next_random(seed) % 3;

	memset(s->was_there, 0, sizeof(s->was_there));
	for (unsigned i = 0; i < SEGMENTS; i++)
		for (unsigned k = 0; k < CHUNKS; k++) {
			struct bc_chunk_info *info = &s->chunks[i][k].info;
			*info = (struct bc_chunk_info){
				.recording_tag = TAG,
				.first_record = first,
				.records = next_random(seed) % 3,
				.segment = i,
				.number = k,
			};
			first += info->records;
		}
}

/* Checks a segment's chunks, without those whose bit is set in `damaged`. None is taken for a
 * duplicate the first time, and none with records is accepted twice. */
static void check_segment(
	struct segments *s, struct bc_sequence_check *c, unsigned i, uint32_t damaged)
{
	struct bc_missing missing;

	for (unsigned k = 0; k < CHUNKS; k++) {
		if ((damaged >> k & 1) != 0)
			continue;
		int place = bc_sequence_check_chunk(c, &s->chunks[i][k], &missing);
		if (!s->was_there[i][k])
			assert_int_not_equal(place, BC_SEQUENCE_DUPLICATE);
		else if (s->chunks[i][k].info.records != 0)
			assert_int_equal(place, BC_SEQUENCE_DUPLICATE);
		else
			assert_int_not_equal(place, BC_SEQUENCE_NEXT);
		s->was_there[i][k] = true;
	}
}

TEST(segments_in_any_order_with_damaged_copies_are_accepted_once)
{
	static const unsigned orders[][SEGMENTS] = {
		{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	struct segments *s = test_alloc(sizeof(*s));
	uint32_t seed = 1;

	for (unsigned round = 0; round < 6000; round += test_stride(5)) {
		struct bc_sequence_check c = {0};
		make_segments(s, &seed);
		for (unsigned i = 0; i < SEGMENTS; i++)
			for (unsigned copies = 3; copies-- != 0;)
				check_segment(s, &c, orders[round % 6][i],
					copies != 0 ? next_random(&seed) : 0);
		for (unsigned i = 0; i < SEGMENTS; i++)
			check_segment(s, &c, i, 0);
		bc_sequence_check_reset(&c);
	}
	free(s);
}

TEST(too_many_holes_are_forgotten_but_no_chunk_is_lost)
{
	const uint64_t holes = (test_stride(2) == 1 ? 5 : 2) * (uint64_t)BC_SEQUENCE_CHECK_HOLES;
	struct bc_sequence_check c = {0};
	uint64_t missing;

	bc_sequence_check_jump(&c, TAG, 0);
	for (uint64_t i = 0; i < holes; i++) {
		assert_int_equal(check_chunk(&c, 4 * i + 3, 1, &missing), BC_SEQUENCE_NEXT);
		assert_true(c.hole_count <= BC_SEQUENCE_CHECK_HOLES);
	}
	assert_true(c.known_from != 0 && c.known_from < 4 * holes);
	for (uint64_t i = holes - 1; i < holes; i -= test_stride(9)) {
		assert_int_equal(check_chunk(&c, 4 * i + 1, 1, &missing), BC_SEQUENCE_LATE);
		bool is_known = 4 * i + 3 >= c.known_from;
		assert_int_equal(check_chunk(&c, 4 * i + 3, 1, &missing),
			is_known ? BC_SEQUENCE_DUPLICATE : BC_SEQUENCE_LATE);
	}
	bc_sequence_check_reset(&c);
}

/* Passes on a chunk of a segment, without records, with `gap` samples lost in a gap and `lost` by
 * its count. Returns how many of them no gap reports. */
static uint64_t check_lost(
	struct bc_sequence_check *c, uint32_t segment, uint32_t number, uint64_t gap, uint64_t lost)
{
	static struct bc_chunk chunk;
	struct bc_missing missing;
	struct bc_event event = {
		.kind = BC_EVENT_GAP, .cause = BC_GAP_DISK, .exact = true, .value = gap};

	bc_chunk_reset(&chunk, 0, 0);
	chunk.info.recording_tag = TAG;
	chunk.info.first_record = 100;
	chunk.info.segment = segment;
	chunk.info.number = number;
	chunk.info.totals.lost[BC_GAP_DISK] = lost;
	if (gap != 0)
		assert_true(bc_chunk_add_event(&chunk, &event, NULL));
	assert_int_equal(bc_sequence_check_chunk(c, &chunk, &missing), BC_SEQUENCE_NEXT);
	assert_int_equal(missing.lost[BC_GAP_DISK], missing.samples);
	return missing.samples;
}

TEST(a_loss_without_a_gap_is_found)
{
	struct bc_sequence_check c = {0};
	struct bc_chunk_info last;

	/* The counts before a recording are 0; before a later segment they are unknown. */
	bc_sequence_check_jump(&c, TAG, 100);
	assert_int_equal(check_lost(&c, 0, 0, 5, 7), 2);
	bc_sequence_check_jump(&c, TAG, 100);
	assert_int_equal(check_lost(&c, 3, 0, 5, 7), 0);

	assert_int_equal(check_lost(&c, 3, 1, 0, 7), 0);
	assert_int_equal(check_lost(&c, 3, 2, 0, 1007), 1000);
	assert_int_equal(check_lost(&c, 3, 3, 0, 1007), 0);
	assert_int_equal(check_lost(&c, 4, 0, 10, 1020), 3);
	assert_int_equal(check_lost(&c, 4, 1, 10, 1025), 0); /* recovery adds gaps to a segment */

	/* Skipped chunks are counted; those of unknown content are not. */
	last = c.last;
	last.totals.lost[BC_GAP_DISK] = 2000;
	bc_sequence_check_skip(&c, &last);
	assert_int_equal(check_lost(&c, 5, 0, 0, 2001), 1);
	bc_sequence_check_jump(&c, TAG, 100);
	assert_int_equal(check_lost(&c, 6, 0, 0, 9000), 0);
	bc_sequence_check_reset(&c);
}

#define MHZ 1000000u

/* The chunk before a hole. */
static const struct bc_chunk_info last = {.recording_tag = TAG,
	.records = 10,
	.epoch = 3,
	.first_tick = 1000,
	.last_tick = 1500,
	.wall_ns = 6000000};

/* What was asked, and what to answer. */
struct asked {
	struct bc_chunk_info holes[8];
	unsigned count;
	unsigned needed; /* the number of the one that is needed, from 1 */
};

static bool note_hole(void *context, const struct bc_chunk_info *info)
{
	struct asked *asked = context;

	assert_true(asked->count < 8);
	asked->holes[asked->count++] = *info;
	return asked->count == asked->needed;
}

static void assert_hole(const struct asked *asked, unsigned i, uint32_t epoch, uint64_t first_tick,
	uint64_t last_tick, int64_t wall_ns)
{
	const struct bc_chunk_info *hole = &asked->holes[i];

	assert_true(i < asked->count);
	assert_int_equal(hole->first_record, 10);
	assert_int_equal(hole->records, 90);
	assert_int_equal(hole->events, 0);
	assert_int_equal(hole->epoch, epoch);
	assert_int_equal(hole->first_tick, first_tick);
	assert_int_equal(hole->last_tick, last_tick);
	assert_int_equal(hole->wall_ns, wall_ns);
}

/* Asks about a hole before a chunk. Each description is asked for, and decides. */
static struct asked ask(
	const struct bc_sequence_check *c, const struct bc_chunk_info *next, uint64_t clock_hz)
{
	struct asked asked = {.count = 0};

	assert_false(bc_sequence_check_misses(c, next, clock_hz, note_hole, &asked));
	for (unsigned n = 1; n <= asked.count; n++) {
		struct asked again = {.needed = n};
		assert_true(bc_sequence_check_misses(c, next, clock_hz, note_hole, &again));
		assert_int_equal(again.count, n);
	}
	return asked;
}

TEST(a_hole_has_the_times_between_its_neighbours)
{
	struct bc_chunk_info next = {.recording_tag = TAG,
		.first_record = 100,
		.records = 1,
		.epoch = 3,
		.first_tick = 2000,
		.last_tick = 2000,
		.wall_ns = 7000000};
	struct bc_sequence_check c = {0};

	assert_int_equal(ask(&c, &next, MHZ).count, 0);
	bc_sequence_check_jump(&c, TAG, 100);
	assert_int_equal(ask(&c, &next, MHZ).count, 0);

	/* The previous chunk is unknown. */
	bc_sequence_check_jump(&c, TAG, 10);
	struct asked asked = ask(&c, &next, MHZ);
	assert_int_equal(asked.count, 1);
	assert_hole(&asked, 0, 3, 0, 1999, 5000000);

	bc_sequence_check_skip(&c, &last);
	asked = ask(&c, &next, MHZ);
	assert_int_equal(asked.count, 1);
	assert_hole(&asked, 0, 3, 1501, 1999, 6501000);
	/* Without a clock rate, at the time of day of either chunk. */
	asked = ask(&c, &next, 0);
	assert_int_equal(asked.count, 2);
	assert_hole(&asked, 0, 3, 1501, 1999, 6000000);
	assert_hole(&asked, 1, 3, 1501, 1999, 7000000);

	/* All records have one tick. */
	next.first_tick = last.last_tick;
	asked = ask(&c, &next, MHZ);
	assert_int_equal(asked.count, 1);
	assert_hole(&asked, 0, 3, 1500, 1500, 6500000);
	next.recording_tag++;
	assert_int_equal(ask(&c, &next, MHZ).count, 0);
	bc_sequence_check_reset(&c);
}

TEST(a_hole_may_be_in_any_epoch_from_the_previous_chunk_to_the_next)
{
	struct bc_chunk_info next = {.recording_tag = TAG,
		.first_record = 100,
		.epoch = 6,
		.first_tick = 200,
		.wall_ns = 9000000};
	struct bc_sequence_check c = {0};
	struct asked none = {.count = 0};

	bc_sequence_check_skip(&c, &last);
	struct asked asked = ask(&c, &next, MHZ);
	assert_int_equal(asked.count, 4);
	assert_hole(&asked, 0, 6, 0, 199, 8800000);
	assert_hole(&asked, 1, 3, 1501, 1501 + 2499, 6501000); /* until the next chunk's time */
	assert_hole(&asked, 2, 4, 0, 2499, 6501000);
	assert_hole(&asked, 3, 5, 0, 2499, 6501000);

	/* The clock was set back. */
	next.wall_ns = 5000000;
	asked = ask(&c, &next, MHZ);
	assert_hole(&asked, 1, 3, 1501, UINT64_MAX, 6501000);

	/* A file can claim any epoch. */
	next.epoch = UINT32_MAX;
	assert_true(bc_sequence_check_misses(&c, &next, MHZ, note_hole, &none));
	assert_int_equal(none.count, 2);
	bc_sequence_check_reset(&c);
}
