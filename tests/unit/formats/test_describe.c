/* A chunk's description has what its records have, no more and no less. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "formats/bus/describe.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

/* The same without SIMD instructions. */
#define BC_NO_SIMD
#define bc_chunk_count    portable_count
#define bc_chunk_describe portable_describe
void portable_count(
	struct bc_chunk_info *info, const uint8_t *records, struct bc_chunk_pages *chunk_pages);
void portable_describe(struct bc_chunk *chunk, struct bc_chunk_pages *chunk_pages);
#include "formats/bus/describe.c" /* NOLINT(bugprone-suspicious-include) */
#undef bc_chunk_count
#undef bc_chunk_describe

static struct bc_chunk_pages chunk_pages;

static void reset(struct bc_chunk *chunk)
{
	memset(chunk, 0xCC, sizeof(*chunk));
	bc_chunk_reset(chunk, 0, 0);
}

TEST_FIXTURE(bc_chunk, reset, NOTHING)

static void append_record(struct bc_chunk *chunk, struct bc_record record)
{
	bc_record_store(chunk->records + (size_t)chunk->info.records++ * BC_RECORD_BYTES, &record);
}

TEST_WITH(bc_chunk, chunk, an_empty_chunk_has_the_documented_description)
{
	static const uint64_t none[4];

	bc_chunk_reset(chunk, 5, 0);
	bc_chunk_describe(chunk, &chunk_pages);
	assert_int_equal(chunk->info.addr_low, UINT32_MAX);
	assert_int_equal(chunk->info.addr_high, 0);
	assert_memory_equal(chunk->info.types, none, sizeof(none));
	assert_memory_equal(chunk->info.procs, none, sizeof(none));
	assert_true(chunk->info.records_hash == XXH3_64bits("", 0));
}

TEST_WITH(bc_chunk, chunk, every_type_and_processor_has_its_bit)
{
	for (unsigned value = 0; value < 256; value++) {
		uint64_t types[4] = {0};
		uint64_t procs[4] = {0};

		bc_chunk_reset(chunk, 0, 0);
		for (unsigned i = 0; i < 9; i++) /* eight are looked at together */
			append_record(chunk,
				i == value % 9 ? (struct bc_record){.reqtype = (uint8_t)value,
							 .proc = (uint8_t)~value}
					       : (struct bc_record){.reqtype = 3, .proc = 200});
		bc_chunk_describe(chunk, &chunk_pages);
		types[value / 64] |= UINT64_C(1) << value % 64;
		types[0] |= 1 << 3;
		procs[(255 - value) / 64] |= UINT64_C(1) << (255 - value) % 64;
		procs[200 / 64] |= UINT64_C(1) << 200 % 64;
		assert_memory_equal(chunk->info.types, types, sizeof(types));
		assert_memory_equal(chunk->info.procs, procs, sizeof(procs));
	}
}

/* ---- page counts */

#define PLACES (BC_PORT_0 + BC_PORTS)

/* Counts in a plain table. */
static void count_plainly(uint32_t (*counts)[BC_PAGE_CLASSES], const struct bc_chunk *chunk)
{
	memset(counts, 0, PLACES * sizeof(*counts));
	for (uint32_t i = 0; i < chunk->info.records; i++) {
		struct bc_record r = bc_record_load(chunk->records + (size_t)i * BC_RECORD_BYTES);
		bool is_io = r.reqtype == 0x10 || r.reqtype == 0x11;
		unsigned class = r.reqtype == 0                                          ? 0
				 : r.reqtype == 1 || r.reqtype == 2 || r.reqtype == 0x10 ? 1
				 : r.reqtype == 3 || r.reqtype == 0x11                   ? 2
											 : 3;
		counts[is_io ? BC_PORT_0 + (r.addr & 0xFFFF) : r.addr >> 12][class]++;
	}
}

/* Describes a chunk in both ways, which must agree. */
static void describe(struct bc_chunk *chunk)
{
	static struct bc_chunk_pages portable_pages;

	portable_describe(chunk, &portable_pages);
	struct bc_chunk_info info = chunk->info;
	bc_chunk_describe(chunk, &chunk_pages);
	const struct bc_page_counts *a = &portable_pages.counts;
	const struct bc_page_counts *b = &chunk_pages.counts;
	assert_memory_equal(&chunk->info, &info, sizeof(info));
	assert_int_equal(a->is_crossed, b->is_crossed);
	assert_int_equal(a->page_shift, b->page_shift);
	assert_int_equal(a->port_shift, b->port_shift);
	assert_int_equal(a->count, b->count);
	assert_memory_equal(a->regions, b->regions, a->count * sizeof(*a->regions));
}

/* Each region has the sum of its places, and there are no regions without records. */
static void assert_counted(const struct bc_page_counts *c, uint32_t (*counts)[BC_PAGE_CLASSES])
{
	uint32_t at = 0;

	for (uint32_t place = 0; place < PLACES;) {
		uint32_t end = place + (1u << (place < BC_PORT_0 ? c->page_shift : c->port_shift));
		uint64_t sums[BC_PAGE_CLASSES] = {0};
		uint64_t all = 0;
		uint32_t first = place;
		for (; place < end; place++)
			for (unsigned class = 0; class < BC_PAGE_CLASSES; class ++) {
				sums[class] += counts[place][class];
				all += counts[place][class];
			}
		if (all == 0)
			continue;
		assert_true(at < c->count);
		assert_int_equal(c->regions[at].first, first);
		assert_memory_equal(c->regions[at++].counts, sums, sizeof(sums));
	}
	assert_int_equal(at, c->count);
}

struct traffic {
	const char *name;
	uint32_t records;
	uint32_t pages; /* they are scattered over the address space */
	uint32_t ports;
	unsigned io_percent;
	unsigned types; /* 256: any byte */
	bool is_coarse;
};

static const struct traffic traffics[] = {
	{"one page", BC_CHUNK_RECORDS, 1, 1, 0, 4, false},
	{"a program", BC_CHUNK_RECORDS, 300, 20, 5, 4, false},
	{"as many pages as are counted", 60000, 1000, 24, 50, 4, false},
	{"random pages", BC_CHUNK_RECORDS, 1 << 20, 1, 0, 4, true},
	{"random ports", BC_CHUNK_RECORDS, 1, 1 << 16, 100, 4, true},
	{"random bytes", BC_CHUNK_RECORDS, 1 << 20, 1 << 16, 50, 256, true},
	{"one record", 1, 5, 5, 50, 4, false},
};

TEST_CASES(counts_are_those_of_a_plain_table, traffics)
{
	struct bc_chunk *chunk = malloc(sizeof(*chunk));
	uint32_t(*counts)[BC_PAGE_CLASSES] = malloc(PLACES * sizeof(*counts));
	struct dice dice = {.state = 11};

	assert_true(chunk != NULL && counts != NULL);
	for (int round = 0; round < 4; round++) {
		bc_chunk_reset(chunk, 0, 0);
		for (uint32_t i = 0; i < c->records; i++) {
			bool is_io = dice_below(&dice, 100) < c->io_percent;
			uint32_t addr = is_io ? dice_below(&dice, c->ports) * 3
					      : dice_below(&dice, c->pages) * 0x345000 +
							dice_below(&dice, 4096);
			uint8_t type = is_io ? (uint8_t)(0x10 + dice_below(&dice, 2))
					     : (uint8_t)dice_below(&dice, c->types);
			append_record(chunk, (struct bc_record){.addr = addr, .reqtype = type});
		}
		describe(chunk);
		const struct bc_page_counts *pages = &chunk_pages.counts;
		assert_int_equal(pages->page_shift + pages->port_shift != 0, c->is_coarse);
		assert_true(pages->count <= BC_CHUNK_REGIONS);
		count_plainly(counts, chunk);
		assert_counted(pages, counts);
	}
	free(counts);
	free(chunk);
}

/* The same where the ports are counted together. */
TEST_WITH(bc_chunk, chunk, the_address_range_includes_coarse_ports)
{
	bc_chunk_reset(chunk, 0, 0);
	for (uint32_t i = 0; i < 65536; i++)
		append_record(chunk, (struct bc_record){.addr = 0x50000 | i, .reqtype = 0x11});
	append_record(chunk, (struct bc_record){.addr = 0x40123, .reqtype = 0x11});
	append_record(chunk, (struct bc_record){.addr = 0x60123, .reqtype = 0x11});
	describe(chunk);
	assert_true(chunk_pages.counts.port_shift != 0);
	assert_in_range(chunk->info.addr_low, 0x40000, 0x40123);
	assert_in_range(chunk->info.addr_high, 0x60123, 0x6FFFF);
}

static const struct crossing {
	const char *name;
	struct bc_record record;
	bool is_crossed;
} crossings[] = {
	{"within a page", {.addr = 0x1FF8, .reqtype = 1, .size = 8}, false},
	{"into the next page", {.addr = 0x1FF9, .reqtype = 1, .size = 8}, true},
	{"at the end of memory", {.addr = 0xFFFFFFFF, .reqtype = 3, .size = 2}, true},
	{"the last byte of a page", {.addr = 0x1FFF, .reqtype = 0, .size = 1}, false},
	{"without a size", {.addr = 0x1FFF, .reqtype = 0, .size = 0}, false},
	{"a burst, last part first", {.addr = 0x1FF8, .reqtype = 0, .size = 32}, false},
	{"half a burst, last part first", {.addr = 0x1FF8, .reqtype = 0, .size = 16}, false},
	{"almost a page", {.addr = 0x1F02, .reqtype = 0x20, .size = 255}, true},
	{"four ports", {.addr = 0xCFC, .reqtype = 0x10, .size = 4}, false},
	{"four ports at the end of a page", {.addr = 0x0FFE, .reqtype = 0x11, .size = 4}, false},
	{"five ports", {.addr = 0xCFC, .reqtype = 0x11, .size = 5}, true},
	{"a burst of ports", {.addr = 0xCFC, .reqtype = 0x10, .size = 16}, true},
};

TEST_CASES(records_beyond_their_page_are_noticed, crossings)
{
	struct bc_chunk *chunk = calloc(1, sizeof(*chunk));

	assert_non_null(chunk);
	for (unsigned records = 1; records <= 9; records++) /* eight are looked at together */
		for (unsigned at = 0; at < records; at++) {
			bc_chunk_reset(chunk, 0, 0);
			for (unsigned i = 0; i < records; i++)
				append_record(chunk,
					i == at ? c->record
						: (struct bc_record){.addr = 0x1000, .size = 1});
			describe(chunk);
			assert_int_equal(chunk_pages.counts.is_crossed, c->is_crossed);
		}
	free(chunk);
}
