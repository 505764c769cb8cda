/* When a session cuts the segments of a live recording by time: in a real channel, with a pipeline
 * of this file, whose writer reports when the test says so. The clocks are this file's, too: each
 * look at one takes a microsecond, and nothing else any time. */
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "capture/source/source.h"
#include "daemon/base/log_limit.h"
#include "daemon/ingest/pipeline.h"
#include "daemon/recorder/session.h"
#include "daemon/store/writer_report.h"
#include "formats/base/bytes.h"
#include "formats/base/clock.h"
#include "formats/bus/record.h"
#include "tests/support/test.h"

#define MS          UINT64_C(1000000)
#define SLOTS       4u
#define STEP_NS     MS
#define PIECE       3u /* records that arrive in a step */
#define STEPS_MAX   4000u
#define CUTS_MAX    256u
#define MEMREAD     0xF0
#define DURATION_NS (100 * MS)
#define INTERVAL_NS (20 * MS)

/* A cut is this late at most: by a step, and the timer's two milliseconds. */
#define LATE_NS (4 * MS)

static uint64_t now_ns;
static int64_t wall_offset_ns;

int clock_gettime(clockid_t clock, struct timespec *now)
{
	bool is_wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;

	if (clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID)
		return (int)syscall(SYS_clock_gettime, clock, now);
	now_ns += 1000;
	uint64_t ns = now_ns + (is_wall ? (uint64_t)wall_offset_ns : 0);
	now->tv_sec = (time_t)(ns / (1000 * MS));
	now->tv_nsec = (long)(ns % (1000 * MS));
	return 0;
}

/* The pipeline */

struct cut {
	uint64_t record; /* the first one after it */
	uint64_t ns;
};

struct bc_pipeline {
	struct bc_slot slots[SLOTS];
	struct bc_slot *free[SLOTS];
	unsigned free_count;
	struct bc_counts counts;
	struct bc_writer_stats stats;

	struct cut cuts[CUTS_MAX];
	unsigned cuts_count;
	bool has_segment;
	int64_t wall_ns[CUTS_MAX]; /* of the segments */
	unsigned segments;
};

struct bc_slot *bc_pipeline_pop(struct bc_pipeline *p)
{
	return p->free_count != 0 ? p->free[--p->free_count] : NULL;
}

void bc_pipeline_give_back(struct bc_pipeline *p, struct bc_slot *slot)
{
	p->free[p->free_count++] = slot;
}

void bc_pipeline_send(struct bc_pipeline *p, struct bc_slot *slot)
{
	const struct bc_chunk_info *info = &slot->chunk.info;

	assert_true(p->cuts_count < CUTS_MAX && p->segments < CUTS_MAX);
	p->counts.in_flight -= info->records;
	p->counts.written += info->records;
	if (info->records != 0 && !p->has_segment)
		p->wall_ns[p->segments++] = info->wall_ns;
	p->has_segment = (p->has_segment || info->records != 0) && !slot->cut_after;
	if (slot->cut_after && !slot->is_last)
		p->cuts[p->cuts_count++] = (struct cut){info->first_record + info->records, now_ns};
	bc_pipeline_give_back(p, slot);
}

bool bc_pipeline_is_busy(struct bc_pipeline *p)
{
	(void)p;
	return false;
}

bool bc_pipeline_is_ahead(struct bc_pipeline *p)
{
	(void)p;
	return false;
}

struct bc_counts *bc_pipeline_counts(struct bc_pipeline *p)
{
	return &p->counts;
}

const struct bc_writer_stats *bc_pipeline_stats(const struct bc_pipeline *p)
{
	return &p->stats;
}

/* The source */

static int start_source(struct bc_source *source)
{
	(void)source;
	return 0;
}

static void stop_source(struct bc_source *source)
{
	void (*end)(void *, int, const char *) = source->sink.end;

	source->sink.end = NULL;
	end(source->sink.context, 0, "");
}

static void do_nothing(struct bc_source *source)
{
	(void)source;
}

static const struct bc_source_ops source_ops = {
	.start = start_source,
	.resume = do_nothing,
	.stop = stop_source,
	.close = do_nothing,
};

/* The session */

struct fixture {
	uv_loop_t loop;
	struct bc_pipeline pipeline;
	struct bc_source source;
	struct bc_recording_info recording;
	struct bc_log_limits limits;
	struct bc_session *session;
	uint64_t arrived_ns[STEPS_MAX]; /* of each piece */
	unsigned steps;
	unsigned reported; /* cuts */
};

static void on_limit(void *context, uint32_t at)
{
	(void)context;
	(void)at;
	fail();
}

static void ignore(void *context)
{
	(void)context;
}

static void open_session(struct fixture *f, bool has_flight)
{
	struct bc_pipeline *p = &f->pipeline;

	now_ns = 1000 * MS;
	memset(p, 0, sizeof(*p));
	for (unsigned i = 0; i < SLOTS; i++)
		bc_pipeline_give_back(p, &p->slots[i]);
	f->steps = 0;
	f->reported = 0;
	assert_int_equal(uv_loop_init(&f->loop), 0);
	f->source = (struct bc_source){
		.ops = &source_ops, .kind = "sim", .name = "a script", .is_live = true};
	bc_recording_info_init(&f->recording);
	f->recording.tag = 1;
	const struct bc_session_options options = {
		.loop = &f->loop,
		.pipeline = p,
		.source = &f->source,
		.channel = {.flush_ns = 3600 * 1000 * MS,
			.has_flight = has_flight,
			.flight_limits = {.chunks = 2}},
		.limits = &f->limits,
		.on_limit = on_limit,
		.on_ending = ignore,
		.on_done = ignore,
	};
	assert_int_equal(bc_session_start(&f->session, &options), 0);
}

static void start_recording(struct fixture *f, struct bc_rotation rotation)
{
	const struct bc_stop_rules none = {.records = 0};

	f->pipeline.stats.recording_tag = 1;
	bc_session_start_recording(f->session, &f->recording, &rotation, &none);
}

static void close_session(struct fixture *f)
{
	bc_session_finish_recording(f->session, BC_CHANNEL_NOW);
	bc_session_on_ended(f->session);
	bc_session_stop(f->session);
	uv_run(&f->loop, UV_RUN_NOWAIT);
	bc_session_close(f->session);
	uv_run(&f->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&f->loop), 0);
	bc_recording_info_destroy(&f->recording);
}

/* The loop's turn, then a piece arrives. */
static void step(struct fixture *f)
{
	uint8_t bytes[PIECE * BC_RECORD_BYTES] = {0};

	now_ns = (now_ns / STEP_NS + 1) * STEP_NS;
	uv_run(&f->loop, UV_RUN_NOWAIT);
	for (unsigned i = 0; i < PIECE; i++) {
		bc_write_le32(bytes + i * BC_RECORD_BYTES + 4, MEMREAD | 4u << 8);
		bc_write_le32(bytes + i * BC_RECORD_BYTES + 8, 1);
	}
	const struct bc_source_data data = {
		.format = BC_FORMAT_BYU, .bytes = bytes, .count = sizeof(bytes)};
	assert_true(f->steps < STEPS_MAX);
	f->arrived_ns[f->steps++] = now_ns;
	assert_true(f->source.sink.data(f->source.sink.context, &data));
}

/* The writer has opened another segment. */
static void report(struct fixture *f, uint64_t first_record)
{
	struct bc_writer_stats *stats = &f->pipeline.stats;

	stats->segment++;
	stats->first_record = first_record;
	snprintf(stats->file, sizeof(stats->file), "segment %u", stats->segment);
	bc_session_on_stats(f->session);
}

/* Returns how long after a record's arrival a cut was. */
static uint64_t after(const struct fixture *f, uint64_t record, const struct cut *cut)
{
	return cut->ns - f->arrived_ns[record / PIECE];
}

static void assert_on_time(uint64_t ns, uint64_t due_ns)
{
	assert_in_range(ns, due_ns, due_ns + LATE_NS);
}

static void set_up(struct fixture *f)
{
	(void)f;
	wall_offset_ns = INT64_C(1800000000) * 1000 * (int64_t)MS;
}

TEST_FIXTURE(fixture, set_up, close_session)

/* Tests */

TEST_F(a_segment_lasts_its_duration_however_late_the_writer_reports)
{
	for (unsigned held = 1; held <= 5; held++) {
		const struct cut *cuts = f->pipeline.cuts;
		bool is_reporting = false;
		if (held != 1)
			close_session(f);
		open_session(f, false);
		start_recording(f, (struct bc_rotation){.duration_ns = DURATION_NS});
		report(f, 0);
		while (f->steps < 2000) {
			step(f);
			/* The number of cuts, one after the other. */
			unsigned outstanding = f->pipeline.cuts_count - f->reported;
			is_reporting = outstanding != 0 && (is_reporting || outstanding == held);
			if (is_reporting)
				report(f, cuts[f->reported++].record);
		}
		assert_in_range(f->pipeline.cuts_count, 18, 19);
		for (unsigned i = 0; i < f->pipeline.cuts_count; i++)
			assert_on_time(
				after(f, i == 0 ? 0 : cuts[i - 1].record, &cuts[i]), DURATION_NS);
	}
}

TEST_F(the_duration_starts_again_when_the_writer_cuts_by_size)
{
	const struct cut *cuts = f->pipeline.cuts;

	open_session(f, false);
	start_recording(f, (struct bc_rotation){.duration_ns = DURATION_NS});
	report(f, 0);
	while (f->steps < 60)
		step(f);
	uint64_t reported_ns = now_ns;
	report(f, 50 * PIECE);
	while (f->pipeline.cuts_count == 0)
		step(f);
	assert_on_time(cuts[0].ns - reported_ns, DURATION_NS);
	/* Before that cut, the writer had cut by size once more. */
	while (f->steps < 200)
		step(f);
	report(f, cuts[0].record - 1);
	report(f, cuts[0].record);
	while (f->pipeline.cuts_count == 1)
		step(f);
	assert_on_time(after(f, cuts[0].record, &cuts[1]), DURATION_NS);
}

TEST_F(the_duration_starts_again_after_a_cut_on_request)
{
	const struct cut *cuts = f->pipeline.cuts;

	open_session(f, false);
	start_recording(f, (struct bc_rotation){.duration_ns = DURATION_NS});
	while (f->steps < 60)
		step(f);
	bc_channel_cut(bc_session_channel(f->session));
	while (f->pipeline.cuts_count == 1)
		step(f);
	assert_int_equal(cuts[0].record, 60 * PIECE);
	assert_on_time(after(f, cuts[0].record, &cuts[1]), DURATION_NS);
	report(f, cuts[0].record);
	report(f, cuts[1].record);
	while (f->pipeline.cuts_count == 2)
		step(f);
	assert_on_time(after(f, cuts[1].record, &cuts[2]), DURATION_NS);
}

TEST_F(a_recording_that_starts_in_the_past_is_timed_from_its_start)
{
	open_session(f, true);
	while (f->steps < 60)
		step(f);
	uint64_t started_ns = now_ns;
	start_recording(f, (struct bc_rotation){.duration_ns = DURATION_NS});
	while (f->pipeline.cuts_count == 0)
		step(f);
	assert_on_time(f->pipeline.cuts[0].ns - started_ns, DURATION_NS);
}

/* Whichever looks at the clock the multiple is between. */
TEST_F(no_multiple_of_an_interval_is_missed)
{
	for (unsigned us = 0; us < 50; us++) {
		struct bc_pipeline *p = &f->pipeline;
		if (us != 0)
			close_session(f);
		wall_offset_ns = INT64_C(1800000000) * 1000 * (int64_t)MS - us * 1000;
		open_session(f, false);
		start_recording(f, (struct bc_rotation){.interval_ns = INTERVAL_NS});
		report(f, 0);
		while (f->steps < 200)
			step(f);
		assert_in_range(p->cuts_count, 9, 10);
		for (unsigned i = 0; i < p->cuts_count; i++) {
			uint64_t number = (uint64_t)p->wall_ns[i] / INTERVAL_NS;
			uint64_t due_ns = (number + 1) * INTERVAL_NS - (uint64_t)wall_offset_ns;
			assert_on_time(p->cuts[i].ns, due_ns);
			assert_true(i == 0 || number > (uint64_t)p->wall_ns[i - 1] / INTERVAL_NS);
		}
	}
}

/* The timer of the next multiple may be late. */
TEST_F(a_cut_by_size_does_not_move_a_multiple)
{
	open_session(f, false);
	start_recording(
		f, (struct bc_rotation){.duration_ns = DURATION_NS, .interval_ns = INTERVAL_NS});
	report(f, 0);
	while (f->steps < 10)
		step(f);
	now_ns += INTERVAL_NS;
	report(f, PIECE);
	step(f);
	step(f);
	step(f);
	assert_int_equal(f->pipeline.cuts_count, 1);
}
