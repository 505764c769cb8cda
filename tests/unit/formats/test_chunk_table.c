/* Any chunk of a segment can be read, in any order, and damage costs only what it hit. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "formats/base/bytes.h"
#include "formats/segment/chunk_table.h"
#include "formats/segment/segment_writer.h"
#include "tests/support/segments.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

#define CHUNKS  6u
#define RECORDS 40u
#define NAME    "20261120T091500Z-3f9a2c-00000.byu.lz4"

struct fixture {
	struct temp_dir dir;
	struct bc_chunk *chunk;
	int fd;
	uint8_t *bytes;
	size_t size;
	struct test_edges edges; /* where its parts begin and end */
	unsigned damages;
	unsigned reads; /* before it stops; 0: never */
};

static void set_up(struct fixture *f)
{
	struct bc_segment_header header = {
		.recording = "20261120T091500Z-3f9a2c", .clock_hz = 66000000};
	struct bc_segment_writer writer;

	temp_dir_make(&f->dir);
	f->chunk = malloc(sizeof(*f->chunk));
	assert_non_null(f->chunk);
	assert_int_equal(bc_segment_create(&writer, f->dir.fd, NAME, ".partial", &header), 0);
	for (uint32_t number = 0; number < CHUNKS; number++) {
		bc_chunk_reset(f->chunk, 1000 * number, 0);
		f->chunk->info.recording_tag = bc_recording_tag(header.recording);
		f->chunk->info.first_record = number * RECORDS;
		f->chunk->info.records = RECORDS;
		for (uint32_t i = 0; i < RECORDS; i++)
			bc_record_store(f->chunk->records + (size_t)i * BC_RECORD_BYTES,
				&(struct bc_record){
					.addr = number << 16 | i * 77, .size = 4, .time = i});
		uint64_t begin = writer.file.bytes;
		test_edges_add(&f->edges, begin);
		test_edges_add(&f->edges, begin + segment_append(&writer, f->chunk, 0, 0));
	}
	test_edges_add(&f->edges, writer.file.bytes);
	assert_int_equal(bc_segment_seal(&writer), 0);
	f->fd = openat(f->dir.fd, NAME, O_RDWR | O_CLOEXEC);
	assert_true(f->fd >= 0);
	f->size = (size_t)lseek(f->fd, 0, SEEK_END);
	test_edges_add(&f->edges, f->size - bc_index_bytes(CHUNKS));
	test_edges_add(&f->edges, f->size);
	f->bytes = malloc(f->size);
	assert_int_equal(pread(f->fd, f->bytes, f->size, 0), f->size);
}

static void tear_down(struct fixture *f)
{
	close(f->fd);
	free(f->bytes);
	free(f->chunk);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

static void count_damage(void *context, const struct bc_segment_damage *damage)
{
	struct fixture *f = context;

	assert_true(damage->what[0] != '\0');
	f->damages++;
}

static bool on_pace(void *context, uint64_t bytes)
{
	struct fixture *f = context;

	assert_true(bytes != 0);
	return f->reads == 0 || --f->reads != 0;
}

static int try_load(struct fixture *f, struct bc_chunk_table *table)
{
	const struct bc_chunk_table_io io = {f, count_damage, on_pace};

	f->damages = 0;
	return bc_chunk_table_load(table, f->fd, &io);
}

static void load(struct fixture *f, struct bc_chunk_table *table)
{
	assert_int_equal(try_load(f, table), 0);
}

/* Reads all chunks, from the last to the first. Returns how many are intact; an intact one has what
 * was written. */
static unsigned read_all(struct fixture *f, struct bc_chunk_table *table)
{
	unsigned good = 0;

	for (uint32_t row = table->count; row-- != 0;) {
		int rc = bc_chunk_table_read(table, row, f->chunk);
		if (rc == -EBADMSG)
			continue;
		assert_int_equal(rc, 0);
		uint64_t number = f->chunk->info.first_record / RECORDS;
		assert_true(number < CHUNKS && f->chunk->info.records == RECORDS);
		for (uint32_t i = 0; i < RECORDS; i++)
			assert_int_equal(bc_le32(f->chunk->records + (size_t)i * BC_RECORD_BYTES),
				number << 16 | i * 77);
		good++;
	}
	return good;
}

/* Finds where each chunk of the whole file ends. */
static void find_ends(struct fixture *f, uint64_t ends[CHUNKS])
{
	struct bc_chunk_table table;

	load(f, &table);
	for (uint32_t row = 0; row < CHUNKS; row++)
		ends[row] = table.rows[row].offset + bc_chunk_encoded_bytes(&table.rows[row].info);
	bc_chunk_table_free(&table);
}

TEST_F(a_segment_after_any_torn_one_is_found_whole)
{
	struct bc_chunk_table table;
	uint64_t ends[CHUNKS];

	find_ends(f, ends);
	for (size_t n = 1; n < f->size; n = test_next(n, 25, &f->edges)) {
		unsigned whole = 0;
		assert_int_equal(ftruncate(f->fd, (off_t)n), 0);
		assert_int_equal(pwrite(f->fd, f->bytes, f->size, (off_t)n), f->size);
		load(f, &table);
		while (whole < CHUNKS && ends[whole] <= n)
			whole++;
		assert_int_equal(read_all(f, &table), whole + CHUNKS);
		assert_true(f->damages <= 1); /* none where an item ends */
		bc_chunk_table_free(&table);
		assert_int_equal(pwrite(f->fd, f->bytes, f->size, 0), f->size);
	}
}

/* A forged index has valid hashes, but rows that say anything. */
TEST_F(a_forged_row_is_not_believed)
{
	struct bc_chunk_table table;
	size_t index = f->size - bc_index_bytes(CHUNKS);
	size_t rows = index + BC_INDEX_HEAD_BYTES;
	size_t rows_bytes = CHUNKS * BC_INDEX_ROW_BYTES;
	uint8_t *forged = malloc(rows_bytes + BC_HASH_BYTES);

	for (size_t at = 0; at < BC_INDEX_ROW_BYTES; at++) {
		memcpy(forged, f->bytes + rows, rows_bytes);
		forged[2 * BC_INDEX_ROW_BYTES + at] ^= 0xFF;
		bc_checksum_write(forged + rows_bytes, forged);
		assert_int_equal(pwrite(f->fd, forged, rows_bytes + BC_HASH_BYTES, (off_t)rows),
			rows_bytes + BC_HASH_BYTES);
		load(f, &table);
		assert_int_equal(table.count, CHUNKS);
		assert_true(read_all(f, &table) >= CHUNKS - 1);
		bc_chunk_table_free(&table);
	}
	free(forged);
}

static void check_it_stops(struct fixture *f, unsigned reads)
{
	struct bc_chunk_table table;

	f->reads = reads;
	assert_int_equal(try_load(f, &table), -ECANCELED);
	assert_int_equal(f->reads, 0);
	bc_chunk_table_free(&table);
}

TEST_F(loading_stops_when_it_should)
{
	struct bc_chunk_table table;

	check_it_stops(f, 1); /* by the index */
	load(f, &table);
	uint64_t end = table.rows[CHUNKS - 1].offset;
	bc_chunk_table_free(&table);
	assert_int_equal(ftruncate(f->fd, (off_t)end), 0);
	for (unsigned reads = 1; reads <= 2; reads++) /* by the headers, of small chunks */
		check_it_stops(f, reads);
	assert_int_equal(
		ftruncate(f->fd, (off_t)1 << 38), 0); /* 256 GiB, in which nothing is found */
	for (unsigned reads = 1; reads < 2 * CHUNKS; reads++)
		check_it_stops(f, reads);
}
