/* Prints the figures of struct bc_stats, as JSON or as a page. There, tables have one heading, at
 * most `top` rows, and lines for what has no row; they are left out if there is nothing to count.
 * Shares are those of the table's total. If there is not enough memory for a row, that is reported
 * at the end. */
#include "cli/stats/stats_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/io/record_text.h"
#include "cli/term/text.h"
#include "formats/base/grow.h"
#include "formats/base/utf8.h"

/* A memory type has two interpretations: its low two bits as in the BYU document, or the code of
 * the P6 bus (NULL for unnamed codes). */
static const char *attr_byu(unsigned attr)
{
	static const char *const names[] = {
		"uncacheable", "write-through", "write-protected", "write-back"};

	return names[attr & 3];
}

static const char *attr_p6(unsigned attr)
{
	static const char *const names[8] = {[0] = "uncacheable",
		[4] = "write-combining",
		[5] = "write-through",
		[6] = "write-protected",
		[7] = "write-back"};

	return attr < 8 ? names[attr] : NULL;
}

/* Set to false by any failed allocation. */
struct maker {
	bool ok;
};

static void set(struct maker *m, json_t *object, const char *name, json_t *value)
{
	m->ok = json_object_set_new(object, name, value) == 0 && m->ok;
}

static void u64(struct maker *m, json_t *object, const char *name, uint64_t value)
{
	set(m, object, name, bc_json_u64(value));
}

/* An address may not fit a JSON reader's numbers. */
static void hex(struct maker *m, json_t *object, const char *name, uint64_t addr)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "0x%" PRIx64, addr);
	set(m, object, name, json_string(digits));
}

static void number(struct maker *m, json_t *object, const char *name, double value)
{
	set(m, object, name, bc_json_double(value));
}

static void text(struct maker *m, json_t *object, const char *name, const char *value)
{
	set(m, object, name, bc_json_text(value));
}

static void truth(struct maker *m, json_t *object, const char *name, bool value)
{
	set(m, object, name, json_boolean(value));
}

static json_t *object_in(struct maker *m, json_t *object, const char *name)
{
	set(m, object, name, json_object());
	return json_object_get(object, name);
}

static json_t *array_in(struct maker *m, json_t *object, const char *name)
{
	set(m, object, name, json_array());
	return json_object_get(object, name);
}

static json_t *row_in(struct maker *m, json_t *array)
{
	m->ok = json_array_append_new(array, json_object()) == 0 && m->ok;
	return json_array_get(array, json_array_size(array) - 1);
}

/* Appends a row with a value and the number of references that have it. */
static void value_row(
	struct maker *m, json_t *array, const char *name, uint64_t value, uint64_t references)
{
	if (references == 0)
		return;
	json_t *row = row_in(m, array);
	u64(m, row, name, value);
	u64(m, row, "references", references);
}

static void add_types(struct maker *m, json_t *root, const struct bc_tally *t)
{
	json_t *types = array_in(m, root, "types");

	for (unsigned type = 0; type < BC_REF_TYPES; type++) {
		if (t->types[type] == 0)
			continue;
		json_t *row = row_in(m, types);
		u64(m, row, "type", type);
		text(m, row, "name", bc_ref_type_name(type));
		u64(m, row, "references", t->types[type]);
		u64(m, row, "bytes", t->type_bytes[type]);
	}
	json_t *letters = array_in(m, root, "letters");
	for (unsigned letter = 0; letter < 256; letter++)
		value_row(m, letters, "letter", letter, t->letters[letter]);
}

static void add_tally(struct maker *m, json_t *root, const struct bc_tally *t)
{
	u64(m, root, "references", t->references);
	u64(m, root, "bytes", t->bytes);
	add_types(m, root, t);
	json_t *sizes = array_in(m, root, "sizes");
	for (unsigned size = 0; size < 256; size++)
		value_row(m, sizes, "size", size, t->sizes[size]);
	for (size_t i = 0; i < t->large_count; i++)
		value_row(m, sizes, "size", t->large[i].size, t->large[i].references);
	u64(m, root, "other_sizes", t->large_others);
	u64(m, root, "without_size", t->without_size);
	json_t *attrs = array_in(m, root, "attrs");
	for (unsigned attr = 0; attr < 256; attr++) {
		if (t->attrs[attr] == 0)
			continue;
		json_t *row = row_in(m, attrs);
		u64(m, row, "attr", attr);
		text(m, row, "low_two_bits", attr_byu(attr));
		text(m, row, "p6", attr_p6(attr));
		u64(m, row, "references", t->attrs[attr]);
	}
	u64(m, root, "without_attr", t->without_attr);
	json_t *procs = array_in(m, root, "processors");
	for (unsigned proc = 0; proc < BC_TALLY_PROCS; proc++)
		value_row(m, procs, "proc", proc, t->procs[proc]);
	u64(m, root, "without_proc", t->without_proc);
}

/* Adds an array of names, each as `key`, and their counts. */
static void add_rows(struct maker *m, json_t *object, const char *member, const char *key,
	const struct bc_string_counter *names)
{
	json_t *array = array_in(m, object, member);

	for (size_t i = 0; i < names->count && m->ok; i++) {
		char *name = bc_string_count_text(&names->rows[i]);
		json_t *row = row_in(m, array);
		m->ok = m->ok && name != NULL;
		text(m, row, key, name);
		u64(m, row, "count", names->rows[i].count);
		free(name);
	}
}

static void add_names(
	struct maker *m, json_t *root, const char *member, const struct bc_string_counter *names)
{
	json_t *object = object_in(m, root, member);

	u64(m, object, "total", names->total);
	u64(m, object, "others", names->others);
	add_rows(m, object, "names", "name", names);
}

/* References by the names of their addresses. */
static void add_references(struct maker *m, json_t *root, const struct bc_stats *s)
{
	json_t *object = object_in(m, root, "names");

	u64(m, object, "total", s->names.total + s->unnamed);
	u64(m, object, "without", s->unnamed);
	u64(m, object, "others", s->names.others);
	json_t *array = array_in(m, object, "names");
	for (size_t i = 0; i < s->names.count && m->ok; i++) {
		const struct bc_string_count *count = &s->names.rows[i];
		char *name = strndup(count->text.at, count->text.bytes);
		json_t *row = row_in(m, array);
		m->ok = m->ok && name != NULL;
		text(m, row, "name", name);
		u64(m, row, "count", count->count);
		free(name);
	}
}

static void add_gap(struct maker *m, json_t *object, const struct bc_gap_count *gap)
{
	u64(m, object, "gaps", gap->gaps);
	u64(m, object, "lost", gap->lost);
	u64(m, object, "inexact", gap->inexact);
}

static void add_events(struct maker *m, json_t *root, const struct bc_entry_counts *h)
{
	json_t *events = object_in(m, root, "events");

	add_gap(m, events, &h->gaps);
	json_t *causes = array_in(m, events, "causes");
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++) {
		if (h->causes[cause].gaps == 0)
			continue;
		json_t *row = row_in(m, causes);
		text(m, row, "cause", bc_gap_cause_name(cause));
		add_gap(m, row, &h->causes[cause]);
	}
	u64(m, events, "marks", h->marks);
	u64(m, events, "triggers", h->triggers);
}

static void add_uops(struct maker *m, json_t *root, const struct bc_entry_counts *h)
{
	json_t *uops = object_in(m, root, "uops");

	u64(m, uops, "micro_ops", h->kinds[BC_ENTRY_UOP]);
	u64(m, uops, "macro_ops", h->macro_ops);
	u64(m, uops, "loads", h->loads);
	u64(m, uops, "stores", h->stores);
	u64(m, uops, "branches_taken", h->taken);
	u64(m, uops, "branches_not_taken", h->not_taken);
	u64(m, uops, "flag_reads", h->flag_reads);
	u64(m, uops, "flag_writes", h->flag_writes);
	add_names(m, uops, "macro_opcodes", &h->macros);
	add_names(m, uops, "micro_opcodes", &h->micros);
}

static void add_instructions(struct maker *m, json_t *root, const struct bc_entry_counts *h)
{
	json_t *object = object_in(m, root, "instructions");

	u64(m, object, "instructions", h->kinds[BC_ENTRY_INSTRUCTION]);
	u64(m, object, "executed", h->effects[BC_EFFECT_EXECUTED]);
	u64(m, object, "skipped", h->effects[BC_EFFECT_SKIPPED]);
	u64(m, object, "fetch_failed", h->effects[BC_EFFECT_FETCHFAIL]);
	u64(m, object, "without_mnemonic", h->undecoded);
	add_names(m, object, "sets", &h->sets);
	add_names(m, object, "mnemonics", &h->mnemonics);
	add_names(m, root, "registers", &h->registers);
	json_t *kernel = object_in(m, root, "kernel_events");
	u64(m, kernel, "total", h->kinds[BC_ENTRY_KERNEL]);
	u64(m, kernel, "others", h->tags.others);
	add_rows(m, kernel, "tags", "tag", &h->tags);
	u64(m, root, "lines_kept", h->kinds[BC_ENTRY_LINE]);
}

static void add_blocks(struct maker *m, json_t *root, const char *member,
	const struct bc_line_table *table, uint64_t bytes, bool is_least)
{
	json_t *object = object_in(m, root, member);

	u64(m, object, "bytes_each", bytes);
	u64(m, object, "touched", table->count);
	u64(m, object, "read", bc_line_table_count(table, BC_TOUCH_READ));
	u64(m, object, "written", bc_line_table_count(table, BC_TOUCH_WRITE));
	u64(m, object, "fetched", bc_line_table_count(table, BC_TOUCH_FETCH));
	truth(m, object, "at_least", is_least);
}

static void add_footprint(struct maker *m, json_t *root, const struct bc_stats *s)
{
	const struct bc_footprint *f = &s->footprint;
	json_t *object = object_in(m, root, "footprint");
	unsigned buckets = BC_REUSE_BUCKETS;

	u64(m, object, "references", f->references);
	u64(m, object, "other_references", f->others);
	if (f->references != 0) {
		hex(m, object, "addr_low", f->addr_low);
		hex(m, object, "addr_high", f->addr_high);
	}
	add_blocks(m, object, "lines", &f->lines, s->options.footprint.line_bytes,
		f->lines_full || f->is_cut);
	add_blocks(m, object, "pages", &f->pages, s->options.footprint.page_bytes,
		f->pages_full || f->is_cut);
	object = object_in(m, root, "reuse");
	u64(m, object, "touches", f->touches);
	u64(m, object, "first", f->first);
	u64(m, object, "untracked", f->untracked);
	json_t *array = array_in(m, object, "within");
	uint64_t sum = 0;
	while (buckets != 0 && f->reuse[buckets - 1] == 0)
		buckets--;
	for (unsigned k = 0; k < buckets; k++) {
		json_t *row = row_in(m, array);
		sum += f->reuse[k];
		u64(m, row, "references", UINT64_C(1) << k);
		u64(m, row, "touches", sum);
		number(m, row, "share", (double)sum / (double)f->touches);
	}
}

static void add_intervals(struct maker *m, json_t *time, const struct bc_interval_stats *c)
{
	struct bc_clock_windows w;
	unsigned buckets = BC_INTERVAL_STATS_BUCKETS;
	json_t *object = object_in(m, time, "intervals");

	u64(m, object, "known", c->intervals);
	u64(m, object, "ticks", c->interval_ticks);
	u64(m, object, "shortest", c->intervals != 0 ? c->interval_min : 0);
	u64(m, object, "longest", c->interval_max);
	json_t *array = array_in(m, object, "by_power_of_two");
	while (buckets != 0 && c->interval_buckets[buckets - 1] == 0)
		buckets--;
	for (unsigned i = 0; i < buckets; i++) {
		json_t *row = row_in(m, array);
		u64(m, row, "from", i != 0 ? UINT64_C(1) << (i - 1) : 0);
		u64(m, row, "intervals", c->interval_buckets[i]);
	}
	object = object_in(m, time, "idles");
	u64(m, object, "longer_than", c->idle_ticks);
	u64(m, object, "idles", c->idles);
	u64(m, object, "ticks", c->idle_sum_ticks);
	u64(m, object, "longest", c->idles != 0 ? c->interval_max : 0);
	object = object_in(m, time, "bursts");
	u64(m, object, "interval_at_most", c->burst_ticks);
	u64(m, object, "bursts", c->bursts);
	u64(m, object, "references", c->burst_references);
	u64(m, object, "longest", c->burst_longest);
	object = object_in(m, time, "windows");
	bool has_windows = bc_interval_stats_windows(c, &w);
	u64(m, object, "windows", has_windows ? w.count : 0);
	u64(m, object, "ticks", w.ticks);
	u64(m, object, "most_references", has_windows ? w.most : 0);
	u64(m, object, "fewest_references", has_windows ? w.fewest : 0);
}

static void add_spans(struct maker *m, json_t *time, const struct bc_interval_stats *c)
{
	json_t *array = array_in(m, time, "epochs");

	for (unsigned i = 0; i < c->epochs && i < BC_INTERVAL_STATS_EPOCHS; i++) {
		json_t *row = row_in(m, array);
		u64(m, row, "references", c->spans[i].references);
		u64(m, row, "first_tick", c->spans[i].first_tick);
		u64(m, row, "last_tick", c->spans[i].last_tick);
	}
	u64(m, time, "epoch_count", c->epochs);
}

static void add_drift(struct maker *m, json_t *time, const struct bc_stats *s)
{
	struct bc_drift_result drift;
	json_t *object = object_in(m, time, "drift");

	bc_drift_result(&s->drift, &drift);
	bool is_known = drift.state == BC_DRIFT_KNOWN;
	truth(m, object, "is_known", is_known);
	text(m, object, "why_not", bc_stats_no_drift_reason(&drift));
	if (is_known) {
		number(m, object, "ppm", drift.ppm);
		number(m, object, "error_ppm", drift.error_ppm);
	}
	u64(m, object, "pairs", drift.pairs);
	number(m, object, "seconds", drift.seconds);
}

static void add_time(struct maker *m, json_t *root, const struct bc_stats *s)
{
	const struct bc_interval_stats *c = &s->intervals;
	double hz = bc_stats_hz(s);

	if (c->references == 0) {
		set(m, root, "time", json_null());
		return;
	}
	json_t *time = object_in(m, root, "time");
	text(m, time, "unit",
		s->is_unit_mixed          ? "mixed"
		: s->unit == BC_UNIT_TICK ? "tick"
					  : bc_unit_name(s->unit));
	number(m, time, "ticks_per_second", hz);
	u64(m, time, "references", c->references);
	u64(m, time, "ticks", c->ticks);
	if (hz != 0)
		number(m, time, "seconds", (double)c->ticks / hz);
	u64(m, time, "backward", c->backward);
	add_spans(m, time, c);
	if (!s->options.is_totals)
		add_intervals(m, time, c);
	if (s->format == BC_FORMAT_SEGMENT)
		add_drift(m, time, s);
}

json_t *bc_stats_json(const struct bc_stats *s)
{
	const struct bc_entry_counts *h = &s->counts;
	json_t *root = json_object();
	struct maker m = {.ok = root != NULL};

	text(&m, root, "format", bc_format_name(s->format));
	u64(&m, root, "files", (uint64_t)s->files);
	u64(&m, root, "entries", bc_stats_entries(s));
	add_tally(&m, root, &s->tally);
	if (s->options.names != NULL)
		add_references(&m, root, s);
	add_events(&m, root, h);
	if (h->kinds[BC_ENTRY_UOP] != 0)
		add_uops(&m, root, h);
	if ((bc_format_info(s->format)->holds &
		    (BC_CAN_INSTRUCTION | BC_CAN_KERNEL | BC_CAN_LINE | BC_CAN_REGISTER)) != 0)
		add_instructions(&m, root, h);
	if (!s->options.is_totals)
		add_footprint(&m, root, s);
	add_time(&m, root, s);
	if (m.ok)
		return root;
	json_decref(root);
	return NULL;
}

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
			add_row(p, t->attrs[attr], NO_BYTES, "%u %s", attr, attr_byu(attr));
		else if (attr < 8)
			add_row(p, t->attrs[attr], NO_BYTES, "%u %s (P6), %s (low two bits)", attr,
				attr_p6(attr), attr_byu(attr));
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
