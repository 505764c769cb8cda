/* The filter against a model: a stream is stamped twice, plain and filtered. The filtered one must
 * equal the plain one without the records that the rules remove. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/ingest/record_filter.h"
#include "formats/trace/filter_parse.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

#define CHUNKS      64u
#define RUN_MAX     200u
#define RECORDS_MAX 16384u
#define EVENTS_MAX  4096u

/* A record as read from a stream's chunks. */
struct found {
	uint8_t head[8];
	uint64_t tick;
	uint32_t epoch;
	uint32_t time;
	bool is_exact;
	bool is_unknown; /* the ticks since the previous record are unknown */
};

struct found_event {
	uint32_t record; /* number of the record after it */
	struct bc_event event;
	char text[16];
};

struct stream {
	struct bc_stamper stamper;
	unsigned count; /* of chunks */
	uint32_t removed;
	uint32_t kept;
	uint32_t records;
	uint32_t events;
	struct found found[RECORDS_MAX];
	struct found_event event[EVENTS_MAX];
	struct bc_chunk *chunk[CHUNKS];
};

struct fixture {
	struct dice dice;
	struct bc_mapping mapping;
	struct bc_record_filter filter;
	struct stream plain;
	struct stream filtered;
	struct bc_chunk source; /* with anchors, for records that have them */
	uint8_t samples[RUN_MAX * BC_BCP1_SAMPLE_BYTES];
	uint8_t records[RUN_MAX * BC_RECORD_BYTES];
	uint64_t tick;    /* of the samples */
	uint32_t prefill; /* events at the start of each chunk of the filtered stream */
	unsigned marks;
};

static void set_up(struct fixture *f)
{
	for (unsigned i = 0; i < CHUNKS; i++) {
		f->plain.chunk[i] = malloc(sizeof(struct bc_chunk));
		f->filtered.chunk[i] = malloc(sizeof(struct bc_chunk));
	}
	struct bc_mapping_options options = bc_mapping_options_default();
	bc_mapping_init(&f->mapping, &options);
}

static void tear_down(struct fixture *f)
{
	for (unsigned i = 0; i < CHUNKS; i++) {
		free(f->plain.chunk[i]);
		free(f->filtered.chunk[i]);
	}
}

TEST_FIXTURE(fixture, set_up, tear_down)

static struct bc_chunk *last_chunk(struct stream *s)
{
	return s->chunk[s->count - 1];
}

static void start_chunk(struct fixture *f, struct stream *s)
{
	uint64_t tick = s->count != 0 ? last_chunk(s)->info.last_tick : s->stamper.tick;
	const struct bc_event filler = {.kind = BC_EVENT_GAP, .cause = BC_GAP_BUFFER, .value = 7};

	assert_true(s->count < CHUNKS);
	if (s->count != 0 && bc_chunk_is_empty(last_chunk(s)))
		s->count--;
	bc_chunk_reset(s->chunk[s->count], tick, s->stamper.epoch);
	s->chunk[s->count++]->info.first_record = 0;
	for (uint32_t i = 0; s == &f->filtered && i < f->prefill; i++)
		assert_true(bc_chunk_add_event(last_chunk(s), &filler, NULL));
}

static void start_streams(struct fixture *f)
{
	f->plain.count = f->filtered.count = 0;
	f->filtered.removed = f->filtered.kept = 0;
	f->marks = 0;
	f->tick = dice_roll(&f->dice) >> 30;
	bc_stamper_init(&f->plain.stamper, &f->mapping);
	bc_stamper_init(&f->filtered.stamper, &f->mapping);
	start_chunk(f, &f->plain);
	start_chunk(f, &f->filtered);
}

static void next_epoch(struct fixture *f)
{
	bc_stamper_begin(&f->plain.stamper, f->plain.stamper.epoch + 1, 0);
	bc_stamper_begin(&f->filtered.stamper, f->filtered.stamper.epoch + 1, 0);
	start_chunk(f, &f->plain);
	start_chunk(f, &f->filtered);
	f->tick = dice_roll(&f->dice) >> 40;
}

/* Sets a mark in both streams. */
static void set_mark(struct fixture *f)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%u", f->marks++);
	struct stream *const streams[] = {&f->plain, &f->filtered};

	for (unsigned i = 0; i < 2; i++) {
		struct stream *s = streams[i];
		struct bc_event mark = {.kind = BC_EVENT_MARK,
			.text_bytes = (uint16_t)n,
			.position = last_chunk(s)->info.records};
		if (!bc_chunk_add_event(last_chunk(s), &mark, text)) {
			start_chunk(f, s);
			mark.position = 0;
			assert_true(bc_chunk_add_event(last_chunk(s), &mark, text));
		}
	}
}

/* Stamps a run of either kind into a stream, and filters it. */
static void stamp(struct fixture *f, struct stream *s, const struct bc_samples *samples,
	const struct bc_records *records)
{
	struct bc_samples samples_left = samples != NULL ? *samples : (struct bc_samples){0};
	struct bc_records records_left = records != NULL ? *records : (struct bc_records){0};
	enum bc_stamp_result end;

	do {
		struct bc_stamped stamped;
		struct bc_record_filter_state state;
		struct bc_chunk *chunk = last_chunk(s);
		bc_record_filter_start(&state, &s->stamper, chunk);
		if (samples != NULL)
			end = bc_stamp_samples(
				&s->stamper, &samples_left, BC_NO_TICK_LIMIT, chunk, &stamped);
		else
			end = bc_stamp_records(
				&s->stamper, &records_left, BC_NO_TICK_LIMIT, chunk, &stamped);
		if (s == &f->filtered) {
			uint32_t removed = bc_record_filter_records(
				&f->filter, &state, &s->stamper, chunk, 1000000000);
			assert_int_equal(state.from + stamped.kept - removed, chunk->info.records);
			s->removed += removed;
			s->kept += stamped.kept - removed;
		}
		if (end == BC_STAMP_FULL)
			start_chunk(f, s);
	} while (end == BC_STAMP_FULL);
}

static void skip_samples(
	struct stream *s, const struct bc_samples *samples, const struct bc_records *records)
{
	struct bc_samples samples_left = samples != NULL ? *samples : (struct bc_samples){0};
	struct bc_records records_left = records != NULL ? *records : (struct bc_records){0};
	struct bc_stamped stamped;

	if (samples != NULL)
		bc_stamp_samples(&s->stamper, &samples_left, BC_NO_TICK_LIMIT, NULL, &stamped);
	else
		bc_stamp_records(&s->stamper, &records_left, BC_NO_TICK_LIMIT, NULL, &stamped);
}

static void push(struct fixture *f, const struct bc_samples *samples,
	const struct bc_records *records, bool may_skip)
{
	if (may_skip && dice_below(&f->dice, 12) == 0) {
		skip_samples(&f->plain, samples, records);
		skip_samples(&f->filtered, samples, records);
		return;
	}
	stamp(f, &f->plain, samples, records);
	stamp(f, &f->filtered, samples, records);
}

static void push_samples(struct fixture *f, uint32_t n)
{
	struct bc_samples run = {.at = f->samples, .count = n, .has_ticks = true};
	bool is_slow = dice_below(&f->dice, 3) == 0;

	if (dice_below(&f->dice, 10) == 0)
		f->tick += dice_roll(&f->dice) >> (28 + dice_below(&f->dice, 30));
	run.tick = f->tick;
	for (uint32_t i = 0; i < n; i++) {
		uint8_t *at = f->samples + i * BC_BCP1_SAMPLE_BYTES;
		dice_fill(&f->dice, at, BC_BCP1_SAMPLE_BYTES);
		uint16_t ticks = (uint16_t)dice_below(&f->dice, is_slow ? 65536 : 50);
		bc_write_le16(at + BC_SAMPLE_BYTES, ticks);
		f->tick += ticks;
	}
	run.has_agent = dice_below(&f->dice, 2) == 0;
	push(f, &run, NULL, true);
}

/* Pushes records with any times: plain ones, where BC_TIME_NONE means unknown, or records of a
 * chunk, where it refers to an anchor. */
static void push_records(struct fixture *f, uint32_t n, bool has_anchors, uint32_t long_in)
{
	struct bc_records run = {.at = f->records, .count = n};
	uint64_t tick = f->plain.stamper.tick;

	bc_chunk_reset(&f->source, 0, 0);
	for (uint32_t i = 0; i < n; i++) {
		uint8_t *at = f->records + i * BC_RECORD_BYTES;
		dice_fill(&f->dice, at, BC_RECORD_BYTES);
		at[4] &= 3;
		at[7] &= 1;
		uint32_t time = dice_below(&f->dice, 100);
		if (dice_below(&f->dice, long_in) == 0)
			time = BC_TIME_NONE -
			       dice_below(&f->dice, 3) * dice_below(&f->dice, 2000000000);
		bc_write_le32(at + 8, time);
		tick += time != BC_TIME_NONE ? time : dice_roll(&f->dice) >> 29;
		if (tick >= BC_TICK_END)
			tick = 0;
		const struct bc_event anchor = {.position = i,
			.kind = BC_EVENT_ANCHOR,
			.exact = dice_below(&f->dice, 8) != 0,
			.value = tick};
		if (has_anchors && time == BC_TIME_NONE)
			assert_true(bc_chunk_add_event(&f->source, &anchor, NULL));
	}
	run.source = has_anchors ? &f->source : NULL;
	push(f, NULL, &run, !has_anchors);
}

static const struct bc_event *anchor_of(const struct bc_chunk *chunk, uint32_t n)
{
	const struct bc_event *found = NULL;

	for (uint32_t i = 0; i < chunk->info.events; i++) {
		const struct bc_event *event = &chunk->events[i];
		if (event->kind != BC_EVENT_ANCHOR || event->position != n)
			continue;
		assert_null(found);
		found = event;
	}
	return found;
}

static void read_events(struct stream *s, const struct bc_chunk *chunk)
{
	uint32_t last = 0;

	for (uint32_t i = 0; i < chunk->info.events; i++) {
		const struct bc_event *event = &chunk->events[i];
		assert_true(event->position >= last && event->position <= chunk->info.records);
		last = event->position;
		if (event->kind == BC_EVENT_ANCHOR)
			assert_int_equal(
				bc_le32(chunk->records + (size_t)last * BC_RECORD_BYTES + 8),
				BC_TIME_NONE);
		if (event->kind != BC_EVENT_MARK)
			continue;
		struct found_event *e = &s->event[s->events++];
		*e = (struct found_event){s->records + last, *event, ""};
		memcpy(e->text, chunk->text + event->text, event->text_bytes);
	}
}

/* Reads a stream's chunks as a reader does. */
static void read_stream(struct stream *s)
{
	uint64_t tick = 0;
	bool is_exact = true;
	uint32_t epoch = UINT32_MAX;

	s->records = s->events = 0;
	for (unsigned c = 0; c < s->count; c++) {
		const struct bc_chunk *chunk = s->chunk[c];
		bool is_first = chunk->info.epoch != epoch;
		uint64_t before = tick;
		read_events(s, chunk);
		for (uint32_t i = 0; i < chunk->info.records; i++) {
			const uint8_t *at = chunk->records + (size_t)i * BC_RECORD_BYTES;
			struct found *r = &s->found[s->records++];
			const struct bc_event *anchor = anchor_of(chunk, i);
			r->time = bc_le32(at + 8);
			assert_int_equal(anchor != NULL, r->time == BC_TIME_NONE);
			if (is_first) { /* time starts at tick 0 */
				tick = 0;
				is_exact = true;
			}
			r->is_unknown = anchor != NULL && (!anchor->exact || !is_exact || is_first);
			is_exact = anchor != NULL ? anchor->exact : is_exact;
			tick = anchor != NULL ? anchor->value : tick + r->time;
			memcpy(r->head, at, 8);
			r->tick = tick;
			r->epoch = chunk->info.epoch;
			r->is_exact = is_exact;
			if (is_first && i == 0)
				before = tick;
			if (i == 0)
				assert_true(chunk->info.first_tick == tick);
			is_first = false;
			epoch = chunk->info.epoch;
		}
		if (chunk->info.records != 0)
			assert_true(chunk->info.last_tick == tick);
		else if (epoch == chunk->info.epoch)
			assert_true(chunk->info.last_tick == before &&
				    chunk->info.first_tick == before);
	}
}

static bool matches_any(const struct bc_record_filter_rules *rules, const struct found *r)
{
	uint8_t bytes[BC_RECORD_BYTES] = {0};
	uint64_t ticks;
	bool is_kept = false;

	memcpy(bytes, r->head, 8);
	for (unsigned i = 0; i < rules->count; i++)
		is_kept |= bc_filter_records(&rules->rules[i].filter, bytes, 1, &ticks) != 0;
	return is_kept;
}

static bool should_keep(const struct bc_record_filter *filter, const struct found *r)
{
	const struct bc_sampling *sampling = &filter->sampling;

	return (filter->keep.count == 0 || matches_any(&filter->keep, r)) &&
	       !matches_any(&filter->leave_out, r) &&
	       (sampling->period_ns == 0 || r->tick % sampling->period_ns < sampling->width_ns);
}

/* Compares the filtered stream with the model. Returns how many records were kept only for their
 * ticks. */
static uint32_t compare(struct fixture *f, bool may_bridge)
{
	struct stream *a = &f->plain;
	struct stream *b = &f->filtered;
	uint32_t n = 0; /* of the filtered stream */
	uint32_t event = 0;
	uint32_t bridges = 0;
	uint32_t wanted = 0;
	bool is_unknown = false;

	read_stream(a);
	read_stream(b);
	assert_int_equal(a->events, b->events);
	assert_int_equal(b->records, b->kept);
	assert_int_equal(a->records, b->kept + b->removed);
	for (uint32_t i = 0; i < a->records; i++) {
		const struct found *r = &a->found[i];
		const struct found *kept = &b->found[n];
		bool is_kept = should_keep(&f->filter, r);
		if (i != 0 && r->epoch != r[-1].epoch)
			is_unknown = false;
		is_unknown |= r->is_unknown;
		for (; event < a->events && a->event[event].record == i; event++) {
			assert_int_equal(b->event[event].record, n);
			assert_string_equal(a->event[event].text, b->event[event].text);
		}
		wanted += is_kept;
		if (!is_kept && may_bridge && n < b->records && kept->tick == r->tick &&
			kept->epoch == r->epoch && memcmp(kept->head, r->head, 8) == 0 &&
			b->records - n > 0 && bridges + wanted <= n) {
			is_kept = true;
			bridges++;
		}
		if (!is_kept)
			continue;
		assert_true(n < b->records);
		assert_memory_equal(kept->head, r->head, 8);
		assert_true(kept->tick == r->tick);
		assert_int_equal(kept->epoch, r->epoch);
		assert_int_equal(kept->is_exact, r->is_exact);
		bool is_first = n == 0 || kept[-1].epoch != kept->epoch;
		uint64_t delta = kept->tick - (is_first ? 0 : kept[-1].tick);
		bool has_none = is_unknown || r->time == BC_TIME_NONE || delta >= BC_TIME_NONE;
		assert_int_equal(kept->time == BC_TIME_NONE, has_none);
		if (!has_none)
			assert_true(kept->time == delta);
		is_unknown = false;
		n++;
	}
	for (; event < a->events; event++)
		assert_int_equal(b->event[event].record, n);
	assert_int_equal(n, b->records);
	return bridges;
}

static void add_rule(struct dice *dice, struct bc_record_filter_rules *rules)
{
	struct bc_filter *filter = &rules->rules[rules->count++].filter;

	bc_filter_init(filter);
	if (dice_below(dice, 2) == 0) {
		filter->has_addr = true;
		filter->addr.first = dice_roll(dice) >> 32;
		filter->addr.last = filter->addr.first + (dice_roll(dice) >> 33);
	}
	if (dice_below(dice, 2) == 0)
		for (unsigned type = 0; type < 256; type++)
			if (dice_below(dice, 3) == 0)
				bc_filter_add_type(filter, type);
	if (dice_below(dice, 3) == 0)
		bc_filter_add_procs(filter, 0, (uint16_t)dice_below(dice, 8));
}

static void choose_rules(struct fixture *f)
{
	struct dice *dice = &f->dice;

	memset(&f->filter, 0, sizeof(f->filter));
	for (unsigned n = dice_below(dice, 3); n > 0; n--)
		add_rule(dice, &f->filter.keep);
	for (unsigned n = dice_below(dice, 3); n > 0; n--)
		add_rule(dice, &f->filter.leave_out);
	if (dice_below(dice, 2) == 0) {
		uint64_t period = 1 + (dice_roll(dice) >> (30 + dice_below(dice, 32)));
		f->filter.sampling.period_ns = period;
		f->filter.sampling.width_ns = 1 + dice_roll(dice) % period;
	}
}

/* Pushes runs, with epochs, marks, gaps and full chunks between them. */
static void push_runs(struct fixture *f, unsigned kind, uint32_t long_in)
{
	struct dice *dice = &f->dice;

	start_streams(f);
	for (unsigned n = 1 + dice_below(dice, 12); n > 0; n--) {
		uint32_t count = 1 + dice_below(dice, dice_below(dice, 2) == 0 ? RUN_MAX : 5);
		while (dice_below(dice, 3) == 0)
			set_mark(f);
		if (kind == 0)
			push_samples(f, count);
		else
			push_records(f, count, kind == 2, long_in);
		if (dice_below(dice, 8) == 0)
			start_chunk(f, &f->plain);
		if (dice_below(dice, 5) == 0)
			start_chunk(f, &f->filtered);
		if (dice_below(dice, 9) == 0)
			next_epoch(f);
	}
}

TEST_F(samples_are_filtered_as_in_the_model)
{
	uint64_t removed = 0;
	uint64_t kept = 0;

	f->dice.state = 1;
	f->prefill = 0;
	for (unsigned round = 0; round < 20000; round += test_stride(9)) {
		choose_rules(f);
		push_runs(f, 0, 0);
		compare(f, false);
		removed += f->filtered.removed;
		kept += f->filtered.kept;
	}
	assert_true(removed > 100000 / test_stride(9) && kept > 100000 / test_stride(9));
}

TEST_F(records_with_and_without_anchors_are_filtered_as_in_the_model)
{
	f->dice.state = 2;
	f->prefill = 0;
	for (unsigned round = 0; round < 20000; round += test_stride(9)) {
		choose_rules(f);
		push_runs(f, 1 + round % 2, 2 + dice_below(&f->dice, 60));
		compare(f, false);
	}
}

TEST_F(a_record_is_kept_for_its_ticks_without_space_for_an_anchor)
{
	uint32_t bridges = 0;

	f->dice.state = 3;
	for (unsigned round = 0; round < 20000; round += test_stride(9)) {
		/* Space for the first record's anchor and a few more. */
		f->prefill = BC_CHUNK_EVENTS - 1 - dice_below(&f->dice, 3);
		choose_rules(f);
		start_streams(f);
		for (unsigned n = 1 + dice_below(&f->dice, 4); n > 0; n--)
			push_records(f, 1 + dice_below(&f->dice, 20), false, 3);
		bridges += compare(f, true);
	}
	f->prefill = 0;
	assert_true(bridges > 1000 / test_stride(9));
}

TEST_F(rules_may_change_between_runs)
{
	f->dice.state = 4;
	/* Alternates between no rules and rules that remove everything: the records kept are those
	 * stamped without rules. */
	for (unsigned round = 0; round < 500; round++) {
		uint64_t ticks = 0;
		uint32_t kept = 0;
		start_streams(f);
		for (unsigned n = 0; n < 12; n++) {
			memset(&f->filter, 0, sizeof(f->filter));
			if (dice_below(&f->dice, 2) == 0) {
				f->filter.leave_out.count = 1;
				bc_filter_init(&f->filter.leave_out.rules[0].filter);
			}
			push_samples(f, 1 + dice_below(&f->dice, 20));
			kept += f->filter.leave_out.count == 0;
		}
		read_stream(&f->plain);
		read_stream(&f->filtered);
		if (f->filtered.records == 0)
			continue;
		/* The last record kept has the same tick in both. */
		ticks = f->filtered.found[f->filtered.records - 1].tick;
		bool is_there = false;
		for (uint32_t i = 0; i < f->plain.records; i++)
			is_there |= f->plain.found[i].tick == ticks;
		assert_true(is_there && kept != 0);
	}
}

TEST(settings_are_parsed_replaced_and_removed)
{
	struct bc_record_filter filter = {0};
	char err[400];
	char name[16];

	assert_true(bc_record_filter_keeps_all(&filter));
	assert_true(bc_record_filter_set(&filter, "keep", "type=read", err, sizeof(err)));
	assert_true(
		bc_record_filter_set(&filter, "keep.vga", "addr=a0000-bffff", err, sizeof(err)));
	assert_true(bc_record_filter_set(&filter, "leave_out.x", "proc=3", err, sizeof(err)));
	assert_int_equal(filter.keep.count, 2);
	assert_int_equal(filter.leave_out.count, 1);
	assert_true(bc_record_filter_set(&filter, "keep", "type=write", err, sizeof(err)));
	assert_int_equal(filter.keep.count, 2);
	assert_string_equal(filter.keep.rules[0].where, "type=write");
	assert_true(bc_record_filter_set(&filter, "keep", "", err, sizeof(err)));
	assert_int_equal(filter.keep.count, 1);
	assert_string_equal(filter.keep.rules[0].name, "vga");
	assert_false(bc_record_filter_set(&filter, "keep.", "proc=1", err, sizeof(err)));
	assert_false(bc_record_filter_set(&filter, "keep.a b", "proc=1", err, sizeof(err)));
	assert_false(bc_record_filter_set(&filter, "keeps", "proc=1", err, sizeof(err)));
	assert_non_null(strstr(err, "no such key in [filter]"));
	assert_false(bc_record_filter_set(&filter, "keep.b", "colour=red", err, sizeof(err)));
	assert_non_null(strstr(err, "colour: unknown condition"));
	for (unsigned i = 1; i < BC_RECORD_FILTER_RULES; i++) {
		snprintf(name, sizeof(name), "keep.%u", i);
		assert_true(bc_record_filter_set(&filter, name, "proc=1", err, sizeof(err)));
	}
	assert_false(bc_record_filter_set(&filter, "keep.more", "proc=1", err, sizeof(err)));
	assert_non_null(strstr(err, "too many rules; the limit is 8"));
	assert_true(bc_record_filter_set(&filter, "keep.7", "proc=2", err, sizeof(err)));
}

TEST(sampling_is_a_width_and_a_period)
{
	static const char *const bad[] = {"10ms", "0/1s", "2s/1s", "1s/", "/1s", "1s/0", "x/1s",
		"1s/1s/1s", "99999999999999999999999999999999999999999999/1s"};
	struct bc_sampling sampling = {1, 2};
	char err[200];

	assert_true(bc_sampling_parse(&sampling, "10ms/1s", err, sizeof(err)));
	assert_true(sampling.width_ns == 10000000 && sampling.period_ns == 1000000000);
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		assert_false(bc_sampling_parse(&sampling, bad[i], err, sizeof(err)));
		assert_true(sampling.width_ns == 10000000);
	}
	assert_true(bc_sampling_parse(&sampling, "all", err, sizeof(err)));
	assert_true(sampling.width_ns == 0 && sampling.period_ns == 0);
}
