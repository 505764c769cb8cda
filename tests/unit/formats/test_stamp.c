#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "formats/bus/stamp.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

/* Control bytes of samples: NC_D_READ of the lowest byte, INVALID, special. */
#define READ_CONTROL    0xD0
#define INVALID_CONTROL 0x20
#define SPECIAL_CONTROL 0x30

#define RUN_MAX 64

struct fixture {
	struct bc_mapping mapping; /* drops invalid cycles */
	struct bc_mapping keeping; /* keeps them */
	struct bc_stamper stamper;
	struct bc_stamped stamped;
	struct bc_chunk chunk;
	struct bc_chunk next;
};

static void set_up(struct fixture *f)
{
	struct bc_mapping_options options = bc_mapping_options_default();

	memset(f, 0xCC, sizeof(*f));
	bc_mapping_init(&f->mapping, &options);
	options.keep_invalid = true;
	bc_mapping_init(&f->keeping, &options);
}

TEST_FIXTURE(fixture, set_up, NOTHING)

static void init_stamper(struct fixture *f)
{
	bc_stamper_init(&f->stamper, &f->mapping);
	bc_chunk_reset(&f->chunk, 0, 0);
}

static uint8_t *write_sample(uint8_t *p, uint32_t address, uint8_t control, uint16_t ticks)
{
	bc_write_be32(p, address);
	p[4] = 0xFE;
	p[5] = control;
	bc_write_le16(p + 6, ticks);
	return p + BC_BCP1_SAMPLE_BYTES;
}

static struct bc_samples frame_of(
	const uint8_t *samples, uint32_t count, uint64_t tick, uint16_t flags, uint8_t proc)
{
	struct bc_bcp1_frame frame = {
		.header = {.flags = flags, .proc = proc, .samples = count, .tick = tick},
		.samples = samples,
	};

	return bc_samples_of_frame(&frame);
}

static struct bc_record record_of(const struct bc_chunk *chunk, uint32_t n)
{
	assert_true(n < chunk->info.records);
	return bc_record_load(chunk->records + (size_t)n * BC_RECORD_BYTES);
}

static void assert_anchor(
	const struct bc_chunk *chunk, uint32_t n, uint32_t position, uint64_t tick, bool is_exact)
{
	assert_true(n < chunk->info.events);
	assert_int_equal(chunk->events[n].kind, BC_EVENT_ANCHOR);
	assert_int_equal(chunk->events[n].position, position);
	assert_int_equal(chunk->events[n].value, tick);
	assert_int_equal(chunk->events[n].exact, is_exact);
}

static void stamp_all(struct fixture *f, struct bc_samples *run)
{
	assert_int_equal(
		bc_stamp_samples(&f->stamper, run, BC_NO_TICK_LIMIT, &f->chunk, &f->stamped),
		BC_STAMP_DONE);
}

/* Stamps one sample at `tick` into the chunk, and returns its record. */
static struct bc_record stamp_one(struct fixture *f, uint64_t tick)
{
	uint8_t sample[BC_BCP1_SAMPLE_BYTES];
	uint32_t n = f->chunk.info.records;

	write_sample(sample, 0x1000, READ_CONTROL, 0);
	struct bc_samples run = frame_of(sample, 1, tick, 0, 0);
	stamp_all(f, &run);
	assert_int_equal(f->stamped.kept, 1);
	return record_of(&f->chunk, n);
}

/* Samples */

TEST_F(the_first_record_has_no_delta_and_an_anchor)
{
	static const uint64_t ticks[] = {
		0, 1, 0xFFFFFFFE, 0xFFFFFFFF, 0x100000000, BC_TICK_END - 1};

	for (size_t i = 0; i < COUNT_OF(ticks); i++) {
		init_stamper(f);
		assert_int_equal(stamp_one(f, ticks[i]).time, BC_TIME_NONE);
		assert_int_equal(f->chunk.info.events, 1);
		assert_anchor(&f->chunk, 0, 0, ticks[i], true);
		assert_int_equal(f->chunk.info.first_tick, ticks[i]);
		assert_int_equal(f->chunk.info.last_tick, ticks[i]);
		assert_int_equal(f->stamper.tick, ticks[i]);
	}
}

TEST_F(a_delta_is_reported_up_to_0xfffffffe_and_anchored_from_there)
{
	static const struct {
		uint64_t delta;
		uint32_t time;
	} cases[] = {
		{0, 0},
		{1, 1},
		{0x7FFFFFFF, 0x7FFFFFFF},
		{0x80000000, 0x80000000},
		{0xFFFFFFFD, 0xFFFFFFFD},
		{0xFFFFFFFE, 0xFFFFFFFE},
		{0xFFFFFFFF, BC_TIME_NONE},
		{0x100000000, BC_TIME_NONE},
		{0x100000001, BC_TIME_NONE},
		{UINT64_C(1) << 40, BC_TIME_NONE},
		{UINT64_C(1) << 62, BC_TIME_NONE},
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		for (uint64_t first = 0; first <= UINT32_MAX; first += 0x55555555) {
			bool is_anchored = cases[i].time == BC_TIME_NONE;
			init_stamper(f);
			stamp_one(f, first);
			assert_int_equal(stamp_one(f, first + cases[i].delta).time, cases[i].time);
			assert_int_equal(stamp_one(f, first + cases[i].delta + 7).time, 7);
			assert_int_equal(f->chunk.info.events, is_anchored ? 2 : 1);
			if (is_anchored)
				assert_anchor(&f->chunk, 1, 1, first + cases[i].delta, true);
			assert_int_equal(f->chunk.info.first_tick, first);
			assert_int_equal(f->chunk.info.last_tick, first + cases[i].delta + 7);
		}
	}
}

TEST_F(a_frame_at_tick_0_starts_at_0_whatever_its_first_sample_claims)
{
	uint8_t samples[2 * BC_BCP1_SAMPLE_BYTES];

	init_stamper(f);
	write_sample(write_sample(samples, 0x10, READ_CONTROL, 0xFFFF), 0x20, READ_CONTROL, 3);
	struct bc_samples run = frame_of(samples, 2, 0, 0, 0);
	stamp_all(f, &run);
	assert_anchor(&f->chunk, 0, 0, 0, true);
	assert_int_equal(record_of(&f->chunk, 1).time, 3);
	assert_int_equal(f->chunk.info.last_tick, 3);
}

TEST_F(a_frame_without_samples_changes_nothing)
{
	init_stamper(f);
	stamp_one(f, 50);
	uint8_t none[1];
	struct bc_samples run = frame_of(none, 0, 9000, 0, 0);
	stamp_all(f, &run);
	assert_int_equal(f->stamped.consumed, 0);
	assert_int_equal(f->stamper.tick, 50);
	assert_int_equal(stamp_one(f, 60).time, 10);
}

TEST_F(raw_samples_are_one_tick_apart)
{
	uint8_t samples[5 * BC_SAMPLE_BYTES];

	init_stamper(f);
	for (uint8_t i = 0; i < 5; i++)
		memcpy(samples + i * BC_SAMPLE_BYTES,
			(uint8_t[]){0, 0, i, 0, 0xF0, READ_CONTROL | 9}, BC_SAMPLE_BYTES);
	for (uint64_t round = 0; round < 3; round++) {
		struct bc_samples run = bc_samples_of_raw6(
			samples, 5, f->stamper.tick, bc_pace_of(1, 1));
		stamp_all(f, &run);
		assert_int_equal(f->stamper.tick, 5 * (round + 1));
	}
	assert_int_equal(f->chunk.info.records, 15);
	for (uint32_t i = 0; i < 15; i++) {
		struct bc_record r = record_of(&f->chunk, i);
		assert_int_equal(r.time, i == 0 ? BC_TIME_NONE : 1);
		assert_int_equal(r.addr, (i % 5) << 8);
		assert_int_equal(r.proc, 0);
	}
	assert_anchor(&f->chunk, 0, 0, 1, true);
}

TEST_F(dropped_cycles_before_the_first_record_leave_it_the_first)
{
	uint8_t sample[BC_BCP1_SAMPLE_BYTES];

	init_stamper(f);
	write_sample(sample, 0, INVALID_CONTROL, 0);
	struct bc_samples run = frame_of(sample, 1, 100, 0, 0);
	stamp_all(f, &run);
	assert_true(bc_chunk_is_empty(&f->chunk));
	assert_int_equal(stamp_one(f, 300).time, BC_TIME_NONE);
	assert_anchor(&f->chunk, 0, 0, 300, true);
}

TEST_F(an_epoch_starts_without_a_delta)
{
	init_stamper(f);
	stamp_one(f, 1000000);
	bc_stamper_begin(&f->stamper, 3, 0);
	assert_int_equal(f->stamper.tick, 0);
	bc_chunk_reset(&f->chunk, f->stamper.tick, f->stamper.epoch);
	assert_int_equal(f->chunk.info.epoch, 3);
	assert_int_equal(stamp_one(f, 5).time, BC_TIME_NONE);
	assert_anchor(&f->chunk, 0, 0, 5, true);
	assert_int_equal(stamp_one(f, 9).time, 4);
}

TEST_F(a_chunk_without_records_keeps_its_initial_tick)
{
	uint8_t sample[BC_BCP1_SAMPLE_BYTES];

	init_stamper(f);
	stamp_one(f, 1000);
	bc_chunk_reset(&f->chunk, f->stamper.record_tick, 0);
	write_sample(sample, 0, INVALID_CONTROL, 0);
	struct bc_samples run = frame_of(sample, 1, 2000, 0, 0);
	stamp_all(f, &run);
	assert_int_equal(f->chunk.info.first_tick, 1000);
	assert_int_equal(f->chunk.info.last_tick, 1000);
}

/* Skipping */

static enum bc_stamp_result skip_one(
	struct fixture *f, uint64_t tick, uint8_t control, uint64_t limit)
{
	uint8_t sample[BC_BCP1_SAMPLE_BYTES];

	write_sample(sample, 0x1000, control, 0);
	sample[4] = 0x00;
	struct bc_samples run = frame_of(sample, 1, tick, 0, 0);
	return bc_stamp_samples(&f->stamper, &run, limit, NULL, &f->stamped);
}

TEST_F(the_delta_after_skipped_samples_includes_them)
{
	init_stamper(f);
	stamp_one(f, 100);
	skip_one(f, 200, READ_CONTROL, BC_NO_TICK_LIMIT);
	skip_one(f, 300, INVALID_CONTROL, BC_NO_TICK_LIMIT);
	assert_int_equal(stamp_one(f, 350).time, 250);

	/* More ticks than a delta can have. */
	skip_one(f, 0x80000000, READ_CONTROL, BC_NO_TICK_LIMIT);
	assert_int_equal(stamp_one(f, 350 + UINT64_C(0xFFFFFFFF)).time, BC_TIME_NONE);
	assert_anchor(&f->chunk, 1, 2, 350 + UINT64_C(0xFFFFFFFF), true);
}

TEST_F(samples_skipped_before_the_first_record_leave_it_the_first)
{
	init_stamper(f);
	skip_one(f, 200, READ_CONTROL, BC_NO_TICK_LIMIT);
	assert_int_equal(stamp_one(f, 350).time, BC_TIME_NONE);
	assert_anchor(&f->chunk, 0, 0, 350, true);
}

/* Limits */

TEST_F(a_limit_stops_before_the_sample_at_it)
{
	uint8_t samples[5 * BC_BCP1_SAMPLE_BYTES];
	uint8_t *p = samples;

	for (int i = 0; i < 5; i++) /* at 100, 110, ..., the second of them invalid */
		p = write_sample(p, (uint32_t)i, i == 1 ? INVALID_CONTROL : READ_CONTROL, 10);
	for (uint64_t limit = 95; limit < 150; limit++) {
		uint32_t below = limit <= 100 ? 0 : (uint32_t)((limit - 100 + 9) / 10);
		for (int is_skipped = 0; is_skipped < 2; is_skipped++) {
			init_stamper(f);
			struct bc_samples run = frame_of(samples, 5, 100, 0, 0);
			enum bc_stamp_result end = is_skipped
							   ? bc_stamp_samples(&f->stamper, &run,
								     limit, NULL, &f->stamped)
							   : bc_stamp_samples(&f->stamper, &run,
								     limit, &f->chunk, &f->stamped);
			assert_int_equal(end, below < 5 ? BC_STAMP_LIMIT : BC_STAMP_DONE);
			assert_int_equal(f->stamped.consumed, below);
			assert_int_equal(f->stamped.invalid, below > 1);
			assert_int_equal(f->stamped.kept, below - (below > 1));
			assert_int_equal(run.count, 5 - below);
			assert_ptr_equal(run.at, samples + below * BC_BCP1_SAMPLE_BYTES);
			assert_int_equal(f->stamper.tick, below == 0 ? 0 : 90 + 10 * below);
			assert_int_equal(f->chunk.info.records, is_skipped ? 0 : f->stamped.kept);
		}
	}
}

/* Full chunks, and runs split at any place */

struct run {
	uint8_t samples[RUN_MAX * BC_BCP1_SAMPLE_BYTES];
	uint32_t count;
	uint64_t tick;
};

/* Frames that need anchors because their ticks are far apart. */
static void make_runs(struct run runs[8])
{
	struct dice dice = {.state = 23};
	uint64_t tick = 12345;

	for (int i = 0; i < 8; i++) {
		uint8_t *p = runs[i].samples;
		runs[i].count = 1 + dice_below(&dice, 7);
		runs[i].tick = tick;
		for (uint32_t n = 0; n < runs[i].count; n++) {
			static const uint8_t controls[] = {
				READ_CONTROL, INVALID_CONTROL, READ_CONTROL, SPECIAL_CONTROL, 0x80};
			uint16_t ticks = (uint16_t)(n == 0 ? 0 : dice_roll(&dice));
			p = write_sample(p, (uint32_t)dice_roll(&dice),
				controls[dice_below(&dice, 5)] | (uint8_t)dice_below(&dice, 4),
				ticks);
			tick += ticks;
		}
		static const uint64_t idles[] = {1, 500, 0xFFFFFFFF, UINT64_C(1) << 35};
		tick += idles[dice_below(&dice, 4)];
	}
}

/* The output: records with their absolute ticks, collected from chunks. */
struct output {
	uint8_t records[RUN_MAX * BC_RECORD_BYTES];
	uint64_t anchors[RUN_MAX]; /* 0 if there is none */
	uint32_t n;
};

/* Collects a chunk's records from `from` on and events from `event` on. */
static void collect(
	struct output *output, const struct bc_chunk *chunk, uint32_t from, uint32_t event)
{
	assert_true(chunk->info.records <= BC_CHUNK_RECORDS);
	for (uint32_t i = from; i < chunk->info.records; i++) {
		assert_true(output->n < RUN_MAX);
		memcpy(output->records + (size_t)output->n * BC_RECORD_BYTES,
			chunk->records + (size_t)i * BC_RECORD_BYTES, BC_RECORD_BYTES);
		while (event < chunk->info.events && chunk->events[event].position == i)
			output->anchors[output->n] = chunk->events[event++].value;
		output->n++;
	}
	assert_int_equal(event, chunk->info.events);
}

static void assert_same_output(const struct output *a, const struct output *b)
{
	assert_int_equal(a->n, b->n);
	assert_memory_equal(a->records, b->records, (size_t)a->n * BC_RECORD_BYTES);
	assert_memory_equal(a->anchors, b->anchors, a->n * sizeof(a->anchors[0]));
}

/* Fills the first chunk so that it has room for this many records and events. */
static void fill_up(struct bc_chunk *chunk, uint32_t records_left, uint32_t events_left)
{
	struct bc_event event = {.kind = BC_EVENT_MARK};

	chunk->info.records = BC_CHUNK_RECORDS - records_left;
	while (chunk->info.events < BC_CHUNK_EVENTS - events_left)
		assert_true(bc_chunk_add_event(chunk, &event, NULL));
}

/* Stamps all runs into a chunk with limited room and then into empty ones. Stops at `limit` and
 * continues. */
static struct output stamp_runs(struct fixture *f, const struct run runs[8], uint32_t records_left,
	uint32_t events_left, uint64_t limit)
{
	struct output output = {.n = 0};
	struct bc_stamped sum = {0};
	uint32_t from;
	uint32_t event;

	init_stamper(f);
	fill_up(&f->chunk, records_left, events_left);
	from = f->chunk.info.records;
	event = f->chunk.info.events;
	for (int i = 0; i < 8; i++) {
		struct bc_samples run = frame_of(
			runs[i].samples, runs[i].count, runs[i].tick, BC_BCP1_AGENT, 0);
		enum bc_stamp_result end;
		do {
			uint32_t left = run.count;
			end = bc_stamp_samples(&f->stamper, &run, limit, &f->chunk, &f->stamped);
			assert_int_equal(f->stamped.consumed, left - run.count);
			assert_int_equal(f->stamped.consumed, f->stamped.kept + f->stamped.invalid);
			assert_int_equal(end == BC_STAMP_DONE, run.count == 0);
			sum.kept += f->stamped.kept;
			sum.unknown += f->stamped.unknown;
			if (end == BC_STAMP_FULL) {
				collect(&output, &f->chunk, from, event);
				bc_chunk_reset(&f->chunk, f->stamper.record_tick, 0);
				from = event = 0;
			} else if (end == BC_STAMP_LIMIT) {
				limit = BC_NO_TICK_LIMIT;
			}
		} while (end != BC_STAMP_DONE);
	}
	collect(&output, &f->chunk, from, event);
	assert_int_equal(sum.kept, output.n);
	return output;
}

/* The expected output, from the definition. */
static struct output expected_output(const struct fixture *f, const struct run runs[8])
{
	struct output output = {.n = 0};
	uint64_t before = 0;

	for (int i = 0; i < 8; i++) {
		uint64_t tick = runs[i].tick;
		for (uint32_t n = 0; n < runs[i].count; n++) {
			const uint8_t *at = runs[i].samples + n * BC_BCP1_SAMPLE_BYTES;
			uint8_t *out = output.records + (size_t)output.n * BC_RECORD_BYTES;
			tick += n == 0 ? 0 : bc_le16(at + 6);
			if (at[5] >> 4 == INVALID_CONTROL >> 4)
				continue;
			bc_map_sample(out, bc_map_entry(&f->mapping, at), at, at[5] & 15);
			bool has_delta = output.n != 0 && tick - before < 0xFFFFFFFF;
			bc_write_le32(out + 8, has_delta ? (uint32_t)(tick - before) : 0xFFFFFFFF);
			output.anchors[output.n++] = has_delta ? 0 : tick;
			before = tick;
		}
	}
	return output;
}

TEST_F(a_run_split_between_chunks_anywhere_gives_the_same_records)
{
	struct run runs[8];

	make_runs(runs);
	struct output expected = expected_output(f, runs);
	assert_true(expected.n > 10);
	for (uint32_t records_left = 0; records_left <= expected.n + 1; records_left++) {
		for (uint32_t events_left = 0; events_left < 8; events_left++) {
			struct output output = stamp_runs(
				f, runs, records_left, events_left, BC_NO_TICK_LIMIT);
			assert_same_output(&output, &expected);
		}
	}
}

#define LONG_RUN 3000u

/* Samples of every kind, including stretches of plain reads, and their expected records. */
static uint32_t make_long_run(const struct fixture *f, struct dice *dice, bool has_agent,
	uint8_t *samples, uint8_t *records, uint64_t *ticks_of, uint32_t *unknown)
{
	uint64_t since = 0;
	uint64_t tick = 0;
	uint32_t kept = 0;
	uint8_t *p = samples;

	*unknown = 0;
	for (uint32_t i = 0; i < LONG_RUN; i++) {
		static const uint8_t odd[] = {INVALID_CONTROL, SPECIAL_CONTROL, 0x80, 0xE0, 0x10};
		bool is_odd = (i / 100 % 3 != 0) && dice_below(dice, 6) == 0;
		uint8_t control = (uint8_t)(is_odd ? odd[dice_below(dice, 5)] : READ_CONTROL);
		uint16_t ticks = (uint16_t)(dice_roll(dice) >> 48 >> dice_below(dice, 16));
		const uint8_t *at = p;
		p = write_sample(p, (uint32_t)dice_roll(dice),
			(uint8_t)(control | dice_below(dice, 16)), i == 0 ? 0 : ticks);
		p[-4] = (uint8_t)(is_odd ? ~(1u << dice_below(dice, 8)) : dice_roll(dice));
		since += bc_le16(at + 6);
		tick += bc_le16(at + 6);
		uint64_t entry = bc_map_entry(&f->mapping, at);
		if ((entry & BC_MAP_DROP) != 0)
			continue;
		*unknown += (entry & BC_MAP_UNKNOWN) != 0;
		uint8_t *out = records + (size_t)kept * BC_RECORD_BYTES;
		bc_map_sample(out, entry, at, has_agent ? at[5] & 15 : 77);
		bc_write_le32(out + 8, kept == 0 ? BC_TIME_NONE : (uint32_t)since);
		ticks_of[kept++] = tick;
		since = 0;
	}
	return kept;
}

TEST_F(a_long_run_split_at_random_gives_the_same_records)
{
	struct dice dice = {.state = 29};
	uint8_t *samples = malloc((size_t)LONG_RUN * BC_BCP1_SAMPLE_BYTES);
	uint8_t *records = malloc((size_t)LONG_RUN * BC_RECORD_BYTES);
	uint64_t *ticks = malloc(LONG_RUN * sizeof(*ticks)); /* relative to the run's start */

	assert_non_null(samples);
	assert_non_null(records);
	assert_non_null(ticks);
	for (int round = 0; round < 100; round++) {
		bool has_agent = round % 2 == 0;
		uint32_t unknown;
		uint32_t kept = make_long_run(
			f, &dice, has_agent, samples, records, ticks, &unknown);
		uint64_t first = dice_roll(&dice) >> 2;
		uint64_t limit = first;
		uint32_t got = 0;
		struct bc_stamped sum = {0};
		struct bc_samples run = frame_of(
			samples, LONG_RUN, first, has_agent ? BC_BCP1_AGENT : 0, 77);
		enum bc_stamp_result end;

		init_stamper(f);
		fill_up(&f->chunk, dice_below(&dice, 500), 4);
		uint32_t from = f->chunk.info.records;
		do {
			end = bc_stamp_samples(&f->stamper, &run, limit, &f->chunk, &f->stamped);
			sum.consumed += f->stamped.consumed;
			sum.kept += f->stamped.kept;
			sum.unknown += f->stamped.unknown;
			assert_int_equal(f->chunk.info.records, from + f->stamped.kept);
			assert_true(f->chunk.info.records <= BC_CHUNK_RECORDS);
			assert_true(got + f->stamped.kept <= kept);
			assert_memory_equal(f->chunk.records + (size_t)from * BC_RECORD_BYTES,
				records + (size_t)got * BC_RECORD_BYTES,
				(size_t)f->stamped.kept * BC_RECORD_BYTES);
			if (f->stamped.kept != 0) {
				uint64_t last = first + ticks[got + f->stamped.kept - 1];
				assert_int_equal(f->stamper.record_tick, last);
				assert_int_equal(f->chunk.info.last_tick, last);
				if (from == 0)
					assert_int_equal(
						f->chunk.info.first_tick, first + ticks[got]);
			}
			assert_true(f->stamped.consumed == 0 || f->stamper.tick < limit);
			got += f->stamped.kept;
			from = f->chunk.info.records;
			if (end == BC_STAMP_LIMIT) {
				limit += 1 + (dice_roll(&dice) >> 40 >> dice_below(&dice, 20));
			} else if (end == BC_STAMP_FULL) {
				bc_chunk_reset(&f->chunk, f->stamper.record_tick, 0);
				if (dice_below(&dice, 2) == 0)
					fill_up(&f->chunk, dice_below(&dice, 500), 4);
				from = f->chunk.info.records;
			}
		} while (end != BC_STAMP_DONE);
		assert_int_equal(sum.consumed, LONG_RUN);
		assert_int_equal(sum.kept, kept);
		assert_int_equal(sum.unknown, unknown);
		assert_int_equal(got, kept);
		/* Nothing is written beyond the chunk. */
		assert_int_equal(f->next.info.recording_tag, UINT64_C(0xCCCCCCCCCCCCCCCC));
	}
	free(ticks);
	free(records);
	free(samples);
}

/* Records */

static uint8_t *write_record(uint8_t *p, uint32_t n, uint32_t time)
{
	struct bc_record r = {
		.addr = n * 0x01010101,
		.reqtype = (uint8_t)(n * 37), /* including unknown ones */
		.size = (uint8_t)(n * 91),
		.attr = (uint8_t)~n,
		.proc = (uint8_t)(200 + n),
		.time = time,
	};

	bc_record_store(p, &r);
	return p + BC_RECORD_BYTES;
}

static struct bc_records run_of(const uint8_t *records, uint32_t count)
{
	return (struct bc_records){.at = records, .count = count};
}

static void copy_all(struct fixture *f, struct bc_records *run)
{
	assert_int_equal(
		bc_stamp_records(&f->stamper, run, BC_NO_TICK_LIMIT, &f->chunk, &f->stamped),
		BC_STAMP_DONE);
}

static void skip_all(struct fixture *f, struct bc_records *run)
{
	assert_int_equal(bc_stamp_records(&f->stamper, run, BC_NO_TICK_LIMIT, NULL, &f->stamped),
		BC_STAMP_DONE);
}

TEST_F(records_are_copied_unchanged)
{
	static const uint32_t times[] = {
		BC_TIME_NONE, 0, 1, 0xFFFFFFFE, 0xFFFFFFFE, BC_TIME_NONE, 7, BC_TIME_NONE};
	enum { N = COUNT_OF(times) };
	uint8_t records[N * BC_RECORD_BYTES];
	uint8_t *p = records;

	for (uint32_t i = 0; i < N; i++)
		p = write_record(p, i, times[i]);
	bc_stamper_init(&f->stamper, NULL);
	bc_chunk_reset(&f->chunk, 0, 0);
	struct bc_records run = run_of(records, N);
	copy_all(f, &run);
	assert_int_equal(f->stamped.consumed, N);
	assert_int_equal(f->stamped.kept, N);
	assert_int_equal(f->stamped.invalid, 0);
	assert_memory_equal(f->chunk.records, records, sizeof(records));

	/* A record without a delta adds no ticks, and is inexact unless it is the first. */
	uint64_t tick = 1 + UINT64_C(2) * 0xFFFFFFFE;
	assert_int_equal(f->chunk.info.events, 3);
	assert_anchor(&f->chunk, 0, 0, 0, true);
	assert_anchor(&f->chunk, 1, 5, tick, false);
	assert_anchor(&f->chunk, 2, 7, tick + 7, false);
	assert_int_equal(f->chunk.info.first_tick, 0);
	assert_int_equal(f->chunk.info.last_tick, tick + 7);
}

TEST_F(anchors_of_the_source_chunk_are_copied)
{
	static const uint32_t times[] = {BC_TIME_NONE, 5, BC_TIME_NONE, BC_TIME_NONE, 3};
	uint8_t *p = f->next.records;

	bc_chunk_reset(&f->next, 0, 0);
	for (uint32_t i = 0; i < 5; i++)
		p = write_record(p, i, times[i]);
	f->next.info.records = 5;
	assert_true(bc_chunk_add_event(&f->next,
		&(struct bc_event){.kind = BC_EVENT_ANCHOR, .exact = true, .value = 1000}, NULL));
	/* A mark at the same position is not an anchor. */
	assert_true(bc_chunk_add_event(&f->next,
		&(struct bc_event){.kind = BC_EVENT_MARK, .position = 2, .value = 9}, NULL));
	assert_true(bc_chunk_add_event(&f->next,
		&(struct bc_event){.kind = BC_EVENT_ANCHOR,
			.position = 2,
			.exact = true,
			.value = UINT64_C(1) << 50},
		NULL));
	assert_true(bc_chunk_add_event(&f->next,
		&(struct bc_event){.kind = BC_EVENT_ANCHOR,
			.position = 3,
			.exact = false,
			.value = (UINT64_C(1) << 50) + 2},
		NULL));
	for (uint32_t split = 0; split <= 5; split++) {
		init_stamper(f);
		struct bc_records run = {.at = f->next.records, .source = &f->next};
		run.count = split;
		copy_all(f, &run);
		run.count = 5 - split;
		copy_all(f, &run);
		assert_memory_equal(f->chunk.records, f->next.records, 5 * BC_RECORD_BYTES);
		assert_int_equal(f->chunk.info.events, 3);
		assert_anchor(&f->chunk, 0, 0, 1000, true);
		assert_anchor(&f->chunk, 1, 2, UINT64_C(1) << 50, true);
		assert_anchor(&f->chunk, 2, 3, (UINT64_C(1) << 50) + 2, false);
		assert_int_equal(f->chunk.info.first_tick, 1000);
		assert_int_equal(f->chunk.info.last_tick, (UINT64_C(1) << 50) + 5);
	}
}

TEST_F(without_a_limit_an_anchor_can_have_any_tick)
{
	static const uint64_t ticks[] = {0, BC_TICK_END, UINT64_MAX - 1, UINT64_MAX};

	for (size_t i = 0; i < COUNT_OF(ticks); i++) {
		bc_chunk_reset(&f->next, 0, 0);
		write_record(f->next.records, 0, BC_TIME_NONE);
		f->next.info.records = 1;
		assert_true(bc_chunk_add_event(&f->next,
			&(struct bc_event){
				.kind = BC_EVENT_ANCHOR, .exact = true, .value = ticks[i]},
			NULL));
		init_stamper(f);
		struct bc_records run = {.at = f->next.records, .count = 1, .source = &f->next};
		copy_all(f, &run);
		assert_anchor(&f->chunk, 0, 0, ticks[i], true);
		run = (struct bc_records){.at = f->next.records, .count = 1, .source = &f->next};
		init_stamper(f);
		skip_all(f, &run);
	}
}

TEST_F(the_delta_after_a_skipped_unknown_delta_is_unknown)
{
	static const uint32_t times[] = {100, BC_TIME_NONE, 20, 3, 5, 0xFFFFFFFE, 7};
	uint8_t records[7 * BC_RECORD_BYTES];
	uint8_t *p = records;

	for (uint32_t i = 0; i < 7; i++)
		p = write_record(p, i, times[i]);
	init_stamper(f);
	struct bc_records run = run_of(records, 1);
	copy_all(f, &run);
	run.count = 2; /* the ticks between the two are unknown */
	skip_all(f, &run);
	run.count = 2;
	copy_all(f, &run);
	assert_int_equal(record_of(&f->chunk, 1).time, BC_TIME_NONE);
	assert_anchor(&f->chunk, 0, 1, 123, false);
	assert_int_equal(record_of(&f->chunk, 2).time, 5);
	run.count = 1;
	skip_all(f, &run);
	run.count = 1; /* its delta is known but too long; its tick is still a lower bound */
	copy_all(f, &run);
	assert_int_equal(record_of(&f->chunk, 3).time, BC_TIME_NONE);
	assert_anchor(&f->chunk, 1, 3, 128 + UINT64_C(0xFFFFFFFE) + 7, false);
}

TEST_F(skipped_records_add_their_ticks_to_the_next_delta)
{
	static const uint32_t times[] = {100, 20, 7, 3, 0xFFFFFFF0, 500};
	uint8_t records[6 * BC_RECORD_BYTES];
	uint8_t *p = records;

	for (uint32_t i = 0; i < 6; i++)
		p = write_record(p, i, times[i]);
	init_stamper(f);
	struct bc_records run = run_of(records, 1);
	copy_all(f, &run);
	run.count = 2;
	skip_all(f, &run);
	assert_int_equal(f->stamped.consumed, 2);
	assert_int_equal(f->stamped.kept, 2);
	assert_int_equal(run.position, 3);
	run.count = 1;
	copy_all(f, &run);
	assert_int_equal(record_of(&f->chunk, 1).time, 30);
	assert_int_equal(record_of(&f->chunk, 1).addr, 0x03030303);
	run.count = 1;
	skip_all(f, &run);
	run.count = 1; /* the sum does not fit a delta */
	copy_all(f, &run);
	assert_int_equal(record_of(&f->chunk, 2).time, BC_TIME_NONE);
	assert_anchor(&f->chunk, 0, 2, 130 + UINT64_C(0xFFFFFFF0) + 500, true);
}

TEST_F(records_split_by_chunks_or_limits_anywhere_are_the_same)
{
	enum { N = 24 };
	static const uint32_t times[] = {7, BC_TIME_NONE, 0xFFFFFFFE, 1};
	uint8_t records[N * BC_RECORD_BYTES];
	uint8_t *p = records;
	struct output expected = {.n = N};
	uint64_t tick = 0;

	for (uint32_t i = 0; i < N; i++) {
		uint32_t time = times[i % 4];
		p = write_record(p, i, time);
		tick += time == BC_TIME_NONE ? 0 : time;
		expected.anchors[i] = time == BC_TIME_NONE ? tick : 0;
	}
	memcpy(expected.records, records, sizeof(records));
	for (uint32_t room = 0; room <= N + 1; room++) {
		for (uint32_t events = 0; events <= N / 4 + 1; events++) {
			for (uint64_t limit = 5; limit < 10; limit++) {
				struct output output = {.n = 0};
				uint64_t at_limit = limit;
				init_stamper(f);
				fill_up(&f->chunk, room, events);
				uint32_t from = f->chunk.info.records;
				uint32_t event = f->chunk.info.events;
				struct bc_records run = run_of(records, N);
				for (;;) {
					enum bc_stamp_result end = bc_stamp_records(&f->stamper,
						&run, at_limit, &f->chunk, &f->stamped);
					if (end == BC_STAMP_DONE)
						break;
					if (end == BC_STAMP_LIMIT) {
						at_limit = at_limit < 100 ? 100 : BC_NO_TICK_LIMIT;
						continue;
					}
					collect(&output, &f->chunk, from, event);
					bc_chunk_reset(&f->chunk, f->stamper.record_tick, 0);
					from = event = 0;
				}
				collect(&output, &f->chunk, from, event);
				assert_int_equal(run.position, N);
				assert_same_output(&output, &expected);
			}
		}
	}
}

TEST_F(a_limit_stops_before_the_record_at_it)
{
	uint8_t records[3 * BC_RECORD_BYTES];

	write_record(write_record(write_record(records, 0, 10), 1, 10), 2, 10);
	for (uint64_t limit = 0; limit < 35; limit++) {
		uint32_t below = limit <= 10 ? 0 : limit <= 20 ? 1 : limit <= 30 ? 2 : 3;
		init_stamper(f);
		struct bc_records run = run_of(records, 3);
		assert_int_equal(bc_stamp_records(&f->stamper, &run, limit, &f->chunk, &f->stamped),
			below < 3 ? BC_STAMP_LIMIT : BC_STAMP_DONE);
		assert_int_equal(f->stamped.consumed, below);
		assert_int_equal(run.count, 3 - below);
		assert_int_equal(f->stamper.tick, 10 * below);
		init_stamper(f);
		run = run_of(records, 3);
		assert_int_equal(bc_stamp_records(&f->stamper, &run, limit, NULL, &f->stamped),
			below < 3 ? BC_STAMP_LIMIT : BC_STAMP_DONE);
		assert_int_equal(f->stamped.consumed, below);
	}
}

/* Checks the ticks of a pace, sample by sample, for `rounds` times its samples. */
static void check_pace(struct fixture *f, uint64_t ticks, uint32_t samples, uint32_t piece)
{
	static uint8_t raw[300 * BC_SAMPLE_BYTES];
	struct bc_pace pace = bc_pace_of(ticks, samples);
	uint64_t from = 1000;
	uint64_t last = from;
	uint32_t done = 0;

	for (uint32_t i = 0; i < 300; i++)
		memcpy(raw + (size_t)i * BC_SAMPLE_BYTES,
			(uint8_t[]){0, 0, 0, 0, 0xFE, READ_CONTROL}, BC_SAMPLE_BYTES);
	init_stamper(f);
	while (done < samples) {
		uint32_t n = samples - done < piece ? samples - done : piece;
		struct bc_samples run = bc_samples_of_raw6(raw, n, from, pace);
		for (uint32_t i = 0; i < n; i++) {
			uint64_t next = bc_samples_next_tick(&run);
			/* On the line from start to end, rounded down. */
			assert_true(next == from + (uint64_t)((unsigned __int128)ticks * (i + 1) /
							      samples) ||
				    done != 0);
			assert_in_range(next - last, ticks / samples, ticks / samples + 1);
			last = next;
			/* Long deltas need an anchor per record: more than fit in a chunk. */
			if (!bc_chunk_has_room(&f->chunk, 1))
				bc_chunk_reset(&f->chunk, f->stamper.tick, 0);
			run.count = 1;
			stamp_all(f, &run);
			run.count = n - i - 1;
		}
		done += n;
		from = run.tick;
		pace = run.pace;
	}
	assert_int_equal(last, 1000 + ticks);
	assert_int_equal(f->stamper.tick, 1000 + ticks);
}

TEST_F(a_pace_is_even_and_ends_on_its_last_tick)
{
	static const uint64_t ticks[] = {
		0, 1, 2, 7, 99, 100, 101, 65536, 1000003, UINT64_C(0xFFFFFFFF), UINT64_C(1) << 61};

	for (size_t t = 0; t < COUNT_OF(ticks); t++)
		for (uint32_t samples = 1; samples <= 300; samples += samples < 20 ? 1 : 31)
			for (uint32_t piece = 1; piece <= 300; piece = piece * 3 + 1)
				check_pace(f, ticks[t], samples, piece);
}

TEST(a_pace_of_the_maximum_of_samples_ends_on_its_last_tick)
{
	static const uint64_t ticks[] = {0, 1, UINT32_MAX - 1u, UINT32_MAX, UINT64_C(1) << 33};

	for (size_t t = 0; t < COUNT_OF(ticks); t++) {
		struct bc_pace pace = bc_pace_of(ticks[t], UINT32_MAX);
		assert_int_equal(pace.step * UINT32_MAX + pace.rest, ticks[t]);
		assert_true(pace.rest < pace.samples);
		assert_int_equal(pace.phase, 0);
		/* The first sample gets one tick more only if every sample does. */
		const uint8_t raw[BC_SAMPLE_BYTES] = {0};
		struct bc_samples run = bc_samples_of_raw6(raw, 1, 0, pace);
		assert_int_equal(bc_samples_next_tick(&run), pace.step);
	}
}

/* Skipped samples advance the pace. */
TEST_F(a_pace_continues_across_skipped_samples)
{
	uint8_t raw[10 * BC_SAMPLE_BYTES];

	for (uint32_t i = 0; i < 10; i++)
		memcpy(raw + (size_t)i * BC_SAMPLE_BYTES,
			(uint8_t[]){0, 0, 0, 0, 0xFE, READ_CONTROL}, BC_SAMPLE_BYTES);
	for (uint32_t skipped = 0; skipped <= 10; skipped++) {
		init_stamper(f);
		struct bc_samples run = bc_samples_of_raw6(raw, 10, 0, bc_pace_of(33, 10));
		run.count = skipped;
		assert_int_equal(
			bc_stamp_samples(&f->stamper, &run, BC_NO_TICK_LIMIT, NULL, &f->stamped),
			BC_STAMP_DONE);
		assert_int_equal(f->stamper.tick, 33 * skipped / 10);
		run.count = 10 - skipped;
		stamp_all(f, &run);
		assert_int_equal(f->stamper.tick, 33);
	}
}
