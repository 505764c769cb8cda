/* Draws a picture. First the chunks of each segment that are in it are counted, which tells what
 * units of time to use and how many of them to join in a column. Then each column gets the counts
 * of its units; it is made as coarse as it takes to have no more cells than there may be rows.
 * Finally all columns are made as coarse as the coarsest. */
#include "formats/overview/overview.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "formats/overview/overview_internal.h"
#include "formats/segment/segment_index.h"

/* A picture of at most this many chunks is drawn from their records. */
#define DECODED_CHUNKS 64u

/* A picture decodes at most this many chunks without page counts. */
#define UNCOUNTED_CHUNKS 64u

/* There are at most this many units for each column. */
#define UNITS_PER_COLUMN 4u

#define LEVEL_CHUNKS   0u
#define LEVEL_SEGMENTS (1u + BC_SUMMARY_LEVELS)
#define LEVELS         (LEVEL_SEGMENTS + 1)

#define NONE UINT32_MAX

struct drawing {
	struct bc_overview *overview;
	const struct bc_overview_options *options;
	struct bc_overview_segment **segments;
	unsigned level; /* of the units: LEVEL_CHUNKS, 1 + a level of the summary, LEVEL_SEGMENTS */
	uint64_t shared;     /* this many units share options->columns columns */
	uint64_t unit;       /* the next one, counted in its recording */
	bool is_mixed;       /* a column may have several recordings */
	bool is_new;         /* the last column has one unit */
	uint32_t last_epoch; /* of the last column */
	uint32_t decoded;
	struct bc_chunk *chunk; /* scratch */
	struct bc_chunk_pages pages;
	uint64_t ticks[BC_CHUNK_RECORDS];
	unsigned bin_count;
	uint32_t bins[BC_OVERVIEW_COLUMNS]; /* columns of this recording's bins; or NONE */
	int64_t last_ns;                    /* of the last record in the last column */
};

/* A unit: rows of the chunk table, which begin at `rows`. */
struct unit {
	const struct bc_overview_segment *segment;
	struct bc_chunk_row *rows; /* of the segment; NULL: only the whole segment is known */
	uint32_t first;
	uint32_t end;
};

struct bc_overview_options bc_overview_options_default(void)
{
	return (struct bc_overview_options){.from_ns = INT64_MIN,
		.to_ns = INT64_MAX,
		.place_to = BC_PLACES - 1,
		.columns = 256,
		.rows = 200};
}

void bc_overview_clear(struct bc_overview *o)
{
	for (uint32_t i = 0; i < BC_OVERVIEW_COLUMNS; i++)
		bc_page_counts_free(&o->cells[i]);
	free(o->rows);
	o->rows = NULL;
	o->picture = (struct bc_overview_picture){.from_ns = o->from_ns,
		.to_ns = o->to_ns,
		.place_to = BC_PLACES - 1,
		.unit = BC_OVERVIEW_RECORDS};
}

const struct bc_overview_picture *bc_overview_picture(const struct bc_overview *o)
{
	return &o->picture;
}

/* ---- columns */

/* Adds an empty column. Returns its index. */
static uint32_t add_column(struct bc_overview *o, uint32_t recording, int64_t from_ns)
{
	uint32_t count = o->picture.column_count++;

	assert(count < BC_OVERVIEW_COLUMNS);
	o->columns[count] = (struct bc_overview_column){
		.from_ns = from_ns, .to_ns = from_ns, .recording = recording, .has_gaps = true};
	return count;
}

/* The part of some counts that is in the picture's places. */
static struct bc_page_counts inside(
	const struct bc_overview_picture *picture, const struct bc_page_counts *counts)
{
	struct bc_page_counts part = *counts;
	uint32_t end = counts->count;
	uint32_t first = 0;

	for (; first < end; first++) {
		uint32_t place = counts->regions[first].first;
		unsigned shift = place < BC_PORT_0 ? counts->page_shift : counts->port_shift;
		if (place + (1u << shift) > picture->place_from)
			break;
	}
	while (end > first && counts->regions[end - 1].first > picture->place_to)
		end--;
	part.regions = counts->regions + first;
	part.count = end - first;
	if (part.count == 0 || part.regions[0].first >= BC_PORT_0)
		part.page_shift = 0;
	if (part.count == 0 || part.regions[part.count - 1].first < BC_PORT_0)
		part.port_shift = 0;
	return part;
}

static int add_counts(struct bc_overview *o, uint32_t column, const struct bc_page_counts *counts)
{
	struct bc_page_counts part = inside(&o->picture, counts);
	struct bc_page_counts *cells = &o->cells[column];
	uint64_t room = (uint64_t)cells->count + part.count;

	for (uint32_t i = 0; i < counts->count; i++)
		for (unsigned class = 0; class < BC_PAGE_CLASSES; class ++)
			o->columns[column].counts[class] += counts->regions[i].counts[class];
	room = room < o->row_limit ? room : o->row_limit;
	if (room > cells->capacity) {
		room = room < 2 ? 2 : room;
		struct bc_region *regions = reallocarray(cells->regions, room, sizeof(*regions));
		if (regions == NULL)
			return -ENOMEM;
		cells->regions = regions;
		cells->capacity = (uint32_t)room;
	}
	if (part.count != 0)
		bc_page_counts_add(cells, &part);
	return 0;
}

/* Makes all cells as coarse as it takes to have few enough rows, and finds these. */
static int make_rows(struct bc_overview *o)
{
	struct bc_overview_picture *p = &o->picture;
	struct bc_page_counts all;
	int rc = bc_page_counts_init(&all, o->row_limit);

	for (uint32_t i = 0; rc == 0 && i < p->column_count; i++)
		bc_page_counts_add(&all, &o->cells[i]);
	if (rc == 0)
		o->rows = calloc((size_t)all.count + 1, sizeof(*o->rows));
	if (rc == 0 && o->rows == NULL)
		rc = -ENOMEM;
	for (uint32_t row = 0; rc == 0 && row < all.count; row++) {
		uint32_t place = all.regions[row].first;
		o->rows[row].place = place;
		o->rows[row].count = 1u << (place < BC_PORT_0 ? all.page_shift : all.port_shift);
	}
	for (uint32_t i = 0; rc == 0 && i < p->column_count; i++) {
		struct bc_page_counts *cells = &o->cells[i];
		bc_page_counts_coarsen(cells, all.page_shift, all.port_shift);
		uint32_t row = 0;
		for (uint32_t c = 0; c < cells->count; c++) {
			while (o->rows[row].place != cells->regions[c].first)
				row++;
			cells->regions[c].first = row;
		}
		o->columns[i].cells = cells->regions;
		o->columns[i].cell_count = cells->count;
	}
	p->page_shift = all.page_shift;
	p->port_shift = all.port_shift;
	p->row_count = rc == 0 ? all.count : 0;
	p->rows = o->rows;
	p->columns = o->columns;
	bc_page_counts_free(&all);
	return rc;
}

/* ---- the counts of units */

/* Decodes a chunk to count its records. */
static int add_decoded(struct drawing *d, uint32_t column, struct bc_chunk_row *row)
{
	struct bc_overview *o = d->overview;
	bool is_decoded = d->decoded < UNCOUNTED_CHUNKS;

	if (row->info.records == 0)
		return 0;
	if (is_decoded) {
		d->decoded++;
		if (!bc_overview_pace(o, bc_chunk_encoded_bytes(&row->info)))
			return -ECANCELED;
		is_decoded = bc_overview_read_chunk(o, row, d->chunk);
	}
	if (!is_decoded) {
		o->columns[column].uncounted += row->info.records;
		return 0;
	}
	bc_chunk_describe(d->chunk, &d->pages);
	return add_counts(o, column, &d->pages.counts);
}

static int add_chunk(struct drawing *d, uint32_t column, struct bc_chunk_row *row)
{
	struct bc_overview *o = d->overview;
	struct bc_overview_column *c = &o->columns[column];
	struct bc_chunk *chunk = o->chunk;
	struct bc_page_counts *counts = &d->pages.counts;
	uint64_t gaps;
	uint64_t lost;

	if (!bc_overview_pace(o, bc_chunk_info_header_bytes(&row->info)))
		return -ECANCELED;
	if (bc_chunk_header_load(chunk, o->fd, row->offset, &row->info) != 0) {
		c->has_gaps = c->has_gaps && row->info.events == 0;
		return add_decoded(d, column, row);
	}
	bc_chunk_gaps(chunk, &gaps, &lost);
	c->gaps += gaps;
	*counts = (struct bc_page_counts){
		.capacity = BC_CHUNK_REGIONS, .regions = d->pages.regions};
	if (chunk->info.records != row->info.records ||
		!bc_page_counts_read(
			counts, chunk->pages, chunk->info.page_bytes, row->info.records))
		return add_decoded(d, column, row);
	return add_counts(o, column, counts);
}

/* Opens the page summary of the open file. */
static bool has_summary(struct bc_overview *o)
{
	if (!o->has_search) {
		o->has_search = true;
		o->is_searchable = bc_page_search_open(&o->search, o->fd) == 0;
	}
	return o->is_searchable;
}

static uint64_t unit_records(const struct unit *u)
{
	const struct bc_chunk_row *last = &u->rows[u->end - 1];

	return last->before + last->info.records - u->rows[u->first].before;
}

/* Adds chunks to a column: by the node of this level, if it is exactly that and is known; otherwise
 * by those below it. */
static int add_unit(struct drawing *d, uint32_t column, const struct unit *u, unsigned level)
{
	struct bc_overview *o = d->overview;
	uint64_t each = UINT64_C(1) << 4 * level;
	int rc = 0;

	if (level == LEVEL_CHUNKS)
		return add_chunk(d, column, &u->rows[u->first]);
	if (u->segment->is_sealed && level < LEVEL_SEGMENTS && has_summary(o) &&
		u->first % each == 0 && o->search.head.chunks == u->segment->rows &&
		(u->end - u->first == each || u->end == u->segment->rows)) {
		if (!bc_overview_pace(o, BC_SUMMARY_NODE_BYTES))
			return -ECANCELED;
		if (bc_page_search_node(&o->search, level - 1, (uint32_t)(u->first / each),
			    unit_records(u)) == 0)
			return add_counts(o, column, &o->search.counts);
	}
	for (uint64_t first = u->first; rc == 0 && first < u->end;) {
		uint64_t below = UINT64_C(1) << 4 * (level - 1);
		uint64_t end = (first / below + 1) * below;
		struct unit part = {u->segment, u->rows, (uint32_t)first,
			end < u->end ? (uint32_t)end : u->end};
		rc = add_unit(d, column, &part, level - 1);
		first = part.end;
	}
	return rc;
}

/* Adds a whole segment without its list of chunks. Returns -EBADMSG if that is not possible. */
static int add_segment_counts(
	struct drawing *d, uint32_t column, const struct bc_overview_segment *s)
{
	struct bc_overview *o = d->overview;
	unsigned level = 0;

	if (!bc_overview_pace(o, BC_SUMMARY_NODE_BYTES))
		return -ECANCELED;
	if (!s->is_sealed || !bc_overview_open_file(o, s->file) || !has_summary(o) ||
		o->search.index.records != s->records || o->search.head.chunks != s->rows)
		return -EBADMSG;
	while (bc_summary_level_nodes(s->rows, level) > 1)
		level++;
	if (bc_page_search_node(&o->search, level, 0, s->records) != 0)
		return -EBADMSG;
	return add_counts(o, column, &o->search.counts);
}

/* ---- units */

/* The column of a unit, both counted in the recording. */
static uint64_t column_of(const struct drawing *d, uint64_t unit)
{
	return unit * d->options->columns / d->shared;
}

/* Finds the column of the next unit. */
static void next_column(struct drawing *d, uint32_t recording, int64_t from_ns, uint32_t epoch)
{
	struct bc_overview *o = d->overview;
	uint32_t count = o->picture.column_count;
	struct bc_overview_column *last = count != 0 ? &o->columns[count - 1] : NULL;
	bool is_same = last != NULL && (d->is_mixed || recording == last->recording);

	d->unit = is_same ? d->unit + 1 : 0;
	d->is_new = !is_same || column_of(d, d->unit) != column_of(d, d->unit - 1);
	if (!d->is_new)
		return;
	if (last != NULL)
		last->to_ns = recording == last->recording && epoch == d->last_epoch &&
					      from_ns >= last->from_ns
				      ? from_ns
				      : d->last_ns;
	d->last_ns = from_ns;
	add_column(o, recording, from_ns);
}

static int draw_segment(struct drawing *d, const struct bc_overview_segment *s)
{
	struct bc_overview *o = d->overview;

	next_column(d, s->recording, s->from_ns, s->first_epoch);
	uint32_t column = o->picture.column_count - 1;
	struct bc_overview_column *c = &o->columns[column];
	c->first_record = d->is_new ? s->first_record : c->first_record;
	c->records += s->records;
	c->lost += s->lost_after > s->lost_base ? s->lost_after - s->lost_base : 0;
	d->last_epoch = s->last_epoch;
	d->last_ns = s->to_ns > d->last_ns ? s->to_ns : d->last_ns;
	uint64_t gaps = c->gaps + s->gaps;
	int rc = add_segment_counts(d, column, s);
	if (rc == -EBADMSG) {
		struct unit whole = {s, bc_overview_load_rows(o, s), 0, s->rows};
		rc = 0;
		if (whole.rows == NULL)
			c->uncounted += s->records;
		else if (s->rows != 0)
			rc = add_unit(d, column, &whole, LEVEL_SEGMENTS);
	}
	c->gaps = gaps;
	c->has_gaps = true;
	return rc;
}

static uint64_t lost_before(const struct unit *u, uint32_t row)
{
	return row != 0 ? bc_overview_lost(&u->rows[row - 1].info) : u->segment->lost_base;
}

static int draw_unit(struct drawing *d, const struct unit *u)
{
	struct bc_overview *o = d->overview;
	const struct bc_chunk_info *first = &u->rows[u->first].info;
	const struct bc_chunk_info *last = &u->rows[u->end - 1].info;

	next_column(d, u->segment->recording, bc_overview_row_from(first), first->epoch);
	uint32_t column = o->picture.column_count - 1;
	struct bc_overview_column *c = &o->columns[column];
	uint64_t before = lost_before(u, u->first);
	uint64_t after = bc_overview_lost(last);
	c->first_record = d->is_new ? first->first_record : c->first_record;
	c->records += unit_records(u);
	c->lost += after > before ? after - before : 0;
	d->last_epoch = last->epoch;
	for (uint32_t row = u->first; row < u->end; row++) {
		const struct bc_chunk_info *info = &u->rows[row].info;
		int64_t to_ns = bc_overview_row_to(info, u->segment->clock_hz);
		d->last_ns = to_ns > d->last_ns ? to_ns : d->last_ns;
		if (d->level != LEVEL_CHUNKS)
			c->has_gaps = c->has_gaps && info->events == 0;
	}
	return add_unit(d, column, u, d->level);
}

/* Draws the units of a segment that have chunks in the picture. */
static int draw_units(struct drawing *d, const struct bc_overview_segment *s)
{
	uint64_t each = UINT64_C(1) << 4 * d->level;
	struct unit u = {.segment = s, .rows = bc_overview_load_rows(d->overview, s)};
	int rc = 0;

	for (uint64_t node = s->low / each; u.rows != NULL && rc == 0 && node <= s->high / each;
		node++) {
		uint64_t end = (node + 1) * each;
		u.first = (uint32_t)(node * each);
		u.end = end < s->rows ? (uint32_t)end : s->rows;
		rc = draw_unit(d, &u);
	}
	return rc;
}

/* ---- records */

static uint32_t bin_of(const struct drawing *d, int64_t ns)
{
	const struct bc_overview_picture *p = &d->overview->picture;
	uint64_t span = (uint64_t)p->to_ns - (uint64_t)p->from_ns + 1;
	uint64_t at = (uint64_t)ns - (uint64_t)p->from_ns;

	return span != 0 ? (uint32_t)((unsigned __int128)at * d->bin_count / span) : 0;
}

/* The first time of a bin. */
static int64_t bin_from(const struct drawing *d, uint32_t bin)
{
	const struct bc_overview_picture *p = &d->overview->picture;
	unsigned __int128 span = (unsigned __int128)((uint64_t)p->to_ns - (uint64_t)p->from_ns) + 1;
	unsigned __int128 bins = d->bin_count;
	unsigned __int128 ns = (span * bin + bins - 1) / bins + (uint64_t)p->from_ns;

	return (int64_t)(uint64_t)ns;
}

static bool is_inside(const struct bc_overview_picture *p, int64_t ns)
{
	return ns >= p->from_ns && ns <= p->to_ns;
}

/* Finds the column of a time in the picture. The columns of a recording are counted by the times in
 * its chunk headers; deltas that lead beyond those stay in the first or last one. */
static struct bc_overview_column *bin_column(struct drawing *d, uint32_t recording, int64_t ns)
{
	struct bc_overview *o = d->overview;
	const struct bc_overview_recording *r = &o->recordings[recording];
	int64_t from = r->from_ns > o->picture.from_ns ? r->from_ns : o->picture.from_ns;
	int64_t to = r->to_ns < o->picture.to_ns ? r->to_ns : o->picture.to_ns;
	if (from <= to)
		ns = ns < from ? from : ns > to ? to : ns;
	uint32_t bin = bin_of(d, ns);

	if (d->bins[bin] == NONE) {
		d->bins[bin] = add_column(o, recording, bin_from(d, bin));
		o->columns[d->bins[bin]].to_ns = bin_from(d, bin + 1);
		o->columns[d->bins[bin]].first_record = UINT64_MAX;
	}
	return &o->columns[d->bins[bin]];
}

static void note_record(struct bc_overview_column *c, uint64_t record)
{
	c->first_record = record < c->first_record ? record : c->first_record;
}

/* A chunk that is being sorted into columns. */
struct sorted_chunk {
	const struct bc_overview_segment *segment;
	const struct bc_chunk_info *info;
	bool is_sorted; /* its ticks never decrease */
};

static int64_t time_of(const struct drawing *d, const struct sorted_chunk *c, uint32_t at)
{
	uint64_t tick = c->info->records == 0   ? c->info->first_tick
			: at < c->info->records ? d->ticks[at]
						: d->ticks[c->info->records - 1];

	return bc_chunk_wall(c->info, tick, c->segment->clock_hz);
}

/* A time's bin; one before or after the picture is -1 or INT64_MAX. */
static int64_t place_of(const struct drawing *d, int64_t ns)
{
	const struct bc_overview_picture *p = &d->overview->picture;

	return ns < p->from_ns ? -1 : ns > p->to_ns ? INT64_MAX : bin_of(d, ns);
}

/* The end of the run of records from `at` that are in the same bin. */
static uint32_t run_end(const struct drawing *d, const struct sorted_chunk *c, uint32_t at)
{
	int64_t place = place_of(d, time_of(d, c, at));
	uint32_t low = at + 1;
	uint32_t high = c->info->records;

	while (!c->is_sorted && low < high && place_of(d, time_of(d, c, low)) == place)
		low++;
	while (c->is_sorted && low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (place_of(d, time_of(d, c, middle)) == place)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Adds the records of a decoded chunk that are in the picture. */
static int add_runs(struct drawing *d, const struct sorted_chunk *c, const struct bc_chunk *chunk)
{
	struct bc_overview *o = d->overview;
	struct bc_chunk *run = d->chunk;
	int rc = 0;

	for (uint32_t at = 0, end; rc == 0 && at < chunk->info.records; at = end) {
		int64_t ns = time_of(d, c, at);
		end = run_end(d, c, at);
		if (!is_inside(&o->picture, ns))
			continue;
		struct bc_overview_column *column = bin_column(d, c->segment->recording, ns);
		run->info.records = end - at;
		memcpy(run->records, chunk->records + (size_t)at * BC_RECORD_BYTES,
			(size_t)run->info.records * BC_RECORD_BYTES);
		bc_chunk_describe(run, &d->pages);
		column->records += run->info.records;
		note_record(column, chunk->info.first_record + at);
		rc = add_counts(o, (uint32_t)(column - o->columns), &d->pages.counts);
	}
	return rc;
}

/* Adds what was lost before a record of a chunk. */
static void add_lost(
	struct drawing *d, const struct sorted_chunk *c, uint32_t at, uint64_t lost, bool is_gap)
{
	int64_t ns = time_of(d, c, at);

	if (!is_inside(&d->overview->picture, ns))
		return;
	struct bc_overview_column *column = bin_column(d, c->segment->recording, ns);
	column->lost += lost;
	column->gaps += is_gap;
	note_record(column, c->info->first_record + at);
}

/* Adds a chunk that can't be read, at the time of its first record. */
static void add_unreadable(struct drawing *d, const struct sorted_chunk *c, uint64_t lost)
{
	const struct bc_overview_picture *p = &d->overview->picture;
	int64_t ns = c->info->wall_ns;

	ns = ns < p->from_ns ? p->from_ns : ns > p->to_ns ? p->to_ns : ns;
	struct bc_overview_column *column = bin_column(d, c->segment->recording, ns);
	column->records += c->info->records;
	column->uncounted += c->info->records;
	column->lost += lost;
	column->has_gaps = column->has_gaps && c->info->events == 0;
	note_record(column, c->info->first_record);
}

static int draw_records(struct drawing *d, const struct unit *u, struct bc_chunk *chunk)
{
	struct bc_overview *o = d->overview;
	struct bc_chunk_row *row = &u->rows[u->first];
	struct sorted_chunk c = {.segment = u->segment, .info = &row->info, .is_sorted = true};
	uint64_t before = lost_before(u, u->first);
	uint64_t after = bc_overview_lost(&row->info);
	uint64_t lost = after > before ? after - before : 0;

	if (!bc_overview_pace(o, bc_chunk_encoded_bytes(&row->info)))
		return -ECANCELED;
	if (!bc_overview_read_chunk(o, row, chunk)) {
		add_unreadable(d, &c, lost);
		return 0;
	}
	bc_chunk_ticks(chunk, d->ticks);
	for (uint32_t i = 1; i < chunk->info.records && c.is_sorted; i++)
		c.is_sorted = d->ticks[i] >= d->ticks[i - 1];
	for (uint32_t i = 0; i < chunk->info.events; i++) {
		const struct bc_event *event = &chunk->events[i];
		if (event->kind != BC_EVENT_GAP)
			continue;
		add_lost(d, &c, event->position, event->value, true);
		lost -= event->value < lost ? event->value : lost;
	}
	if (lost != 0)
		add_lost(d, &c, 0, lost, false);
	return add_runs(d, &c, chunk);
}

static bool is_before(const struct bc_overview_column *a, const struct bc_overview_column *b)
{
	return a->recording != b->recording ? a->recording < b->recording : a->from_ns < b->from_ns;
}

/* Sorts the columns, which were added in the order of the records: nearly that of time. */
static void sort_columns(struct bc_overview *o)
{
	for (uint32_t i = 1; i < o->picture.column_count; i++) {
		struct bc_overview_column column = o->columns[i];
		struct bc_page_counts cells = o->cells[i];
		uint32_t to = i;
		for (; to != 0 && is_before(&column, &o->columns[to - 1]); to--) {
			o->columns[to] = o->columns[to - 1];
			o->cells[to] = o->cells[to - 1];
		}
		o->columns[to] = column;
		o->cells[to] = cells;
	}
}

/* The number of columns, at most. */
static uint64_t count_bins(const struct drawing *d)
{
	const struct bc_overview *o = d->overview;
	uint64_t columns = 0;

	for (uint32_t i = 0; i < o->segment_count; i++) {
		const struct bc_overview_recording *r = &o->recordings[o->segments[i]->recording];
		if (i != 0 && o->segments[i - 1]->recording == o->segments[i]->recording)
			continue;
		int64_t from = r->from_ns > o->picture.from_ns ? r->from_ns : o->picture.from_ns;
		int64_t to = r->to_ns < o->picture.to_ns ? r->to_ns : o->picture.to_ns;
		columns += from <= to ? bin_of(d, to) - bin_of(d, from) + 1 : 0;
	}
	return columns;
}

static int draw_all_records(struct drawing *d)
{
	struct bc_overview *o = d->overview;
	uint32_t recording = NONE;
	int rc = 0;

	/* Recordings that overlap share the columns. */
	d->bin_count = d->options->columns;
	while (!d->is_mixed && d->bin_count > 1 && count_bins(d) > d->options->columns)
		d->bin_count--;
	memset(d->bins, 0xFF, sizeof(d->bins));
	for (uint32_t i = 0; rc == 0 && i < o->segment_count; i++) {
		const struct bc_overview_segment *s = o->segments[i];
		struct unit u = {.segment = s};
		if (!s->is_in)
			continue;
		if (s->recording != recording && !d->is_mixed)
			memset(d->bins, 0xFF, sizeof(d->bins));
		recording = s->recording;
		u.rows = bc_overview_load_rows(o, s);
		for (u.first = s->low; u.rows != NULL && rc == 0 && u.first <= s->high; u.first++)
			rc = draw_records(d, &u, o->chunk);
	}
	sort_columns(o);
	return rc;
}

/* ---- the picture */

/* Finds the chunks of a segment that are in the picture. */
static void find_chunks(struct bc_overview *o, struct bc_overview_segment *s)
{
	const struct bc_overview_picture *p = &o->picture;

	s->is_in = s->rows != 0 && s->from_ns <= p->to_ns && s->to_ns >= p->from_ns;
	s->low = 0;
	s->high = s->rows - 1;
	if (!s->is_in || (s->from_ns >= p->from_ns && s->to_ns <= p->to_ns))
		return;
	const struct bc_chunk_row *rows = bc_overview_load_rows(o, s);
	uint32_t low = 0;
	uint32_t high = 0;
	s->is_in = false;
	for (uint32_t i = 0; rows != NULL && i < s->rows; i++) {
		const struct bc_chunk_info *info = &rows[i].info;
		if (bc_overview_row_from(info) > p->to_ns ||
			bc_overview_row_to(info, s->clock_hz) < p->from_ns)
			continue;
		low = s->is_in ? low : i;
		high = i;
		s->is_in = true;
	}
	if (!s->is_in)
		return;
	s->low = low;
	s->high = high;
}

/* The chunks of a recording that are in the picture follow each other, even if some in between
 * would not be in it: chunks may overlap in time, as in a replay that was faster than the bus. */
static void join_chunks(struct bc_overview *o)
{
	struct bc_overview_segment *last = NULL;

	for (uint32_t i = 0; i < o->segment_count; i++) {
		struct bc_overview_segment *s = o->segments[i];
		if (!s->is_in)
			continue;
		if (last != NULL && last->recording == s->recording) {
			last->high = last->rows - 1;
			s->low = 0;
			for (uint32_t j = i; o->segments[--j] != last;)
				o->segments[j]->is_in = o->segments[j]->rows != 0;
		}
		last = s;
	}
}

static uint64_t units_of(const struct bc_overview_segment *s, unsigned level)
{
	return level == LEVEL_SEGMENTS ? 1 : (s->high >> 4 * level) - (s->low >> 4 * level) + 1;
}

/* The number of columns, if none has several recordings. */
static uint64_t count_columns(const struct drawing *d)
{
	const struct bc_overview *o = d->overview;
	uint64_t columns = 0;
	uint64_t units = 0;

	for (uint32_t i = 0; i < o->segment_count; i++) {
		const struct bc_overview_segment *s = o->segments[i];
		units += s->is_in ? units_of(s, d->level) : 0;
		if (i + 1 < o->segment_count && o->segments[i + 1]->recording == s->recording)
			continue;
		columns += units != 0 ? column_of(d, units - 1) + 1 : 0;
		units = 0;
	}
	return columns;
}

/* Chooses the units, and how many of them share the columns. */
static void choose_units(struct drawing *d)
{
	struct bc_overview *o = d->overview;
	uint64_t units[LEVELS] = {0};
	uint64_t columns = d->options->columns;

	for (uint32_t i = 0; i < o->segment_count; i++)
		for (unsigned level = 0; o->segments[i]->is_in && level < LEVELS; level++)
			units[level] += units_of(o->segments[i], level);
	while (d->level < LEVEL_SEGMENTS && units[d->level] > UNITS_PER_COLUMN * columns)
		d->level++;
	/* Where whole segments are as fine, they need less reading. */
	if (units[d->level] == units[LEVEL_SEGMENTS] && d->level != LEVEL_CHUNKS)
		d->level = LEVEL_SEGMENTS;
	/* With one column for each recording, are there too many? */
	d->shared = UINT64_MAX;
	d->is_mixed = count_columns(d) > columns;
	d->shared = units[d->level] > columns ? units[d->level] : columns;
	while (!d->is_mixed && count_columns(d) > columns)
		d->shared += 1 + d->shared / 64;
	o->picture.unit = units[LEVEL_CHUNKS] <= DECODED_CHUNKS ? BC_OVERVIEW_RECORDS
			  : d->level == LEVEL_CHUNKS            ? BC_OVERVIEW_CHUNKS
			  : d->level == LEVEL_SEGMENTS          ? BC_OVERVIEW_SEGMENTS
								: BC_OVERVIEW_SUMMARY;
}

static int draw(struct drawing *d)
{
	struct bc_overview *o = d->overview;
	int rc = 0;

	for (uint32_t i = 0; i < o->segment_count; i++) {
		if (!bc_overview_pace(o, 0))
			return -ECANCELED;
		find_chunks(o, o->segments[i]);
	}
	join_chunks(o);
	choose_units(d);
	if (o->picture.unit == BC_OVERVIEW_RECORDS)
		return draw_all_records(d);
	for (uint32_t i = 0; rc == 0 && i < o->segment_count; i++) {
		if (o->segments[i]->is_in && d->level == LEVEL_SEGMENTS)
			rc = draw_segment(d, o->segments[i]);
		else if (o->segments[i]->is_in)
			rc = draw_units(d, o->segments[i]);
	}
	if (o->picture.column_count != 0)
		o->columns[o->picture.column_count - 1].to_ns = d->last_ns;
	return rc;
}

int bc_overview_draw(struct bc_overview *o, const struct bc_overview_options *options)
{
	struct drawing *d = calloc(1, sizeof(*d));
	int rc = -ENOMEM;

	bc_overview_clear(o);
	o->is_stopped = false;
	o->row_limit = options->rows;
	o->picture.from_ns = options->from_ns > o->from_ns ? options->from_ns : o->from_ns;
	o->picture.to_ns = options->to_ns < o->to_ns ? options->to_ns : o->to_ns;
	o->picture.place_from = options->place_from;
	o->picture.place_to = options->place_to;
	if (d == NULL)
		return rc;
	d->overview = o;
	d->options = options;
	d->chunk = malloc(sizeof(*d->chunk));
	if (d->chunk != NULL)
		rc = draw(d);
	if (rc == 0)
		rc = make_rows(o);
	if (rc != 0)
		bc_overview_clear(o);
	free(d->chunk);
	free(d);
	return rc;
}
