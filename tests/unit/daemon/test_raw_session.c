/* Recordings of a scripted source with raw bytes kept. A replay of their raw captures must yield
 * the same records, ticks and gaps, including raw6, whose ticks come from the host's clock. */
#include <stdlib.h>
#include <string.h>

#include "capture/source/file_source.h"
#include "capture/source/source.h"
#include "daemon/base/log.h"
#include "daemon/ingest/pipeline.h"
#include "daemon/ingest/pool.h"
#include "daemon/recorder/session.h"
#include "daemon/store/recording_info.h"
#include "formats/segment/segment_reader.h"
#include "tests/support/dice.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"
#include "tests/support/traces.h"

TEST_THREADS;

#define SAMPLES (400000u / test_stride(2))

/* A source that delivers pieces of a stream, and breaks, some in each loop iteration. */
struct script {
	struct bc_source source;
	uv_idle_t idle;
	enum bc_format format;
	struct dice dice;
	const uint8_t *bytes;
	size_t n;
	size_t at;
	uint64_t now;
	struct bc_source_break broken;
	struct bc_source_data held; /* the refused piece */
	bool is_held;
	bool is_over;
	unsigned pieces;           /* delivered so far */
	unsigned start_after;      /* after this many pieces */
	struct recorder *to_start; /* this recording starts; NULL: none */
};

static void start_recording(struct recorder *r);

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

static bool next_piece(struct script *s)
{
	static const enum bc_gap_cause causes[] = {BC_GAP_UNPLUGGED, BC_GAP_TRANSFER, BC_GAP_BOARD};
	struct bc_source_data data = {.format = s->format};

	if (s->at == s->n)
		return false;
	if (dice_below(&s->dice, 200) == 0) {
		s->broken = (struct bc_source_break){
			.cause = causes[dice_below(&s->dice, 3)],
			.duration_ns = 1 + dice_below(&s->dice, 1000000),
			.is_cut = dice_below(&s->dice, 2) != 0,
			.is_restart = dice_below(&s->dice, 2) != 0,
		};
		s->broken.lost = s->broken.cause == BC_GAP_BOARD ? s->at : 0;
		s->broken.is_restart &= s->broken.cause != BC_GAP_BOARD;
		s->broken.is_cut |= s->broken.is_restart;
		data.broken = &s->broken;
		s->held = data;
		return true;
	}
	size_t most = dice_below(&s->dice, 4) == 0 ? 20 : 3000;
	size_t count = 1 + dice_below(&s->dice, (uint32_t)most);
	data.bytes = s->bytes + s->at;
	data.count = count < s->n - s->at ? count : s->n - s->at;
	data.has_times = true;
	data.since_ns = s->now;
	s->now += dice_below(&s->dice, 5000000);
	data.until_ns = s->now;
	s->at += data.count;
	s->held = data;
	return true;
}

static void on_idle(uv_idle_t *idle)
{
	struct script *s = container_of(idle, struct script, idle);

	for (int i = 0; i < 1000; i++) { /* more than the buffer can contain */
		if (s->to_start != NULL && !s->is_held && s->pieces++ == s->start_after)
			start_recording(s->to_start);
		if (!s->is_held && !next_piece(s)) {
			uv_idle_stop(idle);
			s->is_over = true;
			s->source.sink.end(s->source.sink.context, 0, "");
			return;
		}
		s->is_held = !s->source.sink.data(s->source.sink.context, &s->held);
		if (s->is_held) {
			uv_idle_stop(idle);
			return;
		}
	}
}

static int script_start(struct bc_source *source)
{
	return uv_idle_start(&container_of(source, struct script, source)->idle, on_idle);
}

static void script_resume(struct bc_source *source)
{
	struct script *s = container_of(source, struct script, source);

	if (!s->is_over)
		uv_idle_start(&s->idle, on_idle);
}

static void script_stop(struct bc_source *source)
{
	(void)source;
}

static void script_close(struct bc_source *source)
{
	uv_close((uv_handle_t *)&container_of(source, struct script, source)->idle, NULL);
}

static const struct bc_source_ops script_ops = {
	.start = script_start,
	.resume = script_resume,
	.stop = script_stop,
	.close = script_close,
};

/* A recording as the daemon makes it. */
struct recorder {
	uv_loop_t loop;
	struct bc_pipeline *pipeline;
	struct bc_session *session;
	struct bc_recording_info recording;
	struct bc_mapping mapping;
	struct bc_session_outcome outcome;
	struct bc_counts counts;
	bool is_done;
	bool starts_later; /* by the script */
	uv_idle_t end;
};

static void on_slot_free(void *context)
{
	bc_session_on_slot_free(((struct recorder *)context)->session);
}

static void on_notice(void *context, const struct bc_writer_notice *notice)
{
	if (notice->kind == BC_NOTICE_ENDED)
		bc_session_on_ended(((struct recorder *)context)->session);
}

static void on_stats(void *context)
{
	struct recorder *r = context;

	if (r->session != NULL && !r->is_done)
		bc_session_on_stats(r->session);
}

static void on_end(uv_idle_t *idle)
{
	struct recorder *r = idle->data;

	r->outcome = *bc_session_outcome(r->session);
	r->counts = *bc_pipeline_counts(r->pipeline);
	bc_session_close(r->session);
	bc_pipeline_close(r->pipeline);
	uv_close((uv_handle_t *)idle, NULL);
}

static void on_done(void *context)
{
	struct recorder *r = context;

	r->is_done = true;
	uv_idle_start(&r->end, on_end);
}

static void start_recording(struct recorder *r)
{
	const struct bc_session_recording what = {.recording = &r->recording};
	const struct bc_time_or_size nothing = {.unit = BC_TIME_OR_SIZE_NONE};
	int64_t wall_ns;

	bc_channel_trim(bc_session_channel(r->session), &nothing, BC_CHANNEL_NOW, &wall_ns);
	bc_session_start_recording(r->session, &what);
}

static void record(struct recorder *r, struct temp_dir *dir, const char *id,
	struct bc_source *source, bool keeps_raw)
{
	const struct bc_mapping_options mapping = bc_mapping_options_default();
	struct bc_pipeline_options pipeline = {
		.buffer_bytes = bc_pool_min_bytes(1, keeps_raw),
		.workers = 1,
		.keeps_raw = keeps_raw,
		.dir = dir->path,
		.dir_fd = dir->fd,
		.rules = {.sync_ns = 200000000, .rotation.file_bytes = 300000},
		.context = r,
		.on_slot_free = on_slot_free,
		.on_notice = on_notice,
		.on_stats = on_stats,
	};
	struct bc_session_options session = {
		.loop = &r->loop,
		.source = source,
		.mapping = &r->mapping,
		.channel = {.keeps_raw = keeps_raw, .flush_ns = 1000000000},
		.ends_with_recording = true,
		.context = r,
		.on_done = on_done,
	};

	bc_mapping_init(&r->mapping, &mapping);
	snprintf(r->recording.header.recording, BC_RECORDING_ID_MAX, "%s", id);
	snprintf(r->recording.header.source_kind, 16, "%s", source->kind);
	r->recording.tag = bc_recording_tag(id);
	r->recording.header.clock_hz = source->clock_hz;
	assert_int_equal(uv_idle_init(&r->loop, &r->end), 0);
	r->end.data = r;
	assert_int_equal(bc_pipeline_open(&r->pipeline, &r->loop, &pipeline), 0);
	session.pipeline = r->pipeline;
	assert_int_equal(bc_session_start(&r->session, &session), 0);
	if (!r->starts_later)
		start_recording(r);
	uv_run(&r->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&r->loop), 0);
	assert_true(r->is_done);
	assert_true(bc_counts_add_up(&r->counts));
	assert_int_equal(r->counts.in_flight, 0);
}

/* The contents of a recording, independent of chunk boundaries and wall times. */
struct reported {
	uint8_t *records;
	size_t n;
	char *events; /* as text, each with its record and tick */
	size_t events_bytes;
};

static void describe_chunk(
	struct reported *reported, FILE *events, const struct bc_chunk *chunk, bool is_first)
{
	size_t bytes = (size_t)chunk->info.records * BC_RECORD_BYTES;

	reported->records = realloc(reported->records, reported->n + bytes + 1);
	assert_non_null(reported->records);
	memcpy(reported->records + reported->n, chunk->records, bytes);
	reported->n += bytes;
	if (is_first)
		fprintf(events, "tick %llu\n", (unsigned long long)chunk->info.first_tick);
	for (uint32_t i = 0; i < chunk->info.events; i++) {
		const struct bc_event *event = &chunk->events[i];
		fprintf(events, "%llu epoch %u: %u %u %u %llu %llu\n",
			(unsigned long long)(chunk->info.first_record + event->position),
			(unsigned)chunk->info.epoch, event->kind, event->cause, event->exact,
			(unsigned long long)event->value, (unsigned long long)event->duration_ns);
	}
}

static struct reported describe(struct temp_dir *dir, const char *id)
{
	struct reported reported = {.n = 0};
	FILE *events = open_memstream(&reported.events, &reported.events_bytes);
	struct bc_chunk *chunk = malloc(sizeof(*chunk));
	struct bc_segment_reader *reader;
	char *names[TEMP_NAMES];
	size_t count = temp_list(dir, id, ".byu.lz4", names);
	bool is_first = true;
	int found;

	assert_non_null(chunk);
	assert_true(count > 0);
	for (size_t i = 0; i < count; i++) {
		int fd = openat(dir->fd, names[i], O_RDONLY | O_CLOEXEC);
		assert_int_equal(
			bc_segment_reader_open(&reader,
				(struct bc_input_stream){.fd = fd, .wake_fd = -1}, NULL, 0),
			0);
		while ((found = bc_segment_read(reader, chunk)) > BC_FOUND_END) {
			assert_int_not_equal(found, BC_FOUND_DAMAGE);
			if (found != BC_FOUND_CHUNK)
				continue;
			describe_chunk(&reported, events, chunk, is_first);
			is_first = false;
		}
		bc_segment_reader_close(reader);
		close(fd);
		free(names[i]);
	}
	fclose(events);
	free(chunk);
	return reported;
}

static void free_reported(struct reported *reported)
{
	free(reported->records);
	free(reported->events);
}

/* Concatenates the raw captures. Returns their number. */
static size_t join_captures(struct temp_dir *dir, const char *id, const char *suffix)
{
	char *names[TEMP_NAMES];
	size_t count = temp_list(dir, id, suffix, names);
	uint8_t *all = NULL;
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		size_t bytes;
		uint8_t *one = temp_read(dir, names[i], &bytes);
		all = realloc(all, n + bytes);
		assert_non_null(all);
		memcpy(all + n, one, bytes);
		n += bytes;
		free(one);
		free(names[i]);
	}
	temp_write(dir, "joined", all, n);
	free(all);
	return count;
}

/* Records the stream with raw bytes, from its start or, if live->starts_later, after some pieces.
 * Then replays the raw captures. Both must have the same records. */
static void record_and_replay(struct recorder *live, struct recorder *again, enum bc_format format,
	const struct trace *trace, unsigned after)
{
	static const char *const ids[] = {"20261120T091500Z-000001", "20261120T091500Z-000002"};
	const char *suffix = format == BC_FORMAT_RAW6 ? ".raw6.lz4" : ".bcp1.lz4";
	struct script script = {
		.source = {.ops = &script_ops,
			.kind = "usb",
			.name = "a board",
			.is_live = false, /* it waits, so nothing is lost */
			.clock_hz = 66000000},
		.format = format,
		.dice.state = 17 + after,
		.bytes = trace->bytes,
		.n = trace->n,
		.start_after = after,
		.to_start = live->starts_later ? live : NULL,
	};
	struct temp_dir dir;
	struct bc_source *source;
	char path[TEMP_PATH_BYTES];

	bc_log_set_level(BC_LOG_ERROR);
	temp_dir_make(&dir);
	assert_int_equal(uv_loop_init(&live->loop), 0);
	assert_int_equal(uv_idle_init(&live->loop, &script.idle), 0);
	record(live, &dir, ids[0], &script.source, true);
	assert_true(join_captures(&dir, ids[0], suffix) >= (live->starts_later ? 1 : 2));

	struct bc_file_options options = {.path = temp_path(&dir, "joined", path)};
	assert_int_equal(uv_loop_init(&again->loop), 0);
	assert_int_equal(bc_file_source_open(&source, &again->loop, &options), 0);
	record(again, &dir, ids[1], source, false);
	assert_int_equal(again->counts.written, live->counts.written);
	struct reported a = describe(&dir, ids[0]);
	struct reported b = describe(&dir, ids[1]);
	assert_int_equal(a.n, b.n);
	assert_memory_equal(a.records, b.records, a.n);
	if (!live->starts_later)
		assert_string_equal(a.events, b.events);
	free_reported(&a);
	free_reported(&b);
	temp_dir_remove(&dir);
}

static void check_replay(enum bc_format format, const struct trace *trace)
{
	struct recorder live = {.starts_later = false};
	struct recorder again = {.starts_later = false};

	record_and_replay(&live, &again, format, trace, 0);
	assert_true(live.counts.written > 1000);
	assert_int_equal(live.counts.raw_dropped_bytes, 0);
	assert_int_equal(live.counts.dropped_buffer + live.counts.dropped_disk, 0);
	assert_true(live.outcome.breaks > 0);
	assert_int_equal(again.counts.received, live.counts.received);
	assert_int_equal(
		again.counts.losses.lost[BC_GAP_BOARD], live.counts.losses.lost[BC_GAP_BOARD]);
	assert_int_equal(again.outcome.breaks, live.outcome.breaks);
	/* A replay can't know whether the board or a stop has cut off the last sample. */
	assert_in_range(live.counts.skipped_bytes - again.counts.skipped_bytes, 0, 5);
	assert_in_range(live.outcome.damages - again.outcome.damages, 0, 1);
	assert_int_equal(again.recording.header.clock_hz, 66000000);
}

TEST(raw6_is_replayed_with_its_times_and_breaks)
{
	struct trace bcp1 = trace_of_sim(3, SAMPLES, 2);
	struct trace raw6 = trace_to_raw6(&bcp1);

	check_replay(BC_FORMAT_RAW6, &raw6);
	trace_free(&raw6);
	trace_free(&bcp1);
}

TEST(bcp1_is_replayed_with_its_breaks)
{
	struct trace bcp1 = trace_of_sim(4, SAMPLES, 2);

	check_replay(BC_FORMAT_BCP1, &bcp1);
	trace_free(&bcp1);
}

static void check_started_within(enum bc_format format, const struct trace *trace, unsigned after)
{
	struct recorder live = {.starts_later = true};
	struct recorder again = {.starts_later = false};

	record_and_replay(&live, &again, format, trace, after);
	assert_int_equal(
		live.counts.written + live.counts.dropped_idle + live.counts.dropped_invalid,
		live.counts.received);
}

TEST(a_recording_that_starts_within_a_frame_or_sample_is_replayed_from_its_first_record)
{
	struct trace bcp1 = trace_of_sim(5, 10000, 2);
	struct trace raw6 = trace_to_raw6(&bcp1);

	for (unsigned after = 0; after < 24; after += test_stride(5)) {
		check_started_within(BC_FORMAT_BCP1, &bcp1, after);
		check_started_within(BC_FORMAT_RAW6, &raw6, after);
	}
	trace_free(&raw6);
	trace_free(&bcp1);
}
