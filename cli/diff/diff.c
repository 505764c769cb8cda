/* `buscap diff`: compares two traces, of one format or of two.
 *
 * Each side reads its files, converts the entries to what the other side's format can hold, and
 * passes the selected ones on to cli/diff/match.h. That finds what matches and calls back here
 * (on_same(), on_differ(), ...), where one difference at a time is collected: it opens with the
 * first entry that differs and is printed (cli/diff/diff_print.c) as soon as an entry matches
 * again. So memory is bounded by --lookahead, --show and --context, however long the traces are.
 * Where the bytes of both traces are equal, on_skip() counts the entries without making them,
 * except the last ones, which are the context of a difference that may follow.
 *
 * On the same clock, two kinds of entries are explained instead of reported one by one: gaps, and
 * entries that the other trace lacks only because `cut` left them out. */
#include "cli/term/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/diff/compare.h"
#include "cli/diff/diff.h"
#include "cli/term/options.h"
#include "formats/segment/segment_header.h"
#include "formats/trace/filter_parse.h"

/* Returns the traits that the entries of a trace have after conversion. */
static uint32_t can_be(const struct bc_trace *trace)
{
	bc_traits traits = bc_trace_traits(trace);

	return (traits & (BC_TRAIT_INSTRUCTION | BC_TRAIT_UOP)) != 0
		       ? traits | BC_TRAIT_REFERENCE | BC_TRAIT_FETCH
		       : traits;
}

/* ---- where the traces come from: what the headers of segments say */

/* Appends ids, which are separated by spaces. There is a space before and after each. */
static void add_recordings(struct bc_diff_origin *o, const char *ids)
{
	size_t used = strlen(o->recordings);

	snprintf(o->recordings + used, sizeof(o->recordings) - used, "%s%s ", used != 0 ? "" : " ",
		ids);
}

/* Narrows a range to another one: an entry that touches both also touches their intersection. */
static void narrow_addr(struct bc_span *addr, struct bc_span by)
{
	if (by.first > addr->last || by.last < addr->first)
		return;
	addr->first = by.first > addr->first ? by.first : addr->first;
	addr->last = by.last < addr->last ? by.last : addr->last;
}

/* Adds a condition such as "type=read" to a filter. Returns false if it is of another kind. */
static bool add_condition(struct bc_filter *filter, const char *condition)
{
	static const struct {
		const char *name;
		bool (*parse)(struct bc_filter *, const char *, char *, size_t);
	} conditions[] = {{"addr=", bc_filter_parse_addr}, {"type=", bc_filter_parse_types},
		{"proc=", bc_filter_parse_procs}, {"port=", bc_filter_parse_port}};
	struct bc_filter before = *filter;
	char err[256];

	for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++)
		if (strncmp(condition, conditions[i].name, 5) == 0 &&
			conditions[i].parse(filter, condition + 5, err, sizeof(err))) {
			narrow_addr(&filter->addr, before.addr);
			if (before.ranges_count != 0) { /* ports only */
				filter->ranges_count = 1;
				filter->ranges[0] = before.ranges[0];
			}
			return true;
		}
	return false;
}

/* Sets the filter from the options of a cut, such as "records=0-99 type=read". Ranges of records
 * are ignored: they leave out few, long pieces. Several lists of types or processors are
 * alternatives, also in a cut of a cut, whose options look the same. */
static bool read_filter(struct bc_diff_origin *o)
{
	char words[sizeof(o->cut)];
	char *rest = words;
	char *word;
	bool has_filter = false;

	bc_filter_init(&o->filter);
	strcpy(words, o->cut);
	while ((word = strsep(&rest, " ")) != NULL)
		has_filter = add_condition(&o->filter, word) || has_filter;
	return has_filter;
}

static void read_origin(struct bc_diff_origin *o, const struct bc_trace *trace)
{
	static const char *const sources[] = {"converted_from", "cut_from"};
	struct bc_segment_header header;

	memset(o, 0, sizeof(*o));
	if (!bc_trace_header(trace, &header))
		return;
	add_recordings(o, header.recording);
	json_t *metadata = bc_metadata_parse(header.metadata);
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		const char *ids = json_string_value(json_object_get(metadata, sources[i]));
		if (ids != NULL)
			add_recordings(o, ids);
	}
	const char *cut = json_string_value(json_object_get(metadata, "cut"));
	snprintf(o->cut, sizeof(o->cut), "%s", cut != NULL ? cut : "");
	o->has_filter = read_filter(o);
	json_decref(metadata);
}

/* True if both traces come from one recording, so that their times are of one clock. */
static bool is_same_origin(const struct bc_diff_origin *a, const struct bc_diff_origin *b)
{
	char words[sizeof(a->recordings)];
	char word_in_b[sizeof(a->recordings) + 2];
	char *rest = words;
	char *word;

	strcpy(words, a->recordings);
	while ((word = strsep(&rest, " ")) != NULL) {
		snprintf(word_in_b, sizeof(word_in_b), " %s ", word);
		if (*word != '\0' && strstr(b->recordings, word_in_b) != NULL)
			return true;
	}
	return false;
}

/* ---- reading the two traces */

/* True if the next entry has the start address. */
static bool is_start(const struct bc_diff_side *side)
{
	return side->run->kind <= BC_ENTRY_UOP && side->run->addr == side->diff->start;
}

/* bc_match_source: returns the next selected entries, as what the other format can hold. */
static size_t next_run(void *context, const struct bc_entry **run)
{
	struct bc_diff_side *side = context;
	uint64_t only = side->diff->only;
	struct bc_batch batch;

	for (;;) {
		for (; side->left != 0 && ((bc_diff_class_of(side->run) & only) == 0 ||
						  (side->awaits_start && !is_start(side)));
			side->left--)
			side->run++;
		if (side->left != 0)
			break;
		side->left = bc_entry_converter_next(&side->converter, &side->run);
		if (side->left != 0)
			continue;
		if (!bc_trace_next(&side->trace, &batch))
			return 0;
		bc_entry_convert_batch(&side->converter, batch.entries, batch.count);
	}
	side->awaits_start = false;
	size_t n = 1;
	while (n < side->left &&
		(only == BC_DIFF_CLASSES || (bc_diff_class_of(&side->run[n]) & only) != 0))
		n++;
	*run = side->run;
	side->run += n;
	side->left -= n;
	return n;
}

static void close_again(void *context)
{
	struct bc_diff_side *again = context;

	bc_trace_close(&again->trace);
	free(again);
}

/* Returns a side with the same files, from the beginning and without messages. */
static void *open_again(void *context)
{
	const struct bc_diff_side *side = context;
	struct bc_diff_side *again = calloc(1, sizeof(*again));

	if (again == NULL ||
		!bc_are_regular_files((const char *const *)side->files.paths, side->files.count)) {
		free(again);
		return NULL;
	}
	again->silent = bc_console_silent(side->trace.console);
	again->diff = side->diff;
	again->awaits_start = side->diff->has_start;
	bc_entry_converter_init(&again->converter, side->trace.format, &side->trace.options.format);
	again->converter.traits = side->converter.traits;
	again->converter.needed_traits = side->converter.needed_traits;
	if (bc_trace_open(&again->trace, &again->silent, (const char **)side->files.paths,
		    side->files.count, side->trace.format, &side->trace.options) == BC_EXIT_OK)
		return again;
	close_again(again);
	return NULL;
}

/* Reads up to the entry with the start address. Returns false if no entry has it. */
static bool find_start(struct bc_diff_side *side)
{
	const struct bc_entry *run;

	if (!side->awaits_start)
		return true;
	size_t count = next_run(side, &run);
	if (count == 0)
		return false;
	side->run -= count;
	side->left += count;
	return true;
}

static void set_line(struct bc_diff_line *line, const struct bc_entry *entry)
{
	line->number = entry->number;
	line->fields = 0;
	bc_entry_text(line->text, entry);
}

static void count_compared(struct bc_diff_side *side, const struct bc_entry *entries, size_t count)
{
	if (count == 0)
		return;
	side->entries += count;
	side->has_last = true;
	side->last = entries[count - 1].number;
}

/* Finishes and prints the current difference. Returns false if printing failed. */
static bool end_difference(struct bc_diff *d)
{
	uint64_t pairs = d->a.count < d->b.count ? d->a.count : d->b.count;

	d->is_open = false;
	d->changed += pairs;
	d->only_a += d->a.count - pairs;
	d->only_b += d->b.count - pairs;
	bc_diff_print_difference(d);
	d->before_count = 0;
	d->after = d->context;
	d->shifted = 0;
	d->is_lost = false;
	return !bc_output_failed(&d->output);
}

static bool on_same(void *context, const struct bc_entry *a, const struct bc_entry *b, size_t n)
{
	struct bc_diff *d = context;
	bool goes_on = true;
	size_t i = 0;

	if (d->is_open)
		goes_on = end_difference(d);
	count_compared(&d->a, a, n);
	count_compared(&d->b, b, n);
	d->same += n;
	for (; goes_on && d->after != 0 && i < n; i++, d->after--) {
		struct bc_diff_line line;
		set_line(&line, &a[i]);
		bc_diff_print_context(d, &line);
	}
	/* Keep the last entries as context of the next difference. */
	i = n - i > d->context ? n - d->context : i;
	size_t drop = d->before_count + (n - i);
	drop = drop > d->context ? drop - d->context : 0;
	memmove(d->before, d->before + drop, (d->before_count - drop) * sizeof(*d->before));
	d->before_count -= drop;
	for (; i < n; i++)
		set_line(&d->before[d->before_count++], &a[i]);
	d->is_stopped = d->limit != 0 && d->differences >= d->limit && d->after == 0;
	return goes_on && !d->is_stopped;
}

/* A difference's context is not skipped. With more context than this, nothing is skipped. */
#define SKIP_CONTEXT_MAX 1024u

/* Returns how many entries have equal bytes. */
static size_t count_same_bytes(const struct bc_reader_run *a, const struct bc_reader_run *b)
{
	const size_t piece = 4096;
	size_t end = (a->count < b->count ? a->count : b->count) * a->each;
	size_t at = 0;

	while (end - at >= piece && memcmp(a->bytes + at, b->bytes + at, piece) == 0)
		at += piece;
	while (at < end && a->bytes[at] == b->bytes[at])
		at++;
	return at / a->each;
}

static size_t on_skip(void *context, const struct bc_entry *a, const struct bc_entry *b, size_t n)
{
	struct bc_diff *d = context;
	size_t kept = d->context != 0 ? d->context : 1;
	struct bc_reader_run x;
	struct bc_reader_run y;

	/* Traces of one layout have the same traits, so no entry was converted. */
	if (d->is_open || d->after != 0 || kept > SKIP_CONTEXT_MAX || d->only != BC_DIFF_CLASSES ||
		d->a.left + d->b.left != 0 || !bc_reader_run(d->a.trace.reader, a, &x) ||
		!bc_reader_run(d->b.trace.reader, b, &y) || x.layout != y.layout)
		return 0;
	size_t same = count_same_bytes(&x, &y);
	if (same <= n + kept)
		return 0;
	same -= kept;
	bc_reader_skip(d->a.trace.reader, a, same);
	bc_reader_skip(d->b.trace.reader, b, same);
	d->a.entries += same;
	d->b.entries += same;
	d->same += same;
	return same;
}

static void on_reordered(void *context, bool is_a, const struct bc_entry *entry)
{
	struct bc_diff *d = context;

	(void)entry; /* out of order, so `last` does not change */
	(is_a ? &d->a : &d->b)->entries++;
	d->reordered += is_a;
}

static void start_side(struct bc_diff_side *side)
{
	side->count = 0;
	side->has_gap = false;
	side->has_previous = side->has_last;
	side->previous = side->last;
}

static void add_side(
	struct bc_diff_side *side, const struct bc_entry *entries, size_t count, size_t show)
{
	if (count != 0 && side->count == 0)
		side->first = entries[0].number;
	for (size_t i = 0; i < count && side->count + i < show; i++)
		set_line(&side->lines[side->count + i], &entries[i]);
	side->count += count;
	if (count != 0)
		side->end = entries[count - 1].number;
	count_compared(side, entries, count);
}

static void start_difference(struct bc_diff *d)
{
	d->is_open = d->is_paired = true;
	d->differ = 0;
	d->differences++;
	start_side(&d->a);
	start_side(&d->b);
}

static bool is_gap(const struct bc_entry *entry)
{
	return entry->kind == BC_ENTRY_EVENT && entry->note.event.kind == BC_EVENT_GAP;
}

/* Counts the entries that need no difference of their own on the same clock: a gap explains why the
 * other trace has more, and everything that the other trace's cut left out is one difference. */
static size_t count_explained(
	const struct bc_diff_side *other, const struct bc_entry *entries, size_t count)
{
	const struct bc_diff_origin *origin = &other->origin;
	size_t explained = 0;

	for (size_t i = 0; i < count; i++)
		explained += is_gap(&entries[i]) ||
			     (origin->has_filter && !bc_filter_entry(&origin->filter, &entries[i]));
	return explained;
}

static void explain(struct bc_diff *d, struct bc_diff_side *side, const struct bc_entry *entry)
{
	if (!is_gap(entry)) {
		side->filtered++;
		side->entries++;
		return;
	}
	if (!d->is_open)
		start_difference(d);
	if (!side->has_gap)
		set_line(&side->gap, entry);
	side->has_gap = true;
}

static bool add_difference(struct bc_diff *d, const struct bc_entry *a, size_t a_count,
	const struct bc_entry *b, size_t b_count)
{
	if (!d->is_open)
		start_difference(d);
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
	return !d->is_quiet && !bc_output_failed(&d->output);
}

/* Adds entries of one trace, some of which are explained. */
static bool add_explained(
	struct bc_diff *d, struct bc_diff_side *side, const struct bc_entry *entries, size_t count)
{
	bool is_a = side == &d->a;
	const struct bc_diff_side *other = is_a ? &d->b : &d->a;
	bool goes_on = true;

	for (size_t i = 0; goes_on && i < count; i++) {
		const struct bc_entry *e = &entries[i];
		if (count_explained(other, e, 1) != 0)
			explain(d, side, e);
		else
			goes_on = add_difference(d, is_a ? e : NULL, is_a, is_a ? NULL : e, !is_a);
	}
	return goes_on;
}

static bool on_differ(void *context, const struct bc_entry *a, size_t a_count,
	const struct bc_entry *b, size_t b_count)
{
	struct bc_diff *d = context;

	if (!d->is_open && d->limit != 0 && d->differences >= d->limit) {
		d->is_stopped = true;
		return false;
	}
	if (!d->how.is_same_clock ||
		count_explained(&d->b, a, a_count) + count_explained(&d->a, b, b_count) == 0)
		return add_difference(d, a, a_count, b, b_count);
	return add_explained(d, &d->a, a, a_count) && add_explained(d, &d->b, b, b_count);
}

static void on_shifted(void *context, int64_t ticks)
{
	struct bc_diff *d = context;

	d->shifted = (int64_t)((uint64_t)d->shifted + (uint64_t)ticks);
}

static void on_lost(void *context, bool can_retry)
{
	struct bc_diff *d = context;

	d->is_lost = true;
	d->is_pipe = !can_retry;
}

/* True if leaving out a field deserves a message: the user neither chose nor excluded it. */
static bool is_announced(const struct bc_diff *d, uint64_t field)
{
	return d->wanted_fields == 0 && (d->ignored_fields & field) == 0 && !d->is_quiet;
}

/* Removes fields that only one of the traces has, in formats where they are optional, and prints a
 * message, unless the user asked for these fields. */
static uint64_t leave_out_missing(struct bc_diff *d, uint64_t fields)
{
	static const struct {
		uint32_t trait;
		uint64_t field;
	} optional[] = {{BC_TRAIT_PROC, BC_FIELD_PROC}, {BC_TRAIT_PHYS, BC_FIELD_PHYS},
		{BC_TRAIT_ATTRIB, BC_FIELD_ATTRIB}, {BC_TRAIT_SECURITY, BC_FIELD_SECURITY},
		{BC_TRAIT_TIME, BC_FIELD_TIME}};

	if (!d->a.peek.is_known || !d->b.peek.is_known)
		return fields;
	if (bc_peek_compare_units(d->a.peek, d->b.peek) == BC_PEEK_UNRELATED &&
		(fields & ~d->wanted_fields & BC_FIELD_TIME) != 0) {
		fields &= ~(uint64_t)BC_FIELD_TIME;
		if (is_announced(d, BC_FIELD_TIME))
			bc_print_error(d->console, NULL, "A has times in %s, B in %s: not compared",
				bc_unit_name(d->a.peek.unit), bc_unit_name(d->b.peek.unit));
	}
	for (size_t i = 0; i < sizeof(optional) / sizeof(optional[0]); i++) {
		uint32_t trait = optional[i].trait;
		if (((d->a.peek.traits ^ d->b.peek.traits) & trait) == 0 ||
			(fields & ~d->wanted_fields & optional[i].field) == 0)
			continue;
		fields &= ~optional[i].field;
		if (is_announced(d, optional[i].field))
			bc_print_error(d->console, NULL, "%c has no %s: not compared",
				(d->a.peek.traits & trait) == 0 ? 'A' : 'B', bc_trait_name(trait));
	}
	return fields;
}

/* Determines the fields that both traces can have, and checks the options against them. */
static enum bc_exit check_common(struct bc_diff *d)
{
	const struct bc_trace *a = &d->a.trace;
	const struct bc_trace *b = &d->b.trace;
	uint32_t common = bc_diff_classes_of(can_be(a)) & bc_diff_classes_of(can_be(b));
	uint64_t fields = bc_compare_fields(bc_trace_traits(a), bc_trace_traits(b));
	uint64_t missing = d->only & ~(uint64_t)common;

	if (common == 0 || missing != 0) {
		bc_print_error(d->console, NULL, "%sA is %s and B is %s, which don't both have %s",
			missing != 0 ? "--only: " : "", bc_format_name(a->format),
			bc_format_name(b->format),
			missing != 0 ? bc_diff_class_name(missing & (0 - missing))
				     : "comparable entries");
		return BC_EXIT_USAGE;
	}
	if ((fields & BC_FIELD_OPCODE) != 0)
		fields |= d->wanted_fields & BC_FIELD_ID; /* only if selected */
	fields = leave_out_missing(d, fields);
	missing = d->wanted_fields & ~fields;
	if (missing != 0) {
		bc_print_error(d->console, NULL,
			"--fields: A is %s and B is %s, which don't both have %s",
			bc_format_name(a->format), bc_format_name(b->format),
			bc_field_name(missing & (0 - missing)));
		return BC_EXIT_USAGE;
	}
	if (d->only == 0)
		d->only = BC_DIFF_CLASSES;
	d->how.fields = (d->wanted_fields != 0 ? d->wanted_fields | BC_FIELD_KIND : fields) &
			~d->ignored_fields;
	if ((d->how.fields & ~BC_FIELD_KIND) == 0 && d->ignored_fields != 0)
		return bc_print_usage_error(d->console, "--ignore leaves no field to compare");
	return BC_EXIT_OK;
}

/* Converts a side to what the other format can hold; unselected micro-ops, to references. */
static void init_converter(
	struct bc_diff_side *side, const struct bc_diff *d, const struct bc_diff_side *other)
{
	side->diff = d;
	bc_entry_converter_init(&side->converter, side->trace.format, &side->trace.options.format);
	side->converter.traits = can_be(&other->trace);
	side->converter.needed_traits = 0; /* nothing is written */
	if ((d->only & BC_DIFF_UOP) == 0)
		side->converter.traits &= ~(uint32_t)BC_TRAIT_UOP;
}

/* Reports the entries that the other side's cut left out. */
static void report_filtered(
	struct bc_diff *d, struct bc_diff_side *side, struct bc_diff_side *other)
{
	if (side->filtered == 0)
		return;
	if (d->limit != 0 && d->differences >= d->limit) {
		d->is_stopped = true;
		return;
	}
	d->differences++;
	bc_diff_print_filtered(d, side, other);
}

/* Skips the entries before the start address in both traces. */
static enum bc_exit find_starts(struct bc_diff *d)
{
	bool has_a = find_start(&d->a);
	bool has_b = find_start(&d->b);

	if (has_a && has_b)
		return BC_EXIT_OK;
	return bc_print_error(d->console, NULL, "--start: %s entry with address %llx",
		has_a   ? "B has no"
		: has_b ? "A has no"
			: "neither trace has an",
		(unsigned long long)d->start);
}

static enum bc_exit compare_traces(struct bc_diff *d)
{
	struct bc_match_source a = {
		.next = next_run, .again = open_again, .close = close_again, .context = &d->a};
	struct bc_match_source b = {
		.next = next_run, .again = open_again, .close = close_again, .context = &d->b};
	struct bc_match_sink sink = {.context = d,
		.same = on_same,
		.skip = on_skip,
		.reordered = on_reordered,
		.differ = on_differ,
		.shifted = on_shifted,
		.lost = on_lost};

	/* BYU ticks are sums that start at the beginning of the file. */
	d->how.is_relative |= (bc_dialect_bytes(d->a.trace.format) != 0) !=
			      (bc_dialect_bytes(d->b.trace.format) != 0);
	if (bc_match_open(&d->match, &d->how, &a, &b, &sink) != 0)
		return bc_print_no_memory(d->console);
	bc_diff_print_start(d);
	/* If the differences go to a terminal, they show the progress. */
	if (d->is_quiet || !isatty(d->console->out)) {
		bc_trace_show_progress(&d->a.trace);
		bc_trace_show_progress(&d->b.trace);
	}
	/* Read errors are in the traces' exit codes. */
	bool is_over = bc_match_run(d->match);
	if (d->is_open)
		(void)end_difference(d);
	report_filtered(d, &d->a, &d->b);
	report_filtered(d, &d->b, &d->a);
	enum bc_exit code = bc_exit_worse(d->a.trace.exit, d->b.trace.exit);
	bc_diff_print_summary(d, is_over && code == BC_EXIT_OK);
	if (d->differences != 0)
		code = bc_exit_worse(code, BC_EXIT_FAILED);
	return code;
}

static enum bc_exit open_side(struct bc_diff_side *side, const struct bc_console *console)
{
	return bc_trace_open(&side->trace, console, (const char **)side->files.paths,
		side->files.count, side->format, &side->reader);
}

static enum bc_exit run_diff(struct bc_diff *d)
{
	d->a.awaits_start = d->b.awaits_start = d->has_start;
	const struct bc_console *console = d->console;
	const char *no_color = getenv("NO_COLOR");
	enum bc_exit code;

	d->has_color = isatty(console->out) && (no_color == NULL || no_color[0] == '\0');
	d->a.lines = calloc(d->show + 1, sizeof(*d->a.lines));
	d->b.lines = calloc(d->show + 1, sizeof(*d->b.lines));
	d->before = calloc(d->context + 1, sizeof(*d->before));
	if (d->a.lines == NULL || d->b.lines == NULL || d->before == NULL)
		return bc_print_no_memory(console);
	if (!bc_output_open(&d->output, console))
		return BC_EXIT_FAILED;
	d->a.peek = bc_peek(console, d->a.files.paths[0], d->a.format, &d->a.reader);
	d->b.peek = bc_peek(console, d->b.files.paths[0], d->b.format, &d->b.reader);
	if (bc_peek_compare_units(d->a.peek, d->b.peek) == BC_PEEK_CONVERTIBLE)
		d->a.reader.format.in_picoseconds = d->b.reader.format.in_picoseconds = true;
	code = open_side(&d->a, console);
	if (code != BC_EXIT_OK)
		goto no_a;
	code = open_side(&d->b, console);
	if (code == BC_EXIT_OK)
		code = check_common(d);
	if (code != BC_EXIT_OK)
		goto out;
	init_converter(&d->a, d, &d->b);
	init_converter(&d->b, d, &d->a);
	read_origin(&d->a.origin, &d->a.trace);
	read_origin(&d->b.origin, &d->b.trace);
	d->how.is_same_clock = (d->how.fields & BC_FIELD_TIME) != 0 && !d->how.is_relative &&
			       (d->how.is_same_clock || is_same_origin(&d->a.origin, &d->b.origin));
	code = find_starts(d);
	if (code == BC_EXIT_OK)
		code = compare_traces(d);
	bc_match_close(d->match);
out:
	bc_trace_close(&d->b.trace);
no_a:
	bc_trace_close(&d->a.trace);
	return bc_exit_worse(code, bc_output_close(&d->output, console));
}

enum bc_exit bc_cmd_diff(const struct bc_console *console, int argc, char **argv)
{
	struct bc_diff *d = calloc(1, sizeof(*d));
	enum bc_exit code = BC_EXIT_FAILED;

	if (d == NULL)
		return bc_print_no_memory(console);
	d->console = console;
	if (bc_diff_read_options(d, argc, argv, &code))
		code = bc_exit_worse(run_diff(d), bc_exit_worse(d->a.files.exit, d->b.files.exit));
	bc_files_free(&d->a.files);
	bc_files_free(&d->b.files);
	bc_operands_close(&d->a.operands);
	bc_operands_close(&d->b.operands);
	free(d->a.lines);
	free(d->b.lines);
	free(d->before);
	free(d);
	return code;
}
