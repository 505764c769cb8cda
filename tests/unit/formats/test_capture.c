#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/codec/codecs.h"
#include "formats/trace/parser.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

#define ENTRIES 20000u

/* What a parser makes of a text, of which it gets `step` bytes and the rest of the line at a time.
 */
struct captured {
	struct bc_entry *entries;
	size_t count;
	size_t faults;
	char what[200]; /* of the last fault */
	struct bc_parse_notes notes;
};

static struct captured capture(const struct bc_parser *parser, const char *layout, const char *text,
	size_t bytes, size_t step)
{
	struct bc_format_options options = bc_format_options_default();
	struct captured all = {.entries = calloc(ENTRIES + BC_LINE_ENTRIES, sizeof(*all.entries))};
	char *copy = calloc(1, bytes + 1 + BC_PARSE_PADDING);

	assert_non_null(all.entries);
	assert_non_null(copy);
	memcpy(copy, text, bytes);
	if (bytes != 0 && copy[bytes - 1] != '\n')
		copy[bytes++] = '\n';
	options.layout = layout;
	void *state = bc_parser_start(parser, &options);
	struct bc_parse p = {.at = copy, .number = 1};
	for (const char *end = copy; end < copy + bytes;) {
		end += step < (size_t)(copy + bytes - end) ? step : (size_t)(copy + bytes - end);
		end = end[-1] == '\n' ? end : strchr(end, '\n') + 1;
		p.end = end;
		while (p.at < end) {
			p.entries = all.entries + all.count;
			p.count = 0;
			p.capacity = BC_LINE_ENTRIES;
			enum bc_parse_end rc = parser->parse(state, &p);
			all.count += p.count;
			assert_true(all.count < ENTRIES);
			if (rc == BC_PARSE_DONE)
				assert_ptr_equal(p.at, end);
			if (rc != BC_PARSE_BAD)
				continue;
			all.faults++;
			snprintf(all.what, sizeof(all.what), "%s", p.expected);
			assert_true(p.bad >= p.at && p.bad < end);
			p.at = strchr(p.at, '\n') + 1;
			p.number++;
		}
	}
	parser->notes(state, &all.notes);
	free(state);
	free(copy);
	return all;
}

static struct captured capture_vcd(const char *layout, const char *text)
{
	return capture(&bc_vcd_parser, layout, text, strlen(text), SIZE_MAX);
}

#define HEAD                                                                                    \
	"$timescale 1 ns $end\n$var wire 1 ! c $end\n$var wire 16 A a $end\n$var wire 512 D d " \
	"$end\n$var wire 8 B be $end\n$var wire 4 C ctl $end\n$enddefinitions $end\n"

/* A dump of n accesses, with the words of a time in one line or each in its own. */
static char *make_dump(unsigned n, bool is_one_line)
{
	char *text = malloc(sizeof(HEAD) + n * 64);
	char *out = stpcpy(text, HEAD);

	for (unsigned i = 0; i < n; i++)
		out += sprintf(out,
			is_one_line ? "#%u 0! b%s A #%u 1! " : "#%u\n0!\nb%s A\n#%u\n1!\n", 2 * i,
			i % 2 != 0 ? "101" : "10", 2 * i + 1);
	strcpy(out, "\n");
	return text;
}

TEST(a_line_may_have_any_number_of_accesses)
{
	char *text = make_dump(500, true);
	struct captured all = capture_vcd("clock=c,addr=a", text);

	assert_int_equal(all.count, 500);
	for (size_t i = 0; i < all.count; i++) {
		assert_int_equal(all.entries[i].addr, i % 2 != 0 ? 5 : 2);
		assert_int_equal(all.entries[i].tick, 2 * i + 1);
		assert_int_equal(all.entries[i].unit, BC_UNIT_NS);
	}
	free(all.entries);
	free(text);
}

TEST(a_cut_dump_has_no_other_accesses)
{
	char *text = make_dump(40, false);
	struct captured all = capture_vcd("clock=c,addr=a", text);

	for (size_t bytes = 0; bytes < strlen(text); bytes++) {
		struct captured cut = capture(&bc_vcd_parser, "clock=c,addr=a", text, bytes,
			bytes % 7 != 0 ? bytes % 50 + 1 : 1);
		assert_true(cut.count <= all.count);
		for (size_t i = 0; i < cut.count; i++)
			assert_true(cut.entries[i].addr == all.entries[i].addr &&
				    cut.entries[i].tick == all.entries[i].tick);
		free(cut.entries);
	}
	free(all.entries);
	free(text);
}

TEST(byte_enables_and_control_make_samples)
{
	struct captured all = capture_vcd("clock=-c,addr=a,be=be,control=ctl",
		HEAD "#0\n1!\nb1000000000000 A\nb11111100 B\nb1111 C\n#5\n0!\n");

	assert_int_equal(all.count, 1);
	assert_int_equal(all.entries[0].type, BC_REQ_MEMWRITE);
	assert_int_equal(all.entries[0].addr, 0x1000);
	assert_int_equal(all.entries[0].size, 2);
	assert_memory_equal(all.entries[0].sample, "\0\0\x10\0\xfc\xf0", BC_SAMPLE_BYTES);
	free(all.entries);
}

TEST(data_of_more_than_8_bytes_is_counted)
{
	struct captured all = capture_vcd(
		"clock=c,addr=a,data=d", HEAD "#0\n0!\nb0 A\nb1 D\n#5\n1!\n");

	assert_int_equal(all.count, 1);
	assert_int_equal(all.entries[0].size, 64);
	assert_int_equal(all.entries[0].traits & BC_TRAIT_DATA, 0);
	assert_int_equal(all.notes.long_data, 1);
	free(all.entries);
}

TEST(too_many_changes_within_setup_are_counted)
{
	char *text = make_dump(4000, false);
	struct captured all = capture_vcd("clock=c,addr=a,setup=6us", text);

	assert_true(all.notes.too_many != 0);
	free(all.entries);
	all = capture_vcd("clock=c,addr=a,setup=600ns", text);
	assert_int_equal(all.notes.too_many, 0);
	free(all.entries);
	free(text);
}

TEST(any_bytes_are_answered)
{
	static const char *const words[] = {"$scope", "$upscope", "$var", "$end", "$comment", "#",
		"b", "x", "!", "A", "\n", " ", "1", "$enddefinitions", "$dumpoff", "$dumpon",
		"$timescale", "wire", "s", "clk", "a", "[3]", ",", "9"};
	struct dice dice = {48};
	char text[600];

	for (int round = 0; round < 3000; round++) {
		size_t n = (size_t)sprintf(text, "%s", dice_below(&dice, 2) != 0 ? HEAD : "");
		while (n < sizeof(text) - 20)
			n += (size_t)sprintf(text + n, "%s%s",
				words[dice_below(&dice, COUNT_OF(words))],
				dice_below(&dice, 2) != 0 ? " " : "");
		struct captured all = capture(
			round % 2 != 0 ? &bc_vcd_parser : &bc_csv_capture_parser,
			round % 3 != 0 ? "clock=c,addr=a+A@-clk" : NULL, text, n,
			1 + dice_below(&dice, 300));
		free(all.entries);
	}
}
