#include <stdio.h>
#include <string.h>

#include "formats/bus/record.h"
#include "tests/support/test.h"

/* byutr.h of the BYU document. */
static const struct {
	uint8_t code;
	const char *name;
} documented[] = {
	{0x00, "FETCH"},
	{0x01, "MEMREAD"},
	{0x02, "MEMREADINV"},
	{0x03, "MEMWRITE"},
	{0x10, "IOREAD"},
	{0x11, "IOWRITE"},
	{0x20, "DEFERREPLY"},
	{0x21, "INTA"},
	{0x22, "CNTRLAGNTRES"},
	{0x23, "BRTRACEREC"},
	{0x31, "SHUTDOWN"},
	{0x32, "FLUSH"},
	{0x33, "HALT"},
	{0x34, "SYNC"},
	{0x35, "FLUSHACK"},
	{0x36, "STOPCLKACK"},
	{0x37, "SMIACK"},
};

static const char *documented_name(unsigned code)
{
	for (size_t i = 0; i < COUNT_OF(documented); i++)
		if (documented[i].code == code)
			return documented[i].name;
	return NULL;
}

TEST(fields_have_the_documented_offsets)
{
	static const uint8_t bytes[BC_RECORD_BYTES] = {
		0x78, 0x56, 0x34, 0x12, 0x21, 0x20, 0x07, 0x0F, 0xEF, 0xCD, 0xAB, 0x89};
	struct bc_record record = bc_record_load(bytes);
	uint8_t stored[BC_RECORD_BYTES];

	assert_int_equal(record.addr, 0x12345678);
	assert_int_equal(record.reqtype, 0x21);
	assert_int_equal(record.size, 0x20);
	assert_int_equal(record.attr, 0x07);
	assert_int_equal(record.proc, 0x0F);
	assert_int_equal(record.time, 0x89ABCDEF);
	bc_record_store(stored, &record);
	assert_memory_equal(stored, bytes, sizeof(bytes));
}

TEST(every_bit_of_a_record_is_preserved)
{
	for (unsigned bit = 0; bit < BC_RECORD_BYTES * 8; bit++) {
		uint8_t bytes[BC_RECORD_BYTES] = {0};
		uint8_t stored[BC_RECORD_BYTES];
		bytes[bit / 8] = (uint8_t)(1 << bit % 8);
		struct bc_record record = bc_record_load(bytes);
		bc_record_store(stored, &record);
		assert_memory_equal(stored, bytes, sizeof(bytes));
	}
}

TEST(only_documented_request_types_have_names)
{
	for (unsigned code = 0; code < 256; code++) {
		const char *name = bc_reqtype_name((uint8_t)code);
		if (documented_name(code) != NULL)
			assert_string_equal(name, documented_name(code));
		else
			assert_null(name);
	}
}

/* The output of BYU's b2a. */
static void assert_prints_as_b2a(const struct bc_record *r)
{
	char expected[128];
	char number[8];
	char out[BC_RECORD_TEXT_MAX];
	const char *name = documented_name(r->reqtype);

	snprintf(number, sizeof(number), "%02x", r->reqtype);
	int n = snprintf(expected, sizeof(expected), "%08x\t%s\t%2d\t%02x\t%1d\t%08x\n", r->addr,
		name != NULL ? name : number, r->size, r->attr, r->proc, r->time);
	memset(out, '~', sizeof(out));
	assert_true(n <= BC_RECORD_TEXT_MAX);
	assert_int_equal(bc_record_print(out, r), n);
	assert_memory_equal(out, expected, (size_t)n);
}

TEST(every_value_of_every_byte_field_prints_like_b2a)
{
	for (unsigned value = 0; value < 256; value++) {
		struct bc_record r = {.addr = 0x00C0FFEE, .time = 0x2a};
		r.reqtype = (uint8_t)value;
		assert_prints_as_b2a(&r);
		r.size = (uint8_t)value;
		assert_prints_as_b2a(&r);
		r.attr = (uint8_t)value;
		assert_prints_as_b2a(&r);
		r.proc = (uint8_t)value;
		assert_prints_as_b2a(&r);
	}
}

TEST(every_digit_at_every_place_prints_like_b2a)
{
	for (unsigned place = 0; place < 32; place += 4) {
		for (uint32_t digit = 0; digit < 16; digit++) {
			struct bc_record r = {.addr = digit << place, .time = ~(digit << place)};
			assert_prints_as_b2a(&r);
		}
	}
}

TEST(the_longest_line_fits)
{
	struct bc_record r = {
		UINT32_MAX, BC_REQ_CNTRLAGNTRES, UINT8_MAX, UINT8_MAX, UINT8_MAX, BC_TIME_NONE};

	assert_prints_as_b2a(&r);
}
