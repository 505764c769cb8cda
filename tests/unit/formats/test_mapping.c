#include <stdbool.h>
#include <string.h>

#include "formats/bus/sample.h"
#include "tests/support/test.h"

/* A slow reference made from the documentation: one case per cycle type, byte by byte. */

enum kind { BYTES, BURST, SPECIAL, INVALID };

static const struct {
	enum kind kind;
	uint8_t reqtype;
	uint8_t attr;
} rows[16] = {
	{INVALID, 0xF0, 0},                                       /* 0 */
	{BYTES, 0x21, 0},                                         /* 1 INT_ACK: INTA */
	{INVALID, 0xF2, 0}, {SPECIAL, 0, 0},                      /* 3 */
	{INVALID, 0xF4, 0}, {BYTES, 0x10, 0},                     /* 5 IO_READ: IOREAD */
	{INVALID, 0xF6, 0}, {BYTES, 0x11, 0},                     /* 7 IO_WRITE: IOWRITE */
	{BURST, 0x00, 3},                                         /* 8 I_FETCH: FETCH */
	{BYTES, 0x00, 0},                                         /* 9 NC_I_FETCH: FETCH */
	{INVALID, 0xFA, 0}, {INVALID, 0xFB, 0}, {BURST, 0x01, 3}, /* 12 D_READ: MEMREAD */
	{BYTES, 0x01, 0},                                         /* 13 NC_D_READ: MEMREAD */
	{BURST, 0x03, 3},                                         /* 14 WRITE_BACK: MEMWRITE */
	{BYTES, 0x03, 1},                                         /* 15 D_WRITE: MEMWRITE */
};

struct expected {
	bool is_dropped;
	bool is_unknown;
	struct bc_record record;
};

static void expect_special(struct expected *e, uint32_t address, unsigned enables)
{
	e->record.addr = address;
	switch (enables) {
	case 0xFE:
		e->record.reqtype = 0x31; /* SHUTDOWN */
		return;
	case 0xFD:
		e->record.reqtype = 0x32; /* FLUSH */
		return;
	case 0xFB:
		e->record.reqtype = (address >> 4) % 2 == 1 ? 0x36 : 0x33; /* STOPCLKACK, HALT */
		return;
	case 0xF7:
		e->record.reqtype = 0x34; /* SYNC */
		return;
	case 0xEF:
		e->record.reqtype = 0x35; /* FLUSHACK */
		return;
	case 0xDF:
		e->record.reqtype = 0x23; /* BRTRACEREC */
		return;
	default:
		e->record.reqtype = 0x22; /* CNTRLAGNTRES */
		e->is_unknown = true;
	}
}

static void expect_bytes(struct expected *e, uint32_t address, unsigned enables)
{
	int lowest = -1;

	e->record.addr = address;
	for (int byte = 0; byte < 8; byte++) {
		if ((enables >> byte) % 2 == 1)
			continue;
		e->record.size++;
		if (lowest < 0)
			lowest = byte;
	}
	if (lowest >= 0)
		e->record.addr = address / 8 * 8 + (uint32_t)lowest;
}

static struct expected expect(uint32_t address, unsigned enables, unsigned cycle, uint8_t proc,
	const struct bc_mapping_options *options)
{
	struct expected e = {
		.record = {.reqtype = rows[cycle].reqtype,
			.attr = options != NULL ? options->attr[cycle] : rows[cycle].attr,
			.proc = proc}};

	switch (rows[cycle].kind) {
	case INVALID:
		e.is_dropped = options == NULL || !options->keep_invalid;
		expect_bytes(&e, address, enables);
		break;
	case BYTES:
		expect_bytes(&e, address, enables);
		break;
	case BURST:
		e.record.addr = address;
		e.record.size = options != NULL && options->size_v1_0 ? 8 : 32;
		break;
	case SPECIAL:
		expect_special(&e, address, enables);
		break;
	}
	return e;
}

/* All 4096 entries at one address. The low nibble of control has no effect. */
static void assert_maps(const struct bc_mapping *mapping, const struct bc_mapping_options *options,
	uint32_t address, uint8_t proc)
{
	for (unsigned cycle = 0; cycle < 16; cycle++) {
		for (unsigned enables = 0; enables < 256; enables++) {
			uint8_t sample[BC_SAMPLE_BYTES] = {(uint8_t)(address >> 24),
				(uint8_t)(address >> 16), (uint8_t)(address >> 8), (uint8_t)address,
				(uint8_t)enables, (uint8_t)(cycle << 4 | (enables & 15))};
			struct expected e = expect(address, enables, cycle, proc, options);
			uint64_t entry = bc_map_entry(mapping, sample);
			uint8_t out[BC_RECORD_BYTES + 1];
			uint8_t expected[BC_RECORD_BYTES + 1];

			memset(out, 0xEE, sizeof(out));
			e.record.time = 0xEEEEEEEE; /* unchanged */
			bc_record_store(expected, &e.record);
			expected[BC_RECORD_BYTES] = 0xEE;
			bc_map_sample(out, entry, sample, proc);
			assert_int_equal((entry & BC_MAP_DROP) != 0, e.is_dropped);
			assert_int_equal((entry & BC_MAP_UNKNOWN) != 0, e.is_unknown);
			assert_memory_equal(out, expected, sizeof(out));
		}
	}
}

static const uint32_t addresses[] = {0, 1, 2, 3, 4, 5, 6, 7, 0x10, 0x1F, 0x0000FFEF, 0x12345678,
	0x9ABCDEF7, 0x80000000, 0xFFFFFFE8, 0xFFFFFFFF};

#define ADDRESSES (COUNT_OF(addresses))

TEST(the_whole_table_is_as_documented)
{
	struct bc_mapping_options options = bc_mapping_options_default();
	struct bc_mapping mapping;

	bc_mapping_init(&mapping, &options);
	for (size_t i = 0; i < ADDRESSES; i++)
		assert_maps(&mapping, NULL, addresses[i], (uint8_t)i);
	assert_maps(&mapping, NULL, 0x1000, 0xFF);
}

TEST(the_attr_of_each_cycle_type_can_be_overridden)
{
	struct bc_mapping mapping;

	for (unsigned cycle = 0; cycle < BC_CYCLE_TYPES; cycle++) {
		struct bc_mapping_options options = bc_mapping_options_default();
		options.attr[cycle] = 0xFF;
		bc_mapping_init(&mapping, &options);
		assert_maps(&mapping, &options, 0x12345678, 0);
		options.attr[cycle] = 0;
		bc_mapping_init(&mapping, &options);
		assert_maps(&mapping, &options, 0x12345678, 0);
	}
}

TEST(the_mapping_keeps_its_options)
{
	struct bc_mapping_options options = bc_mapping_options_default();
	struct bc_mapping mapping;

	for (unsigned cycle = 0; cycle < BC_CYCLE_TYPES; cycle++)
		assert_int_equal(options.attr[cycle], rows[cycle].attr);
	assert_false(options.size_v1_0);
	assert_false(options.keep_invalid);
	options.keep_invalid = true;
	options.attr[5] = 9;
	bc_mapping_init(&mapping, &options);
	assert_true(mapping.options.keep_invalid);
	assert_false(mapping.options.size_v1_0);
	assert_memory_equal(mapping.options.attr, options.attr, sizeof(options.attr));
}
