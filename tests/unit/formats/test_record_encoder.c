#include "formats/segment/record_encoder.h"

#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/bus/chunk.h"
#include "tests/support/dice.h"
#include "tests/support/odd_records.h"
#include "tests/support/test.h"
#include "tests/support/traces.h"

/* The same encoder without SIMD instructions. */
#define BC_NO_SIMD
#define bc_record_compress portable_compress
size_t portable_compress(
	uint8_t *out, size_t room, const uint8_t *records, size_t bytes, enum bc_level level);
#include "formats/segment/record_encoder.c" /* NOLINT(bugprone-suspicious-include) */
#undef bc_record_compress

struct fixture {
	struct trace bcp1;
	struct trace bus;
};

static void set_up(struct fixture *f)
{
	f->bcp1 = trace_of_sim(1, BC_CHUNK_RECORDS + 100, 2);
	f->bus = trace_to_byu(&f->bcp1, BC_FORMAT_BYU);
}

static void tear_down(struct fixture *f)
{
	trace_free(&f->bcp1);
	trace_free(&f->bus);
}

TEST_SHARED_FIXTURE(fixture, set_up, tear_down)

/* Returns `bytes` of records of a kind, and not a byte more. */
static uint8_t *make_records(
	const struct fixture *f, struct dice *dice, enum odd_kind kind, size_t bytes)
{
	uint8_t *in = malloc(bytes != 0 ? bytes : 1);

	assert_non_null(in);
	odd_records(dice, kind, in, bytes, f->bus.bytes, f->bus.n / BC_RECORD_BYTES);
	return in;
}

/* Encodes into a buffer of exactly `room` bytes, decodes, and compares. Returns the length. */
static size_t round_trip(const uint8_t *in, size_t bytes, size_t room, enum bc_level level)
{
	uint8_t *out = malloc(room != 0 ? room : 1);
	uint8_t *back = malloc(bytes != 0 ? bytes : 1);

	assert_non_null(out);
	assert_non_null(back);
	size_t n = bc_record_compress(out, room, in, bytes, level);
	assert_true(n <= room);
	if (n != 0) {
		assert_int_equal(
			LZ4_decompress_safe((const char *)out, (char *)back, (int)n, (int)bytes),
			bytes);
		assert_memory_equal(back, in, bytes);
	}
	free(back);
	free(out);
	return n;
}

static size_t enough(size_t bytes)
{
	return (size_t)LZ4_compressBound((int)bytes);
}

TEST_F(every_small_number_of_bytes_is_decoded)
{
	struct dice dice = {.state = 1};

	for (size_t bytes = 1; bytes <= 700; bytes += test_stride(5))
		for (unsigned kind = 0; kind < ODD_KINDS; kind++) {
			uint8_t *in = make_records(f, &dice, kind, bytes);
			for (unsigned level = 0; level < BC_LEVELS; level++)
				assert_true(round_trip(in, bytes, enough(bytes), level) != 0);
			free(in);
		}
}

TEST_F(records_of_every_kind_are_decoded)
{
	struct dice dice = {.state = 2};

	for (unsigned round = 0; round < 20000; round += test_stride(55)) {
		size_t bytes = 1 + dice_below(&dice, dice_below(&dice, 20) == 0 ? 100000 : 4096);
		uint8_t *in = make_records(f, &dice, round % ODD_KINDS, bytes);
		for (unsigned level = 0; level < BC_LEVELS; level++)
			assert_true(round_trip(in, bytes, enough(bytes), level) != 0);
		free(in);
	}
}

TEST_F(nothing_is_written_beyond_any_room)
{
	struct dice dice = {.state = 4};

	for (unsigned kind = 0; kind < ODD_KINDS; kind++) {
		size_t bytes = 100 * BC_RECORD_BYTES;
		uint8_t *in = make_records(f, &dice, kind, bytes);
		for (unsigned level = 0; level < BC_LEVELS; level++) {
			size_t n = round_trip(in, bytes, enough(bytes), level);
			for (size_t room = 0; room < bytes + 40; room += test_stride(5)) {
				size_t fits = round_trip(in, bytes, room, level);
				/* With little room to spare, LZ4 makes the block. */
				if (room >= n + 40 || level == BC_LEVEL_LZ4)
					assert_int_equal(fits, room >= n ? n : 0);
			}
		}
		free(in);
	}
}

TEST_F(the_portable_code_makes_the_same_blocks)
{
	struct dice dice = {.state = 5};
	uint8_t *out = malloc(enough(BC_CHUNK_BYTES));
	uint8_t *other = malloc(enough(BC_CHUNK_BYTES));

	assert_non_null(out);
	assert_non_null(other);
	for (unsigned round = 0; round < 2000; round += test_stride(55)) {
		size_t bytes = round < ODD_KINDS ? BC_CHUNK_BYTES : 1 + dice_below(&dice, 20000);
		uint8_t *in = make_records(f, &dice, round % ODD_KINDS, bytes);
		for (unsigned level = 0; level < BC_LEVELS; level++) {
			size_t n = bc_record_compress(out, enough(bytes), in, bytes, level);
			assert_int_equal(
				portable_compress(other, enough(bytes), in, bytes, level), n);
			assert_memory_equal(other, out, n);
		}
		free(in);
	}
	free(other);
	free(out);
}

TEST_F(a_block_does_not_depend_on_earlier_blocks)
{
	struct dice dice = {.state = 6};
	uint8_t *in = make_records(f, &dice, ODD_BUS, BC_CHUNK_BYTES);
	uint8_t *random = make_records(f, &dice, ODD_RANDOM, BC_CHUNK_BYTES);
	uint8_t *first = malloc(BC_CHUNK_BYTES);
	uint8_t *again = malloc(BC_CHUNK_BYTES);

	assert_non_null(first);
	assert_non_null(again);
	for (unsigned level = 0; level < BC_LEVELS; level++) {
		size_t n = bc_record_compress(first, BC_CHUNK_BYTES, in, BC_CHUNK_BYTES, level);
		assert_int_equal(bc_record_compress(
					 again, BC_CHUNK_BYTES - 1, random, BC_CHUNK_BYTES, level),
			0);
		assert_int_equal(
			bc_record_compress(again, BC_CHUNK_BYTES, in, BC_CHUNK_BYTES, level), n);
		assert_memory_equal(first, again, n);
	}
	free(again);
	free(first);
	free(random);
	free(in);
}

/* Sizes do not depend on the machine, so they are tested; speed is for `make bench`. */
TEST_F(whole_chunks_are_decoded_and_none_is_much_larger_than_with_lz4)
{
	struct dice dice = {.state = 7};

	for (unsigned kind = 0; kind < ODD_KINDS; kind++) {
		uint8_t *in = make_records(f, &dice, kind, BC_CHUNK_BYTES);
		size_t sizes[BC_LEVELS];
		for (unsigned level = 0; level < BC_LEVELS; level++)
			sizes[level] = round_trip(
				in, BC_CHUNK_BYTES, enough(BC_CHUNK_BYTES), level);
		for (unsigned level = 0; level < BC_LEVELS; level++) {
			unsigned percent = level < BC_LEVEL_DENSE ? 95 : 100;
			assert_true(sizes[level] != 0);
			if (sizes[level] > sizes[BC_LEVEL_LZ4] * 100 / percent)
				fail_msg("kind %u, level %u: %zu bytes, with LZ4 %zu", kind, level,
					sizes[level], sizes[BC_LEVEL_LZ4]);
		}
		free(in);
	}
}

TEST_F(levels_are_ordered_by_size_on_a_trace)
{
	struct dice dice = {.state = 8};
	uint8_t *in = make_records(f, &dice, ODD_BUS, BC_CHUNK_BYTES);
	size_t lz4 = round_trip(in, BC_CHUNK_BYTES, enough(BC_CHUNK_BYTES), BC_LEVEL_LZ4);
	size_t last = lz4;

	for (unsigned level = BC_LEVEL_FAST; level < BC_LEVELS; level++) {
		size_t n = round_trip(in, BC_CHUNK_BYTES, enough(BC_CHUNK_BYTES), level);
		assert_true(n < last);
		last = n;
	}
	assert_true(last * 5 < lz4 * 4);
	free(in);
}
