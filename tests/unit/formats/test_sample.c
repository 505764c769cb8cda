#include <stdio.h>
#include <string.h>

#include "formats/bus/sample.h"
#include "tests/support/test.h"

/* The upper four bits of the control byte, with the names in the BYU document. */
static const char *const documented[16] = {"INVALID", "INT_ACK", "INVALID", "SPECIAL", "INVALID",
	"IO_READ", "INVALID", "IO_WRITE", "I_FETCH", "NC_I_FETCH", "INVALID", "INVALID", "D_READ",
	"NC_D_READ", "WRITE_BACK", "D_WRITE"};

TEST(cycle_names_are_as_documented)
{
	for (unsigned cycle = 0; cycle < 64; cycle++)
		assert_string_equal(bc_cycle_name(cycle), documented[cycle % 16]);
}

TEST(each_name_has_its_cycle_and_other_words_none)
{
	static const char *const others[] = {"INVALID", "", "int_ack", "INT_ACK ", " INT_ACK",
		"INT_AC", "D_READD", "READ", "0", "1"};

	for (int cycle = 0; cycle < 16; cycle++)
		if (strcmp(documented[cycle], "INVALID") != 0)
			assert_int_equal(bc_cycle_by_name(documented[cycle]), cycle);
	for (size_t i = 0; i < COUNT_OF(others); i++)
		assert_int_equal(bc_cycle_by_name(others[i]), -1);
}

static void assert_prints(const uint8_t sample[BC_SAMPLE_BYTES], uint32_t address)
{
	char expected[64];
	char out[BC_SAMPLE_TEXT_MAX];
	int n = snprintf(expected, sizeof(expected), "%08x %02x %s\n", address, sample[4],
		documented[sample[5] >> 4]);

	memset(out, '~', sizeof(out));
	assert_int_equal(bc_sample_print(out, sample), n);
	assert_memory_equal(out, expected, (size_t)n);
}

TEST(every_cycle_and_byte_enable_prints_as_documented)
{
	for (unsigned control = 0; control < 256; control++) {
		for (unsigned enables = 0; enables < 256; enables++) {
			uint8_t sample[BC_SAMPLE_BYTES] = {
				0x01, 0x23, 0xAB, 0xCD, (uint8_t)enables, (uint8_t)control};
			assert_prints(sample, 0x0123ABCD);
		}
	}
}

TEST(the_address_is_big_endian)
{
	for (unsigned bit = 0; bit < 32; bit++) {
		uint8_t sample[BC_SAMPLE_BYTES] = {[4] = 0xF0, [5] = 0xC0};
		sample[3 - bit / 8] = (uint8_t)(1 << bit % 8);
		assert_prints(sample, UINT32_C(1) << bit);
	}
}
