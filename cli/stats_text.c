#include "cli/stats_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/stats_pages.h"

/* A line of a table, before it is put in order. */
struct row {
	char name[80];
	uint64_t count;
	uint64_t bytes;
};

const char *bc_attr_byu(unsigned attr)
{
	static const char *const names[] = {
		"uncacheable", "write-through", "write-protected", "write-back"};

	return names[attr & 3];
}

const char *bc_attr_p6(unsigned attr)
{
	static const char *const names[8] = {[0] = "uncacheable",
		[4] = "write-combining",
		[5] = "write-through",
		[6] = "write-protected",
		[7] = "write-back"};

	return attr < 8 ? names[attr] : NULL;
}

const char *bc_attr_text(char out[BC_ATTR_TEXT_MAX], unsigned attr)
{
	if (attr < 4)
		snprintf(out, BC_ATTR_TEXT_MAX, "%u %s", attr, bc_attr_byu(attr));
	else if (attr < 8)
		snprintf(out, BC_ATTR_TEXT_MAX, "%u %s (P6), %s (low two bits)", attr,
			bc_attr_p6(attr), bc_attr_byu(attr));
	else
		snprintf(out, BC_ATTR_TEXT_MAX, "%u", attr);
	return out;
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole != 0 ? 100 * (double)part / (double)whole : 0;
}

static void fact(struct bc_output *o, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void fact(struct bc_output *o, const char *name, const char *format, ...)
{
	va_list args;

	bc_output_format(o, "  %-22s ", name);
	va_start(args, format);
	bc_output_vformat(o, format, args);
	va_end(args);
	bc_output_text(o, "\n", 1);
}

static void heading(struct bc_output *o, const char *text)
{
	bc_output_format(o, "\n%s\n", text);
}

static void count_line(struct bc_output *o, const char *name, uint64_t count, uint64_t whole)
{
	bc_output_format(o, "  %-22s %14" PRIu64 " %9.2f %%\n", name, count, percent(count, whole));
}

static int by_count(const void *a, const void *b)
{
	const struct row *x = a;
	const struct row *y = b;

	return (x->count < y->count) - (x->count > y->count);
}

/* Rows by their counts; equal ones as they stand. */
static void print_rows(struct bc_output *o, struct row *rows, size_t n, uint64_t whole,
	bool has_bytes, uint64_t top)
{
	qsort(rows, n, sizeof(*rows), by_count); /* glibc's is stable */
	for (size_t i = 0; i < n && i < top; i++) {
		bc_output_format(o, "  %-22s %14" PRIu64 " %9.2f %%", rows[i].name, rows[i].count,
			percent(rows[i].count, whole));
		if (has_bytes)
			bc_output_format(o, " %14" PRIu64 " bytes", rows[i].bytes);
		bc_output_text(o, "\n", 1);
	}
	if (n > top)
		bc_output_format(o, "  and %" PRIu64 " more\n", (uint64_t)n - top);
}

static size_t add_row(struct row *rows, size_t n, const char *name, uint64_t count, uint64_t bytes)
{
	if (count == 0)
		return n;
	snprintf(rows[n].name, sizeof(rows[n].name), "%s", name);
	rows[n].count = count;
	rows[n].bytes = bytes;
	return n + 1;
}

static void print_types(struct bc_output *o, const struct bc_tally *t, uint64_t top)
{
	struct row rows[BC_REF_TYPES + 256];
	size_t n = 0;
	char text[16];

	heading(o, "references by type");
	for (unsigned type = 0; type < BC_REF_TYPES; type++) {
		const char *name = bc_ref_type_name(type);
		snprintf(text, sizeof(text), "0x%02x", type);
		if (type != BC_REF_LETTER)
			n = add_row(rows, n, name != NULL ? name : text, t->types[type],
				t->type_bytes[type]);
	}
	for (unsigned letter = 0; letter < 256; letter++) {
		snprintf(text, sizeof(text), letter > ' ' && letter < 0x7F ? "'%c'" : "0x%02x",
			letter);
		n = add_row(rows, n, text, t->letters[letter], 0);
	}
	print_rows(o, rows, n, t->references, t->bytes != 0, top);
}

static void print_sizes(struct bc_output *o, const struct bc_tally *t, uint64_t top)
{
	struct row rows[256 + BC_TALLY_LARGE + 2];
	size_t n = 0;
	char text[32];

	if (t->without_size == t->references)
		return;
	heading(o, "by size");
	for (unsigned size = 0; size < 256; size++) {
		snprintf(text, sizeof(text), "%u byte%s", size, bc_plural(size));
		n = add_row(rows, n, text, t->sizes[size], 0);
	}
	for (size_t i = 0; i < t->large_count; i++) {
		snprintf(text, sizeof(text), "%" PRIu32 " bytes", t->large[i].size);
		n = add_row(rows, n, text, t->large[i].references, 0);
	}
	n = add_row(rows, n, "other sizes", t->large_others, 0);
	n = add_row(rows, n, "size not known", t->without_size, 0);
	print_rows(o, rows, n, t->references, false, top);
}

static void print_attrs(struct bc_output *o, const struct bc_tally *t, uint64_t top)
{
	struct row rows[257];
	size_t n = 0;
	char text[BC_ATTR_TEXT_MAX];

	if (t->without_attr == t->references)
		return;
	heading(o, "by memory type");
	for (unsigned attr = 0; attr < 256; attr++)
		n = add_row(rows, n, bc_attr_text(text, attr), t->attrs[attr], 0);
	n = add_row(rows, n, "memory type not known", t->without_attr, 0);
	print_rows(o, rows, n, t->references, false, top);
}

static void print_procs(struct bc_output *o, const struct bc_tally *t, uint64_t top)
{
	char text[16];
	uint64_t printed = 0;
	uint64_t left = 0;

	if (t->without_proc == t->references)
		return;
	heading(o, "by processor");
	for (unsigned proc = 0; proc < BC_TALLY_PROCS; proc++) {
		if (t->procs[proc] == 0)
			continue;
		snprintf(text, sizeof(text), "%u", proc);
		if (printed++ < top)
			count_line(o, text, t->procs[proc], t->references);
		else
			left++;
	}
	if (left != 0)
		bc_output_format(o, "  and %" PRIu64 " more\n", left);
	if (t->without_proc != 0)
		count_line(o, "processor not known", t->without_proc, t->references);
}

static void print_names(
	struct bc_output *o, const char *title, const struct bc_names *names, uint64_t top)
{
	if (names->total == 0)
		return;
	heading(o, title);
	for (size_t i = 0; i < names->count && i < top; i++) {
		char *text = bc_name_text(&names->rows[i]);
		count_line(o, text != NULL ? text : "?", names->rows[i].count, names->total);
		free(text);
	}
	if (names->count > top)
		bc_output_format(o, "  and %" PRIu64 " more\n", (uint64_t)names->count - top);
	if (names->others != 0)
		count_line(o, "others, not told apart", names->others, names->total);
}

static void print_gap(struct bc_output *o, const char *name, const struct bc_gap_count *gap)
{
	if (gap->gaps == 0)
		fact(o, name, "none");
	else if (gap->lost == 0 && gap->inexact != 0)
		fact(o, name, "%" PRIu64 ", an unknown number of samples lost", gap->gaps);
	else
		fact(o, name, "%" PRIu64 ", %s%" PRIu64 " sample%s lost", gap->gaps,
			gap->inexact != 0 ? "at least " : "", gap->lost, bc_plural(gap->lost));
}

static void print_events(struct bc_output *o, const struct bc_stats *s)
{
	const struct bc_happenings *h = &s->happenings;
	char name[32];

	if ((bc_format_info(s->format)->holds & BC_CAN_EVENT) == 0)
		return;
	heading(o, "gaps and marks");
	print_gap(o, "gaps", &h->gaps);
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++) {
		snprintf(name, sizeof(name), "  %s", bc_gap_cause_name(cause));
		if (h->causes[cause].gaps != 0)
			print_gap(o, name, &h->causes[cause]);
	}
	fact(o, "marks", "%" PRIu64, h->marks);
	fact(o, "triggers", "%" PRIu64, h->triggers);
}

static void print_uops(struct bc_output *o, const struct bc_stats *s, uint64_t top)
{
	const struct bc_happenings *h = &s->happenings;
	uint64_t uops = h->kinds[BC_ENTRY_UOP];

	if (uops == 0)
		return;
	heading(o, "micro-ops");
	fact(o, "micro-ops", "%14" PRIu64, uops);
	fact(o, "macro-ops", "%14" PRIu64, h->macro_ops);
	if (h->macro_ops != 0)
		fact(o, "a macro-op", "%17.2f micro-ops", (double)uops / (double)h->macro_ops);
	count_line(o, "loads", h->loads, uops);
	count_line(o, "stores", h->stores, uops);
	count_line(o, "read the flags", h->flag_reads, uops);
	count_line(o, "write the flags", h->flag_writes, uops);
	heading(o, "branches");
	count_line(o, "taken", h->taken, h->taken + h->not_taken);
	count_line(o, "not taken", h->not_taken, h->taken + h->not_taken);
	print_names(o, "macro-ops by opcode", &h->macros, top);
	print_names(o, "micro-ops by opcode", &h->micros, top);
}

static void print_instructions(struct bc_output *o, const struct bc_stats *s, uint64_t top)
{
	const struct bc_happenings *h = &s->happenings;
	uint64_t n = h->kinds[BC_ENTRY_INSTRUCTION];

	if (n != 0) {
		heading(o, "instructions");
		count_line(o, "executed", h->effects[BC_EFFECT_EXECUTED], n);
		count_line(o, "skipped", h->effects[BC_EFFECT_SKIPPED], n);
		count_line(o, "fetch failed", h->effects[BC_EFFECT_FETCHFAIL], n);
		if (h->undecoded != 0)
			count_line(o, "executed, no name", h->undecoded, n);
	}
	print_names(o, "instructions by set", &h->sets, top);
	print_names(o, "executed, by mnemonic", &h->mnemonics, top);
	print_names(o, "register writes", &h->registers, top);
	print_names(o, "kernel events", &h->tags, top);
	if (h->kinds[BC_ENTRY_LINE] != 0) {
		heading(o, "lines kept as they stand");
		count_line(o, "lines", h->kinds[BC_ENTRY_LINE], bc_stats_entries(s));
	}
}

void bc_stats_print(struct bc_output *o, const struct bc_stats *s, uint64_t top)
{
	const struct bc_format_info *info = bc_format_info(s->format);
	const struct bc_tally *t = &s->tally;
	bool has_samples = s->format == BC_FORMAT_RAW6 || s->format == BC_FORMAT_BCP1;
	const char *word = info->is_text ? "entries" : has_samples ? "samples" : "records";

	bc_output_format(
		o, "%s: %" PRIu64 " %s\n", bc_format_name(s->format), bc_stats_entries(s), word);
	fact(o, "references", "%14" PRIu64, t->references);
	if (t->without_size != t->references)
		fact(o, "bytes moved", "%14" PRIu64 "%s", t->bytes,
			t->without_size != 0 ? ", where the size is known" : "");
	if (t->references != 0) {
		print_types(o, t, top);
		print_sizes(o, t, top);
		print_attrs(o, t, top);
		print_procs(o, t, top);
	}
	print_events(o, s);
	print_uops(o, s, top);
	print_instructions(o, s, top);
	if (!s->options.is_totals)
		bc_stats_print_memory(o, s);
	bc_stats_print_time(o, s);
}
