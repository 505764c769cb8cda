/* Decoder and pipeline together, on a loop, into a directory: what comes out of every way to cut a
 * stream into pieces is the same. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/sim.h"
#include "daemon/decoder.h"
#include "daemon/log.h"
#include "formats/segment_reader.h"

#define STREAM_MAX 65536u
#define OUT_MAX    (16u << 20)

struct fixture {
	char dir[64];
	int dir_fd;
	uv_loop_t loop;
	struct bc_mapping mapping;
	struct bc_recording recording;
	struct bc_pipeline *pipeline;
	struct bc_decoder *decoder;
	bool is_ended;
	unsigned damages;
	uint64_t limit_step;  /* the tick limit is moved on by this each time it is reached; 0: none
			       */
	uint8_t out[OUT_MAX]; /* the records of all segments */
	size_t out_bytes;
	uint64_t lost; /* by the gap events in them */
	unsigned gaps;
	struct bc_counts counts;
};

static void on_ended(void *context)
{
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

	bc_pipeline_cut(f->pipeline);
	bc_decoder_set_tick_limit(f->decoder, tick + f->limit_step);
	return BC_LIMIT_GO_ON;
}

static void on_damage(void *context, const char *what)
{
	(void)what;
	((struct fixture *)context)->damages++;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const struct bc_mapping_options options = bc_mapping_options_default();

	bc_log_set_level(BC_LOG_ERROR);
	snprintf(f->dir, sizeof(f->dir), "/tmp/buscap-decoder-XXXXXX");
	if (mkdtemp(f->dir) == NULL)
		return -1;
	f->dir_fd = open(f->dir, O_RDONLY | O_DIRECTORY);
	bc_mapping_init(&f->mapping, &options);
	snprintf(f->recording.header.recording, BC_RECORDING_ID_MAX, "20260101T000000Z-000000");
	*state = f;
	return f->dir_fd < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	close(f->dir_fd);
	rmdir(f->dir);
	free(f);
	return 0;
}

static void begin(struct fixture *f, bool is_live)
{
	struct bc_pipeline_options pipeline = {
		.buffer_bytes = bc_pipeline_least_buffer(1, false) + 2 * sizeof(struct bc_slot),
		.workers = 1,
		.flush_ns = UINT64_C(1000000000000),
		.dir = f->dir,
		.dir_fd = f->dir_fd,
		.rules = {.sync_ns = UINT64_C(1000000000000)},
		.context = f,
		.on_room = on_nothing,
		.on_ended = on_ended,
		.on_report = on_nothing,
	};
	struct bc_decoder_options decoder = {
		.mapping = &f->mapping,
		.is_live = is_live,
		.context = f,
		.on_epoch = on_epoch,
		.on_limit = on_limit,
		.on_damage = on_damage,
	};

	f->is_ended = false;
	f->damages = 0;
	assert_int_equal(uv_loop_init(&f->loop), 0);
	assert_int_equal(bc_pipeline_open(&f->pipeline, &f->loop, &pipeline), 0);
	decoder.pipeline = f->pipeline;
	assert_int_equal(bc_decoder_open(&f->decoder, &decoder), 0);
	bc_pipeline_begin(f->pipeline, &f->recording);
}

static void check_counts(const struct fixture *f)
{
	assert_true(bc_counts_add_up(bc_pipeline_counts(f->pipeline)));
}

static void push(struct fixture *f, enum bc_format format, const uint8_t *bytes, size_t count)
{
	/* A copy of its own length, so that a sanitizer sees a read behind it; and gone once taken.
	 */
	uint8_t *copy = malloc(count + 1);
	const struct bc_source_data data = {.format = format, .bytes = copy, .count = count};

	memcpy(copy, bytes, count);
	while (!bc_decoder_push(f->decoder, &data)) {
		check_counts(f);
		uv_run(&f->loop, UV_RUN_ONCE);
	}
	check_counts(f);
	memset(copy, 0xEE, count);
	free(copy);
}

/* Reads one segment into f->out, and deletes it. */
static void take_segment(struct fixture *f, const char *name)
{
	static struct bc_chunk chunk;
	struct bc_segment_reader *reader;
	int found;
	int fd = openat(f->dir_fd, name, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(bc_segment_reader_open(
				 &reader, (struct bc_stream){.fd = fd, .wake_fd = -1}, NULL, 0),
		0);
	while ((found = bc_segment_read(reader, &chunk)) != BC_FOUND_END) {
		assert_true(found > 0 && found != BC_FOUND_DAMAGE);
		if (found != BC_FOUND_CHUNK)
			continue;
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
	unlinkat(f->dir_fd, name, 0);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void take_segments(struct fixture *f)
{
	static char names[256][64];
	size_t count = 0;
	DIR *dir = opendir(f->dir);

	f->out_bytes = 0;
	f->gaps = 0;
	f->lost = 0;
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
		if (entry->d_name[0] != '.' && count < 256)
			snprintf(names[count++], sizeof(names[0]), "%.63s", entry->d_name);
	closedir(dir);
	qsort(names, count, sizeof(names[0]), compare_names);
	for (size_t i = 0; i < count; i++)
		take_segment(f, names[i]);
}

static void finish(struct fixture *f)
{
	while (!bc_decoder_finish(f->decoder))
		uv_run(&f->loop, UV_RUN_ONCE);
	bc_pipeline_finish(f->pipeline);
	while (!f->is_ended)
		uv_run(&f->loop, UV_RUN_ONCE);
	check_counts(f);
	f->counts = *bc_pipeline_counts(f->pipeline);
	assert_int_equal(f->counts.in_flight, 0);
	bc_decoder_close(f->decoder);
	bc_pipeline_close(f->pipeline);
	uv_run(&f->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&f->loop), 0);
	take_segments(f);
}

struct expected {
	uint8_t out[OUT_MAX];
	size_t out_bytes;
	struct bc_counts counts;
	unsigned damages;
};

/* Runs the stream whole, then cut in two at every place, then in pieces of 1 to 9 bytes, and holds
 * each against the first. */
static void try_every_cut(
	struct fixture *f, enum bc_format format, const uint8_t *stream, size_t bytes)
{
	struct expected *first = calloc(1, sizeof(*first));

	for (size_t cut = 0; cut <= bytes + 9; cut++) {
		begin(f, false);
		if (cut <= bytes) {
			push(f, format, stream, cut);
			push(f, format, stream + cut, bytes - cut);
		} else {
			size_t piece = cut - bytes;
			for (size_t at = 0; at < bytes; at += piece)
				push(f, format, stream + at,
					bytes - at < piece ? bytes - at : piece);
		}
		finish(f);
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
		assert_int_equal(f->gaps, f->counts.gaps);
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
		(n = bc_sim_next(sim, frame_samples, out + bytes)) != 0)
		bytes += n;
	bc_sim_close(sim);
	return bytes;
}

static void test_frames_cut_anywhere_give_the_same_records(void **state)
{
	static uint8_t stream[STREAM_MAX];
	size_t bytes = make_bcp1(stream, 40, 7, 0);

	try_every_cut(*state, BC_FORMAT_BCP1, stream, bytes);
}

static void test_damaged_frames_cut_anywhere_give_the_same_gaps(void **state)
{
	struct fixture *f = *state;
	static uint8_t stream[STREAM_MAX];
	size_t bytes = make_bcp1(stream, 40, 5, 300000);

	memcpy(stream + bytes, "BCP1BCBCP", 9); /* and a torn end */
	try_every_cut(f, BC_FORMAT_BCP1, stream, bytes + 9);
	assert_true(f->damages != 0);
	assert_true(f->counts.skipped_bytes >= 9);
}

static void test_plain_formats_cut_anywhere_give_the_same_records(void **state)
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
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		try_every_cut(*state, formats[i], stream, sizeof(stream));
}

static void test_a_value_that_does_not_fit_leaves_a_gap_at_its_place(void **state)
{
	struct fixture *f = *state;
	uint8_t stream[24 * 4] = {0};

	for (uint8_t i = 0; i < 4; i++)
		stream[24 * i] = i;
	stream[24 * 2 + 4] = 1; /* the address of record 2 has 33 bits */
	begin(f, false);
	push(f, BC_FORMAT_BYU24, stream, sizeof(stream));
	finish(f);
	assert_int_equal(f->out_bytes, 3 * BC_RECORD_BYTES);
	assert_int_equal(f->out[0], 0);
	assert_int_equal(f->out[BC_RECORD_BYTES], 1);
	assert_int_equal(f->out[2 * BC_RECORD_BYTES], 3);
	assert_int_equal(f->gaps, 1);
	assert_int_equal(f->lost, 1);
	assert_int_equal(f->damages, 1);
}

static void test_segments_cut_at_any_tick_hold_the_same_records(void **state)
{
	struct fixture *f = *state;
	static uint8_t stream[STREAM_MAX];
	static uint8_t whole[OUT_MAX];
	size_t bytes = make_bcp1(stream, 60, 16, 0);

	begin(f, false);
	push(f, BC_FORMAT_BCP1, stream, bytes);
	finish(f);
	size_t whole_bytes = f->out_bytes;
	memcpy(whole, f->out, whole_bytes);
	for (f->limit_step = 1; f->limit_step < 200; f->limit_step += 11) {
		begin(f, false);
		push(f, BC_FORMAT_BCP1, stream, bytes);
		finish(f);
		assert_int_equal(f->out_bytes, whole_bytes);
		assert_memory_equal(f->out, whole, whole_bytes);
	}
	f->limit_step = 0;
}

/* A pool of five chunks, and a million samples at once: a live source loses most of them, and what
 * is lost stands in the file. */
static void test_what_a_live_source_loses_is_on_record(void **state)
{
	struct fixture *f = *state;
	static uint8_t frame[BC_SIM_FRAME_MAX];
	struct bc_sim_options options = {.seed = 5, .count = 1000000, .agents = 1};
	struct bc_sim *sim;
	size_t n;

	assert_int_equal(bc_sim_open(&sim, &options), 0);
	begin(f, true);
	while ((n = bc_sim_next(sim, BC_SIM_FRAME_SAMPLES, frame)) != 0) {
		push(f, BC_FORMAT_BCP1, frame, n);
		if (bc_sim_sent(sim).frames % 64 == 0)
			uv_run(&f->loop, UV_RUN_NOWAIT);
	}
	bc_sim_close(sim);
	finish(f);
	assert_int_equal(f->counts.received, 1000000);
	assert_int_equal(f->lost, f->counts.dropped_buffer);
	assert_int_equal(f->gaps, f->counts.gaps);
	assert_int_equal(f->out_bytes, f->counts.written * BC_RECORD_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_frames_cut_anywhere_give_the_same_records, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_damaged_frames_cut_anywhere_give_the_same_gaps, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_plain_formats_cut_anywhere_give_the_same_records, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_value_that_does_not_fit_leaves_a_gap_at_its_place, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_segments_cut_at_any_tick_hold_the_same_records, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_what_a_live_source_loses_is_on_record, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
