#include "cli/term/commands.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/io/filter_args.h"
#include "cli/io/operands.h"
#include "cli/stats/stats_gather.h"
#include "cli/stats/stats_print.h"
#include "cli/term/options.h"

enum {
	OPTION_AS = 1000,
	OPTION_TOTALS,
	OPTION_LINE,
	OPTION_PAGE,
	OPTION_MEMORY,
	OPTION_IDLE,
	OPTION_BURST,
	OPTION_CLOCK_HZ,
	OPTION_TOP,
};

static const struct bc_usage_option options[] = {
	{'I', "input-format", "FMT", "format-read",
		"input format and options, such as laplace:endian=big (default: detected)"},
	{'j', "json", NULL, NULL, "print one JSON object"},
	{OPTION_AS, "as", "cis501", "choice:cis501",
		"print the same four lines as the CIS 501 course's reader of micro-op traces"},
	{OPTION_TOTALS, "totals", NULL, NULL,
		"omit footprint, reuse, intervals, idles and bursts; several times as fast"},
	{OPTION_LINE, "line", "N", "number", "bytes per line, a power of two (default 32)"},
	{OPTION_PAGE, "page", "N", "number", "bytes per page, a power of two (default 4096)"},
	{OPTION_MEMORY, "memory", "BYTES", "number",
		"memory limit for footprint and reuse, also with k, M or G: 1k is 1000 (default "
		"1G); counts that exceed it are marked \"at least\""},
	{OPTION_IDLE, "idle", "TICKS", "number",
		"count longer intervals between references as idle (default 1000)"},
	{OPTION_BURST, "burst", "TICKS", "number",
		"longest interval between references of a burst (default 8)"},
	{OPTION_CLOCK_HZ, "clock-hz", "N", "number",
		"ticks per second, overriding that of the trace"},
	BC_NAME_OPTIONS,
	{OPTION_TOP, "top", "N", "number",
		"print at most N rows per table (default 20); JSON has all"},
	{0},
};

const struct bc_usage bc_stats_usage = {
	.name = "stats",
	.operands = "[FILE|DIR|ID]...",
	.kind = "file",
	.summary = "print statistics of a trace: totals, mix, footprint, reuse, time",
	.text = "Prints statistics of one or more files of the same format, taken together: totals "
		"by type, size, memory type and processor, instruction mix, footprint, reuse, "
		"time. "
		"Without a file, or with \"-\", reads standard input. docs/stats.md defines all "
		"figures.",
	.options = options,
	.more = "Reuse is the share of references to a line that was touched at most N references "
		"earlier.",
	.exits = "0 ok, 1 failed, 2 wrong usage, 3 damaged or malformed input: the intact parts "
		 "were counted.",
	.example = "buscap stats --json *.byu.lz4 | jq .time.seconds",
};

struct stats_args {
	enum bc_format from;
	struct bc_reader_options reader;
	struct bc_stats_options stats;
	bool is_json;
	bool is_cis501;
	uint64_t top;
	enum bc_exit exit; /* if names can't be read */
};

/* Reads a power of two. */
static bool read_block(const struct bc_console *console, const char *option, uint64_t *bytes)
{
	if (!bc_option_u64(console, option, bytes))
		return false;
	if (*bytes != 0 && (*bytes & (*bytes - 1)) == 0)
		return true;
	bc_print_error(console, NULL, "%s %s: not a power of two; try 64", option, optarg);
	return false;
}

static bool read_as(const struct bc_console *console, struct stats_args *w)
{
	w->is_cis501 = strcmp(optarg, "cis501") == 0;
	if (!w->is_cis501)
		bc_print_error(console, NULL, "--as %s: must be cis501", optarg);
	w->stats.is_totals = true; /* more than it prints */
	return w->is_cis501;
}

static bool read_clock(const struct bc_console *console, uint64_t *hz)
{
	if (!bc_option_count(console, "--clock-hz", hz))
		return false;
	if (*hz == 0)
		bc_print_error(console, NULL, "--clock-hz 0: must be at least 1");
	return *hz != 0;
}

static bool read_option(const struct bc_console *console, int letter, struct stats_args *w)
{
	switch (letter) {
	case 'I':
		return bc_option_read_format(console, "-I", &w->from, &w->reader.format);
	case 'j':
		w->is_json = true;
		return true;
	case OPTION_AS:
		return read_as(console, w);
	case OPTION_TOTALS:
		w->stats.is_totals = true;
		return true;
	case OPTION_LINE:
		return read_block(console, "--line", &w->stats.footprint.line_bytes);
	case OPTION_PAGE:
		return read_block(console, "--page", &w->stats.footprint.page_bytes);
	case OPTION_MEMORY:
		return bc_option_count(console, "--memory", &w->stats.footprint.memory_bytes);
	case OPTION_IDLE:
		return bc_option_count(console, "--idle", &w->stats.idle_ticks);
	case OPTION_BURST:
		return bc_option_count(console, "--burst", &w->stats.burst_ticks);
	case OPTION_CLOCK_HZ:
		return read_clock(console, &w->stats.clock_hz);
	case OPTION_TOP:
		return bc_option_count(console, "--top", &w->top);
	case BC_NAME_OPT_MAP:
	case BC_NAME_OPT_SYMBOLS:
		w->exit = bc_name_args_add(&w->stats.names, console, letter);
		return w->exit == BC_EXIT_OK;
	default:
		return false;
	}
}

static bool check_args(const struct bc_console *console, const struct stats_args *w)
{
	const struct bc_footprint_options *f = &w->stats.footprint;

	if (w->is_json && w->is_cis501) {
		bc_print_usage_error(console, "--json and --as can't be combined");
		return false;
	}
	if (f->page_bytes >= f->line_bytes)
		return true;
	bc_print_error(console, NULL,
		"a page of %" PRIu64 " bytes is smaller than a line of %" PRIu64, f->page_bytes,
		f->line_bytes);
	return false;
}

/* Prints the same lines as the course's reader, which counts every line as a record. */
static void print_cis501(struct bc_output *output, const struct bc_stats *stats)
{
	uint64_t uops = stats->counts.kinds[BC_ENTRY_UOP];

	bc_output_format(output,
		"Processing trace...\nProcessed %" PRIu64 " trace records.\nMicro-ops: %" PRIu64
		"\nMacro-ops: %" PRIu64 "\n",
		uops, uops, stats->counts.macro_ops);
}

static enum bc_exit print_stats(
	const struct bc_console *console, const struct stats_args *w, const struct bc_stats *stats)
{
	struct bc_output output;
	bool ok = true;

	if (!bc_output_open(&output, console))
		return BC_EXIT_FAILED;
	if (w->is_cis501)
		print_cis501(&output, stats);
	else if (w->is_json)
		ok = bc_output_json_value(&output, bc_stats_json(stats));
	else
		ok = bc_stats_print(&output, stats, w->top);
	if (!ok)
		bc_print_no_memory(console);
	return bc_exit_worse(ok ? BC_EXIT_OK : BC_EXIT_FAILED, bc_output_close(&output, console));
}

static enum bc_exit run_stats(
	const struct bc_console *console, struct stats_args *w, const char **paths, int count)
{
	struct bc_trace trace;
	struct bc_stats *stats = NULL;
	enum bc_exit code = bc_trace_open(&trace, console, paths, count, w->from, &w->reader);

	if (code != BC_EXIT_OK)
		goto out;
	if (w->is_cis501 && trace.format != BC_FORMAT_CIS501) {
		bc_print_error(console, NULL,
			"--as cis501: the format is %s, which has no micro-ops",
			bc_format_name(trace.format));
		code = BC_EXIT_USAGE;
		goto out;
	}
	bc_trace_show_progress(&trace, NULL);
	stats = bc_stats_new(&w->stats);
	if (stats == NULL || bc_stats_gather(stats, &trace) != 0) {
		code = bc_print_no_memory(console);
		goto out;
	}
	code = bc_exit_worse(trace.exit, print_stats(console, w, stats));
out:
	bc_stats_free(stats);
	bc_trace_close(&trace);
	return code;
}

static enum bc_exit read_and_run(
	const struct bc_console *console, struct stats_args *w, int argc, char **argv)
{
	struct bc_operands operands;
	struct bc_files files;
	enum bc_exit code = bc_operands_read(&operands, &files, console,
		(const char *const *)argv + optind, argc - optind,
		BC_FILES_SORTED | BC_FILES_CHECKED | BC_FILES_STDIN);

	if (code == BC_EXIT_OK)
		code = run_stats(console, w, (const char **)files.paths, files.count);
	code = bc_exit_worse(code, files.exit);
	bc_files_free(&files);
	bc_operands_close(&operands);
	return code;
}

int bc_cmd_stats(const struct bc_console *console, int argc, char **argv)
{
	struct stats_args w = {
		.reader = {.format = bc_format_options_default(),
			.as_records = true,
			.index_fd = -1},
		.stats = {.footprint = {.line_bytes = 32,
				  .page_bytes = 4096,
				  .memory_bytes = 1000000000},
			.idle_ticks = 1000,
			.burst_ticks = 8},
		.top = 20,
	};
	struct bc_options o;
	int letter;

	enum bc_exit code = BC_EXIT_USAGE;

	bc_options_start(&o, console, &bc_stats_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1)
		if (!read_option(console, letter, &w)) {
			bc_name_map_close(w.stats.names);
			return (int)(w.exit != BC_EXIT_OK ? w.exit : o.exit);
		}
	if (check_args(console, &w))
		code = read_and_run(console, &w, argc, argv);
	bc_name_map_close(w.stats.names);
	return (int)code;
}
