#include "tests/support/formatted.h"

#include <inttypes.h>

#include "tests/support/dice.h"
#include "tests/support/test.h"

static const struct {
	enum bc_format format;
	const char *line;
	unsigned type;
} labels[] = {
	{BC_FORMAT_DIN, "0 7fff12\n", BC_REQ_MEMREAD},
	{BC_FORMAT_DIN, "1 7fff12\n", BC_REQ_MEMWRITE},
	{BC_FORMAT_DIN, "2 7fff12\n", BC_REQ_FETCH},
	{BC_FORMAT_DIN, "3 7fff12\n", BC_REF_MISC},
	{BC_FORMAT_DIN, "4 7fff12\n", BC_REF_FLUSH},
	{BC_FORMAT_XDIN, "r 7fff12 1f\n", BC_REQ_MEMREAD},
	{BC_FORMAT_XDIN, "w 7fff12 1f\n", BC_REQ_MEMWRITE},
	{BC_FORMAT_XDIN, "i 7fff12 1f\n", BC_REQ_FETCH},
	{BC_FORMAT_XDIN, "m 7fff12 1f\n", BC_REF_MISC},
	{BC_FORMAT_XDIN, "c 7fff12 1f\n", BC_REF_COPYBACK},
	{BC_FORMAT_XDIN, "v 7fff12 1f\n", BC_REF_INVALIDATE},
};
#define LABELS (COUNT_OF(labels))

TEST(every_label_round_trips)
{
	for (size_t i = 0; i < LABELS; i++) {
		bool has_size = labels[i].format == BC_FORMAT_XDIN;
		struct parsed parsed = parse_text(labels[i].format, "", labels[i].line);
		assert_int_equal(parsed.count, 1);
		assert_int_equal(parsed.entries[0].type, labels[i].type);
		assert_true(parsed.entries[0].addr == 0x7fff12);
		assert_int_equal(parsed.entries[0].traits, has_size ? BC_TRAIT_SIZE : 0);
		assert_int_equal(parsed.entries[0].size, has_size ? 0x1f : 0);
		assert_true(parsed.entries[0].number == 1);
		parsed_free(&parsed);
		assert_reprints(labels[i].format, labels[i].line, labels[i].line);
	}
	assert_reprints(BC_FORMAT_XDIN, "r 10 0\n", "r 10 0\n");
}

TEST(the_rest_of_a_line_of_din_is_ignored)
{
	assert_reprints(BC_FORMAT_DIN,
		"0 10 and more\n  1\t0x20\r\n2 0X00FF \n3 000000000000000000000000ab 4\n",
		"0 10\n1 20\n2 ff\n3 ab\n");
	assert_reprints(BC_FORMAT_XDIN, " r 0x10  0X4 \r\n", "r 10 4\n");
}

TEST(an_access_of_din_has_the_size_of_the_option)
{
	struct parsed parsed = parse_text(BC_FORMAT_DIN, "size=8", "0 1\n1 1\n2 1\n3 1\n4 1\n");

	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(parsed.entries[i].traits, i < 4 ? BC_TRAIT_SIZE : 0);
		assert_int_equal(parsed.entries[i].size, i < 4 ? 8 : 0);
	}
	parsed_free(&parsed);
}

TEST(addresses_have_at_most_64_bits)
{
	for (size_t i = 0; i < FORMATTED_EDGES; i++) {
		char line[100];
		snprintf(line, sizeof(line), "1 %" PRIx64 "\n", formatted_edges[i]);
		assert_reprints(BC_FORMAT_DIN, line, line);
		snprintf(line, sizeof(line), "w %" PRIx64 " %" PRIx32 "\n", formatted_edges[i],
			(uint32_t)formatted_edges[i]);
		assert_reprints(BC_FORMAT_XDIN, line, line);
	}
	assert_malformed(BC_FORMAT_DIN, "0 10000000000000000", 3, "64 bits", "0 1");
	assert_malformed(BC_FORMAT_DIN, "0 0x10000000000000000", 3, "64 bits", "0 1");
	assert_malformed(BC_FORMAT_XDIN, "r 10000000000000000 4", 19, "64 bits", "r 1 1");
	assert_malformed(BC_FORMAT_XDIN, "r 1 100000000", 5, "32 bits", "r 1 1");
	assert_malformed(BC_FORMAT_XDIN, "r 1 10000000000000000", 21, "32 bits", "r 1 1");
}

TEST(each_malformed_line_is_reported_with_its_position)
{
	static const struct {
		enum bc_format format;
		const char *line;
		size_t column;
		const char *words;
	} cases[] = {
		{BC_FORMAT_DIN, "5 10", 1, "type '5'"},
		{BC_FORMAT_DIN, "r 10", 1, "type 'r'"},
		{BC_FORMAT_DIN, "00 10", 2, "a blank"},
		{BC_FORMAT_DIN, "-1 10", 1, "type '-1'"},
		{BC_FORMAT_DIN, "0", 2, "a blank"},
		{BC_FORMAT_DIN, "0 ", 3, "{addr}"},
		{BC_FORMAT_DIN, "0 xyz", 3, "{addr}"},
		{BC_FORMAT_DIN, "0 0x", 3, "{addr}"},
		{BC_FORMAT_DIN, "0 0xg", 3, "{addr}"},
		{BC_FORMAT_DIN, "0 10g", 5, "the end"},
		{BC_FORMAT_XDIN, "", 1, "one of r, w"},
		{BC_FORMAT_XDIN, "x 10 4", 1, "one of r, w"},
		{BC_FORMAT_XDIN, "rw 10 4", 1, "one of r, w"},
		{BC_FORMAT_XDIN, "r", 2, "address"},
		{BC_FORMAT_XDIN, "r g 4", 3, "address"},
		{BC_FORMAT_XDIN, "r 10", 5, "size"},
		{BC_FORMAT_XDIN, "r 10 ", 6, "size"},
		{BC_FORMAT_XDIN, "r 10, 4", 5, "a space"},
		{BC_FORMAT_XDIN, "r 10 z", 6, "size"},
		{BC_FORMAT_XDIN, "r 10 4z", 7, "expected nothing"},
		{BC_FORMAT_XDIN, "r 10 4 5", 8, "expected nothing"},
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++)
		assert_malformed(cases[i].format, cases[i].line, cases[i].column, cases[i].words,
			cases[i].format == BC_FORMAT_DIN ? "0 1" : "r 1 1");
}

TEST(random_references_round_trip)
{
	struct dice dice = {.state = 21};

	for (int is_extended = 0; is_extended < 2; is_extended++) {
		enum bc_format format = is_extended ? BC_FORMAT_XDIN : BC_FORMAT_DIN;
		struct bc_entry entries[300];
		for (size_t i = 0; i < 300; i++) {
			unsigned type = is_extended ? labels[5 + dice_below(&dice, 6)].type
						    : labels[dice_below(&dice, 5)].type;
			bc_entry_reference(&entries[i], type,
				dice_roll(&dice) >> dice_below(&dice, 64), i + 1);
			if (is_extended) {
				entries[i].traits = BC_TRAIT_SIZE;
				entries[i].size = 1 + dice_below(&dice, 64);
			}
		}
		struct printed printed = print_entries(format, "", entries, 300);
		struct parsed parsed = parse_text(format, "", printed.text);
		assert_int_equal(parsed.count, 300);
		for (size_t i = 0; i < 300; i++) {
			assert_int_equal(parsed.entries[i].type, entries[i].type);
			assert_true(parsed.entries[i].addr == entries[i].addr);
			assert_int_equal(parsed.entries[i].traits, entries[i].traits);
			assert_int_equal(parsed.entries[i].size, entries[i].size);
			assert_true(parsed.entries[i].number == i + 1);
		}
		free(printed.text);
		parsed_free(&parsed);
	}
}
