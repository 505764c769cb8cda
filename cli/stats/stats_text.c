#include "cli/stats/stats_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/io/gap_text.h"
#include "cli/stats/stats_json.h"
#include "cli/term/json_path.h"
#include "cli/term/safe_text.h"

/* Epochs listed individually. */
#define EPOCHS_MAX 8u

/* A page. All figures come from the JSON object. */
struct page {
	struct bc_output *o;
	const struct bc_stats *stats;
	const json_t *root;
	uint64_t top;
};

static uint64_t count_of(const struct page *p, const char *path)
{
	return bc_json_path_count(p->root, path);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole != 0 ? 100 * (double)part / (double)whole : 0;
}

static void label(const struct page *p, const char *name)
{
	bc_output_format(p->o, "  %-22s ", name);
}

static void print_line(const struct page *p, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void print_line(const struct page *p, const char *name, const char *format, ...)
{
	va_list args;

	label(p, name);
	va_start(args, format);
	bc_output_vformat(p->o, format, args);
	va_end(args);
	bc_output_text(p->o, "\n", 1);
}

static void print_share(
	const struct page *p, const char *name, uint64_t count, uint64_t whole, const char *end)
{
	bc_output_format(
		p->o, "  %-22s %14" PRIu64 " %9.2f %%%s", name, count, percent(count, whole), end);
}

/* ---- tables of counts and shares */

#define NAME_MAX_BYTES 80u

static void name_number(char out[NAME_MAX_BYTES], const json_t *row, const char *key)
{
	snprintf(out, NAME_MAX_BYTES, "%" PRIu64, bc_json_path_count(row, key));
}

static void name_text(char out[NAME_MAX_BYTES], const json_t *row, const char *key)
{
	const char *text = bc_json_path_text(row, key);

	snprintf(out, NAME_MAX_BYTES, "%s", text != NULL ? text : "?");
}

/* A name that a user has chosen. */
static void name_safe(char out[NAME_MAX_BYTES], const json_t *row, const char *key)
{
	bc_safe_text(out, NAME_MAX_BYTES, bc_json_path_text(row, key));
}

static void name_type(char out[NAME_MAX_BYTES], const json_t *row, const char *key)
{
	const char *name = bc_json_path_text(row, "name");

	(void)key;
	if (name != NULL)
		snprintf(out, NAME_MAX_BYTES, "%s", name);
	else
		snprintf(out, NAME_MAX_BYTES, "0x%02x", (unsigned)bc_json_path_count(row, "type"));
}

static void name_letter(char out[NAME_MAX_BYTES], const json_t *row, const char *key)
{
	unsigned letter = (unsigned)bc_json_path_count(row, key);

	snprintf(out, NAME_MAX_BYTES, letter > ' ' && letter < 0x7F ? "'%c'" : "0x%02x", letter);
}

static void name_size(char out[NAME_MAX_BYTES], const json_t *row, const char *key)
{
	uint64_t size = bc_json_path_count(row, key);

	snprintf(out, NAME_MAX_BYTES, "%" PRIu64 " byte%s", size, bc_plural(size));
}

static void name_attr(char out[NAME_MAX_BYTES], const json_t *row, const char *key)
{
	unsigned attr = (unsigned)bc_json_path_count(row, key);
	const char *byu = bc_json_path_text(row, "low_two_bits");
	const char *p6 = bc_json_path_text(row, "p6");

	if (attr < 4)
		snprintf(out, NAME_MAX_BYTES, "%u %s", attr, byu);
	else if (attr < 8)
		snprintf(out, NAME_MAX_BYTES, "%u %s (P6), %s (low two bits)", attr, p6, byu);
	else
		snprintf(out, NAME_MAX_BYTES, "%u", attr);
}

static const struct table {
	const char *heading;
	struct {
		const char *rows; /* path of an array; NULL ends the parts */
		const char *key;  /* member of a row that is counted */
		void (*name)(char out[NAME_MAX_BYTES], const json_t *row, const char *key);
	} parts[2];
	const char *count; /* member of a row */
	const char *whole; /* path of the total for shares; if it is 0, nothing is printed */
	struct {
		const char *path;
		const char *name;
	} rest[2];
	bool is_sorted; /* sort by count */
} tables[] = {
	{"references by type", {{"types", "type", name_type}, {"letters", "letter", name_letter}},
		"references", "references", {{0}}, true},
	{"by size", {{"sizes", "size", name_size}}, "references", "references",
		{{"other_sizes", "other sizes"}, {"without_size", "size unknown"}}, true},
	{"by memory type", {{"attrs", "attr", name_attr}}, "references", "references",
		{{"without_attr", "memory type unknown"}}, true},
	{"by processor", {{"processors", "proc", name_number}}, "references", "references",
		{{"without_proc", "processor unknown"}}, false},
	{"macro-ops by opcode", {{"uops.macro_opcodes.names", "name", name_text}}, "count",
		"uops.macro_opcodes.total", {{"uops.macro_opcodes.others", "other names"}}, false},
	{"micro-ops by opcode", {{"uops.micro_opcodes.names", "name", name_text}}, "count",
		"uops.micro_opcodes.total", {{"uops.micro_opcodes.others", "other names"}}, false},
	{"instructions by set", {{"instructions.sets.names", "name", name_text}}, "count",
		"instructions.sets.total", {{"instructions.sets.others", "other names"}}, false},
	{"executed, by mnemonic", {{"instructions.mnemonics.names", "name", name_text}}, "count",
		"instructions.mnemonics.total", {{"instructions.mnemonics.others", "other names"}},
		false},
	{"register writes", {{"registers.names", "name", name_text}}, "count", "registers.total",
		{{"registers.others", "other names"}}, false},
	{"kernel events", {{"kernel_events.tags", "tag", name_text}}, "count",
		"kernel_events.total", {{"kernel_events.others", "other names"}}, false},
	{"references by name", {{"names.names", "name", name_safe}}, "count", "names.total",
		{{"names.others", "other names"}, {"names.without", "without a name"}}, false},
};

struct row {
	char name[NAME_MAX_BYTES];
	uint64_t count;
	uint64_t bytes;
	bool has_bytes;
};

static int compare_counts(const void *a, const void *b)
{
	const struct row *x = a;
	const struct row *y = b;

	return (x->count < y->count) - (x->count > y->count);
}

static void print_table(const struct page *p, const struct table *t)
{
	json_t *parts[2] = {bc_json_path(p->root, t->parts[0].rows),
		t->parts[1].rows != NULL ? bc_json_path(p->root, t->parts[1].rows) : NULL};
	struct row *rows = calloc(
		json_array_size(parts[0]) + json_array_size(parts[1]) + 1, sizeof(*rows));
	uint64_t whole = count_of(p, t->whole);
	size_t n = 0;
	size_t i;
	const json_t *item;

	for (unsigned part = 0; part < 2 && rows != NULL; part++)
		json_array_foreach(parts[part], i, item)
		{
			if (bc_json_path_count(item, "type") == BC_REF_LETTER)
				continue; /* its letters have rows */
			t->parts[part].name(rows[n].name, item, t->parts[part].key);
			rows[n].count = bc_json_path_count(item, t->count);
			rows[n].bytes = bc_json_path_count(item, "bytes");
			rows[n++].has_bytes = bc_json_path(item, "bytes") != NULL;
		}
	if (n != 0 && whole != 0) {
		bc_output_format(p->o, "\n%s\n", t->heading);
		if (t->is_sorted)
			qsort(rows, n, sizeof(*rows), compare_counts); /* glibc's is stable */
		for (i = 0; i < n && i < p->top; i++) {
			print_share(p, rows[i].name, rows[i].count, whole, "");
			if (rows[i].has_bytes && count_of(p, "bytes") != 0)
				bc_output_format(p->o, " %14" PRIu64 " bytes", rows[i].bytes);
			bc_output_text(p->o, "\n", 1);
		}
		if (n > p->top)
			bc_output_format(p->o, "  and %" PRIu64 " more\n", (uint64_t)n - p->top);
		for (i = 0; i < 2 && t->rest[i].path != NULL; i++)
			if (count_of(p, t->rest[i].path) != 0)
				print_share(p, t->rest[i].name, count_of(p, t->rest[i].path), whole,
					"\n");
	}
	free(rows);
}

static void print_tables(const struct page *p, unsigned first, unsigned end)
{
	for (unsigned i = first; i < end; i++)
		print_table(p, &tables[i]);
}

/* ---- single counts */

/* Prints lines, each given as a label and a path. */
static void print_shares(const struct page *p, uint64_t whole, const char *const (*lines)[2])
{
	for (; (*lines)[0] != NULL; lines++)
		print_share(p, (*lines)[0], count_of(p, (*lines)[1]), whole, "\n");
}

static void print_gap(const struct page *p, const char *name, const json_t *gap)
{
	uint64_t gaps = bc_json_path_count(gap, "gaps");
	uint64_t lost = bc_json_path_count(gap, "lost");
	bool is_exact = bc_json_path_count(gap, "inexact") == 0;
	char text[BC_LOST_TEXT_MAX];

	if (gaps == 0)
		print_line(p, name, "none");
	else
		print_line(p, name, "%" PRIu64 ", %s", gaps, bc_lost_text(text, lost, is_exact));
}

static void print_events(const struct page *p)
{
	const json_t *events = bc_json_path(p->root, "events");
	const json_t *cause;
	size_t i;
	char name[32];

	if ((bc_format_info(p->stats->format)->holds & BC_CAN_EVENT) == 0)
		return;
	bc_output_format(p->o, "\ngaps and marks\n");
	print_gap(p, "gaps", events);
	json_array_foreach(bc_json_path(events, "causes"), i, cause)
	{
		snprintf(name, sizeof(name), "  %s", bc_json_path_text(cause, "cause"));
		print_gap(p, name, cause);
	}
	print_line(p, "marks", "%" PRIu64, bc_json_path_count(events, "marks"));
	print_line(p, "triggers", "%" PRIu64, bc_json_path_count(events, "triggers"));
}

static void print_uops(const struct page *p)
{
	static const char *const uses[][2] = {{"loads", "uops.loads"}, {"stores", "uops.stores"},
		{"read the flags", "uops.flag_reads"}, {"write the flags", "uops.flag_writes"},
		{NULL, NULL}};
	static const char *const branches[][2] = {{"taken", "uops.branches_taken"},
		{"not taken", "uops.branches_not_taken"}, {NULL, NULL}};
	uint64_t uops = count_of(p, "uops.micro_ops");
	uint64_t macros = count_of(p, "uops.macro_ops");

	if (uops == 0)
		return;
	bc_output_format(p->o, "\nmicro-ops\n");
	print_line(p, "micro-ops", "%14" PRIu64, uops);
	print_line(p, "macro-ops", "%14" PRIu64, macros);
	if (macros != 0)
		print_line(p, "per macro-op", "%17.2f micro-ops", (double)uops / (double)macros);
	print_shares(p, uops, uses);
	bc_output_format(p->o, "\nbranches\n");
	print_shares(p, count_of(p, "uops.branches_taken") + count_of(p, "uops.branches_not_taken"),
		branches);
	print_tables(p, 4, 6);
}

static void print_instructions(const struct page *p)
{
	static const char *const effects[][2] = {{"executed", "instructions.executed"},
		{"skipped", "instructions.skipped"}, {"fetch failed", "instructions.fetch_failed"},
		{"without mnemonic", "instructions.without_mnemonic"}, {NULL, NULL}};
	static const char *const lines[][2] = {{"lines", "lines_kept"}, {NULL, NULL}};

	if (count_of(p, "instructions.instructions") != 0) {
		bc_output_format(p->o, "\ninstructions\n");
		print_shares(p, count_of(p, "instructions.instructions"), effects);
	}
	print_tables(p, 6, 10);
	if (count_of(p, "lines_kept") != 0) {
		bc_output_format(p->o, "\nuninterpreted lines\n");
		print_shares(p, count_of(p, "entries"), lines);
	}
}

/* ---- memory */

static void print_memory(const struct page *p)
{
	static const char *const ways[][2] = {{"read", "read"}, {"written", "written"},
		{"fetched from", "fetched"}, {"total", "touched"}, {"total bytes", "touched"}};
	const json_t *lines = bc_json_path(p->root, "footprint.lines");
	const json_t *pages = bc_json_path(p->root, "footprint.pages");
	uint64_t line_bytes = bc_json_path_count(lines, "bytes_each");
	uint64_t page_bytes = bc_json_path_count(pages, "bytes_each");
	uint64_t touches = count_of(p, "reuse.touches");
	const json_t *row;
	size_t i;
	char name[NAME_MAX_BYTES];

	if (count_of(p, "footprint.references") == 0)
		return;
	bc_output_format(p->o, "\nfootprint %22s %" PRIu64 " bytes    pages of %" PRIu64 " bytes\n",
		"lines of", line_bytes, page_bytes);
	for (i = 0; i < 5; i++)
		print_line(p, ways[i][0], "%9s %12" PRIu64 " %9s %12" PRIu64,
			json_is_true(bc_json_path(lines, "at_least")) ? "at least" : "",
			bc_json_path_count(lines, ways[i][1]) * (i == 4 ? line_bytes : 1),
			json_is_true(bc_json_path(pages, "at_least")) ? "at least" : "",
			bc_json_path_count(pages, ways[i][1]) * (i == 4 ? page_bytes : 1));
	print_line(p, "addresses", "0x%08" PRIx64 " to 0x%08" PRIx64, p->stats->footprint.addr_low,
		p->stats->footprint.addr_high);
	bc_output_format(p->o, "\nreuse: memory references since the line was last touched\n");
	json_array_foreach(bc_json_path(p->root, "reuse.within"), i, row)
	{
		name_number(name, row, "references");
		print_share(p, name, bc_json_path_count(row, "touches"), touches, "\n");
	}
	print_share(p, "first touch", count_of(p, "reuse.first"), touches, "\n");
	if (count_of(p, "reuse.untracked") != 0)
		print_share(
			p, "unknown, table full", count_of(p, "reuse.untracked"), touches, "\n");
}

/* ---- time */

static const char *tick_word(const struct page *p)
{
	const char *unit = bc_json_path_text(p->root, "time.unit");

	return unit == NULL || strcmp(unit, "tick") == 0 || strcmp(unit, "mixed") == 0 ? "ticks"
										       : unit;
}

/* Prints "125 ticks" or, if the rate is known, "125 ticks (1.89 us)". */
static void print_ticks(const struct page *p, const char *before, uint64_t n, const char *end)
{
	static const struct {
		double least;
		double unit;
		const char *word;
	} units[] = {{1, 1, "s"}, {1e-3, 1e-3, "ms"}, {1e-6, 1e-6, "us"}, {0, 1e-9, "ns"}};
	double hz = bc_stats_hz(p->stats);
	double s = hz != 0 ? (double)n / hz : 0;
	size_t i = 0;

	bc_output_format(p->o, "%s%" PRIu64 " %s", before, n, tick_word(p));
	while (s < units[i].least)
		i++;
	if (hz != 0)
		bc_output_format(p->o, " (%.6g %s)", s / units[i].unit, units[i].word);
	bc_output_format(p->o, "%s", end);
}

static void print_rate(const struct page *p, const char *name, uint64_t n, uint64_t ticks)
{
	double per_tick = (double)n / (double)ticks;
	double hz = bc_stats_hz(p->stats);

	label(p, name);
	bc_output_format(p->o, "%.6g references per 1000 %s", 1000 * per_tick, tick_word(p));
	if (hz != 0)
		bc_output_format(p->o, " (%.6g per second)", per_tick * hz);
	bc_output_text(p->o, "\n", 1);
}

static void print_intervals(const struct page *p)
{
	uint64_t known = count_of(p, "time.intervals.known");
	uint64_t windows = count_of(p, "time.windows.windows");
	uint64_t idles = count_of(p, "time.idles.idles");
	uint64_t bursts = count_of(p, "time.bursts.bursts");
	const char *word = tick_word(p);

	if (windows != 0) {
		uint64_t ticks = count_of(p, "time.windows.ticks");
		print_rate(p, "busiest window", count_of(p, "time.windows.most_references"), ticks);
		print_rate(
			p, "quietest window", count_of(p, "time.windows.fewest_references"), ticks);
		label(p, "windows");
		bc_output_format(p->o, "%" PRIu64, windows);
		print_ticks(p, " of ", ticks, "\n");
	}
	if (known == 0)
		return;
	print_line(p, "intervals", "%" PRIu64 " known, %" PRIu64 " to %" PRIu64 " %s, average %.6g",
		known, count_of(p, "time.intervals.shortest"),
		count_of(p, "time.intervals.longest"), word,
		(double)count_of(p, "time.intervals.ticks") / (double)known);
	label(p, "idles");
	bc_output_format(p->o, "%" PRIu64 " longer than %" PRIu64 " %s", idles,
		count_of(p, "time.idles.longer_than"), word);
	if (idles != 0) {
		bc_output_format(p->o, ", %.2f %% of the time",
			percent(count_of(p, "time.idles.ticks"), count_of(p, "time.ticks")));
		print_ticks(p, ", longest ", count_of(p, "time.idles.longest"), "");
	}
	bc_output_text(p->o, "\n", 1);
	label(p, "bursts");
	bc_output_format(p->o, "%" PRIu64 " with at most %" PRIu64 " %s between references", bursts,
		count_of(p, "time.bursts.interval_at_most"), word);
	if (bursts != 0) {
		uint64_t in_bursts = count_of(p, "time.bursts.references");
		bc_output_format(p->o, ", %.2f %% of references, longest %" PRIu64 ", average %.1f",
			percent(in_bursts, count_of(p, "time.references")),
			count_of(p, "time.bursts.longest"), (double)in_bursts / (double)bursts);
	}
	bc_output_text(p->o, "\n", 1);
}

static void print_epochs(const struct page *p)
{
	uint64_t epochs = count_of(p, "time.epoch_count");
	const json_t *span;
	size_t i;

	if (epochs < 2)
		return;
	print_line(p, "epochs", "%" PRIu64, epochs);
	json_array_foreach(bc_json_path(p->root, "time.epochs"), i, span)
	{
		uint64_t first = bc_json_path_count(span, "first_tick");
		uint64_t last = bc_json_path_count(span, "last_tick");
		char name[32];
		if (i == EPOCHS_MAX)
			break;
		snprintf(name, sizeof(name), "  epoch %zu", i);
		label(p, name);
		bc_output_format(p->o, "%" PRIu64 " references, tick %" PRIu64 " to %" PRIu64,
			bc_json_path_count(span, "references"), first, last);
		if (last >= first)
			print_ticks(p, ", ", last - first, "\n");
		else
			bc_output_format(p->o, "\n"); /* the clock went back */
	}
	if (epochs > EPOCHS_MAX)
		bc_output_format(p->o, "  and %" PRIu64 " more\n", epochs - EPOCHS_MAX);
}

static void print_drift(const struct page *p)
{
	const json_t *drift = bc_json_path(p->root, "time.drift");

	if (drift == NULL)
		return;
	if (!json_is_true(bc_json_path(drift, "is_known")))
		print_line(p, "clock drift", "unknown: %s", bc_json_path_text(drift, "why_not"));
	else
		print_line(p, "clock drift",
			"%+.2f ppm against the host's clock, +- %.2f ppm, from %" PRIu64
			" chunks in %.1f s",
			json_number_value(bc_json_path(drift, "ppm")),
			json_number_value(bc_json_path(drift, "error_ppm")),
			bc_json_path_count(drift, "pairs"), bc_json_path_number(drift, "seconds"));
}

static void print_time(const struct page *p)
{
	uint64_t references = count_of(p, "time.references");
	uint64_t ticks = count_of(p, "time.ticks");
	uint64_t backward = count_of(p, "time.backward");

	if (references == 0)
		return;
	bc_output_format(p->o, "\ntime\n");
	label(p, "duration");
	print_ticks(p, "", ticks, "\n");
	if (ticks != 0)
		print_rate(p, "rate", references, ticks);
	print_intervals(p);
	if (backward != 0)
		print_line(p, "backward", "%" PRIu64 " reference%s earlier than the previous one",
			backward, bc_plural(backward));
	print_epochs(p);
	print_drift(p);
}

bool bc_stats_print(struct bc_output *o, const struct bc_stats *s, uint64_t top)
{
	const struct bc_format_info *info = bc_format_info(s->format);
	bool has_samples = s->format == BC_FORMAT_RAW6 || s->format == BC_FORMAT_BCP1;
	json_t *root = bc_stats_json(s);
	const struct page page = {.o = o, .stats = s, .root = root, .top = top};
	uint64_t references = count_of(&page, "references");
	uint64_t without_size = count_of(&page, "without_size");

	if (root == NULL)
		return false;
	bc_output_format(o, "%s: %" PRIu64 " %s\n", bc_format_name(s->format), bc_stats_entries(s),
		info->is_text ? "entries"
		: has_samples ? "samples"
			      : "records");
	print_line(&page, "references", "%14" PRIu64, references);
	if (without_size != references)
		print_line(&page, "bytes moved", "%14" PRIu64 "%s", count_of(&page, "bytes"),
			without_size != 0 ? ", where the size is known" : "");
	print_tables(&page, 0, 4);
	print_tables(&page, 10, 11);
	print_events(&page);
	print_uops(&page);
	print_instructions(&page);
	print_memory(&page);
	print_time(&page);
	json_decref(root);
	return true;
}
