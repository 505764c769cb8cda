#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/stats/counts.h"
#include "formats/bus/record.h"
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
	entry.traits = BC_TRAIT_SIZE | BC_TRAIT_PROC;
	entry.size = 4096;
	entry.proc = 65535;
	bc_tally_reference(tally, &entry);
	bc_tally_reference(tally, &entry);
	entry.type = BC_REF_LETTER;
	entry.letter = 'q';
	entry.traits = BC_TRAIT_ATTR;
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
	entry.traits = BC_TRAIT_SIZE;
	for (uint32_t i = 0; i < BC_TALLY_LARGE + 7; i++) {
		entry.size = 256 + i;
		bc_tally_reference(tally, &entry);
		bc_tally_reference(tally, &entry);
	}
	assert_int_equal(tally->large_count, BC_TALLY_LARGE);
	assert_int_equal(tally->large[BC_TALLY_LARGE - 1].references, 2);
	assert_int_equal(tally->large_others, 14);
}

/* ---- strings and other entries */

static struct bc_text text_of(const char *text)
{
	return (struct bc_text){.at = text, .bytes = (uint32_t)strlen(text)};
}

static void add(struct bc_string_counter *names, const char *name)
{
	assert_int_equal(bc_string_counter_add(names, text_of(name)), 0);
}

TEST(names_are_counted_and_sorted)
{
	struct bc_string_counter names = {.count = 0};
	char name[16];

	bc_string_counter_sort(&names);
	for (unsigned i = 0; i < 3000; i++)
		for (unsigned times = 0; times <= i % 3; times++) {
			snprintf(name, sizeof(name), "r%u", i);
			add(&names, name);
		}
	add(&names, "");
	assert_int_equal(names.count, 3001);
	assert_int_equal(names.total, 6001);
	bc_string_counter_sort(&names);
	for (size_t i = 1; i < names.count; i++)
		assert_true(names.rows[i - 1].count >= names.rows[i].count);
	assert_int_equal(names.rows[0].count, 3);
	assert_int_equal(names.rows[0].text.bytes, 5);
	assert_memory_equal(names.rows[0].text.at, "r1001", 5);
	assert_int_equal(names.rows[1000].count, 2);
	assert_int_equal(names.rows[2000].text.bytes, 0); /* the shorter one first */
	bc_string_counter_free(&names);
}

TEST(names_that_do_not_fit_are_counted_together)
{
	struct bc_string_counter names = {.count = 0};
	char name[16];
	static char large[65000];

	for (unsigned i = 0; i < BC_STRING_COUNTER_MAX + 9; i++) {
		snprintf(name, sizeof(name), "%u", i);
		add(&names, name);
	}
	add(&names, "7");
	assert_int_equal(names.count, BC_STRING_COUNTER_MAX);
	assert_int_equal(names.others, 9);
	assert_int_equal(names.total, BC_STRING_COUNTER_MAX + 10);
	bc_string_counter_free(&names);
	for (unsigned i = 0; i < 100; i++) {
		memset(large, 'a' + (int)(i % 26), sizeof(large));
		large[0] = (char)i;
		assert_int_equal(bc_string_counter_add(&names,
					 (struct bc_text){.at = large, .bytes = sizeof(large)}),
			0);
	}
	assert_int_equal(names.count, BC_STRING_COUNTER_TEXT_MAX / sizeof(large));
	assert_int_equal(names.others, 100 - names.count);
	bc_string_counter_free(&names);
}

TEST(a_name_is_printed_in_ascii)
{
	struct bc_string_counter names = {.count = 0};

	assert_int_equal(bc_string_counter_add(
				 &names, (struct bc_text){.at = "a\\\xC3\x00\x1B.", .bytes = 6}),
		0);
	bc_string_counter_sort(&names);
	char *text = bc_string_count_text(&names.rows[0]);
	assert_non_null(text);
	assert_string_equal(text, "a\\x5c\\xc3\\x00\\x1b.");
	free(text);
	bc_string_counter_free(&names);
}

static void count_entry(struct bc_entry_counts *h, const struct bc_entry *entry)
{
	assert_int_equal(bc_entry_counts_add(h, entry), 0);
}

TEST(micro_ops_are_counted)
{
	static const struct bc_uop uops[] = {
		{.step = 1, .flags = 'R', .branch = 'T', .access = '-'},
		{.step = 1, .flags = '-', .branch = '-', .access = 'L'},
		{.step = 2, .flags = 'W', .branch = '-', .access = 'S'},
		{.step = 3, .flags = '-', .branch = 'N', .access = '-'},
	};
	struct bc_entry_counts h = {.marks = 0};
	struct bc_entry entry;

	bc_entry_reference(&entry, 0, 0, 1);
	entry.kind = BC_ENTRY_UOP;
	for (size_t i = 0; i < 4; i++) {
		entry.uop = uops[i];
		entry.uop.macro = text_of(i == 0 ? "J" : "MOV");
		entry.uop.micro = text_of(i < 2 ? "A" : "B");
		count_entry(&h, &entry);
	}
	bc_entry_counts_sort(&h);
	assert_int_equal(h.kinds[BC_ENTRY_UOP], 4);
	assert_int_equal(h.macro_ops, 2);
	assert_int_equal(h.macros.count, 2);
	assert_int_equal(h.macros.rows[0].count, 1); /* a macro-op counts once */
	assert_int_equal(h.micros.rows[0].count, 2);
	assert_int_equal(h.loads, 1);
	assert_int_equal(h.stores, 1);
	assert_int_equal(h.taken, 1);
	assert_int_equal(h.not_taken, 1);
	assert_int_equal(h.flag_reads, 1);
	assert_int_equal(h.flag_writes, 1);
	bc_entry_counts_free(&h);
}

TEST(instructions_are_counted_by_effect)
{
	struct bc_entry_counts h = {.marks = 0};
	struct bc_entry entry;

	bc_entry_reference(&entry, 0, 0, 1);
	entry.kind = BC_ENTRY_INSTRUCTION;
	entry.instruction = (struct bc_instruction){
		.set = text_of("T"), .disassembly = text_of("  LDR\tr0,[r1]")};
	count_entry(&h, &entry);
	entry.instruction.disassembly = text_of("LDR");
	count_entry(&h, &entry);
	entry.instruction.disassembly = text_of(" ");
	count_entry(&h, &entry);
	entry.instruction.effect = BC_EFFECT_SKIPPED;
	entry.instruction.disassembly = text_of("BNE x");
	count_entry(&h, &entry);
	entry.instruction.effect = BC_EFFECT_FETCHFAIL;
	entry.instruction.set.bytes = 0;
	count_entry(&h, &entry);
	bc_entry_counts_sort(&h);
	assert_int_equal(h.effects[BC_EFFECT_EXECUTED], 3);
	assert_int_equal(h.effects[BC_EFFECT_SKIPPED], 1);
	assert_int_equal(h.effects[BC_EFFECT_FETCHFAIL], 1);
	assert_int_equal(h.mnemonics.count, 1);
	assert_int_equal(h.mnemonics.rows[0].count, 2);
	assert_int_equal(h.undecoded, 1);
	assert_int_equal(h.sets.total, 4);
	bc_entry_counts_free(&h);
}

TEST(gaps_marks_registers_and_kernel_events_are_counted)
{
	struct bc_entry_counts h = {.marks = 0};
	struct bc_entry entry;

	bc_entry_counts_event(
		&h, &(struct bc_event){
			    .kind = BC_EVENT_GAP, .cause = BC_GAP_CRC, .exact = true, .value = 30});
	bc_entry_counts_event(
		&h, &(struct bc_event){.kind = BC_EVENT_GAP, .cause = 200, .value = 4});
	bc_entry_counts_event(&h, &(struct bc_event){.kind = BC_EVENT_ANCHOR, .value = 5});
	bc_entry_counts_event(&h, &(struct bc_event){.kind = BC_EVENT_TRIGGER});
	bc_entry_reference(&entry, 0, 0, 1);
	entry.kind = BC_ENTRY_EVENT;
	entry.note.event = (struct bc_event){.kind = BC_EVENT_MARK};
	count_entry(&h, &entry);
	entry.note.event = (struct bc_event){.kind = 0}; /* an epoch */
	count_entry(&h, &entry);
	entry.kind = BC_ENTRY_REGISTER;
	entry.reg.name = text_of("cpsr");
	count_entry(&h, &entry);
	entry.kind = BC_ENTRY_KERNEL;
	entry.letter = 'F';
	entry.kernel.tag = text_of("FORK");
	count_entry(&h, &entry);
	entry.kernel.tag = text_of("FREE");
	count_entry(&h, &entry);
	entry.kind = BC_ENTRY_LINE;
	count_entry(&h, &entry);
	assert_int_equal(bc_losses_sum(&h.losses).gaps, 2);
	assert_int_equal(bc_losses_sum(&h.losses).inexact, 1);
	assert_int_equal(h.losses.lost[BC_GAP_CRC], 30);
	assert_int_equal(h.losses.lost[0], 4);
	assert_int_equal(h.marks, 1);
	assert_int_equal(h.triggers, 1);
	assert_int_equal(h.registers.total, 1);
	assert_int_equal(h.tags.total, 2);
	assert_int_equal(h.tags.count, 2);
	assert_int_equal(h.kinds[BC_ENTRY_EVENT], 2);
	assert_int_equal(h.kinds[BC_ENTRY_LINE], 1);
	bc_entry_counts_free(&h);
}
