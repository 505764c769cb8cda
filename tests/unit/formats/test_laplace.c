#include "tests/support/formatted.h"

#include <inttypes.h>

#include "formats/codec/codecs.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

static const char good[] = "r 1 4 0 10";

/* The example of the format's document, and a published one with a 64-bit address. */
static const char seed[] = "r 123456789abcdef0 4 9f8e7 9a8b7c6d\n";
static const char seed_wide[] = "r 123456789abcdef0 4 9a8b7 8888ffff3e456a21\n";

static const uint8_t seed_little[BC_LAPLACE_BYTES] = {'r', 0xf0, 0xde, 0xbc, 0x9a, 0x78, 0x56, 0x34,
	0x12, 4, 0xe7, 0xf8, 0x09, 0, 0x6d, 0x7c, 0x8b, 0x9a};
static const uint8_t seed_big[BC_LAPLACE_BYTES] = {'r', 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde,
	0xf0, 4, 0, 0x09, 0xf8, 0xe7, 0x9a, 0x8b, 0x7c, 0x6d};

static const struct {
	const char *options;
	const uint8_t *bytes;
} orders[] = {{"", seed_little}, {"endian=little", seed_little}, {"endian=big", seed_big}};

TEST(the_documented_examples_are_printed_unchanged)
{
	assert_reprints(BC_FORMAT_LAPLACE_TEXT, seed, seed);
	assert_reprints(BC_FORMAT_LAPLACE_TEXT, seed_wide, seed_wide);
}

TEST(a_record_is_read_in_either_byte_order)
{
	for (size_t i = 0; i < 3; i++) {
		struct parsed parsed = parse_bytes(
			BC_FORMAT_LAPLACE, orders[i].options, orders[i].bytes, BC_LAPLACE_BYTES);
		const struct bc_entry *e = &parsed.entries[0];
		assert_int_equal(parsed.count, 1);
		assert_int_equal(e->kind, BC_ENTRY_REFERENCE);
		assert_int_equal(e->type, BC_REQ_MEMREAD);
		assert_int_equal(e->traits, BC_TRAIT_TIME | BC_TRAIT_SIZE | BC_TRAIT_SPACE);
		assert_true(e->number == 0);
		assert_true(e->tick == UINT64_C(0x123456789abcdef0));
		assert_int_equal(e->size, 4);
		assert_int_equal(e->space, 0x9f8e7);
		assert_true(e->addr == 0x9a8b7c6d);
		struct printed text = print_entries(BC_FORMAT_LAPLACE_TEXT, "", e, 1);
		assert_string_equal(text.text, seed);
		struct printed record = print_entries(BC_FORMAT_LAPLACE, orders[i].options, e, 1);
		assert_int_equal(record.bytes, BC_LAPLACE_BYTES);
		assert_memory_equal(record.text, orders[i].bytes, BC_LAPLACE_BYTES);
		free(text.text);
		free(record.text);
		parsed_free(&parsed);
	}
}

/* All 256 bytes, in both forms. */
TEST(every_printable_letter_is_kept_and_no_other_byte_is_a_type)
{
	for (unsigned c = 0; c < 256; c++) {
		uint8_t record[2 * BC_LAPLACE_BYTES];
		char line[80];
		bool is_good = c > ' ' && c < 0x7F;
		memcpy(record, seed_little, BC_LAPLACE_BYTES);
		memcpy(record + BC_LAPLACE_BYTES, seed_little, BC_LAPLACE_BYTES);
		record[0] = (uint8_t)c;
		struct parsed parsed = parse_bytes(BC_FORMAT_LAPLACE, "", record, sizeof(record));
		assert_int_equal(parsed.count, is_good ? 2 : 1);
		assert_int_equal(parsed.fault_count, !is_good);
		if (!is_good) {
			assert_int_equal(parsed.faults[0].number, 0);
			assert_true(parsed.entries[0].number == 1);
			parsed_free(&parsed);
			continue;
		}
		const struct bc_entry *e = &parsed.entries[0];
		bool is_named = c == 'r' || c == 'w' || c == 'f';
		assert_int_equal((e->traits & BC_TRAIT_LETTER) != 0, !is_named);
		assert_int_equal(e->letter, is_named ? 0 : c);
		assert_int_equal(e->type, c == 'r'               ? (unsigned)BC_REQ_MEMREAD
					  : c == 'w'             ? (unsigned)BC_REQ_MEMWRITE
					  : c == 'f' || c == 'i' ? (unsigned)BC_REQ_FETCH
								 : BC_REF_LETTER);
		struct printed again = print_entries(BC_FORMAT_LAPLACE, "", e, 2);
		assert_int_equal(again.bytes, sizeof(record));
		assert_memory_equal(again.text, record, sizeof(record));
		free(again.text);
		parsed_free(&parsed);
		snprintf(line, sizeof(line), "%c%s", (int)c, seed + 1);
		assert_reprints(BC_FORMAT_LAPLACE_TEXT, line, line);
	}
}

TEST(other_spellings_are_read_and_printed_in_canonical_form)
{
	assert_reprints(BC_FORMAT_LAPLACE_TEXT,
		"\n  w\t00FF  08 \t000A   00000000DEADBEEF \r\n\r\n", "w ff 8 a deadbeef\n");
	assert_reprints(BC_FORMAT_LAPLACE_TEXT, "f 0 0 0 0\n", "f 0 0 0 0\n");
}

TEST(length_zero_means_unknown_in_both_directions)
{
	struct parsed parsed = parse_text(BC_FORMAT_LAPLACE_TEXT, "", "r 5 0 0 10\n");

	assert_int_equal(parsed.entries[0].traits, BC_TRAIT_TIME | BC_TRAIT_SPACE);
	struct printed printed = print_entries(BC_FORMAT_LAPLACE_TEXT, "", parsed.entries, 1);
	assert_string_equal(printed.text, "r 5 0 0 10\n");
	free(printed.text);
	parsed_free(&parsed);
}

TEST(text_accepts_exactly_the_documented_number_of_bits)
{
	for (size_t i = 0; i < FORMATTED_EDGES; i++) {
		uint64_t v = formatted_edges[i];
		char line[200];
		snprintf(line, sizeof(line), "w %" PRIx64 " 4 1 %" PRIx64 "\n", v, v);
		assert_reprints(BC_FORMAT_LAPLACE_TEXT, line, line);
		if (v > UINT32_MAX)
			continue;
		snprintf(line, sizeof(line), "w 1 %" PRIx64 " %" PRIx64 " 2\n", v, v);
		assert_reprints(BC_FORMAT_LAPLACE_TEXT, line, line);
	}
	assert_malformed(
		BC_FORMAT_LAPLACE_TEXT, "r 10000000000000000 4 0 1", 19, "a timestamp", good);
	assert_malformed(BC_FORMAT_LAPLACE_TEXT, "r 1 100000000 0 1", 5, "a length", good);
	assert_malformed(BC_FORMAT_LAPLACE_TEXT, "r 1 1 100000000 1", 7, "an address space", good);
	assert_malformed(
		BC_FORMAT_LAPLACE_TEXT, "r 1 1 1 10000000000000000", 25, "an address", good);
}

TEST(each_malformed_field_is_reported_with_its_position)
{
	static const struct {
		const char *line;
		size_t column;
		const char *words;
	} cases[] = {
		{"rw 1 4 0 10", 1, "a type"},
		{"\x01 1 4 0 10", 1, "a type"},
		{"\xe4 1 4 0 10", 1, "a type"},
		{"r", 2, "a timestamp"},
		{"r ", 3, "a timestamp"},
		{"r x 4 0 10", 3, "a timestamp"},
		{"r 1z 4 0 10", 4, "a timestamp"},
		{"r 1", 4, "a length"},
		{"r 1 ", 5, "a length"},
		{"r 1 - 0 10", 5, "a length"},
		{"r 1 4", 6, "an address space"},
		{"r 1 4 ,0 10", 7, "an address space"},
		{"r 1 4 0", 8, "an address"},
		{"r 1 4 0 0x10", 10, "an address"},
		{"r 1 4 0 10 more", 12, "expected nothing"},
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++)
		assert_malformed(BC_FORMAT_LAPLACE_TEXT, cases[i].line, cases[i].column,
			cases[i].words, good);
}

TEST(references_without_times_get_one_tick_each)
{
	struct bc_entry entries[5];

	for (unsigned i = 0; i < 5; i++)
		bc_entry_reference(&entries[i], BC_REQ_MEMWRITE, 0x10 + i, i);
	entries[2].traits = BC_TRAIT_TIME;
	entries[2].tick = 0x100;
	entries[3].space = 7; /* ignored: the entry has no address space */
	entries[4].type = BC_REQ_FETCH;
	entries[4].traits = BC_TRAIT_SIZE | BC_TRAIT_SPACE;
	entries[4].size = 0xABCD;
	entries[4].space = 7;
	struct printed printed = print_entries(BC_FORMAT_LAPLACE_TEXT, "", entries, 5);
	assert_string_equal(printed.text, "w 1 0 0 10\nw 2 0 0 11\nw 100 0 0 12\nw 101 0 0 13\n"
					  "f 102 abcd 7 14\n");
	free(printed.text);

	entries[0].traits = BC_TRAIT_TIME;
	entries[0].tick = UINT64_MAX;
	for (int is_text = 0; is_text < 2; is_text++) {
		printed = print_entries(
			is_text ? BC_FORMAT_LAPLACE_TEXT : BC_FORMAT_LAPLACE, "", entries, 2);
		assert_int_equal(printed.rc, -34);
		assert_int_equal(printed.left, 1);
		assert_non_null(strstr(printed.err, "64 bits"));
		free(printed.text);
	}
}

TEST(a_value_too_large_for_a_record_is_an_error)
{
	struct bc_entry entry;

	for (unsigned bit = 0; bit < 64; bit++) {
		bc_entry_reference(&entry, BC_REQ_MEMREAD, UINT64_C(1) << bit, 0);
		struct printed printed = print_entries(BC_FORMAT_LAPLACE, "", &entry, 1);
		assert_int_equal(printed.rc, bit < 32 ? 0 : -34);
		assert_int_equal(printed.bytes, bit < 32 ? BC_LAPLACE_BYTES : 0);
		free(printed.text);
	}
	entry.addr = UINT64_C(0x8888ffff3e456a21);
	assert_refused(BC_FORMAT_LAPLACE, "", &entry, "address 0x8888ffff3e456a21 doesn't fit");
	entry.addr = UINT32_MAX;
	entry.traits = BC_TRAIT_SIZE;
	for (uint32_t size = 254; size < 258; size++) {
		entry.size = size;
		struct printed printed = print_entries(BC_FORMAT_LAPLACE, "", &entry, 1);
		assert_int_equal(printed.rc, size < 256 ? 0 : -34);
		free(printed.text);
	}
	entry.size = UINT32_MAX;
	assert_refused(BC_FORMAT_LAPLACE, "endian=big", &entry, "size of 4294967295 bytes");
}

TEST(random_records_round_trip_in_either_order_and_as_text)
{
	struct dice dice = {.state = 3};

	for (size_t i = 0; i < 3; i++) {
		uint8_t bytes[300 * BC_LAPLACE_BYTES];
		dice_fill(&dice, bytes, sizeof(bytes));
		for (size_t n = 0; n < sizeof(bytes); n += BC_LAPLACE_BYTES)
			bytes[n] = (uint8_t)('!' + dice_below(&dice, 94));
		struct parsed parsed = parse_bytes(
			BC_FORMAT_LAPLACE, orders[i].options, bytes, sizeof(bytes));
		assert_int_equal(parsed.count, 300);
		struct printed printed = print_entries(
			BC_FORMAT_LAPLACE, orders[i].options, parsed.entries, parsed.count);
		assert_int_equal(printed.bytes, sizeof(bytes));
		assert_memory_equal(printed.text, bytes, sizeof(bytes));
		free(printed.text);
		printed = print_entries(BC_FORMAT_LAPLACE_TEXT, "", parsed.entries, parsed.count);
		assert_reprints(BC_FORMAT_LAPLACE_TEXT, printed.text, printed.text);
		free(printed.text);
		parsed_free(&parsed);
	}
}

static const char seed_events[] = "F 123456789abcdef7 100 77\n"
				  "M 123456789abcdefe 100 1a2b3c4d 9000 8efa5567 35 5 "
				  "1029384756afbecd foobar.so\n";

TEST(kernel_events_have_tag_time_and_rest_and_are_kept_verbatim)
{
	struct parsed parsed = parse_text(BC_FORMAT_LAPLACE_EVENTS, "", seed_events);

	assert_int_equal(parsed.count, 2);
	assert_int_equal(parsed.entries[0].kind, BC_ENTRY_KERNEL);
	assert_int_equal(parsed.entries[0].traits, BC_TRAIT_TIME | BC_TRAIT_LETTER);
	assert_int_equal(parsed.entries[0].letter, 'F');
	assert_true(parsed.entries[0].tick == UINT64_C(0x123456789abcdef7));
	assert_true(bc_text_is(parsed.entries[0].kernel.rest, "100 77"));
	assert_true(bc_text_is(parsed.entries[0].kernel.tag, "F"));
	assert_int_equal(parsed.entries[0].line.bytes, 0);
	assert_int_equal(parsed.entries[1].letter, 'M');
	assert_true(bc_text_is(parsed.entries[1].kernel.rest,
		"100 1a2b3c4d 9000 8efa5567 35 5 1029384756afbecd foobar.so"));
	parsed_free(&parsed);
	assert_reprints(BC_FORMAT_LAPLACE_EVENTS, seed_events, seed_events);
}

/* Whatever its spaces, digits and tag are. */
TEST(every_event_is_printed_as_it_was_read)
{
	static const struct {
		const char *line;
		char letter;
		uint64_t tick;
		const char *rest;
		bool is_kept; /* the line is kept, because its fields would be printed differently
			       */
	} cases[] = {
		{"F 0", 'F', 0, "", false},
		{"F 10", 'F', 0x10, "", false},
		{"F ffffffffffffffff x", 'F', UINT64_MAX, "x", false},
		{"F 10  two  spaces ", 'F', 0x10, " two  spaces ", false},
		{"F 10 \xff\x01\t", 'F', 0x10, "\xff\x01\t", false},
		{"~ 10 x", '~', 0x10, "x", false},
		{"F 10 ", 'F', 0x10, "", true},
		{"F 010 x", 'F', 0x10, "x", true},
		{"F 00 x", 'F', 0, "x", true},
		{"F aB x", 'F', 0xAB, "x", true},
		{"F  10 x", 'F', 0x10, "x", true},
		{" F 10 x", 'F', 0x10, "x", true},
		{"F\t10 x", 'F', 0x10, "x", true},
		{"F 10\tx", 'F', 0x10, "x", true},
		{"F 10 x\r", 'F', 0x10, "x", true},
		{"F 10\r", 'F', 0x10, "", true},
		{"F 10 \r", 'F', 0x10, "", true},
		{"FORK 10 x", 'F', 0x10, "x", false},
		{"F\xc3\xb6 10 x", 'F', 0x10, "x", false},
		{"F 00000000000000000000000000000010 x", 'F', 0x10, "x", true},
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		char line[100];
		snprintf(line, sizeof(line), "%s\n", cases[i].line);
		struct parsed parsed = parse_text(BC_FORMAT_LAPLACE_EVENTS, "", line);
		assert_int_equal(parsed.count, 1);
		assert_int_equal(parsed.entries[0].letter, cases[i].letter);
		assert_true(parsed.entries[0].tick == cases[i].tick);
		assert_true(bc_text_is(parsed.entries[0].kernel.rest, cases[i].rest));
		assert_int_equal(parsed.entries[0].line.bytes != 0, cases[i].is_kept);
		parsed_free(&parsed);
		assert_reprints(BC_FORMAT_LAPLACE_EVENTS, line, line);
	}
	assert_reprints(BC_FORMAT_LAPLACE_EVENTS, "\n \nF 1\n", "F 1\n");
}

TEST(malformed_events_are_reported)
{
	assert_malformed(BC_FORMAT_LAPLACE_EVENTS, "F", 2, "a timestamp", good);
	assert_malformed(BC_FORMAT_LAPLACE_EVENTS, "F ", 3, "a timestamp", good);
	assert_malformed(BC_FORMAT_LAPLACE_EVENTS, "F x", 3, "a timestamp", good);
	assert_malformed(BC_FORMAT_LAPLACE_EVENTS, "F 1x", 4, "a timestamp", good);
	assert_malformed(
		BC_FORMAT_LAPLACE_EVENTS, "F 10000000000000000 x", 19, "a timestamp", good);
	assert_malformed(BC_FORMAT_LAPLACE_EVENTS, "\x01 1", 1, "a tag", good);
	assert_malformed(BC_FORMAT_LAPLACE_EVENTS, " \xc3\xb6 1", 2, "a tag", good);
}
