#include "formats/codec/lines.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/test.h"

#define ENTRIES 128u

static struct bc_entry entries[ENTRIES];

/* Parses a text with a layout. Returns the number of entries, or -1 if a line is malformed. */
static int parse(struct bc_lines *lines, const char *layout, const char *text)
{
	size_t n = strlen(text);
	char *block = calloc(1, n + BC_PARSE_PADDING);
	struct bc_parse p = {.at = block,
		.end = block + n,
		.number = 1,
		.entries = entries,
		.capacity = ENTRIES};

	assert_non_null(block);
	memcpy(block, text, n);
	memset(lines, 0, sizeof(*lines));
	bc_lines_init(lines, layout, 0);
	enum bc_parse_end end = bc_lines_parse(lines, &p);
	free(block);
	return end == BC_PARSE_DONE ? (int)p.count : -1;
}

TEST(each_named_layout_fits_its_sample)
{
	struct bc_lines lines;
	char err[200];

	for (const struct bc_named_layout *row = bc_named_layouts; row->name != NULL; row++) {
		assert_true(bc_layout_compile(&lines.layout, row->layout, err, sizeof(err)));
		int count = parse(&lines, row->layout, row->sample);
		if (count < 1 || (uint64_t)count + lines.skipped != 2)
			fail_msg("%s: %d accesses, %d skipped", row->name, count,
				(int)lines.skipped);
		assert_ptr_equal(bc_layout_by_name(row->name), row);
		if (row != bc_named_layouts)
			assert_true(strcmp(row[-1].name, row->name) < 0);
		assert_null(strstr(row->layout, "{type} "));
	}
	assert_null(bc_layout_by_name("nope"));
}

TEST(traits_are_those_that_the_lines_can_have)
{
	static const struct {
		const char *layout;
		bc_traits traits;
	} cases[] = {
		{"{type:r=read} {addr}", 0},
		{"{type:r=fetch} {addr} {size}", BC_TRAIT_FETCH | BC_TRAIT_SIZE},
		{"{time} {addr}{type=modify} | {proc} {addr} {data}{type=read}",
			BC_TRAIT_MODIFY | BC_TRAIT_TIME | BC_TRAIT_PROC | BC_TRAIT_DATA},
		{"{delta} {addr} {pc}{type=read}{size=4}", BC_TRAIT_TIME | BC_TRAIT_SIZE},
	};

	struct bc_layout layout;
	char err[200];

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		assert_true(bc_layout_compile(&layout, cases[i].layout, err, sizeof(err)));
		assert_int_equal(bc_layout_traits(&layout), cases[i].traits | BC_TRAIT_REFERENCE);
	}
}

/* Each prefix of a line, and each change of one byte, is read without looking past the line. */
TEST(every_prefix_and_change_of_a_line_ends_within_the_line)
{
	static const char layout[] =
		"{time:us} core {proc}: {type}, {*} ({pc}) {addr} [{...}] {size}";
	static const char line[] = "12.5 core 3: load, x (401000) 7fff10 [a [b]c] 8\n";
	struct bc_lines lines;
	size_t n = sizeof(line) - 1;
	int good = 0;

	assert_int_equal(parse(&lines, layout, line), 1);
	assert_true(entries[0].addr == 0x7fff10 && entries[0].tick == 12500 &&
		    entries[0].size == 8 && entries[0].proc == 3);
	for (size_t cut = 0; cut < n; cut++) {
		char text[2 * sizeof(line)];
		/* The whole line comes next: nothing of it may be taken for the rest of the first.
		 */
		snprintf(text, sizeof(text), "%.*s\n%s", (int)cut, line, line);
		int count = parse(&lines, layout, text);
		assert_true(
			count == -1 || (cut == 0 && count == 1) || (cut == n - 1 && count == 2));
		for (unsigned byte = 1; byte < 256; byte++) {
			snprintf(text, sizeof(text), "%s", line);
			text[cut] = (char)byte;
			good += parse(&lines, layout, text) == 1;
		}
	}
	assert_true(good > 0);
}

/* Fields that are next to text match as the text says, not as much as possible. */
TEST(words_and_gaps_end_where_the_text_after_them_first_fits)
{
	static const struct {
		const char *layout;
		const char *line;
		int count;
	} cases[] = {
		{"{*}: {addr}{type=read}", "a: 10\n", 1},
		{"{*}: {addr}{type=read}", "a b: 10\n", -1},
		{"{*}ab{addr}{type=read}", "xaab10\n", 1},
		{"{...}ab {addr}{type=read}", "x y aab 10\n", 1},
		{"{...} {addr}{type=read}", "x 10\n", 1},
		{"{addr}{type=read}{...}", "10\n", 1},
		{"{addr}{type=read} {*}", "10\n", -1},
		{"{addr}{type=read} {*}", "10  x \r\n", 1},
		{"{type}{addr}", "rd10\n", 1},
		{"{type:r=read|rd=write}{addr}", "rd10\n", 1},
		{"a | b{addr}{type=read}", "a\n", 0},
		{"{|} {addr}{type=read}", "| 1\n", 1},
	};
	struct bc_lines lines;

	for (size_t i = 0; i < COUNT_OF(cases); i++)
		if (parse(&lines, cases[i].layout, cases[i].line) != cases[i].count)
			fail_msg("%s: %s", cases[i].layout, cases[i].line);
	assert_int_equal(parse(&lines, "{type:r=read|rd=write}{addr}", "rd10\n"), 1);
	assert_int_equal(entries[0].type, BC_REQ_MEMWRITE);
	assert_int_equal(entries[0].addr, 0x10);
}
