/* The options of `buscap diff`, its help text, and the classes of entries that --only selects.
 * Sets of classes and of fields are bits, named in the same order in the usage below, in
 * docs/diff.md and in the tables that parse them. */
#include "cli/diff/diff.h"

#include <stdio.h>
#include <string.h>

#include "cli/diff/compare.h"
#include "cli/term/options.h"
#include "formats/base/text.h"

/* The traits of each class, given that micro-ops and instructions also count as references. */
static const struct {
	const char *name;
	bc_traits traits;
} classes[] = {
	{"inst", BC_TRAIT_INSTRUCTION | BC_TRAIT_FETCH},
	{"mem", BC_TRAIT_REFERENCE},
	{"reg", BC_TRAIT_REGISTER},
	{"uop", BC_TRAIT_UOP},
	{"kernel", BC_TRAIT_KERNEL},
	{"event", BC_TRAIT_EVENT},
	{"line", BC_TRAIT_LINE},
};

#define CLASS_COUNT (sizeof(classes) / sizeof(classes[0]))

uint32_t bc_diff_class_of(const struct bc_entry *entry)
{
	static const uint8_t of_kinds[BC_ENTRY_KINDS] = {BC_DIFF_MEM, BC_DIFF_INST, BC_DIFF_UOP,
		BC_DIFF_REG, BC_DIFF_KERNEL, BC_DIFF_EVENT, BC_DIFF_LINE};
	bool is_fetch = entry->kind == BC_ENTRY_REFERENCE && entry->type == BC_REQ_FETCH;

	return is_fetch ? BC_DIFF_INST : of_kinds[entry->kind];
}

uint32_t bc_diff_classes_of(bc_traits traits)
{
	uint32_t found = 0;

	for (size_t i = 0; i < CLASS_COUNT; i++)
		found |= (traits & classes[i].traits) != 0 ? 1u << i : 0;
	return found;
}

const char *bc_diff_class_name(uint64_t one)
{
	return classes[__builtin_ctzll(one)].name;
}

#define LOOKAHEAD_MIN 16u
#define LOOKAHEAD_MAX 1000000u
#define LINES_MAX     100000u

enum {
	OPTION_FORMAT_A = 1000,
	OPTION_FORMAT_B,
	OPTION_ONLY,
	OPTION_FIELDS,
	OPTION_IGNORE,
	OPTION_SAME_CLOCK,
	OPTION_START,
	OPTION_IGNORE_REST,
};

#define FIELDS_KIND                                                                               \
	"list:kind|addr|type|size|attr|proc|time|space|data|phys|attrib|security|enables|letter|" \
	"effect|id|opcode|"                                                                       \
	"set|mode|"                                                                               \
	"disassembly|name|value|step|registers|flags|branch|access|immediate|memory|fallthrough|" \
	"target|macro|micro|text|event"

static const struct bc_usage_option options[] = {
	{'I', "input-format", "FMT", "format-read",
		"format and options of both traces (default: detected)"},
	{OPTION_FORMAT_A, "format-a", "FMT", "format-read", "format of A"},
	{OPTION_FORMAT_B, "format-b", "FMT", "format-read", "format of B"},
	{OPTION_ONLY, "only", "KINDS", "list:inst|mem|reg|uop|kernel|event|line",
		"compare only these kinds of entries: inst (with fetches), mem (with loads and "
		"stores of micro-ops), reg, uop, kernel, event, line"},
	{OPTION_FIELDS, "fields", "FIELDS", FIELDS_KIND,
		"compare only these fields, such as addr,type,size"},
	{OPTION_IGNORE, "ignore", "FIELDS", FIELDS_KIND,
		"don't compare these fields, such as time"},
	{'w', "window", "N", "number",
		"ignore the order of entries, and differences in time, up to N ticks (default 1)"},
	{'r', "relative", NULL, NULL,
		"take the offset between the clocks from the first pair of entries"},
	{OPTION_SAME_CLOCK, "same-clock", NULL, NULL,
		"the times of both traces are of one clock: compare entries of the same time "
		"(default for recordings, and cuts of them)"},
	{OPTION_START, "start", "ADDR", "text",
		"begin each trace at its first entry with this hexadecimal address"},
	{OPTION_IGNORE_REST, "ignore-rest", NULL, NULL,
		"ignore what the longer trace has after the other one ends"},
	{'l', "lookahead", "N", "number",
		"search up to N entries ahead for matches after a difference (default 16384); "
		"determines the memory use"},
	{'1', "first", NULL, NULL, "stop after the first difference"},
	{'n', "limit", "N", "number", "stop after N differences"},
	{'s', "show", "N", "number",
		"print at most N entries of each side of a difference (default 20)"},
	{'U', "context", "N", "number",
		"print N matching entries before and after a difference (default 3)"},
	{'j', "json", NULL, NULL,
		"print one JSON object per difference and one at the end, each on a line"},
	{'q', "quiet", NULL, NULL, "print nothing, only set the exit code"},
	{0},
};

const struct bc_usage bc_diff_usage = {
	.name = "diff",
	.operands = "A B [MORE OF B]...",
	.kind = "file",
	.summary = "compare two traces",
	.text = "Lists the differences between two traces, even if their formats differ. \"-\" is "
		"standard input. A is the first file; B is the second, or all others if they are "
		"segments of one recording. Each may also be a directory or the id of a recording."
		" What only one of the formats can hold is not compared; "
		"docs/diff.md has the details.",
	.options = options,
	.exits =
		"0 the traces are the same, 1 they differ or the comparison failed, 2 wrong usage, "
		"3 damaged or malformed input, and the intact parts are the same.",
	.example = "buscap diff --only inst,reg --ignore time golden.tarmac dut.tarmac",
};

/* The names of a set of bits. */
struct names {
	const char *(*name)(uint64_t);
	unsigned count;
};

static const struct names class_names = {bc_diff_class_name, CLASS_COUNT};
static const struct names fields = {bc_field_name, BC_FIELD_COUNT};

static void print_name_error(const struct bc_console *console, const char *option,
	const struct names *names, const char *name, size_t bytes)
{
	char list[1024] = "";
	size_t used = 0;

	for (unsigned i = 0; i < names->count && used < sizeof(list); i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
			i == 0                  ? ""
			: i + 1 == names->count ? " or "
						: ", ",
			names->name(UINT64_C(1) << i));
	bc_print_error(console, NULL, "%s %s: unknown name \"%.*s\"; use %s", option, optarg,
		(int)bytes, name, list);
}

/* Parses "name,name" into a set of bits. */
static bool parse_names(const struct bc_console *console, const char *option,
	const struct names *names, uint64_t *set)
{
	for (const char *at = optarg;; at++) {
		size_t n = strcspn(at, ",");
		uint64_t bit = 0;
		for (unsigned i = 0; i < names->count; i++) {
			const char *known = names->name(UINT64_C(1) << i);
			if (strlen(known) == n && memcmp(known, at, n) == 0)
				bit = UINT64_C(1) << i;
		}
		if (bit == 0) {
			print_name_error(console, option, names, at, n);
			return false;
		}
		*set |= bit;
		at += n;
		if (*at == '\0')
			return true;
	}
}

static bool parse_start(const struct bc_console *console, struct bc_diff *d)
{
	const char *end = optarg + strlen(optarg);

	d->has_start = true;
	if (bc_hex_read(optarg, end, &d->start) == end)
		return true;
	bc_print_error(console, NULL, "--start %s: not a hexadecimal address", optarg);
	return false;
}

static bool parse_diff_option(const struct bc_console *console, int letter, struct bc_diff *d)
{
	uint64_t n;

	switch (letter) {
	case 'I':
		if (!bc_option_read_format(console, "-I", &d->a.format, &d->a.reader.format))
			return false;
		d->b.format = d->a.format;
		d->b.reader.format = d->a.reader.format;
		return true;
	case OPTION_FORMAT_A:
		return bc_option_read_format(
			console, "--format-a", &d->a.format, &d->a.reader.format);
	case OPTION_FORMAT_B:
		return bc_option_read_format(
			console, "--format-b", &d->b.format, &d->b.reader.format);
	case OPTION_ONLY:
		return parse_names(console, "--only", &class_names, &d->only);
	case OPTION_FIELDS:
		return parse_names(console, "--fields", &fields, &d->wanted_fields);
	case OPTION_IGNORE:
		return parse_names(console, "--ignore", &fields, &d->ignored_fields);
	case 'w':
		return bc_option_count(console, "--window", 0, UINT64_MAX, &d->how.window);
	case 'r':
		return d->how.is_relative = true;
	case OPTION_SAME_CLOCK:
		return d->how.is_same_clock = true;
	case OPTION_START:
		return parse_start(console, d);
	case OPTION_IGNORE_REST:
		return d->how.ignores_rest = true;
	case 'l':
		if (!bc_option_count(console, "--lookahead", LOOKAHEAD_MIN, LOOKAHEAD_MAX, &n))
			return false;
		d->how.lookahead = (size_t)n;
		return true;
	case '1':
		d->limit = 1;
		return true;
	case 'n':
		return bc_option_count(console, "--limit", 1, UINT64_MAX, &d->limit);
	case 's':
		return bc_option_count(console, "--show", 0, LINES_MAX, &d->show);
	case 'U':
		return bc_option_count(console, "--context", 0, LINES_MAX, &d->context);
	case 'j':
		return d->is_json = true;
	case 'q':
		return d->is_quiet = true;
	default:
		return false;
	}
}

static enum bc_exit read_side(struct bc_diff_side *side, const struct bc_console *console,
	const char *const *words, int count)
{
	struct bc_files *files = &side->files;
	enum bc_exit code = bc_operands_read(
		&side->operands, files, console, words, count, BC_FILES_SORTED | BC_FILES_CHECKED);

	if (code == BC_EXIT_OK && files->exit == BC_EXIT_FAILED)
		code = BC_EXIT_FAILED;
	if (code != BC_EXIT_OK || files->is_one_recording)
		return code;
	if (count > 1)
		return bc_print_usage_error(console,
			"give two traces; several files of one must be segments of one recording");
	bc_print_error(console, words[0],
		"has several recordings; name one by its id or its files, such as %s",
		files->paths[0]);
	return BC_EXIT_USAGE;
}

static enum bc_exit read_operands(
	struct bc_diff *d, const struct bc_console *console, int argc, char **argv)
{
	int count = argc - optind;
	const char *const *words = (const char *const *)argv + optind;

	if (count < 2)
		return bc_print_usage_error(console, "give two traces");
	enum bc_exit code = bc_check_inputs(console, words, count);
	if (code == BC_EXIT_OK)
		code = read_side(&d->a, console, words, 1);
	return code == BC_EXIT_OK ? read_side(&d->b, console, words + 1, count - 1) : code;
}

bool bc_diff_read_options(struct bc_diff *d, int argc, char **argv, enum bc_exit *code)
{
	struct bc_options o;
	int letter;

	d->a.reader = d->b.reader = (struct bc_reader_options){
		.format = bc_format_options_default(), .is_one_of_many = true, .index_fd = -1};
	d->how.window = 1;
	d->how.lookahead = 16384;
	d->show = 20;
	d->context = 3;
	bc_options_start(&o, d->console, &bc_diff_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1) {
		if (parse_diff_option(d->console, letter, d))
			continue;
		*code = o.exit;
		return false;
	}
	if (d->is_json || d->is_quiet)
		d->context = 0;
	if (d->how.is_same_clock && d->how.is_relative)
		*code = bc_print_usage_error(d->console, "--same-clock excludes --relative");
	else if (d->is_json && d->is_quiet)
		*code = bc_print_usage_error(d->console, "--json excludes --quiet");
	else
		*code = read_operands(d, d->console, argc, argv);
	return *code == BC_EXIT_OK;
}
