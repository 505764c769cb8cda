/* A k-way merge. The input whose next entry has the lowest key comes first; the second lowest is
 * its rival. Entries are copied from the first input until its key passes the rival's, and then
 * written as one run. The other keys do not change within a run, so an entry costs one comparison
 * and a run costs one scan of all k inputs: O(n k) at worst, if every entry is from another input
 * than the last. A heap would be O(n log k), which gains little for few inputs.
 *
 * The merge is stable and never reorders an input: an entry that is earlier than its predecessor is
 * treated as if it had the same time. Memory is one batch per input and one run. */
#include "cli/term/commands.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/io/operands.h"
#include "cli/io/target.h"
#include "cli/io/trace.h"
#include "cli/term/options.h"
#include "formats/bus/tick_time.h"

/* ---- The inputs: open traces whose next entries have keys to order by. The caller consumes an
 * entry by advancing `at` and `left`. */

/* The words of --by. */
enum {
	BY_TICK, /* epoch and tick: the inputs share one clock */
	BY_WALL, /* time of day, in ns */
	BY_UNKNOWN,
};

/* The order of entries. */
struct merge_key {
	uint32_t epoch;
	uint64_t time; /* tick, or ns since 1970 with the sign bit inverted */
};

static inline bool key_is_less(struct merge_key a, struct merge_key b)
{
	return a.epoch != b.epoch ? a.epoch < b.epoch : a.time < b.time;
}

struct merge_input {
	const char **paths; /* the caller's */
	int count;
	struct bc_trace trace;
	uint64_t clock_hz; /* used if the trace has no clock rate; 0: unknown */
	const struct bc_entry *at;
	size_t left;
	struct merge_key key; /* of the entry at `at` */
	bool is_over;
	bool has_key;        /* `key` is set: an entry had a time */
	bool no_clock;       /* a time of day was needed but unknown */
	uint64_t disorders;  /* entries with an earlier time than their predecessor */
	uint64_t most_early; /* the largest such difference */
};

#define NS_PER_S 1000000000u
#define SIGN     (UINT64_C(1) << 63)

/* Reads until there is an entry, or sets is_over at the end. */
static void fill_input(struct merge_input *in)
{
	struct bc_batch batch;

	while (in->left == 0 && !in->is_over) {
		in->is_over = !bc_trace_next(&in->trace, &batch);
		if (in->is_over)
			break;
		in->at = batch.entries;
		in->left = batch.count;
	}
}

/* The time of day of a tick in ns, with the sign bit inverted for unsigned comparison. */
static uint64_t wall_of(struct merge_input *in, uint64_t tick)
{
	const struct bc_moment *m = &in->trace.moment;
	struct bc_clock_point clock = m->clock;
	int64_t ns;

	clock.clock_hz = clock.clock_hz != 0 ? clock.clock_hz : in->clock_hz;
	if (!m->is_known || !bc_tick_time(&ns, clock, tick)) {
		in->no_clock = true;
		return SIGN;
	}
	return (uint64_t)ns ^ SIGN;
}

/* Sets the key of the next entry. An entry without a time, or with an earlier time than its
 * predecessor, gets the predecessor's key. */
static void peek_input(struct merge_input *in, unsigned by)
{
	const struct bc_entry *entry = in->at;
	bool is_event = entry->kind == BC_ENTRY_EVENT;
	struct merge_key key = {.epoch = entry->epoch, .time = entry->tick};

	if ((entry->traits & BC_TRAIT_TIME) == 0 &&
		!(is_event && in->trace.format == BC_FORMAT_SEGMENT))
		return;
	if (by == BY_WALL)
		key = (struct merge_key){.time = wall_of(in, entry->tick)};
	if (in->has_key && key_is_less(key, in->key)) {
		/* At a chunk's end, an event has the tick of the previous entry: in order. */
		if (!is_event) {
			uint64_t early = key.epoch == in->key.epoch ? in->key.time - key.time : 0;
			in->disorders++;
			in->most_early = early > in->most_early ? early : in->most_early;
		}
		return;
	}
	in->has_key = true;
	in->key = key;
}

enum { OPTION_BY = 1000, OPTION_CLOCK, OPTION_RENUMBER };

static const struct bc_usage_option options[] = {
	{OPTION_BY, "by", "tick|wall", "choice:tick|wall",
		"order by epoch and tick, if the inputs share a clock; or by time of day (wall), "
		"with ticks in ns from the start. Default: wall for segments of different "
		"recordings, else tick"},
	{OPTION_CLOCK, "clock-hz", "N", "number",
		"ticks per second of recordings that don't contain their clock rate; for --by "
		"wall"},
	{OPTION_RENUMBER, "renumber", "N", "number",
		"add N to the processor numbers of the second input, 2 N to the third input's, and "
		"so on; all must be below N (default: numbers stay)"},
	{'I', "input-format", "FMT", "format-read",
		"input format and options (default: detected); give it once for all inputs, or "
		"once for each, in order"},
	{'O', "output-format", "FMT", "format-write",
		"output format and options (default: what the name of the output ends in, such as "
		".csv, else the input format; for Laplace references and kernel events, one text "
		"with lines of both formats)"},
	BC_CONVERT_ARGS_OPTIONS,
	{0},
};

const struct bc_usage bc_merge_usage = {
	.name = "merge",
	.operands = "FILE|DIR|ID...",
	.kind = "recording",
	.summary = "combine traces, ordered by time",
	.text = "Combines traces into one, ordered by time. Each file is one input; the segments "
		"of a recording are one input together. Entries with equal times are in the order "
		"of the inputs.",
	.options = options,
	.exits = "0 ok, 1 failed, 2 wrong usage, or the inputs do not fit together, 3 damaged or "
		 "malformed input: the intact parts were written.",
	.example = "buscap merge references.txt events.txt -o both.txt",
};

#define MERGE_ENTRIES 256u

/* The value of an -I option. */
struct input_format {
	enum bc_format format;
	struct bc_format_options options;
};

struct merge {
	const struct bc_console *console;
	struct bc_convert_args args;
	struct input_format *formats; /* none, one for all inputs, or one for each */
	size_t format_count;
	unsigned by; /* BY_... */
	uint64_t clock_hz;
	uint64_t renumber; /* 0: keep processor numbers */
	struct merge_input *inputs;
	size_t input_count;
	/* Laplace references and kernel events: `events` shares the output of `target`. */
	bool is_mixed;
	struct bc_target target;
	struct bc_target events;
	bool has_events;
	uint64_t base; /* by wall: time of tick 0 */
	struct bc_moment moment;
	char from_names[1024]; /* the inputs, for the metadata */
	struct bc_entry entries[MERGE_ENTRIES];
};

/* Makes an input of each group of the files. Opens nothing. Returns false if out of memory. */
static bool make_inputs(struct merge *m)
{
	const struct bc_files *files = &m->args.files;

	m->inputs = calloc((size_t)files->count, sizeof(*m->inputs));
	for (int i = 0; m->inputs != NULL && i < files->count; i++) {
		if (i == 0 || files->groups[i] != files->groups[i - 1])
			m->inputs[m->input_count++] = (struct merge_input){
				.clock_hz = m->clock_hz, .paths = (const char **)files->paths + i};
		m->inputs[m->input_count - 1].count++;
	}
	return m->inputs != NULL;
}

/* True if there are several inputs, which are open, each another recording in segments. */
static bool are_recordings(const struct merge *m)
{
	bool is_different = m->input_count > 1;

	for (size_t i = 0; i < m->input_count; i++) {
		const struct bc_trace *a = &m->inputs[i].trace;
		is_different = is_different && a->format == BC_FORMAT_SEGMENT;
		for (size_t j = 0; j < i; j++) {
			const struct bc_trace *b = &m->inputs[j].trace;
			is_different = is_different && (!a->has_header || !b->has_header ||
							       strcmp(a->header.recording,
								       b->header.recording) != 0);
		}
	}
	return is_different;
}

/* Returns the index of the input that comes first, and sets *rival to the second one's. input_count
 * stands for no input. */
static size_t find_first(const struct merge *m, size_t *rival)
{
	size_t none = m->input_count;
	size_t first = none;

	*rival = none;
	for (size_t i = 0; i < m->input_count; i++) {
		const struct merge_input *in = &m->inputs[i];
		if (in->is_over)
			continue;
		if (first == none || key_is_less(in->key, m->inputs[first].key)) {
			*rival = first;
			first = i;
		} else if (*rival == none || key_is_less(in->key, m->inputs[*rival].key)) {
			*rival = i;
		}
	}
	return first;
}

/* Returns true if `first` still comes before `rival`. */
static bool stays_first(const struct merge *m, size_t first, size_t rival)
{
	if (rival == m->input_count)
		return true;
	struct merge_key a = m->inputs[first].key;
	struct merge_key b = m->inputs[rival].key;
	return first < rival ? !key_is_less(b, a) : key_is_less(a, b);
}

/* Sets the options of an input, and returns its format if that is given. */
static enum bc_format format_of(
	const struct merge *m, size_t input, struct bc_reader_options *reader)
{
	const struct input_format *format = m->format_count != 0
						    ? &m->formats[m->format_count == 1 ? 0 : input]
						    : NULL;

	*reader = m->args.reader;
	reader->is_one_of_many = true;
	if (format != NULL)
		reader->format = format->options;
	return format != NULL ? format->format : BC_FORMAT_UNKNOWN;
}

/* Compares the units of the inputs' times, up to two that are unrelated. */
static enum bc_peek_units compare_units(const struct merge *m)
{
	struct bc_peek first = {.unit = BC_UNIT_TICK};
	enum bc_peek_units all = BC_PEEK_SAME;

	for (size_t i = 0; i < m->input_count; i++) {
		struct bc_reader_options reader;
		enum bc_format format = format_of(m, i, &reader);
		struct bc_peek peek = bc_peek(m->console, m->inputs[i].paths[0], format, &reader);
		enum bc_peek_units units = bc_peek_compare_units(first, peek);
		if (units == BC_PEEK_UNRELATED) {
			bc_print_error(m->console, m->inputs[i].paths[0],
				"can't merge times in %s with times in %s", bc_unit_name(peek.unit),
				bc_unit_name(first.unit));
			return units;
		}
		all = units == BC_PEEK_CONVERTIBLE ? units : all;
		first = peek.unit != BC_UNIT_TICK ? peek : first;
	}
	return all;
}

/* Opens the inputs and reads the first entry of each. */
static enum bc_exit open_inputs(struct merge *m)
{
	enum bc_peek_units units = compare_units(m);

	if (units == BC_PEEK_UNRELATED)
		return BC_EXIT_USAGE;
	for (size_t i = 0; i < m->input_count; i++) {
		struct merge_input *in = &m->inputs[i];
		struct bc_reader_options reader;
		enum bc_format format = format_of(m, i, &reader);
		reader.format.in_picoseconds = units == BC_PEEK_CONVERTIBLE;
		enum bc_exit code = bc_trace_open(
			&in->trace, m->console, in->paths, in->count, format, &reader);
		if (code != BC_EXIT_OK)
			return code;
		if ((bc_trace_traits(&in->trace) & BC_TRAIT_TIME) == 0) {
			bc_print_error(m->console, in->paths[0], "%s has no time: can't merge",
				bc_format_name(in->trace.format));
			return BC_EXIT_USAGE;
		}
		fill_input(in);
	}
	return BC_EXIT_OK;
}

/* Chooses the output format if -O is not given. */
static enum bc_exit choose_format(struct merge *m)
{
	enum bc_format first = m->inputs[0].trace.format;
	bool is_one = true;
	bool has_events = false;
	bool all_laplace = true;

	for (size_t i = 0; i < m->input_count; i++) {
		enum bc_format format = m->inputs[i].trace.format;
		is_one = is_one && format == first;
		has_events |= format == BC_FORMAT_LAPLACE_EVENTS;
		all_laplace = all_laplace &&
			      (format == BC_FORMAT_LAPLACE || format == BC_FORMAT_LAPLACE_TEXT ||
				      format == BC_FORMAT_LAPLACE_EVENTS);
	}
	if (m->args.target.format != BC_FORMAT_UNKNOWN)
		return BC_EXIT_OK;
	if (!is_one && !all_laplace)
		return bc_print_usage_error(m->console,
			"the inputs have different formats; choose the output format with -O");
	m->is_mixed = !is_one && has_events;
	m->args.target.format = is_one ? first : BC_FORMAT_LAPLACE_TEXT;
	return BC_EXIT_OK;
}

/* Checks that the inputs and the clock options fit the order. */
static enum bc_exit check_clocks(const struct merge *m)
{
	uint64_t out_hz = m->args.target.options.clock_hz;

	for (size_t i = 0; i < m->input_count && m->by == BY_WALL; i++) {
		const struct merge_input *in = &m->inputs[i];
		if (in->trace.format == BC_FORMAT_SEGMENT)
			continue;
		bc_print_error(m->console, in->paths[0],
			"%s has no time of day: --by wall needs segments",
			bc_format_name(in->trace.format));
		return BC_EXIT_USAGE;
	}
	if (m->by == BY_TICK && m->clock_hz != 0)
		return bc_print_usage_error(m->console,
			"--clock-hz works only with --by wall, but these are merged by tick");
	if (m->by == BY_WALL && out_hz != 0 && out_hz != NS_PER_S)
		return bc_print_usage_error(m->console,
			"with --by wall, output ticks are ns: clock_hz must be 1000000000");
	return BC_EXIT_OK;
}

/* Computes the first keys and the time that the output's ticks count from. */
static enum bc_exit start_merge(struct merge *m)
{
	m->base = UINT64_MAX;
	for (size_t i = 0; i < m->input_count; i++) {
		struct merge_input *in = &m->inputs[i];
		if (in->is_over)
			continue;
		peek_input(in, m->by);
		m->base = in->key.time < m->base ? in->key.time : m->base;
	}
	if (m->by != BY_WALL)
		return BC_EXIT_OK;
	for (size_t i = 0; i < m->input_count; i++) {
		if (!m->inputs[i].no_clock)
			continue;
		bc_print_error(m->console, m->inputs[i].paths[0],
			"clock rate unknown, so times of day are too; give it with --clock-hz, or "
			"use --by tick if the inputs share a clock");
		return BC_EXIT_USAGE;
	}
	m->moment = (struct bc_moment){
		.is_known = true, .clock = {(int64_t)(m->base ^ SIGN), 0, NS_PER_S}};
	m->args.target.options.clock_hz = NS_PER_S;
	return BC_EXIT_OK;
}

/* Lists the inputs for the metadata, as far as they fit. */
static void name_inputs(struct merge *m)
{
	size_t used = 0;

	for (size_t i = 0; i < m->input_count; i++) {
		const struct merge_input *in = &m->inputs[i];
		const char *name = in->trace.has_header ? in->trace.header.recording : in->paths[0];
		size_t n = strlen(name);
		if (used + n + 8 > sizeof(m->from_names)) {
			memcpy(m->from_names + used, " ...", 5);
			break;
		}
		used += (size_t)sprintf(m->from_names + used, "%s%s", used != 0 ? " " : "", name);
	}
	m->args.target.origin = (struct bc_origin){
		.key = "merged_from", .from = m->from_names, .is_merged = true};
}

static enum bc_exit check_formats(const struct merge *m)
{
	enum bc_exit code = BC_EXIT_OK;

	for (size_t i = 0; i < m->input_count && code == BC_EXIT_OK; i++) {
		enum bc_format from = m->inputs[i].trace.format;
		bool is_event = m->is_mixed && from == BC_FORMAT_LAPLACE_EVENTS;
		code = bc_target_check(
			m->console, &m->inputs[i].trace, is_event ? from : m->args.target.format);
	}
	return code;
}

/* Sets the clock rate of the output, unless it is given, to the one that the inputs share. */
static enum bc_exit find_clock(const struct merge *m, uint64_t *clock_hz)
{
	bool is_given = *clock_hz != 0;

	for (size_t i = 0; i < m->input_count && !is_given; i++) {
		const struct bc_trace *trace = &m->inputs[i].trace;
		uint64_t hz = trace->has_header ? trace->header.clock_hz : 0;
		if (*clock_hz != 0 && hz != 0 && hz != *clock_hz) {
			bc_print_error(m->console, m->inputs[i].paths[0],
				"clock rate is %" PRIu64 " Hz, but an earlier input has %" PRIu64
				" Hz; use --by wall, or give clock_hz with -O",
				hz, *clock_hz);
			return BC_EXIT_USAGE;
		}
		*clock_hz = *clock_hz != 0 ? *clock_hz : hz;
	}
	return BC_EXIT_OK;
}

static enum bc_exit open_targets(struct merge *m)
{
	struct bc_target_options o = m->args.target;
	const struct bc_trace *first = &m->inputs[0].trace;
	struct bc_trace all = *first;

	/* The output must not be any of the input files. */
	all.paths = (const char **)m->args.files.paths;
	all.count = m->args.files.count;
	for (size_t i = 0; i < m->input_count; i++) {
		const struct bc_trace *trace = &m->inputs[i].trace;
		o.source_traits |= bc_trace_traits(trace);
		o.options.source_has_wall |= trace->has_wall;
	}
	enum bc_exit code = find_clock(m, &o.options.clock_hz);
	if (code == BC_EXIT_OK)
		code = bc_target_open(&m->target, m->console, &o, &all);
	m->target.source = first;
	m->target.moment = &first->moment;
	if (code != BC_EXIT_OK || !m->is_mixed)
		return code;
	o.format = BC_FORMAT_LAPLACE_EVENTS;
	o.shared = &m->target;
	code = bc_target_open(&m->events, m->console, &o, first);
	m->has_events = code == BC_EXIT_OK;
	if (code != BC_EXIT_OK)
		return bc_exit_worse(code, bc_target_close(&m->target));
	return code;
}

/* Adapts an entry to the output. Returns false after printing an error. */
static bool adapt_entry(
	struct merge *m, const struct merge_input *in, size_t input, struct bc_entry *entry)
{
	char place[BC_PLACE_TEXT_MAX];

	/* The delta counts from the previous entry of the same input. */
	entry->has_delta = false;
	if (m->by == BY_WALL) {
		entry->tick = in->key.time - m->base;
		entry->epoch = 0;
	}
	if (m->renumber == 0 || (entry->traits & BC_TRAIT_PROC) == 0)
		return true;
	uint64_t proc = entry->proc + input * m->renumber;
	if (entry->proc < m->renumber && proc <= UINT16_MAX) {
		entry->proc = (uint16_t)proc;
		return true;
	}
	bc_print_error(m->console, in->trace.file.name,
		"%s: processor %u too high for --renumber %" PRIu64,
		bc_trace_place(&in->trace, entry->number, place), (unsigned)entry->proc,
		m->renumber);
	m->target.exit = bc_exit_worse(m->target.exit, BC_EXIT_FAILED);
	return false;
}

static bool write_entries(struct merge *m, const struct merge_input *in, size_t n)
{
	bool is_event = m->is_mixed && in->trace.format == BC_FORMAT_LAPLACE_EVENTS;
	struct bc_target *target = is_event ? &m->events : &m->target;

	target->source = &in->trace;
	target->moment = m->by == BY_WALL ? &m->moment : &in->trace.moment;
	return bc_target_add(target, m->entries, n);
}

/* Writes a run of entries from the input that comes first, up to the first entry of another input.
 * Returns false at the end, or if writing failed. */
static bool write_run(struct merge *m)
{
	size_t rival;
	size_t first = find_first(m, &rival);
	size_t n = 0;

	if (first == m->input_count)
		return false;
	struct merge_input *in = &m->inputs[first];
	do {
		struct bc_entry *entry = &m->entries[n];
		*entry = *in->at++;
		in->left--;
		/* By time of day there is only one epoch. */
		bool is_epoch = entry->kind == BC_ENTRY_EVENT && entry->note.event.kind == 0;
		if (!is_epoch || m->by != BY_WALL) {
			if (!adapt_entry(m, in, first, entry))
				return false;
			n++;
		}
		if (in->left != 0)
			peek_input(in, m->by);
	} while (in->left != 0 && n < MERGE_ENTRIES && stays_first(m, first, rival));
	if (n != 0 && !write_entries(m, in, n))
		return false;
	if (in->left != 0)
		return true;
	fill_input(in);
	if (!in->is_over)
		peek_input(in, m->by);
	return true;
}

/* Reports problems of the inputs at the end. Returns their worst exit code. */
static enum bc_exit report_inputs(const struct merge *m)
{
	enum bc_exit code = BC_EXIT_OK;

	for (size_t i = 0; i < m->input_count; i++) {
		const struct merge_input *in = &m->inputs[i];
		code = bc_exit_worse(code, in->trace.exit);
		if (in->disorders != 0 && m->by == BY_WALL)
			bc_print_error(m->console, in->paths[0],
				"%s entr%s out of order by at most %.6g ms, written in file order: "
				"the times of day of the chunks are the host's",
				BC_GROUPED(in->disorders), in->disorders == 1 ? "y" : "ies",
				(double)in->most_early / 1e6);
		else if (in->disorders != 0)
			bc_print_error(m->console, in->paths[0],
				"%s entr%s out of order by at most %s tick%s, written in file "
				"order",
				BC_GROUPED(in->disorders), in->disorders == 1 ? "y" : "ies",
				BC_GROUPED(in->most_early), bc_plural(in->most_early));
		if (in->no_clock)
			bc_print_error(m->console, in->paths[0],
				"some times of day unknown, because the clock rate is unknown");
	}
	return code;
}

static enum bc_exit run_merge(struct merge *m)
{
	enum bc_exit code = open_inputs(m);

	if (code == BC_EXIT_OK)
		code = choose_format(m);
	if (code == BC_EXIT_OK)
		code = check_formats(m);
	if (code != BC_EXIT_OK)
		return code;
	if (m->by == BY_UNKNOWN)
		m->by = are_recordings(m) ? BY_WALL : BY_TICK;
	code = check_clocks(m);
	if (code == BC_EXIT_OK)
		code = start_merge(m);
	if (code != BC_EXIT_OK)
		return code;
	name_inputs(m);
	code = open_targets(m);
	if (code != BC_EXIT_OK)
		return code;
	for (size_t i = 0; i < m->input_count; i++)
		bc_trace_show_progress(&m->inputs[i].trace);
	while (write_run(m))
		;
	if (m->has_events)
		code = bc_target_close(&m->events);
	m->target.source = &m->inputs[0].trace;
	enum bc_exit read = report_inputs(m);
	bc_target_end_source(&m->target, read);
	return bc_exit_worse(bc_exit_worse(code, read), bc_target_close(&m->target));
}

static bool read_merge_option(struct merge *m, int letter)
{
	struct input_format *format = &m->formats[m->format_count];

	switch (letter) {
	case 'I':
		format->options = bc_format_options_default();
		m->format_count++;
		return bc_option_read_format(m->console, "-I", &format->format, &format->options);
	case OPTION_BY:
		return bc_option_choice(m->console, options, letter, &m->by);
	case OPTION_CLOCK:
		return bc_option_count(m->console, "--clock-hz", 1, INT64_MAX, &m->clock_hz);
	case OPTION_RENUMBER:
		return bc_option_count(m->console, "--renumber", 1, UINT16_MAX, &m->renumber);
	default:
		return bc_convert_args_option(&m->args, letter);
	}
}

static enum bc_exit merge_paths(struct merge *m)
{
	if (m->args.files.count < 2)
		return bc_print_usage_error(m->console, "give at least two files");
	if (!make_inputs(m))
		return bc_print_no_memory(m->console);
	if (m->format_count > 1 && m->format_count != m->input_count)
		return bc_print_usage_error(
			m->console, "give -I once for all inputs, or once for each, in order");
	return run_merge(m);
}

static enum bc_exit read_and_merge(struct merge *m, int argc, char **argv)
{
	struct bc_options o;
	int letter;

	bc_options_start(&o, m->console, &bc_merge_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1)
		if (!read_merge_option(m, letter))
			return o.exit;
	enum bc_exit code = bc_convert_args_operands(&m->args, argc, argv, BC_FILES_GROUPED);
	/* The options depend on how many inputs there are. */
	if (code == BC_EXIT_OK && m->args.files.exit == BC_EXIT_FAILED)
		code = BC_EXIT_FAILED;
	return code == BC_EXIT_OK ? bc_exit_worse(merge_paths(m), m->args.files.exit) : code;
}

enum bc_exit bc_cmd_merge(const struct bc_console *console, int argc, char **argv)
{
	struct merge *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return bc_print_no_memory(console);
	m->console = console;
	m->by = BY_UNKNOWN;
	enum bc_exit code = bc_convert_args_init(&m->args, console, argc);
	m->formats = calloc((size_t)argc + 1, sizeof(*m->formats));
	if (code == BC_EXIT_OK)
		code = m->formats != NULL ? read_and_merge(m, argc, argv)
					  : bc_print_no_memory(console);
	free(m->formats);
	for (size_t i = 0; i < m->input_count; i++)
		bc_trace_close(&m->inputs[i].trace);
	free(m->inputs);
	bc_convert_args_free(&m->args);
	free(m);
	return code;
}
