#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/api/listing.h"
#include "daemon/base/log.h"
#include "daemon/store/catalogue_listing.h"
#include "formats/base/json.h"
#include "tests/support/header_file.h"
#include "tests/support/segments.h"
#include "tests/support/small_segment.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

TEST_THREADS;

#define OTHER "20261121T000000Z-000000-later"

struct fixture {
	struct temp_dir dir;
	uv_loop_t loop;
	struct bc_catalogue *catalogue;
	struct bc_listing *listing;
	struct bc_page page; /* to ask for */
	json_t *rows;        /* the last answer; NULL: failed */
	uint64_t omitted;
	unsigned answers;
	bool asks_again;
};

static void set_up(struct fixture *f)
{
	temp_dir_make(&f->dir);
	assert_int_equal(uv_loop_init(&f->loop), 0);
	bc_log_set_level(BC_LOG_ERROR);
	assert_int_equal(bc_catalogue_open(&f->catalogue, f->dir.fd), 0);
	assert_int_equal(bc_listing_open(&f->listing, &f->loop, f->dir.path, f->catalogue), 0);
	f->page.limit = BC_PAGE_RECORDINGS;
}

static void tear_down(struct fixture *f)
{
	bc_listing_close(f->listing);
	uv_run(&f->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&f->loop), 0);
	json_decref(f->rows);
	bc_catalogue_stop(f->catalogue);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

static void on_page(void *context, json_t *rows, uint64_t omitted)
{
	struct fixture *f = context;

	json_decref(f->rows);
	f->rows = rows;
	f->omitted = omitted;
	f->answers++;
	if (f->asks_again) {
		f->asks_again = false;
		assert_int_equal(bc_listing_page(f->listing, &f->page, f, on_page), 0);
	}
}

static json_t *row(struct fixture *f, size_t rows, size_t number)
{
	assert_int_equal(bc_catalogue_refresh(f->catalogue), 0);
	assert_int_equal(bc_listing_page(f->listing, &f->page, f, on_page), 0);
	uv_run(&f->loop, UV_RUN_DEFAULT);
	assert_non_null(f->rows);
	assert_int_equal(json_array_size(f->rows), rows);
	return json_array_get(f->rows, number);
}

/* Compares a member with JSON text. */
static void assert_member(const json_t *object, const char *name, const char *expected)
{
	char *text = bc_json_print(json_object_get(object, name));

	assert_non_null(text);
	if (strcmp(text, expected) != 0)
		fail_msg("%s is %s, not %s", name, text, expected);
	free(text);
}

static void make(struct fixture *f, uint32_t number, uint64_t first_record, uint64_t *bytes)
{
	struct small_segment s;

	small_make(&s, &f->dir, number, first_record);
	*bytes += s.size;
	free(s.bytes);
}

TEST_F(a_recording_is_a_row_with_the_totals_of_its_segments)
{
	char expected[TEMP_PATH_BYTES + 2];
	uint64_t bytes = 0;

	make(f, 3, 0, &bytes);
	make(f, 4, SMALL_RECORDS, &bytes);
	temp_write(&f->dir, "notes.txt", "", 0);
	const json_t *r = row(f, 1, 0);
	assert_member(r, "id", "\"" SMALL_RECORDING "\"");
	assert_member(r, "label", "\"boot\"");
	assert_member(r, "started", "\"2026-11-20T09:15:00.248291015Z\"");
	assert_member(r, "state", "\"sealed\"");
	assert_member(r, "segments", "2");
	assert_member(r, "records", "92");
	assert_member(r, "lost", "258");
	assert_member(r, "missing_segments", "0");
	snprintf(expected, sizeof(expected), "%llu", (unsigned long long)bytes);
	assert_member(r, "bytes", expected);
	assert_member(r, "metadata", "{\"who\":\"me\",\"n\":[1,2]}");
	snprintf(expected, sizeof(expected), "\"%s/" SMALL_RECORDING "-00004.byu.lz4\"",
		f->dir.path);
	assert_member(r, "path", expected);
	assert_member(r, "reason", "null");
	assert_true(json_is_string(json_object_get(r, "ended")));
	assert_int_equal(json_object_size(r), 19);
}

TEST_F(recordings_are_listed_oldest_first)
{
	uint64_t bytes = 0;

	make(f, 0, 0, &bytes);
	header_file_make(&f->dir, OTHER "-00000.byu.lz4", 0);
	assert_member(row(f, 2, 0), "id", "\"" SMALL_RECORDING "\"");
	assert_member(row(f, 2, 1), "id", "\"" OTHER "\"");
	assert_member(row(f, 2, 1), "started", "\"2026-11-21T00:00:00.000000000Z\"");
}

TEST_F(an_unsealed_segment_makes_a_recording_open)
{
	uint64_t bytes = 0;

	make(f, 0, 0, &bytes);
	make(f, 1, 0, &bytes);
	assert_int_equal(renameat(f->dir.fd, SMALL_RECORDING "-00001.byu.lz4", f->dir.fd,
				 SMALL_RECORDING "-00001.byu.lz4.partial"),
		0);
	assert_int_equal(truncate(temp_path(&f->dir, SMALL_RECORDING "-00001.byu.lz4.partial",
					  (char[TEMP_PATH_BYTES]){0}),
				 1000),
		0);
	const json_t *r = row(f, 1, 0);
	assert_member(r, "state", "\"open\"");
	assert_member(r, "ended", "null");
	assert_member(r, "records", "null");
	assert_member(r, "lost", "null");
	assert_member(r, "segments", "2");
	assert_member(r, "label", "\"boot\"");
}

TEST_F(damage_at_any_byte_of_a_segment_never_loses_its_row)
{
	struct small_segment s;

	small_make(&s, &f->dir, 0, 0);
	for (size_t i = 0; i < s.size; i += test_stride(25)) {
		s.bytes[i] ^= 0x41;
		temp_write(&f->dir, s.name, s.bytes, s.size);
		const json_t *r = row(f, 1, 0);
		assert_member(r, "id", "\"" SMALL_RECORDING "\"");
		assert_member(r, "segments", "1");
		s.bytes[i] ^= 0x41;
	}
	/* Without its header and its index, nothing says that it is a segment. */
	for (size_t n = s.chunks[0].begin; n < s.size; n += test_stride(25)) {
		temp_write(&f->dir, s.name, s.bytes, n);
		const json_t *r = row(f, 1, 0);
		assert_member(r, "records", "null"); /* its index is damaged */
	}
	free(s.bytes);
}

TEST_F(other_directory_entries_are_ignored)
{
	assert_int_equal(mkfifoat(f->dir.fd, OTHER "-00000.byu.lz4", 0600), 0);
	assert_int_equal(symlinkat("/etc/passwd", f->dir.fd, OTHER "-00001.byu.lz4"), 0);
	row(f, 0, 0);
}

TEST_F(foreign_files_are_not_listed)
{
	uint64_t bytes = 0;

	make(f, 0, 0, &bytes);
	temp_write(&f->dir, OTHER "-00000.byu.lz4", "text", 4);
	assert_int_equal(linkat(f->dir.fd, SMALL_RECORDING "-00000.byu.lz4", f->dir.fd,
				 OTHER "-00001.byu.lz4", 0),
		0);
	assert_member(row(f, 1, 0), "id", "\"" SMALL_RECORDING "\"");
}

TEST_F(a_name_without_a_time_has_no_start)
{
	header_file_make(&f->dir, "mine-00000.byu.lz4", 0);
	const json_t *r = row(f, 1, 0);
	assert_member(r, "id", "\"mine\"");
	assert_member(r, "started", "null");
	assert_member(r, "label", "null");
	assert_member(r, "metadata", "{}");
}

TEST_F(a_page_has_the_recordings_before_another_one)
{
	char name[80];

	for (unsigned i = 0; i < 7; i++) {
		snprintf(name, sizeof(name), "20261120T00000%uZ-000000-00000.byu.lz4", i);
		header_file_make(&f->dir, name, 0);
	}
	f->page.limit = 3;
	assert_member(row(f, 3, 0), "id", "\"20261120T000004Z-000000\"");
	assert_int_equal(f->omitted, 4);
	strcpy(f->page.before, "20261120T000004Z-000000");
	assert_member(row(f, 3, 2), "id", "\"20261120T000003Z-000000\"");
	assert_int_equal(f->omitted, 1);
	strcpy(f->page.before, "20261120T000001Z-000000");
	assert_member(row(f, 1, 0), "id", "\"20261120T000000Z-000000\"");
	assert_int_equal(f->omitted, 0);
}

TEST_F(a_recording_of_many_segments_is_summed_up_by_its_ends)
{
	char expected[32];
	uint64_t bytes = 0;

	for (uint32_t i = 7; i < 7 + 1001; i++)
		make(f, i, (uint64_t)i * SMALL_RECORDS, &bytes);
	const json_t *r = row(f, 1, 0);
	assert_member(r, "segments", "1001");
	json_int_t records = json_integer_value(json_object_get(r, "records"));
	assert_int_equal(records, 1001 * SMALL_RECORDS);
	snprintf(expected, sizeof(expected), "%llu", (unsigned long long)bytes);
	assert_member(r, "bytes", expected);
	/* What is missing is not counted. */
	assert_int_equal(unlinkat(f->dir.fd, SMALL_RECORDING "-00009.byu.lz4", 0), 0);
	make(f, 7 + 1001, (uint64_t)(7 + 1001) * SMALL_RECORDS, &bytes);
	r = row(f, 1, 0);
	assert_member(r, "records", "null");
	assert_member(r, "lost", "129"); /* by the last one */
	assert_member(r, "missing_segments", "1");
}

/* Makes a segment of chunks with a note and, by their counts, 10 more samples lost in each. */
static void make_noted(struct fixture *f)
{
	static const char *const notes[] = {
		"{\"who\":\"you\",\"run\":\"7\"}", "no object", "{\"run\":\"8\"}"};
	struct bc_segment_header header = {
		.recording = SMALL_RECORDING, .metadata = "{\"who\":\"me\"}"};
	struct bc_segment_writer writer;
	struct bc_chunk *chunk = malloc(sizeof(*chunk));

	assert_non_null(chunk);
	assert_int_equal(bc_segment_create(&writer, f->dir.fd, SMALL_RECORDING "-00000.byu.lz4",
				 ".partial", &header),
		0);
	for (size_t i = 0; i < COUNT_OF(notes); i++) {
		struct bc_event note = {
			.kind = BC_EVENT_NOTE, .text_bytes = (uint16_t)strlen(notes[i])};
		bc_chunk_reset(chunk, 0, 0);
		chunk->info.recording_tag = bc_recording_tag(SMALL_RECORDING);
		chunk->info.totals.lost[BC_GAP_DISK] = 10 * (i + 1);
		chunk->info.totals.gaps = i + 3;
		chunk->info.totals.inexact = i;
		chunk->info.totals.away_ns = 7 * i;
		assert_true(bc_chunk_add_event(chunk, &note, notes[i]));
		segment_append(&writer, chunk, 0, 0);
	}
	assert_int_equal(bc_segment_seal(&writer), 0);
	free(chunk);
}

TEST_F(notes_are_in_the_metadata)
{
	make_noted(f);
	assert_member(row(f, 1, 0), "metadata", "{\"who\":\"you\",\"run\":\"8\"}");
}

TEST_F(a_loss_without_a_gap_is_listed)
{
	make_noted(f);
	assert_member(row(f, 1, 0), "lost", "30");
	assert_member(row(f, 1, 0), "gaps", "5");
	assert_member(row(f, 1, 0), "inexact_gaps", "2");
	assert_member(row(f, 1, 0), "away_ns", "14");
}

/* On the loop */

TEST_F(every_request_is_answered_asynchronously)
{
	uint64_t bytes = 0;

	make(f, 0, 0, &bytes);
	assert_int_equal(bc_catalogue_refresh(f->catalogue), 0);
	f->asks_again = true;
	for (int i = 0; i < 100; i++)
		assert_int_equal(bc_listing_page(f->listing, &f->page, f, on_page), 0);
	assert_int_equal(f->answers, 0);
	uv_run(&f->loop, UV_RUN_DEFAULT);
	assert_int_equal(f->answers, 101);
	assert_int_equal(json_array_size(f->rows), 1);
}

TEST_F(a_missing_directory_is_an_error)
{
	bc_listing_close(f->listing);
	assert_int_equal(
		bc_listing_open(&f->listing, &f->loop, "/nowhere/at/all", f->catalogue), 0);
	assert_int_equal(bc_listing_page(f->listing, &f->page, f, on_page), 0);
	uv_run(&f->loop, UV_RUN_DEFAULT);
	assert_int_equal(f->answers, 1);
	assert_null(f->rows);
}

TEST_F(the_listing_may_be_closed_while_reading)
{
	uint64_t bytes = 0;

	make(f, 0, 0, &bytes);
	for (unsigned asked = 0; asked < 3; asked++) {
		f->answers = 0;
		for (unsigned i = 0; i < asked; i++)
			assert_int_equal(bc_listing_page(f->listing, &f->page, f, on_page), 0);
		bc_listing_close(f->listing);
		assert_int_equal(f->answers, asked);
		assert_null(f->rows);
		uv_run(&f->loop, UV_RUN_DEFAULT);
		assert_int_equal(f->answers, asked);
		assert_int_equal(
			bc_listing_open(&f->listing, &f->loop, f->dir.path, f->catalogue), 0);
	}
}
