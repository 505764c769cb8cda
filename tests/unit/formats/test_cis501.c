#include "tests/support/formatted.h"

#include <inttypes.h>

#include "tests/support/dice.h"
#include "tests/support/test.h"

/* The example of the format's document, with single spaces. */
static const char seed[] = "1 48d1de -1 -1 13 - - - 0 0 48d1e2 0 SET ADD\n"
			   "2 48d1de -1 -1 13 R - - 1 0 48d1e2 0 SET ADD_IMM\n"
			   "1 48d1e2 -1 5 45 - - L -264 7fffe7ff048 48d1e9 0 CMP LOAD\n"
			   "2 48d1e2 45 3 44 W - - 0 0 48d1e9 0 CMP SUB\n"
			   "1 48d1e9 -1 5 3 - - L -200 7fffe7ff088 48d1f0 0 MOV LOAD\n"
			   "1 48d1f0 -1 -1 0 - - - 0 0 48d1f3 0 SET ADD\n"
			   "2 48d1f0 -1 -1 0 R - - 1 0 48d1f3 0 SET ADD_IMM\n"
			   "1 48d1f3 -1 -1 12 - - - 0 0 48d1f6 0 XOR ADD\n"
			   "1 48d1f6 13 0 13 W - - 0 0 48d1f9 0 OR OR\n"
			   "1 48d1f9 -1 -1 -1 - T - 54 0 48d1fb 48d231 JMP JMP_IMM\n"
			   "1 48d231 -1 3 0 - - L 0 7fffe7fefd0 48d234 0 MOV LOAD\n"
			   "1 48d234 0 0 44 W - - 0 0 48d237 0 TEST AND\n"
			   "1 48d237 -1 -1 -1 R N - -25 0 48d239 48d220 J JMP_IMM\n"
			   "1 48d239 -1 0 7 - - L 8 12ff228 48d23d 0 MOV LOAD\n"
			   "1 48d23d -1 7 44 - - L 0 12ff200 48d240 0 MOVZX LOAD\n";

static const char good[] = "1 48d1de -1 -1 13 - - - 0 0 48d1e2 0 SET ADD";

/* The straightforward way to print an entry. */
static size_t print_simply(char *out, const struct bc_entry *entry)
{
	const struct bc_uop *u = &entry->uop;

	return (size_t)sprintf(out,
		"%d %6" PRIx64 " %2d %2d %2d %c %c %c %9" PRId64 " %12" PRIx64 " %12" PRIx64
		" %12" PRIx64 " %-8.*s %.*s\n",
		u->step, entry->addr, u->src1, u->src2, u->dest, u->flags, u->branch, u->access,
		u->immediate, u->mem_addr, u->fallthrough, u->target, (int)u->macro.bytes,
		u->macro.at, (int)u->micro.bytes, u->micro.at);
}

static void assert_prints_as_printf(const struct bc_entry *entries, size_t count)
{
	char *expected = malloc(count * 400 + 1);
	struct printed printed = print_entries(BC_FORMAT_CIS501, "", entries, count);
	size_t n = 0;

	assert_non_null(expected);
	expected[0] = '\0';
	for (size_t i = 0; i < count; i++)
		n += print_simply(expected + n, &entries[i]);
	assert_int_equal(printed.rc, 0);
	assert_string_equal(printed.text, expected);
	free(printed.text);
	free(expected);
}

TEST(the_documented_example_is_read_and_printed_in_columns)
{
	struct parsed parsed = parse_text(BC_FORMAT_CIS501, "", seed);
	const struct bc_entry *e = &parsed.entries[2];

	assert_int_equal(parsed.fault_count, 0);
	assert_int_equal(parsed.count, 15);
	assert_int_equal(e->kind, BC_ENTRY_UOP);
	assert_int_equal(e->traits, 0);
	assert_true(e->number == 3);
	assert_true(e->addr == 0x48d1e2);
	assert_int_equal(e->uop.step, 1);
	assert_int_equal(e->uop.src1, -1);
	assert_int_equal(e->uop.src2, 5);
	assert_int_equal(e->uop.dest, 45);
	assert_int_equal(e->uop.flags, '-');
	assert_int_equal(e->uop.branch, '-');
	assert_int_equal(e->uop.access, 'L');
	assert_true(e->uop.immediate == -264);
	assert_true(e->uop.mem_addr == 0x7fffe7ff048);
	assert_true(e->uop.fallthrough == 0x48d1e9);
	assert_true(e->uop.target == 0);
	assert_true(bc_text_is(e->uop.macro, "CMP"));
	assert_true(bc_text_is(e->uop.micro, "LOAD"));
	assert_int_equal(parsed.entries[12].uop.branch, 'N');
	assert_int_equal(parsed.entries[1].uop.flags, 'R');
	assert_prints_as_printf(parsed.entries, parsed.count);
	parsed_free(&parsed);
}

/* The printed columns are read back the same, however they are separated. */
TEST(any_white_space_separates_columns)
{
	static const char *const between[] = {
		" ", "\t", "  ", " \t ", "\r", "         ", "                 "};
	static const char aligned[] = "1 48d1de -1 -1 13 - - -         0            0       48d1e2 "
				      "           0 SET      ADD\n";

	assert_reprints(BC_FORMAT_CIS501, aligned, aligned);
	for (size_t i = 0; i < COUNT_OF(between); i++) {
		for (int ends = 0; ends < 4; ends++) {
			char line[600] = "";
			if (ends & 1)
				strcat(line, between[i]);
			for (const char *c = good; *c != '\0'; c++)
				strncat(line, *c == ' ' ? between[i] : c,
					*c == ' ' ? strlen(between[i]) : 1);
			if (ends & 2)
				strcat(line, between[i]);
			strcat(line, "\n");
			assert_reprints(BC_FORMAT_CIS501, line, aligned);
		}
	}
}

TEST(a_file_may_start_in_the_middle_of_a_macro_op)
{
	struct parsed parsed = parse_text(BC_FORMAT_CIS501, "", strchr(seed, '\n') + 1);
	struct bc_entry references[BC_REFERENCES_MAX];

	assert_int_equal(parsed.fault_count, 0);
	assert_int_equal(parsed.count, 14);
	assert_int_equal(parsed.entries[0].uop.step, 2);
	assert_int_equal(bc_entry_references(references, &parsed.entries[0]), 0);
	assert_int_equal(bc_entry_references(references, &parsed.entries[1]), 2);
	assert_int_equal(references[0].type, BC_REQ_FETCH);
	assert_int_equal(references[0].size, 7);
	assert_int_equal(references[1].type, BC_REQ_MEMREAD);
	assert_true(references[1].addr == 0x7fffe7ff048);
	parsed_free(&parsed);
}

TEST(only_loads_and_stores_have_the_size_of_the_option)
{
	struct parsed parsed = parse_text(BC_FORMAT_CIS501, "size=4", seed);

	for (size_t i = 0; i < parsed.count; i++) {
		bool is_access = parsed.entries[i].uop.access != '-';
		assert_int_equal(parsed.entries[i].traits, is_access ? BC_TRAIT_SIZE : 0);
		assert_int_equal(parsed.entries[i].size, is_access ? 4 : 0);
	}
	parsed_free(&parsed);
}

TEST(immediates_have_the_full_range_of_64_bits)
{
	static const int64_t edges[] = {0, 1, -1, 9, -9, 10, -10, 99999999, 100000000, 999999999,
		1000000000, -9999999, -10000000, -99999999, -100000000, INT32_MIN, INT64_MAX,
		INT64_MIN, INT64_MIN + 1};

	for (size_t i = 0; i < COUNT_OF(edges); i++) {
		char line[400];
		snprintf(line, sizeof(line), "1 1 1 2 3 - - - %" PRId64 " 0 0 0 A B\n", edges[i]);
		struct parsed parsed = parse_text(BC_FORMAT_CIS501, "", line);
		assert_int_equal(parsed.fault_count, 0);
		assert_true(parsed.entries[0].uop.immediate == edges[i]);
		assert_prints_as_printf(parsed.entries, 1);
		parsed_free(&parsed);
	}
	assert_malformed(BC_FORMAT_CIS501, "1 1 1 2 3 - - - 9223372036854775808 0 0 0 A B", 36,
		"column 9", good);
	assert_malformed(BC_FORMAT_CIS501, "1 1 1 2 3 - - - -9223372036854775809 0 0 0 A B", 37,
		"column 9", good);
	assert_malformed(BC_FORMAT_CIS501, "1 1 1 2 3 - - - 99999999999999999999 0 0 0 A B", 36,
		"column 9", good);
}

TEST(registers_and_steps_accept_any_number_of_32_bits)
{
	static const int32_t edges[] = {
		-1, 0, 9, 10, 49, 50, 99, 100, -9, -10, -99, 12345, INT32_MAX, INT32_MIN};

	for (unsigned column = 0; column < 4; column++) {
		for (size_t i = 0; i < COUNT_OF(edges); i++) {
			int32_t v[4] = {1, 2, 3, 4};
			char line[400];
			v[column] = edges[i];
			snprintf(line, sizeof(line), "%d 1 %d %d %d - - - 0 0 0 0 A B\n", v[0],
				v[1], v[2], v[3]);
			struct parsed parsed = parse_text(BC_FORMAT_CIS501, "", line);
			assert_int_equal(parsed.fault_count, 0);
			assert_int_equal(parsed.entries[0].uop.step, v[0]);
			assert_int_equal(parsed.entries[0].uop.src1, v[1]);
			assert_int_equal(parsed.entries[0].uop.src2, v[2]);
			assert_int_equal(parsed.entries[0].uop.dest, v[3]);
			assert_prints_as_printf(parsed.entries, 1);
			parsed_free(&parsed);
		}
	}
	assert_malformed(
		BC_FORMAT_CIS501, "1 1 2147483648 2 3 - - - 0 0 0 0 A B", 5, "column 3", good);
	assert_malformed(
		BC_FORMAT_CIS501, "1 1 1 -2147483649 3 - - - 0 0 0 0 A B", 7, "column 4", good);
	assert_malformed(BC_FORMAT_CIS501, "99999999999999999999 1 1 1 3 - - - 0 0 0 0 A B", 20,
		"column 1", good);
}

/* Every prefix of a line lacks a column, which the error names. The last column is an exception:
 * any part of it is an opcode. */
TEST(every_prefix_of_a_line_is_reported_with_its_missing_column)
{
	for (size_t n = 1; n < sizeof(good) - 1; n++) {
		char line[100];
		char words[32];
		unsigned column = 1;
		snprintf(line, sizeof(line), "%.*s", (int)n, good);
		for (size_t i = 0; i < n; i++)
			column += line[i] == ' ';
		if (column == 14 && line[n - 1] != ' ')
			continue;
		/* Any part of most columns is valid, so the next column is the missing one. */
		column += line[n - 1] != ' ' && (line[n - 1] != '-' || column >= 6);
		snprintf(words, sizeof(words), "column %u,", column);
		assert_malformed(BC_FORMAT_CIS501, line, n + 1, words, good);
	}
}

TEST(each_malformed_column_is_reported_with_its_position)
{
	static const struct {
		const char *line;
		size_t column;
		const char *words;
	} cases[] = {
		{"x 48d1de -1 -1 13 - - - 0 0 48d1e2 0 SET ADD", 1, "column 1,"},
		{"1x 48d1de -1 -1 13 - - - 0 0 48d1e2 0 SET ADD", 2, "column 1,"},
		{"1 48d1dg -1 -1 13 - - - 0 0 48d1e2 0 SET ADD", 8, "column 2,"},
		{"1 g -1 -1 13 - - - 0 0 48d1e2 0 SET ADD", 3, "column 2,"},
		{"1 48d1de - -1 13 - - - 0 0 48d1e2 0 SET ADD", 11, "column 3,"},
		{"1 48d1de -1 +1 13 - - - 0 0 48d1e2 0 SET ADD", 13, "column 4,"},
		{"1 48d1de -1 -1 1.3 - - - 0 0 48d1e2 0 SET ADD", 17, "column 5,"},
		{"1 48d1de -1 -1 13 r - - 0 0 48d1e2 0 SET ADD", 19, "column 6,"},
		{"1 48d1de -1 -1 13 RW - - 0 0 48d1e2 0 SET ADD", 19, "column 6,"},
		{"1 48d1de -1 -1 13 - W - 0 0 48d1e2 0 SET ADD", 21, "column 7,"},
		{"1 48d1de -1 -1 13 - - T 0 0 48d1e2 0 SET ADD", 23, "column 8,"},
		{"1 48d1de -1 -1 13 - - - 0x0 0 48d1e2 0 SET ADD", 26, "column 9,"},
		{"1 48d1de -1 -1 13 - - - 0 -1 48d1e2 0 SET ADD", 27, "column 10,"},
		{"1 48d1de -1 -1 13 - - - 0 0 48d1e2h 0 SET ADD", 35, "column 11,"},
		{"1 48d1de -1 -1 13 - - - 0 0 48d1e2 SET SET ADD", 36, "column 12,"},
		{"1 48d1de -1 -1 13 - - - 0 0 48d1e2 0 SET ADD MORE", 46, "expected nothing"},
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++)
		assert_malformed(
			BC_FORMAT_CIS501, cases[i].line, cases[i].column, cases[i].words, good);
}

TEST(random_micro_ops_are_printed_like_printf_and_read_back)
{
	struct dice dice = {.state = 5};
	struct bc_entry entries[500];
	char names[500][40];

	for (size_t i = 0; i < 500; i++) {
		struct bc_entry *e = &entries[i];
		bc_entry_reference(e, 0, dice_roll(&dice) >> dice_below(&dice, 64), i + 1);
		e->kind = BC_ENTRY_UOP;
		for (size_t c = 0; c < sizeof(names[i]); c++)
			names[i][c] = (char)('A' + dice_below(&dice, 26));
		e->uop = (struct bc_uop){.step = (int32_t)(1 + dice_below(&dice, 12)),
			.src1 = (int32_t)dice_below(&dice, 51) - 1,
			.src2 = (int32_t)(dice_roll(&dice) >> (32 + dice_below(&dice, 31))),
			.dest = (int32_t)dice_below(&dice, 51) - 1,
			.flags = "RW-"[dice_below(&dice, 3)],
			.branch = "TN-"[dice_below(&dice, 3)],
			.access = "LS-"[dice_below(&dice, 3)],
			.immediate = (int64_t)dice_roll(&dice) >> dice_below(&dice, 64),
			.mem_addr = dice_roll(&dice) >> dice_below(&dice, 64),
			.fallthrough = dice_roll(&dice) >> dice_below(&dice, 64),
			.target = dice_roll(&dice) >> dice_below(&dice, 64),
			.macro = {names[i], 1 + dice_below(&dice, 20)},
			.micro = {names[i] + 20, 1 + dice_below(&dice, 20)}};
	}
	assert_prints_as_printf(entries, 500);
	struct printed printed = print_entries(BC_FORMAT_CIS501, "", entries, 500);
	struct parsed parsed = parse_text(BC_FORMAT_CIS501, "", printed.text);
	assert_int_equal(parsed.fault_count, 0);
	assert_int_equal(parsed.count, 500);
	struct printed again = print_entries(BC_FORMAT_CIS501, "", parsed.entries, 500);
	assert_string_equal(again.text, printed.text);
	free(again.text);
	free(printed.text);
	parsed_free(&parsed);
}
