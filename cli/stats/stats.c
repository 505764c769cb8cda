/* `buscap stats`: reads a trace once, and passes each batch to the modules that count.
 *
 * Times belong to a clock. It continues across the segments of a recording; a new recording, a new
 * epoch and each file that is not a segment start a new clock. If rates or units differ, the whole
 * trace has no rate.
 *
 * If options select a part (cli/io/selection.h), the figures are those of a trace of it alone. If
 * no option needs the records of segments, the headers of their chunks are counted. */
#include "cli/stats/stats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/io/filter_args.h"
#include "cli/io/no_match.h"
#include "cli/io/operands.h"
#include "cli/io/selection.h"
#include "cli/term/commands.h"
#include "cli/term/options.h"
#include "formats/bus/record.h"

/* ---- counting */

static void set_hz(struct bc_stats *s)
{
	uint64_t hz = s->options.clock_hz != 0 ? s->options.clock_hz : s->source_hz;

	if (s->intervals.references != 0 && hz != s->clock_hz)
		s->is_hz_mixed = true;
	s->clock_hz = s->is_hz_mixed ? 0 : hz;
}

static void add_plain(struct bc_stats *s, const struct bc_batch *batch)
{
	uint32_t time = bc_le32(batch->run.records + 8);
	uint64_t tick = batch->run.tick + (time != BC_TIME_NONE ? time : 0);

	set_hz(s);
	bc_interval_stats_records(&s->intervals, batch->run.records, batch->run.count, tick);
}

/* Adds records one by one, each to the windows of ticks too. */
static void add_timed(struct bc_stats *s, struct bc_batch one)
{
	struct bc_record_run run = one.run;
	struct bc_entry reference;

	while (run.count != 0) {
		one.run = run;
		one.run.count = 1;
		add_plain(s, &one);
		bc_footprint_at(&s->windows, s->intervals.elapsed);
		(void)bc_record_run_entries(&run, &reference, 1);
		bc_footprint_reference(&s->windows, &reference);
	}
}

static void add_records(struct bc_stats *s, const struct bc_batch *batch)
{
	if (batch->run.count != 0)
		bc_footprint_records(&s->footprint, batch->run.records, batch->run.count);
	if (s->options.windows_are_ticks)
		add_timed(s, *batch);
	else if (batch->run.count != 0)
		add_plain(s, batch);
	s->counts.kinds[BC_ENTRY_REFERENCE] += batch->run.count;
	bc_tally_records(&s->tally, batch->run.records, batch->run.count);
}

/* Counts a reference by the name of its address. */
static int add_name(struct bc_stats *s, unsigned type, uint64_t addr)
{
	struct bc_name name;

	if (bc_name_map_find(s->options.names, bc_is_port_access(type), addr, &name))
		return bc_string_counter_add(&s->names,
			(struct bc_text){.at = name.text, .bytes = (uint32_t)strlen(name.text)});
	s->unnamed++;
	return 0;
}

static int add_names(struct bc_stats *s, const struct bc_batch *batch)
{
	int rc = 0;

	for (size_t i = 0; s->options.names != NULL && i < batch->run.count && rc == 0; i++) {
		const uint8_t *record = batch->run.records + i * BC_RECORD_BYTES;
		rc = add_name(s, record[4], bc_le32(record));
	}
	return rc;
}

static void add_time(struct bc_stats *s, const struct bc_entry *entry)
{
	if (s->has_clock && entry->epoch != s->epoch)
		bc_interval_stats_start(&s->intervals);
	s->has_clock = true;
	s->epoch = entry->epoch;
	set_hz(s);
	s->is_unit_mixed |= s->intervals.references != 0 && entry->unit != s->unit;
	s->unit = entry->unit;
	if (entry->has_delta && entry->delta == BC_TIME_NONE && entry->is_inexact)
		bc_interval_stats_break(&s->intervals);
	bc_interval_stats_tick(&s->intervals, entry->tick);
}

static int add_entry(struct bc_stats *s, const struct bc_entry *entry)
{
	struct bc_entry references[BC_REFERENCES_MAX];
	size_t n = bc_entry_references(references, entry);

	for (size_t i = 0; i < n; i++) {
		bc_tally_reference(&s->tally, &references[i]);
		if ((references[i].traits & BC_TRAIT_TIME) != 0)
			add_time(s, &references[i]);
		bc_footprint_reference(&s->footprint, &references[i]);
		if (s->options.windows_are_ticks && s->intervals.references != 0) {
			bc_footprint_at(&s->windows, s->intervals.elapsed);
			bc_footprint_reference(&s->windows, &references[i]);
		}
		if (s->options.names != NULL &&
			add_name(s, references[i].type, references[i].addr) != 0)
			return -ENOMEM;
	}
	if (entry->kind == BC_ENTRY_EVENT && entry->note.event.kind == BC_EVENT_GAP)
		bc_interval_stats_break(&s->intervals);
	return bc_entry_counts_add(&s->counts, entry);
}

static int add_batch(struct bc_stats *s, const struct bc_batch *batch)
{
	add_records(s, batch);
	int rc = add_names(s, batch);
	for (size_t i = 0; i < batch->count && rc == 0; i++)
		rc = add_entry(s, &batch->entries[i]);
	return rc;
}

/* The first and the last record of a chunk have the time of all. */
static void add_chunk_time(struct bc_stats *s, const struct bc_chunk_info *info)
{
	add_time(s, &(struct bc_entry){.epoch = info->epoch, .tick = info->first_tick});
	if (info->records == 1)
		return;
	add_time(s, &(struct bc_entry){.epoch = info->epoch, .tick = info->last_tick});
	s->intervals.references += info->records - 2;
	s->intervals.span.references += info->records - 2;
}

/* Counts a batch of a segment, of which records are read only if they are needed. */
static int add_headers(struct bc_stats *s, const struct bc_batch *batch)
{
	const struct bc_chunk_info *info = batch->chunk_info;
	const struct bc_record_run *run = &batch->run;
	int rc = 0;

	if (info != NULL && run->count != 0) {
		if (run->number == info->first_record)
			add_chunk_time(s, info);
		bc_page_stats_add(&s->pages, run);
	}
	s->tally.references += run->count;
	s->counts.kinds[BC_ENTRY_REFERENCE] += run->count;
	for (size_t i = 0; i < batch->count && rc == 0; i++)
		rc = bc_entry_counts_add(&s->counts, &batch->entries[i]);
	return rc;
}

/* ---- a selection */

static bool needs_records(void *selection, const struct bc_chunk *chunk)
{
	struct bc_stats *s = ((struct bc_selection *)selection)->context;

	return bc_page_stats_need_records(&s->pages, chunk);
}

static bool add_selected(void *context, const struct bc_entry *entries, size_t count)
{
	return add_batch(context, &(struct bc_batch){.entries = entries, .count = count}) == 0;
}

/* The first record of a run may have its tick from an anchor. The others have deltas. */
static bool add_selected_run(void *context, struct bc_record_run run)
{
	struct bc_entry first;
	size_t n = bc_record_run_entries(&run, &first, 1);

	return add_selected(context, &first, n) &&
	       add_batch(context, &(struct bc_batch){.run = run}) == 0;
}

/* Counts the selected part of a batch. A new recording has another clock. The drift is that of all
 * chunks that may contain a match. */
static int select_batch(
	struct bc_stats *s, struct bc_selection *selection, const struct bc_batch *batch)
{
	const struct bc_chunk_info *info = batch->chunk_info;
	const struct bc_record_run *run = &batch->run;

	if (info != NULL && info->recording_tag != s->tag) {
		bc_interval_stats_start(&s->intervals);
		s->has_clock = false;
		s->tag = info->recording_tag;
	}
	if (s->options.is_full ? !bc_selection_add(selection, batch) : add_headers(s, batch) != 0)
		return -ENOMEM;
	if (info != NULL && run->count != 0 && run->number == info->first_record &&
		!run->is_inexact)
		bc_drift_add(&s->drift, info->recording_tag, info->epoch,
			s->options.clock_hz != 0 ? s->options.clock_hz : s->source_hz,
			info->first_tick, info->wall_ns);
	return 0;
}

/* Reads the trace, or what is selected. Returns 0 or -ENOMEM. trace->exit has other errors. */
static int count_trace(struct bc_stats *s, struct bc_trace *trace, struct bc_selection *selection)
{
	struct bc_batch batch;

	while (bc_trace_next(trace, &batch)) {
		const struct bc_segment_header *header = bc_reader_header(trace->reader);
		s->source_hz = header != NULL ? header->clock_hz : 0;
		/* Each file that is not a segment has its own clock. */
		if (trace->next != s->file && trace->format != BC_FORMAT_SEGMENT) {
			bc_interval_stats_start(&s->intervals);
			s->has_clock = false;
		}
		s->file = trace->next;
		int rc = select_batch(s, selection, &batch);
		if (rc != 0)
			return rc;
	}
	bc_tally_settle(&s->tally);
	bc_footprint_finish(&s->footprint);
	if (s->options.windows_are_ticks && s->intervals.references != 0) {
		uint64_t ticks = s->intervals.elapsed;
		bc_footprint_at(&s->windows, ticks + (ticks != UINT64_MAX)); /* the end */
		bc_footprint_finish(&s->windows);
	}
	if (!s->options.is_full) {
		bc_page_stats_finish(&s->pages, &s->footprint);
		s->footprint.others = s->tally.references - s->footprint.references;
	}
	bc_interval_stats_start(&s->intervals);
	bc_entry_counts_sort(&s->counts);
	bc_string_counter_sort(&s->names);
	return 0;
}

uint64_t bc_stats_entries(const struct bc_stats *s)
{
	uint64_t sum = 0;

	for (unsigned kind = 0; kind < BC_ENTRY_KINDS; kind++)
		sum += kind != BC_ENTRY_EVENT ? s->counts.kinds[kind] : 0;
	return sum;
}

double bc_stats_hz(const struct bc_stats *s)
{
	static const double units[BC_UNITS] = {
		[BC_UNIT_NS] = 1e9, [BC_UNIT_PS] = 1e12, [BC_UNIT_US] = 1e6};

	if (s->intervals.references == 0 || s->is_unit_mixed || s->is_hz_mixed)
		return 0;
	return units[s->unit] != 0 ? units[s->unit] : (double)s->clock_hz;
}

/* ---- the command */

enum {
	OPTION_AS = 1000,
	OPTION_FULL,
	OPTION_LINE,
	OPTION_PAGE,
	OPTION_MEMORY,
	OPTION_IDLE,
	OPTION_BURST,
	OPTION_CLOCK_HZ,
	OPTION_COMPARE,
	OPTION_MISS_RATIO,
	OPTION_TOP,
	OPTION_WORKING_SET,
};

static const struct bc_usage_option options[] = {
	{'I', "input-format", "FMT", "format-read",
		"input format and options, such as laplace:endian=big (default: detected)"},
	{'j', "json", NULL, NULL, "print one JSON object"},
	{OPTION_AS, "as", "cis501", "choice:cis501",
		"print the same four lines as the CIS 501 course's reader of micro-op traces"},
	{OPTION_COMPARE, "compare", NULL, NULL,
		"print the figures of two runs, each a FILE, DIR or ID, and their differences"},
	{OPTION_FULL, "full", NULL, NULL,
		"read the records of segments, too; options that need them imply it"},
	{OPTION_LINE, "line", "SIZE", "size", "bytes per line, a power of two (default 32)"},
	{OPTION_PAGE, "page", "SIZE", "size", "bytes per page, a power of two (default 4KiB)"},
	{OPTION_MEMORY, "memory", "SIZE", "size",
		"memory limit for footprint and reuse (default 1GB); counts that exceed it are "
		"marked \"at least\""},
	{OPTION_WORKING_SET, "working-set", "[ticks]", "choice:ticks",
		"print the average number of lines and pages touched in 2^n references, or ticks"},
	{OPTION_MISS_RATIO, "miss-ratio", NULL, NULL,
		"print how often fully associative LRU caches of 2^n lines miss"},
	{OPTION_IDLE, "idle", "TICKS", "number",
		"count longer intervals between references as idle (default 1000)"},
	{OPTION_BURST, "burst", "TICKS", "number",
		"longest interval between references of a burst (default 8)"},
	{OPTION_CLOCK_HZ, "clock-hz", "N", "number",
		"ticks per second, overriding the trace's rate"},
	BC_FILTER_OPTIONS,
	BC_NAME_OPTIONS,
	{OPTION_TOP, "top", "N", "number",
		"print at most N rows per table (default 20); JSON has all"},
	{0},
};

const struct bc_usage bc_stats_usage = {
	.name = "stats",
	.operands = "[FILE|DIR|ID]...",
	.kind = "recording",
	.summary = "print statistics of a trace: totals, mix, footprint, reuse, time",
	.text = "Prints statistics of one or more files of the same format, taken together: totals "
		"by type, size, memory type and processor, instruction mix, footprint, reuse, "
		"time. Of segments, it prints what the headers of their chunks contain, at once; "
		"the rest needs --full. Without a file, or with \"-\", reads standard input. "
		"Options that select a part make it the trace, as if cut with them before. "
		"docs/stats.md defines all figures.",
	.options = options,
	.more = "Reuse is the share of references to a line that was touched at most N references "
		"earlier.",
	.exits = "0 ok, 1 failed, 2 wrong usage, 3 damaged or malformed input: the intact parts "
		 "were counted. Of segments, --full also checks the records.",
	.example = "buscap stats --json *.byu.lz4 | jq .time.seconds",
};

struct stats_args {
	enum bc_format from;
	struct bc_reader_options reader;
	struct bc_stats_options stats;
	struct bc_selection selection;
	bool is_json;
	bool is_cis501;
	bool is_compared;
	json_t **kept; /* gets the JSON object, which is not printed; NULL: it is printed */
	uint64_t top;
	enum bc_exit exit; /* if names can't be read */
};

#define MAX_POWER (UINT64_C(1) << 63)

/* Reads a power of two. */
static bool parse_block(const struct bc_console *console, const char *option, uint64_t *bytes)
{
	if (!bc_option_size(console, option, 1, bytes))
		return false;
	if ((*bytes & (*bytes - 1)) == 0)
		return true;
	uint64_t power = 1;
	while (power < *bytes && power < MAX_POWER)
		power *= 2;
	bc_print_error(
		console, NULL, "%s %s: not a power of two; try %" PRIu64, option, optarg, power);
	return false;
}

static bool parse_as(const struct bc_console *console, struct stats_args *w)
{
	w->is_cis501 = strcmp(optarg, "cis501") == 0;
	if (!w->is_cis501)
		bc_print_error(console, NULL, "--as %s: must be cis501", optarg);
	return w->is_cis501;
}

static bool parse_stats_option(const struct bc_console *console, int letter, struct stats_args *w)
{
	w->stats.is_full |= letter != 'I' && letter != 'j' && letter != OPTION_CLOCK_HZ &&
			    letter != OPTION_TOP && letter != OPTION_COMPARE;
	switch (letter) {
	case 'I':
		return bc_option_read_format(console, "-I", &w->from, &w->reader.format);
	case 'j':
		w->is_json = true;
		return true;
	case OPTION_AS:
		return parse_as(console, w);
	case OPTION_COMPARE:
		w->is_compared = true;
		return true;
	case OPTION_FULL:
		return true;
	case OPTION_LINE:
		return parse_block(console, "--line", &w->stats.footprint.line_bytes);
	case OPTION_PAGE:
		return parse_block(console, "--page", &w->stats.footprint.page_bytes);
	case OPTION_MEMORY:
		return bc_option_size(console, "--memory", 0, &w->stats.footprint.memory_bytes);
	case OPTION_WORKING_SET:
		w->stats.footprint.has_working_set = true;
		w->stats.windows_are_ticks = optarg != NULL;
		if (optarg == NULL || strcmp(optarg, "ticks") == 0)
			return true;
		bc_print_error(console, NULL, "--working-set=%s: must be ticks", optarg);
		return false;
	case OPTION_MISS_RATIO:
		w->stats.footprint.has_miss_ratio = true;
		return true;
	case OPTION_IDLE:
		return bc_option_count(console, "--idle", 0, UINT64_MAX, &w->stats.idle_ticks);
	case OPTION_BURST:
		return bc_option_count(console, "--burst", 0, UINT64_MAX, &w->stats.burst_ticks);
	case OPTION_CLOCK_HZ:
		return bc_option_count(console, "--clock-hz", 1, UINT64_MAX, &w->stats.clock_hz);
	case OPTION_TOP:
		return bc_option_count(console, "--top", 0, UINT64_MAX, &w->top);
	case BC_NAME_OPT_MAP:
	case BC_NAME_OPT_SYMBOLS:
		w->exit = bc_name_args_add(&w->stats.names, console, letter);
		return w->exit == BC_EXIT_OK;
	default:
		return bc_filter_args_option(&w->selection.args, console, letter);
	}
}

static bool check_args(const struct bc_console *console, struct stats_args *w, enum bc_exit *exit)
{
	const struct bc_footprint_options *f = &w->stats.footprint;

	if ((w->is_json || w->is_compared) && w->is_cis501) {
		bc_print_usage_error(console, "--as excludes --json and --compare");
		return false;
	}
	if (f->page_bytes >= f->line_bytes)
		return bc_filter_args_finish(&w->selection.args, console, w->stats.names, exit);
	bc_print_error(console, NULL,
		"--page: a page of %" PRIu64 " bytes is smaller than a line of %" PRIu64,
		f->page_bytes, f->line_bytes);
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

	if (w->kept != NULL) {
		*w->kept = bc_stats_json(stats);
		return *w->kept != NULL ? BC_EXIT_OK : bc_print_no_memory(console);
	}
	if (!bc_output_open(&output, console))
		return BC_EXIT_FAILED;
	if (w->is_cis501)
		print_cis501(&output, stats);
	else if (w->is_json)
		bc_output_json_value(&output, bc_stats_json(stats));
	else
		ok = bc_stats_print(&output, stats, w->top);
	if (!ok)
		bc_print_no_memory(console);
	return bc_exit_worse(ok ? BC_EXIT_OK : BC_EXIT_FAILED, bc_output_close(&output, console));
}

static enum bc_exit count_and_print(
	const struct bc_console *console, struct stats_args *w, struct bc_trace *trace)
{
	struct bc_stats *s = calloc(1, sizeof(*s)); /* too large for the stack */
	enum bc_exit code;

	if (s == NULL)
		return bc_print_no_memory(console);
	s->options = w->stats;
	s->options.is_full |= trace->format != BC_FORMAT_SEGMENT;
	s->format = trace->format;
	s->format_name = bc_trace_format_name(trace);
	s->files = trace->count;
	s->file = trace->next;
	w->selection.context = s;
	bc_interval_stats_init(&s->intervals, w->stats.idle_ticks, w->stats.burst_ticks);
	struct bc_footprint_options windows = w->stats.footprint;
	struct bc_footprint_options footprint = w->stats.footprint;
	windows.has_miss_ratio = false;
	footprint.has_working_set &= !w->stats.windows_are_ticks;
	int rc = s->options.is_full ? bc_footprint_open(&s->footprint, &footprint)
				    : bc_page_stats_open(&s->pages);
	if (rc == 0 && w->stats.windows_are_ticks)
		rc = bc_footprint_open(&s->windows, &windows);
	if (rc == 0 && count_trace(s, trace, &w->selection) == 0)
		code = bc_exit_worse(trace->exit, print_stats(console, w, s));
	else
		code = bc_print_no_memory(console);
	bc_entry_counts_free(&s->counts);
	bc_string_counter_free(&s->names);
	bc_footprint_close(&s->footprint);
	bc_footprint_close(&s->windows);
	bc_page_stats_close(&s->pages);
	free(s);
	return code;
}

static void prepare_selection(
	const struct bc_console *console, struct stats_args *w, struct bc_trace *trace)
{
	struct bc_selection *selection = &w->selection;

	selection->console = console;
	selection->trace = trace;
	selection->to = BC_FORMAT_SEGMENT; /* holds all deltas */
	selection->add = add_selected;
	selection->add_run = add_selected_run;
	bc_selection_read(selection, &w->reader);
	w->reader.needs_records = w->stats.is_full ? NULL : needs_records;
}

static enum bc_exit run_stats(
	const struct bc_console *console, struct stats_args *w, const char **paths, int count)
{
	const struct bc_filter_args *args = &w->selection.args;
	struct bc_trace trace;
	char text[BC_NO_MATCH_MAX];

	prepare_selection(console, w, &trace);
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
	if (!bc_filter_args_check(args, console, &trace)) {
		code = BC_EXIT_USAGE;
		goto out;
	}
	bc_trace_show_progress(&trace);
	code = count_and_print(console, w, &trace);
	if (args->given != 0 && w->selection.kept == 0 && code != BC_EXIT_FAILED)
		bc_print_error(console, NULL, "no record matches%s",
			bc_no_match_text(
				text, console, args, paths, count, w->from, &w->reader.format));
out:
	bc_trace_close(&trace);
	return code;
}

static enum bc_exit read_and_run(
	const struct bc_console *console, struct stats_args *w, const char *const *words, int count)
{
	struct bc_operands operands;
	struct bc_files files;
	enum bc_exit code = bc_operands_read(&operands, &files, console, words, count,
		BC_FILES_SORTED | BC_FILES_CHECKED | BC_FILES_STDIN);

	if (code == BC_EXIT_OK)
		code = run_stats(console, w, (const char **)files.paths, files.count);
	code = bc_exit_worse(code, files.exit);
	bc_files_free(&files);
	bc_operands_close(&operands);
	return code;
}

/* Reads each of two operands as a trace. */
static enum bc_exit compare_runs(
	const struct bc_console *console, struct stats_args *w, const char *const *words, int count)
{
	json_t *runs[2] = {NULL};
	enum bc_exit code = BC_EXIT_OK;
	struct bc_output output;

	if (count != 2)
		return bc_print_usage_error(console, "--compare needs two operands, each a run");
	for (int i = 0; i < 2; i++) {
		struct stats_args run = *w;
		run.kept = &runs[i];
		code = bc_exit_worse(code, read_and_run(console, &run, &words[i], 1));
	}
	if (runs[0] != NULL && runs[1] != NULL && bc_output_open(&output, console)) {
		for (int i = 0; i < 2 && !w->is_json; i++) {
			bc_output_format(&output, "%c: ", "AB"[i]);
			bc_output_safe(&output, words[i]);
			bc_output_text(&output, "\n", 1);
		}
		if (!bc_stats_compare(&output, runs[0], runs[1], w->is_json, w->top))
			code = bc_print_no_memory(console);
		code = bc_exit_worse(code, bc_output_close(&output, console));
	}
	json_decref(runs[0]);
	json_decref(runs[1]);
	return code;
}

static struct stats_args default_args(void)
{
	return (struct stats_args){
		.reader = {.format = bc_format_options_default(), .index_fd = -1},
		.stats = {.footprint = {.line_bytes = 32,
				  .page_bytes = 4096,
				  .memory_bytes = 1000000000},
			.idle_ticks = 1000,
			.burst_ticks = 8},
		.top = 20,
	};
}

enum bc_exit bc_stats_read(json_t **json, bool is_miss_ratio, const struct bc_console *console,
	const struct bc_filter_args *args, enum bc_format from,
	const struct bc_format_options *format, const struct bc_files *files)
{
	struct stats_args w = default_args();

	w.from = from;
	w.reader.format = *format;
	w.selection.args = *args;
	w.stats.is_full = true;
	w.stats.footprint.has_miss_ratio = is_miss_ratio;
	w.stats.footprint.has_working_set = !is_miss_ratio;
	w.kept = json;
	*json = NULL;
	return run_stats(console, &w, (const char **)files->paths, files->count);
}

enum bc_exit bc_cmd_stats(const struct bc_console *console, int argc, char **argv)
{
	struct stats_args w = default_args();
	struct bc_options o;
	int letter;

	enum bc_exit code = BC_EXIT_USAGE;

	bc_filter_args_init(&w.selection.args);
	bc_options_start(&o, console, &bc_stats_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1)
		if (!parse_stats_option(console, letter, &w)) {
			bc_name_map_close(w.stats.names);
			return w.exit != BC_EXIT_OK ? w.exit : o.exit;
		}
	const char *const *words = (const char *const *)argv + optind;
	if (check_args(console, &w, &code))
		code = (w.is_compared ? compare_runs : read_and_run)(
			console, &w, words, argc - optind);
	bc_name_map_close(w.stats.names);
	return code;
}
