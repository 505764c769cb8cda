/* Each allocation of an overview fails in turn, including those of the libraries. The overview then
 * says so, or does without; and when there is memory again, it gives the picture that it would have
 * given at once. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/overview/overview.h"
#include "cli/overview/overview_json.h"
#include "formats/segment/segment_index.h"
#include "formats/segment/segment_writer.h"
#include "tests/support/failing_heap.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

#define START    INT64_C(1795166100000000000)
#define HZ       1000000u /* a tick is 1,000 ns */
#define CHUNK_NS INT64_C(1000000)
#define RECORDS  300u /* in a chunk, so that it has room for page counts */
#define FIRST    "20261120T091500Z-3f9a2c"
#define LATER    "20261120T101500Z-4f9a2c"

static struct bc_chunk_pages chunk_pages;

/* What an overview says: its pictures and events as JSON. */
struct printed {
	size_t bytes;
	char text[1 << 17];
};

struct fixture {
	struct temp_dir dir;
	struct bc_chunk *chunk;
	uint8_t *encoded;
	struct bc_segment_writer writer;
	char recording[BC_RECORDING_ID_MAX];
	uint64_t number;
	uint32_t chunks;
	uint32_t records; /* in a chunk */
	bool has_summary; /* segments get one */
	char *paths[8];
	int path_count;
	struct bc_overview *overview;
	const struct bc_overview_options *options;
	struct printed *expected;
	struct printed *printed;
};

/* ---- files */

static void start_segment(struct fixture *f, const char *recording, uint32_t segment)
{
	struct bc_segment_header header = {.segment = segment,
		.label = "boot",
		.clock_hz = HZ,
		.wall_ns = START,
		.metadata = "{\"board\":\"A\"}"};
	char name[BC_SEGMENT_NAME_MAX];

	f->number = segment == 0 ? 0 : f->number;
	snprintf(f->recording, sizeof(f->recording), "%s", recording);
	snprintf(header.recording, sizeof(header.recording), "%s", recording);
	snprintf(name, sizeof(name), "%s-%05u.byu.lz4", recording, segment);
	assert_int_equal(bc_segment_create(&f->writer, f->dir.fd, name, ".partial", &header), 0);
	f->paths[f->path_count] = test_alloc(TEMP_PATH_BYTES);
	temp_path(&f->dir, name, f->paths[f->path_count++]);
}

static void add_records(struct fixture *f)
{
	struct bc_chunk *chunk = f->chunk;

	for (uint32_t i = 0; i < f->records; i++) {
		struct bc_record record = {.addr = (100 + 7 * f->chunks + i % 4) << 12 | i,
			.reqtype = (uint8_t)(i % 4),
			.size = 8,
			.time = 1};
		if (i % 100 == 50)
			record = (struct bc_record){
				.addr = 0x3F8, .reqtype = BC_REQ_IOWRITE, .size = 1, .time = 1};
		bc_record_store(chunk->records + (size_t)i * BC_RECORD_BYTES, &record);
	}
	chunk->info.records = f->records;
	chunk->info.last_tick = chunk->info.first_tick + f->records - 1;
}

static void append_chunk(struct fixture *f)
{
	size_t header_bytes;

	bc_chunk_encode(f->encoded, f->chunk, BC_LEVEL_DEFAULT, &chunk_pages, &header_bytes);
	assert_int_equal(bc_segment_append(&f->writer, f->encoded, header_bytes, &f->chunk->info, 0,
				 0, f->has_summary ? &chunk_pages.counts : NULL),
		0);
	f->number += f->chunk->info.records;
	f->chunks++;
}

/* Adds chunks, each 1 ms after the one before; every eighth has a mark in its middle. */
static void add_chunks(struct fixture *f, uint32_t count)
{
	static const struct bc_event mark = {.kind = BC_EVENT_MARK, .position = 2, .text_bytes = 5};

	for (uint32_t i = 0; i < count; i++) {
		bc_chunk_reset(f->chunk, 1000, 0);
		f->chunk->info.recording_tag = bc_recording_tag(f->recording);
		f->chunk->info.first_record = f->number;
		f->chunk->info.wall_ns = START + f->chunks * CHUNK_NS;
		add_records(f);
		if (f->chunks % 8 == 3)
			assert_true(bc_chunk_add_event(f->chunk, &mark, "relay"));
		append_chunk(f);
	}
}

static void flip(const char *path, uint64_t offset)
{
	uint8_t byte;
	int fd = open(path, O_RDWR | O_CLOEXEC);

	assert_int_equal(pread(fd, &byte, 1, (off_t)offset), 1);
	byte ^= 0x10;
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)offset), 1);
	close(fd);
}

/* Writes a file of two sealed segments. */
static void write_concatenation(struct fixture *f)
{
	size_t bytes[2];
	uint8_t *segments[2];

	for (uint32_t i = 0; i < 2; i++) {
		start_segment(f, LATER, 1 + i);
		add_chunks(f, 2);
		assert_int_equal(bc_segment_seal(&f->writer), 0);
		segments[i] = temp_read(&f->dir, basename(f->paths[f->path_count - 1]), &bytes[i]);
	}
	free(f->paths[--f->path_count]);
	segments[0] = realloc(segments[0], bytes[0] + bytes[1]);
	assert_non_null(segments[0]);
	memcpy(segments[0] + bytes[0], segments[1], bytes[1]);
	temp_write(
		&f->dir, basename(f->paths[f->path_count - 1]), segments[0], bytes[0] + bytes[1]);
	free(segments[0]);
	free(segments[1]);
}

/* A recording of segments that are sealed, without a summary, and cut off; and one of a segment in
 * progress, with short chunks of which one is damaged, and of a file of two segments. Another file
 * is not a segment. */
static void write_files(struct fixture *f)
{
	f->records = RECORDS;
	f->has_summary = true;
	start_segment(f, FIRST, 0);
	add_chunks(f, 34);
	assert_int_equal(bc_segment_seal(&f->writer), 0);
	f->has_summary = false;
	start_segment(f, FIRST, 1);
	add_chunks(f, 20);
	assert_int_equal(bc_segment_seal(&f->writer), 0);
	start_segment(f, FIRST, 2);
	add_chunks(f, 10);
	uint64_t end = f->writer.file.bytes;
	assert_int_equal(bc_segment_seal(&f->writer), 0);
	assert_int_equal(truncate(f->paths[2], (off_t)end - 100), 0);
	f->records = 3; /* too few for page counts */
	start_segment(f, LATER, 0);
	add_chunks(f, 4);
	end = f->writer.file.bytes;
	add_chunks(f, 4);
	bc_segment_abandon(&f->writer);
	strcat(f->paths[3], ".partial");
	flip(f->paths[3], end - 8);
	write_concatenation(f);
	f->paths[f->path_count] = test_alloc(TEMP_PATH_BYTES);
	temp_path(&f->dir, "text.byu.lz4", f->paths[f->path_count++]);
	temp_write(&f->dir, "text.byu.lz4", "text", 4);
}

/* ---- what an overview says */

static int on_open(void *context, const char *path)
{
	(void)context;
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void on_fault(void *context, const struct bc_search_fault *fault)
{
	(void)context;
	(void)fault;
}

static bool on_text(void *context, const char *text, size_t bytes)
{
	struct printed *p = context;

	if (bytes > sizeof(p->text) - p->bytes)
		return false;
	memcpy(p->text + p->bytes, text, bytes);
	p->bytes += bytes;
	return true;
}

static int open_overview(struct fixture *f)
{
	const struct bc_search_io io = {.context = f, .open = on_open, .fault = on_fault};

	return bc_overview_open(&f->overview, &io);
}

static int update(struct fixture *f)
{
	return bc_overview_update(f->overview, f->paths, f->path_count);
}

static int draw(struct fixture *f)
{
	int rc = bc_overview_draw(f->overview, f->options);

	if (rc != 0)
		assert_int_equal(bc_overview_picture(f->overview)->column_count, 0);
	return rc;
}

static int print(struct fixture *f)
{
	f->printed->bytes = 0;
	return bc_overview_json(f->overview, NULL, on_text, f->printed);
}

static int print_events(struct fixture *f)
{
	f->printed->bytes = 0;
	return bc_overview_events_json(f->overview, INT64_MIN, INT64_MAX, 10, on_text, f->printed);
}

static void has_printed_the_expected(struct fixture *f)
{
	assert_int_equal(f->printed->bytes, f->expected->bytes);
	assert_memory_equal(f->printed->text, f->expected->text, f->expected->bytes);
}

/* Draws and prints. */
static int show(struct fixture *f)
{
	int rc = draw(f);

	return rc == 0 ? print(f) : rc;
}

static void keep_expected(struct fixture *f)
{
	struct printed *printed = f->printed;

	f->printed = f->expected;
	f->expected = printed;
}

static void close_overview(struct fixture *f)
{
	bc_overview_close(f->overview);
	f->overview = NULL;
}

/* ---- tests */

static const struct bc_overview_options pictures[] = {
	[BC_OVERVIEW_RECORDS] = {START + 30 * CHUNK_NS, INT64_MAX, 0, BC_PLACES - 1, 5, 9, 1 << 24},
	[BC_OVERVIEW_CHUNKS] = {INT64_MIN, INT64_MAX, 0, BC_PLACES - 1, 20, 9, 1 << 18},
	[BC_OVERVIEW_SUMMARY] = {INT64_MIN, INT64_MAX, 0, BC_PLACES - 1, 3, 9, 1 << 18},
	[BC_OVERVIEW_SEGMENTS] = {INT64_MIN, INT64_MAX, 0, BC_PLACES - 1, 1, 9, 1 << 18},
};

static void set_up(struct fixture *f)
{
	temp_dir_make(&f->dir);
	f->chunk = test_alloc(sizeof(*f->chunk));
	f->encoded = test_alloc(BC_CHUNK_ENCODED_MAX);
	f->expected = test_alloc(sizeof(*f->expected));
	f->printed = test_alloc(sizeof(*f->printed));
	f->options = &pictures[BC_OVERVIEW_RECORDS];
	write_files(f);
}

static void tear_down(struct fixture *f)
{
	bc_overview_close(f->overview);
	while (f->path_count > 0)
		free(f->paths[--f->path_count]);
	free(f->printed);
	free(f->expected);
	free(f->encoded);
	free(f->chunk);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

/* Runs a step with the first allocation failing, then the second, and so on until none fails.
 * `before` prepares an overview for it and `after` checks it when the step has succeeded, possibly
 * repeated. Nothing may leak. */
static void fail_in_turn(struct fixture *f, bool is_lasting, void (*before)(struct fixture *f),
	int (*step)(struct fixture *f), void (*after)(struct fixture *f))
{
	int free_fd = first_free_fd();
	bool is_over = false;

	for (long n = 0; !is_over; n += test_stride(145)) {
		failing_heap_start(-1, is_lasting);
		before(f);
		heap.until_failure = n;
		int rc = step(f);
		failing_heap_mend();
		is_over = !heap.has_failed;
		if (rc != 0 && (is_over || rc != -ENOMEM))
			fail_msg("allocation %ld failed: result %d", n, rc);
		if (rc != 0)
			assert_int_equal(step(f), 0);
		after(f);
		close_overview(f);
		failing_heap_stop();
		assert_int_equal(heap.live, 0);
		assert_int_equal(first_free_fd(), free_fd);
		assert_true(n != 0 || !is_over);
	}
}

static void fail_each(struct fixture *f, void (*before)(struct fixture *f),
	int (*step)(struct fixture *f), void (*after)(struct fixture *f))
{
	fail_in_turn(f, true, before, step, after);
	fail_in_turn(f, false, before, step, after);
}

static void has_nothing(struct fixture *f)
{
	(void)f;
}

static void is_open(struct fixture *f)
{
	assert_int_equal(open_overview(f), 0);
}

static void is_updated(struct fixture *f)
{
	is_open(f);
	assert_int_equal(update(f), 0);
}

static void is_drawn(struct fixture *f)
{
	is_updated(f);
	assert_int_equal(draw(f), 0);
}

static void shows_the_expected(struct fixture *f)
{
	assert_int_equal(show(f), 0);
	has_printed_the_expected(f);
}

static void prints_the_expected(struct fixture *f)
{
	assert_int_equal(print(f), 0);
	has_printed_the_expected(f);
}

static void is_updated_and_shows_the_expected(struct fixture *f)
{
	assert_int_equal(update(f), 0);
	shows_the_expected(f);
}

/* Lets an overview that has memory say what is expected. */
static void expect_of(struct fixture *f, int (*say)(struct fixture *f))
{
	is_drawn(f);
	assert_int_equal(say(f), 0);
	keep_expected(f);
	close_overview(f);
}

TEST_F(opening_works_or_reports_out_of_memory)
{
	expect_of(f, print);
	fail_each(f, has_nothing, open_overview, is_updated_and_shows_the_expected);
}

TEST_F(an_update_works_or_reports_out_of_memory)
{
	expect_of(f, print);
	fail_each(f, is_open, update, shows_the_expected);
}

static int update_without_first(struct fixture *f)
{
	return bc_overview_update(f->overview, f->paths + 1, f->path_count - 1);
}

static void knows_the_first_files(struct fixture *f)
{
	is_open(f);
	assert_int_equal(bc_overview_update(f->overview, f->paths, 2), 0);
	assert_int_equal(draw(f), 0);
}

/* Draws, even if the update failed. */
static int update_and_show(struct fixture *f)
{
	int rc = update_without_first(f);

	if (rc != 0)
		failing_heap_mend();
	int shown = show(f);
	return rc != 0 ? rc : shown;
}

TEST_F(after_a_failed_update_there_is_a_picture_of_what_is_known)
{
	free(f->paths[--f->path_count]); /* drawing in between changes the order of damage */
	is_open(f);
	assert_int_equal(update_and_show(f), 0);
	keep_expected(f);
	close_overview(f);
	fail_each(f, knows_the_first_files, update_and_show, has_printed_the_expected);
}

static void check_drawing(struct fixture *f, enum bc_overview_unit unit)
{
	f->options = &pictures[unit];
	expect_of(f, print);
	is_drawn(f);
	assert_int_equal(bc_overview_picture(f->overview)->unit, unit);
	close_overview(f);
	fail_each(f, is_updated, draw, prints_the_expected);
}

TEST_F(records_are_drawn_or_out_of_memory_is_reported)
{
	check_drawing(f, BC_OVERVIEW_RECORDS);
}

TEST_F(chunks_are_drawn_or_out_of_memory_is_reported)
{
	check_drawing(f, BC_OVERVIEW_CHUNKS);
}

TEST_F(nodes_are_drawn_or_out_of_memory_is_reported)
{
	check_drawing(f, BC_OVERVIEW_SUMMARY);
}

TEST_F(segments_are_drawn_or_out_of_memory_is_reported)
{
	check_drawing(f, BC_OVERVIEW_SEGMENTS);
}

TEST_F(a_text_is_whole_or_out_of_memory_is_reported)
{
	expect_of(f, print);
	fail_each(f, is_drawn, print, has_printed_the_expected);
}

TEST_F(events_are_all_listed_or_out_of_memory_is_reported)
{
	expect_of(f, print_events);
	fail_each(f, is_updated, print_events, has_printed_the_expected);
}
