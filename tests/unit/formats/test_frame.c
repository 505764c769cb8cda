#include <errno.h>
#include <lz4frame.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/segment/segment.h"
#include "tests/support/dice.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"
#include "tests/support/traces.h"

/* Records of several kinds, followed by the encoder's padding. */
struct content {
	const char *name;
	size_t bytes;
	uint8_t *records;
};

#define CONTENTS 9

/* Contents 0 .. CONTENTS are written as LZ4 frames, those after them as zstd frames. */
#define FRAMES (CONTENTS * BC_FRAMES_COUNT)

struct fixture {
	struct temp_dir dir;
	struct content contents[CONTENTS];
	struct bc_compressor compressors[BC_FRAMES_COUNT];
	uint8_t frame[BC_FRAME_MAX];
};

static void set_up(struct fixture *f)
{
	static const struct content plan[CONTENTS] = {
		{"nothing", 0, NULL},
		{"one constant record", BC_RECORD_BYTES, NULL},
		{"one random record", BC_RECORD_BYTES, NULL},
		{"a constant chunk", BC_CHUNK_BYTES, NULL},
		{"a random chunk", BC_CHUNK_BYTES, NULL},
		{"a chunk from the bus", BC_CHUNK_BYTES, NULL},
		{"a random chunk less one record", BC_CHUNK_BYTES - BC_RECORD_BYTES, NULL},
		{"some records from the bus", 1000 * BC_RECORD_BYTES, NULL},
		{"some random records", 100 * BC_RECORD_BYTES, NULL},
	};
	struct dice dice = {.state = 3};
	struct trace bcp1 = trace_of_sim(1, BC_CHUNK_RECORDS + 100, 2);
	struct trace bus = trace_to_byu(&bcp1, BC_FORMAT_BYU);

	assert_true(bus.n >= BC_CHUNK_BYTES);
	temp_dir_make(&f->dir);
	for (size_t i = 0; i < CONTENTS; i++) {
		struct content *c = &f->contents[i];
		*c = plan[i];
		c->records = malloc(c->bytes);
		assert_non_null(c->records);
		memset(c->records, 0x41, c->bytes);
		if (strstr(c->name, "random") != NULL)
			dice_fill(&dice, c->records, c->bytes);
		else if (strstr(c->name, "bus") != NULL)
			memcpy(c->records, bus.bytes, c->bytes);
	}
	trace_free(&bus);
	trace_free(&bcp1);
	for (unsigned i = 0; i < BC_FRAMES_COUNT; i++)
		assert_int_equal(
			bc_compressor_open(&f->compressors[i], bc_frames_info[i].level), 0);
}

static void tear_down(struct fixture *f)
{
	for (size_t i = 0; i < CONTENTS; i++)
		free(f->contents[i].records);
	for (unsigned i = 0; i < BC_FRAMES_COUNT; i++)
		bc_compressor_close(&f->compressors[i]);
	temp_dir_remove(&f->dir);
}

TEST_SHARED_FIXTURE(fixture, set_up, tear_down)

/* Writes frame `i` and sets *content to its content. */
static size_t write_frame(struct fixture *f, size_t i, const struct content **content)
{
	const struct content *c = &f->contents[i % CONTENTS];
	size_t n = bc_frame_write(f->frame, c->records, c->bytes, &f->compressors[i / CONTENTS]);

	assert_true(n <= BC_FRAME_MAX);
	assert_true(n <= c->bytes + BC_FRAME_OVERHEAD);
	*content = c;
	return n;
}

/* Decodes into a buffer of exact size. Returns the result of bc_frame_read(). Compares the data
 * with `expected` unless it is NULL. */
static int read_frame(const uint8_t *frame, size_t n, size_t bytes, const uint8_t *expected)
{
	uint8_t *out = malloc(bytes != 0 ? bytes : 1);
	uint8_t *in = malloc(n != 0 ? n : 1);

	assert_non_null(out);
	assert_non_null(in);
	memcpy(in, frame, n);
	int rc = bc_frame_read(out, bytes, in, n);
	if (rc == 0 && expected != NULL)
		assert_memory_equal(out, expected, bytes);
	free(in);
	free(out);
	return rc;
}

TEST_F(every_content_is_decoded)
{
	for (size_t i = 0; i < FRAMES; i++) {
		const struct content *c;
		size_t n = write_frame(f, i, &c);
		assert_int_equal(read_frame(f->frame, n, c->bytes, c->records), 0);
	}
}

static bool can_shrink(const struct content *c)
{
	return strstr(c->name, "random") == NULL && c->bytes > BC_RECORD_BYTES;
}

TEST_F(incompressible_records_are_stored)
{
	for (size_t i = 0; i < CONTENTS; i++) {
		const struct content *c;
		size_t n = write_frame(f, i, &c);
		if (c->bytes == 0)
			continue;
		bool is_stored = (bc_le32(f->frame + 15) & 0x80000000) != 0;
		assert_int_equal(is_stored, !can_shrink(c));
		if (is_stored) {
			assert_int_equal(n, c->bytes + 23);
			assert_memory_equal(f->frame + 19, c->records, c->bytes);
		} else if (c->bytes > 1000) {
			assert_true(n < c->bytes / 4 * 3);
		}
	}
}

TEST_F(a_frame_has_its_content_size_one_block_and_no_checksums)
{
	for (size_t i = 0; i < CONTENTS; i++) {
		const struct content *c;
		size_t n = write_frame(f, i, &c);
		assert_int_equal(bc_le32(f->frame), 0x184D2204);
		assert_int_equal(f->frame[4], 0x68); /* version 1, independent, content size */
		assert_int_equal(f->frame[5], 0x60); /* blocks of up to 1 MiB */
		assert_int_equal(bc_le64(f->frame + 6), c->bytes);
		size_t block = c->bytes == 0 ? 0 : 4 + (bc_le32(f->frame + 15) & 0x7FFFFFFF);
		assert_int_equal(n, 15 + block + 4);
		assert_int_equal(bc_le32(f->frame + n - 4), 0);
	}
}

/* Without its memory, zstd stores the data. */
TEST_F(a_zstd_frame_is_stored_without_memory)
{
	const struct bc_compressor none = {.level = BC_LEVEL_ZSTD};

	for (size_t i = 0; i < CONTENTS; i++) {
		const struct content *c = &f->contents[i];
		size_t n = bc_frame_write(f->frame, c->records, c->bytes, &none);
		size_t blocks = c->bytes == 0 ? 1 : (c->bytes + 131071) / 131072;
		assert_int_equal(n, 9 + 3 * blocks + c->bytes);
		assert_true(n <= BC_FRAME_MAX);
		assert_int_equal(read_frame(f->frame, n, c->bytes, c->records), 0);
	}
}

TEST_F(a_zstd_frame_shrinks_what_can)
{
	for (size_t i = 0; i < CONTENTS; i++) {
		const struct content *c;
		size_t n = write_frame(f, CONTENTS + i, &c);
		assert_int_equal(bc_le32(f->frame), 0xFD2FB528);
		if (c->bytes > 1000)
			assert_int_equal(n < c->bytes / 2, can_shrink(c));
	}
}

/* The lz4 and zstd programs */

static const char *const programs[BC_FRAMES_COUNT] = {"lz4", "zstd"};

static void assert_program_decodes(struct fixture *f, unsigned frames, const uint8_t *in, size_t n,
	const uint8_t *expected, size_t bytes)
{
	char path[TEMP_PATH_BYTES];
	char command[TEMP_PATH_BYTES + 32];
	const char *name = programs[frames];
	uint8_t *out = malloc(bytes + 1);

	assert_non_null(out);
	temp_write(&f->dir, name, in, n);
	snprintf(command, sizeof(command), "%s -dc <%s", name, temp_path(&f->dir, name, path));
	FILE *pipe = popen(command, "r");
	assert_non_null(pipe);
	assert_int_equal(fread(out, 1, bytes + 1, pipe), bytes);
	assert_int_equal(pclose(pipe), 0);
	assert_memory_equal(out, expected, bytes);
	free(out);
}

TEST_F(the_program_of_the_frames_decodes_them_concatenated)
{
	enum { ROUNDS = 2 };
	size_t room = ROUNDS * CONTENTS * (BC_FRAME_MAX + BC_EMPTY_FRAME_BYTES);
	uint8_t *frames = malloc(room);
	uint8_t *expected = malloc(room);

	assert_non_null(frames);
	assert_non_null(expected);
	for (unsigned kind = 0; kind < BC_FRAMES_COUNT; kind++) {
		size_t n = 0;
		size_t bytes = 0;
		for (size_t i = 0; i < ROUNDS * CONTENTS; i++) {
			/* in another order */
			const struct content *c = &f->contents[i * 4 % CONTENTS];
			memcpy(frames + n, bc_frames_info[kind].empty, BC_EMPTY_FRAME_BYTES);
			n += BC_EMPTY_FRAME_BYTES;
			n += bc_frame_write(
				frames + n, c->records, c->bytes, &f->compressors[kind]);
			memcpy(expected + bytes, c->records, c->bytes);
			bytes += c->bytes;
		}
		assert_program_decodes(f, kind, frames, n, expected, bytes);
	}
	free(expected);
	free(frames);
}

TEST_F(the_empty_frame_is_empty)
{
	for (unsigned kind = 0; kind < BC_FRAMES_COUNT; kind++) {
		const uint8_t *empty = bc_frames_info[kind].empty;
		for (size_t n = 1; n <= BC_EMPTY_FRAME_BYTES; n++)
			assert_true(bc_is_empty_frame(empty, n));
		assert_int_equal(read_frame(empty, BC_EMPTY_FRAME_BYTES, 0, NULL), 0);
		assert_int_equal(read_frame(empty, BC_EMPTY_FRAME_BYTES, 1, NULL), -EBADMSG);
		assert_program_decodes(
			f, kind, empty, BC_EMPTY_FRAME_BYTES, (const uint8_t *)"", 0);
	}
}

/* An empty chunk is not the start of a file. */
TEST_F(a_data_frame_is_not_the_empty_frame)
{
	for (size_t i = 0; i < FRAMES; i++) {
		const struct content *c;
		write_frame(f, i, &c);
		assert_false(bc_is_empty_frame(f->frame, BC_SKIPPABLE_BYTES));
	}
}

TEST(names_of_compressions_are_read_back)
{
	char name[BC_LEVEL_NAME_MAX];
	enum bc_level level;

	for (unsigned i = 0; i <= BC_LEVEL_ZSTD_19; i++) {
		bc_level_write(name, i);
		assert_true(bc_level_read(&level, name));
		assert_int_equal(level, i);
	}
	assert_string_equal(name, "zstd-19");
	for (const char *const *bad = (const char *const[]){"", "zst", "zstd-1", "zstd-20",
		     "zstd-02", "LZ4", NULL};
		*bad != NULL; bad++) {
		assert_false(bc_level_read(&level, *bad));
		assert_int_equal(level, BC_LEVEL_DEFAULT);
	}
}

/* Damage */

/* Any LZ4 frame is accepted: small, linked blocks with checksums. */
TEST(frames_of_other_encoders_are_read)
{
	const size_t bytes = (size_t)20000 * BC_RECORD_BYTES;
	LZ4F_preferences_t preferences = {
		.frameInfo = {.blockSizeID = LZ4F_max64KB,
			.blockMode = LZ4F_blockLinked,
			.contentChecksumFlag = LZ4F_contentChecksumEnabled,
			.blockChecksumFlag = LZ4F_blockChecksumEnabled}};
	size_t room = LZ4F_compressFrameBound(bytes, &preferences);
	uint8_t *in = malloc(bytes);
	uint8_t *frame = malloc(room);
	uint8_t *out = malloc(bytes);

	assert_true(in != NULL && frame != NULL && out != NULL);
	for (size_t i = 0; i < bytes; i++)
		in[i] = (uint8_t)(i % 12 == 0 ? i / 12 : i % 12);
	size_t frame_bytes = LZ4F_compressFrame(frame, room, in, bytes, &preferences);
	assert_false(LZ4F_isError(frame_bytes));
	assert_int_equal(bc_frame_read(out, bytes, frame, frame_bytes), 0);
	assert_memory_equal(out, in, bytes);
	frame[frame_bytes - 1] ^= 1; /* in the content checksum */
	assert_int_equal(bc_frame_read(out, bytes, frame, frame_bytes), -EBADMSG);
	free(in);
	free(frame);
	free(out);
}

TEST_F(every_prefix_of_a_frame_is_refused)
{
	for (size_t i = 0; i < FRAMES; i++) {
		const struct content *c;
		size_t n = write_frame(f, i, &c);
		size_t step = n < 20000 ? test_stride(25) : n / 50 * test_stride(5);
		for (size_t part = 0; part < n; part += part < 64 ? 1 : step)
			assert_int_equal(read_frame(f->frame, part, c->bytes, NULL), -EBADMSG);
		for (size_t left = 1; left < 10; left++)
			assert_int_equal(read_frame(f->frame, n - left, c->bytes, NULL), -EBADMSG);
	}
}

TEST_F(bytes_after_a_frame_are_refused)
{
	for (size_t i = 0; i < FRAMES; i++) {
		const struct content *c;
		size_t n = write_frame(f, i, &c);
		uint8_t *longer = calloc(1, n + 32);
		assert_non_null(longer);
		memcpy(longer, f->frame, n);
		memcpy(longer + n, bc_frames_info[i / CONTENTS].empty, BC_EMPTY_FRAME_BYTES);
		for (size_t more = 1; more <= 32; more++)
			assert_int_equal(read_frame(longer, n + more, c->bytes, NULL), -EBADMSG);
		free(longer);
	}
}

TEST_F(a_frame_with_another_length_is_refused)
{
	for (size_t i = 0; i < FRAMES; i++) {
		const struct content *c;
		size_t n = write_frame(f, i, &c);
		assert_int_equal(read_frame(f->frame, n, c->bytes + 1, NULL), -EBADMSG);
		assert_int_equal(read_frame(f->frame, n, c->bytes + 12, NULL), -EBADMSG);
		if (c->bytes == 0)
			continue;
		assert_int_equal(read_frame(f->frame, n, c->bytes - 1, NULL), -EBADMSG);
		assert_int_equal(read_frame(f->frame, n, c->bytes - 12, NULL), -EBADMSG);
		assert_int_equal(read_frame(f->frame, n, 0, NULL), -EBADMSG);
	}
}

/* Except in the records, whose checksum is elsewhere: there it must only not crash. */
TEST_F(every_flipped_bit_of_a_frames_own_bytes_is_refused)
{
	for (size_t i = 1; i < CONTENTS; i++) {
		const struct content *c = &f->contents[i];
		if (c->bytes > 1000 * BC_RECORD_BYTES)
			continue;
		size_t n = write_frame(f, i, &c);
		for (size_t bit = 0; bit < n * 8; bit += test_stride(5)) {
			bool is_block = bit / 8 >= 19 && bit / 8 < n - 4;
			f->frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
			int rc = read_frame(f->frame, n, c->bytes, NULL);
			assert_true(rc == -EBADMSG || (rc == 0 && is_block));
			f->frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
	}
}

/* zstd has no checks in the records and only some in the header. */
TEST_F(every_flipped_bit_of_a_zstd_frame_is_survived)
{
	const struct content *c;
	size_t n = write_frame(f, 2 * CONTENTS - 2, &c);

	for (size_t bit = 0; bit < n * 8; bit += test_stride(5)) {
		f->frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
		int rc = read_frame(f->frame, n, c->bytes, NULL);
		assert_true(rc == 0 || rc == -EBADMSG);
		f->frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}
