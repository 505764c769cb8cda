#include <stdlib.h>
#include <string.h>

#include "formats/bus/record.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

#define RECORDS 9

static const enum bc_format dialects[] = {
	BC_FORMAT_BYU, BC_FORMAT_BYU_BE, BC_FORMAT_BYU16, BC_FORMAT_BYU24};

#define DIALECTS (COUNT_OF(dialects))

static uint8_t *write_field(uint8_t *p, uint64_t value, int bytes, int is_big)
{
	for (int i = 0; i < bytes; i++)
		p[is_big ? bytes - 1 - i : i] = (uint8_t)(value >> 8 * i);
	return p + bytes;
}

/* Writes one record in a dialect, byte by byte. Returns its length. */
static size_t write_dialect(uint8_t *p, enum bc_format format, const struct bc_record *r,
	uint64_t addr_high, uint64_t time_high)
{
	uint8_t *start = p;
	uint64_t addr = r->addr | addr_high << 32;
	uint64_t time = r->time | time_high << 32;
	int is_big = format == BC_FORMAT_BYU_BE;

	p = write_field(
		p, addr, format == BC_FORMAT_BYU16 || format == BC_FORMAT_BYU24 ? 8 : 4, is_big);
	*p++ = r->reqtype;
	*p++ = r->size;
	*p++ = r->attr;
	*p++ = r->proc;
	if (format == BC_FORMAT_BYU24)
		p = write_field(p, 0xDEADBEEF, 4, 0); /* padding can be anything */
	p = write_field(p, time, format == BC_FORMAT_BYU24 ? 8 : 4, is_big);
	return (size_t)(p - start);
}

static struct bc_record record_of(struct dice *dice, unsigned i)
{
	static const uint32_t edges[] = {0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF};
	uint64_t roll = dice_roll(dice);

	return (struct bc_record){
		.addr = i < 6 ? edges[i] : (uint32_t)dice_roll(dice),
		.reqtype = (uint8_t)roll,
		.size = (uint8_t)(roll >> 8),
		.attr = (uint8_t)(roll >> 16),
		.proc = (uint8_t)(roll >> 24),
		.time = i < 6 ? edges[5 - i] : (uint32_t)dice_roll(dice),
	};
}

TEST(only_dialects_have_a_record_length)
{
	assert_int_equal(bc_dialect_bytes(BC_FORMAT_BYU), 12);
	assert_int_equal(bc_dialect_bytes(BC_FORMAT_BYU_BE), 12);
	assert_int_equal(bc_dialect_bytes(BC_FORMAT_BYU16), 16);
	assert_int_equal(bc_dialect_bytes(BC_FORMAT_BYU24), 24);
	assert_int_equal(bc_dialect_bytes(BC_FORMAT_UNKNOWN), 0);
	assert_int_equal(bc_dialect_bytes(BC_FORMAT_SEGMENT), 0);
	assert_int_equal(bc_dialect_bytes(BC_FORMAT_BCP1), 0);
	assert_int_equal(bc_dialect_bytes(BC_FORMAT_RAW6), 0);
}

/* Any number of records, including 0, and not a byte more. */
TEST(every_dialect_is_read_as_the_same_records)
{
	for (size_t d = 0; d < DIALECTS; d++) {
		for (size_t n = 0; n <= RECORDS; n++) {
			struct dice dice = {.state = 7};
			size_t stride = bc_dialect_bytes(dialects[d]);
			uint8_t *in = malloc(n * stride + 1); /* exact size, for AddressSanitizer */
			uint8_t expected[RECORDS * BC_RECORD_BYTES + 1];
			uint8_t out[RECORDS * BC_RECORD_BYTES + 1];

			assert_non_null(in);
			memset(expected, 0x77, sizeof(expected));
			memset(out, 0x77, sizeof(out));
			for (size_t i = 0; i < n; i++) {
				struct bc_record r = record_of(&dice, (unsigned)i);
				assert_int_equal(
					write_dialect(in + i * stride, dialects[d], &r, 0, 0),
					stride);
				write_field(
					write_field(expected + i * BC_RECORD_BYTES, r.addr, 4, 0),
					r.reqtype | (uint64_t)r.size << 8 | (uint64_t)r.attr << 16 |
						(uint64_t)r.proc << 24,
					4, 0);
				write_field(expected + i * BC_RECORD_BYTES + 8, r.time, 4, 0);
			}
			assert_int_equal(bc_dialect_read(out, in, n, dialects[d]), n);
			assert_memory_equal(out, expected, sizeof(out));
			free(in);
		}
	}
}

TEST(byu_records_can_be_read_in_place)
{
	struct dice dice = {.state = 9};
	uint8_t bytes[RECORDS * BC_RECORD_BYTES];
	uint8_t copy[RECORDS * BC_RECORD_BYTES];

	dice_fill(&dice, bytes, sizeof(bytes));
	memcpy(copy, bytes, sizeof(bytes));
	assert_int_equal(bc_dialect_read(bytes, bytes, RECORDS, BC_FORMAT_BYU), RECORDS);
	assert_memory_equal(bytes, copy, sizeof(bytes));
}

/* Reading stops before the record with a large value, at any position. */
static void assert_stops(enum bc_format format, uint64_t addr_high, uint64_t time_high)
{
	size_t stride = bc_dialect_bytes(format);

	for (size_t bad = 0; bad < RECORDS; bad++) {
		struct dice dice = {.state = 11};
		uint8_t in[RECORDS * 24];
		uint8_t out[RECORDS * BC_RECORD_BYTES];
		uint8_t whole[RECORDS * BC_RECORD_BYTES];
		uint64_t addr;
		uint64_t time;
		struct bc_record at_fault = {0};

		for (size_t i = 0; i < RECORDS; i++) {
			struct bc_record r = record_of(&dice, (unsigned)i);
			bc_record_store(whole + i * BC_RECORD_BYTES, &r);
			write_dialect(in + i * stride, format, &r, i == bad ? addr_high : 0,
				i == bad ? time_high : 0);
			if (i == bad)
				at_fault = r;
		}
		memset(out, 0x77, sizeof(out));
		assert_int_equal(bc_dialect_read(out, in, RECORDS, format), bad);
		assert_memory_equal(out, whole, bad * BC_RECORD_BYTES);
		for (size_t i = bad * BC_RECORD_BYTES; i < sizeof(out); i++)
			assert_int_equal(out[i], 0x77);
		bc_dialect_fields(in + bad * stride, format, &addr, &time);
		assert_true(addr == (at_fault.addr | addr_high << 32));
		assert_true(time == (at_fault.time | time_high << 32));
	}
}

TEST(reading_stops_before_a_value_of_more_than_32_bits)
{
	for (unsigned bit = 0; bit < 32; bit++) {
		assert_stops(BC_FORMAT_BYU16, UINT64_C(1) << bit, 0);
		assert_stops(BC_FORMAT_BYU24, UINT64_C(1) << bit, 0);
		assert_stops(BC_FORMAT_BYU24, 0, UINT64_C(1) << bit);
		assert_stops(BC_FORMAT_BYU24, 0xFFFFFFFF, UINT64_C(1) << bit);
	}
}

TEST(fields_are_read_in_every_dialect)
{
	struct dice dice = {.state = 13};

	for (size_t d = 0; d < DIALECTS; d++) {
		for (unsigned i = 0; i < 20; i++) {
			struct bc_record r = record_of(&dice, i);
			uint8_t in[24];
			uint64_t addr;
			uint64_t time;

			write_dialect(in, dialects[d], &r, 0, 0);
			bc_dialect_fields(in, dialects[d], &addr, &time);
			assert_true(addr == r.addr);
			assert_true(time == r.time);
		}
	}
}
