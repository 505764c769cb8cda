#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "capture/source/file_source.h"
#include "formats/segment/segment_writer.h"
#include "tests/support/dice.h"
#include "tests/support/segments.h"
#include "tests/support/source_run.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"
#include "tests/support/traces.h"

TEST_THREADS;

#define CHUNKS        7u
#define CHUNK_RECORDS 1000u

struct fixture {
	struct temp_dir dir;
	struct trace large;   /* 5 MiB and a bit of bytes: more than is read ahead */
	struct trace segment; /* sealed, of CHUNKS chunks */
	struct trace records; /* in the segment */
	size_t third_chunk;   /* offset in the segment */
};

static void write_segment(struct fixture *f)
{
	struct bc_segment_header header = {.recording = "20261120T091500Z-3f9a2c", .clock_hz = 123};
	struct bc_segment_writer writer;
	struct bc_chunk *chunk = malloc(sizeof(*chunk));
	struct dice dice = {.state = 5};

	assert_non_null(chunk);
	f->records.n = (size_t)CHUNKS * CHUNK_RECORDS * BC_RECORD_BYTES;
	f->records.bytes = malloc(f->records.n);
	assert_non_null(f->records.bytes);
	dice_fill(&dice, f->records.bytes, f->records.n);
	assert_int_equal(bc_segment_create(&writer, f->dir.fd, "s", ".partial", &header), 0);
	for (uint32_t i = 0; i < CHUNKS; i++) {
		size_t n = (size_t)CHUNK_RECORDS * BC_RECORD_BYTES;
		bc_chunk_reset(chunk, i, 0);
		chunk->info.recording_tag = bc_recording_tag(header.recording);
		chunk->info.first_record = (uint64_t)i * CHUNK_RECORDS;
		chunk->info.records = CHUNK_RECORDS;
		memcpy(chunk->records, f->records.bytes + i * n, n);
		if (i == 2)
			f->third_chunk = writer.file.bytes;
		segment_append(&writer, chunk, 0, 0);
	}
	assert_int_equal(bc_segment_seal(&writer), 0);
	f->segment.bytes = temp_read(&f->dir, "s", &f->segment.n);
	free(chunk);
}

static void set_up(struct fixture *f)
{
	struct dice dice = {.state = 3};

	signal(SIGPIPE, SIG_IGN);
	temp_dir_make(&f->dir);
	write_segment(f);
	f->large.n = (5u << 20) + 12345;
	f->large.bytes = malloc(f->large.n);
	assert_non_null(f->large.bytes);
	dice_fill(&dice, f->large.bytes, f->large.n);
	temp_write(&f->dir, "large", f->large.bytes, f->large.n);
}

static void tear_down(struct fixture *f)
{
	trace_free(&f->large);
	trace_free(&f->segment);
	trace_free(&f->records);
	temp_dir_remove(&f->dir);
}

TEST_SHARED_FIXTURE(fixture, set_up, tear_down)

static void open_run(
	struct fixture *f, struct source_run *run, const char *name, enum bc_format format)
{
	char path[TEMP_PATH_BYTES];

	temp_path(&f->dir, name, path);
	source_run_init(run);
	assert_int_equal(bc_file_source_open(&run->source, &run->loop, path, format, 77), 0);
	assert_string_equal(run->source->kind, "file");
	assert_string_equal(run->source->name, path);
	assert_false(run->source->is_live);
	assert_true(run->source->is_replay);
	assert_int_equal(run->source->clock_hz, 77);
}

static void assert_gave(const struct source_run *run, const uint8_t *bytes, size_t n)
{
	assert_int_equal(run->n, n);
	assert_memory_equal(run->bytes, bytes, n);
}

/* Whole files */

TEST_F(files_arrive_whole_even_if_pieces_are_refused)
{
	for (unsigned refusals = 0; refusals <= 3; refusals++) {
		struct source_run run;
		open_run(f, &run, "large", BC_FORMAT_RAW6);
		run.refusals = refusals;
		source_run_all(&run);
		assert_int_equal(run.status, 0);
		assert_true(run.pieces > 4);
		assert_gave(&run, f->large.bytes, f->large.n);
		source_run_close(&run);

		open_run(f, &run, "s", BC_FORMAT_UNKNOWN);
		run.refusals = refusals;
		source_run_all(&run);
		assert_int_equal(run.status, 0);
		assert_int_equal(run.chunks, CHUNKS);
		assert_int_equal(run.damages, 0);
		assert_int_equal(run.missing, 0);
		assert_gave(&run, f->records.bytes, f->records.n);
		source_run_close(&run);
	}
}

/* Files that are not whole */

TEST_F(a_damaged_chunk_is_reported_in_place_and_its_records_counted_missing)
{
	size_t chunk = (size_t)CHUNK_RECORDS * BC_RECORD_BYTES;

	for (unsigned refusals = 0; refusals <= 2; refusals++) {
		struct source_run run;
		char place[32];
		f->segment.bytes[f->third_chunk + 2000] ^= 1;
		temp_write(&f->dir, "damaged", f->segment.bytes, f->segment.n);
		f->segment.bytes[f->third_chunk + 2000] ^= 1;
		open_run(f, &run, "damaged", BC_FORMAT_UNKNOWN);
		run.refusals = refusals;
		source_run_all(&run);
		assert_int_equal(run.status, 0); /* the index is intact */
		assert_int_equal(run.damages, 1);
		snprintf(place, sizeof(place), "offset %zu,", f->third_chunk);
		assert_non_null(strstr(run.damage, place));
		assert_int_equal(run.chunks, CHUNKS - 1);
		assert_int_equal(run.missing, CHUNK_RECORDS);
		assert_int_equal(run.n, f->records.n - chunk);
		assert_memory_equal(run.bytes, f->records.bytes, 2 * chunk);
		assert_memory_equal(run.bytes + 2 * chunk, f->records.bytes + 3 * chunk,
			f->records.n - 3 * chunk);
		source_run_close(&run);
	}
}

/* Writes a segment with one record. The board lost `lost` samples before it. */
static struct trace write_lossy(
	struct fixture *f, const char *recording, uint32_t segment, uint64_t first, uint64_t lost)
{
	struct bc_segment_header header = {.segment = segment, .first_record = first};
	struct bc_segment_writer writer;
	struct bc_chunk *chunk = malloc(sizeof(*chunk));
	struct trace trace;

	assert_non_null(chunk);
	snprintf(header.recording, sizeof(header.recording), "%s", recording);
	assert_int_equal(bc_segment_create(&writer, f->dir.fd, "lossy", ".partial", &header), 0);
	bc_chunk_reset(chunk, 0, 0);
	chunk->info.recording_tag = bc_recording_tag(recording);
	chunk->info.first_record = first;
	chunk->info.records = 1;
	chunk->info.totals.lost[BC_GAP_BOARD] = lost;
	memset(chunk->records, 1, BC_RECORD_BYTES);
	segment_append(&writer, chunk, 0, 0);
	assert_int_equal(bc_segment_seal(&writer), 0);
	trace.bytes = temp_read(&f->dir, "lossy", &trace.n);
	assert_int_equal(unlinkat(f->dir.fd, "lossy", 0), 0);
	free(chunk);
	return trace;
}

static void add_unreported(void *context, const struct bc_source_data *data)
{
	uint64_t *lost = context;

	if (data->missing != NULL)
		*lost += data->missing->lost[BC_GAP_BOARD];
}

/* Which of the losses before a segment are new is only known after the same recording. */
TEST_F(lost_samples_of_one_recording_are_not_compared_with_those_of_another)
{
	static const struct {
		const char *recording;
		uint32_t segment;
		uint64_t first;
		uint64_t lost;
		uint64_t unreported;
	} cases[] = {
		{"20261120T091500Z-3f9a2c", 1, 1, 12, 2},  /* the same: 10 were lost before */
		{"20261121T091500Z-3f9a2c", 1, 1, 12, 0},  /* another, from its second segment on */
		{"20261121T091500Z-3f9a2c", 0, 0, 12, 12}, /* another, from its start */
		{"20261121T091500Z-3f9a2c", 0, 0, 5, 5},
	};
	struct trace before = write_lossy(f, "20261120T091500Z-3f9a2c", 0, 0, 10);

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct trace after = write_lossy(
			f, cases[i].recording, cases[i].segment, cases[i].first, cases[i].lost);
		uint8_t *row = malloc(before.n + after.n);
		struct source_run run;
		uint64_t lost = 0;

		assert_non_null(row);
		memcpy(row, before.bytes, before.n);
		memcpy(row + before.n, after.bytes, after.n);
		temp_write(&f->dir, "row", row, before.n + after.n);
		open_run(f, &run, "row", BC_FORMAT_UNKNOWN);
		run.on_piece = add_unreported;
		run.context = &lost;
		source_run_all(&run);
		assert_int_equal(run.status, 0);
		assert_int_equal(run.chunks, 2);
		assert_int_equal(run.missing, 0);
		assert_int_equal(lost, 10 + cases[i].unreported);
		source_run_close(&run);
		free(row);
		trace_free(&after);
	}
	trace_free(&before);
}

TEST_F(a_segment_without_index_gives_its_chunks_and_is_reported_torn)
{
	struct source_run run;

	temp_write(&f->dir, "open", f->segment.bytes, f->segment.n - bc_index_bytes(CHUNKS));
	open_run(f, &run, "open", BC_FORMAT_UNKNOWN);
	source_run_all(&run);
	assert_int_equal(run.status, -EBADMSG);
	assert_true(run.what[0] != '\0');
	assert_int_equal(run.chunks, CHUNKS);
	assert_gave(&run, f->records.bytes, f->records.n);
	source_run_close(&run);
}

TEST_F(torn_lz4_gives_its_whole_part_and_is_reported_torn)
{
	struct trace packed = trace_to_lz4(&f->large, false);
	struct source_run run;

	/* Incompressible data: each block of 65,536 bytes follows four bytes of length. */
	temp_write(&f->dir, "torn", packed.bytes, 7 + 20 * 65540 + 1000);
	open_run(f, &run, "torn", BC_FORMAT_RAW6);
	source_run_all(&run);
	assert_int_equal(run.status, -EBADMSG);
	assert_true(run.what[0] != '\0');
	assert_true(run.n >= 20 * 65536);
	assert_memory_equal(run.bytes, f->large.bytes, run.n);
	source_run_close(&run);
	trace_free(&packed);
}

TEST_F(an_unknown_format_is_reported_with_how_to_specify_it)
{
	struct source_run run;

	open_run(f, &run, "large", BC_FORMAT_UNKNOWN);
	source_run_all(&run);
	assert_int_equal(run.status, -EINVAL);
	assert_non_null(strstr(run.what, "fits no known format"));
	assert_non_null(strstr(run.what, ",format="));
	assert_int_equal(run.pieces, 0);
	source_run_close(&run);
}

TEST_F(a_file_that_cannot_be_opened_fails_immediately)
{
	struct source_run run;
	char path[TEMP_PATH_BYTES];
	const struct {
		const char *path;
		int rc;
	} wrong[] = {{temp_path(&f->dir, "missing", path), -ENOENT}, {f->dir.path, -EISDIR},
		{"", -ENOENT}};

	source_run_init(&run);
	for (size_t i = 0; i < COUNT_OF(wrong); i++)
		assert_int_equal(bc_file_source_open(&run.source, &run.loop, wrong[i].path,
					 BC_FORMAT_UNKNOWN, 0),
			wrong[i].rc);
	run.is_closed = true;
	source_run_close(&run);
}

/* Stopping and closing */

TEST_F(a_source_can_be_closed_without_a_start)
{
	struct source_run run;

	open_run(f, &run, "large", BC_FORMAT_RAW6);
	source_run_close(&run);
	assert_int_equal(run.ends, 0);
	assert_int_equal(run.pieces, 0);
}

/* At the start, and after any number of pieces; by the sink in its call or on the next turn; with
 * and without refused pieces. */
TEST_F(a_stop_at_any_piece_ends_the_stream_once)
{
	for (uint32_t pieces = 0; pieces <= CHUNKS; pieces++) {
		for (int within = 0; within < 2; within++) {
			for (unsigned refusals = 0; refusals <= 1; refusals++) {
				struct source_run run;
				open_run(f, &run, "s", BC_FORMAT_UNKNOWN);
				run.act = ACT_STOP;
				run.act_at = pieces;
				run.acts_in_call = within;
				run.refusals = refusals;
				source_run_all(&run);
				assert_int_equal(run.ends, 1);
				assert_int_equal(run.status, 0);
				assert_true(run.pieces >= pieces);
				if (within || pieces == 0)
					assert_int_equal(run.pieces, pieces);
				assert_memory_equal(run.bytes, f->records.bytes, run.n);
				source_run_close(&run);
				assert_int_equal(run.ends, 1);
			}
		}
	}
}

TEST_F(a_close_at_any_piece_ends_the_delivery)
{
	for (uint32_t pieces = 0; pieces < CHUNKS; pieces++) {
		for (int within = 0; within < 2; within++) {
			for (unsigned refusals = 0; refusals <= 1; refusals++) {
				struct source_run run;
				open_run(f, &run, "s", BC_FORMAT_UNKNOWN);
				run.act = ACT_CLOSE;
				run.act_at = pieces;
				run.acts_in_call = within;
				run.refusals = refusals;
				source_run_all(&run); /* checks the result */
				if (within || pieces < CHUNKS - 3)
					assert_int_equal(run.ends, 0);
				source_run_close(&run);
			}
		}
	}
}

TEST_F(a_source_can_be_closed_in_its_end_callback)
{
	for (int is_stopped = 0; is_stopped < 2; is_stopped++) {
		struct source_run run;
		open_run(f, &run, "s", BC_FORMAT_UNKNOWN);
		run.closes_in_end = true;
		run.act = is_stopped ? ACT_STOP : ACT_NONE;
		run.act_at = is_stopped ? 2 : NEVER;
		run.acts_in_call = true;
		source_run_all(&run);
		assert_int_equal(run.ends, 1);
		assert_int_equal(run.chunks, is_stopped ? 2 : CHUNKS);
		source_run_close(&run);
	}
}

TEST_F(a_source_can_be_closed_while_its_thread_waits_for_a_free_piece)
{
	struct source_run run;

	open_run(f, &run, "large", BC_FORMAT_RAW6);
	run.refusals = 50; /* long enough for all pieces to be filled */
	run.act = ACT_CLOSE;
	run.act_at = 1;
	run.acts_in_call = true;
	source_run_all(&run);
	source_run_close(&run);
}

/* FIFOs and standard input */

static void make_fifo(struct fixture *f)
{
	char path[TEMP_PATH_BYTES];

	unlinkat(f->dir.fd, "fifo", 0);
	assert_int_equal(mkfifo(temp_path(&f->dir, "fifo", path), 0600), 0);
}

TEST_F(a_fifo_without_a_writer_can_be_stopped_and_closed)
{
	make_fifo(f);
	for (int is_stopped = 0; is_stopped < 2; is_stopped++) {
		for (int turns = 0; turns < 3; turns++) {
			struct source_run run;
			open_run(f, &run, "fifo", BC_FORMAT_UNKNOWN);
			run.act = is_stopped ? ACT_STOP : ACT_CLOSE;
			run.act_at = turns == 0 ? 0 : NEVER;
			if (turns == 0) {
				source_run_all(&run);
			} else {
				struct bc_source_sink sink = {
					.context = &run,
					.data = source_run_data,
					.damage = source_run_damage,
					.end = source_run_end,
				};
				assert_int_equal(bc_source_start(run.source, &sink), 0);
				for (int i = 0; i < turns; i++)
					uv_run(&run.loop, UV_RUN_NOWAIT);
				assert_int_equal(run.ends, 0);
				source_run_act(&run);
				while (is_stopped && run.ends == 0)
					uv_run(&run.loop, UV_RUN_ONCE);
			}
			assert_int_equal(run.ends, is_stopped);
			assert_int_equal(run.pieces, 0);
			source_run_close(&run);
		}
	}
}

struct feeder {
	const char *path;
	int fd; /* if there is no path */
	const struct trace *trace;
	size_t step;
};

static void *feed(void *context)
{
	struct feeder *feeder = context;
	const struct trace *trace = feeder->trace;
	int fd = feeder->path != NULL ? open(feeder->path, O_WRONLY | O_CLOEXEC) : feeder->fd;

	for (size_t at = 0; at < trace->n;) {
		size_t n = trace->n - at < feeder->step ? trace->n - at : feeder->step;
		ssize_t now = write(fd, trace->bytes + at, n);
		if (now < 0)
			break;
		at += (size_t)now;
	}
	close(fd);
	return NULL;
}

TEST_F(a_fifo_is_read_when_a_writer_opens_it_later)
{
	struct trace bcp1 = trace_of_sim(1, 20000, 2);

	for (unsigned refusals = 0; refusals < 2; refusals++) {
		char path[TEMP_PATH_BYTES];
		struct source_run run;
		pthread_t thread;
		make_fifo(f);
		struct feeder feeder = {temp_path(&f->dir, "fifo", path), -1, &bcp1, 777};
		open_run(f, &run, "fifo", BC_FORMAT_UNKNOWN);
		run.refusals = refusals;
		assert_int_equal(pthread_create(&thread, NULL, feed, &feeder), 0);
		source_run_all(&run);
		pthread_join(thread, NULL);
		assert_int_equal(run.status, 0);
		assert_int_equal(run.format, BC_FORMAT_BCP1);
		assert_gave(&run, bcp1.bytes, bcp1.n);
		source_run_close(&run);
	}
	trace_free(&bcp1);
}

/* Always closes the source before waiting for its writer. */
static void let_go(struct source_run *run)
{
	bc_source_close(run->source);
	run->source = NULL;
	run->is_closed = true;
	uv_run(&run->loop, UV_RUN_DEFAULT);
}

TEST_F(a_fifo_is_stopped_while_its_writer_continues)
{
	for (int is_closed = 0; is_closed < 2; is_closed++) {
		for (uint32_t pieces = 1; pieces < 4; pieces++) {
			char path[TEMP_PATH_BYTES];
			struct source_run run;
			pthread_t thread;
			make_fifo(f);
			struct feeder feeder = {
				temp_path(&f->dir, "fifo", path), -1, &f->large, 5000};
			open_run(f, &run, "fifo", BC_FORMAT_RAW6);
			run.act = is_closed ? ACT_CLOSE : ACT_STOP;
			run.act_at = pieces;
			run.acts_in_call = pieces % 2 == 0;
			run.refusals = 1;
			assert_int_equal(pthread_create(&thread, NULL, feed, &feeder), 0);
			source_run_all(&run);
			assert_memory_equal(run.bytes, f->large.bytes, run.n);
			let_go(&run); /* closes the FIFO, which ends the writer */
			pthread_join(thread, NULL);
			source_run_close(&run);
		}
	}
}

TEST_F(standard_input_is_read_and_left_open)
{
	int kept = dup(STDIN_FILENO);

	for (int acts = 0; acts < 3; acts++) { /* nothing, a stop, a close */
		struct source_run run;
		pthread_t thread;
		int fds[2];
		int free_fd = first_free_fd();
		assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
		assert_int_equal(dup2(fds[0], STDIN_FILENO), STDIN_FILENO);
		close(fds[0]);
		struct feeder feeder = {NULL, fds[1], &f->large, 70000};
		source_run_init(&run);
		run.free_fd = free_fd;
		assert_int_equal(
			bc_file_source_open(&run.source, &run.loop, "-", BC_FORMAT_RAW6, 0), 0);
		assert_string_equal(run.source->name, "-");
		run.act = acts == 0 ? ACT_NONE : acts == 1 ? ACT_STOP : ACT_CLOSE;
		run.act_at = acts == 0 ? NEVER : 2;
		assert_int_equal(pthread_create(&thread, NULL, feed, &feeder), 0);
		source_run_all(&run);
		assert_memory_equal(run.bytes, f->large.bytes, run.n);
		if (acts == 0)
			assert_int_equal(run.n, f->large.n);
		let_go(&run);
		assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
		assert_int_equal(dup2(kept, STDIN_FILENO), STDIN_FILENO); /* ends the feeder */
		pthread_join(thread, NULL);
		source_run_close(&run);
	}
	close(kept);
}
