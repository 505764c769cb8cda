/* A reader with threads that decode ahead finds the same as one without. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "formats/base/bytes.h"
#include "formats/segment/decode_ahead.h"
#include "formats/segment/segment_index.h"
#include "formats/segment/segment_reader.h"
#include "formats/segment/segment_writer.h"
#include "tests/support/dice.h"
#include "tests/support/segments.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

TEST_THREADS;

#define CHUNKS 60u
#define NAME   "20261120T091500Z-3f9a2c-00000.byu.lz4"

struct fixture {
	struct temp_dir dir;
	struct bc_chunk *chunk;
	int fd;
	struct bc_segment_index index;
};

/* Records of a number that depends on the chunk's, with that number in them. */
static void fill_chunk(struct bc_chunk *chunk, uint32_t number, uint64_t first_record)
{
	bc_chunk_reset(chunk, 1000 * number, 0);
	chunk->info.first_record = first_record;
	chunk->info.records = 1 + number * 37 % 500;
	for (uint32_t i = 0; i < chunk->info.records; i++)
		bc_record_store(chunk->records + (size_t)i * BC_RECORD_BYTES,
			&(struct bc_record){.addr = number << 16 | i, .size = 4, .time = i});
}

static void set_up(struct fixture *f)
{
	struct bc_segment_header header = {.recording = "20261120T091500Z-3f9a2c"};
	struct bc_segment_writer writer;
	uint64_t first_record = 0;

	temp_dir_make(&f->dir);
	f->chunk = malloc(sizeof(*f->chunk));
	assert_non_null(f->chunk);
	assert_int_equal(bc_segment_create(&writer, f->dir.fd, NAME, ".partial", &header), 0);
	for (uint32_t number = 0; number < CHUNKS; number++) {
		fill_chunk(f->chunk, number, first_record);
		first_record += f->chunk->info.records;
		segment_append(&writer, f->chunk, 0, 0);
	}
	assert_int_equal(bc_segment_seal(&writer), 0);
	f->fd = openat(f->dir.fd, NAME, O_RDWR | O_CLOEXEC);
	assert_true(f->fd >= 0);
	assert_int_equal(bc_segment_index_load(&f->index, f->fd), 0);
}

static void tear_down(struct fixture *f)
{
	bc_segment_index_free(&f->index);
	close(f->fd);
	free(f->chunk);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

static uint64_t row(const struct fixture *f, uint32_t number, struct bc_chunk_info *info)
{
	return bc_segment_index_row(&f->index, number, info);
}

static bool is_chunk(const struct bc_chunk_info *info, const uint8_t *records, uint32_t number)
{
	for (uint32_t i = 0; i < info->records; i++)
		if (bc_le32(records + (size_t)i * BC_RECORD_BYTES) != (number << 16 | i))
			return false;
	return true;
}

/* The work in these tests: a result is a number, which becomes that of the chunk. */
static void *open_number(void *context)
{
	uint32_t *number = malloc(sizeof(*number));

	++*(unsigned *)context;
	assert_non_null(number);
	return number;
}

static void read_number(void *result, const struct bc_chunk_info *info, const uint8_t *records)
{
	if (is_chunk(info, records, info->number))
		*(uint32_t *)result = info->number;
}

/* A machine with one core has no threads to spare. */
static struct bc_decode_ahead *open_ahead(const struct fixture *f)
{
	struct bc_decode_ahead *ahead = bc_decode_ahead_open(f->fd, NULL, NULL, NULL);

	if (ahead == NULL && sysconf(_SC_NPROCESSORS_ONLN) < 2)
		skip();
	return ahead;
}

/* True if the chunk was decoded: it is the right one then. */
static bool is_popped(struct bc_decode_ahead *ahead, uint64_t offset,
	const struct bc_chunk_info *info, uint32_t number)
{
	void *result;
	const uint8_t *records = bc_decode_ahead_pop(ahead, offset, info, &result);

	assert_true(records == NULL || is_chunk(info, records, number));
	assert_null(result);
	return records != NULL;
}

TEST_F(all_chunks_are_decoded_in_order)
{
	struct bc_decode_ahead *ahead = open_ahead(f);
	struct bc_chunk_info info;

	if (ahead == NULL)
		skip();
	for (uint32_t number = 0; number < CHUNKS; number++) {
		uint64_t offset = row(f, number, &info);
		assert_true(is_popped(ahead, offset, &info, number));
	}
	bc_decode_ahead_close(ahead);
}

TEST_F(chunks_can_be_left_out_and_the_rest_is_never_read)
{
	struct dice dice = {.state = 5};

	for (unsigned run = 0; run < 200; run++) {
		struct bc_decode_ahead *ahead = open_ahead(f);
		struct bc_chunk_info info;
		if (ahead == NULL)
			skip();
		uint32_t end = dice_below(&dice, CHUNKS + 1);
		for (uint32_t number = 0; number < end; number += 1 + dice_below(&dice, 12)) {
			uint64_t offset = row(f, number, &info);
			assert_true(is_popped(ahead, offset, &info, number));
		}
		bc_decode_ahead_close(ahead);
	}
}

TEST_F(a_chunk_at_another_place_or_with_another_header_is_not_there)
{
	struct bc_decode_ahead *ahead = open_ahead(f);
	struct bc_chunk_info info;
	void *result;

	if (ahead == NULL)
		skip();
	uint64_t offset = row(f, 7, &info);
	assert_null(bc_decode_ahead_pop(ahead, offset - 1, &info, &result));
	assert_null(bc_decode_ahead_pop(ahead, offset + 1, &info, &result));
	info.records_hash ^= 1;
	assert_null(bc_decode_ahead_pop(ahead, offset, &info, &result));
	offset = row(f, 8, &info);
	info.records--;
	assert_null(bc_decode_ahead_pop(ahead, offset, &info, &result));
	offset = row(f, 9, &info);
	assert_non_null(bc_decode_ahead_pop(ahead, offset, &info, &result));
	bc_decode_ahead_close(ahead);
}

TEST_F(the_work_is_done_on_each_chunk_and_each_result_closed)
{
	unsigned results = 0;
	const struct bc_chunk_work work = {open_number, free, read_number, &results, false};
	struct bc_decode_ahead *ahead = bc_decode_ahead_open(f->fd, NULL, NULL, &work);
	struct bc_chunk_info info;
	void *result;

	if (ahead == NULL)
		skip();
	for (uint32_t number = 0; number < CHUNKS; number += 1 + number % 3) {
		uint64_t offset = row(f, number, &info);
		const uint8_t *records = bc_decode_ahead_pop(ahead, offset, &info, &result);
		assert_non_null(records);
		assert_int_equal(*(uint32_t *)result, number);
		/* Both stay until another chunk is asked for. */
		assert_ptr_equal(bc_decode_ahead_pop(ahead, offset, &info, &result), records);
		assert_int_equal(*(uint32_t *)result, number);
	}
	bc_decode_ahead_close(ahead);
	assert_in_range(results, 3, 12); /* a few; LeakSanitizer finds those that are not closed */
}

static bool is_odd(void *context, const struct bc_chunk_info *info)
{
	(void)context;
	return info->number % 2 == 1;
}

TEST_F(only_chunks_that_are_needed_are_decoded)
{
	struct bc_decode_ahead *ahead = bc_decode_ahead_open(f->fd, is_odd, NULL, NULL);
	struct bc_chunk_info info;

	if (ahead == NULL)
		skip();
	for (uint32_t number = 0; number < CHUNKS; number++) {
		uint64_t offset = row(f, number, &info);
		assert_int_equal(is_popped(ahead, offset, &info, number), number % 2 == 1);
	}
	bc_decode_ahead_close(ahead);
}

/* Everything that a reader finds, as text. */
static char *read_segment(struct fixture *f, bool is_ahead)
{
	struct bc_input_stream stream = {.fd = f->fd, .wake_fd = -1};
	struct bc_segment_reader *reader;
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	void *result;
	int found;

	assert_non_null(out);
	assert_int_equal(lseek(f->fd, 0, SEEK_SET), 0);
	assert_int_equal(bc_segment_reader_open(&reader, stream, NULL, 0), 0);
	if (is_ahead)
		bc_segment_reader_decode_ahead(reader, f->fd, NULL, NULL, NULL);
	do {
		found = bc_segment_read(reader, f->chunk);
		fprintf(out, "%d at %" PRIu64, found, bc_segment_reader_offset(reader));
		if (found == BC_FOUND_CHUNK)
			fprintf(out, ": %" PRIu32 ", %d", f->chunk->info.number,
				is_chunk(&f->chunk->info,
					bc_segment_reader_records(reader, &result),
					f->chunk->info.number));
		if (found == BC_FOUND_DAMAGE)
			fprintf(out, ": %s", bc_segment_reader_damage(reader)->what);
		fprintf(out, "\n");
	} while (found > BC_FOUND_END);
	fprintf(out, "%d\n", bc_segment_reader_is_sealed(reader));
	bc_segment_reader_close(reader);
	fclose(out);
	return text;
}

static void assert_reads_the_same(struct fixture *f)
{
	char *expected = read_segment(f, false);
	char *text = read_segment(f, true);

	assert_string_equal(text, expected);
	free(text);
	free(expected);
}

TEST_F(a_reader_finds_the_same_in_a_whole_and_in_a_damaged_segment)
{
	struct dice dice = {.state = 6};
	off_t size = lseek(f->fd, 0, SEEK_END);

	assert_reads_the_same(f);
	for (unsigned run = 0; run < 300; run += test_stride(5)) {
		off_t at = dice_below(&dice, (uint32_t)size);
		uint8_t byte;
		assert_int_equal(pread(f->fd, &byte, 1, at), 1);
		uint8_t flipped = (uint8_t)(byte ^ 1 << dice_below(&dice, 8));
		assert_int_equal(pwrite(f->fd, &flipped, 1, at), 1);
		assert_reads_the_same(f);
		assert_int_equal(pwrite(f->fd, &byte, 1, at), 1);
	}
}

TEST_F(without_an_index_there_are_no_threads)
{
	assert_int_equal(ftruncate(f->fd, lseek(f->fd, 0, SEEK_END) - 1), 0);
	assert_null(bc_decode_ahead_open(f->fd, NULL, NULL, NULL));
}
