/* Owns what figures look like: their size, scales, colours and legends. The numbers come from the
 * picture of an overview, or from the JSON of stats.
 *
 * A figure has 720 by 360 units of a quarter of a millimetre, and is written in one pass: axes,
 * what they measure, frame and titles. The legend has the keys of what occurred, in the order of
 * writing. Each colour is one path, and cells of the heat map that continue the one before need 7
 * bytes. Invariant: `key_x` is where the next key goes, and nothing is written outside the plot but
 * texts and symbols of events. */
#include "cli/web/figure.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/text.h"

#define LEFT   84.0 /* of the plot */
#define RIGHT  704.0
#define TOP    40.0
#define BOTTOM 312.0
#define STEPS  16u
#define LAYERS (BC_PAGE_CLASSES + 2u)

struct axis {
	double from; /* a logarithm to base 2 if `is_log` */
	double to;
	double at; /* of `from` in the figure */
	double end;
	const char *unit;
	const char *prefixes; /* of powers of 1000, or of 1024 if `is_log` */
	bool is_log;
	bool is_whole; /* its steps are */
};

struct figure {
	struct bc_byte_buffer *t;
	struct axis x;
	struct axis y;
	double key_x; /* of the next key of the legend */
	struct bc_overview_contents contents;
	const struct bc_overview_picture *picture;
	unsigned classes;
	int64_t base_ns; /* time 0 of the axis */
	double unit_ns;
	double last_x[3]; /* of the last event of a kind, or 0 */
};

/* A key of the legend: its symbol is a path around its centre. */
struct key {
	const char *name;
	const char *symbol;
	const char *colour;
};

#define BOX     "M-4-4h8v8h-8z"
#define DIAMOND "M0 5l4-5-4-5-4 5z"

/* The page's colours (cli/web/page/style.css), of the theme in which each class is another grey. */
static const struct key layers[LAYERS] = {{"fetch", BOX, "#0072b2"},
	{"read + ioread", BOX, "#2fc494"}, {"write + iowrite", BOX, "#d55e00"},
	{"other", BOX, "#b79be0"}, {"not counted by class", BOX, "#888"},
	{"not recorded", BOX, "url(#lines)"}};
static const struct key kinds[] = {{"gap", "M0 5l5-9h-10z", "#c4161c"},
	{"mark", "M0 5v-10l8 3-7 3v4z", "#0b6e99"}, {"trigger", DIAMOND, "#8a3ffc"}};
static const struct key curves[2][2] = {
	{{"lines of 32 bytes", BOX, "#0072b2"}, {"pages of 4 KiB", DIAMOND, "#d55e00"}},
	{{"LRU, fully associative, lines of 32 bytes", BOX, "#0072b2"},
		{"estimated", BOX "M-3-3v6h6v-6z", "#0072b2"}}};
static const char heat[STEPS][8] = {"#d2e21b", "#a8db34", "#7fd34e", "#5ac864", "#3bbb75",
	"#26ad81", "#1f9e89", "#218f8d", "#26818e", "#2c718e", "#33628d", "#3b518b", "#423f85",
	"#472c7a", "#481769", "#440154"}; /* viridis */

static void put(const struct figure *f, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void put(const struct figure *f, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	size_t n = (size_t)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	bc_byte_buffer_add(f->t, text, n);
}

/* ---- axes and legend */

static double position(const struct axis *a, double value)
{
	const double share = (value - a->from) / (a->to - a->from);

	return a->at + fmin(fmax(share, 0), 1) * (a->end - a->at);
}

/* Returns 1, 2 or 5 times a power of ten, of which the axis has few. */
static double axis_step(const struct axis *a)
{
	const double least = (a->to - a->from) / (a->is_log ? 12 : 7);
	const double power = pow(10, floor(log10(least)));
	const double n = least <= power ? 1 : least <= 2 * power ? 2 : least <= 5 * power ? 5 : 10;

	return a->is_whole ? fmax(n * power, 1) : n * power;
}

static void put_axis(const struct figure *f, const struct axis *a)
{
	const bool is_x = a == &f->x;
	const double step = axis_step(a);
	const double first = ceil(a->from / step - 1e-9);

	for (unsigned i = 0; (first + i) * step <= a->to + step * 1e-9; i++) {
		const double at = position(a, (first + i) * step);
		double value = a->is_log ? exp2((first + i) * step) : (first + i) * step;
		const char *prefix = a->prefixes;
		for (; prefix[1] != '\0' && value >= (a->is_log ? 1024 : 1000); prefix++)
			value /= a->is_log ? 1024 : 1000;
		put(f,
			"<path d=\"M%.2f %.2f%s\" stroke=\"#bbb\"/><text x=\"%.2f\" y=\"%.2f\" "
			"text-anchor=\"%s\">%.15g %.*s%s%s</text>\n",
			is_x ? at : LEFT, is_x ? BOTTOM : at, is_x ? "v5" : "H704",
			is_x ? at : LEFT - 5, is_x ? BOTTOM + 16 : at + 4, is_x ? "middle" : "end",
			value, prefix != a->prefixes, prefix,
			prefix != a->prefixes && a->is_log ? "i" : "", a->unit);
	}
}

static void put_symbol(const struct figure *f, const struct key *key, double x, double y)
{
	put(f, "<path d=\"%s\" transform=\"translate(%.2f %.2f)\" fill=\"%s\"/>\n", key->symbol, x,
		y, key->colour);
}

static void put_key(struct figure *f, const struct key *key)
{
	put_symbol(f, key, f->key_x + 4, 12);
	put(f, "<text x=\"%.1f\" y=\"16\">%s</text>\n", f->key_x + 12, key->name);
	f->key_x += 28 + 5.6 * (double)strlen(key->name);
}

static struct figure start_figure(struct bc_byte_buffer *text)
{
	struct figure f = {.t = text,
		.x = {.at = LEFT, .end = RIGHT, .unit = "", .prefixes = " "},
		.y = {.to = 1, .at = BOTTOM, .end = TOP, .unit = "", .prefixes = " kMGTPE"},
		.key_x = LEFT};

	put(&f, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"180mm\" height=\"90mm\" "
		"viewBox=\"0 0 720 360\" font-family=\"Helvetica, Arial, sans-serif\" "
		"font-size=\"11\">\n<pattern id=\"lines\" width=\"4\" height=\"4\" "
		"patternUnits=\"userSpaceOnUse\"><path d=\"M0 4L4 0\" stroke=\"#666\"/></pattern>"
		"<path d=\"M0 0H720V360H0z\" fill=\"#fff\"/>\n");
	return f;
}

/* Writes the frame and the titles of the axes. Returns 0, -EFBIG or -ENOMEM. */
static int end_figure(const struct figure *f, const char *x, const char *y)
{
	put(f,
		"<path d=\"M%g %gH%gV%gH%gz\" fill=\"none\" stroke=\"#000\"/>\n"
		"<g text-anchor=\"middle\"><text x=\"394\" y=\"346\">%s</text>"
		"<text transform=\"translate(14 176)rotate(-90)\">%s</text></g></svg>\n",
		LEFT, TOP, RIGHT, BOTTOM, LEFT, x, y);
	return f->t->is_too_long ? -EFBIG : f->t->is_out_of_memory ? -ENOMEM : 0;
}

/* ---- pictures */

static double time_x(const struct figure *f, int64_t ns)
{
	return position(&f->x, (double)((__int128)ns - f->base_ns) / f->unit_ns);
}

/* The end of a column, which is not too narrow to see. */
static double end_x(const struct figure *f, const struct bc_overview_column *c)
{
	return fmax(time_x(f, c->to_ns), time_x(f, c->from_ns) + 0.5);
}

/* Writes the axis of time, and its title to `title`. */
static void put_time_axis(struct figure *f, const char *axis, char *title, size_t size)
{
	static const char *const units[] = {"ns", "\u00b5s", "ms", "s"};
	const struct bc_overview_picture *p = f->picture;
	const double span = (double)((__int128)p->to_ns - p->from_ns) + 1;
	char start[BC_RFC3339_BYTES] = "";
	unsigned i = 0;

	f->unit_ns = 1;
	f->x.is_whole = axis[0] != '\0' && strcmp(axis, "seconds") != 0;
	for (; !f->x.is_whole && i < 3 && span >= 2000 * f->unit_ns; i++)
		f->unit_ns *= 1000;
	if (axis[0] == '\0')
		bc_rfc3339_write(start, f->base_ns = p->from_ns);
	snprintf(title, size, "time%s%s (%s)", start[0] != '\0' ? " after " : "", start, units[i]);
	if (f->x.is_whole)
		snprintf(title, size, "%s", axis);
	f->x.from = (double)((__int128)p->from_ns - f->base_ns) / f->unit_ns;
	f->x.to = f->x.from + span / f->unit_ns;
	put_axis(f, &f->x);
}

static bool put_event(void *context, const struct bc_overview_event *e)
{
	struct figure *f = context;
	const unsigned kind = e->kind == BC_EVENT_MARK ? 1 : e->kind == BC_EVENT_TRIGGER ? 2 : 0;
	const double x = time_x(f, e->time_ns);

	if (fabs(x - f->last_x[kind]) >= 2)
		put_symbol(f, &kinds[kind], f->last_x[kind] = x, TOP - 5);
	return !f->t->is_too_long;
}

/* Returns the records of a cell that are shown, of these classes. */
static double count(const struct figure *f, const struct bc_region *cell, unsigned classes)
{
	uint64_t sum = 0;

	for (unsigned k = 0; k < BC_PAGE_CLASSES; k++)
		sum += (f->classes & classes) >> k & 1 ? cell->counts[k] : 0;
	return (double)sum;
}

/* Returns the records of a column in the layers below one, per second or 1,000 of the axis; 0 at a
 * moment. A hole is as high as the plot. */
static double rate_below(const struct figure *f, const struct bc_overview_column *c, unsigned layer)
{
	const double per = f->x.is_whole ? 1e3 : 1e9;
	double n = layer > BC_PAGE_CLASSES ? (double)c->uncounted : 0;

	for (uint32_t i = 0; i < c->cell_count; i++)
		n += count(f, &c->cells[i], (1u << layer) - 1);
	return c->is_hole            ? (layer == LAYERS ? INFINITY : 0)
	       : c->duration_ns <= 1 ? 0
				     : n * per / (double)c->duration_ns;
}

/* Writes the times between recordings, as parts of a path. */
static void put_pauses(const struct figure *f)
{
	double end = RIGHT;

	for (uint32_t i = 0; i < f->contents.recording_count; i++) {
		const struct bc_overview_recording *r = &f->contents.recordings[i];
		if (time_x(f, r->from_ns) > end)
			put(f, "M%.2f %gV%gH%.2fV%gz", end, BOTTOM, TOP, time_x(f, r->from_ns),
				BOTTOM);
		end = i == 0 ? time_x(f, r->ended_ns) : fmax(end, time_x(f, r->ended_ns));
	}
}

/* Writes a layer and its key, unless it is empty. */
static void put_layer(struct figure *f, unsigned layer)
{
	const size_t start = f->t->used;

	put(f, "<path fill=\"%s\" d=\"", layers[layer].colour);
	const size_t empty = f->t->used;
	for (uint32_t i = 0; i < f->picture->column_count; i++) {
		const struct bc_overview_column *c = &f->picture->columns[i];
		const double low = position(&f->y, rate_below(f, c, layer));
		const double high = position(&f->y, rate_below(f, c, layer + 1));
		if (high < low)
			put(f, "M%.2f %.2fV%.2fH%.2fV%.2fz", time_x(f, c->from_ns), low, high,
				end_x(f, c), low);
	}
	if (layer == LAYERS - 1)
		put_pauses(f);
	if (f->t->used != empty) {
		put(f, "\"/>\n");
		put_key(f, &layers[layer]);
	} else {
		f->t->used = start;
	}
}

static void put_timeline(struct figure *f)
{
	for (uint32_t i = 0; i < f->picture->column_count; i++)
		f->y.to = fmax(f->y.to, rate_below(f, &f->picture->columns[i], LAYERS - 1));
	f->y.to = ceil(f->y.to / axis_step(&f->y)) * axis_step(&f->y);
	put_axis(f, &f->y);
	for (unsigned layer = 0; layer < LAYERS; layer++)
		put_layer(f, layer);
}

/* Writes the cells of a colour: parts of lines as thick as a row. */
static void put_cells(const struct figure *f, unsigned step, double height, double most)
{
	uint32_t next[BC_OVERVIEW_COLUMNS] = {0}; /* cells of the columns */

	put(f, "<path stroke=\"%s\" stroke-width=\"%.3f\" d=\"M0 0", heat[step], height);
	for (uint32_t row = 0; row < f->picture->row_count; row++) {
		double end = -1;
		for (uint32_t i = 0; i < f->picture->column_count; i++) {
			const struct bc_overview_column *c = &f->picture->columns[i];
			if (next[i] == c->cell_count || c->cells[next[i]].first != row)
				continue;
			const double n = count(f, &c->cells[next[i]++], BC_FIGURE_ALL);
			const double share = most > 1 ? log(n) / log(most) : 0;
			const double x = time_x(f, c->from_ns);
			if (n == 0 || lround(share * (STEPS - 1)) != step)
				continue;
			if (fabs(x - end) > 0.005)
				put(f, "M%.2f %.2f", x, TOP + (row + 0.5) * height);
			put(f, "H%.2f", end = end_x(f, c));
		}
	}
	put(f, "\"/>\n");
}

static void put_heat_map(struct figure *f)
{
	const struct bc_overview_picture *p = f->picture;
	const double height = (BOTTOM - TOP) / fmax(p->row_count, 1);
	double most = 1;

	for (uint32_t i = 0; i < p->row_count; i += (uint32_t)ceil(11 / height)) {
		const bool is_port = p->rows[i].place >= BC_PORT_0;
		put(f, "<text x=\"%g\" y=\"%.2f\" text-anchor=\"end\">%s%0*x</text>\n", LEFT - 5,
			TOP + i * height + fmin(height, 11) / 2 + 4, is_port ? "io " : "",
			is_port ? 4 : 8,
			is_port ? p->rows[i].place - BC_PORT_0 : p->rows[i].place * BC_PAGE_BYTES);
	}
	for (uint32_t i = 0; i < p->column_count; i++)
		for (uint32_t k = 0; k < p->columns[i].cell_count; k++)
			most = fmax(most, count(f, &p->columns[i].cells[k], BC_FIGURE_ALL));
	put(f, "<text x=\"%g\" y=\"16\">records per cell: 1</text>\n", LEFT);
	f->key_x += 110;
	for (unsigned step = 0; step < STEPS; step++, f->key_x += 8) {
		put_symbol(f, &(struct key){.symbol = BOX, .colour = heat[step]}, f->key_x, 12);
		put_cells(f, step, height, most);
	}
	put(f, "<text x=\"%g\" y=\"16\">%s</text>\n", f->key_x, BC_GROUPED((uint64_t)most));
	f->key_x += 80;
	put_layer(f, LAYERS - 1);
}

/* ---- figures */

enum bc_figure bc_figure_parse(const char *name)
{
	static const char *const names[] = {
		"", "timeline", "heat-map", "working-set", "miss-ratio"};
	enum bc_figure figure = BC_FIGURE_MISS_RATIO;

	while (figure != BC_FIGURE_NONE && strcmp(name, names[figure]) != 0)
		figure--;
	return figure;
}

int bc_figure_picture(struct bc_byte_buffer *text, struct bc_overview *overview,
	enum bc_figure figure, unsigned classes)
{
	const struct bc_overview_contents contents = bc_overview_contents(overview);
	const char *axis = contents.axis;
	const bool is_map = figure == BC_FIGURE_HEAT_MAP;
	struct figure f = start_figure(text);
	char time[96];
	char rates[64];

	if (axis == NULL)
		return -EXDEV;
	if (axis[strspn(axis, "abcdefghijklmnopqrstuvwxyz")] != '\0')
		axis = "ticks"; /* it may be anything */
	f.contents = contents;
	f.picture = bc_overview_picture(overview);
	f.classes = classes;
	put_time_axis(&f, axis, time, sizeof(time));
	snprintf(rates, sizeof(rates), "records per %s%s", f.x.is_whole ? "1,000 " : "second",
		f.x.is_whole ? axis : "");
	(is_map ? put_heat_map : put_timeline)(&f);
	int rc = bc_overview_events(overview, f.picture->from_ns, f.picture->to_ns, put_event, &f);
	for (unsigned kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++)
		if (f.last_x[kind] != 0)
			put_key(&f, &kinds[kind]);
	return rc != 0 ? rc : end_figure(&f, time, is_map ? "address (untouched left out)" : rates);
}

static double number_at(const json_t *points, size_t i, const char *name)
{
	return json_number_value(json_object_get(json_array_get(points, i), name));
}

/* Writes a line through the points, and a symbol at each. Values are multiplied by `unit`, which
 * makes them those of the axis. */
static void put_curve(struct figure *f, const struct key *key, const json_t *points, const char *x,
	const char *y, double unit)
{
	const size_t count = json_array_size(points);

	put(f, "<path fill=\"none\" stroke=\"%s\" d=\"", key->colour);
	for (size_t n = 0; n < 2 * count; n++) {
		const size_t i = n < count ? n : n - count;
		const double value = unit * number_at(points, i, y);
		const double at_x = position(&f->x, log2(number_at(points, i, x)));
		const double at_y = position(&f->y, f->y.is_log ? log2(value) : value);
		if (n == i)
			put(f, "%c%.2f %.2f", i == 0 ? 'M' : 'L', at_x, at_y);
		else
			put_symbol(f, key + (number_at(points, i, "one_line_in") > 1), at_x, at_y);
		if (n + 1 == count)
			put(f, "\"/>\n");
	}
	put_key(f, key);
}

int bc_figure_curve(struct bc_byte_buffer *text, const json_t *stats, enum bc_figure figure)
{
	const bool is_miss = figure == BC_FIGURE_MISS_RATIO;
	const json_t *points = json_object_get(stats, is_miss ? "miss_ratio" : "working_set");
	const size_t count = json_array_size(points);
	struct figure f = start_figure(text);

	if (count == 0)
		return -ENODATA;
	f.x = (struct axis){is_miss ? 5 : 0, (is_miss ? 5 : 0) + (double)count, LEFT, RIGHT,
		is_miss ? "B" : "", " KMGTPE", true, true};
	f.y = (struct axis){5, ceil(log2(4096 * number_at(points, count - 1, "pages"))), BOTTOM,
		TOP, "B", " KMGTPE", true, true};
	if (is_miss)
		f.y = (struct axis){0, 100, BOTTOM, TOP, "%", " ", false, true};
	put_axis(&f, &f.x);
	put_axis(&f, &f.y);
	if (is_miss) {
		put_curve(&f, curves[1], points, "bytes", "ratio", 100);
		if (number_at(points, count - 1, "one_line_in") > 1)
			put_key(&f, &curves[1][1]);
		return end_figure(&f, "cache size", "misses (of all touches of lines)");
	}
	put_curve(&f, &curves[0][0], points, "references", "lines", 32);
	put_curve(&f, &curves[0][1], points, "references", "pages", 4096);
	return end_figure(&f, "window (references to memory)", "average working set");
}
