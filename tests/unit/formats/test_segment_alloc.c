/* Each allocation while writing and reading a segment fails in turn, including those of the
 * libraries. */
#include <errno.h>
#include <fcntl.h>
#include <lz4frame.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/codec/input.h"
#include "formats/segment/segment.h"
#include "formats/segment/segment_header.h"
#include "formats/segment/segment_index.h"
#include "formats/segment/segment_reader.h"
#include "formats/segment/segment_writer.h"
#include "tests/support/compressor.h"
#include "tests/support/failing_heap.h"
#include "tests/support/segments.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

static struct bc_chunk_pages chunk_pages;

#define CHUNKS  300u /* so that the rows of the index grow twice */
#define RECORDS 5u

struct fixture {
	struct temp_dir dir;
	struct bc_segment_header header;
	struct bc_chunk chunk;
	uint8_t records[RECORDS * BC_RECORD_BYTES];
	uint8_t encoded[BC_CHUNK_ENCODED_MAX];
	size_t encoded_bytes;
};

static void set_up(struct fixture *f)
{
	temp_dir_make(&f->dir);
	f->header = (struct bc_segment_header){
		.recording = "20261120T091500Z-3f9a2c",
		.label = "x",
		.continues = "y",
		.source_kind = "usb",
		.board_serial = "1",
		.has_mapping = true,
		.metadata = "{\"a\":\"b\",\"c\":[1,2,{}]}",
	};
	for (size_t i = 0; i < sizeof(f->records); i++)
		f->records[i] = (uint8_t)(i * 7);
}

static void tear_down(struct fixture *f)
{
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

static int create(struct fixture *f)
{
	struct bc_segment_writer writer;
	int rc = bc_segment_create(&writer, f->dir.fd, "new", ".partial", &f->header);

	bc_segment_abandon(&writer);
	if (rc == 0)
		unlinkat(f->dir.fd, "new.partial", 0);
	return rc;
}

/* Returns 1 if the header does not say what it must. */
static int write_header(struct fixture *f)
{
	struct bc_segment_header header;
	uint8_t *out;
	size_t bytes;
	int rc = bc_segment_header_write(&out, &bytes, &f->header);

	if (rc != 0)
		return rc;
	heap.is_on = false;
	bool is_same = bc_segment_header_read(
			       &header, out + BC_EMPTY_FRAME_BYTES, bytes - BC_EMPTY_FRAME_BYTES) &&
		       header.version == BC_SEGMENT_VERSION &&
		       strcmp(header.recording, f->header.recording) == 0 &&
		       strcmp(header.label, f->header.label) == 0 &&
		       strcmp(header.continues, f->header.continues) == 0 &&
		       strcmp(header.source_kind, f->header.source_kind) == 0 &&
		       strcmp(header.board_serial, f->header.board_serial) == 0 &&
		       header.has_mapping;
	heap.is_on = true;
	free(out);
	return is_same ? 0 : 1;
}

/* Returns 1 if the other member is lost. */
static int remove_member(struct fixture *f)
{
	char all[BC_METADATA_MAX] = "{\"a\":\"1\",\"b\":\"2\"}";
	char before[BC_METADATA_MAX];
	char err[64];

	(void)f;
	strcpy(before, all);
	if (!bc_metadata_set(all, "a", "", err, sizeof(err)))
		return strcmp(all, before) == 0 && strcmp(err, "out of memory") == 0 ? -ENOMEM : 1;
	return strcmp(all, "{\"b\":\"2\"}") == 0 ? 0 : 1;
}

/* A chunk without memory for its index row is refused, and the earlier chunks can be sealed.
 * Without memory for the page counts, the segment has no page summary. */
TEST_F(a_chunk_without_an_index_row_is_refused_and_the_others_kept)
{
	size_t header_bytes;
	unsigned refused = 0;
	unsigned without_summary = 0;
	bool is_over = false;

	for (long allocations = 0; !is_over; allocations++) {
		struct bc_segment_writer writer;
		uint32_t appended = 0;
		int rc = 0;
		assert_int_equal(
			bc_segment_create(&writer, f->dir.fd, "s", ".partial", &f->header), 0);
		bc_chunk_reset(&f->chunk, 0, 0);
		f->chunk.info.recording_tag = bc_recording_tag(f->header.recording);
		f->chunk.info.records = RECORDS;
		memcpy(f->chunk.records, f->records, sizeof(f->records));
		bc_chunk_encode(
			f->encoded, &f->chunk, &test_compressor, &chunk_pages, &header_bytes);
		failing_heap_start(allocations, false);
		while (appended < CHUNKS && rc == 0) {
			rc = bc_segment_append(&writer, f->encoded, header_bytes, &f->chunk.info,
				&(struct bc_loss){0}, &chunk_pages.counts);
			appended += rc == 0;
		}
		failing_heap_stop();
		assert_true(rc == 0 || rc == -ENOMEM);
		is_over = !heap.has_failed;
		refused += rc != 0;
		assert_int_equal(appended, writer.chunks);
		assert_int_equal(bc_segment_seal(&writer), 0);

		struct bc_segment_index index;
		int fd = openat(f->dir.fd, "s", O_RDONLY | O_CLOEXEC);
		assert_int_equal(bc_segment_index_load(&index, fd), 0);
		assert_int_equal(index.head.rows, appended);
		bool has_summary = index.head.pages != 0;
		assert_int_equal(has_summary, appended != 0 && (is_over || rc != 0));
		without_summary += !has_summary;
		bc_segment_index_free(&index);
		close(fd);
		temp_dir_empty(&f->dir);
	}
	assert_int_equal(refused, 3); /* room for 64 rows, then 192 and 448 */
	assert_true(without_summary > 10);
}

static void write_segment(struct fixture *f)
{
	struct bc_segment_writer writer;

	assert_int_equal(bc_segment_create(&writer, f->dir.fd, "s", ".partial", &f->header), 0);
	for (uint32_t i = 0; i < 4; i++) {
		bc_chunk_reset(&f->chunk, 0, 0);
		f->chunk.info.recording_tag = bc_recording_tag(f->header.recording);
		f->chunk.info.first_record = i * RECORDS;
		f->chunk.info.records = RECORDS;
		memcpy(f->chunk.records, f->records, sizeof(f->records));
		segment_append(&writer, &f->chunk, 0, 0);
	}
	assert_int_equal(bc_segment_seal(&writer), 0);
}

static int load(struct fixture *f)
{
	struct bc_segment_index index;
	int fd = openat(f->dir.fd, "s", O_RDONLY | O_CLOEXEC);
	int rc = bc_segment_index_load(&index, fd);

	if (rc == 0)
		bc_segment_index_free(&index);
	close(fd);
	return rc;
}

static int load_header(struct fixture *f)
{
	struct bc_segment_header header;
	int fd = openat(f->dir.fd, "s", O_RDONLY | O_CLOEXEC);
	int rc = bc_segment_header_load(&header, fd);

	close(fd);
	return rc;
}

/* Returns 0 if everything was read. What is returned is whole, whatever failed. */
static int read_all(struct fixture *f, struct bc_segment_reader *reader)
{
	unsigned chunks = 0;
	int found;

	while ((found = bc_segment_read(reader, &f->chunk)) > BC_FOUND_END) {
		if (found == BC_FOUND_DAMAGE ||
			(found == BC_FOUND_SEGMENT && bc_segment_reader_header(reader) == NULL))
			return -EBADMSG;
		if (found != BC_FOUND_CHUNK)
			continue;
		chunks++;
		if (f->chunk.info.records != RECORDS ||
			memcmp(f->chunk.records, f->records, sizeof(f->records)) != 0)
			return -EBADMSG;
	}
	if (found < 0)
		return found;
	return chunks == 4 ? 0 : -EBADMSG;
}

static int read_segment(struct fixture *f)
{
	struct bc_segment_reader *reader;
	int fd = openat(f->dir.fd, "s", O_RDONLY | O_CLOEXEC);
	int rc = bc_segment_reader_open(
		&reader, (struct bc_input_stream){.fd = fd, .wake_fd = -1}, NULL, 0);

	if (rc == 0) {
		rc = read_all(f, reader);
		bc_segment_reader_close(reader);
	}
	close(fd);
	return rc;
}

static int open_input(struct fixture *f)
{
	struct bc_input *input;
	struct bc_probe probe;
	struct bc_segment_reader *reader;
	int fd = openat(f->dir.fd, "s", O_RDONLY | O_CLOEXEC);
	int rc = bc_input_open(&input, (struct bc_input_stream){.fd = fd, .wake_fd = -1},
		BC_FORMAT_SEGMENT, BC_WINDOW_LOG, &probe);

	if (rc == 0) {
		rc = bc_input_segments(input, &reader);
		if (rc == 0) {
			rc = read_all(f, reader);
			bc_segment_reader_close(reader);
		}
		bc_input_close(input);
	}
	close(fd);
	return rc;
}

static int read_plain(struct fixture *f)
{
	struct bc_input *input;
	struct bc_probe probe;
	uint8_t out[5 * sizeof(f->records)];
	size_t n = 0;
	ssize_t now;
	int fd = openat(f->dir.fd, "s", O_RDONLY | O_CLOEXEC);
	int rc = bc_input_open(&input, (struct bc_input_stream){.fd = fd, .wake_fd = -1},
		BC_FORMAT_BYU, BC_WINDOW_LOG, &probe);

	if (rc == 0) {
		while ((now = bc_input_read(input, out + n, sizeof(out) - n)) > 0)
			n += (size_t)now;
		rc = now < 0 ? (int)now : n == 4 * sizeof(f->records) ? 0 : -EIO;
		bc_input_close(input);
	}
	close(fd);
	return rc;
}

/* A frame by another encoder, which needs liblz4's decoder of frames. */
static int read_foreign_frame(struct fixture *f)
{
	uint8_t out[sizeof(f->records)];

	return bc_frame_read(out, sizeof(out), f->encoded, f->encoded_bytes);
}

/* After opening the compressor, writing a frame allocates nothing. */
static int write_zstd_frame(struct fixture *f)
{
	uint8_t out[sizeof(f->records)];
	struct bc_compressor compressor;
	int rc = bc_compressor_open(&compressor, BC_LEVEL_ZSTD);

	if (rc == 0) {
		size_t n = bc_frame_write(f->encoded, f->records, sizeof(f->records), &compressor);
		rc = bc_frame_read(out, sizeof(out), f->encoded, n);
	}
	bc_compressor_close(&compressor);
	return rc;
}

/* What may do without memory for a part of its work, or tries once more, may also succeed. */
static const struct {
	int (*work)(struct fixture *f);
	bool may_succeed;
} works[] = {
	{create, true},
	{write_header, true},
	{remove_member, true},
	{load, false},
	{load_header, false},
	{read_segment, false},
	{open_input, true},
	{read_plain, true},
	{read_foreign_frame, false},
	{write_zstd_frame, false},
};

/* Runs each with the first allocation failing, then the second, and so on until none fails. */
TEST_F(each_work_succeeds_or_reports_out_of_memory_and_leaves_nothing)
{
	f->encoded_bytes = LZ4F_compressFrame(
		f->encoded, sizeof(f->encoded), f->records, sizeof(f->records), NULL);
	assert_false(LZ4F_isError(f->encoded_bytes));
	write_segment(f);
	for (size_t i = 0; i < 2 * COUNT_OF(works); i++) {
		bool is_over = false;
		for (long n = 0; !is_over; n++) {
			failing_heap_start(n, i % 2 == 0);
			int rc = works[i / 2].work(f);
			failing_heap_stop();
			assert_int_equal(heap.live, 0);
			is_over = !heap.has_failed;
			assert_true(n != 0 || !is_over);
			if (rc != (is_over ? 0 : -ENOMEM) && !(rc == 0 && works[i / 2].may_succeed))
				fail_msg(
					"work %zu, allocation %ld failed: result %d", i / 2, n, rc);
		}
	}
	assert_int_equal(temp_dir_empty(&f->dir), 1);
}
