/* The tables of `buscap top`: types, processors and the hottest pages.
 *
 * Types and processors are counted in sampled records, so the difference between two mixes is a
 * share of the records between them, and times their number, a rate. Pages come with a minimum and
 * the maximum error of the count. A table has columns as its width allows: name, share, rate, bar,
 * in this order of importance. Tables stand side by side, or in bands below each other, of which
 * the last ones are left out if the screen is too low. */
#include "cli/live/top_page.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/term/json_path.h"
#include "cli/term/text.h"

#define TABLES      3u
#define KINDS       256u /* maximum number of types, and of processors */
#define PAGES       32u
#define KIND_BYTES  16u /* of the name of a type or processor */
#define GAP         3u
#define RATE_WIDTH  9u
#define SHARE_WIDTH 8u
#define BAR_MIN     5u
#define NAME_WIDTH  24u /* of the name of a page, in the place of its bar */

struct row {
	char name[24];
	uint64_t number; /* value of a numeric name, for sorting */
	double rate;     /* per second */
	double share;
	bool is_lower_limit;  /* of the share */
	struct bc_name label; /* of a page; its text is NULL if it has none */
};

struct table {
	const char *title;
	unsigned name_width;
	bool has_rate;
	bool has_labels; /* instead of bars */
	unsigned count;
	struct row rows[KINDS];
};

static const unsigned name_widths[TABLES] = {12, 9, 10};

/* The data of all three tables. */
struct mix {
	const struct bc_top_mix *latest;
	const struct bc_top_mix *earlier; /* NULL: count since the daemon started */
	double seconds;                   /* between the two; 0: unknown */
	const struct bc_name_map *names;  /* of pages; NULL: none are shown */
};

static struct mix mix_of(const struct bc_top_state *state)
{
	struct mix mix = {.latest = bc_top_state_latest_mix(state),
		.earlier = bc_top_state_earlier_mix(state),
		.names = state->names};

	/* If there were no records recently, show those since the daemon started. */
	if (mix.earlier == NULL || mix.earlier->sampled == mix.latest->sampled)
		mix.earlier = NULL;
	else
		mix.seconds = (double)(mix.latest->at_ns - mix.earlier->at_ns) / 1e9;
	return mix;
}

static void add_kinds(struct table *table, const struct mix *mix, const char *member)
{
	const struct bc_top_mix *earlier = mix->earlier;
	json_t *counts = bc_json_path(mix->latest->json, member);
	const json_t *before = earlier != NULL ? bc_json_path(earlier->json, member) : NULL;
	double sampled = (double)(mix->latest->sampled - (earlier ? earlier->sampled : 0));
	double of = (double)mix->latest->of - (double)(earlier ? earlier->of : 0);
	const char *key;
	json_t *item;

	json_object_foreach(counts, key, item)
	{
		struct row *row = &table->rows[table->count];
		uint64_t count = bc_json_path_count(counts, key);
		uint64_t was = bc_json_path_count(before, key);
		if (table->count == KINDS || !json_is_number(item) || count <= was || sampled <= 0)
			continue;
		*row = (struct row){.number = strtoull(key, NULL, 10)};
		bc_safe_text(row->name, KIND_BYTES, key);
		row->share = (double)(count - was) / sampled;
		row->rate = mix->seconds > 0 ? row->share * of / mix->seconds : 0;
		table->count++;
	}
}

static void add_pages(struct table *table, const struct mix *mix)
{
	uint64_t memory = bc_json_path_count(mix->latest->json, "memory_requests");
	const json_t *item;
	size_t i;

	json_array_foreach(bc_json_path(mix->latest->json, "pages"), i, item)
	{
		struct row *row = &table->rows[table->count];
		const char *addr = bc_json_path_text(item, "addr");
		uint64_t samples = bc_json_path_count(item, "requests");
		if (table->count == PAGES || addr == NULL || memory == 0)
			continue;
		*row = (struct row){.number = strtoull(addr, NULL, 16)};
		snprintf(row->name, sizeof(row->name), "0x%08" PRIx64, row->number);
		if (mix->names != NULL)
			(void)bc_name_map_find(mix->names, false, row->number, &row->label);
		row->share = (double)samples / (double)memory;
		row->is_lower_limit = bc_json_path_count(item, "max_error") > samples / 20;
		table->count++;
	}
}

static void fill_table(struct table *table, unsigned which, const struct mix *mix)
{
	static const char *const titles[TABLES] = {"type", "processor", "page"};

	table->title = titles[which];
	table->name_width = name_widths[which];
	table->has_rate = which != 2 && mix->seconds > 0;
	table->has_labels = which == 2 && mix->names != NULL;
	table->count = 0;
	if (which == 2)
		add_pages(table, mix);
	else
		add_kinds(table, mix, which == 0 ? "types" : "procs");
}

static int compare_names(const void *a, const void *b)
{
	const struct row *x = a;
	const struct row *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int compare_shares(const void *a, const void *b)
{
	const struct row *x = a;
	const struct row *y = b;

	if (x->share != y->share)
		return x->share < y->share ? 1 : -1;
	return compare_names(a, b);
}

/* Writes "45.2 %". Only a minimum above 0 may be written as 0, and no share below 1 as 100 %. */
static void print_share(char out[BC_HUMANIZE_MAX], const struct row *row, bool is_utf8)
{
	double percent = row->share < 1 ? row->share * 100 : 100;
	const char *sign = row->is_lower_limit ? is_utf8 ? "\u2265" : ">=" : "";

	if (percent > 0 && percent < 0.05 && !row->is_lower_limit)
		snprintf(out, BC_HUMANIZE_MAX, "<0.1 %%");
	else if (percent < 99.95)
		snprintf(out, BC_HUMANIZE_MAX, "%s%.1f %%", sign, percent);
	else
		snprintf(out, BC_HUMANIZE_MAX, percent < 100 ? ">99.9 %%" : "100 %%");
}

static void draw_bar(struct bc_top_grid *grid, unsigned x, unsigned y, unsigned width, double share)
{
	unsigned eighths = (unsigned)(share * 8 * width + 0.5);

	for (unsigned i = 0; i < width && eighths != 0; i++) {
		unsigned part = eighths < 8 ? eighths : 8;
		/* Unicode has the left blocks in descending order, from U+2588, the full block. */
		if (grid->is_utf8)
			bc_top_write_code(grid, x + i, y, BC_TOP_GRAPH, 0x2590 - part);
		else if (part >= 4)
			bc_top_write_code(grid, x + i, y, BC_TOP_GRAPH, '#');
		eighths -= part;
	}
}

/* The widths of a table's columns; 0: none. */
struct columns {
	unsigned name;
	unsigned rate;
	unsigned share;
	unsigned bar;
};

static struct columns columns_of(const struct table *table, unsigned width)
{
	struct columns c = {.name = table->name_width < width ? table->name_width : width};
	unsigned left = width - c.name;

	if (left >= SHARE_WIDTH) {
		c.share = SHARE_WIDTH;
		left -= SHARE_WIDTH;
	}
	if (table->has_rate && left >= RATE_WIDTH) {
		c.rate = RATE_WIDTH;
		left -= RATE_WIDTH;
	}
	if (c.share != 0 && left >= BAR_MIN + 1)
		c.bar = left - 1;
	return c;
}

/* A name that is too long ends with an ellipsis. */
static void draw_label(struct bc_top_grid *grid, unsigned x, unsigned y, unsigned width,
	const struct bc_name *label)
{
	char safe[256];
	char text[sizeof(safe) + 24];

	bc_safe_text(safe, sizeof(safe), label->text);
	if (label->is_symbol && label->offset != 0)
		snprintf(text, sizeof(text), "%s+0x%" PRIx64, safe, label->offset);
	else
		snprintf(text, sizeof(text), "%s", safe);
	bc_top_write(grid, x, y, width, BC_TOP_PLAIN, text);
}

static void draw_row(struct bc_top_grid *grid, unsigned x, unsigned y, const struct columns *c,
	const struct row *row, double most, bool has_labels)
{
	char text[BC_HUMANIZE_MAX];

	bc_top_write(grid, x, y, c->name, BC_TOP_PLAIN, row->name);
	x += c->name;
	if (c->rate != 0 && row->rate > 0)
		bc_top_write_right(
			grid, x, y, c->rate, BC_TOP_PLAIN, bc_humanize_rate(text, row->rate));
	x += c->rate;
	if (c->share != 0) {
		print_share(text, row, grid->is_utf8);
		bc_top_write_right(grid, x, y, c->share, BC_TOP_PLAIN, text);
	}
	if (row->label.text != NULL && c->bar != 0) {
		draw_label(grid, x + c->share + 1, y, c->bar, &row->label);
	} else if (c->bar != 0 && most > 0 && !has_labels)
		draw_bar(grid, x + c->share + 1, y, c->bar, row->share / most);
}

static void draw_table(struct bc_top_grid *grid, unsigned x, unsigned y, unsigned width,
	unsigned lines, struct table *table, bool is_sorted_by_name)
{
	struct columns c = columns_of(table, width);
	unsigned shown = table->count < lines ? table->count : lines - 2;
	char more[32];

	bc_top_write(grid, x, y, width, BC_TOP_BOLD, table->title);
	if (table->has_labels && c.bar != 0)
		bc_top_write(grid, x + width - c.bar, y, c.bar, BC_TOP_BOLD, "name");
	if (c.rate != 0)
		bc_top_write_right(grid, x + c.name, y, c.rate, BC_TOP_BOLD, "per s");
	if (c.share != 0)
		bc_top_write_right(grid, x + c.name + c.rate, y, c.share, BC_TOP_BOLD, "share");
	if (table->count == 0) {
		bc_top_write(grid, x, y + 1, width, BC_TOP_DIM, "none yet");
		return;
	}
	qsort(table->rows, table->count, sizeof(table->rows[0]), compare_shares);
	double most = table->rows[0].share;
	if (is_sorted_by_name)
		qsort(table->rows, shown, sizeof(table->rows[0]), compare_names);
	for (unsigned i = 0; i < shown; i++)
		draw_row(grid, x, y + 1 + i, &c, &table->rows[i], most, table->has_labels);
	if (shown == table->count)
		return;
	snprintf(more, sizeof(more), "and %u more", table->count - shown);
	bc_top_write(grid, x, y + 1 + shown, width, BC_TOP_DIM, more);
}

/* The least width of a table. */
static unsigned table_width(unsigned which, bool has_names)
{
	if (which == 2)
		return name_widths[2] + SHARE_WIDTH + (has_names ? 1 + NAME_WIDTH : 0);
	return name_widths[which] + SHARE_WIDTH + RATE_WIDTH;
}

/* Returns how many tables fit side by side. */
static unsigned tables_across(unsigned width, bool has_names)
{
	unsigned least = 0;
	unsigned across = 0;

	for (; across < TABLES; across++) {
		least += table_width(across, has_names);
		if (across != 0 && least + across * GAP > width)
			break;
	}
	return across;
}

static void draw_heading(struct bc_top_grid *grid, unsigned y, const struct mix *mix)
{
	const struct bc_top_mix *latest = mix->latest;
	char text[160];

	if (latest->json == NULL) {
		bc_top_write(grid, 0, y, grid->width, BC_TOP_DIM,
			"on the bus: not available from this daemon");
		return;
	}
	if (latest->sampled == 0)
		snprintf(text, sizeof(text), "on the bus: no records yet");
	else if (mix->seconds > 0)
		snprintf(text, sizeof(text), "on the bus, last %.0f s, from one record in %.0f",
			mix->seconds, (double)latest->of / (double)latest->sampled);
	else
		snprintf(text, sizeof(text),
			"on the bus since the daemon started, from one record in %.0f",
			(double)latest->of / (double)latest->sampled);
	bc_top_write(grid, 0, y, grid->width, BC_TOP_DIM, text);
}

/* Returns the height of a band of `across` tables, starting with `first`: titles and all rows. */
static unsigned band_height(const struct bc_top_mix *mix, unsigned first, unsigned across)
{
	const size_t counts[TABLES] = {json_object_size(bc_json_path(mix->json, "types")),
		json_object_size(bc_json_path(mix->json, "procs")),
		json_array_size(bc_json_path(mix->json, "pages"))};
	size_t most = 1;

	for (unsigned i = first; i < first + across && i < TABLES; i++)
		most = counts[i] > most ? counts[i] : most;
	return (unsigned)(most < KINDS ? most : KINDS) + 1;
}

unsigned bc_top_tables_height(unsigned width, const struct bc_top_state *state)
{
	const struct bc_top_mix *mix = bc_top_state_latest_mix(state);
	unsigned across = tables_across(width, state->names != NULL);
	unsigned height = 1;

	for (unsigned first = 0; first < TABLES; first += across)
		height += band_height(mix, first, across);
	return height;
}

/* Draws one table, or several side by side. */
static void draw_band(struct bc_top_grid *grid, unsigned y, unsigned lines, const struct mix *mix,
	unsigned first, unsigned across, bool is_sorted_by_name)
{
	unsigned count = TABLES - first < across ? TABLES - first : across;
	unsigned least = (count - 1) * GAP;
	unsigned x = 0;
	struct table table;

	for (unsigned i = 0; i < count; i++)
		least += table_width(first + i, mix->names != NULL);
	unsigned extra = grid->width > least ? (grid->width - least) / count : 0;
	for (unsigned i = first; i < first + count; i++) {
		unsigned width = table_width(i, mix->names != NULL) + extra;
		fill_table(&table, i, mix);
		if (width > grid->width)
			width = grid->width;
		draw_table(grid, x, y, width, lines, &table, is_sorted_by_name);
		x += width + GAP;
	}
}

void bc_top_tables_draw(struct bc_top_grid *grid, unsigned y, unsigned lines,
	const struct bc_top_state *state, bool is_sorted_by_name)
{
	struct mix mix = mix_of(state);
	unsigned across = tables_across(grid->width, state->names != NULL);
	unsigned bands = (TABLES + across - 1) / across;

	if (lines == 0)
		return;
	draw_heading(grid, y++, &mix);
	lines--;
	if (mix.latest->json == NULL || mix.latest->sampled == 0)
		return;
	/* Omit the last bands if bands would have fewer than two rows. */
	while (bands > 1 && lines / bands < 3)
		bands--;
	for (unsigned band = 0; band < bands; band++) {
		unsigned height = band_height(mix.latest, band * across, across);
		unsigned part = lines / (bands - band);
		part = part < height ? part : height;
		if (part >= 2)
			draw_band(grid, y, part, &mix, band * across, across, is_sorted_by_name);
		y += part;
		lines -= part;
	}
}
