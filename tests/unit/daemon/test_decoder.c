/* Decoder and pipeline together, on a loop, writing to a directory: the result does not depend on
 * how the stream is cut into pieces. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/sim/sim.h"
#include "capture/source/source.h"
#include "daemon/base/log.h"
#include "daemon/ingest/channel.h"
#include "daemon/ingest/decoder.h"
#include "daemon/ingest/pipeline.h"
#include "daemon/store/catalogue_listing.h"
#include "daemon/store/recording_info.h"
#include "formats/bus/sample.h"
#include "formats/bus/stamp.h"
#include "formats/segment/segment_reader.h"
#include "tests/support/segments.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

TEST_THREADS;

#define FRAME_AT(samples) ((size_t)BC_BCP1_HEADER_BYTES + (samples)*8 + 4)

#define STREAM_MAX 65536u
#define OUT_MAX    (16u << 20)

/* How many events and ticks of a recording the fixture keeps. */
#define EVENTS_MAX 64
#define TICKS_MAX  64

struct seen_event {
	struct bc_event event;
	uint64_t record; /* number of the record after it */
	uint32_t epoch;
};

struct seen_tick {
	uint64_t tick;
	uint32_t time;
	uint32_t epoch;
};

struct fixture {
	struct temp_dir dir;
	uv_loop_t loop;
	struct bc_mapping mapping;
	struct bc_recording_info recording;
	struct bc_catalogue *catalogue;
	struct bc_pipeline *pipeline;
	struct bc_channel *channel;
	struct bc_decoder *decoder;
	bool is_ended;
	unsigned damages;
	unsigned lasts;       /* calls of on_last() */
	uint64_t limit_step;  /* added to the tick limit each time it is reached; 0: no limit */
	uint8_t out[OUT_MAX]; /* the records of all segments */
	size_t out_bytes;
	uint64_t lost; /* by the gap events in them */
	unsigned gaps;
	struct seen_event events[EVENTS_MAX];
	unsigned events_count;
	struct seen_tick ticks[TICKS_MAX];
	struct bc_counts counts;
};

static void on_notice(void *context, const struct bc_writer_notice *notice)
{
	if (notice->kind == BC_NOTICE_ENDED)
		((struct fixture *)context)->is_ended = true;
}

static void on_nothing(void *context)
{
	(void)context;
}

static void on_epoch(void *context, uint64_t tick)
{
	struct fixture *f = context;

	if (f->limit_step != 0)
		bc_decoder_set_tick_limit(f->decoder, tick + f->limit_step);
}

static enum bc_limit_answer on_limit(void *context, uint64_t tick)
{
	struct fixture *f = context;

	bc_channel_cut(f->channel);
	bc_decoder_set_tick_limit(f->decoder, tick + f->limit_step);
	return BC_LIMIT_CONTINUE;
}

static void on_last(void *context)
{
	struct fixture *f = context;

	f->lasts++;
}

static void on_damage(void *context, const char *what)
{
	(void)what;
	((struct fixture *)context)->damages++;
}

static void set_up(struct fixture *f)
{
	const struct bc_mapping_options options = bc_mapping_options_default();

	bc_log_set_level(BC_LOG_ERROR);
	temp_dir_make(&f->dir);
	assert_int_equal(bc_catalogue_open(&f->catalogue, f->dir.fd), 0);
	assert_int_equal(bc_catalogue_refresh(f->catalogue), 0);
	bc_mapping_init(&f->mapping, &options);
	snprintf(f->recording.header.recording, BC_RECORDING_ID_MAX, "20260101T000000Z-000000");
}

static void tear_down(struct fixture *f)
{
	bc_catalogue_stop(f->catalogue);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

/* flight_chunks: of the flight recorder; 0: there is none. */
static void open_pipeline(struct fixture *f, bool is_live, unsigned flight_chunks)
{
	struct bc_pipeline_options pipeline = {
		.buffer_bytes = bc_pipeline_min_bytes(1) + 2 * sizeof(struct bc_slot),
		.workers = 1,
		.dir = f->dir.path,
		.dir_fd = f->dir.fd,
		.catalogue = f->catalogue,
		.rules = {.sync_ns = UINT64_C(1000000000000)},
		.context = f,
		.on_slot_free = on_nothing,
		.on_notice = on_notice,
		.on_stats = on_nothing,
	};
	struct bc_channel_options channel = {
		.loop = &f->loop,
		.flush_ns = UINT64_C(1000000000000),
		.has_flight = flight_chunks != 0,
		.flight_limits.chunks = flight_chunks,
	};
	struct bc_decoder_options decoder = {
		.mapping = &f->mapping,
		.is_live = is_live,
		.context = f,
		.on_epoch = on_epoch,
		.on_limit = on_limit,
		.on_last = on_last,
		.on_damage = on_damage,
	};

	f->lasts = 0;
	f->is_ended = false;
	f->damages = 0;
	assert_int_equal(uv_loop_init(&f->loop), 0);
	assert_int_equal(bc_pipeline_open(&f->pipeline, &f->loop, &pipeline), 0);
	channel.pipeline = f->pipeline;
	assert_int_equal(bc_channel_open(&f->channel, &channel), 0);
	decoder.channel = f->channel;
	assert_int_equal(bc_decoder_open(&f->decoder, &decoder), 0);
}

static void start_recording(struct fixture *f, enum bc_time_or_size_unit before)
{
	const struct bc_time_or_size length = {.unit = before};
	int64_t wall_ns;

	bc_channel_trim(f->channel, &length, BC_CHANNEL_NOW, &wall_ns);
	bc_channel_start_recording(f->channel, &f->recording, 0);
}

static void start_pipeline(struct fixture *f, bool is_live)
{
	open_pipeline(f, is_live, 0);
	start_recording(f, BC_TIME_OR_SIZE_NONE);
}

static void check_counts(const struct fixture *f)
{
	assert_true(bc_counts_add_up(bc_pipeline_counts(f->pipeline)));
}

static void push_data(struct fixture *f, const struct bc_source_data *data)
{
	while (!bc_decoder_push(f->decoder, data)) {
		check_counts(f);
		uv_run(&f->loop, UV_RUN_ONCE);
	}
	check_counts(f);
}

static void push_bytes(struct fixture *f, enum bc_format format, const uint8_t *bytes, size_t count)
{
	/* A copy of the exact size, freed afterwards, so that a sanitizer detects reads past its
	 * end or after the call. */
	uint8_t *copy = malloc(count + 1);
	const struct bc_source_data data = {.format = format, .bytes = copy, .count = count};

	memcpy(copy, bytes, count);
	push_data(f, &data);
	memset(copy, 0xEE, count);
	free(copy);
}

static void push_break(struct fixture *f, enum bc_format format, struct bc_source_break broken)
{
	const struct bc_source_data data = {.format = format, .broken = &broken};

	push_data(f, &data);
}

static void read_events(struct fixture *f, const struct bc_chunk *chunk)
{
	for (uint32_t i = 0; i < chunk->info.events && f->events_count < EVENTS_MAX; i++)
		f->events[f->events_count++] = (struct seen_event){
			.event = chunk->events[i],
			.record = f->out_bytes / BC_RECORD_BYTES + chunk->events[i].position,
			.epoch = chunk->info.epoch,
		};
}

static void read_ticks(struct fixture *f, const struct bc_chunk *chunk)
{
	uint64_t tick = chunk->info.first_tick;

	for (uint32_t i = 0; i < chunk->info.records; i++) {
		uint64_t record = f->out_bytes / BC_RECORD_BYTES + i;
		uint32_t time = bc_le32(chunk->records + (size_t)i * BC_RECORD_BYTES + 8);
		if (record >= TICKS_MAX)
			return;
		if (i != 0)
			tick += time;
		f->ticks[record] = (struct seen_tick){tick, time, chunk->info.epoch};
	}
}

/* Appends a segment's records to f->out and deletes it. */
static void read_segment(struct fixture *f, const char *name)
{
	static struct bc_chunk chunk;
	int found;
	int fd = openat(f->dir.fd, name, O_RDONLY);

	assert_true(fd >= 0);
	struct bc_segment_reader *reader = segment_reader_of(fd);
	while ((found = bc_segment_read(reader, &chunk)) != BC_FOUND_END) {
		assert_true(found > 0 && found != BC_FOUND_DAMAGE);
		if (found != BC_FOUND_CHUNK)
			continue;
		read_events(f, &chunk);
		read_ticks(f, &chunk);
		size_t bytes = (size_t)chunk.info.records * BC_RECORD_BYTES;
		assert_true(f->out_bytes + bytes <= OUT_MAX);
		memcpy(f->out + f->out_bytes, chunk.records, bytes);
		f->out_bytes += bytes;
		for (uint32_t i = 0; i < chunk.info.events; i++) {
			if (chunk.events[i].kind != BC_EVENT_GAP)
				continue;
			f->gaps++;
			f->lost += chunk.events[i].value;
		}
	}
	assert_true(bc_segment_reader_is_sealed(reader));
	bc_segment_reader_close(reader);
	close(fd);
	unlinkat(f->dir.fd, name, 0);
}

static void read_segments(struct fixture *f)
{
	char *names[TEMP_NAMES];
	size_t count = temp_list(&f->dir, "", "", names);

	f->out_bytes = 0;
	f->gaps = 0;
	f->lost = 0;
	f->events_count = 0;
	for (size_t i = 0; i < count; i++) {
		read_segment(f, names[i]);
		free(names[i]);
	}
}

static void finish_pipeline(struct fixture *f)
{
	while (!bc_decoder_finish(f->decoder))
		uv_run(&f->loop, UV_RUN_ONCE);
	bc_channel_finish_recording(f->channel, BC_CHANNEL_NOW);
	while (!f->is_ended) {
		uv_run(&f->loop, UV_RUN_ONCE);
		bc_channel_on_slot_free(f->channel);
	}
	check_counts(f);
	f->counts = *bc_pipeline_counts(f->pipeline);
	assert_int_equal(f->counts.in_flight, 0);
	bc_decoder_close(f->decoder);
	bc_channel_close(f->channel);
	bc_pipeline_close(f->pipeline);
	uv_run(&f->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&f->loop), 0);
	read_segments(f);
}

struct expected {
	uint8_t out[OUT_MAX];
	size_t out_bytes;
	struct bc_counts counts;
	unsigned damages;
};

/* Runs the stream whole, then cut in two at every place, then in pieces of 1 to 9 bytes, and
 * compares the results. A part of it ends at `part`. */
static void check_every_cut(
	struct fixture *f, enum bc_format format, const uint8_t *stream, size_t bytes, size_t part)
{
	const struct test_edges edges = {3, {0, part, bytes}};
	struct expected *first = calloc(1, sizeof(*first));

	for (size_t cut = 0; cut <= bytes + 9;
		cut = cut < bytes ? test_next(cut, 95, &edges) : cut + 1) {
		start_pipeline(f, false);
		if (cut <= bytes) {
			push_bytes(f, format, stream, cut);
			push_bytes(f, format, stream + cut, bytes - cut);
		} else {
			size_t piece = cut - bytes;
			for (size_t at = 0; at < bytes; at += piece)
				push_bytes(f, format, stream + at,
					bytes - at < piece ? bytes - at : piece);
		}
		finish_pipeline(f);
		if (cut == 0) {
			memcpy(first->out, f->out, f->out_bytes);
			first->out_bytes = f->out_bytes;
			first->counts = f->counts;
			first->damages = f->damages;
			assert_true(f->out_bytes != 0);
			continue;
		}
		assert_int_equal(f->out_bytes, first->out_bytes);
		assert_memory_equal(f->out, first->out, f->out_bytes);
		assert_memory_equal(&f->counts, &first->counts, sizeof(f->counts));
		assert_int_equal(f->damages, first->damages);
		assert_int_equal(f->gaps, bc_losses_sum(&f->counts.losses).gaps);
	}
	free(first);
}

static size_t make_bcp1(uint8_t *out, uint64_t samples, uint32_t frame_samples, uint32_t ppm)
{
	struct bc_sim_options options = {
		.seed = 3,
		.count = samples,
		.agents = 2,
		.loss_ppm = ppm,
		.corrupt_ppm = ppm,
	};
	struct bc_sim *sim;
	size_t bytes = 0;
	size_t n;

	assert_int_equal(bc_sim_open(&sim, &options), 0);
	while (bytes + BC_SIM_FRAME_MAX <= STREAM_MAX &&
		(n = bc_sim_next(sim, frame_samples, UINT64_MAX, out + bytes)) != 0)
		bytes += n;
	bc_sim_close(sim);
	return bytes;
}

TEST_F(frames_cut_anywhere_give_the_same_records)
{
	static uint8_t stream[STREAM_MAX];
	size_t bytes = make_bcp1(stream, 40, 7, 0);

	check_every_cut(f, BC_FORMAT_BCP1, stream, bytes, FRAME_AT(7));
}

TEST_F(damaged_frames_cut_anywhere_give_the_same_gaps)
{
	static uint8_t stream[STREAM_MAX];
	size_t bytes = make_bcp1(stream, 40, 5, 300000);

	memcpy(stream + bytes, "BCP1BCBCP", 9); /* and a torn end */
	check_every_cut(f, BC_FORMAT_BCP1, stream, bytes + 9, bytes);
	assert_true(f->damages != 0);
	assert_true(f->counts.skipped_bytes >= 9);
}

/* Decodes `stopped_at` bytes of a stream of 4 frames of 5 samples, tells the decoder that the
 * source was stopped, and decodes the rest. */
static void decode_and_stop(
	struct fixture *f, const uint8_t *stream, size_t bytes, size_t stopped_at)
{
	start_pipeline(f, false);
	push_bytes(f, BC_FORMAT_BCP1, stream, stopped_at);
	bc_decoder_stop(f->decoder);
	push_bytes(f, BC_FORMAT_BCP1, stream + stopped_at, bytes - stopped_at);
	finish_pipeline(f);
}

static void check_undamaged(const struct fixture *f, uint64_t records)
{
	assert_int_equal(f->out_bytes, records * BC_RECORD_BYTES);
	assert_int_equal(f->gaps, 0);
	assert_int_equal(f->damages, 0);
	assert_int_equal(f->counts.skipped_bytes, 0);
}

TEST_F(a_stop_at_any_byte_ends_with_the_last_whole_frame)
{
	static uint8_t stream[STREAM_MAX];
	size_t frame = FRAME_AT(5);

	make_bcp1(stream, 20, 5, 0);
	for (size_t bytes = 2 * frame; bytes < 3 * frame; bytes++) {
		decode_and_stop(f, stream, bytes, bytes - bytes % 7);
		check_undamaged(f, 10);
	}
}

/* Garbage follows the torn frame, also so much that its bytes are complete. */
TEST_F(garbage_after_a_stop_is_no_damage)
{
	static uint8_t stream[STREAM_MAX];
	size_t frame = FRAME_AT(5);

	make_bcp1(stream, 20, 5, 0);
	memset(stream + 2 * frame + frame / 2, 0x5A, 5 * frame);
	for (size_t bytes = 2 * frame; bytes < 7 * frame; bytes += 3) {
		decode_and_stop(f, stream, bytes, frame);
		check_undamaged(f, 10);
	}
}

TEST_F(a_damaged_frame_after_a_stop_is_damage_if_another_follows_it)
{
	static uint8_t stream[STREAM_MAX];
	size_t frame = FRAME_AT(5);
	size_t bytes = make_bcp1(stream, 20, 5, 0);

	stream[2 * frame - 1] ^= 1;
	for (size_t at = 0; at <= bytes; at += 11) {
		decode_and_stop(f, stream, bytes, at);
		assert_int_equal(f->out_bytes, 15 * BC_RECORD_BYTES);
		assert_int_equal(f->gaps, 1);
		assert_int_equal(f->lost, 5);
		assert_int_equal(f->damages, 1);
	}
}

/* The torn frame's length reaches beyond the frames that follow it. */
TEST_F(whole_frames_within_a_torn_one_are_found_after_a_stop)
{
	static uint8_t stream[STREAM_MAX];
	static uint8_t torn[STREAM_MAX];
	size_t small = FRAME_AT(5);

	make_bcp1(torn, 200, 100, 0);
	make_bcp1(stream, 10, 5, 0);
	memcpy(torn + FRAME_AT(3), stream, 2 * small);
	decode_and_stop(f, torn, FRAME_AT(3) + 2 * small, 0);
	assert_int_equal(f->out_bytes, 10 * BC_RECORD_BYTES);
	assert_int_equal(f->lost, 100);
}

TEST_F(a_raw6_sample_cut_by_a_stop_is_no_damage)
{
	static const uint8_t stream[6 * 10];

	for (size_t bytes = 6; bytes < 12; bytes++) {
		start_pipeline(f, false);
		push_bytes(f, BC_FORMAT_RAW6, stream, bytes);
		bc_decoder_stop(f->decoder);
		finish_pipeline(f);
		assert_int_equal(f->counts.received, 1);
		assert_int_equal(f->counts.skipped_bytes, 0);
		assert_int_equal(f->damages, 0);
	}
}

TEST_F(plain_formats_cut_anywhere_give_the_same_records)
{
	static const enum bc_format formats[] = {
		BC_FORMAT_RAW6, BC_FORMAT_BYU, BC_FORMAT_BYU_BE, BC_FORMAT_BYU16, BC_FORMAT_BYU24};
	static uint8_t stream[24 * 5 + 3];

	for (size_t i = 0; i < sizeof(stream); i++)
		stream[i] = (uint8_t)(i * 37 % 256);
	for (size_t record = 0; record < 5; record++) {
		/* Small numbers, for the dialects with 64-bit fields. */
		memset(stream + record * 24 + 4, 0, 4);
		memset(stream + record * 24 + 20, 0, 4);
	}
	for (size_t i = 0; i < COUNT_OF(formats); i++)
		check_every_cut(f, formats[i], stream, sizeof(stream), 24);
}

TEST_F(a_value_that_does_not_fit_leaves_a_gap_at_its_place)
{
	uint8_t stream[24 * 4] = {0};

	for (uint8_t i = 0; i < 4; i++)
		stream[24 * i] = i;
	stream[24 * 2 + 4] = 1; /* the address of record 2 has 33 bits */
	start_pipeline(f, false);
	push_bytes(f, BC_FORMAT_BYU24, stream, sizeof(stream));
	finish_pipeline(f);
	assert_int_equal(f->out_bytes, 3 * BC_RECORD_BYTES);
	assert_int_equal(f->out[0], 0);
	assert_int_equal(f->out[BC_RECORD_BYTES], 1);
	assert_int_equal(f->out[2 * BC_RECORD_BYTES], 3);
	assert_int_equal(f->gaps, 1);
	assert_int_equal(f->lost, 1);
	assert_int_equal(f->damages, 1);
}

TEST_F(segments_cut_at_any_tick_contain_the_same_records)
{
	static uint8_t stream[STREAM_MAX];
	static uint8_t whole[OUT_MAX];
	size_t bytes = make_bcp1(stream, 60, 16, 0);

	start_pipeline(f, false);
	push_bytes(f, BC_FORMAT_BCP1, stream, bytes);
	finish_pipeline(f);
	size_t whole_bytes = f->out_bytes;
	memcpy(whole, f->out, whole_bytes);
	for (f->limit_step = 1; f->limit_step < 200; f->limit_step += 11 * test_stride(5)) {
		start_pipeline(f, false);
		push_bytes(f, BC_FORMAT_BCP1, stream, bytes);
		finish_pipeline(f);
		assert_int_equal(f->out_bytes, whole_bytes);
		assert_memory_equal(f->out, whole, whole_bytes);
	}
	f->limit_step = 0;
}

static void move_dir(const char *from, const char *from_suffix, const char *to_suffix)
{
	char paths[2][256];

	snprintf(paths[0], sizeof(paths[0]), "%s%s", from, from_suffix);
	snprintf(paths[1], sizeof(paths[1]), "%s%s", from, to_suffix);
	assert_int_equal(rename(paths[0], paths[1]), 0);
}

/* Replaces the directory by one that cannot be written to, until restore_dir(); nothing is at its
 * path. */
static int replace_dir(struct fixture *f)
{
	int dir = dup(f->dir.fd);
	int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(dir >= 0 && nothing >= 0);
	assert_int_equal(dup2(nothing, f->dir.fd), f->dir.fd);
	close(nothing);
	move_dir(f->dir.path, "", ".away");
	return dir;
}

static void restore_dir(struct fixture *f, int dir)
{
	move_dir(f->dir.path, ".away", "");
	assert_int_equal(dup2(dir, f->dir.fd), f->dir.fd);
	close(dir);
}

/* A frame of `samples` from `tick` on, three ticks apart. */
static size_t write_frame(uint8_t *out, const struct bc_bcp1_header *header)
{
	for (uint32_t i = 0; i < header->samples; i++) {
		uint8_t *sample = out + BC_BCP1_HEADER_BYTES + (size_t)i * 8;
		memcpy(sample, (uint8_t[]){0, 0, 0, 0, 0xFE, 0xD0, i == 0 ? 0 : 3, 0}, 8);
	}
	return bc_bcp1_write_frame(out, header);
}

/* More than five chunks and two outputs contain (611,667 records) while the disk accepts nothing: a
 * live source loses the rest, and the file contains the gaps. */
#define TOO_MANY_FRAMES 310u
#define FRAME_SAMPLES   2048u
#define TOO_MANY        (TOO_MANY_FRAMES * FRAME_SAMPLES)

/* An address that differs from the next. */
static uint32_t address_of(uint32_t n)
{
	return n * 2654435761u & ~7u;
}

/* Writes frame number `sequence` of a stream without losses; `repeated` samples each have the same
 * address. If it is 1, an encoded chunk has more than half of its bytes. */
static size_t write_next_frame(uint8_t *out, uint32_t sequence, uint32_t repeated)
{
	const struct bc_bcp1_header header = {.sequence = sequence,
		.samples = FRAME_SAMPLES,
		.tick = 1000 + UINT64_C(3) * FRAME_SAMPLES * sequence};

	write_frame(out, &header);
	for (uint32_t i = 0; i < FRAME_SAMPLES; i++)
		bc_write_be32(out + BC_BCP1_HEADER_BYTES + (size_t)i * 8,
			address_of((sequence * FRAME_SAMPLES + i) / repeated));
	return bc_bcp1_write_frame(out, &header);
}

/* Of what compresses, as much is not too much. */
TEST_F(more_chunks_than_fit_into_the_buffer_wait_packed)
{
	static uint8_t frame[BC_BCP1_FRAME_MAX];

	int dir = replace_dir(f);
	start_pipeline(f, true);
	for (uint32_t i = 0; i < TOO_MANY_FRAMES; i++) {
		push_bytes(f, BC_FORMAT_BCP1, frame, write_next_frame(frame, i, 100));
		while (bc_pipeline_is_busy(f->pipeline))
			uv_run(&f->loop, UV_RUN_NOWAIT);
	}
	struct bc_buffer_state buffer = bc_pipeline_buffer(f->pipeline);
	assert_true(buffer.records_left > buffer.free * BC_CHUNK_RECORDS);
	assert_int_equal(bc_pipeline_counts(f->pipeline)->in_flight, TOO_MANY);
	restore_dir(f, dir);
	finish_pipeline(f);
	assert_int_equal(f->lost, 0);
	assert_int_equal(f->out_bytes, TOO_MANY * BC_RECORD_BYTES);
	for (uint32_t i = 0; i < TOO_MANY; i++)
		assert_int_equal(bc_le32(f->out + i * BC_RECORD_BYTES), address_of(i / 100));
}

TEST_F(losses_of_a_live_source_are_recorded)
{
	static uint8_t frame[BC_BCP1_FRAME_MAX];

	int dir = replace_dir(f);
	start_pipeline(f, true);
	for (uint32_t i = 0; i < TOO_MANY_FRAMES; i++) {
		push_bytes(f, BC_FORMAT_BCP1, frame, write_next_frame(frame, i, 1));
		if (i % 64 == 63)
			uv_run(&f->loop, UV_RUN_NOWAIT);
	}
	restore_dir(f, dir);
	finish_pipeline(f);
	assert_int_equal(f->counts.received, TOO_MANY);
	assert_true(f->lost != 0);
	assert_int_equal(f->lost, f->counts.dropped_buffer + f->counts.dropped_disk);
	assert_int_equal(f->gaps, bc_losses_sum(&f->counts.losses).gaps);
	assert_int_equal(f->out_bytes, f->counts.written * BC_RECORD_BYTES);
}

/* That chunk has no space for the anchor of its first record, so its records are dropped. */
TEST_F(a_recording_that_starts_with_a_chunk_full_of_events_has_no_delta_at_its_start)
{
	uint8_t record[BC_RECORD_BYTES] = {0};
	struct bc_event mark = {.kind = BC_EVENT_MARK};

	bc_write_le32(record + 8, 5);
	open_pipeline(f, true, 2);
	for (uint8_t chunk = 0; chunk < 3; chunk++) {
		for (uint8_t i = 0; i < 3; i++) {
			record[0] = (uint8_t)(3 * chunk + i);
			push_bytes(f, BC_FORMAT_BYU, record, sizeof(record));
		}
		for (unsigned i = 0; chunk == 1 && i < BC_CHUNK_EVENTS; i++)
			assert_true(bc_channel_mark(f->channel, &mark, NULL));
		bc_channel_submit(f->channel);
	}
	start_recording(f, BC_TIME_OR_SIZE_ALL);
	finish_pipeline(f);
	assert_int_equal(f->out_bytes, 3 * BC_RECORD_BYTES);
	assert_int_equal(f->out[0], 6);
	assert_int_equal(f->ticks[0].time, BC_TIME_NONE);
	assert_int_equal(f->ticks[1].time, 5);
}

/* Breaks */

/* As caused by an overflow or stall, and by an unplug. */
static const struct bc_source_break transfer_break = {
	.cause = BC_GAP_TRANSFER, .duration_ns = 12345, .is_cut = true};

static const struct bc_source_break uncut_break = {.cause = BC_GAP_TRANSFER, .duration_ns = 12345};

static const struct bc_source_break unplug_break = {
	.cause = BC_GAP_UNPLUGGED, .duration_ns = 12345, .is_cut = true, .is_restart = true};

static const struct seen_event *find_gap(const struct fixture *f, enum bc_gap_cause cause)
{
	for (unsigned i = 0; i < f->events_count; i++)
		if (f->events[i].event.kind == BC_EVENT_GAP && f->events[i].event.cause == cause)
			return &f->events[i];
	return NULL;
}

static void check_gap(
	const struct fixture *f, const struct bc_source_break *broken, uint64_t record)
{
	const struct seen_event *gap = find_gap(f, broken->cause);

	assert_non_null(gap);
	assert_int_equal(gap->record, record);
	assert_int_equal(gap->event.value, 0);
	assert_false(gap->event.exact);
	assert_int_equal(gap->event.duration_ns, broken->duration_ns);
}

/* A frame and the first `cut` bytes of a second, then the break, then another frame. */
#define BEFORE_SAMPLES 3
#define CUT_SAMPLES    2
#define AFTER_SAMPLES  3

static const struct test_edges frame_edges = {3, {0, BC_BCP1_HEADER_BYTES, FRAME_AT(CUT_SAMPLES)}};

static uint64_t break_at(struct fixture *f, size_t cut, const struct bc_source_break *broken,
	const struct bc_bcp1_header *after)
{
	const struct bc_bcp1_header first = {
		.sequence = 7, .samples = BEFORE_SAMPLES, .tick = 1000};
	const struct bc_bcp1_header second = {.sequence = 8, .samples = CUT_SAMPLES, .tick = 2000};
	uint8_t bytes[128];

	start_pipeline(f, false);
	push_bytes(f, BC_FORMAT_BCP1, bytes, write_frame(bytes, &first));
	write_frame(bytes, &second);
	push_bytes(f, BC_FORMAT_BCP1, bytes, cut);
	push_break(f, BC_FORMAT_BCP1, *broken);
	push_bytes(f, BC_FORMAT_BCP1, bytes, write_frame(bytes, after));
	finish_pipeline(f);

	bool is_whole = cut == FRAME_AT(CUT_SAMPLES);
	bool is_torn = cut >= BC_BCP1_HEADER_BYTES && !is_whole;
	uint64_t before = BEFORE_SAMPLES + (is_whole ? CUT_SAMPLES : 0);
	assert_int_equal(f->counts.received, before + AFTER_SAMPLES);
	assert_int_equal(f->counts.written, before + AFTER_SAMPLES);
	assert_int_equal(f->counts.skipped_bytes, is_whole ? 0 : cut);
	check_gap(f, broken, before);
	const struct seen_event *torn = find_gap(f, BC_GAP_CRC);
	assert_int_equal(torn != NULL, is_torn);
	if (is_torn) {
		assert_int_equal(torn->event.value, CUT_SAMPLES);
		assert_true(torn->event.exact);
		assert_int_equal(f->counts.losses.lost[BC_GAP_CRC], CUT_SAMPLES);
		assert_int_equal(torn->record, before);
	}
	assert_int_equal(f->gaps, bc_losses_sum(&f->counts.losses).gaps);
	assert_true(f->damages != 0 || cut == 0 || is_whole);
	return before;
}

TEST_F(a_break_at_any_byte_of_a_frame_tears_only_that_frame)
{
	for (size_t cut = 0; cut <= FRAME_AT(CUT_SAMPLES); cut = test_next(cut, 5, &frame_edges)) {
		bool has_header = cut >= BC_BCP1_HEADER_BYTES;
		/* The next frame. */
		struct bc_bcp1_header after = {
			.sequence = has_header ? 9 : 8, .samples = AFTER_SAMPLES, .tick = 3000};
		uint64_t at = break_at(f, cut, &transfer_break, &after);
		assert_null(find_gap(f, BC_GAP_SEQUENCE));
		assert_int_equal(f->ticks[at].epoch, 0);
		assert_int_equal(f->ticks[at].time, 3000 - f->ticks[at - 1].tick);
		assert_int_equal(f->ticks[at].tick, 3000);
		assert_int_equal(f->ticks[at + 2].tick, 3006);
	}
}

TEST_F(a_frame_around_a_break_that_cuts_nothing_is_whole)
{
	const struct bc_bcp1_header frame = {.sequence = 7, .samples = 2, .tick = 1000};
	uint8_t bytes[128];
	size_t n = write_frame(bytes, &frame);

	assert_int_equal(n, FRAME_AT(CUT_SAMPLES));
	for (size_t cut = 0; cut <= n; cut = test_next(cut, 5, &frame_edges)) {
		start_pipeline(f, false);
		push_bytes(f, BC_FORMAT_BCP1, bytes, cut);
		push_break(f, BC_FORMAT_BCP1, uncut_break);
		push_bytes(f, BC_FORMAT_BCP1, bytes + cut, n - cut);
		finish_pipeline(f);
		assert_int_equal(f->counts.received, 2);
		assert_int_equal(f->counts.skipped_bytes, 0);
		assert_int_equal(f->gaps, 1);
		check_gap(f, &uncut_break, cut == n ? 2 : 0);
	}
}

TEST_F(a_frame_missing_after_a_break_is_a_separate_gap)
{
	const struct bc_bcp1_header after = {
		.sequence = 10, .samples = AFTER_SAMPLES, .tick = 3000};

	for (size_t cut = 0; cut <= FRAME_AT(CUT_SAMPLES); cut += FRAME_AT(CUT_SAMPLES) / 4) {
		uint64_t at = break_at(f, cut, &transfer_break, &after);
		assert_non_null(find_gap(f, BC_GAP_SEQUENCE));
		assert_int_equal(find_gap(f, BC_GAP_SEQUENCE)->record, at);
	}
}

TEST_F(after_a_restart_sequence_and_clock_start_again)
{
	static const uint64_t ticks[] = {0, 5, 1000, 2003, 3000, 1000000};

	for (size_t cut = 0; cut <= FRAME_AT(CUT_SAMPLES); cut = test_next(cut, 5, &frame_edges)) {
		/* Ticks below, at and above the last. */
		uint64_t tick = ticks[cut % (COUNT_OF(ticks))];
		struct bc_bcp1_header after = {
			.sequence = (uint32_t)cut * 1000, .samples = AFTER_SAMPLES, .tick = tick};
		uint64_t at = break_at(f, cut, &unplug_break, &after);
		assert_null(find_gap(f, BC_GAP_SEQUENCE));
		assert_int_equal(f->ticks[at - 1].epoch, 0);
		assert_int_equal(f->ticks[at].epoch, 1);
		assert_int_equal(f->ticks[at].time, BC_TIME_NONE);
		assert_int_equal(f->ticks[at].tick, tick);
		assert_int_equal(f->ticks[at + 1].time, 3);
		const struct bc_event *anchor = NULL;
		for (unsigned i = 0; i < f->events_count; i++)
			if (f->events[i].event.kind == BC_EVENT_ANCHOR && f->events[i].record == at)
				anchor = &f->events[i].event;
		assert_non_null(anchor);
		assert_true(anchor->exact);
		assert_int_equal(anchor->value, tick);
	}
}

/* The first frame after it may itself be damaged. */
TEST_F(after_a_restart_a_damaged_frame_starts_the_epoch)
{
	const struct bc_bcp1_header before = {.sequence = 7, .samples = 2, .tick = 1000};
	const struct bc_bcp1_header damaged = {.sequence = 70, .samples = 2, .tick = 5000};
	const struct bc_bcp1_header after = {.sequence = 71, .samples = 2, .tick = 5100};
	uint8_t bytes[128];

	start_pipeline(f, false);
	push_bytes(f, BC_FORMAT_BCP1, bytes, write_frame(bytes, &before));
	push_break(f, BC_FORMAT_BCP1, unplug_break);
	size_t n = write_frame(bytes, &damaged);
	bytes[BC_BCP1_HEADER_BYTES] ^= 1;
	push_bytes(f, BC_FORMAT_BCP1, bytes, n);
	push_bytes(f, BC_FORMAT_BCP1, bytes, write_frame(bytes, &after));
	finish_pipeline(f);
	assert_int_equal(f->counts.received, 4);
	assert_null(find_gap(f, BC_GAP_SEQUENCE));
	assert_int_equal(find_gap(f, BC_GAP_CRC)->event.value, 2);
	assert_int_equal(f->ticks[2].epoch, 1);
	assert_int_equal(f->ticks[2].time, BC_TIME_NONE);
	assert_int_equal(f->ticks[2].tick, 5100);
}

TEST_F(breaks_before_the_first_and_after_the_last_frame_are_recorded)
{
	const struct bc_bcp1_header frame = {.sequence = 7, .samples = 2, .tick = 1000};
	uint8_t bytes[128];
	size_t n = write_frame(bytes, &frame);

	start_pipeline(f, false);
	push_break(f, BC_FORMAT_BCP1, transfer_break);
	push_bytes(f, BC_FORMAT_BCP1, bytes, n);
	finish_pipeline(f);
	check_gap(f, &transfer_break, 0);
	assert_int_equal(f->counts.received, 2);
	assert_int_equal(f->ticks[0].tick, 1000);

	start_pipeline(f, false);
	push_bytes(f, BC_FORMAT_BCP1, bytes, n);
	push_break(f, BC_FORMAT_BCP1, unplug_break);
	finish_pipeline(f);
	check_gap(f, &unplug_break, 2);
	assert_int_equal(f->counts.received, 2);
}

/* raw6 */

static void push_raw6(struct fixture *f, size_t bytes, uint64_t since_ns, uint64_t until_ns)
{
	uint8_t stream[1024];
	const struct bc_source_data data = {.format = BC_FORMAT_RAW6,
		.bytes = stream,
		.count = bytes,
		.has_times = true,
		.since_ns = since_ns,
		.until_ns = until_ns};

	for (size_t i = 0; i < sizeof(stream); i++)
		stream[i] = (const uint8_t[]){0, 0, 0, 0, 0xFE, 0xD0}[i % 6];
	push_data(f, &data);
}

TEST_F(samples_of_raw6_are_spread_evenly_over_their_piece)
{
	static const uint64_t clocks[] = {1000000000, 66000000, 3, 1};

	for (size_t c = 0; c < COUNT_OF(clocks); c++) {
		for (size_t samples = 1; samples <= 41; samples += 8) {
			uint64_t clock = clocks[c];
			start_pipeline(f, false);
			bc_decoder_set_clock(f->decoder, clock);
			push_raw6(f, samples * 6, 1000000000, 3000000000);
			push_raw6(f, 6, 3000000000, 4000000000);
			finish_pipeline(f);
			assert_int_equal(f->counts.received, samples + 1);
			/* The last is at the end; the others are equally far apart, to a tick. */
			assert_int_equal(f->ticks[samples - 1].tick, 3 * clock);
			assert_int_equal(f->ticks[samples].tick, 4 * clock);
			uint64_t step = 2 * clock / samples;
			assert_in_range(f->ticks[0].tick, clock + step, clock + step + 1);
			for (size_t i = 1; i < samples; i++)
				assert_in_range(f->ticks[i].time, step, step + 1);
		}
	}
}

TEST_F(a_break_drops_the_torn_sample_of_raw6_and_the_clock_continues)
{
	for (unsigned is_restart = 0; is_restart <= 1; is_restart++) {
		const struct bc_source_break *broken = is_restart ? &unplug_break : &transfer_break;
		for (size_t torn = 0; torn < 6; torn++) {
			start_pipeline(f, false);
			bc_decoder_set_clock(f->decoder, 1000000000);
			push_raw6(f, 3 * 6 + torn, 1000, 1300);
			push_break(f, BC_FORMAT_RAW6, *broken);
			push_raw6(f, 2 * 6, 2000, 2200);
			finish_pipeline(f);
			assert_int_equal(f->counts.received, 5);
			assert_int_equal(f->counts.skipped_bytes, torn);
			assert_int_equal(f->damages != 0, torn != 0);
			check_gap(f, broken, 3);
			assert_int_equal(f->gaps, 1);
			static const uint64_t ticks[] = {1100, 1200, 1300, 2100, 2200};
			for (size_t i = 0; i < 5; i++) {
				assert_int_equal(f->ticks[i].tick, ticks[i]);
				assert_int_equal(f->ticks[i].epoch, 0);
			}
			assert_int_equal(f->ticks[3].time, 800);
		}
	}
}

TEST_F(a_gap_is_flushed_if_no_record_follows)
{
	start_pipeline(f, true);
	bc_channel_set_flush(f->channel, 1000000);
	push_raw6(f, 3 * 6, 1000, 1300);
	while (bc_pipeline_stats(f->pipeline)->written != 3)
		uv_run(&f->loop, UV_RUN_ONCE);
	uint64_t bytes = bc_pipeline_stats(f->pipeline)->recording_bytes;
	push_break(f, BC_FORMAT_RAW6, unplug_break);
	while (bc_pipeline_stats(f->pipeline)->recording_bytes == bytes)
		uv_run(&f->loop, UV_RUN_ONCE);
	finish_pipeline(f);
	check_gap(f, &unplug_break, 3);
}

TEST_F(raw6_without_a_clock_has_one_tick_per_sample)
{
	start_pipeline(f, false);
	bc_decoder_set_clock(f->decoder, 0);
	push_raw6(f, 3 * 6, 1000, 1300);
	push_raw6(f, 2 * 6, 1300, 1400);
	finish_pipeline(f);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(f->ticks[i].tick, i + 1);
}

TEST_F(a_sample_of_raw6_around_a_break_that_cuts_nothing_is_whole)
{
	for (size_t torn = 0; torn < 6; torn++) {
		start_pipeline(f, false);
		bc_decoder_set_clock(f->decoder, 1000000000);
		push_raw6(f, 6 + torn, 1000, 1100);
		push_break(f, BC_FORMAT_RAW6, uncut_break);
		push_raw6(f, 12 - torn, 2000, 2200);
		finish_pipeline(f);
		assert_int_equal(f->counts.received, 3);
		assert_int_equal(f->counts.skipped_bytes, 0);
		check_gap(f, &uncut_break, 1);
		assert_int_equal(f->ticks[2].tick, 2200);
	}
}

TEST_F(a_raw6_sample_in_two_pieces_counts_with_the_second)
{
	for (size_t torn = 1; torn < 6; torn++) {
		start_pipeline(f, false);
		bc_decoder_set_clock(f->decoder, 1000000000);
		push_raw6(f, 3 * 6, 1000, 1300);
		push_raw6(f, torn, 1300, 1400);
		const uint8_t sample[] = {0, 0, 0, 0, 0xFE, 0xD0};
		const struct bc_source_data rest = {.format = BC_FORMAT_RAW6,
			.bytes = sample + torn,
			.count = 6 - torn,
			.has_times = true,
			.since_ns = 1400,
			.until_ns = 1500};
		push_data(f, &rest);
		finish_pipeline(f);
		assert_int_equal(f->counts.received, 4);
		assert_int_equal(f->counts.skipped_bytes, 0);
		assert_int_equal(f->ticks[3].tick, 1500);
	}
}

TEST_F(only_a_last_frame_at_the_end_of_a_piece_ends_the_stream)
{
	const struct bc_bcp1_header last = {.flags = BC_BCP1_LAST, .sequence = 9};
	const struct bc_bcp1_header next = {.samples = 2, .tick = 1000};
	uint8_t bytes[128];
	size_t n = write_frame(bytes, &last);
	size_t all = n + write_frame(bytes + n, &next);

	const struct test_edges edges = {4, {0, n, n + BC_BCP1_HEADER_BYTES, all}};
	for (size_t cut = 0; cut <= all; cut = test_next(cut, 15, &edges)) {
		start_pipeline(f, false);
		push_bytes(f, BC_FORMAT_BCP1, bytes, cut);
		assert_int_equal(f->lasts, cut >= n && cut < all);
		push_bytes(f, BC_FORMAT_BCP1, bytes + cut, all - cut);
		finish_pipeline(f);
		assert_int_equal(f->lasts, cut >= n && cut < all);
		assert_int_equal(f->counts.received, 2);
	}
}

/* What the board counts as lost */

static void push_loss(struct fixture *f, uint64_t lost)
{
	push_break(
		f, BC_FORMAT_BCP1, (struct bc_source_break){.cause = BC_GAP_BOARD, .lost = lost});
}

TEST_F(losses_that_frames_have_reported_are_not_counted_again)
{
	const struct bc_bcp1_header first = {.sequence = 6, .samples = 2, .tick = 900};
	const struct bc_bcp1_header reported = {
		.flags = BC_BCP1_LOSS, .lost = 5, .sequence = 7, .samples = 2, .tick = 1000};
	uint8_t bytes[256];
	size_t n = write_frame(bytes, &first);

	n += write_frame(bytes + n, &reported);
	for (uint64_t lost = 0; lost <= 8; lost++) {
		start_pipeline(f, false);
		push_bytes(f, BC_FORMAT_BCP1, bytes, n);
		push_loss(f, lost);
		push_loss(f, lost);
		finish_pipeline(f);
		assert_int_equal(f->counts.losses.lost[BC_GAP_BOARD], lost > 5 ? lost : 5);
		assert_int_equal(f->gaps, lost > 5 ? 2 : 1);
		assert_int_equal(f->lost, lost > 5 ? lost : 5);
		for (unsigned i = 0; i < f->events_count; i++) {
			const struct bc_event *event = &f->events[i].event;
			if (event->kind != BC_EVENT_GAP)
				continue;
			assert_int_equal(event->cause, BC_GAP_BOARD);
			assert_true(event->exact);
		}
	}
}

/* The board's count may have all, some or none of what its first frame reports. */
TEST_F(a_loss_in_the_first_frame_makes_one_at_the_end_inexact)
{
	const struct bc_bcp1_header reported = {
		.flags = BC_BCP1_LOSS, .lost = 5, .sequence = 7, .samples = 2, .tick = 1000};
	uint8_t bytes[128];
	size_t n = write_frame(bytes, &reported);

	start_pipeline(f, false);
	push_bytes(f, BC_FORMAT_BCP1, bytes, n);
	push_loss(f, 3);
	push_break(f, BC_FORMAT_BCP1, unplug_break);
	push_bytes(f, BC_FORMAT_BCP1, bytes, n);
	push_loss(f, 9);
	finish_pipeline(f);
	assert_int_equal(f->counts.losses.lost[BC_GAP_BOARD], 5 + 0 + 5 + 4);
	assert_int_equal(f->lost, 5 + 0 + 5 + 4);
}

TEST_F(a_restarted_board_counts_from_zero)
{
	const struct bc_bcp1_header reported = {
		.flags = BC_BCP1_LOSS, .lost = 5, .sequence = 7, .samples = 2, .tick = 1000};
	uint8_t bytes[128];
	size_t n = write_frame(bytes, &reported);

	start_pipeline(f, false);
	push_bytes(f, BC_FORMAT_BCP1, bytes, n);
	push_break(f, BC_FORMAT_BCP1, unplug_break);
	push_loss(f, 3);
	finish_pipeline(f);
	assert_int_equal(f->counts.losses.lost[BC_GAP_BOARD], 8);
	assert_int_equal(f->lost, 8);
}

TEST_F(a_loss_reported_in_mid_frame_does_not_break_the_frame)
{
	const struct bc_bcp1_header frame = {.sequence = 7, .samples = 2, .tick = 1000};
	uint8_t bytes[128];
	size_t n = write_frame(bytes, &frame);

	assert_int_equal(n, FRAME_AT(CUT_SAMPLES));
	for (size_t cut = 0; cut <= n; cut = test_next(cut, 5, &frame_edges)) {
		start_pipeline(f, false);
		push_bytes(f, BC_FORMAT_BCP1, bytes, cut);
		push_loss(f, 4);
		push_bytes(f, BC_FORMAT_BCP1, bytes + cut, n - cut);
		finish_pipeline(f);
		assert_int_equal(f->counts.received, 2);
		assert_int_equal(f->counts.skipped_bytes, 0);
		assert_int_equal(f->counts.losses.lost[BC_GAP_BOARD], 4);
		assert_int_equal(f->gaps, 1);
		assert_int_equal(f->lost, 4);
	}
}

/* No chunk is free */

/* With breaks and losses in between. */
TEST_F(breaks_without_a_free_chunk_are_still_recorded)
{
	static uint8_t frame[BC_BCP1_FRAME_MAX];
	unsigned breaks = 0;

	int dir = replace_dir(f);
	start_pipeline(f, true);
	for (uint32_t i = 0; i < TOO_MANY_FRAMES; i++) {
		push_bytes(f, BC_FORMAT_BCP1, frame, write_next_frame(frame, i, 1));
		if (i % 32 == 31) {
			push_break(f, BC_FORMAT_BCP1, uncut_break);
			push_loss(f, ++breaks * 10);
		}
	}
	restore_dir(f, dir);
	finish_pipeline(f);
	uint64_t dropped = f->counts.dropped_buffer + f->counts.dropped_disk;
	uint64_t lasted_ns = 0;
	assert_true(dropped != 0);
	assert_int_equal(f->counts.received, TOO_MANY);
	assert_int_equal(f->counts.losses.lost[BC_GAP_BOARD], breaks * 10);
	assert_int_equal(f->lost, dropped + breaks * 10);
	assert_int_equal(f->gaps, bc_losses_sum(&f->counts.losses).gaps);
	for (unsigned i = 0; i < f->events_count; i++)
		if (f->events[i].event.cause == BC_GAP_TRANSFER &&
			f->events[i].event.kind == BC_EVENT_GAP)
			lasted_ns += f->events[i].event.duration_ns;
	assert_int_equal(lasted_ns, breaks * uncut_break.duration_ns);
}
