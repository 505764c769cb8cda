/* Prints the figures of struct bc_stats as a page. Tables have one heading, at most `top` rows, and
 * lines for what has no row; they are left out if there is nothing to count. Shares are those of
 * the table's total. If there is not enough memory for a row, that is reported at the end. */
#include "cli/stats/stats_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/io/gap_text.h"
#include "cli/stats/stats_json.h"
#include "cli/term/safe_text.h"
#include "formats/base/grow.h"
#include "formats/base/utf8.h"

/* Epochs listed individually. */
#define EPOCHS_MAX 8u

#define NAME_MAX_BYTES 80u

#define NO_BYTES UINT64_MAX

struct row {
	char name[NAME_MAX_BYTES];
	uint64_t count;
	uint64_t bytes;
};

struct page {
	struct bc_output *o;
	const struct bc_stats *stats;
	uint64_t top;
	struct row *rows; /* of the next table */
	size_t count;
	size_t capacity;
	bool lacks_memory;
};

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

/* ---- tables */

/* Adds a row to the next table, unless its count is 0. A longer name is cut off. */
static void add_row(struct page *p, uint64_t count, uint64_t bytes, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static void add_row(struct page *p, uint64_t count, uint64_t bytes, const char *format, ...)
{
	struct row *rows = p->rows;
	va_list args;

	if (count == 0)
		return;
	rows = bc_grow(rows, &p->capacity, p->count, sizeof(*rows));
	p->lacks_memory = p->lacks_memory || rows == NULL;
	if (rows == NULL)
		return;
	p->rows = rows;
	rows[p->count].count = count;
	rows[p->count].bytes = bytes;
	va_start(args, format);
	vsnprintf(rows[p->count++].name, NAME_MAX_BYTES, format, args);
	va_end(args);
}

static int compare_counts(const void *a, const void *b)
{
	const struct row *x = a;
	const struct row *y = b;

	return (x->count < y->count) - (x->count > y->count);
}

/* A line of a table for what has no row. */
static void print_rest(const struct page *p, const char *name, uint64_t count, uint64_t whole)
{
	if (count != 0)
		print_share(p, name, count, whole, "\n");
}

/* Prints the rows that were added; `other` and `unknown` are counted in none. */
static void print_table(struct page *p, const char *heading, uint64_t whole, const char *other,
	uint64_t others, const char *unknown, uint64_t unknowns)
{
	size_t n = p->count;

	p->count = 0;
	if (n == 0 || whole == 0)
		return;
	bc_output_format(p->o, "\n%s\n", heading);
	for (size_t i = 0; i < n && i < p->top; i++) {
		print_share(p, p->rows[i].name, p->rows[i].count, whole, "");
		if (p->rows[i].bytes != NO_BYTES)
			bc_output_format(p->o, " %14" PRIu64 " bytes", p->rows[i].bytes);
		bc_output_text(p->o, "\n", 1);
	}
	if (n > p->top)
		bc_output_format(p->o, "  and %" PRIu64 " more\n", n - p->top);
	print_rest(p, other, others, whole);
	print_rest(p, unknown, unknowns, whole);
}

static void sort_rows(struct page *p)
{
	if (p->count != 0)
		qsort(p->rows, p->count, sizeof(*p->rows), compare_counts); /* glibc's is stable */
}

static void print_types(struct page *p)
{
	const struct bc_tally *t = &p->stats->tally;

	for (unsigned type = 0; type < BC_REF_TYPES; type++) {
		const char *name = bc_ref_type_name(type);
		uint64_t bytes = t->bytes != 0 ? t->type_bytes[type] : NO_BYTES;
		if (type == BC_REF_LETTER)
			continue; /* its letters have rows */
		if (name != NULL)
			add_row(p, t->types[type], bytes, "%s", name);
		else
			add_row(p, t->types[type], bytes, "0x%02x", type);
	}
	for (unsigned letter = 0; letter < 256; letter++)
		add_row(p, t->letters[letter], NO_BYTES,
			letter > ' ' && letter < 0x7F ? "'%c'" : "0x%02x", letter);
	sort_rows(p);
	print_table(p, "references by type", t->references, NULL, 0, NULL, 0);
}

static void print_references(struct page *p)
{
	const struct bc_tally *t = &p->stats->tally;

	print_types(p);
	for (unsigned size = 0; size < 256; size++)
		add_row(p, t->sizes[size], NO_BYTES, "%u byte%s", size, bc_plural(size));
	for (size_t i = 0; i < t->large_count; i++)
		add_row(p, t->large[i].references, NO_BYTES, "%" PRIu32 " bytes", t->large[i].size);
	sort_rows(p);
	print_table(p, "by size", t->references, "other sizes", t->large_others, "size unknown",
		t->without_size);
	for (unsigned attr = 0; attr < 256; attr++)
		if (attr < 4)
			add_row(p, t->attrs[attr], NO_BYTES, "%u %s", attr,
				bc_stats_attr_byu(attr));
		else if (attr < 8)
			add_row(p, t->attrs[attr], NO_BYTES, "%u %s (P6), %s (low two bits)", attr,
				bc_stats_attr_p6(attr), bc_stats_attr_byu(attr));
		else
			add_row(p, t->attrs[attr], NO_BYTES, "%u", attr);
	sort_rows(p);
	print_table(p, "by memory type", t->references, NULL, 0, "memory type unknown",
		t->without_attr);
	for (unsigned proc = 0; proc < BC_TALLY_PROCS; proc++)
		add_row(p, t->procs[proc], NO_BYTES, "%u", proc);
	print_table(
		p, "by processor", t->references, NULL, 0, "processor unknown", t->without_proc);
}

/* Prints names that are sorted by their counts. */
static void print_names(
	struct page *p, const char *heading, const struct bc_string_counter *names, uint64_t whole)
{
	for (size_t i = 0; i < names->count; i++) {
		char *name = bc_string_count_text(&names->rows[i]);
		p->lacks_memory = p->lacks_memory || name == NULL;
		add_row(p, names->rows[i].count, NO_BYTES, "%s",
			name != NULL && name[0] != '\0' ? name : "?");
		free(name);
	}
	print_table(p, heading, whole, "other names", names->others, NULL, 0);
}

/* Names of addresses, which a user has chosen. */
static void print_address_names(struct page *p)
{
	const struct bc_string_counter *names = &p->stats->names;
	char text[NAME_MAX_BYTES];

	for (size_t i = 0; i < names->count; i++) {
		char *name = strndup(names->rows[i].text.at, names->rows[i].text.bytes);
		char *valid = name != NULL ? bc_utf8_repair(name) : NULL;
		p->lacks_memory = p->lacks_memory || valid == NULL;
		add_row(p, names->rows[i].count, NO_BYTES, "%s",
			bc_safe_text(text, sizeof(text), valid));
		free(valid);
		free(name);
	}
	print_table(p, "references by name", names->total + p->stats->unnamed, "other names",
		names->others, "without a name", p->stats->unnamed);
}

/* ---- single counts */

static void print_gap(const struct page *p, const char *name, const struct bc_gap_count *gap)
{
	char text[BC_LOST_TEXT_MAX];

	if (gap->gaps == 0)
		print_line(p, name, "none");
	else
		print_line(p, name, "%" PRIu64 ", %s", gap->gaps,
			bc_lost_text(text, gap->lost, gap->inexact == 0));
}

static void print_events(const struct page *p)
{
	const struct bc_entry_counts *h = &p->stats->counts;
	char name[32];

	if ((bc_format_info(p->stats->format)->holds & BC_CAN_EVENT) == 0)
		return;
	bc_output_format(p->o, "\ngaps and marks\n");
	print_gap(p, "gaps", &h->gaps);
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++) {
		if (h->causes[cause].gaps == 0)
			continue;
		snprintf(name, sizeof(name), "  %s", bc_gap_cause_name(cause));
		print_gap(p, name, &h->causes[cause]);
	}
	print_line(p, "marks", "%" PRIu64, h->marks);
	print_line(p, "triggers", "%" PRIu64, h->triggers);
}

static void print_uops(struct page *p)
{
	const struct bc_entry_counts *h = &p->stats->counts;
	uint64_t uops = h->kinds[BC_ENTRY_UOP];
	uint64_t branches = h->taken + h->not_taken;

	if (uops == 0)
		return;
	bc_output_format(p->o, "\nmicro-ops\n");
	print_line(p, "micro-ops", "%14" PRIu64, uops);
	print_line(p, "macro-ops", "%14" PRIu64, h->macro_ops);
	if (h->macro_ops != 0)
		print_line(
			p, "per macro-op", "%17.2f micro-ops", (double)uops / (double)h->macro_ops);
	print_share(p, "loads", h->loads, uops, "\n");
	print_share(p, "stores", h->stores, uops, "\n");
	print_share(p, "read the flags", h->flag_reads, uops, "\n");
	print_share(p, "write the flags", h->flag_writes, uops, "\n");
	bc_output_format(p->o, "\nbranches\n");
	print_share(p, "taken", h->taken, branches, "\n");
	print_share(p, "not taken", h->not_taken, branches, "\n");
	print_names(p, "macro-ops by opcode", &h->macros, h->macros.total);
	print_names(p, "micro-ops by opcode", &h->micros, h->micros.total);
}

static void print_instructions(struct page *p)
{
	const struct bc_entry_counts *h = &p->stats->counts;
	uint64_t instructions = h->kinds[BC_ENTRY_INSTRUCTION];
	uint64_t lines = h->kinds[BC_ENTRY_LINE];

	if (instructions != 0) {
		const uint64_t *effects = h->effects;
		bc_output_format(p->o, "\ninstructions\n");
		print_share(p, "executed", effects[BC_EFFECT_EXECUTED], instructions, "\n");
		print_share(p, "skipped", effects[BC_EFFECT_SKIPPED], instructions, "\n");
		print_share(p, "fetch failed", effects[BC_EFFECT_FETCHFAIL], instructions, "\n");
		print_share(p, "without mnemonic", h->undecoded, instructions, "\n");
	}
	print_names(p, "instructions by set", &h->sets, h->sets.total);
	print_names(p, "executed, by mnemonic", &h->mnemonics, h->mnemonics.total);
	print_names(p, "register writes", &h->registers, h->registers.total);
	print_names(p, "kernel events", &h->tags, h->kinds[BC_ENTRY_KERNEL]);
	if (lines != 0) {
		bc_output_format(p->o, "\nuninterpreted lines\n");
		print_share(p, "lines", lines, bc_stats_entries(p->stats), "\n");
	}
}

/* ---- memory */

static void print_blocks(const struct page *p, const char *name, uint64_t lines, uint64_t pages)
{
	const struct bc_footprint *f = &p->stats->footprint;

	print_line(p, name, "%9s %12" PRIu64 " %9s %12" PRIu64,
		f->lines_full || f->is_cut ? "at least" : "", lines,
		f->pages_full || f->is_cut ? "at least" : "", pages);
}

static void print_reuse(const struct page *p)
{
	const struct bc_footprint *f = &p->stats->footprint;
	unsigned buckets = BC_REUSE_BUCKETS;
	uint64_t sum = 0;
	char name[NAME_MAX_BYTES];

	bc_output_format(p->o, "\nreuse: memory references since the line was last touched\n");
	while (buckets != 0 && f->reuse[buckets - 1] == 0)
		buckets--;
	for (unsigned k = 0; k < buckets; k++) {
		sum += f->reuse[k];
		snprintf(name, sizeof(name), "%" PRIu64, UINT64_C(1) << k);
		print_share(p, name, sum, f->touches, "\n");
	}
	print_share(p, "first touch", f->first, f->touches, "\n");
	print_rest(p, "unknown, table full", f->untracked, f->touches);
}

static void print_memory(const struct page *p)
{
	static const struct {
		const char *name;
		unsigned touch;
	} ways[] = {{"read", BC_TOUCH_READ}, {"written", BC_TOUCH_WRITE},
		{"fetched from", BC_TOUCH_FETCH}};
	const struct bc_footprint *f = &p->stats->footprint;
	uint64_t line_bytes = p->stats->options.footprint.line_bytes;
	uint64_t page_bytes = p->stats->options.footprint.page_bytes;

	if (f->references == 0)
		return;
	bc_output_format(p->o, "\nfootprint %22s %" PRIu64 " bytes    pages of %" PRIu64 " bytes\n",
		"lines of", line_bytes, page_bytes);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		print_blocks(p, ways[i].name, bc_line_table_count(&f->lines, ways[i].touch),
			bc_line_table_count(&f->pages, ways[i].touch));
	print_blocks(p, "total", f->lines.count, f->pages.count);
	print_blocks(p, "total bytes", f->lines.count * line_bytes, f->pages.count * page_bytes);
	print_line(p, "addresses", "0x%08" PRIx64 " to 0x%08" PRIx64, f->addr_low, f->addr_high);
	print_reuse(p);
}

/* ---- time */

static const char *tick_word(const struct page *p)
{
	const struct bc_stats *s = p->stats;

	return s->is_unit_mixed || s->unit == BC_UNIT_TICK ? "ticks" : bc_unit_name(s->unit);
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

static void print_windows(const struct page *p)
{
	struct bc_clock_windows w;

	if (!bc_interval_stats_windows(&p->stats->intervals, &w) || w.count == 0)
		return;
	print_rate(p, "busiest window", w.most, w.ticks);
	print_rate(p, "quietest window", w.fewest, w.ticks);
	label(p, "windows");
	bc_output_format(p->o, "%" PRIu64, (uint64_t)w.count);
	print_ticks(p, " of ", w.ticks, "\n");
}

static void print_intervals(const struct page *p)
{
	const struct bc_interval_stats *c = &p->stats->intervals;
	const char *word = tick_word(p);

	print_windows(p);
	if (c->intervals == 0)
		return;
	print_line(p, "intervals", "%" PRIu64 " known, %" PRIu64 " to %" PRIu64 " %s, average %.6g",
		c->intervals, c->interval_min, c->interval_max, word,
		(double)c->interval_ticks / (double)c->intervals);
	label(p, "idles");
	bc_output_format(
		p->o, "%" PRIu64 " longer than %" PRIu64 " %s", c->idles, c->idle_ticks, word);
	if (c->idles != 0) {
		bc_output_format(
			p->o, ", %.2f %% of the time", percent(c->idle_sum_ticks, c->ticks));
		print_ticks(p, ", longest ", c->interval_max, "");
	}
	bc_output_text(p->o, "\n", 1);
	label(p, "bursts");
	bc_output_format(p->o, "%" PRIu64 " with at most %" PRIu64 " %s between references",
		c->bursts, c->burst_ticks, word);
	if (c->bursts != 0)
		bc_output_format(p->o, ", %.2f %% of references, longest %" PRIu64 ", average %.1f",
			percent(c->burst_references, c->references), c->burst_longest,
			(double)c->burst_references / (double)c->bursts);
	bc_output_text(p->o, "\n", 1);
}

static void print_epochs(const struct page *p)
{
	const struct bc_interval_stats *c = &p->stats->intervals;

	if (c->epochs < 2)
		return;
	print_line(p, "epochs", "%" PRIu64, c->epochs);
	for (unsigned i = 0; i < c->epochs && i < EPOCHS_MAX; i++) {
		const struct bc_epoch_span *span = &c->spans[i];
		char name[32];
		snprintf(name, sizeof(name), "  epoch %u", i);
		label(p, name);
		bc_output_format(p->o, "%" PRIu64 " references, tick %" PRIu64 " to %" PRIu64,
			span->references, span->first_tick, span->last_tick);
		if (span->last_tick >= span->first_tick)
			print_ticks(p, ", ", span->last_tick - span->first_tick, "\n");
		else
			bc_output_format(p->o, "\n"); /* the clock went back */
	}
	if (c->epochs > EPOCHS_MAX)
		bc_output_format(p->o, "  and %" PRIu64 " more\n", c->epochs - EPOCHS_MAX);
}

static void print_drift(const struct page *p)
{
	struct bc_drift_result drift;

	if (p->stats->format != BC_FORMAT_SEGMENT)
		return;
	bc_drift_result(&p->stats->drift, &drift);
	if (drift.state != BC_DRIFT_KNOWN)
		print_line(p, "clock drift", "unknown: %s", bc_stats_no_drift_reason(&drift));
	else
		print_line(p, "clock drift",
			"%+.2f ppm against the host's clock, +- %.2f ppm, from %" PRIu64
			" chunks in %.1f s",
			drift.ppm, drift.error_ppm, drift.pairs, drift.seconds);
}

static void print_time(const struct page *p)
{
	const struct bc_interval_stats *c = &p->stats->intervals;

	if (c->references == 0)
		return;
	bc_output_format(p->o, "\ntime\n");
	label(p, "duration");
	print_ticks(p, "", c->ticks, "\n");
	if (c->ticks != 0)
		print_rate(p, "rate", c->references, c->ticks);
	if (!p->stats->options.is_totals)
		print_intervals(p);
	if (c->backward != 0)
		print_line(p, "backward", "%" PRIu64 " reference%s earlier than the previous one",
			c->backward, bc_plural(c->backward));
	print_epochs(p);
	print_drift(p);
}

bool bc_stats_print(struct bc_output *o, const struct bc_stats *s, uint64_t top)
{
	const struct bc_format_info *info = bc_format_info(s->format);
	const struct bc_tally *t = &s->tally;
	bool has_samples = s->format == BC_FORMAT_RAW6 || s->format == BC_FORMAT_BCP1;
	struct page page = {.o = o, .stats = s, .top = top};

	bc_output_format(o, "%s: %" PRIu64 " %s\n", bc_format_name(s->format), bc_stats_entries(s),
		info->is_text ? "entries"
		: has_samples ? "samples"
			      : "records");
	print_line(&page, "references", "%14" PRIu64, t->references);
	if (t->without_size != t->references)
		print_line(&page, "bytes moved", "%14" PRIu64 "%s", t->bytes,
			t->without_size != 0 ? ", where the size is known" : "");
	print_references(&page);
	print_address_names(&page);
	print_events(&page);
	print_uops(&page);
	print_instructions(&page);
	print_memory(&page);
	print_time(&page);
	free(page.rows);
	return !page.lacks_memory;
}
