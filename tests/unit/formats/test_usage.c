/* The output of formats/base/usage.h for tables of options. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/usage.h"
#include "tests/support/test.h"

static const struct bc_usage_option rows[] = {
	{'n', "count", "N", "number", "how many"},
	{1000, "quiet", NULL, NULL, "say nothing"},
	{'b', NULL, "RULE:VALUE", "choice:a:|b:", "a rule"},
	{'w', "watch", "[SECONDS]", "number", "again"},
	{0},
};

static const struct bc_usage usage = {
	.name = "do",
	.required = "-n N",
	.operands = "[FILE]...",
	.kind = "file",
	.summary = "does it",
	.options = rows,
	.exits = "0 ok.",
	.example = "prog do -n 1",
};

static const struct bc_usage_option verb_rows[] = {
	{1000, "quiet", NULL, NULL, "say nothing"},
	{'x', "extra", NULL, NULL, "and more"},
	{0},
};

static const struct bc_usage verb = {
	.name = "do stop",
	.summary = "stops it",
	.options = verb_rows,
	.exits = "0 ok.",
	.example = "prog do stop",
};

static const struct bc_usage_option other_rows[] = {
	{1000, "quiet", NULL, NULL, "say nothing"},
	{0},
};

static const struct bc_usage other_verb = {
	.name = "do start",
	.summary = "starts it",
	.options = other_rows,
	.exits = "0 ok.",
	.example = "prog do start",
};

static const struct bc_usage *const verbs[] = {&verb, &other_verb, NULL};

static char *help_of(const struct bc_usage *of)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_non_null(out);
	bc_usage_help(out, "prog", of);
	assert_int_equal(fclose(out), 0);
	return text;
}

TEST(getopt_accepts_the_options_of_the_table)
{
	struct bc_usage_getopt g;

	bc_usage_getopt(&g, &usage);
	assert_string_equal(g.brief, ":n:b:w::h");
	assert_string_equal(g.all[0].name, "count");
	assert_int_equal(g.all[0].has_arg, required_argument);
	assert_int_equal(g.all[0].val, 'n');
	assert_string_equal(g.all[1].name, "quiet");
	assert_int_equal(g.all[1].has_arg, no_argument);
	assert_int_equal(g.all[1].val, 1000);
	assert_string_equal(g.all[2].name, "watch");
	assert_int_equal(g.all[2].has_arg, optional_argument);
	assert_string_equal(g.all[3].name, "help");
	assert_int_equal(g.all[3].val, 'h');
	assert_null(g.all[4].name);
}

TEST(help_separates_options_of_verbs_from_common_ones)
{
	struct bc_usage all = {.name = "do",
		.summary = "does it",
		.verbs = verbs,
		.exits = "0 ok.",
		.example = "prog do stop"};
	char *text = help_of(&all);

	assert_non_null(strstr(text, "usage: prog do stop [OPTION]...\n"
				     "       prog do start [OPTION]...\n\n"));
	assert_non_null(strstr(text, "Options of stop:\n  -x, --extra  and more\n\n"
				     "Options of all commands:\n      --quiet  say nothing\n"
				     "  -h, --help   print this help\n"));
	free(text);
}

TEST(lines_of_a_text_are_kept_and_continuations_indented)
{
	struct bc_usage lines = usage;

	lines.text =
		"one\n\n  two    columns\n"
		"    0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 "
		"0123456789 0123456789 end";
	char *text = help_of(&lines);
	assert_non_null(strstr(text, "\n\none\n\n  two    columns\n    0123456789 "));
	assert_non_null(strstr(text, " 0123456789\n    0123456789 end\n\n"));
	free(text);
}
