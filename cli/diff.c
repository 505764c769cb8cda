#include "cli/diff.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/options.h"
#include "formats/compare.h"

#define LOOKAHEAD_MIN 16u
#define LOOKAHEAD_MAX 1000000u
#define LINES_MAX     100000u

static const char help[] =
	"usage: buscap diff [OPTION]... A B\n"
	"\n"
	"Compares two traces, of one format or of two, and lists where they differ. \"-\" is "
	"standard input.\n"
	"What only one of the formats can hold is not compared; docs/diff.md has all of it.\n"
	"\n"
	"  -I, --input-format FMT  the format of both, with its options; it is told by content "
	"where that\n"
	"                          is certain\n"
	"      --format-a FMT      that of A alone\n"
	"      --format-b FMT      that of B alone\n"
	"      --only KINDS        compare these alone, of inst, mem, reg, uop, kernel, event, "
	"line:\n"
	"                          \"inst\" are fetches too, \"mem\" loads and stores of "
	"micro-ops too\n"
	"      --fields FIELDS     compare these fields alone, as addr,type,size\n"
	"      --ignore FIELDS     don't compare these, as time\n"
	"  -w, --window N          entries whose ticks are at most N apart may stand in any order, "
	"and\n"
	"                          their times are the same (default 1)\n"
	"  -r, --relative          the traces' clocks start anywhere: the first two entries say "
	"how "
	"far\n"
	"                          they are apart\n"
	"  -l, --lookahead N       look so many entries ahead for where both go on alike (default "
	"16384);\n"
	"                          memory is bounded by it\n"
	"  -1, --first             stop behind the first difference\n"
	"  -n, --limit N           stop behind the Nth\n"
	"  -s, --show N            list the first N entries of each side of a difference (default "
	"20)\n"
	"  -U, --context N         and N that match, before it and behind it (default 3)\n"
	"  -j, --json              one JSON object a difference, and a last one, each on a line\n"
	"  -q, --quiet             no output: the exit code alone says it\n"
	"  -h, --help              this text\n"
	"\n"
	"Exit code: 0 they are the same, 1 they differ or the comparison failed, 2 wrong usage, 3 "
	"damaged\n"
	"or malformed, and the same as far as they are good.\n"
	"\n"
	"Example: buscap diff --only inst,reg --ignore time golden.tarmac dut.tarmac\n";

enum {
	OPTION_FORMAT_A = 1000,
	OPTION_FORMAT_B,
	OPTION_ONLY,
	OPTION_FIELDS,
	OPTION_IGNORE,
};

static const struct option options[] = {
	{"input-format", required_argument, NULL, 'I'},
	{"format-a", required_argument, NULL, OPTION_FORMAT_A},
	{"format-b", required_argument, NULL, OPTION_FORMAT_B},
	{"only", required_argument, NULL, OPTION_ONLY},
	{"fields", required_argument, NULL, OPTION_FIELDS},
	{"ignore", required_argument, NULL, OPTION_IGNORE},
	{"window", required_argument, NULL, 'w'},
	{"relative", no_argument, NULL, 'r'},
	{"lookahead", required_argument, NULL, 'l'},
	{"first", no_argument, NULL, '1'},
	{"limit", required_argument, NULL, 'n'},
	{"show", required_argument, NULL, 's'},
	{"context", required_argument, NULL, 'U'},
	{"json", no_argument, NULL, 'j'},
	{"quiet", no_argument, NULL, 'q'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

/* ---- classes of entries */

enum {
	CLASS_INST = 1u << 0,
	CLASS_MEM = 1u << 1,
	CLASS_REG = 1u << 2,
	CLASS_UOP = 1u << 3,
	CLASS_KERNEL = 1u << 4,
	CLASS_EVENT = 1u << 5,
	CLASS_LINE = 1u << 6,
	CLASSES = (1u << 7) - 1,
};

/* Which traits a class comes from, once micro-ops and instructions count as references too. */
static const struct {
	const char *name;
	uint32_t traits;
} classes[] = {
	{"inst", BC_CAN_INSTRUCTION | BC_CAN_FETCH},
	{"mem", BC_CAN_REFERENCE},
	{"reg", BC_CAN_REGISTER},
	{"uop", BC_CAN_UOP},
	{"kernel", BC_CAN_KERNEL},
	{"event", BC_CAN_EVENT},
	{"line", BC_CAN_LINE},
};

#define CLASS_COUNT (sizeof(classes) / sizeof(classes[0]))

static uint32_t class_of(const struct bc_entry *entry)
{
	switch (entry->kind) {
	case BC_ENTRY_REFERENCE:
		return entry->type == BC_REQ_FETCH ? CLASS_INST : CLASS_MEM;
	case BC_ENTRY_INSTRUCTION:
		return CLASS_INST;
	case BC_ENTRY_UOP:
		return CLASS_UOP;
	case BC_ENTRY_REGISTER:
		return CLASS_REG;
	case BC_ENTRY_KERNEL:
		return CLASS_KERNEL;
	case BC_ENTRY_EVENT:
		return CLASS_EVENT;
	default:
		return CLASS_LINE;
	}
}

static uint64_t class_by_name(const char *name, size_t bytes)
{
	for (size_t i = 0; i < CLASS_COUNT; i++)
		if (strlen(classes[i].name) == bytes && memcmp(classes[i].name, name, bytes) == 0)
			return UINT64_C(1) << i;
	return 0;
}

static uint32_t classes_of(uint32_t holds)
{
	uint32_t found = 0;

	for (size_t i = 0; i < CLASS_COUNT; i++)
		found |= (holds & classes[i].traits) != 0 ? 1u << i : 0;
	return found;
}

/* What a trace's entries can be made to be. */
static uint32_t can_be(const struct bc_trace *trace)
{
	uint32_t holds = bc_trace_holds(trace);

	return (holds & (BC_CAN_INSTRUCTION | BC_CAN_UOP)) != 0
		       ? holds | BC_CAN_REFERENCE | BC_CAN_FETCH
		       : holds;
}

/* ---- the two rows */

/* The next entries of a trace, as far as the other's format can hold them and they are asked for:
 * bc_match_source. */
static int next_run(void *context, const struct bc_entry **run, size_t *count)
{
	struct bc_diff_side *side = context;
	uint64_t only = side->diff->only;
	struct bc_batch batch;

	for (;;) {
		for (; side->left != 0 && (class_of(side->run) & only) == 0; side->left--)
			side->run++;
		if (side->left != 0)
			break;
		side->left = bc_fit_next(&side->fit, &side->run);
		if (side->left != 0)
			continue;
		if (!bc_trace_next(&side->trace, &batch))
			return 0;
		bc_fit_batch(&side->fit, batch.entries, batch.count);
	}
	size_t n = 1;
	while (n < side->left && (only == CLASSES || (class_of(&side->run[n]) & only) != 0))
		n++;
	*run = side->run;
	*count = n;
	side->run += n;
	side->left -= n;
	return 1;
}

static void set_line(struct bc_diff_line *line, const struct bc_entry *entry, uint64_t fields)
{
	line->number = entry->number;
	line->fields = fields;
	bc_entry_text(line->text, entry);
}

static void pass(struct bc_diff_side *side, const struct bc_entry *entries, size_t count)
{
	if (count == 0)
		return;
	side->entries += count;
	side->has_last = true;
	side->last = entries[count - 1].number;
}

/* The difference at hand is over. Returns false when nothing more is of use. */
static bool end_difference(struct bc_diff *d)
{
	uint64_t pairs = d->a.count < d->b.count ? d->a.count : d->b.count;
	bool ok = true;

	d->is_open = false;
	d->changed += pairs;
	d->only_a += d->a.count - pairs;
	d->only_b += d->b.count - pairs;
	if (d->is_json)
		ok = bc_diff_json_difference(d);
	else if (!d->is_quiet)
		bc_diff_text_difference(d);
	if (!ok)
		bc_complain(d->console, NULL, "not enough memory");
	d->before_count = 0;
	d->after = d->is_json || d->is_quiet ? 0 : d->context;
	d->shifted = 0;
	d->is_lost = false;
	return ok && !bc_output_is_over(&d->output);
}

static bool on_same(void *context, const struct bc_entry *a, const struct bc_entry *b, size_t n)
{
	struct bc_diff *d = context;
	bool goes_on = true;
	size_t i = 0;

	if (d->is_open)
		goes_on = end_difference(d);
	pass(&d->a, a, n);
	pass(&d->b, b, n);
	d->same += n;
	if (d->is_json || d->is_quiet)
		goto out;
	for (; goes_on && d->after != 0 && i < n; i++, d->after--) {
		struct bc_diff_line line;
		set_line(&line, &a[i], 0);
		bc_diff_text_context(d, &line);
	}
	/* The last ones, in case a difference follows. */
	i = n - i > d->context ? n - d->context : i;
	size_t drop = d->before_count + (n - i);
	drop = drop > d->context ? drop - d->context : 0;
	memmove(d->before, d->before + drop, (d->before_count - drop) * sizeof(*d->before));
	d->before_count -= drop;
	for (; i < n; i++)
		set_line(&d->before[d->before_count++], &a[i], 0);
out:
	d->is_stopped = d->limit != 0 && d->differences >= d->limit && d->after == 0;
	return goes_on && !d->is_stopped;
}

static bool on_reordered(void *context, const struct bc_entry *a, size_t a_count,
	const struct bc_entry *b, size_t b_count)
{
	struct bc_diff *d = context;

	pass(&d->a, a, a_count);
	pass(&d->b, b, b_count);
	d->reordered += a_count;
	return true;
}

static void begin_side(struct bc_diff_side *side)
{
	side->count = 0;
	side->has_behind = side->has_last;
	side->behind = side->last;
}

static void add_side(
	struct bc_diff_side *side, const struct bc_entry *entries, size_t count, size_t show)
{
	if (count != 0 && side->count == 0)
		side->first = entries[0].number;
	for (size_t i = 0; i < count && side->count + i < show; i++)
		set_line(&side->lines[side->count + i], &entries[i], 0);
	side->count += count;
	pass(side, entries, count);
}

static bool on_differ(void *context, const struct bc_entry *a, size_t a_count,
	const struct bc_entry *b, size_t b_count)
{
	struct bc_diff *d = context;

	if (!d->is_open) {
		if (d->limit != 0 && d->differences >= d->limit) {
			d->is_stopped = true;
			return false;
		}
		d->is_open = d->is_paired = true;
		d->differ = 0;
		d->differences++;
		begin_side(&d->a);
		begin_side(&d->b);
	}
	uint64_t at = d->a.count;
	d->is_paired = d->is_paired && a_count == b_count;
	add_side(&d->a, a, a_count, d->show);
	add_side(&d->b, b, b_count, d->show);
	for (size_t i = 0; d->is_paired && i < a_count; i++) {
		uint64_t fields = bc_match_fields(d->match, &a[i], &b[i]);
		d->differ |= fields;
		if (at + i < d->show)
			d->a.lines[at + i].fields = d->b.lines[at + i].fields = fields;
	}
	return !d->is_quiet && !bc_output_is_over(&d->output);
}

static void on_shifted(void *context, int64_t ticks)
{
	struct bc_diff *d = context;

	d->shifted = (int64_t)((uint64_t)d->shifted + (uint64_t)ticks);
}

static void on_lost(void *context)
{
	struct bc_diff *d = context;

	d->is_lost = true;
}

const char *bc_diff_kind(const struct bc_diff *d)
{
	return d->a.count == 0 ? "only_b" : d->b.count == 0 ? "only_a" : "changed";
}

/* ---- what is asked for */

struct wanted {
	struct bc_diff *diff;
	enum bc_format format_a;
	enum bc_format format_b;
	struct bc_reader_options reader_a;
	struct bc_reader_options reader_b;
	uint64_t only; /* as named; 0: all */
	uint64_t fields;
	uint64_t ignored;
	uint64_t window;
	bool is_relative;
};

/* Reads "name,name" into a set of bits. */
static bool read_names(const struct bc_console *console, const char *option,
	uint64_t (*by_name)(const char *, size_t), uint64_t *set)
{
	for (const char *at = optarg;; at++) {
		size_t n = strcspn(at, ",");
		uint64_t bit = by_name(at, n);
		if (bit == 0) {
			bc_complain(console, NULL, "%s %s: there is no \"%.*s\"; see docs/diff.md",
				option, optarg, (int)n, at);
			return false;
		}
		*set |= bit;
		at += n;
		if (*at == '\0')
			return true;
	}
}

static bool read_number(const struct bc_console *console, const char *option, uint64_t least,
	uint64_t most, size_t *value)
{
	uint64_t n;

	if (!bc_option_count(console, option, &n))
		return false;
	if (n < least || n > most) {
		bc_complain(console, NULL, "%s %s: it can be %llu to %llu", option, optarg,
			(unsigned long long)least, (unsigned long long)most);
		return false;
	}
	*value = (size_t)n;
	return true;
}

static bool read_option(const struct bc_console *console, int letter, struct wanted *w)
{
	struct bc_diff *d = w->diff;

	switch (letter) {
	case 'I':
		if (!bc_option_read_format(console, "-I", &w->format_a, &w->reader_a.format))
			return false;
		w->format_b = w->format_a;
		w->reader_b.format = w->reader_a.format;
		return true;
	case OPTION_FORMAT_A:
		return bc_option_read_format(
			console, "--format-a", &w->format_a, &w->reader_a.format);
	case OPTION_FORMAT_B:
		return bc_option_read_format(
			console, "--format-b", &w->format_b, &w->reader_b.format);
	case OPTION_ONLY:
		return read_names(console, "--only", class_by_name, &w->only);
	case OPTION_FIELDS:
		return read_names(console, "--fields", bc_field_by_name, &w->fields);
	case OPTION_IGNORE:
		return read_names(console, "--ignore", bc_field_by_name, &w->ignored);
	case 'w':
		return bc_option_count(console, "--window", &w->window);
	case 'r':
		return w->is_relative = true;
	case 'l':
		return read_number(
			console, "--lookahead", LOOKAHEAD_MIN, LOOKAHEAD_MAX, &d->lookahead);
	case '1':
		d->limit = 1;
		return true;
	case 'n':
		return read_number(console, "--limit", 1, SIZE_MAX, &d->limit);
	case 's':
		return read_number(console, "--show", 0, LINES_MAX, &d->show);
	case 'U':
		return read_number(console, "--context", 0, LINES_MAX, &d->context);
	case 'j':
		return d->is_json = true;
	case 'q':
		return d->is_quiet = true;
	default:
		return false;
	}
}

/* What of the two can be compared at all, and whether that is what was asked for. */
static enum bc_exit check_common(struct bc_diff *d, const struct wanted *w)
{
	const struct bc_trace *a = &d->a.trace;
	const struct bc_trace *b = &d->b.trace;
	uint32_t common = classes_of(can_be(a)) & classes_of(can_be(b));
	uint64_t fields = bc_compare_fields(bc_trace_holds(a), bc_trace_holds(b));
	uint64_t missing = w->only & ~(uint64_t)common;

	if (common == 0 || missing != 0) {
		bc_complain(d->console, NULL, "%sA is %s and B is %s: they don't both hold %s",
			missing != 0 ? "--only: " : "", bc_format_name(a->format),
			bc_format_name(b->format),
			missing != 0 ? classes[__builtin_ctzll(missing)].name
				     : "anything that can be compared");
		return BC_EXIT_USAGE;
	}
	if ((fields & BC_FIELD_OPCODE) != 0)
		fields |= w->fields & BC_FIELD_ID; /* if it is asked for */
	missing = w->fields & ~fields;
	if (missing != 0) {
		bc_complain(d->console, NULL,
			"--fields: A is %s and B is %s: they don't both hold %s",
			bc_format_name(a->format), bc_format_name(b->format),
			bc_field_name(missing & (0 - missing)));
		return BC_EXIT_USAGE;
	}
	d->only = w->only != 0 ? w->only : CLASSES;
	d->fields = (w->fields != 0 ? w->fields | BC_FIELD_KIND : fields) & ~w->ignored;
	return BC_EXIT_OK;
}

/* A side gives what the other's format can hold; micro-ops that are not asked for are references
 * still. */
static void fit_side(
	struct bc_diff_side *side, const struct bc_diff *d, const struct bc_diff_side *other)
{
	side->diff = d;
	bc_fit_init(&side->fit, side->trace.format, &side->trace.options.format);
	side->fit.holds = can_be(&other->trace);
	side->fit.needs = 0; /* nothing is written */
	if ((d->only & CLASS_UOP) == 0)
		side->fit.holds &= ~(uint32_t)BC_CAN_UOP;
}

/* BYU's times are sums from the file's beginning on. */
static bool is_sum(enum bc_format format)
{
	return format >= BC_FORMAT_BYU && format <= BC_FORMAT_BYU_BE;
}

static enum bc_exit compare(struct bc_diff *d, const struct wanted *w)
{
	struct bc_match_options how = {.fields = d->fields,
		.window = w->window,
		.lookahead = d->lookahead,
		.is_relative = w->is_relative ||
			       is_sum(d->a.trace.format) != is_sum(d->b.trace.format)};
	struct bc_match_source a = {.next = next_run, .context = &d->a};
	struct bc_match_source b = {.next = next_run, .context = &d->b};
	struct bc_match_sink sink = {.context = d,
		.same = on_same,
		.reordered = on_reordered,
		.differ = on_differ,
		.shifted = on_shifted,
		.lost = on_lost};
	enum bc_exit code = BC_EXIT_OK;
	bool is_whole;

	if (bc_match_open(&d->match, &how, &a, &b, &sink) != 0)
		goto no_memory;
	if (!d->is_json && !d->is_quiet)
		bc_diff_text_begin(d);
	/* The list itself says how far it is, where it is looked at. */
	if (d->is_quiet || !isatty(d->console->out)) {
		bc_trace_show_progress(&d->a.trace, NULL);
		bc_trace_show_progress(&d->b.trace, &d->a.trace);
	}
	int rc = bc_match_run(d->match);
	assert(rc >= 0); /* the sources say 0 and 1; what failed is in the traces' exit codes */
	bool has_all = rc != 1 || d->is_stopped || d->is_quiet || bc_output_is_over(&d->output);
	if (d->is_open && !end_difference(d))
		has_all = has_all && bc_output_is_over(&d->output);
	code = bc_exit_worse(d->a.trace.exit, d->b.trace.exit);
	is_whole = rc == 0 && code == BC_EXIT_OK;
	if (d->is_json)
		has_all = has_all && bc_diff_json_summary(d, is_whole);
	else if (!d->is_quiet)
		bc_diff_text_summary(d, is_whole);
	if (d->differences != 0)
		code = bc_exit_worse(code, BC_EXIT_FAILED);
	if (has_all)
		return code;
no_memory:
	bc_complain(d->console, NULL, "not enough memory");
	return BC_EXIT_FAILED;
}

static enum bc_exit run(struct bc_diff *d, struct wanted *w)
{
	const struct bc_console *console = d->console;
	const char *no_color = getenv("NO_COLOR");
	enum bc_exit code;

	d->has_color = isatty(console->out) && (no_color == NULL || no_color[0] == '\0');
	d->a.lines = calloc(d->show + 1, sizeof(*d->a.lines));
	d->b.lines = calloc(d->show + 1, sizeof(*d->b.lines));
	d->before = calloc(d->context + 1, sizeof(*d->before));
	if (d->a.lines == NULL || d->b.lines == NULL || d->before == NULL ||
		bc_output_open(&d->output, console->out) != 0) {
		bc_complain(console, NULL, "not enough memory");
		return BC_EXIT_FAILED;
	}
	code = bc_trace_open(&d->a.trace, console, &d->a.path, 1, w->format_a, &w->reader_a);
	if (code != BC_EXIT_OK)
		goto no_a;
	code = bc_trace_open(&d->b.trace, console, &d->b.path, 1, w->format_b, &w->reader_b);
	if (code == BC_EXIT_OK)
		code = check_common(d, w);
	if (code != BC_EXIT_OK)
		goto out;
	fit_side(&d->a, d, &d->b);
	fit_side(&d->b, d, &d->a);
	code = compare(d, w);
	bc_match_close(d->match);
out:
	bc_trace_close(&d->b.trace);
no_a:
	bc_trace_close(&d->a.trace);
	return bc_exit_worse(code, bc_output_close(&d->output, console));
}

static enum bc_exit read_arguments(struct wanted *w, int argc, char **argv)
{
	const struct bc_console *console = w->diff->console;
	struct bc_options o = {.console = console,
		.argc = argc,
		.argv = argv,
		.brief = "I:w:rl:1n:s:U:jqh",
		.all = options};
	int letter;

	while ((letter = bc_options_next(&o)) != -1)
		if (!read_option(console, letter, w))
			return BC_EXIT_USAGE;
	if (argc - optind != 2)
		return bc_complain_usage(console, "two traces are wanted");
	w->diff->a.path = argv[optind];
	w->diff->b.path = argv[optind + 1];
	return bc_check_inputs(console, (const char **)argv + optind, 2);
}

int bc_cmd_diff(const struct bc_console *console, int argc, char **argv)
{
	struct bc_diff *d = calloc(1, sizeof(*d));
	struct wanted w = {.diff = d,
		.reader_a = {.format = bc_format_options_default()},
		.reader_b = {.format = bc_format_options_default()},
		.window = 1};

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			free(d);
			return bc_print_help(console, help);
		}
	if (d == NULL) {
		bc_complain(console, NULL, "not enough memory");
		return BC_EXIT_FAILED;
	}
	d->console = console;
	d->lookahead = 16384;
	d->show = 20;
	d->context = 3;
	enum bc_exit code = read_arguments(&w, argc, argv);
	if (code == BC_EXIT_OK)
		code = run(d, &w);
	free(d->a.lines);
	free(d->b.lines);
	free(d->before);
	free(d);
	return code;
}
