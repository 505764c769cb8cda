#include "cli/diff_options.h"

#include <stdio.h>
#include <string.h>

#include "cli/diff_class.h"
#include "cli/options.h"
#include "cli/order.h"
#include "formats/compare.h"

#define LOOKAHEAD_MIN 16u
#define LOOKAHEAD_MAX 1000000u
#define LINES_MAX     100000u

static const char help[] =
	"usage: buscap diff [OPTION]... A B [MORE OF B]...\n"
	"\n"
	"Compares two traces, of one format or of two, and lists where they differ. \"-\" is "
	"standard input.\n"
	"A is the first file; B is the second, or all others if they are the segments of one "
	"recording.\n"
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

/* What a set's bits are called. */
struct names {
	uint64_t (*by_name)(const char *, size_t);
	const char *(*name)(uint64_t);
	unsigned count;
};

static const struct names classes = {
	bc_diff_class_by_name, bc_diff_class_name, BC_DIFF_CLASS_COUNT};
static const struct names fields = {bc_field_by_name, bc_field_name, BC_FIELD_COUNT};

static void complain_name(const struct bc_console *console, const char *option,
	const struct names *names, const char *name, size_t bytes)
{
	char list[512] = "";
	size_t used = 0;

	for (unsigned i = 0; i < names->count && used < sizeof(list); i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
			i == 0                  ? ""
			: i + 1 == names->count ? " and "
						: ", ",
			names->name(UINT64_C(1) << i));
	bc_complain(console, NULL, "%s %s: there is no \"%.*s\"; there are %s", option, optarg,
		(int)bytes, name, list);
}

/* Reads "name,name" into a set of bits. */
static bool read_names(const struct bc_console *console, const char *option,
	const struct names *names, uint64_t *set)
{
	for (const char *at = optarg;; at++) {
		size_t n = strcspn(at, ",");
		uint64_t bit = names->by_name(at, n);
		if (bit == 0) {
			complain_name(console, option, names, at, n);
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

static bool read_option(const struct bc_console *console, int letter, struct bc_diff_wanted *w)
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
		return read_names(console, "--only", &classes, &w->only);
	case OPTION_FIELDS:
		return read_names(console, "--fields", &fields, &w->fields);
	case OPTION_IGNORE:
		return read_names(console, "--ignore", &fields, &w->ignored);
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

static enum bc_exit read_operands(
	struct bc_diff *d, const struct bc_console *console, int argc, char **argv)
{
	int count = argc - optind;
	const char **paths = (const char **)argv + optind;

	if (count < 2)
		return bc_complain_usage(console, "two traces are wanted");
	d->a.paths = paths;
	d->a.path_count = 1;
	d->b.paths = paths + 1;
	d->b.path_count = count - 1;
	if (count > 2 && !bc_order_is_one_recording(d->b.paths, d->b.path_count))
		return bc_complain_usage(console,
			"two traces are wanted: of more files, all behind the first must be "
			"segments of one recording");
	return bc_check_inputs(console, paths, count);
}

bool bc_diff_read_options(
	struct bc_diff_wanted *w, struct bc_diff *d, int argc, char **argv, enum bc_exit *code)
{
	struct bc_options o = {.console = d->console,
		.argc = argc,
		.argv = argv,
		.brief = "I:w:rl:1n:s:U:jqh",
		.all = options};
	int letter;

	*w = (struct bc_diff_wanted){.diff = d,
		.reader_a = {.format = bc_format_options_default(), .index_fd = -1},
		.reader_b = {.format = bc_format_options_default(), .index_fd = -1},
		.window = 1};
	d->lookahead = 16384;
	d->show = 20;
	d->context = 3;
	*code = BC_EXIT_USAGE;
	while ((letter = bc_options_next(&o)) != -1) {
		if (letter == 'h')
			*code = bc_print_help(d->console, help);
		if (letter == 'h' || !read_option(d->console, letter, w))
			return false;
	}
	*code = read_operands(d, d->console, argc, argv);
	return *code == BC_EXIT_OK;
}
