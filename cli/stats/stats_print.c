/* Prints the figures of struct bc_stats, as a JSON object or as a page of text.
 *
 * One walk makes both. For each group of figures, put_...() sets members and prints lines:
 * set_json(), append_json() and the like do nothing on a page, print_...() nothing in JSON. Only
 * the times have separate functions, because a page says much more about them than their numbers.
 *
 * On the page, rows are collected for a table, which has one heading, at most `top` rows, and lines
 * for what has no row. It is left out if there is nothing to count. Shares are of the table's
 * total. If there is not enough memory for a row, that is reported at the end. */
#include "cli/stats/stats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/term/text.h"
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

struct printer {
	const struct bc_stats *stats;
	bool lacks_memory;
	/* As JSON: the object that gets the members. NULL: as a page. */
	json_t *object;
	/* As a page. */
	struct bc_output *o;
	uint64_t top;
	struct row *rows; /* of the next table */
	size_t count;
	size_t capacity;
};

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

/* ---- JSON */

static bool is_json(const struct printer *p)
{
	return p->o == NULL;
}

/* Sets a member, and takes its value. */
static void set_json(struct printer *p, const char *name, json_t *value)
{
	p->lacks_memory |= json_object_set_new(p->object, name, value) != 0 && is_json(p);
}

static void set_u64(struct printer *p, const char *name, uint64_t value)
{
	set_json(p, name, bc_json_u64(value));
}

/* An address may not fit a JSON reader's numbers. */
static void set_hex(struct printer *p, const char *name, uint64_t addr)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "0x%" PRIx64, addr);
	set_json(p, name, json_string(digits));
}

/* Later members go into a new object. Returns the present one, for leave_object(). */
static json_t *enter_object(struct printer *p, const char *name)
{
	json_t *outer = p->object;

	set_json(p, name, json_object());
	p->object = json_object_get(outer, name);
	return outer;
}

static void leave_object(struct printer *p, json_t *outer)
{
	p->object = outer;
}

static json_t *add_array(struct printer *p, const char *name)
{
	set_json(p, name, json_array());
	return json_object_get(p->object, name);
}

/* Appends a value to an array, and takes it. */
static void append_json(struct printer *p, json_t *array, json_t *value)
{
	p->lacks_memory |= json_array_append_new(array, value) != 0 && is_json(p);
}

/* ---- lines of the page */

static double percent(uint64_t part, uint64_t whole)
{
	return whole != 0 ? 100 * (double)part / (double)whole : 0;
}

static void print_label(const struct printer *p, const char *name)
{
	bc_output_format(p->o, "  %-22s ", name);
}

static void print_line(const struct printer *p, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void print_line(const struct printer *p, const char *name, const char *format, ...)
{
	va_list args;

	if (is_json(p))
		return;
	print_label(p, name);
	va_start(args, format);
	bc_output_vformat(p->o, format, args);
	va_end(args);
	bc_output_text(p->o, "\n", 1);
}

static void print_heading(const struct printer *p, const char *heading)
{
	if (!is_json(p))
		bc_output_format(p->o, "\n%s\n", heading);
}

static void print_share(
	const struct printer *p, const char *name, uint64_t count, uint64_t whole, const char *end)
{
	if (!is_json(p))
		bc_output_format(p->o, "  %-22s %14s %9.2f %%%s", name, BC_GROUPED(count),
			percent(count, whole), end);
}

/* A count, and its share of `whole` on the page. */
static void put_share(
	struct printer *p, const char *member, const char *name, uint64_t count, uint64_t whole)
{
	set_u64(p, member, count);
	print_share(p, name, count, whole, "\n");
}

/* ---- tables */

/* Adds a row to the next table, unless its count is 0. A longer name is cut off. */
static void add_row(struct printer *p, uint64_t count, uint64_t bytes, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static void add_row(struct printer *p, uint64_t count, uint64_t bytes, const char *format, ...)
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
static void print_rest(const struct printer *p, const char *name, uint64_t count, uint64_t whole)
{
	if (count != 0)
		print_share(p, name, count, whole, "\n");
}

/* Prints the rows that were added, and what is counted in no row: `others` and `unknowns`. */
static void print_table(struct printer *p, const char *heading, uint64_t whole, const char *other,
	uint64_t others, const char *unknown, uint64_t unknowns)
{
	size_t n = p->count;

	p->count = 0;
	if (n == 0 || whole == 0)
		return;
	print_heading(p, heading);
	for (size_t i = 0; i < n && i < p->top; i++) {
		print_share(p, p->rows[i].name, p->rows[i].count, whole, "");
		if (p->rows[i].bytes != NO_BYTES)
			bc_output_format(p->o, " %14s bytes", BC_GROUPED(p->rows[i].bytes));
		bc_output_text(p->o, "\n", 1);
	}
	if (n > p->top)
		bc_output_format(p->o, "  and %s more\n", BC_GROUPED(n - p->top));
	print_rest(p, other, others, whole);
	print_rest(p, unknown, unknowns, whole);
}

static void sort_rows(struct printer *p)
{
	if (p->count != 0)
		qsort(p->rows, p->count, sizeof(*p->rows), compare_counts); /* glibc's is stable */
}

/* A value and the number of references that have it, unless that is 0. */
static void put_row(struct printer *p, json_t *array, const char *key, uint64_t value,
	uint64_t references, const char *format, ...) __attribute__((format(printf, 6, 7)));

static void put_row(struct printer *p, json_t *array, const char *key, uint64_t value,
	uint64_t references, const char *format, ...)
{
	char name[NAME_MAX_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(name, sizeof(name), format, args);
	va_end(args);
	if (!is_json(p))
		add_row(p, references, NO_BYTES, "%s", name);
	else if (references != 0)
		append_json(p, array,
			json_pack("{s:o, s:o}", key, bc_json_u64(value), "references",
				bc_json_u64(references)));
}

static void put_types(struct printer *p)
{
	const struct bc_tally *t = &p->stats->tally;
	json_t *array = add_array(p, "types");

	for (unsigned type = 0; type < BC_REF_TYPES; type++) {
		const char *name = bc_ref_type_name(type);
		uint64_t bytes = t->bytes != 0 ? t->type_bytes[type] : NO_BYTES;
		if (t->types[type] == 0)
			continue;
		if (is_json(p))
			append_json(p, array,
				json_pack("{s:o, s:o, s:o, s:o}", "type", bc_json_u64(type), "name",
					bc_json_text(name), "references",
					bc_json_u64(t->types[type]), "bytes",
					bc_json_u64(t->type_bytes[type])));
		else if (type != BC_REF_LETTER && name != NULL) /* its letters have rows */
			add_row(p, t->types[type], bytes, "%s", name);
		else if (type != BC_REF_LETTER)
			add_row(p, t->types[type], bytes, "0x%02x", type);
	}
	array = add_array(p, "letters");
	for (unsigned letter = 0; letter < 256; letter++)
		put_row(p, array, "letter", letter, t->letters[letter],
			letter > ' ' && letter < 0x7F ? "'%c'" : "0x%02x", letter);
	sort_rows(p);
	print_table(p, "references by type", t->references, NULL, 0, NULL, 0);
}

/* What chunk headers have of the types. */
static void put_classes(struct printer *p)
{
	static const char *const names[] = {
		"fetch", "read", "write", "other", NULL, "ioread", "iowrite", NULL};
	const uint64_t *classes = p->stats->pages.classes[0];
	json_t *outer = enter_object(p, "classes");

	print_heading(p, "references by class");
	for (unsigned i = 0; i < 2 * BC_PAGE_CLASSES; i++)
		if (names[i] != NULL)
			put_share(p, names[i], names[i], classes[i], p->stats->tally.references);
	leave_object(p, outer);
}

static void put_sizes(struct printer *p)
{
	const struct bc_tally *t = &p->stats->tally;
	json_t *array = add_array(p, "sizes");

	for (unsigned size = 0; size < 256; size++)
		put_row(p, array, "size", size, t->sizes[size], "%u byte%s", size, bc_plural(size));
	for (size_t i = 0; i < t->large_count; i++)
		put_row(p, array, "size", t->large[i].size, t->large[i].references,
			"%" PRIu32 " bytes", t->large[i].size);
	set_u64(p, "other_sizes", t->large_others);
	set_u64(p, "without_size", t->without_size);
	sort_rows(p);
	print_table(p, "by size", t->references, "other sizes", t->large_others, "size unknown",
		t->without_size);
}

static void put_attrs(struct printer *p)
{
	const struct bc_tally *t = &p->stats->tally;
	json_t *array = add_array(p, "attrs");

	for (unsigned attr = 0; attr < 256; attr++) {
		if (t->attrs[attr] == 0)
			continue;
		if (is_json(p))
			append_json(p, array,
				json_pack("{s:o, s:o, s:o, s:o}", "attr", bc_json_u64(attr),
					"low_two_bits", bc_json_text(attr_byu(attr)), "p6",
					bc_json_text(attr_p6(attr)), "references",
					bc_json_u64(t->attrs[attr])));
		else if (attr < 4)
			add_row(p, t->attrs[attr], NO_BYTES, "%u %s", attr, attr_byu(attr));
		else if (attr < 8)
			add_row(p, t->attrs[attr], NO_BYTES, "%u %s (P6), %s (low two bits)", attr,
				attr_p6(attr), attr_byu(attr));
		else
			add_row(p, t->attrs[attr], NO_BYTES, "%u", attr);
	}
	set_u64(p, "without_attr", t->without_attr);
	sort_rows(p);
	print_table(p, "by memory type", t->references, NULL, 0, "memory type unknown",
		t->without_attr);
}

static void put_procs(struct printer *p)
{
	const struct bc_tally *t = &p->stats->tally;
	json_t *array = add_array(p, "processors");

	for (unsigned proc = 0; proc < BC_TALLY_PROCS; proc++)
		if (t->procs[proc] != 0)
			put_row(p, array, "proc", proc, t->procs[proc], "%u", proc);
	set_u64(p, "without_proc", t->without_proc);
	print_table(
		p, "by processor", t->references, NULL, 0, "processor unknown", t->without_proc);
}

/* The name of an address, chosen by a user: any bytes, converted to UTF-8. */
static char *address_name(const struct bc_string_count *count)
{
	char *name = strndup(count->text.at, count->text.bytes);
	char *valid = name != NULL ? bc_utf8_repair(name) : NULL;

	free(name);
	return valid;
}

/* Sorted names and their counts. */
static void put_names(struct printer *p, const char *member, const char *heading,
	const struct bc_string_counter *names)
{
	bool is_address = names == &p->stats->names;
	bool is_tag = names == &p->stats->counts.tags;
	uint64_t unnamed = is_address ? p->stats->unnamed : 0;
	uint64_t total = names->total + unnamed;
	json_t *outer = enter_object(p, member);
	char safe[NAME_MAX_BYTES];

	set_u64(p, "total", total);
	if (is_address)
		set_u64(p, "without", unnamed);
	set_u64(p, "others", names->others);
	json_t *array = add_array(p, is_tag ? "tags" : "names");
	for (size_t i = 0; i < names->count && !p->lacks_memory; i++) {
		const struct bc_string_count *row = &names->rows[i];
		char *name = is_address ? address_name(row) : bc_string_count_text(row);
		p->lacks_memory = name == NULL;
		if (is_json(p))
			append_json(p, array,
				json_pack("{s:o, s:o}", is_tag ? "tag" : "name", bc_json_text(name),
					"count", bc_json_u64(row->count)));
		else if (is_address)
			add_row(p, row->count, NO_BYTES, "%s",
				bc_safe_text(safe, sizeof(safe), name));
		else
			add_row(p, row->count, NO_BYTES, "%s",
				name != NULL && name[0] != '\0' ? name : "?");
		free(name);
	}
	print_table(p, heading, total, "other names", names->others, "without a name", unnamed);
	leave_object(p, outer);
}

/* ---- events, micro-ops, instructions */

static void print_loss(struct printer *p, const char *name, struct bc_loss loss)
{
	char text[BC_LOSS_TEXT_MAX];

	if (loss.gaps == 0)
		print_line(p, name, "none");
	else
		print_line(p, name, "%s, %s", BC_GROUPED(loss.gaps), bc_loss_text(text, loss));
}

static void put_events(struct printer *p)
{
	const struct bc_entry_counts *h = &p->stats->counts;
	const struct bc_losses *l = &h->losses;
	json_t *outer = p->object;
	char name[32];

	if (!is_json(p) && (bc_format_info(p->stats->format)->traits & BC_TRAIT_EVENT) == 0)
		return;
	set_json(p, "events", bc_losses_json(l));
	p->object = json_object_get(outer, "events");
	print_heading(p, "gaps and marks");
	print_loss(p, "gaps", bc_losses_sum(l));
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++) {
		snprintf(name, sizeof(name), "  %s", bc_gap_cause_name(cause));
		if (l->gaps[cause] != 0)
			print_loss(p, name,
				(struct bc_loss){.gaps = l->gaps[cause],
					.lost = l->lost[cause],
					.inexact = l->inexact[cause]});
	}
	print_line(p, "marks", "%s", BC_GROUPED(h->marks));
	print_line(p, "triggers", "%s", BC_GROUPED(h->triggers));
	set_u64(p, "marks", h->marks);
	set_u64(p, "triggers", h->triggers);
	leave_object(p, outer);
}

static void put_uops(struct printer *p)
{
	const struct bc_entry_counts *h = &p->stats->counts;
	uint64_t uops = h->kinds[BC_ENTRY_UOP];
	uint64_t branches = h->taken + h->not_taken;
	json_t *outer = enter_object(p, "uops");

	print_heading(p, "micro-ops");
	set_u64(p, "micro_ops", uops);
	print_line(p, "micro-ops", "%14s", BC_GROUPED(uops));
	set_u64(p, "macro_ops", h->macro_ops);
	print_line(p, "macro-ops", "%14s", BC_GROUPED(h->macro_ops));
	if (h->macro_ops != 0)
		print_line(
			p, "per macro-op", "%17.2f micro-ops", (double)uops / (double)h->macro_ops);
	put_share(p, "loads", "loads", h->loads, uops);
	put_share(p, "stores", "stores", h->stores, uops);
	set_u64(p, "branches_taken", h->taken);
	set_u64(p, "branches_not_taken", h->not_taken);
	put_share(p, "flag_reads", "read the flags", h->flag_reads, uops);
	put_share(p, "flag_writes", "write the flags", h->flag_writes, uops);
	print_heading(p, "branches");
	print_share(p, "taken", h->taken, branches, "\n");
	print_share(p, "not taken", h->not_taken, branches, "\n");
	put_names(p, "macro_opcodes", "macro-ops by opcode", &h->macros);
	put_names(p, "micro_opcodes", "micro-ops by opcode", &h->micros);
	leave_object(p, outer);
}

static void put_instructions(struct printer *p)
{
	const struct bc_entry_counts *h = &p->stats->counts;
	const uint64_t *effects = h->effects;
	uint64_t n = h->kinds[BC_ENTRY_INSTRUCTION];
	uint64_t lines = h->kinds[BC_ENTRY_LINE];
	json_t *outer = enter_object(p, "instructions");

	if (n != 0)
		print_heading(p, "instructions");
	set_u64(p, "instructions", n);
	if (is_json(p) || n != 0) {
		put_share(p, "executed", "executed", effects[BC_EFFECT_EXECUTED], n);
		put_share(p, "skipped", "skipped", effects[BC_EFFECT_SKIPPED], n);
		put_share(p, "fetch_failed", "fetch failed", effects[BC_EFFECT_FETCHFAIL], n);
		put_share(p, "without_mnemonic", "without mnemonic", h->undecoded, n);
	}
	put_names(p, "sets", "instructions by set", &h->sets);
	put_names(p, "mnemonics", "executed, by mnemonic", &h->mnemonics);
	leave_object(p, outer);
	put_names(p, "registers", "register writes", &h->registers);
	put_names(p, "kernel_events", "kernel events", &h->tags);
	set_u64(p, "lines_kept", lines);
	if (lines != 0) {
		print_heading(p, "uninterpreted lines");
		print_share(p, "lines", lines, bc_stats_entries(p->stats), "\n");
	}
}

/* ---- memory */

static const struct {
	const char *member;
	const char *name;
	unsigned touch;
} touches[] = {{"read", "read", BC_TOUCH_READ}, {"written", "written", BC_TOUCH_WRITE},
	{"fetched", "fetched from", BC_TOUCH_FETCH}};

#define TOUCHES (sizeof(touches) / sizeof(touches[0]))

static void set_blocks(struct printer *p, const char *member, const struct bc_line_table *table,
	uint64_t bytes, bool is_least)
{
	json_t *outer = enter_object(p, member);

	set_u64(p, "bytes_each", bytes);
	set_u64(p, "touched", table->count);
	for (size_t i = 0; i < TOUCHES; i++)
		set_u64(p, touches[i].member, bc_line_table_count(table, touches[i].touch));
	set_json(p, "at_least", json_boolean(is_least));
	leave_object(p, outer);
}

static void print_blocks(const struct printer *p, const char *name, uint64_t lines, uint64_t pages)
{
	const struct bc_footprint *f = &p->stats->footprint;

	print_line(p, name, "%9s %12s %9s %12s", f->lines_full || f->is_cut ? "at least" : "",
		p->stats->options.is_full ? BC_GROUPED(lines) : "-",
		f->pages_full || f->is_cut ? "at least" : "", BC_GROUPED(pages));
}

static void put_footprint(struct printer *p)
{
	const struct bc_footprint *f = &p->stats->footprint;
	uint64_t line_bytes = p->stats->options.footprint.line_bytes;
	uint64_t page_bytes = p->stats->options.footprint.page_bytes;
	bool is_full = p->stats->options.is_full;

	if (is_json(p)) {
		json_t *outer = enter_object(p, "footprint");
		set_u64(p, "references", f->references);
		set_u64(p, "other_references", f->others);
		if (is_full && f->references != 0) {
			set_hex(p, "addr_low", f->addr_low);
			set_hex(p, "addr_high", f->addr_high);
		}
		if (is_full)
			set_blocks(p, "lines", &f->lines, line_bytes, f->lines_full || f->is_cut);
		set_blocks(p, "pages", &f->pages, page_bytes, f->pages_full || f->is_cut);
		leave_object(p, outer);
		return;
	}
	bc_output_format(p->o, "\nfootprint %22s %s bytes    pages of %s bytes\n", "lines of",
		BC_GROUPED(line_bytes), BC_GROUPED(page_bytes));
	for (size_t i = 0; i < TOUCHES; i++)
		print_blocks(p, touches[i].name, bc_line_table_count(&f->lines, touches[i].touch),
			bc_line_table_count(&f->pages, touches[i].touch));
	print_blocks(p, "total", f->lines.count, f->pages.count);
	print_blocks(p, "total bytes", f->lines.count * line_bytes, f->pages.count * page_bytes);
	if (is_full)
		print_line(p, "addresses", "0x%08" PRIx64 " to 0x%08" PRIx64, f->addr_low,
			f->addr_high);
}

/* The pages of 4,096 bytes, by references that begin in them. */
static void put_hot_pages(struct printer *p)
{
	const uint64_t *pages = p->stats->pages.pages;
	json_t *array = add_array(p, "hot_pages");

	for (uint32_t i = 0; i < BC_STATS_PAGES; i++)
		if (pages[i] != 0)
			put_row(p, array, "addr", (uint64_t)i * BC_PAGE_BYTES,
				pages[i] >> BC_STATS_WAY_BITS, "0x%08" PRIx64,
				(uint64_t)i * BC_PAGE_BYTES);
	sort_rows(p);
	print_table(p, "hottest pages", p->stats->footprint.references, NULL, 0, NULL, 0);
}

static void put_reuse(struct printer *p)
{
	const struct bc_footprint *f = &p->stats->footprint;
	unsigned buckets = BC_REUSE_BUCKETS;
	uint64_t sum = 0;
	char name[NAME_MAX_BYTES];
	json_t *outer = enter_object(p, "reuse");

	print_heading(p, "reuse: memory references since the line was last touched");
	set_u64(p, "touches", f->touches);
	set_u64(p, "first", f->first);
	set_u64(p, "untracked", f->untracked);
	json_t *within = add_array(p, "within");
	while (buckets != 0 && f->reuse[buckets - 1] == 0)
		buckets--;
	for (unsigned k = 0; k < buckets; k++) {
		sum += f->reuse[k];
		bc_number_group(name, UINT64_C(1) << k);
		print_share(p, name, sum, f->touches, "\n");
		append_json(p, within,
			json_pack("{s:o, s:o, s:o}", "references", bc_json_u64(UINT64_C(1) << k),
				"touches", bc_json_u64(sum), "share",
				bc_json_double((double)sum / (double)f->touches)));
	}
	print_share(p, "first touch", f->first, f->touches, "\n");
	print_rest(p, "unknown, table full", f->untracked, f->touches);
	leave_object(p, outer);
}

static void put_working_set(struct printer *p)
{
	const bool by_ticks = p->stats->options.windows_are_ticks;
	const char *unit = by_ticks ? "ticks" : "references";
	json_t *windows = bc_footprint_windows_json(
		by_ticks ? &p->stats->windows : &p->stats->footprint, unit);
	char heading[96];

	snprintf(heading, sizeof(heading),
		json_array_size(windows) != 0
			? "working set: average lines and pages, by window in %s"
			: "no %s: no working set",
		unit);
	print_heading(p, heading);
	for (size_t i = 0; i < json_array_size(windows); i++) {
		const json_t *row = json_array_get(windows, i);
		print_line(p, BC_GROUPED(UINT64_C(1) << i), "%14.2f %12.2f",
			json_number_value(json_object_get(row, "lines")),
			json_number_value(json_object_get(row, "pages")));
	}
	p->lacks_memory |= windows == NULL;
	set_json(p, "working_set", windows);
}

static void put_miss_ratio(struct printer *p)
{
	json_t *sizes = bc_footprint_sizes_json(&p->stats->footprint);

	print_heading(p, "miss ratio: LRU cache misses, by size in bytes");
	for (size_t i = 0; i < json_array_size(sizes); i++) {
		const json_t *row = json_array_get(sizes, i);
		print_share(p, BC_GROUPED(bc_json_member_u64(row, "bytes")),
			bc_json_member_u64(row, "misses"), p->stats->footprint.touches,
			bc_json_member_u64(row, "one_line_in") > 1 ? " about\n" : "\n");
	}
	p->lacks_memory |= sizes == NULL;
	set_json(p, "miss_ratio", sizes);
}

/* ---- time, in JSON */

/* Returns why the drift is unknown, or NULL if it is known. */
static const char *no_drift_reason(const struct bc_drift_result *drift)
{
	static const char *const reasons[] = {
		[BC_DRIFT_NO_PAIRS] = "no host times, or the clock rate is unknown",
		[BC_DRIFT_SHORT] = "the recording is too short",
		[BC_DRIFT_REPLAY] = "the times are not the host's, as in a replay",
		[BC_DRIFT_KNOWN] = NULL};

	return reasons[drift->state];
}

static void set_intervals(struct printer *p)
{
	const struct bc_interval_stats *c = &p->stats->intervals;
	struct bc_clock_windows w;
	unsigned buckets = BC_INTERVAL_STATS_BUCKETS;
	json_t *outer = enter_object(p, "intervals");

	set_u64(p, "known", c->intervals);
	set_u64(p, "ticks", c->interval_ticks);
	set_u64(p, "shortest", c->intervals != 0 ? c->interval_min : 0);
	set_u64(p, "longest", c->interval_max);
	json_t *array = add_array(p, "by_power_of_two");
	while (buckets != 0 && c->interval_buckets[buckets - 1] == 0)
		buckets--;
	for (unsigned i = 0; i < buckets; i++)
		append_json(p, array,
			json_pack("{s:o, s:o}", "from",
				bc_json_u64(i != 0 ? UINT64_C(1) << (i - 1) : 0), "intervals",
				bc_json_u64(c->interval_buckets[i])));
	leave_object(p, outer);
	enter_object(p, "idles");
	set_u64(p, "longer_than", c->idle_ticks);
	set_u64(p, "idles", c->idles);
	set_u64(p, "ticks", c->idle_sum_ticks);
	set_u64(p, "longest", c->idles != 0 ? c->interval_max : 0);
	leave_object(p, outer);
	enter_object(p, "bursts");
	set_u64(p, "interval_at_most", c->burst_ticks);
	set_u64(p, "bursts", c->bursts);
	set_u64(p, "references", c->burst_references);
	set_u64(p, "longest", c->burst_longest);
	leave_object(p, outer);
	enter_object(p, "windows");
	bool has_windows = bc_interval_stats_windows(c, &w);
	set_u64(p, "windows", has_windows ? w.count : 0);
	set_u64(p, "ticks", w.ticks);
	set_u64(p, "most_references", has_windows ? w.most : 0);
	set_u64(p, "fewest_references", has_windows ? w.fewest : 0);
	leave_object(p, outer);
}

static void set_drift(struct printer *p)
{
	struct bc_drift_result drift;
	json_t *outer = enter_object(p, "drift");

	bc_drift_result(&p->stats->drift, &drift);
	bool is_known = drift.state == BC_DRIFT_KNOWN;
	set_json(p, "is_known", json_boolean(is_known));
	set_json(p, "why_not", bc_json_text(no_drift_reason(&drift)));
	if (is_known) {
		set_json(p, "ppm", bc_json_double(drift.ppm));
		set_json(p, "error_ppm", bc_json_double(drift.error_ppm));
	}
	set_u64(p, "pairs", drift.pairs);
	set_json(p, "seconds", bc_json_double(drift.seconds));
	leave_object(p, outer);
}

static void set_time(struct printer *p)
{
	const struct bc_stats *s = p->stats;
	const struct bc_interval_stats *c = &s->intervals;
	double hz = bc_stats_hz(s);

	if (c->references == 0) {
		set_json(p, "time", json_null());
		return;
	}
	json_t *outer = enter_object(p, "time");
	set_json(p, "unit",
		json_string(s->is_unit_mixed          ? "mixed"
			    : s->unit == BC_UNIT_TICK ? "tick"
						      : bc_unit_name(s->unit)));
	set_json(p, "ticks_per_second", bc_json_double(hz));
	set_u64(p, "references", c->references);
	set_u64(p, "ticks", c->ticks);
	if (hz != 0)
		set_json(p, "seconds", bc_json_double((double)c->ticks / hz));
	set_u64(p, "backward", c->backward);
	json_t *epochs = add_array(p, "epochs");
	for (unsigned i = 0; i < c->epochs && i < BC_INTERVAL_STATS_EPOCHS; i++)
		append_json(p, epochs,
			json_pack("{s:o, s:o, s:o}", "references",
				bc_json_u64(c->spans[i].references), "first_tick",
				bc_json_u64(c->spans[i].first_tick), "last_tick",
				bc_json_u64(c->spans[i].last_tick)));
	set_u64(p, "epoch_count", c->epochs);
	if (s->options.is_full)
		set_intervals(p);
	if (s->format == BC_FORMAT_SEGMENT)
		set_drift(p);
	leave_object(p, outer);
}

/* ---- time, on the page */

static const char *tick_word(const struct printer *p)
{
	const struct bc_stats *s = p->stats;

	return s->is_unit_mixed || s->unit == BC_UNIT_TICK ? "ticks" : bc_unit_name(s->unit);
}

/* Prints "125 ticks" or, if the rate is known, "125 ticks (1.89 us)". */
static void print_ticks(const struct printer *p, const char *before, uint64_t n, const char *end)
{
	static const struct {
		double least;
		double unit;
		const char *word;
	} units[] = {{1, 1, "s"}, {1e-3, 1e-3, "ms"}, {1e-6, 1e-6, "us"}, {0, 1e-9, "ns"}};
	double hz = bc_stats_hz(p->stats);
	double s = hz != 0 ? (double)n / hz : 0;
	size_t i = 0;

	bc_output_format(p->o, "%s%s %s", before, BC_GROUPED(n), tick_word(p));
	while (s < units[i].least)
		i++;
	if (hz != 0)
		bc_output_format(p->o, " (%.6g %s)", s / units[i].unit, units[i].word);
	bc_output_format(p->o, "%s", end);
}

static void print_rate(const struct printer *p, const char *name, uint64_t n, uint64_t ticks)
{
	double per_tick = (double)n / (double)ticks;
	double hz = bc_stats_hz(p->stats);

	print_label(p, name);
	bc_output_format(p->o, "%.6g references per 1000 %s", 1000 * per_tick, tick_word(p));
	if (hz != 0)
		bc_output_format(p->o, " (%.6g per second)", per_tick * hz);
	bc_output_text(p->o, "\n", 1);
}

static void print_windows(const struct printer *p)
{
	struct bc_clock_windows w;

	if (!bc_interval_stats_windows(&p->stats->intervals, &w) || w.count == 0)
		return;
	print_rate(p, "busiest window", w.most, w.ticks);
	print_rate(p, "quietest window", w.fewest, w.ticks);
	print_label(p, "windows");
	bc_output_format(p->o, "%s", BC_GROUPED(w.count));
	print_ticks(p, " of ", w.ticks, "\n");
}

static void print_intervals(const struct printer *p)
{
	const struct bc_interval_stats *c = &p->stats->intervals;
	const char *word = tick_word(p);

	print_windows(p);
	if (c->intervals == 0)
		return;
	print_line(p, "intervals", "%s known, %s to %s %s, average %.6g", BC_GROUPED(c->intervals),
		BC_GROUPED(c->interval_min), BC_GROUPED(c->interval_max), word,
		(double)c->interval_ticks / (double)c->intervals);
	print_label(p, "idles");
	bc_output_format(p->o, "%s longer than %s %s", BC_GROUPED(c->idles),
		BC_GROUPED(c->idle_ticks), word);
	if (c->idles != 0) {
		bc_output_format(
			p->o, ", %.2f %% of the time", percent(c->idle_sum_ticks, c->ticks));
		print_ticks(p, ", longest ", c->interval_max, "");
	}
	bc_output_text(p->o, "\n", 1);
	print_label(p, "bursts");
	bc_output_format(p->o, "%s with at most %s %s between references", BC_GROUPED(c->bursts),
		BC_GROUPED(c->burst_ticks), word);
	if (c->bursts != 0)
		bc_output_format(p->o, ", %.2f %% of references, longest %s, average %.1f",
			percent(c->burst_references, c->references), BC_GROUPED(c->burst_longest),
			(double)c->burst_references / (double)c->bursts);
	bc_output_text(p->o, "\n", 1);
}

static void print_epochs(const struct printer *p)
{
	const struct bc_interval_stats *c = &p->stats->intervals;

	if (c->epochs < 2)
		return;
	print_line(p, "epochs", "%s", BC_GROUPED(c->epochs));
	for (unsigned i = 0; i < c->epochs && i < EPOCHS_MAX; i++) {
		const struct bc_epoch_span *span = &c->spans[i];
		char name[32];
		snprintf(name, sizeof(name), "  epoch %u", i);
		print_label(p, name);
		bc_output_format(p->o, "%s references, tick %" PRIu64 " to %" PRIu64,
			BC_GROUPED(span->references), span->first_tick, span->last_tick);
		if (span->last_tick >= span->first_tick)
			print_ticks(p, ", ", span->last_tick - span->first_tick, "\n");
		else
			bc_output_format(p->o, "\n"); /* the clock went back */
	}
	if (c->epochs > EPOCHS_MAX)
		bc_output_format(p->o, "  and %s more\n", BC_GROUPED(c->epochs - EPOCHS_MAX));
}

static void print_drift(const struct printer *p)
{
	struct bc_drift_result drift;

	if (p->stats->format != BC_FORMAT_SEGMENT)
		return;
	bc_drift_result(&p->stats->drift, &drift);
	if (drift.state != BC_DRIFT_KNOWN)
		print_line(p, "clock drift", "unknown: %s", no_drift_reason(&drift));
	else
		print_line(p, "clock drift",
			"%+.2f ppm against the host's clock, +- %.2f ppm, from %s chunks in %.1f s",
			drift.ppm, drift.error_ppm, BC_GROUPED(drift.pairs), drift.seconds);
}

static void print_time(const struct printer *p)
{
	const struct bc_interval_stats *c = &p->stats->intervals;

	if (c->references == 0)
		return;
	print_heading(p, "time");
	print_label(p, "duration");
	print_ticks(p, "", c->ticks, "\n");
	if (c->ticks != 0)
		print_rate(p, "rate", c->references, c->ticks);
	if (p->stats->options.is_full)
		print_intervals(p);
	if (c->backward != 0)
		print_line(p, "backward", "%s reference%s earlier than the previous one",
			BC_GROUPED(c->backward), bc_plural(c->backward));
	print_epochs(p);
	print_drift(p);
}

/* ---- everything */

static void put_all(struct printer *p)
{
	const struct bc_stats *s = p->stats;
	const struct bc_format_info *info = bc_format_info(s->format);

	if (s->options.is_full) {
		put_types(p);
		put_sizes(p);
		put_attrs(p);
		put_procs(p);
	} else {
		put_classes(p);
	}
	if (s->options.names != NULL)
		put_names(p, "names", "references by name", &s->names);
	put_events(p);
	if (s->counts.kinds[BC_ENTRY_UOP] != 0)
		put_uops(p);
	if ((info->traits & (BC_TRAIT_INSTRUCTION | BC_TRAIT_KERNEL | BC_TRAIT_LINE |
				    BC_TRAIT_REGISTER)) != 0)
		put_instructions(p);
	if (is_json(p) || s->footprint.references != 0) {
		put_footprint(p);
		(s->options.is_full ? put_reuse : put_hot_pages)(p);
		if (s->options.footprint.has_working_set)
			put_working_set(p);
		if (s->footprint.stack != NULL)
			put_miss_ratio(p);
	} else if (s->options.footprint.has_working_set || s->footprint.stack != NULL)
		print_heading(p, "no memory references: no working set or miss ratio");
	if (is_json(p))
		set_time(p);
	else
		print_time(p);
}

json_t *bc_stats_json(const struct bc_stats *s)
{
	struct printer p = {.stats = s, .object = json_object()};

	set_json(&p, "format", json_string(s->format_name));
	set_u64(&p, "files", (uint64_t)s->files);
	set_u64(&p, "entries", bc_stats_entries(s));
	set_u64(&p, "references", s->tally.references);
	if (s->options.is_full)
		set_u64(&p, "bytes", s->tally.bytes);
	put_all(&p);
	if (!p.lacks_memory)
		return p.object;
	json_decref(p.object);
	return NULL;
}

bool bc_stats_print(struct bc_output *o, const struct bc_stats *s, uint64_t top)
{
	const struct bc_tally *t = &s->tally;
	bool has_samples = s->format == BC_FORMAT_RAW6 || s->format == BC_FORMAT_BCP1;
	struct printer p = {.o = o, .stats = s, .top = top};

	bc_output_format(o, "%s: %s %s\n", s->format_name, BC_GROUPED(bc_stats_entries(s)),
		bc_format_info(s->format)->is_text ? "entries"
		: has_samples                      ? "samples"
						   : "records");
	print_line(&p, "references", "%14s", BC_GROUPED(t->references));
	if (s->options.is_full && t->without_size != t->references)
		print_line(&p, "bytes moved", "%14s%s", BC_GROUPED(t->bytes),
			t->without_size != 0 ? ", where the size is known" : "");
	put_all(&p);
	if (!s->options.is_full)
		bc_output_format(o, "\nThese are from the chunk headers. --full adds bytes, types, "
				    "sizes, memory types, "
				    "processors,\nlines, reuse and intervals from the records.\n");
	free(p.rows);
	return !p.lacks_memory;
}
