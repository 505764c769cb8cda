#include <string.h>

#include "formats/codec/format.h"
#include "tests/support/test.h"

/* Converts entries for a target and collects the output in order. */
struct converted {
	struct bc_entry_converter converter;
	struct bc_entry entries[64];
	size_t count;
	size_t runs;
};

static struct converted convert(
	enum bc_format target, bool keep_invalid, const struct bc_entry *entries, size_t count)
{
	struct bc_format_options options = bc_format_options_default();
	struct converted converted = {.count = 0};
	const struct bc_entry *run;
	size_t n;

	options.keep_invalid = keep_invalid;
	bc_entry_converter_init(&converted.converter, target, &options);
	bc_entry_convert_batch(&converted.converter, entries, count);
	while ((n = bc_entry_converter_next(&converted.converter, &run)) != 0) {
		assert_true(converted.count + n <= 64);
		memcpy(converted.entries + converted.count, run, n * sizeof(*run));
		converted.count += n;
		converted.runs++;
	}
	assert_int_equal(bc_entry_converter_next(&converted.converter, &run), 0);
	return converted;
}

static uint64_t reduced(const struct converted *converted, uint32_t trait)
{
	return converted->converter.trait_losses[__builtin_ctz(trait)];
}

static uint64_t left_out(const struct converted *converted, uint32_t trait)
{
	return converted->converter.left_out[__builtin_ctz(trait)];
}

/* Checks that only these traits were lost, this number of times. */
static void assert_lost(const struct converted *converted, uint32_t reduced_traits,
	uint32_t left_out_traits, uint64_t times)
{
	for (unsigned i = 0; i < BC_TRAIT_BITS; i++) {
		assert_int_equal(converted->converter.trait_losses[i],
			(reduced_traits >> i & 1) != 0 ? times : 0);
		assert_int_equal(converted->converter.left_out[i],
			(left_out_traits >> i & 1) != 0 ? times : 0);
	}
	assert_int_equal(
		converted->converter.lost != NULL, (reduced_traits | left_out_traits) != 0);
}

static struct bc_entry reference(unsigned type, bc_traits traits)
{
	struct bc_entry entry;

	memset(&entry, 0, sizeof(entry));
	bc_entry_reference(&entry, type, 0x1000, 7);
	entry.traits = traits;
	return entry;
}

TEST(entries_that_fit_pass_in_one_run_without_loss)
{
	struct bc_entry entries[10];

	for (unsigned i = 0; i < 10; i++)
		entries[i] = reference(i % 2 ? BC_REQ_FETCH : BC_REQ_MEMREAD, 0);
	struct converted converted = convert(BC_FORMAT_DIN, false, entries, 10);
	assert_int_equal(converted.count, 10);
	assert_int_equal(converted.runs, 1);
	assert_memory_equal(converted.entries, entries, sizeof(entries));
	assert_lost(&converted, 0, 0, 0);
	converted = convert(BC_FORMAT_DIN, false, entries, 0);
	assert_int_equal(converted.count, 0);
}

TEST(a_missing_field_is_counted_and_the_entry_passes)
{
	for (unsigned format = 1; format < BC_FORMATS; format++) {
		bc_traits traits = bc_format_info((enum bc_format)format)->traits;
		if ((traits & BC_TRAIT_REFERENCE) == 0)
			continue;
		for (uint32_t field = 1; field <= BC_FIELDS; field <<= 1) {
			struct bc_entry entries[3] = {reference(BC_REQ_MEMWRITE, 0),
				reference(BC_REQ_MEMWRITE, field),
				reference(BC_REQ_MEMREAD, field)};
			for (unsigned i = 0; i < 3; i++)
				entries[i].size = 1; /* some formats require a size */
			struct converted converted = convert(
				(enum bc_format)format, false, entries, 3);
			assert_int_equal(converted.count, 3);
			assert_lost(&converted, field & ~traits, 0, 2);
			if ((field & ~traits) != 0) {
				assert_ptr_equal(converted.converter.lost, &entries[1]);
				assert_int_equal(converted.converter.lost_traits, field);
			}
		}
	}
}

TEST(missing_types_are_reduced_or_left_out)
{
	static const struct {
		unsigned type;
		int becomes; /* in a target with only reads, writes and fetches; -1: left out */
		uint32_t trait;
	} cases[] = {
		{BC_REQ_MEMREADINV, BC_REQ_MEMREAD, BC_TRAIT_P6},
		{BC_REQ_DEFERREPLY, -1, BC_TRAIT_P6},
		{BC_REQ_IOREAD, -1, BC_TRAIT_CYCLE},
		{BC_REQ_HALT, -1, BC_TRAIT_CYCLE},
		{BC_REQ_INVALID + 0xA, -1, BC_TRAIT_INVALID},
		{BC_REQ_INVALID + 3, -1, BC_TRAIT_P6}, /* there is no such cycle */
		{0x77, -1, BC_TRAIT_P6},
		{BC_REF_MISC, -1, BC_TRAIT_MISC},
		{BC_REF_FLUSH, -1, BC_TRAIT_FLUSH},
		{BC_REF_COPYBACK, BC_REQ_MEMWRITE, BC_TRAIT_CACHE},
		{BC_REF_INVALIDATE, -1, BC_TRAIT_CACHE},
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct bc_entry entries[3] = {reference(BC_REQ_FETCH, BC_TRAIT_SIZE),
			reference(cases[i].type, BC_TRAIT_SIZE),
			reference(BC_REQ_MEMREAD, BC_TRAIT_SIZE)};
		struct converted converted = convert(BC_FORMAT_LAPLACE_TEXT, false, entries, 3);
		bool is_left_out = cases[i].becomes < 0;
		assert_int_equal(converted.count, is_left_out ? 2 : 3);
		assert_lost(&converted, is_left_out ? 0 : cases[i].trait,
			is_left_out ? cases[i].trait : 0, 1);
		assert_ptr_equal(converted.converter.lost, &entries[1]);
		if (!is_left_out) {
			assert_int_equal(converted.entries[1].type, cases[i].becomes);
			assert_true(converted.entries[1].addr == 0x1000);
			assert_true(converted.entries[1].number == 7);
		}
		assert_int_equal(converted.entries[converted.count - 1].type, BC_REQ_MEMREAD);
	}
}

TEST(a_modify_becomes_a_read_and_a_write)
{
	struct bc_entry entry = reference(BC_REF_MODIFY, BC_TRAIT_SIZE);

	entry.size = 4;
	struct converted converted = convert(BC_FORMAT_XDIN, false, &entry, 1);
	assert_int_equal(converted.count, 2);
	assert_int_equal(converted.entries[0].type, BC_REQ_MEMREAD);
	assert_int_equal(converted.entries[1].type, BC_REQ_MEMWRITE);
	assert_false(converted.entries[0].is_continued);
	assert_true(converted.entries[1].is_continued);
	assert_true(converted.entries[1].addr == 0x1000);
	assert_int_equal(converted.entries[1].size, 4);
	assert_lost(&converted, BC_TRAIT_MODIFY, 0, 1);
}

TEST(a_type_with_only_a_letter_needs_a_target_with_letters)
{
	struct bc_entry entries[2] = {reference(BC_REF_LETTER, BC_TRAIT_LETTER | BC_TRAIT_TIME),
		reference(BC_REQ_FETCH, BC_TRAIT_LETTER | BC_TRAIT_TIME)};

	struct converted converted = convert(BC_FORMAT_LAPLACE, false, entries, 2);
	assert_int_equal(converted.count, 2);
	assert_lost(&converted, 0, 0, 0);
	converted = convert(BC_FORMAT_DIN, false, entries, 2);
	assert_int_equal(converted.count, 1);
	assert_int_equal(converted.entries[0].type, BC_REQ_FETCH);
	assert_int_equal(left_out(&converted, BC_TRAIT_LETTER), 1);
	assert_int_equal(reduced(&converted, BC_TRAIT_LETTER), 1);
	assert_int_equal(reduced(&converted, BC_TRAIT_TIME), 1);
}

TEST(invalid_cycles_are_kept_only_on_request_or_as_samples)
{
	struct bc_entry entry = reference(BC_REQ_INVALID + 2, BC_TRAIT_SAMPLE);

	struct converted converted = convert(BC_FORMAT_BYU, false, &entry, 1);
	assert_int_equal(converted.count, 0);
	assert_lost(&converted, 0, BC_TRAIT_INVALID, 1);
	converted = convert(BC_FORMAT_BYU, true, &entry, 1);
	assert_int_equal(converted.count, 1);
	assert_lost(&converted, BC_TRAIT_SAMPLE, 0, 1);
	converted = convert(BC_FORMAT_RAW6, false, &entry, 1);
	assert_int_equal(converted.count, 1);
	assert_lost(&converted, 0, 0, 0);
	/* A BYU record with such a type is an ordinary record. */
	entry.traits = BC_TRAIT_SIZE;
	converted = convert(BC_FORMAT_BYU, false, &entry, 1);
	assert_int_equal(converted.count, 1);
	assert_lost(&converted, 0, 0, 0);
}

static struct bc_entry uop(int32_t step, char access, uint32_t size)
{
	struct bc_entry entry = reference(0, size != 0 ? BC_TRAIT_SIZE : 0);

	entry.kind = BC_ENTRY_UOP;
	entry.size = size;
	entry.uop.step = step;
	entry.uop.access = access;
	entry.uop.mem_addr = 0x2000;
	entry.uop.fallthrough = 0x1003;
	return entry;
}

TEST(micro_ops_become_fetches_loads_and_stores)
{
	struct bc_entry entries[4] = {
		uop(1, 'L', 4), uop(2, '-', 0), uop(3, 'S', 4), uop(1, '-', 0)};

	struct converted converted = convert(BC_FORMAT_XDIN, false, entries, 4);
	assert_int_equal(converted.count, 4);
	assert_int_equal(converted.entries[0].type, BC_REQ_FETCH);
	assert_true(converted.entries[0].addr == 0x1000);
	assert_int_equal(converted.entries[0].size, 3);
	assert_int_equal(converted.entries[1].type, BC_REQ_MEMREAD);
	assert_true(converted.entries[1].addr == 0x2000);
	assert_int_equal(converted.entries[1].size, 4);
	assert_int_equal(converted.entries[2].type, BC_REQ_MEMWRITE);
	assert_int_equal(converted.entries[3].type, BC_REQ_FETCH);
	assert_lost(&converted, BC_TRAIT_UOP, 0, 4);
	/* A target without fetches and sizes. */
	converted = convert(BC_FORMAT_DIN, false, entries, 4);
	assert_int_equal(converted.count, 4);
	assert_int_equal(reduced(&converted, BC_TRAIT_UOP), 4);
	assert_int_equal(reduced(&converted, BC_TRAIT_SIZE), 4);
}

TEST(an_instruction_becomes_its_fetch)
{
	struct bc_entry entry = reference(0, BC_TRAIT_PROC | BC_TRAIT_TIME | BC_TRAIT_SIZE);

	entry.kind = BC_ENTRY_INSTRUCTION;
	entry.size = 4;
	entry.tick = 99;
	struct converted converted = convert(BC_FORMAT_LAPLACE, false, &entry, 1);
	assert_int_equal(converted.count, 1);
	assert_int_equal(converted.entries[0].kind, BC_ENTRY_REFERENCE);
	assert_int_equal(converted.entries[0].type, BC_REQ_FETCH);
	assert_true(converted.entries[0].tick == 99);
	assert_int_equal(converted.entries[0].size, 4);
	assert_lost(&converted, BC_TRAIT_INSTRUCTION | BC_TRAIT_PROC, 0, 1);
}

/* One entry of each kind for each target: it is kept, becomes references or is left out, and is
 * counted unless it is kept. */
TEST(every_kind_is_kept_converted_or_counted_in_every_target)
{
	for (unsigned format = 1; format < BC_FORMATS; format++) {
		bc_traits traits = bc_format_info((enum bc_format)format)->traits;
		for (uint8_t kind = 0; kind < BC_ENTRY_KINDS; kind++) {
			struct bc_entry entry = uop(1, '-', 0);
			uint32_t trait = (uint32_t)BC_TRAIT_REFERENCE << kind;
			bool is_fetch = kind == BC_ENTRY_UOP || kind == BC_ENTRY_INSTRUCTION;
			entry.kind = kind;
			entry.type = BC_REQ_MEMREAD;
			entry.uop.fallthrough = 0x9000; /* too far away for a length */
			entry.size = kind == BC_ENTRY_REFERENCE;
			assert_int_equal(bc_entry_traits(&entry), trait);
			struct converted converted = convert(
				(enum bc_format)format, false, &entry, 1);
			bool is_kept = (traits & trait) != 0;
			if (is_fetch && !is_kept && (traits & BC_TRAIT_FETCH) == 0 &&
				(traits & BC_TRAIT_REFERENCE) != 0) {
				/* It has loads and stores, but no fetches. */
				assert_int_equal(converted.count, 0);
				assert_lost(&converted, trait, BC_TRAIT_FETCH, 1);
				continue;
			}
			bool becomes = !is_kept && is_fetch && (traits & BC_TRAIT_REFERENCE) != 0;
			assert_int_equal(converted.count, is_kept || becomes);
			assert_lost(
				&converted, becomes ? trait : 0, is_kept || becomes ? 0 : trait, 1);
		}
	}
}

TEST(a_reference_without_a_size_is_left_out_if_one_is_required)
{
	struct bc_entry entries[3] = {reference(BC_REQ_MEMREAD, 0),
		reference(BC_REQ_MEMREAD, BC_TRAIT_SIZE), reference(BC_REQ_MEMREAD, BC_TRAIT_SIZE)};

	assert_int_equal(bc_format_info(BC_FORMAT_TARMAC)->needed_traits, BC_TRAIT_SIZE);
	entries[1].size = 4;
	struct converted converted = convert(BC_FORMAT_TARMAC, false, entries, 3);
	assert_int_equal(converted.count, 1);
	assert_int_equal(converted.entries[0].size, 4);
	assert_lost(&converted, 0, BC_TRAIT_SIZE, 2);
}

TEST(counts_continue_from_batch_to_batch)
{
	struct bc_format_options options = bc_format_options_default();
	struct bc_entry entry = reference(BC_REQ_MEMREAD, BC_TRAIT_TIME);
	const struct bc_entry *run;
	struct bc_entry_converter fitting;

	bc_entry_converter_init(&fitting, BC_FORMAT_DIN, &options);
	for (unsigned i = 0; i < 5; i++) {
		bc_entry_convert_batch(&fitting, &entry, 1);
		assert_int_equal(bc_entry_converter_next(&fitting, &run), 1);
		assert_ptr_equal(run, &entry);
		assert_int_equal(bc_entry_converter_next(&fitting, &run), 0);
	}
	assert_int_equal(fitting.trait_losses[__builtin_ctz(BC_TRAIT_TIME)], 5);
}
