#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/segment/segment_index.h"
#include "formats/segment/segment_reader.h"
#include "formats/segment/segment_writer.h"
#include "formats/segment/sequence_check.h"
#include "tests/support/compressor.h"
#include "tests/support/segments.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

static struct bc_chunk_pages chunk_pages;

#define RECORDING "20261120T091500Z-3f9a2c"
#define NAME      RECORDING "-00000.byu.lz4"
#define PARTIAL   NAME ".partial"

/* The chunks of the test segment. Two have only events. There are three epochs; the second starts
 * at a lower tick than the first ends. */
static const struct plan {
	uint32_t records;
	uint32_t epoch;
	uint64_t first_tick;
	uint32_t step; /* ticks per record */
	uint32_t events;
} plan[] = {
	{5, 0, 1000, 10, 2},
	{1, 0, 1040, 0, 0}, /* starts at the last tick of the previous chunk */
	{0, 0, 1040, 0, 1},
	{7, 0, 2000, 0, 0}, /* all at the same tick */
	{3, 1, 50, 100, 1},
	{4, 1, UINT64_C(1) << 40, 1, 3},
	{0, 3, 0, 0, 1},
	{2, 3, 7, 7, 0},
};

#define CHUNKS (COUNT_OF(plan))

struct fixture {
	struct temp_dir dir;
	struct bc_chunk chunk;
	struct bc_chunk expected;
	struct bc_sequence_check sequence; /* of the chunks that are read */
	uint8_t encoded[BC_CHUNK_ENCODED_MAX];
};

static void set_up(struct fixture *f)
{
	signal(SIGXFSZ, SIG_IGN);
	temp_dir_make(&f->dir);
}

static void tear_down(struct fixture *f)
{
	bc_sequence_check_reset(&f->sequence);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

static struct bc_segment_header header_of(uint32_t segment, uint64_t first_record)
{
	return (struct bc_segment_header){
		.recording = RECORDING,
		.segment = segment,
		.source_kind = "sim",
		.clock_hz = 66000000,
		.first_record = first_record,
		.metadata = "{\"test\":true}",
	};
}

/* Fills a chunk according to plan[i]. */
static void fill_chunk(struct bc_chunk *chunk, size_t i, uint64_t first_record)
{
	const struct plan *p = &plan[i];

	bc_chunk_reset(chunk, p->first_tick, p->epoch);
	chunk->info.recording_tag = bc_recording_tag(RECORDING);
	chunk->info.first_record = first_record;
	chunk->info.wall_ns = INT64_C(1795166100000000000) + (int64_t)i;
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++)
		chunk->info.totals.lost[cause] = 1000 * cause + i;
	chunk->info.totals.gaps = i + 1;
	chunk->info.totals.inexact = i + 2;
	chunk->info.totals.away_ns = UINT64_MAX - i;
	for (uint32_t n = 0; n < p->events; n++) {
		struct bc_event event = {
			.position = n < p->records ? n : p->records,
			.kind = n % 2 == 0 ? BC_EVENT_GAP : BC_EVENT_MARK,
			.cause = n % 2 == 0 ? BC_GAP_BOARD : 0,
			.exact = n % 2 == 0,
			.value = n % 2 == 0 ? 10 + i : 0,
			.duration_ns = n * 1000,
			.text_bytes = (uint16_t)(n % 2 == 0 ? 0 : 3 + n),
		};
		assert_true(bc_chunk_add_event(chunk, &event, "mark a text"));
	}
	for (uint32_t n = 0; n < p->records; n++)
		bc_record_store(chunk->records + (size_t)n * BC_RECORD_BYTES,
			&(struct bc_record){
				.addr = (uint32_t)(first_record + n),
				.reqtype = (uint8_t)i,
				.size = 8,
				.proc = (uint8_t)(n % 4),
				.time = p->step,
			});
	chunk->info.records = p->records;
	chunk->info.last_tick = p->first_tick +
				(p->records != 0 ? (uint64_t)p->step * (p->records - 1) : 0);
}

/* The first record of each chunk. */
static uint64_t record_before(size_t i)
{
	uint64_t n = 0;

	while (i-- > 0)
		n += plan[i].records;
	return n;
}

static void append_chunk(
	struct fixture *f, struct bc_segment_writer *writer, size_t i, uint64_t from)
{
	size_t header_bytes;
	uint64_t bytes = writer->file.bytes;

	fill_chunk(&f->chunk, i, from + record_before(i));
	size_t n = bc_chunk_encode(
		f->encoded, &f->chunk, &test_compressor, &chunk_pages, &header_bytes);
	assert_int_equal(bc_segment_append(writer, f->encoded, header_bytes, &f->chunk.info,
				 &(struct bc_loss){.gaps = plan[i].events != 0,
					 .lost = plan[i].events != 0 ? 10 + i : 0},
				 &chunk_pages.counts),
		0);
	assert_int_equal(writer->file.bytes, bytes + n);
}

static void create_segment(struct fixture *f, struct bc_segment_writer *writer)
{
	struct bc_segment_header header = header_of(0, 0);

	assert_int_equal(bc_segment_create(writer, f->dir.fd, NAME, ".partial", &header), 0);
}

/* Writes the whole plan to a segment, sealed or open. */
static void write_segment(
	struct fixture *f, const char *name, uint32_t segment, uint64_t from, bool is_sealed)
{
	struct bc_segment_header header = header_of(segment, from);
	struct bc_segment_writer writer;

	assert_int_equal(bc_segment_create(&writer, f->dir.fd, name, ".partial", &header), 0);
	for (size_t i = 0; i < CHUNKS; i++)
		append_chunk(f, &writer, i, from);
	assert_int_equal(writer.chunks, CHUNKS);
	assert_int_equal(writer.records, record_before(CHUNKS));
	if (is_sealed)
		assert_int_equal(bc_segment_seal(&writer), 0);
	else
		bc_segment_abandon(&writer);
	assert_int_equal(writer.file.fd, -1);
}

struct reading {
	int fd;
	struct bc_segment_reader *reader;
};

static struct reading start_reading(struct fixture *f, const char *name)
{
	struct reading r = {.fd = openat(f->dir.fd, name, O_RDONLY | O_CLOEXEC)};

	assert_true(r.fd >= 0);
	r.reader = segment_reader_of(r.fd);
	bc_sequence_check_reset(&f->sequence);
	return r;
}

static void finish_reading(struct reading *r)
{
	bc_segment_reader_close(r->reader);
	close(r->fd);
}

/* Asserts that the chunk just read is the planned one. */
static void assert_chunk(
	struct fixture *f, size_t i, uint32_t segment, uint64_t from, bool has_records)
{
	const struct bc_chunk *got = &f->chunk;
	struct bc_chunk *want = &f->expected;

	fill_chunk(want, i, from + record_before(i));
	bc_chunk_describe(want, &chunk_pages);
	assert_int_equal(got->info.recording_tag, want->info.recording_tag);
	assert_int_equal(got->info.segment, segment);
	assert_int_equal(got->info.number, i);
	assert_int_equal(got->info.first_record, want->info.first_record);
	assert_int_equal(got->info.records, want->info.records);
	assert_int_equal(got->info.epoch, want->info.epoch);
	assert_int_equal(got->info.first_tick, want->info.first_tick);
	assert_int_equal(got->info.last_tick, want->info.last_tick);
	assert_true(got->info.wall_ns == want->info.wall_ns);
	assert_int_equal(got->info.addr_low, want->info.addr_low);
	assert_int_equal(got->info.addr_high, want->info.addr_high);
	assert_memory_equal(got->info.types, want->info.types, sizeof(want->info.types));
	assert_memory_equal(got->info.procs, want->info.procs, sizeof(want->info.procs));
	assert_int_equal(got->info.records_hash, want->info.records_hash);
	assert_memory_equal(&got->info.totals, &want->info.totals, sizeof(got->info.totals));
	assert_int_equal(got->info.events, want->info.events);
	for (uint32_t n = 0; n < want->info.events; n++) {
		const struct bc_event *a = &got->events[n];
		const struct bc_event *b = &want->events[n];
		assert_int_equal(a->position, b->position);
		assert_int_equal(a->kind, b->kind);
		assert_int_equal(a->cause, b->cause);
		assert_int_equal(a->exact, b->exact);
		assert_int_equal(a->value, b->value);
		assert_int_equal(a->duration_ns, b->duration_ns);
		assert_int_equal(a->text_bytes, b->text_bytes);
		assert_memory_equal(got->text + a->text, want->text + b->text, b->text_bytes);
	}
	if (has_records)
		assert_memory_equal(
			got->records, want->records, (size_t)want->info.records * BC_RECORD_BYTES);
}

/* Returns the number of records missing before the chunk just read. */
static uint64_t missing_before(struct fixture *f)
{
	struct bc_missing missing;

	assert_true(bc_sequence_check_chunk(&f->sequence, &f->chunk, &missing) >= 0);
	return missing.records;
}

/* Reads a whole segment of the plan. */
static void assert_segment(struct fixture *f, struct bc_segment_reader *reader, uint32_t segment,
	uint64_t from, bool is_sealed)
{
	assert_int_equal(bc_segment_read(reader, &f->chunk), BC_FOUND_SEGMENT);
	const struct bc_segment_header *header = bc_segment_reader_header(reader);
	assert_non_null(header);
	assert_string_equal(header->recording, RECORDING);
	assert_int_equal(header->segment, segment);
	assert_int_equal(header->first_record, from);
	assert_string_equal(header->metadata, "{\"test\":true}");
	bc_sequence_check_expect(&f->sequence, header);
	for (size_t i = 0; i < CHUNKS; i++) {
		assert_int_equal(bc_segment_read(reader, &f->chunk), BC_FOUND_CHUNK);
		assert_chunk(f, i, segment, from, true);
		assert_int_equal(missing_before(f), 0);
	}
	if (is_sealed)
		assert_int_equal(bc_segment_read(reader, &f->chunk), BC_FOUND_INDEX);
}

static void assert_end(struct fixture *f, struct bc_segment_reader *reader, bool is_sealed)
{
	for (int again = 0; again < 2; again++) {
		assert_int_equal(bc_segment_read(reader, &f->chunk), BC_FOUND_END);
		assert_int_equal(bc_segment_reader_is_sealed(reader), is_sealed);
	}
}

/* Asserts that NAME is the whole plan, sealed. */
static void assert_sealed(struct fixture *f)
{
	struct reading r = start_reading(f, NAME);

	assert_segment(f, r.reader, 0, 0, true);
	assert_end(f, r.reader, true);
	finish_reading(&r);
}

/* Writing and reading back */

TEST_F(a_segment_without_chunks_can_be_sealed_and_read)
{
	struct bc_segment_writer writer;
	struct bc_segment_index index;

	create_segment(f, &writer);
	assert_int_equal(bc_segment_seal(&writer), 0);
	struct reading r = start_reading(f, NAME);
	assert_int_equal(bc_segment_read(r.reader, &f->chunk), BC_FOUND_SEGMENT);
	assert_int_equal(bc_segment_read(r.reader, &f->chunk), BC_FOUND_INDEX);
	assert_end(f, r.reader, true);
	assert_int_equal(bc_segment_index_load(&index, r.fd), 0);
	assert_int_equal(index.head.rows, 0);
	bc_segment_index_free(&index);
	finish_reading(&r);
}

/* The position in the recording does not go back at a duplicate: nothing is missing after it. */
TEST_F(a_repeated_start_of_a_segment_leaves_nothing_missing)
{
	uint64_t records = record_before(CHUNKS);
	size_t n[2];

	write_segment(f, "0", 0, 0, true);
	write_segment(f, "1", 1, records, true);
	struct reading r = start_reading(f, "0");
	struct bc_segment_index index;
	struct bc_chunk_info info;
	assert_int_equal(bc_segment_index_load(&index, r.fd), 0);
	uint64_t second_chunk = bc_segment_index_row(&index, 1, &info);
	bc_segment_index_free(&index);
	finish_reading(&r);
	uint8_t *bytes[2] = {temp_read(&f->dir, "0", &n[0]), temp_read(&f->dir, "1", &n[1])};
	uint8_t *row = malloc(2 * n[0] + n[1]);
	assert_non_null(row);
	memcpy(row, bytes[0], n[0]);
	memcpy(row + n[0], bytes[0], second_chunk);
	memcpy(row + n[0] + second_chunk, bytes[1], n[1]);
	temp_write(&f->dir, "row", row, n[0] + second_chunk + n[1]);
	r = start_reading(f, "row");
	assert_segment(f, r.reader, 0, 0, true);
	assert_int_equal(bc_segment_read(r.reader, &f->chunk), BC_FOUND_SEGMENT);
	assert_int_equal(bc_segment_read(r.reader, &f->chunk), BC_FOUND_CHUNK);
	assert_chunk(f, 0, 0, 0, true);
	assert_int_equal(missing_before(f), 0);
	assert_segment(f, r.reader, 1, records, true);
	assert_end(f, r.reader, true);
	finish_reading(&r);
	free(row);
	free(bytes[0]);
	free(bytes[1]);
}

TEST_F(head_bytes_are_read_first)
{
	size_t n;

	write_segment(f, NAME, 0, 0, true);
	uint8_t *bytes = temp_read(&f->dir, NAME, &n);
	for (size_t head = 0; head <= n; head += head < 200 ? 1 : 37) {
		struct bc_segment_reader *reader;
		int fd = openat(f->dir.fd, NAME, O_RDONLY | O_CLOEXEC);
		assert_int_equal(lseek(fd, (off_t)head, SEEK_SET), head);
		assert_int_equal(bc_segment_reader_open(&reader,
					 (struct bc_input_stream){.fd = fd, .wake_fd = -1},
					 head != 0 ? bytes : NULL, head),
			0);
		bc_sequence_check_reset(&f->sequence);
		assert_segment(f, reader, 0, 0, true);
		assert_end(f, reader, true);
		bc_segment_reader_close(reader);
		close(fd);
	}
	struct bc_segment_reader *reader;
	assert_int_equal(
		bc_segment_reader_open(&reader, (struct bc_input_stream){.fd = -1, .wake_fd = -1},
			bytes, (1u << 20) + 1),
		-EINVAL);
	free(bytes);
	bc_segment_reader_close(NULL);
}

/* The index */

static struct bc_segment_index load_index(int fd)
{
	struct bc_segment_index index;

	assert_int_equal(bc_segment_index_load(&index, fd), 0);
	return index;
}

TEST_F(the_index_has_a_row_for_each_chunk_and_the_totals)
{
	write_segment(f, NAME, 2, 77, true);
	struct reading r = start_reading(f, NAME);
	struct bc_segment_index index = load_index(r.fd);
	assert_int_equal(index.head.rows, CHUNKS);
	assert_int_equal(index.head.records, record_before(CHUNKS));
	uint64_t gaps = 0;
	uint64_t lost = 0;
	assert_int_equal(bc_segment_read(r.reader, &f->chunk), BC_FOUND_SEGMENT);
	for (uint32_t i = 0; i < CHUNKS; i++) {
		struct bc_chunk_info info;
		memset(&info, 0, sizeof(info));
		assert_int_equal(bc_segment_read(r.reader, &f->chunk), BC_FOUND_CHUNK);
		uint64_t offset = bc_segment_index_row(&index, i, &info);
		assert_int_equal(offset, bc_segment_reader_offset(r.reader));
		assert_memory_equal(&info, &f->chunk.info, sizeof(info));
		gaps += plan[i].events != 0;
		lost += plan[i].events != 0 ? 10 + i : 0;
	}
	assert_int_equal(index.head.loss.gaps, gaps);
	assert_int_equal(index.head.loss.lost, lost);
	assert_int_equal(index.head.loss.away_ns, 0);
	assert_int_equal(bc_segment_read(r.reader, &f->chunk), BC_FOUND_INDEX);
	assert_int_equal(index.head.offset, bc_segment_reader_offset(r.reader));
	bc_segment_index_free(&index);
	finish_reading(&r);
}

TEST_F(any_range_of_chunks_is_read_without_the_others)
{
	write_segment(f, NAME, 0, 0, true);
	struct reading r = start_reading(f, NAME);
	struct bc_segment_index index = load_index(r.fd);
	for (uint32_t first = 0; first < CHUNKS; first++) {
		for (uint32_t end = first; end <= CHUNKS; end++) {
			struct bc_chunk_info info;
			uint64_t from = bc_segment_index_row(&index, first, &info);
			uint64_t to = end < CHUNKS ? bc_segment_index_row(&index, end, &info)
						   : index.head.offset;
			assert_int_equal(bc_segment_reader_range(r.reader, from, to), 0);
			bc_sequence_check_reset(&f->sequence);
			for (uint32_t i = first; i < end; i++) {
				assert_int_equal(
					bc_segment_read(r.reader, &f->chunk), BC_FOUND_CHUNK);
				assert_chunk(f, i, 0, 0, true);
				assert_int_equal(missing_before(f), 0);
			}
			assert_int_equal(bc_segment_read(r.reader, &f->chunk), BC_FOUND_END);
		}
		/* To the end of the file: the index is valid although some chunks were not read. */
		struct bc_chunk_info info;
		uint64_t from = bc_segment_index_row(&index, first, &info);
		assert_int_equal(bc_segment_reader_range(r.reader, from, UINT64_MAX), 0);
		for (uint32_t i = first; i < CHUNKS; i++)
			assert_int_equal(bc_segment_read(r.reader, &f->chunk), BC_FOUND_CHUNK);
		assert_int_equal(bc_segment_read(r.reader, &f->chunk), BC_FOUND_INDEX);
		assert_end(f, r.reader, true);
	}
	bc_segment_index_free(&index);
	finish_reading(&r);
}

TEST_F(only_headers_are_read_when_skipping_records)
{
	write_segment(f, NAME, 0, 0, true);
	struct reading r = start_reading(f, NAME);
	bc_segment_reader_skip_records(r.reader, r.fd, NULL, NULL);
	assert_int_equal(bc_segment_read(r.reader, &f->chunk), BC_FOUND_SEGMENT);
	for (size_t i = 0; i < CHUNKS; i++) {
		assert_int_equal(bc_segment_read(r.reader, &f->chunk), BC_FOUND_CHUNK);
		assert_chunk(f, i, 0, 0, false);
	}
	assert_int_equal(bc_segment_read(r.reader, &f->chunk), BC_FOUND_INDEX);
	assert_end(f, r.reader, true);
	finish_reading(&r);
}

static int load_error(struct fixture *f, const char *name)
{
	struct bc_segment_index index;
	int fd = openat(f->dir.fd, name, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	int rc = bc_segment_index_load(&index, fd);
	if (rc == 0)
		bc_segment_index_free(&index);
	else
		assert_null(index.rows);
	close(fd);
	return rc;
}

TEST_F(files_without_an_index_are_reported)
{
	struct bc_segment_index index;
	size_t n;
	int fds[2];

	write_segment(f, NAME, 0, 0, true);
	write_segment(f, "open", 1, 0, false);
	assert_int_equal(load_error(f, "open.partial"), -ENOENT);
	uint8_t *bytes = temp_read(&f->dir, NAME, &n);
	for (size_t part = 0; part < n; part += part + 100 < n ? 31 : 1) {
		temp_write(&f->dir, "torn", bytes, part);
		assert_int_equal(load_error(f, "torn"), -ENOENT);
	}
	uint8_t *row = malloc(2 * n);
	assert_non_null(row);
	memcpy(row, bytes, n);
	memcpy(row + n, bytes, n);
	temp_write(&f->dir, "row", row, 2 * n); /* two segments have no common index */
	assert_int_equal(load_error(f, "row"), -ENOENT);
	free(row);
	free(bytes);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(bc_segment_index_load(&index, fds[0]), -ENOENT);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(bc_segment_index_load(&index, -1), -EBADF);
}

TEST_F(every_flipped_bit_of_an_index_is_detected)
{
	size_t n;

	write_segment(f, NAME, 0, 0, true);
	uint8_t *bytes = temp_read(&f->dir, NAME, &n);
	int fd = openat(f->dir.fd, NAME, O_RDWR | O_CLOEXEC);
	for (size_t at = n - bc_index_bytes(CHUNKS); at < n; at++) {
		for (int bit = 0; bit < 8; bit++) {
			struct bc_segment_index index;
			uint8_t flipped = (uint8_t)(bytes[at] ^ 1 << bit);
			assert_int_equal(pwrite(fd, &flipped, 1, (off_t)at), 1);
			int rc = bc_segment_index_load(&index, fd);
			assert_int_equal(rc, at >= n - BC_TRAILER_BYTES ? -ENOENT : -EBADMSG);
		}
		assert_int_equal(pwrite(fd, bytes + at, 1, (off_t)at), 1);
	}
	assert_int_equal(load_error(f, NAME), 0);
	close(fd);
	free(bytes);
}

TEST_F(a_segment_is_not_sealed_if_damage_follows_its_index)
{
	struct bc_chunk_info info;
	size_t n;

	write_segment(f, NAME, 0, 0, true);
	uint8_t *bytes = temp_read(&f->dir, NAME, &n);
	struct reading whole = start_reading(f, NAME);
	struct bc_segment_index index = load_index(whole.fd);
	size_t chunk = bc_segment_index_row(&index, 0, &info);
	size_t chunk_bytes = bc_chunk_encoded_bytes(&info);
	size_t pages = index.head.pages;
	size_t rows = index.head.offset;
	const struct {
		size_t from;
		size_t bytes;
		bool is_flipped; /* near the end */
	} parts[] = {
		{0, 1, false}, {chunk, chunk_bytes - 1, false}, {chunk, chunk_bytes, true},
		{pages, rows - pages - 1, false}, {pages, rows - pages, true},
		{rows, n - rows - 1, false}, {rows, n - rows, true},
		{rows, n - rows, false}, /* valid, but at another offset */
	};
	uint8_t *row = malloc(2 * n);
	assert_non_null(row);
	memcpy(row, bytes, n);
	for (size_t i = 0; i < COUNT_OF(parts); i++) {
		memcpy(row + n, bytes + parts[i].from, parts[i].bytes);
		row[n + parts[i].bytes - 5] ^= parts[i].is_flipped;
		temp_write(&f->dir, "row", row, n + parts[i].bytes);
		struct reading r = start_reading(f, "row");
		assert_segment(f, r.reader, 0, 0, true);
		assert_int_equal(bc_segment_read(r.reader, &f->chunk), BC_FOUND_DAMAGE);
		assert_end(f, r.reader, false);
		finish_reading(&r);
	}
	free(row);
	bc_segment_index_free(&index);
	finish_reading(&whole);
	free(bytes);
}

/* Names */

TEST_F(existing_names_are_refused_and_unchanged)
{
	static const char *const existing[] = {NAME, PARTIAL};
	struct bc_segment_header header = header_of(0, 0);
	struct bc_segment_writer writer;

	for (int i = 0; i < 2; i++) {
		size_t n;
		temp_write(&f->dir, existing[i], "mine", 4);
		assert_int_equal(
			bc_segment_create(&writer, f->dir.fd, NAME, ".partial", &header), -EEXIST);
		assert_int_equal(writer.file.fd, -1);
		uint8_t *bytes = temp_read(&f->dir, existing[i], &n);
		assert_int_equal(n, 4);
		assert_memory_equal(bytes, "mine", 4);
		free(bytes);
		assert_int_equal(temp_dir_empty(&f->dir), 1);
	}
	/* A dangling link counts as existing. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(symlinkat("nowhere", f->dir.fd, existing[i]), 0);
		assert_int_equal(
			bc_segment_create(&writer, f->dir.fd, NAME, ".partial", &header), -EEXIST);
		assert_int_equal(temp_dir_empty(&f->dir), 1);
	}
}

TEST_F(names_too_long_are_refused)
{
	struct bc_segment_header header = header_of(0, 0);
	struct bc_segment_writer writer;
	char name[400];

	for (size_t n = 230; n < 400; n++) {
		memset(name, 'n', n);
		name[n] = '\0';
		int rc = bc_segment_create(&writer, f->dir.fd, name, ".partial", &header);
		assert_int_equal(rc, n + 8 <= 255 ? 0 : -ENAMETOOLONG);
		bc_segment_abandon(&writer);
		assert_int_equal(temp_dir_empty(&f->dir), rc == 0);
	}
}

TEST_F(a_header_that_cannot_be_written_leaves_no_file)
{
	struct bc_segment_header header = header_of(0, 0);
	struct bc_segment_writer writer;

	strcpy(header.metadata, "[]");
	assert_int_equal(bc_segment_create(&writer, f->dir.fd, NAME, ".partial", &header), -EINVAL);
	assert_int_equal(writer.file.fd, -1);
	bc_segment_abandon(&writer);
	header = header_of(0, 0);
	assert_int_equal(bc_segment_create(&writer, -1, NAME, ".partial", &header), -EBADF);
	assert_int_equal(writer.file.fd, -1);
	assert_int_equal(temp_dir_empty(&f->dir), 0);
}

TEST_F(sealing_never_replaces_a_file_and_can_be_repeated)
{
	struct bc_segment_writer writer;
	size_t n;

	create_segment(f, &writer);
	for (size_t i = 0; i < CHUNKS - 1; i++)
		append_chunk(f, &writer, i, 0);
	uint8_t *before = temp_read(&f->dir, PARTIAL, &n);
	temp_write(&f->dir, NAME, "mine", 4);
	for (int again = 0; again < 2; again++) {
		size_t now;
		assert_int_equal(bc_segment_seal(&writer), -EEXIST);
		uint8_t *bytes = temp_read(&f->dir, NAME, &now);
		assert_int_equal(now, 4);
		assert_memory_equal(bytes, "mine", 4);
		free(bytes);
		bytes = temp_read(&f->dir, PARTIAL, &now); /* as before: without an index */
		assert_int_equal(now, n);
		assert_memory_equal(bytes, before, n);
		free(bytes);
	}
	free(before);
	assert_int_equal(unlinkat(f->dir.fd, NAME, 0), 0);
	append_chunk(f, &writer, CHUNKS - 1, 0);
	assert_int_equal(bc_segment_seal(&writer), 0);
	assert_sealed(f);
}

TEST_F(a_deleted_segment_is_detected)
{
	struct bc_segment_writer writer;

	create_segment(f, &writer);
	assert_false(bc_atomic_file_is_deleted(&writer.file));
	assert_int_equal(unlinkat(f->dir.fd, PARTIAL, 0), 0);
	assert_true(bc_atomic_file_is_deleted(&writer.file));
	assert_int_equal(bc_segment_seal(&writer), -ENOENT);
	bc_segment_abandon(&writer);
	assert_int_equal(writer.file.fd, -1);
}

TEST_F(a_sync_makes_appended_chunks_durable)
{
	struct bc_segment_writer writer;

	create_segment(f, &writer);
	assert_int_equal(writer.file.durable, 0);
	for (size_t i = 0; i < CHUNKS; i++) {
		uint64_t before = writer.file.bytes;
		assert_int_equal(bc_atomic_file_sync(&writer.file), 0);
		append_chunk(f, &writer, i, 0);
		assert_int_equal(writer.file.durable, before);
	}
	bc_segment_abandon(&writer);
}

/* Failing writes: a file size limit makes them short, then fail. */

static size_t file_bytes(struct fixture *f, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(f->dir.fd, name, &st, 0), 0);
	return (size_t)st.st_size;
}

TEST_F(a_chunk_that_fails_at_any_byte_is_truncated_and_can_be_repeated)
{
	struct bc_segment_header header = header_of(0, 0);
	struct bc_segment_writer writer;

	assert_int_equal(bc_segment_create(&writer, f->dir.fd, NAME, ".partial", &header), 0);
	for (size_t i = 0; i < CHUNKS; i++) {
		size_t header_bytes;
		fill_chunk(&f->chunk, i, record_before(i));
		size_t n = bc_chunk_encode(
			f->encoded, &f->chunk, &test_compressor, &chunk_pages, &header_bytes);
		uint64_t bytes = writer.file.bytes;
		for (size_t room = 0; room < n; room++) {
			set_file_limit(bytes + room);
			int rc = bc_segment_append(&writer, f->encoded, header_bytes,
				&f->chunk.info, &(struct bc_loss){.gaps = 1, .lost = 1},
				&chunk_pages.counts);
			set_file_limit(RLIM_INFINITY);
			assert_int_equal(rc, -EFBIG);
			assert_int_equal(writer.file.bytes, bytes);
			assert_int_equal(writer.chunks, i);
			assert_int_equal(file_bytes(f, PARTIAL), bytes);
		}
		append_chunk(f, &writer, i, 0);
	}
	assert_int_equal(bc_segment_seal(&writer), 0);
	assert_sealed(f);
}

TEST_F(a_seal_that_fails_at_any_byte_is_truncated_and_can_be_repeated)
{
	struct bc_segment_writer writer;

	create_segment(f, &writer);
	for (size_t i = 0; i < CHUNKS; i++)
		append_chunk(f, &writer, i, 0);
	uint64_t bytes = writer.file.bytes;
	for (uint64_t room = 0; room < bc_segment_end_bytes(&writer, 0); room++) {
		set_file_limit(bytes + room);
		int rc = bc_segment_seal(&writer);
		set_file_limit(RLIM_INFINITY);
		assert_int_equal(rc, -EFBIG);
		assert_int_equal(writer.file.bytes, bytes);
		assert_int_equal(file_bytes(f, PARTIAL), bytes);
		assert_false(temp_exists(&f->dir, NAME));
	}
	assert_int_equal(bc_segment_seal(&writer), 0);
	assert_sealed(f);
}

TEST_F(a_header_that_fails_at_any_byte_leaves_no_file)
{
	struct bc_segment_header header = header_of(0, 0);
	struct bc_segment_writer writer;
	int rc = -EFBIG;
	size_t room = 0;

	for (; rc != 0; room++) {
		set_file_limit(room);
		rc = bc_segment_create(&writer, f->dir.fd, NAME, ".partial", &header);
		set_file_limit(RLIM_INFINITY);
		if (rc == 0)
			break;
		assert_int_equal(rc, -EFBIG);
		assert_int_equal(writer.file.fd, -1);
		assert_int_equal(temp_dir_empty(&f->dir), 0);
	}
	assert_int_equal(writer.file.bytes, room);
	bc_segment_abandon(&writer);
}

TEST_F(a_segment_has_at_most_65536_chunks)
{
	struct bc_segment_header header = header_of(0, 0);
	struct bc_segment_writer writer;
	size_t header_bytes;

	assert_int_equal(bc_segment_create(&writer, f->dir.fd, NAME, ".partial", &header), 0);
	bc_chunk_reset(&f->chunk, 0, 0);
	f->chunk.info.recording_tag = bc_recording_tag(RECORDING);
	bc_chunk_encode(f->encoded, &f->chunk, &test_compressor, &chunk_pages, &header_bytes);
	for (uint32_t i = 0; i < BC_SEGMENT_CHUNKS; i++)
		assert_int_equal(bc_segment_append(&writer, f->encoded, header_bytes,
					 &f->chunk.info, &(struct bc_loss){0}, &chunk_pages.counts),
			0);
	assert_int_equal(bc_segment_append(&writer, f->encoded, header_bytes, &f->chunk.info,
				 &(struct bc_loss){0}, &chunk_pages.counts),
		-EFBIG);
	assert_int_equal(bc_segment_seal(&writer), 0);
	struct reading r = start_reading(f, NAME);
	struct bc_segment_index index = load_index(r.fd);
	assert_int_equal(index.head.rows, BC_SEGMENT_CHUNKS);
	bc_segment_index_free(&index);
	bc_segment_reader_skip_records(r.reader, r.fd, NULL, NULL);
	assert_int_equal(bc_segment_read(r.reader, &f->chunk), BC_FOUND_SEGMENT);
	for (uint32_t i = 0; i < BC_SEGMENT_CHUNKS; i++) {
		assert_int_equal(bc_segment_read(r.reader, &f->chunk), BC_FOUND_CHUNK);
		assert_int_equal(f->chunk.info.number, i);
	}
	assert_int_equal(bc_segment_read(r.reader, &f->chunk), BC_FOUND_INDEX);
	assert_end(f, r.reader, true);
	finish_reading(&r);
}

TEST(headers_with_ticks_out_of_range_are_refused)
{
	static struct bc_chunk chunk;
	static struct bc_chunk read;
	static uint8_t header[BC_CHUNK_HEADER_MAX];
	const struct bc_event anchor = {
		.kind = BC_EVENT_ANCHOR, .exact = true, .value = BC_TICK_END - 1};

	bc_chunk_reset(&chunk, BC_TICK_END - 1, 0);
	assert_true(bc_chunk_add_event(&chunk, &anchor, NULL));
	chunk.info.event_bytes = BC_EVENT_BYTES;
	assert_true(bc_chunk_header_read(&read, header, bc_chunk_header_write(header, &chunk)));
	chunk.events[0].value++;
	assert_false(bc_chunk_header_read(&read, header, bc_chunk_header_write(header, &chunk)));
	chunk.events[0].value--;
	chunk.info.last_tick++;
	assert_false(bc_chunk_header_read(&read, header, bc_chunk_header_write(header, &chunk)));
	chunk.info.last_tick--;
	chunk.info.first_tick++;
	assert_false(bc_chunk_header_read(&read, header, bc_chunk_header_write(header, &chunk)));
}
