#include <stdlib.h>
#include <string.h>

#include "formats/bus/record.h"
#include "formats/stats/counts.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

#define RECORDS 5000u

TEST_FIXTURE(bc_tally, NOTHING, NOTHING)

/* Totals counted in a straightforward way. */
struct plain {
	uint64_t types[256];
	uint64_t bytes[256];
	uint64_t sizes[256];
	uint64_t attrs[256];
	uint64_t procs[256];
	uint64_t all_bytes;
};

static void count_plain(struct plain *plain, const uint8_t *record)
{
	plain->types[record[4]]++;
	plain->bytes[record[4]] += record[5];
	plain->sizes[record[5]]++;
	plain->attrs[record[6]]++;
	plain->procs[record[7]]++;
	plain->all_bytes += record[5];
}

static void check(struct bc_tally *tally, const struct plain *plain, uint64_t records)
{
	bc_tally_settle(tally);
	assert_int_equal(tally->references, records);
	assert_int_equal(tally->bytes, plain->all_bytes);
	for (unsigned i = 0; i < 256; i++) {
		assert_int_equal(tally->types[i], plain->types[i]);
		assert_int_equal(tally->type_bytes[i], plain->bytes[i]);
		assert_int_equal(tally->sizes[i], plain->sizes[i]);
		assert_int_equal(tally->attrs[i], plain->attrs[i]);
		assert_int_equal(tally->procs[i], plain->procs[i]);
	}
}

/* Makes records with this number of combinations of type, size, attr and proc. */
static void fill(uint8_t *records, uint32_t kinds)
{
	struct dice dice = {kinds};

	for (size_t i = 0; i < RECORDS; i++) {
		uint8_t *p = records + i * BC_RECORD_BYTES;
		bc_write_le32(p, (uint32_t)dice_roll(&dice));
		bc_write_le32(p + 4, (uint32_t)(dice_roll(&dice) % kinds) * 0x01357911u);
		bc_write_le32(p + 8, (uint32_t)dice_roll(&dice));
	}
}

TEST_WITH(bc_tally, tally, records_are_counted_for_any_number_of_combinations)
{
	static const uint32_t kinds[] = {1, 2, 23, 500, 5000, 1u << 31};
	uint8_t *records = malloc(RECORDS * BC_RECORD_BYTES);

	assert_non_null(records);
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		struct plain plain = {.all_bytes = 0};
		memset(tally, 0, sizeof(*tally));
		fill(records, kinds[k]);
		for (size_t i = 0; i < RECORDS; i++)
			count_plain(&plain, records + i * BC_RECORD_BYTES);
		bc_tally_records(tally, records, RECORDS);
		check(tally, &plain, RECORDS);
	}
	free(records);
}

TEST_WITH(bc_tally, tally, any_split_of_the_records_gives_the_same_counts)
{
	uint8_t records[40 * BC_RECORD_BYTES];
	struct plain plain = {.all_bytes = 0};

	for (size_t i = 0; i < sizeof(records); i++)
		records[i] = (uint8_t)(i / 12 % 5 + i % 12);
	for (size_t i = 0; i < 40; i++)
		count_plain(&plain, records + i * BC_RECORD_BYTES);
	for (size_t split = 0; split <= 40; split++) {
		memset(tally, 0, sizeof(*tally));
		bc_tally_records(tally, records, split);
		if (split % 2 == 0)
			bc_tally_settle(tally);
		bc_tally_records(tally, records + split * BC_RECORD_BYTES, 40 - split);
		check(tally, &plain, 40);
	}
}

TEST_WITH(bc_tally, tally, pending_counts_are_added_before_they_overflow)
{
	uint8_t record[BC_RECORD_BYTES] = {0, 0, 0, 0, BC_REQ_MEMREAD, 8, 3, 1};

	bc_tally_records(tally, record, 1);
	tally->pending = (1u << 31) - 1; /* as if this number had been counted */
	bc_tally_records(tally, record, 1);
	assert_int_equal(tally->pending, 0);
	assert_int_equal(tally->types[BC_REQ_MEMREAD], 2);
	bc_tally_records(tally, record, 1);
	bc_tally_settle(tally);
	assert_int_equal(tally->types[BC_REQ_MEMREAD], 3);
	assert_int_equal(tally->procs[1], 3);
}

TEST_WITH(bc_tally, tally, missing_fields_are_counted_as_unknown)
{
	struct bc_entry entry;

	bc_entry_reference(&entry, BC_REF_MODIFY, 0x1000, 1);
	bc_tally_reference(tally, &entry);
	entry.has = BC_HAS_SIZE | BC_HAS_PROC;
	entry.size = 4096;
	entry.proc = 65535;
	bc_tally_reference(tally, &entry);
	bc_tally_reference(tally, &entry);
	entry.type = BC_REF_LETTER;
	entry.letter = 'q';
	entry.has = BC_HAS_ATTR;
	entry.attr = 6;
	bc_tally_reference(tally, &entry);
	assert_int_equal(tally->references, 4);
	assert_int_equal(tally->types[BC_REF_MODIFY], 3);
	assert_int_equal(tally->type_bytes[BC_REF_MODIFY], 8192);
	assert_int_equal(tally->bytes, 8192);
	assert_int_equal(tally->without_size, 2);
	assert_int_equal(tally->large_count, 1);
	assert_int_equal(tally->large[0].size, 4096);
	assert_int_equal(tally->large[0].references, 2);
	assert_int_equal(tally->procs[65535], 2);
	assert_int_equal(tally->without_proc, 2);
	assert_int_equal(tally->attrs[6], 1);
	assert_int_equal(tally->without_attr, 3);
	assert_int_equal(tally->letters['q'], 1);
}

TEST_WITH(bc_tally, tally, large_sizes_beyond_the_limit_are_counted_together)
{
	struct bc_entry entry;

	bc_entry_reference(&entry, BC_REQ_MEMREAD, 0, 1);
	entry.has = BC_HAS_SIZE;
	for (uint32_t i = 0; i < BC_TALLY_LARGE + 7; i++) {
		entry.size = 256 + i;
		bc_tally_reference(tally, &entry);
		bc_tally_reference(tally, &entry);
	}
	assert_int_equal(tally->large_count, BC_TALLY_LARGE);
	assert_int_equal(tally->large[BC_TALLY_LARGE - 1].references, 2);
	assert_int_equal(tally->large_others, 14);
}
