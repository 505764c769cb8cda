#include "cli/stats/stats_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *bc_stats_attr_byu(unsigned attr)
{
	static const char *const names[] = {
		"uncacheable", "write-through", "write-protected", "write-back"};

	return names[attr & 3];
}

const char *bc_stats_attr_p6(unsigned attr)
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
		text(m, row, "low_two_bits", bc_stats_attr_byu(attr));
		text(m, row, "p6", bc_stats_attr_p6(attr));
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
