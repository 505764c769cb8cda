/* A report for a terminal. A cell of the map has one of nine blocks, by the logarithm of its
 * records per time; everything is readable without colour. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report/report_text.h"
#include "cli/term/console.h"
#include "cli/term/humanize.h"
#include "cli/term/safe_text.h"
#include "formats/base/rfc3339.h"
#include "formats/overview/overview_json.h"

#define LABEL_COLUMNS 20
#define NAME_COLUMNS  24
#define LEVELS        8u

struct plot {
	struct bc_report *report;
	struct bc_report_text *text;
	struct bc_report_axis axis;
	unsigned width;
	double *cells;
};

static const char *block(const struct plot *p, unsigned level, bool is_bar)
{
	static const char *const bars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const shades[] = {" ", "·", "░", "░", "▒", "▒", "▓", "▓", "█"};
	static const char *const plain[] = {" ", ".", ":", "-", "=", "+", "*", "#", "@"};

	return !p->report->is_utf8 ? plain[level] : is_bar ? bars[level] : shades[level];
}

static void add_safe(struct bc_report_text *t, const char *text)
{
	char safe[1024];

	bc_safe_text(safe, sizeof(safe), text);
	bc_report_add(t, safe, strlen(safe));
}

/* The share of a column's time from one position to another (0 to 1) of an axis. */
static double share_of(const struct bc_report_axis *axis, const struct bc_overview_column *column,
	double from, double to)
{
	double low = bc_report_axis_at(axis, column->from_ns);
	double high = bc_report_axis_at(axis, column->to_ns);
	double overlap = fmin(high, to) - fmax(low, from);

	if (high <= low) /* a moment */
		return low >= from && (low < to || (low >= 1 && to >= 1)) ? 1 : 0;
	return overlap > 0 ? overlap / (high - low) : 0;
}

/* The cell of a position on the axis; the end of the axis is in the last one. */
static unsigned cell_at(const struct plot *p, double at)
{
	double x = at * p->width;

	return x < p->width ? (unsigned)x : p->width - 1;
}

/* Adds a count to the cells of a column's time. */
static void spread(struct plot *p, const struct bc_overview_column *column, double count)
{
	double low = bc_report_axis_at(&p->axis, column->from_ns) * p->width;
	double high = bc_report_axis_at(&p->axis, column->to_ns) * p->width;

	for (unsigned x = (unsigned)low; x < p->width && x <= high; x++)
		p->cells[x] += count * share_of(&p->axis, column, (double)x / p->width,
					       (double)(x + 1) / p->width);
	if (low >= p->width) /* a moment at the end */
		p->cells[p->width - 1] += count;
}

/* Adds the cells: bars, or shades of which the lightest is for `least`. */
static void add_cells(struct plot *p, double least, double most, bool is_bar)
{
	for (unsigned x = 0; x < p->width; x++) {
		double share = is_bar || most <= least * 1.001
				       ? p->cells[x] / most
				       : log(p->cells[x] / least) / log(most / least);
		unsigned level = p->cells[x] > 0 && most > 0
					 ? (unsigned)fmax(1, fmin(ceil(share * LEVELS), LEVELS))
					 : 0;
		const char *text = block(p, level, is_bar);
		bc_report_add(p->text, text, strlen(text));
	}
}

static double highest(const struct plot *p)
{
	double most = 0;

	for (unsigned x = 0; x < p->width; x++)
		most = fmax(most, p->cells[x]);
	return most;
}

static void clear_cells(struct plot *p)
{
	memset(p->cells, 0, p->width * sizeof(*p->cells));
}

static void add_label(struct plot *p, const char *label)
{
	bc_report_format(p->text, "%*s ", LABEL_COLUMNS, label);
}

/* A count such that the column, as long as it is drawn, has the rate of its duration. */
static double even_count(const struct bc_overview_column *c, unsigned class)
{
	double drawn_ns = (double)((uint64_t)c->to_ns - (uint64_t)c->from_ns);
	double count = (double)c->counts[class];

	return drawn_ns > 0 && c->duration_ns != 0 ? count * drawn_ns / (double)c->duration_ns
						   : count;
}

static void add_classes(struct plot *p)
{
	static const char *const names[] = {"fetch", "read", "write", "other"};
	const struct bc_overview_picture *picture = bc_overview_picture(p->report->overview);
	char rate[BC_HUMANIZE_MAX];

	for (unsigned class = 0; class < BC_PAGE_CLASSES; class ++) {
		uint64_t count = 0;
		clear_cells(p);
		for (uint32_t i = 0; i < picture->column_count; i++) {
			count += picture->columns[i].counts[class];
			spread(p, &picture->columns[i], even_count(&picture->columns[i], class));
		}
		double most = highest(p);
		add_label(p, names[class]);
		add_cells(p, 0, most, true);
		double per_s = most * p->width / ((double)p->axis.span_ns / 1e9);
		if (picture->from_ns == picture->to_ns) /* a moment has no rate */
			bc_report_format(p->text, "  %" PRIu64 "\n", count);
		else
			bc_report_format(p->text, "  up to %s/s\n", bc_humanize_rate(rate, per_s));
	}
	uint64_t uncounted = 0;
	for (uint32_t i = 0; i < picture->column_count; i++)
		uncounted += picture->columns[i].uncounted;
	if (uncounted != 0)
		bc_report_format(p->text, "%s record%s not counted by class and address\n",
			bc_humanize_count(rate, uncounted), bc_plural(uncounted));
}

/* Adds a line with a sign where there are events of a kind; a digit, or '+', if there are several.
 */
static void add_event_line(struct plot *p, const struct bc_report_events *events, uint8_t kind,
	const char *label, char sign)
{
	uint32_t count = 0;

	clear_cells(p);
	for (uint32_t i = 0; i < events->count; i++) {
		const struct bc_overview_event *event = &events->events[i].event;
		if (event->kind != kind)
			continue;
		p->cells[cell_at(p, bc_report_axis_at(&p->axis, event->time_ns))] += 1;
		count++;
	}
	if (count == 0)
		return;
	add_label(p, label);
	for (unsigned x = 0; x < p->width; x++) {
		double n = p->cells[x];
		bc_report_format(p->text, "%c",
			n <= 0   ? ' '
			: n < 2  ? sign
			: n < 10 ? (char)('0' + (int)n)
				 : '+');
	}
	bc_report_format(p->text, "  %u%s\n", count, events->is_cut_off ? " or more" : "");
}

static void add_axis(struct plot *p)
{
	char *line = calloc(1, p->width + 32);
	char wall[BC_RFC3339_BYTES];

	if (line == NULL) {
		p->text->is_no_memory = true;
		return;
	}
	memset(line, ' ', p->width + 16);
	for (uint64_t i = 0; i <= p->axis.span_ns / p->axis.step_ns; i++) {
		uint64_t at = i * p->axis.step_ns;
		char label[32];
		unsigned x = cell_at(p, (double)at / (double)p->axis.span_ns);
		int n = snprintf(label, sizeof(label), "|%llu %s",
			(unsigned long long)(at / p->axis.unit_ns), p->axis.unit);
		if (x + (unsigned)n < p->width + 16)
			memcpy(line + x, label, (size_t)n);
	}
	size_t end = p->width + 16;
	while (line[end - 1] == ' ')
		end--;
	line[end] = '\0';
	add_label(p, "");
	bc_report_format(p->text, "%s\n", line);
	bc_rfc3339_write(wall, p->axis.from_ns);
	add_label(p, "");
	bc_report_format(p->text, "time since %s\n", wall);
	free(line);
}

static int compare_cells(const void *row, const void *cell)
{
	uint32_t a = *(const uint32_t *)row;
	uint32_t b = ((const struct bc_region *)cell)->first;

	return (a > b) - (a < b);
}

static double cell_of(const struct bc_overview_column *column, uint32_t row)
{
	const struct bc_region *cell = column->cell_count != 0
					       ? bsearch(&row, column->cells, column->cell_count,
							 sizeof(*column->cells), compare_cells)
					       : NULL;
	double sum = 0;

	for (unsigned class = 0; cell != NULL && class < BC_PAGE_CLASSES; class ++)
		sum += (double)cell->counts[class];
	return sum;
}

static void fill_row(struct plot *p, uint32_t row)
{
	const struct bc_overview_picture *picture = bc_overview_picture(p->report->overview);

	clear_cells(p);
	for (uint32_t i = 0; i < picture->column_count; i++) {
		double count = cell_of(&picture->columns[i], row);
		if (count > 0)
			spread(p, &picture->columns[i], count);
	}
}

static void add_map(struct plot *p)
{
	const struct bc_overview_picture *picture = bc_overview_picture(p->report->overview);
	char label[BC_REPORT_ADDRESSES_MAX];
	char name[BC_ROW_NAME_MAX];
	double least = INFINITY;
	double most = 0;

	for (uint32_t row = 0; row < picture->row_count; row++) {
		fill_row(p, row);
		most = fmax(most, highest(p));
		for (unsigned x = 0; x < p->width; x++)
			least = p->cells[x] > 0 ? fmin(least, p->cells[x]) : least;
	}
	for (uint32_t row = 0; row < picture->row_count; row++) {
		fill_row(p, row);
		add_label(p, bc_report_addresses(label, &picture->rows[row]));
		add_cells(p, least, most, false);
		if (bc_overview_row_name(name, p->report->names, &picture->rows[row]) != NULL) {
			bc_report_add(p->text, "  ", 2);
			add_safe(p->text, name);
		}
		bc_report_add(p->text, "\n", 1);
	}
	if (picture->row_count == 0)
		return;
	char count[BC_HUMANIZE_MAX];
	add_label(p, "records");
	double low = ceil(least * pow(most / least, 1.0 / LEVELS)); /* up to here it is level 1 */
	bool is_scale = low < ceil(most);
	if (is_scale)
		bc_report_format(p->text, "%s up to %s   ", block(p, 1, false),
			bc_humanize_count(count, (uint64_t)low));
	bc_report_format(p->text, "%s up to %s%s\n", block(p, LEVELS, false),
		bc_humanize_count(count, (uint64_t)ceil(most)),
		is_scale && p->width > 40 ? "   (each step is the same factor)" : "");
}

/* Lists the first gaps, or the first marks and triggers. */
static void list_events(struct plot *p, const struct bc_report_events *events, bool is_gaps)
{
	const uint32_t max = 20;
	char wall[BC_RFC3339_BYTES];
	char words[BC_GAP_TEXT_MAX];
	uint32_t count = 0;

	for (uint32_t i = 0; i < events->count; i++) {
		const struct bc_report_event *e = &events->events[i];
		if ((e->event.kind == BC_EVENT_GAP) != is_gaps || ++count > max)
			continue;
		bc_rfc3339_write(wall, e->event.time_ns);
		bc_report_format(p->text, "%s%s  %s  ", count == 1 ? "\n" : "", wall,
			is_gaps                          ? "gap    "
			: e->event.kind == BC_EVENT_MARK ? "mark   "
							 : "trigger");
		add_safe(p->text, is_gaps ? bc_report_gap_text(words, &e->event) : e->text);
		bc_report_add(p->text, "\n", 1);
	}
	if (count > max)
		bc_report_format(p->text, "... and %s%u more; see buscap marks\n",
			events->is_cut_off ? "at least " : "", count - max);
}

int bc_report_plain(struct bc_report *r, struct bc_report_text *t)
{
	const struct bc_overview_picture *picture = bc_overview_picture(r->overview);
	unsigned names = r->names != NULL ? NAME_COLUMNS : 16;
	unsigned least = LABEL_COLUMNS + names + 20;
	struct plot p = {.report = r,
		.text = t,
		.width = (r->width > least ? r->width : least) - LABEL_COLUMNS - names - 1};
	struct bc_report_events events;
	char words[BC_REPORT_WORDS_MAX];
	int rc = bc_report_events_list(&events, r);

	p.axis = bc_report_axis_make(picture->from_ns, picture->to_ns, p.width / 14);
	p.cells = calloc(p.width, sizeof(*p.cells));
	t->is_no_memory = t->is_no_memory || p.cells == NULL;
	add_safe(t, bc_report_title(words, r));
	bc_report_format(t, "\n%s\n\n", bc_report_facts(words, r, &events));
	if (p.cells != NULL && picture->column_count != 0) {
		add_classes(&p);
		add_event_line(&p, &events, BC_EVENT_GAP, "gaps", '!');
		add_event_line(&p, &events, BC_EVENT_MARK, "marks", 'm');
		add_event_line(&p, &events, BC_EVENT_TRIGGER, "triggers", 't');
		add_axis(&p);
		add_map(&p);
		list_events(&p, &events, false);
		list_events(&p, &events, true);
	}
	if (r->reduced != NULL)
		bc_report_format(t, "\n%s\n", r->reduced);
	free(p.cells);
	bc_report_events_free(&events);
	return bc_report_result(t, rc);
}
