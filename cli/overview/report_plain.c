/* A report for a terminal: a summary, traffic by class, gaps and marks over time, and a map of
 * addresses. Everything is readable without colour.
 *
 * A line of the plot has `width` cells, one for each column of the terminal. A column of the
 * overview is spread over the cells that its time covers, so the cells of a line add up to its
 * columns. Bars are linear, up to the highest cell of their line; the map has nine shades, by the
 * logarithm of the count, which are the same for all of its rows.
 *
 * Invariant: texts from files are unsafe until add_safe() prints them. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/io/trace.h"
#include "cli/overview/report_plain.h"
#include "cli/term/console.h"
#include "cli/term/text.h"
#include "formats/base/grow.h"
#include "formats/base/text.h"
#include "formats/base/utf8.h"

#define LABEL_COLUMNS 20
#define NAME_COLUMNS  24
#define LEVELS        8u

#define WORDS_MAX     512
#define ADDRESSES_MAX 32

#define SECOND UINT64_C(1000000000)

/* ---- axis of time */

struct axis {
	int64_t from_ns;
	uint64_t span_ns; /* at least 1 */
	uint64_t step_ns; /* between ticks */
	uint64_t unit_ns;
	const char *unit; /* "ms" */
};

/* An axis from one time to another, with at most this many ticks. */
static struct axis make_axis(int64_t from_ns, int64_t to_ns, unsigned ticks)
{
	static const struct {
		uint64_t ns;
		const char *name;
		uint64_t steps[10]; /* in units */
	} units[] = {
		{1, "ns", {1, 2, 5, 10, 20, 50, 100, 200, 500}},
		{1000, "us", {1, 2, 5, 10, 20, 50, 100, 200, 500}},
		{1000000, "ms", {1, 2, 5, 10, 20, 50, 100, 200, 500}},
		{SECOND, "s", {1, 2, 5, 10, 15, 30}},
		{60 * SECOND, "min", {1, 2, 5, 10, 15, 30}},
		{3600 * SECOND, "h", {1, 2, 3, 6, 12}},
		{86400 * SECOND, "d", {1, 2, 5, 10, 20, 50, 100, 200, 500}},
	};
	struct axis axis = {.from_ns = from_ns, .span_ns = (uint64_t)to_ns - (uint64_t)from_ns};

	axis.span_ns += axis.span_ns == 0;
	for (size_t u = 0; u < sizeof(units) / sizeof(units[0]); u++) {
		axis.unit = units[u].name;
		axis.unit_ns = units[u].ns;
		for (size_t i = 0; units[u].steps[i] != 0; i++) {
			axis.step_ns = units[u].ns * units[u].steps[i];
			if (axis.span_ns / axis.step_ns <= ticks)
				return axis;
		}
	}
	axis.step_ns = (axis.span_ns / ticks / axis.unit_ns + 1) * axis.unit_ns;
	return axis;
}

/* The position of a time, from 0 to 1. */
static double axis_at(const struct axis *axis, int64_t ns)
{
	if (ns <= axis->from_ns)
		return 0;
	return fmin((double)((uint64_t)ns - (uint64_t)axis->from_ns) / (double)axis->span_ns, 1);
}

/* ---- events */

struct listed_event {
	struct bc_overview_event event;
	char text[64]; /* or its start and "..."; unsafe */
};

struct event_list {
	struct listed_event *events;
	uint32_t count;
	size_t capacity;
	uint32_t max;
	bool is_cut_off;
	bool is_out_of_memory;
};

static bool copy_event(void *context, const struct bc_overview_event *event)
{
	struct event_list *e = context;

	e->is_cut_off = e->count == e->max;
	if (e->is_cut_off)
		return false;
	struct listed_event *events = bc_grow(e->events, &e->capacity, e->count, sizeof(*events));
	e->is_out_of_memory = events == NULL;
	if (events == NULL)
		return false;
	e->events = events;
	struct listed_event *copy = &e->events[e->count++];
	copy->event = *event;
	copy->event.text = NULL;
	snprintf(copy->text, sizeof(copy->text), "%.*s", (int)event->text_bytes, event->text);
	if (event->text_bytes >= sizeof(copy->text))
		strcpy(copy->text + bc_utf8_fit(copy->text, sizeof(copy->text) - 4), "...");
	return true;
}

/* Copies the events in the picture. Returns 0 or a negative errno. Free e->events in either case.
 */
static int collect_events(struct event_list *e, struct bc_report *r)
{
	const struct bc_overview_picture *p = bc_overview_picture(r->overview);

	*e = (struct event_list){.max = r->max_events};
	int rc = bc_overview_events(r->overview, p->from_ns, p->to_ns, copy_event, e);
	return e->is_out_of_memory ? -ENOMEM : rc;
}

/* ---- words */

/* The recording's id, "2 recordings, ID to ID", "no recordings" or "a recording without a header".
 * Returns `out`. */
static const char *title_of(char out[WORDS_MAX], const struct bc_report *r)
{
	const struct bc_overview_contents c = bc_overview_contents(r->overview);
	const struct bc_overview_recording *all = c.recordings;
	uint32_t count = c.recording_count;

	if (count == 0)
		snprintf(out, WORDS_MAX, "no recordings");
	else if (count == 1)
		snprintf(out, WORDS_MAX, "%s",
			all[0].id[0] != '\0' ? all[0].id : "a recording without a header");
	else
		snprintf(out, WORDS_MAX, "%" PRIu32 " recordings, %s to %s", count, all[0].id,
			all[count - 1].id);
	return out;
}

/* Sums of the picture. */
struct totals {
	uint64_t records;
	uint64_t missing;
	uint64_t uncounted;
	uint64_t lost;
	uint64_t gaps;
	bool is_exact; /* the size of each gap is known, and `lost` is their sum */
};

static struct totals totals_of(const struct bc_report *r, const struct event_list *e)
{
	const struct bc_overview_picture *p = bc_overview_picture(r->overview);
	struct totals drawn = {.is_exact = true};
	uint64_t known = 0;

	for (uint32_t i = 0; i < p->column_count; i++) {
		drawn.records += p->columns[i].records;
		drawn.missing += p->columns[i].missing;
		drawn.uncounted += p->columns[i].uncounted;
		drawn.lost += p->columns[i].lost;
	}
	for (uint32_t i = 0; i < e->count; i++) {
		const struct bc_overview_event *event = &e->events[i].event;
		if (event->kind != BC_EVENT_GAP)
			continue;
		drawn.gaps++;
		drawn.is_exact = drawn.is_exact && event->is_exact;
		known += event->lost;
	}
	drawn.is_exact = drawn.is_exact && !e->is_cut_off && known >= drawn.lost;
	return drawn;
}

/* "1,234 records", or "1,234 of 9,876 records" if only these are drawn. */
static void count_text(char out[64], uint64_t drawn, uint64_t all, const char *word)
{
	char some[BC_HUMANIZE_MAX];
	char whole[BC_HUMANIZE_MAX];

	snprintf(out, 64, "%s%s%s %s%s", drawn < all ? bc_humanize_count(some, drawn) : "",
		drawn < all ? " of " : "", bc_humanize_count(whole, all), word, bc_plural(all));
}

/* How much was recorded, and how much of it is drawn: "sealed, 29,490 of 999,948 records, 3.48 MB,
 * 2 of 9 gaps, at least 6,462 samples lost". "at least": the size of a gap is unknown, or the
 * columns have losses that no gap reports. Returns `out`. */
static const char *summary_of(char out[WORDS_MAX], const struct bc_report *r,
	const struct event_list *events, struct totals drawn)
{
	static const char *const states[] = {
		[BC_OVERVIEW_OPEN] = "no end recorded",
		[BC_OVERVIEW_RECORDING] = "in progress",
		[BC_OVERVIEW_RECOVERED] = "recovered",
		[BC_OVERVIEW_SEALED] = "sealed",
	};
	struct bc_overview_recording sum = {.records = 0};
	char records[64];
	char bytes[BC_HUMANIZE_MAX];
	char number[BC_HUMANIZE_MAX];
	char lost[BC_HUMANIZE_MAX + 32] = "an unknown number of samples";
	char gaps[64];
	char start[BC_HUMANIZE_MAX + 32] = "";
	char missing[80] = "";
	bool is_clock_unknown = false;
	const struct bc_overview_contents c = bc_overview_contents(r->overview);
	const struct bc_overview_recording *all = c.recordings;
	uint32_t count = c.recording_count;

	for (uint32_t i = 0; i < count; i++) {
		is_clock_unknown = is_clock_unknown || all[i].clock_hz == 0;
		sum.records += all[i].records;
		sum.missing_segments += all[i].missing_segments;
		sum.missing += all[i].missing;
		sum.bytes += all[i].bytes;
		sum.gaps += all[i].gaps;
	}
	/* Of a whole recording, the number is known even if the list is cut off. */
	if (drawn.records == sum.records)
		drawn.gaps = sum.gaps;
	drawn.is_exact = drawn.is_exact || sum.gaps == 0;
	count_text(records, drawn.records, sum.records, "record");
	count_text(gaps, drawn.gaps, sum.gaps, "gap");
	if (count == 1 && all[0].first_record != 0)
		snprintf(start, sizeof(start), "starts at record %" PRIu64 ", ",
			all[0].first_record);
	if (sum.missing != 0)
		count_text(missing, drawn.missing, sum.missing, "record");
	else if (sum.missing_segments != 0)
		count_text(missing, sum.missing_segments, sum.missing_segments, "segment");
	if (drawn.lost != 0 || drawn.is_exact)
		snprintf(lost, sizeof(lost), "%s%s sample%s", drawn.is_exact ? "" : "at least ",
			bc_humanize_count(number, drawn.lost), bc_plural(drawn.lost));
	snprintf(out, WORDS_MAX, "%s%s%s%s%s%s%s, %s, %s%s, %s lost%s",
		count == 1 ? states[all[0].state] : "", count == 1 ? ", " : "", start, records,
		missing[0] != '\0' ? ", " : "", missing, missing[0] != '\0' ? " missing" : "",
		bc_humanize_bytes(bytes, (double)sum.bytes),
		drawn.gaps < sum.gaps && events->is_cut_off ? "at least " : "", gaps, lost,
		is_clock_unknown ? ", clock unknown: arrival times" : "");
	return out;
}

/* The addresses of a row: "000a0000-000affff", "io 03f8-03ff". Returns `out`. */
static const char *addresses_of(char out[ADDRESSES_MAX], const struct bc_overview_row *row)
{
	uint32_t first = row->place - BC_PORT_0;

	if (row->place < BC_PORT_0)
		snprintf(out, ADDRESSES_MAX, "%08" PRIx64 "-%08" PRIx64,
			(uint64_t)row->place * BC_PAGE_BYTES,
			((uint64_t)row->place + row->count) * BC_PAGE_BYTES - 1);
	else if (row->count == 1)
		snprintf(out, ADDRESSES_MAX, "io %04" PRIx32, first);
	else
		snprintf(out, ADDRESSES_MAX, "io %04" PRIx32 "-%04" PRIx32, first,
			first + row->count - 1);
	return out;
}

/* ---- the plot */

struct plot {
	struct bc_report *report;
	struct bc_byte_buffer *text;
	struct totals totals;
	struct axis axis;
	unsigned width;
	double *cells;
	bool *holes; /* cells where segments are missing */
};

static const char *block(const struct plot *p, unsigned level, bool is_bar)
{
	static const char *const bars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const shades[] = {" ", "·", "░", "░", "▒", "▒", "▓", "▓", "█"};
	static const char *const plain[] = {" ", ".", ":", "-", "=", "+", "*", "#", "@"};

	return !p->report->is_utf8 ? plain[level] : is_bar ? bars[level] : shades[level];
}

static const char *hatch(const struct plot *p)
{
	return p->report->is_utf8 ? "╱" : "/";
}

static void add_format(struct bc_byte_buffer *t, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void add_format(struct bc_byte_buffer *t, const char *format, ...)
{
	char piece[1024];
	va_list args;

	va_start(args, format);
	int n = vsnprintf(piece, sizeof(piece), format, args);
	va_end(args);
	assert(n >= 0 && (size_t)n < sizeof(piece));
	bc_byte_buffer_add(t, piece, (size_t)n);
}

static void add_safe(struct bc_byte_buffer *t, const char *text)
{
	char safe[1024];

	bc_safe_text(safe, sizeof(safe), text);
	bc_byte_buffer_add(t, safe, strlen(safe));
}

/* The share of a column's time from one position to another (0 to 1) of an axis. */
static double share_of(
	const struct axis *axis, const struct bc_overview_column *column, double from, double to)
{
	double low = axis_at(axis, column->from_ns);
	double high = axis_at(axis, column->to_ns);
	double overlap = fmin(high, to) - fmax(low, from);

	if (high <= low) /* a moment */
		return low >= from && (low < to || (low >= 1 && to >= 1)) ? 1 : 0;
	return overlap > 0 ? overlap / (high - low) : 0;
}

/* The cell of a position (0 to 1) on the axis. */
static unsigned cell_at(const struct plot *p, double at)
{
	double x = at * p->width;

	return x < p->width ? (unsigned)x : p->width - 1;
}

/* Adds a count to the cells of a column's time. */
static void spread(struct plot *p, const struct bc_overview_column *column, double count)
{
	double low = axis_at(&p->axis, column->from_ns) * p->width;
	double high = axis_at(&p->axis, column->to_ns) * p->width;

	for (unsigned x = (unsigned)low; x < p->width && x <= high; x++)
		p->cells[x] += count * share_of(&p->axis, column, (double)x / p->width,
					       (double)(x + 1) / p->width);
	if (low >= p->width) /* a moment at the end */
		p->cells[p->width - 1] += count;
}

/* Finds the cells where segments are missing: at least one for each hole. */
static void find_holes(struct plot *p)
{
	const struct bc_overview_picture *picture = bc_overview_picture(p->report->overview);

	for (uint32_t i = 0; i < picture->column_count; i++) {
		const struct bc_overview_column *c = &picture->columns[i];
		unsigned first = cell_at(p, axis_at(&p->axis, c->from_ns));
		unsigned end = cell_at(p, axis_at(&p->axis, c->to_ns));
		for (unsigned x = first; c->missing != 0 && x <= end; x++)
			p->holes[x] = x == first || c->is_hole;
	}
}

/* Adds the cells as bars, or as shades from `least` (lightest) to `most`. */
static void add_cells(struct plot *p, double least, double most, bool is_bar)
{
	for (unsigned x = 0; x < p->width; x++) {
		double share = is_bar || most <= least * 1.001
				       ? p->cells[x] / most
				       : log(p->cells[x] / least) / log(most / least);
		unsigned level = p->cells[x] > 0 && most > 0
					 ? (unsigned)fmax(1, fmin(ceil(share * LEVELS), LEVELS))
					 : 0;
		const char *text = level == 0 && p->holes[x] ? hatch(p) : block(p, level, is_bar);
		bc_byte_buffer_add(p->text, text, strlen(text));
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
	add_format(p->text, "%*s ", LABEL_COLUMNS, label);
}

/* Scales the count of a column so that its rate is right although it is drawn longer or shorter
 * than its duration by the bus clock. */
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
			add_format(p->text, "  %" PRIu64 "\n", count);
		else
			add_format(p->text, "  up to %s/s\n", bc_humanize_rate(rate, per_s));
	}
	if (p->totals.uncounted != 0)
		add_format(p->text, "%s record%s not counted by class and address\n",
			bc_humanize_count(rate, p->totals.uncounted),
			bc_plural(p->totals.uncounted));
}

/* Adds a line that marks where segments are missing. */
static void add_hole_line(struct plot *p)
{
	char number[BC_HUMANIZE_MAX];

	if (p->totals.missing == 0)
		return;
	add_label(p, "missing");
	for (unsigned x = 0; x < p->width; x++) {
		const char *text = p->holes[x] ? hatch(p) : " ";
		bc_byte_buffer_add(p->text, text, strlen(text));
	}
	add_format(p->text, "  %s\n", bc_humanize_count(number, p->totals.missing));
}

/* Adds a line with a sign for each event of a kind; a digit, or '+', for several in a cell. */
static void add_event_line(
	struct plot *p, const struct event_list *events, uint8_t kind, const char *label, char sign)
{
	uint32_t count = 0;

	clear_cells(p);
	for (uint32_t i = 0; i < events->count; i++) {
		const struct bc_overview_event *event = &events->events[i].event;
		if (event->kind != kind)
			continue;
		p->cells[cell_at(p, axis_at(&p->axis, event->time_ns))] += 1;
		count++;
	}
	if (count == 0)
		return;
	add_label(p, label);
	for (unsigned x = 0; x < p->width; x++) {
		double n = p->cells[x];
		add_format(p->text, "%c",
			n <= 0   ? ' '
			: n < 2  ? sign
			: n < 10 ? (char)('0' + (int)n)
				 : '+');
	}
	add_format(p->text, "  %u%s\n", count, events->is_cut_off ? " or more" : "");
}

static void add_axis(struct plot *p)
{
	char *line = calloc(1, p->width + 32);
	char wall[BC_RFC3339_BYTES];

	if (line == NULL) {
		p->text->is_out_of_memory = true;
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
	add_format(p->text, "%s\n", line);
	bc_rfc3339_write(wall, p->axis.from_ns);
	add_label(p, "");
	add_format(p->text, "time since %s\n", wall);
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
	char label[ADDRESSES_MAX];
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
		add_label(p, addresses_of(label, &picture->rows[row]));
		add_cells(p, least, most, false);
		if (bc_overview_row_name(name, p->report->names, &picture->rows[row]) != NULL) {
			bc_byte_buffer_add(p->text, "  ", 2);
			add_safe(p->text, name);
		}
		bc_byte_buffer_add(p->text, "\n", 1);
	}
	if (picture->row_count == 0)
		return;
	char count[BC_HUMANIZE_MAX];
	add_label(p, "records");
	double low = ceil(least * pow(most / least, 1.0 / LEVELS)); /* up to here it is level 1 */
	bool is_scale = low < ceil(most);
	if (is_scale)
		add_format(p->text, "%s up to %s   ", block(p, 1, false),
			bc_humanize_count(count, (uint64_t)low));
	add_format(p->text, "%s up to %s%s\n", block(p, LEVELS, false),
		bc_humanize_count(count, (uint64_t)ceil(most)),
		is_scale && p->width > 40 ? "   (each step is the same factor)" : "");
}

/* Lists the first gaps, or the first marks and triggers. */
static void list_events(struct plot *p, const struct event_list *events, bool is_gaps)
{
	const uint32_t max = 20;
	char wall[BC_RFC3339_BYTES];
	char words[BC_GAP_TEXT_MAX];
	uint32_t count = 0;

	for (uint32_t i = 0; i < events->count; i++) {
		const struct listed_event *e = &events->events[i];
		if ((e->event.kind == BC_EVENT_GAP) != is_gaps || ++count > max)
			continue;
		bc_rfc3339_write(wall, e->event.time_ns);
		add_format(p->text, "%s%s  %s  ", count == 1 ? "\n" : "", wall,
			is_gaps                          ? "gap    "
			: e->event.kind == BC_EVENT_MARK ? "mark   "
							 : "trigger");
		if (is_gaps)
			bc_gap_text(words, &(struct bc_event){.cause = e->event.cause,
						   .exact = e->event.is_exact,
						   .value = e->event.lost,
						   .duration_ns = e->event.duration_ns});
		add_safe(p->text, is_gaps ? words : e->text);
		bc_byte_buffer_add(p->text, "\n", 1);
	}
	if (count > max)
		add_format(p->text, "... and %s%u more; see buscap marks\n",
			events->is_cut_off ? "at least " : "", count - max);
}

/* Lists the first segments that are missing. */
static void list_holes(struct plot *p)
{
	const uint32_t max = 20;
	char wall[BC_RFC3339_BYTES];
	char what[BC_MISSING_TEXT];
	const struct bc_overview_contents c = bc_overview_contents(p->report->overview);

	for (uint32_t i = 0; i < c.hole_count && i < max; i++) {
		const struct bc_missing_segments *missing = &c.holes[i].missing;
		bool is_timed = missing->from_ns != 0;
		if (is_timed)
			bc_rfc3339_write(wall, missing->from_ns);
		add_format(p->text, "%s%s  hole     %s\n", i == 0 ? "\n" : "",
			is_timed ? wall : "-", bc_missing_write(what, missing));
	}
	if (c.hole_count > max)
		add_format(p->text, "... and %" PRIu32 " more\n", c.hole_count - max);
}

int bc_report_plain(struct bc_report *r, struct bc_byte_buffer *t)
{
	const struct bc_overview_picture *picture = bc_overview_picture(r->overview);
	unsigned names = r->names != NULL ? NAME_COLUMNS : 16;
	unsigned least = LABEL_COLUMNS + names + 20;
	struct plot p = {.report = r,
		.text = t,
		.width = (r->width > least ? r->width : least) - LABEL_COLUMNS - names - 1};
	struct event_list events;
	char words[WORDS_MAX];
	int rc = collect_events(&events, r);

	p.totals = totals_of(r, &events);
	p.axis = make_axis(picture->from_ns, picture->to_ns, p.width / 14);
	p.cells = calloc(p.width, sizeof(*p.cells));
	p.holes = calloc(p.width, sizeof(*p.holes));
	t->is_out_of_memory = t->is_out_of_memory || p.cells == NULL || p.holes == NULL;
	add_safe(t, title_of(words, r));
	add_format(t, "\n%s\n\n", summary_of(words, r, &events, p.totals));
	if (!t->is_out_of_memory && picture->column_count != 0) {
		find_holes(&p);
		add_classes(&p);
		add_hole_line(&p);
		add_event_line(&p, &events, BC_EVENT_GAP, "gaps", '!');
		add_event_line(&p, &events, BC_EVENT_MARK, "marks", 'm');
		add_event_line(&p, &events, BC_EVENT_TRIGGER, "triggers", 't');
		add_axis(&p);
		add_map(&p);
		list_holes(&p);
		list_events(&p, &events, false);
		list_events(&p, &events, true);
	}
	if (r->reduced != NULL)
		add_format(t, "\n%s\n", r->reduced);
	free(p.cells);
	free(p.holes);
	free(events.events);
	return rc;
}
