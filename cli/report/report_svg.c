/* A report as a picture: traffic by class, gaps and marks over time, and a map of addresses. It has
 * no scripts and loads nothing.
 *
 * The map has a path for each of its colours, so that it needs few bytes. The colours are those of
 * viridis, whose lightness changes evenly: darker is more on a light background, lighter is more on
 * a dark one. The others are those of the page (cli/page/style.css). */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report/report_text.h"
#include "cli/term/humanize.h"
#include "cli/term/safe_text.h"
#include "formats/base/rfc3339.h"
#include "formats/base/utf8.h"
#include "formats/overview/overview_json.h"

#define WIDTH       1200
#define LEFT        176
#define RIGHT       230 /* names */
#define PLOT_WIDTH  (WIDTH - LEFT - RIGHT)
#define TOP         76
#define BARS_HEIGHT 150
#define NAME_CHARS  32 /* as many as there is room for */
#define LANE        18
#define LABEL_LANES 5u
#define MAP_HEIGHT  520 /* at most */
#define FONT        12
#define HEATS       10u
#define TICKS       8u

static const char style[] =
	"path,rect{shape-rendering:crispEdges}text{font:12px system-ui,sans-serif;fill:#1b1b1b}"
	".t{font-size:18px;font-weight:600}.s{fill:#555}.e{text-anchor:end}.m{text-anchor:middle}"
	".b{fill:#fff}.g{stroke:#d8d8d8;fill:none}.x{stroke:#555;fill:none}.r{fill:#f4f4f4}"
	".f{fill:#0072b2}.d{fill:#009e73}.w{fill:#d55e00}.o{fill:#8b6bb1}.u{fill:#ccc}"
	".l{fill:#c4161c;stroke:#c4161c}.k{fill:#0b6e99;stroke:#0b6e99}"
	".j{fill:#8a3ffc;stroke:#8a3ffc}"
	".h0{fill:#fde725}.h1{fill:#b5de2b}.h2{fill:#6ece58}.h3{fill:#35b779}.h4{fill:#1f9e89}"
	".h5{fill:#26828e}.h6{fill:#31688e}.h7{fill:#3e4989}.h8{fill:#482878}.h9{fill:#440154}"
	"@media(prefers-color-scheme:dark){text{fill:#eee}.s{fill:#bbb}.b{fill:#16181d}"
	".g{stroke:#3a3d45}.x{stroke:#aaa}.r{fill:#1f2229}.f{fill:#4aa8e0}.d{fill:#2fc494}"
	".w{fill:#f28b45}.o{fill:#b79be0}.u{fill:#555}"
	".l{fill:#ff6b6b;stroke:#ff6b6b}.k{fill:#5cc0e8;stroke:#5cc0e8}"
	".j{fill:#c39bff;stroke:#c39bff}"
	".h0{fill:#440154}.h1{fill:#482878}.h2{fill:#3e4989}.h3{fill:#31688e}.h4{fill:#26828e}"
	".h5{fill:#1f9e89}.h6{fill:#35b779}.h7{fill:#6ece58}.h8{fill:#b5de2b}.h9{fill:#fde725}}";

/* The text of a mark or trigger. */
struct label {
	bool has_room;
	bool is_left; /* of its symbol */
	unsigned lane;
};

struct svg {
	struct bc_report *report;
	struct bc_report_text *text;
	const struct bc_overview_picture *picture;
	struct bc_report_axis axis;
	struct bc_report_events events;
	struct label *labels; /* of the events */
	unsigned lanes;       /* with labels */
	double row_height;
	bool is_rates;    /* heights of traffic; otherwise records */
	bool has_moments; /* among rates */
	double highest;   /* column of traffic, except moments */
	double end;       /* of the traffic's axis */
};

/* Adds text as it may be within an element or attribute. It is safe for a terminal already, or is
 * made so, which leaves no control characters. */
static void add_words(struct svg *s, const char *words)
{
	char safe[BC_REPORT_WORDS_MAX];

	bc_safe_text(safe, sizeof(safe), words);
	for (const char *p = safe; *p != '\0'; p++) {
		if (*p == '<')
			bc_report_add(s->text, "&lt;", 4);
		else if (*p == '>')
			bc_report_add(s->text, "&gt;", 4);
		else if (*p == '&')
			bc_report_add(s->text, "&amp;", 5);
		else if (*p == '"')
			bc_report_add(s->text, "&quot;", 6);
		else if (strncmp(p, "\xEF\xBF\xBE", 3) == 0 || strncmp(p, "\xEF\xBF\xBF", 3) == 0)
			p += 2; /* not a character in XML */
		else
			bc_report_add(s->text, p, 1);
	}
}

static void add_text(struct svg *s, double x, double y, const char *class, const char *words)
{
	bc_report_format(s->text, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, class);
	add_words(s, words);
	bc_report_format(s->text, "</text>\n");
}

static double x_of(const struct svg *s, int64_t ns)
{
	return LEFT + bc_report_axis_at(&s->axis, ns) * PLOT_WIDTH;
}

static bool is_moment(const struct svg *s)
{
	return s->picture->from_ns == s->picture->to_ns;
}

/* A column's left and right edge: whole pixels, so that there is nothing between neighbours. */
static void span_of(
	const struct svg *s, const struct bc_overview_column *c, double *left, double *right)
{
	*left = fmin(round(x_of(s, c->from_ns)), LEFT + PLOT_WIDTH - 1);
	*right = is_moment(s) ? *left + 6 : fmax(round(x_of(s, c->to_ns)), *left + 1);
}

/* ---- axes */

static void add_time_axis(struct svg *s, double top, double bottom)
{
	char words[BC_REPORT_WORDS_MAX];
	char wall[BC_RFC3339_BYTES];

	for (uint64_t i = 0; i <= s->axis.span_ns / s->axis.step_ns; i++) {
		uint64_t at = i * s->axis.step_ns;
		double x = LEFT + (double)at / (double)s->axis.span_ns * PLOT_WIDTH;
		bc_report_format(s->text,
			"<path class=\"g\" d=\"M%.1f %.1fV%.1f\"/>\n<path class=\"x\" d=\"M%.1f "
			"%.1fv5\"/>\n",
			x, top, bottom, x, bottom);
		snprintf(
			words, sizeof(words), "%" PRIu64 " %s", at / s->axis.unit_ns, s->axis.unit);
		add_text(s, x, bottom + 18, "m", words);
	}
	bc_report_format(
		s->text, "<path class=\"x\" d=\"M%d %.1fh%d\"/>\n", LEFT, bottom, PLOT_WIDTH);
	bc_rfc3339_write(wall, s->axis.from_ns);
	snprintf(words, sizeof(words), "time since %s", wall);
	add_text(s, LEFT + PLOT_WIDTH / 2.0, bottom + 36, "m s", words);
}

/* ---- traffic */

/* Whether a column is neither too short nor the 1 ns of a moment whose end is exclusive. */
static bool has_rate(const struct bc_overview_column *c)
{
	return c->duration_ns > 1;
}

/* Records per second of a column; INFINITY of a moment. If all are moments, their records. */
static double height_of(const struct svg *s, const struct bc_overview_column *c)
{
	double records = (double)c->records;

	if (!s->is_rates || c->records == 0)
		return records;
	return has_rate(c) ? records / (double)c->duration_ns * 1e9 : INFINITY;
}

static int compare_heights(const void *a, const void *b)
{
	double left = *(const double *)a;
	double right = *(const double *)b;

	return (left > right) - (left < right);
}

/* Finds the highest column, and the end of the axis: lower if few columns are much higher than the
 * others. As cli/page/timeline.js. */
static void find_heights(struct svg *s, double *heights)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < s->picture->column_count; i++)
		s->is_rates = s->is_rates || has_rate(&s->picture->columns[i]);
	for (uint32_t i = 0; i < s->picture->column_count; i++) {
		heights[count] = height_of(s, &s->picture->columns[i]);
		count += isfinite(heights[count]) ? 1 : 0;
	}
	s->has_moments = count != s->picture->column_count;
	qsort(heights, count, sizeof(*heights), compare_heights);
	s->highest = count != 0 ? heights[count - 1] : 0;
	double usual = count != 0 ? heights[(size_t)(0.98 * (count - 1))] : 0;
	s->end = usual > 0 && s->highest > 3 * usual ? 1.5 * usual : s->highest;
}

/* The distance between ticks up to a rate: 1, 2 or 5 of a power of ten, for two to five. */
static double step_of(double most, bool is_whole)
{
	double power = pow(10, floor(log10(most / 2)));
	double step = most / 2 >= 5 * power ? 5 * power : most / 2 >= 2 * power ? 2 * power : power;

	return is_whole ? fmax(step, 1) : step;
}

/* A round number: "2.5 M". */
static const char *tick_words(char out[BC_HUMANIZE_MAX], double value)
{
	static const char *const units[] = {"", " k", " M", " G"};
	unsigned unit = 0;

	for (; value >= 999.5 && unit < 3; unit++)
		value /= 1000;
	snprintf(out, BC_HUMANIZE_MAX, "%.4g%s", value, units[unit]);
	return out;
}

static void add_traffic(struct svg *s)
{
	static const char classes[] = "fdwou";
	char rate[BC_HUMANIZE_MAX];
	char words[BC_REPORT_WORDS_MAX];

	if (s->end <= 0)
		return;
	double step = step_of(s->end, !s->is_rates);
	unsigned ticks = (unsigned)ceil(s->end / step);
	double end = ticks * step;
	for (unsigned tick = 0; tick <= ticks; tick++) {
		double y = TOP + BARS_HEIGHT * (1 - (double)tick / ticks);
		bc_report_format(
			s->text, "<path class=\"g\" d=\"M%d %.1fh%d\"/>\n", LEFT, y, PLOT_WIDTH);
		add_text(s, LEFT - 8, y + 4, "e", tick_words(rate, tick * step));
	}
	add_text(s, LEFT - 60, TOP + BARS_HEIGHT / 2.0 + 4, "e s",
		s->is_rates ? "records/s" : "records");
	if (s->highest > end) {
		snprintf(words, sizeof(words), "columns cut at the top reach up to %s/s",
			bc_humanize_rate(rate, s->highest));
		add_text(s, LEFT + PLOT_WIDTH, TOP - 8, "e s", words);
	} else if (s->has_moments) {
		add_text(s, LEFT + PLOT_WIDTH, TOP - 8, "e s",
			"columns cut at the top are too short to have a rate");
	}
	for (unsigned class = 0; class <= BC_PAGE_CLASSES; class ++) {
		bc_report_format(s->text, "<path class=\"%c\" d=\"", classes[class]);
		for (uint32_t i = 0; i < s->picture->column_count; i++) {
			const struct bc_overview_column *c = &s->picture->columns[i];
			double scale = BARS_HEIGHT * fmin(height_of(s, c) / end, 1) /
				       (double)c->records;
			double below = 0;
			double left;
			double right;
			for (unsigned k = 0; k < class; k++)
				below += (double)c->counts[k];
			uint64_t n = class < BC_PAGE_CLASSES ? c->counts[class] : c->uncounted;
			if (n == 0)
				continue;
			span_of(s, c, &left, &right);
			bc_report_format(s->text, "M%.0f %.2fH%.0fV%.2fH%.0fz", left,
				TOP + BARS_HEIGHT - below * scale, right,
				TOP + BARS_HEIGHT - (below + (double)n) * scale, left);
		}
		bc_report_format(s->text, "\"/>\n");
	}
	bc_report_format(s->text, "<path class=\"b\" d=\"");
	for (uint32_t i = 0; i < s->picture->column_count; i++) {
		double left;
		double right;
		span_of(s, &s->picture->columns[i], &left, &right);
		if (height_of(s, &s->picture->columns[i]) > end) /* it is cut */
			bc_report_format(
				s->text, "M%.0f %dH%.0fv2H%.0fz", left, TOP + 5, right, left);
	}
	bc_report_format(s->text, "\"/>\n");
}

static void add_legend(struct svg *s)
{
	static const struct {
		char class;
		const char *name;
	} entries[] = {{'u', "not counted"}, {'o', "other"}, {'w', "write"}, {'d', "read"},
		{'f', "fetch"}};
	bool has_uncounted = false;
	double y = TOP + 14;

	for (uint32_t i = 0; i < s->picture->column_count; i++)
		has_uncounted = has_uncounted || s->picture->columns[i].uncounted != 0;
	for (size_t i = has_uncounted ? 0 : 1; i < sizeof(entries) / sizeof(entries[0]); i++) {
		bc_report_format(s->text,
			"<rect class=\"%c\" x=\"%d\" y=\"%.1f\" width=\"12\" height=\"12\"/>\n",
			entries[i].class, LEFT + PLOT_WIDTH + 16, y - 10);
		add_text(s, LEFT + PLOT_WIDTH + 34, y, "", entries[i].name);
		y += 20;
	}
}

/* ---- gaps and marks */

/* What an event is, shown when it is pointed at. */
static void add_event_words(struct svg *s, const struct bc_report_event *e)
{
	const struct bc_overview_event *event = &e->event;
	char words[BC_GAP_TEXT_MAX];

	if (event->kind == BC_EVENT_GAP)
		add_words(s, bc_report_gap_text(words, event));
	else
		add_words(s, e->text[0] != '\0' ? e->text : "trigger");
}

static void add_count(struct svg *s, double y, uint32_t count, uint32_t left_out)
{
	char words[BC_REPORT_WORDS_MAX];
	int n = snprintf(words, sizeof(words), "%" PRIu32 "%s", count,
		s->events.is_cut_off ? " or more" : "");

	if (left_out != 0)
		snprintf(words + n, sizeof(words) - (size_t)n, " (texts of %" PRIu32 " left out)",
			left_out);
	add_text(s, LEFT + PLOT_WIDTH + 16, y + 13, "s", words);
}

static void add_gaps(struct svg *s, double y)
{
	uint32_t count = 0;

	add_text(s, LEFT - 8, y + 13, "e s", "gaps");
	for (uint32_t i = 0; i < s->events.count; i++) {
		const struct bc_report_event *e = &s->events.events[i];
		if (e->event.kind != BC_EVENT_GAP)
			continue;
		count++;
		bc_report_format(s->text,
			"<path class=\"l\" d=\"M%.1f %.1fv12m-3 -12h6l-3 5z\"><title>",
			x_of(s, e->event.time_ns), y + 3);
		add_event_words(s, e);
		bc_report_format(s->text, "</title></path>\n");
	}
	add_count(s, y, count, 0);
}

/* Takes the room for a text of `width` pixels, if it is free, left or right of a symbol in lane 0,
 * or of the end of its line down to another lane. */
static bool take_room(bool used[LABEL_LANES][WIDTH], int x, int width, unsigned lane, bool is_left)
{
	int symbol = lane == 0 ? 6 : 0; /* its half */
	int from = is_left ? x - width : x + symbol;
	size_t room = (size_t)(width - symbol);

	if (from < LEFT || x + (is_left ? 0 : width) > LEFT + PLOT_WIDTH ||
		memchr(used[lane] + from, 1, room) != NULL)
		return false;
	memset(used[lane] + from, true, room);
	for (unsigned above = 1; above < lane; above++)
		used[above][x] = true;
	return true;
}

/* Finds room for the text of a mark or trigger: beside its symbol, else left of a line, else right
 * of one, where it is in the way of the lines of later marks. */
static void place_label(struct svg *s, bool used[LABEL_LANES][WIDTH],
	const struct bc_report_event *e, struct label *l)
{
	static const struct {
		bool is_left;
		unsigned first; /* lane */
		unsigned end;
	} places[] = {{false, 0, 1}, {true, 0, 1}, {true, 1, LABEL_LANES}, {false, 1, LABEL_LANES}};
	int x = (int)x_of(s, e->event.time_ns);
	int width = (int)((double)strlen(e->text) * 7.5) + 10;

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		for (unsigned lane = places[i].first; lane < places[i].end; lane++) {
			if (take_room(used, x, width, lane, places[i].is_left)) {
				*l = (struct label){.has_room = true,
					.is_left = places[i].is_left,
					.lane = lane};
				s->lanes = lane >= s->lanes ? lane + 1 : s->lanes;
				return;
			}
			if (lane != 0 && used[lane][x])
				break; /* the line would cross a text */
		}
}

/* Places the texts of marks, then of triggers, of which there can be many. */
static void place_labels(struct svg *s)
{
	bool used[LABEL_LANES][WIDTH] = {{false}};

	s->lanes = 1;
	for (uint32_t i = 0; i < s->events.count; i++)
		if (s->events.events[i].event.kind != BC_EVENT_GAP)
			memset(used[0] + (int)x_of(s, s->events.events[i].event.time_ns) - 5, true,
				11);
	for (int triggers = 0; triggers <= 1; triggers++)
		for (uint32_t i = 0; i < s->events.count; i++) {
			const struct bc_report_event *e = &s->events.events[i];
			if (e->text[0] != '\0' &&
				e->event.kind == (triggers != 0 ? BC_EVENT_TRIGGER : BC_EVENT_MARK))
				place_label(s, used, e, &s->labels[i]);
		}
}

static void add_marks(struct svg *s, double y)
{
	uint32_t count = 0;
	uint32_t left_out = 0;

	add_text(s, LEFT - 8, y + 13, "e s", "marks, triggers");
	for (uint32_t i = 0; i < s->events.count; i++) {
		const struct bc_report_event *e = &s->events.events[i];
		const struct label *l = &s->labels[i];
		double x = x_of(s, e->event.time_ns);
		if (e->event.kind == BC_EVENT_GAP)
			continue;
		count++;
		left_out += e->text[0] != '\0' && !l->has_room;
		/* The shapes are those of the page: a mark is a flag, a trigger a diamond. */
		bool is_mark = e->event.kind == BC_EVENT_MARK;
		bc_report_format(s->text, "<path class=\"%c\" d=\"M%.1f %.1f%s",
			is_mark ? 'k' : 'j', x, y + 3,
			is_mark ? "v12m0 -12l5 3-5 3z" : "l4 6-4 6-4-6z");
		if (l->lane != 0)
			bc_report_format(s->text, "m0 12v%u", l->lane * LANE - 4);
		bc_report_format(s->text, "\"><title>");
		add_event_words(s, e);
		bc_report_format(s->text, "</title></path>\n");
		if (l->has_room)
			add_text(s, l->is_left ? x - 6 : x + 6, y + 13 + l->lane * LANE,
				l->is_left ? "e" : "", e->text);
	}
	add_count(s, y, count, left_out);
}

/* ---- the map */

static double records_of(const struct bc_region *cell)
{
	double sum = 0;

	for (unsigned class = 0; class < BC_PAGE_CLASSES; class ++)
		sum += (double)cell->counts[class];
	return sum;
}

/* The fewest and most records in a cell. */
static void find_range(const struct svg *s, double *least, double *most)
{
	*least = INFINITY;
	*most = 0;
	for (uint32_t i = 0; i < s->picture->column_count; i++) {
		const struct bc_overview_column *c = &s->picture->columns[i];
		for (uint32_t j = 0; j < c->cell_count; j++) {
			double records = records_of(&c->cells[j]);
			*least = fmin(*least, records);
			*most = fmax(*most, records);
		}
	}
}

static unsigned heat_of(double records, double least, double most)
{
	double share = most > least ? log(records / least) / log(most / least) : 1;

	return (unsigned)fmin(fmax(share * HEATS, 0), HEATS - 1);
}

static void add_cells(struct svg *s, double top, double least, double most)
{
	for (unsigned heat = 0; heat < HEATS; heat++) {
		bc_report_format(s->text, "<path class=\"h%u\" d=\"", heat);
		for (uint32_t i = 0; i < s->picture->column_count; i++) {
			const struct bc_overview_column *c = &s->picture->columns[i];
			double left;
			double right;
			span_of(s, c, &left, &right);
			for (uint32_t j = 0; j < c->cell_count; j++) {
				double y = top + c->cells[j].first * s->row_height;
				if (heat_of(records_of(&c->cells[j]), least, most) == heat)
					bc_report_format(s->text, "M%.0f %.2fH%.0fV%.2fH%.0fz",
						left, y, right, y + s->row_height, left);
			}
		}
		bc_report_format(s->text, "\"/>\n");
	}
}

/* Adds the addresses and names of as many rows as there is room for; always of the first row of a
 * name. */
static void add_row_labels(struct svg *s, double top)
{
	char words[BC_REPORT_ADDRESSES_MAX];
	char name[BC_ROW_NAME_MAX];
	char before[BC_ROW_NAME_MAX] = "";
	double label_y = -FONT;
	double name_y = -FONT;

	for (uint32_t i = 0; i < s->picture->row_count; i++) {
		double y = top + (i + 0.5) * s->row_height + 4;
		if (y - label_y >= FONT) {
			add_text(s, LEFT - 8, y, "e",
				bc_report_addresses(words, &s->picture->rows[i]));
			label_y = y;
		}
		const char *found = bc_overview_row_name(
			name, s->report->names, &s->picture->rows[i]);
		if (found == NULL || strcmp(found, before) == 0 || y - name_y < FONT)
			continue;
		strcpy(before, found);
		name_y = y;
		if (strlen(found) > NAME_CHARS)
			strcpy(name + bc_utf8_fit(name, NAME_CHARS - 3), "...");
		add_text(s, LEFT + PLOT_WIDTH + 8, y, "", name);
	}
}

static void add_ramp(struct svg *s, double y, double least, double most)
{
	char count[BC_HUMANIZE_MAX];
	double x = LEFT + 300;

	add_text(s, LEFT, y + 11, "s", "records per cell (logarithmic)");
	for (unsigned heat = most > least ? 0 : HEATS - 1; heat < HEATS; heat++)
		bc_report_format(s->text,
			"<rect class=\"h%u\" x=\"%.1f\" y=\"%.1f\" width=\"20\" height=\"14\"/>\n",
			heat, x + 60 + heat * 20.0, y);
	if (most > least)
		add_text(s, x + 54, y + 11, "e", bc_humanize_count(count, (uint64_t)least));
	add_text(s, x + 66 + HEATS * 20.0, y + 11, "", bc_humanize_count(count, (uint64_t)most));
}

int bc_report_svg(struct bc_report *r, struct bc_report_text *t)
{
	struct svg s = {.report = r, .text = t, .picture = bc_overview_picture(r->overview)};
	const struct bc_overview_picture *p = s.picture;
	char words[BC_REPORT_WORDS_MAX];
	int rc = bc_report_events_list(&s.events, r);
	double least;
	double most;

	s.axis = bc_report_axis_make(p->from_ns, p->to_ns, TICKS);
	s.row_height = p->row_count != 0 ? fmin((double)MAP_HEIGHT / p->row_count, 22) : 0;
	double gaps_y = TOP + BARS_HEIGHT + 4;
	s.labels = calloc(s.events.count + 1u, sizeof(*s.labels));
	double *heights = calloc(p->column_count + 1u, sizeof(*heights));
	bool has_memory = s.labels != NULL && heights != NULL;
	t->is_no_memory = t->is_no_memory || !has_memory;
	if (has_memory) {
		place_labels(&s);
		find_heights(&s, heights);
	}
	double map_y = gaps_y + (1.0 + s.lanes) * LANE + 6;
	double bottom = map_y + s.row_height * p->row_count;
	double height = bottom + (r->reduced != NULL ? 108 : 88);
	bc_report_format(t,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" width=\"%d\" "
		"height=\"%.0f\" role=\"img\">\n<title>",
		WIDTH, height, WIDTH, height);
	add_words(&s, bc_report_title(words, r));
	bc_report_format(t, "</title>\n<style>");
	bc_report_add(t, style, sizeof(style) - 1);
	bc_report_format(
		t, "</style>\n<rect class=\"b\" width=\"%d\" height=\"%.0f\"/>\n", WIDTH, height);
	add_text(&s, 16, 30, "t", bc_report_title(words, r));
	add_text(&s, 16, 52, "s", bc_report_facts(words, r, &s.events));
	if (p->column_count != 0 && has_memory) {
		bc_report_format(t,
			"<rect class=\"r\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\"/>\n",
			LEFT, map_y, PLOT_WIDTH, bottom - map_y);
		add_time_axis(&s, TOP, bottom);
		add_traffic(&s);
		add_legend(&s);
		add_gaps(&s, gaps_y);
		add_marks(&s, gaps_y + LANE);
		find_range(&s, &least, &most);
		add_cells(&s, map_y, least, most);
		add_row_labels(&s, map_y);
		if (p->row_count != 0)
			add_ramp(&s, bottom + 52, least, most);
	}
	if (r->reduced != NULL)
		add_text(&s, LEFT, height - 12, "s", r->reduced);
	bc_report_format(t, "</svg>\n");
	free(heights);
	free(s.labels);
	bc_report_events_free(&s.events);
	return bc_report_result(t, rc);
}
