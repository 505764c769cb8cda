/* Draws a picture. First the chunks of each segment that are in it are counted, which tells what
 * units of time to use and how many of them to join in a column. Then each column gets the counts
 * of its units; it is made as coarse as it takes to have no more cells than there may be rows.
 * Finally all columns are made as coarse as the coarsest. */
#include "formats/overview/overview.h"

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
	uint64_t per_column; /* units */
	bool is_mixed;       /* a column may have several recordings */
	uint64_t in_column;  /* units in the last column */
	uint32_t last_epoch; /* of the last column */
	uint32_t decoded;
	struct bc_chunk *chunk; /* scratch */
	struct bc_chunk_pages pages;
	uint64_t ticks[BC_CHUNK_RECORDS];
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
	for (uint32_t i = 0; i < o->column_capacity; i++)
		bc_page_counts_free(&o->cells[i]);
	free(o->cells);
	free(o->columns);
	free(o->rows);
	o->cells = NULL;
	o->columns = NULL;
	o->rows = NULL;
	o->column_capacity = 0;
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

/* Adds an empty column. */
static int add_column(struct bc_overview *o, uint32_t recording, int64_t from_ns)
{
	uint32_t count = o->picture.column_count;

	if (count == o->column_capacity) {
		uint32_t more = count == 0 ? 64 : 2 * count;
		struct bc_overview_column *columns = reallocarray(
			o->columns, more, sizeof(*columns));
		if (columns != NULL)
			o->columns = columns;
		struct bc_page_counts *cells = reallocarray(o->cells, more, sizeof(*cells));
		if (cells != NULL)
			o->cells = cells;
		if (columns == NULL || cells == NULL)
			return -ENOMEM;
		memset(&cells[count], 0, (more - count) * sizeof(*cells));
		o->column_capacity = more;
	}
	o->columns[count] = (struct bc_overview_column){
		.from_ns = from_ns, .to_ns = from_ns, .recording = recording, .has_gaps = true};
	o->picture.column_count++;
	return 0;
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
	int rc = -EBADMSG;

	if (row->info.records != 0 && !row->is_bad && d->decoded < UNCOUNTED_CHUNKS) {
		d->decoded++;
		if (!bc_overview_pace(o, bc_chunk_encoded_bytes(&row->info)))
			return -ECANCELED;
		rc = bc_chunk_table_read(&o->table, (uint32_t)(row - o->table.rows), d->chunk);
		row->is_bad = rc != 0;
		if (row->is_bad)
			bc_overview_report_chunk(o, row);
	}
	if (rc != 0) {
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

/* Finds the column of the next unit. */
static int next_column(struct drawing *d, uint32_t recording, int64_t from_ns, uint32_t epoch)
{
	struct bc_overview *o = d->overview;
	uint32_t count = o->picture.column_count;
	struct bc_overview_column *last = count != 0 ? &o->columns[count - 1] : NULL;
	bool is_same = last != NULL && (d->is_mixed || recording == last->recording);

	if (is_same && d->in_column < d->per_column) {
		d->in_column++;
		return 0;
	}
	if (last != NULL)
		last->to_ns = recording == last->recording && epoch == d->last_epoch &&
					      from_ns >= last->from_ns
				      ? from_ns
				      : d->last_ns;
	d->in_column = 1;
	d->last_ns = from_ns;
	return add_column(o, recording, from_ns);
}

static int draw_segment(struct drawing *d, const struct bc_overview_segment *s)
{
	struct bc_overview *o = d->overview;
	int rc = next_column(d, s->recording, s->from_ns, s->first_epoch);

	if (rc != 0)
		return rc;
	uint32_t column = o->picture.column_count - 1;
	struct bc_overview_column *c = &o->columns[column];
	c->first_record = d->in_column == 1 ? s->first_record : c->first_record;
	c->records += s->records;
	c->lost += s->lost_after > s->lost_base ? s->lost_after - s->lost_base : 0;
	d->last_epoch = s->last_epoch;
	d->last_ns = s->to_ns > d->last_ns ? s->to_ns : d->last_ns;
	uint64_t gaps = c->gaps + s->gaps;
	rc = add_segment_counts(d, column, s);
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
	int rc = next_column(d, u->segment->recording, bc_overview_row_from(first), first->epoch);

	if (rc != 0)
		return rc;
	uint32_t column = o->picture.column_count - 1;
	struct bc_overview_column *c = &o->columns[column];
	uint64_t before = lost_before(u, u->first);
	uint64_t after = bc_overview_lost(last);
	c->first_record = d->in_column == 1 ? first->first_record : c->first_record;
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

	return span != 0 ? (uint32_t)((unsigned __int128)at * d->options->columns / span) : 0;
}

/* The first time of a bin. */
static int64_t bin_from(const struct drawing *d, uint32_t bin)
{
	const struct bc_overview_picture *p = &d->overview->picture;
	unsigned __int128 span = (unsigned __int128)((uint64_t)p->to_ns - (uint64_t)p->from_ns) + 1;
	unsigned __int128 columns = d->options->columns;
	unsigned __int128 ns = (span * bin + columns - 1) / columns + (uint64_t)p->from_ns;

	return (int64_t)(uint64_t)ns;
}

static bool is_inside(const struct bc_overview_picture *p, int64_t ns)
{
	return ns >= p->from_ns && ns <= p->to_ns;
}

/* Finds the column of a time in the picture. */
static int bin_column(struct drawing *d, uint32_t recording, int64_t ns, uint32_t *column)
{
	struct bc_overview *o = d->overview;
	uint32_t bin = bin_of(d, ns);
	int rc = 0;

	if (d->bins[bin] == NONE) {
		d->bins[bin] = o->picture.column_count;
		rc = add_column(o, recording, bin_from(d, bin));
		if (rc == 0) {
			o->columns[d->bins[bin]].to_ns = bin_from(d, bin + 1);
			o->columns[d->bins[bin]].first_record = UINT64_MAX;
		}
	}
	*column = d->bins[bin];
	return rc;
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
static int add_runs(struct drawing *d, const struct sorted_chunk *c, struct bc_chunk *chunk)
{
	struct bc_overview *o = d->overview;
	struct bc_chunk *run = d->chunk;
	uint32_t column;
	int rc = 0;

	for (uint32_t at = 0, end; rc == 0 && at < chunk->info.records; at = end) {
		int64_t ns = time_of(d, c, at);
		end = run_end(d, c, at);
		if (!is_inside(&o->picture, ns))
			continue;
		rc = bin_column(d, c->segment->recording, ns, &column);
		if (rc != 0)
			break;
		run->info.records = end - at;
		memcpy(run->records, chunk->records + (size_t)at * BC_RECORD_BYTES,
			(size_t)run->info.records * BC_RECORD_BYTES);
		bc_chunk_describe(run, &d->pages);
		o->columns[column].records += run->info.records;
		note_record(&o->columns[column], chunk->info.first_record + at);
		rc = add_counts(o, column, &d->pages.counts);
	}
	return rc;
}

/* Adds what was lost before a record of a chunk. */
static int add_lost(
	struct drawing *d, const struct sorted_chunk *c, uint32_t at, uint64_t lost, bool is_gap)
{
	struct bc_overview *o = d->overview;
	int64_t ns = time_of(d, c, at);
	uint32_t column;

	if (!is_inside(&o->picture, ns))
		return 0;
	int rc = bin_column(d, c->segment->recording, ns, &column);
	if (rc != 0)
		return rc;
	o->columns[column].lost += lost;
	o->columns[column].gaps += is_gap;
	note_record(&o->columns[column], c->info->first_record + at);
	return 0;
}

static int draw_records(struct drawing *d, const struct unit *u, struct bc_chunk *chunk)
{
	struct bc_overview *o = d->overview;
	struct bc_chunk_row *row = &u->rows[u->first];
	struct sorted_chunk c = {.segment = u->segment, .info = &row->info, .is_sorted = true};
	uint64_t before = lost_before(u, u->first);
	uint64_t after = bc_overview_lost(&row->info);
	uint64_t lost = after > before ? after - before : 0;
	uint32_t column;
	int rc = row->is_bad ? -EBADMSG : 0;

	if (!bc_overview_pace(o, bc_chunk_encoded_bytes(&row->info)))
		return -ECANCELED;
	if (rc == 0)
		rc = bc_chunk_table_read(&o->table, (uint32_t)(row - o->table.rows), chunk);
	if (rc != 0) {
		if (!row->is_bad)
			bc_overview_report_chunk(o, row);
		row->is_bad = true;
		int64_t ns = row->info.wall_ns;
		ns = ns < o->picture.from_ns ? o->picture.from_ns : ns;
		ns = ns > o->picture.to_ns ? o->picture.to_ns : ns;
		rc = bin_column(d, u->segment->recording, ns, &column);
		if (rc != 0)
			return rc;
		o->columns[column].records += row->info.records;
		o->columns[column].uncounted += row->info.records;
		o->columns[column].lost += lost;
		o->columns[column].has_gaps = o->columns[column].has_gaps && row->info.events == 0;
		note_record(&o->columns[column], row->info.first_record);
		return 0;
	}
	bc_chunk_ticks(chunk, d->ticks);
	for (uint32_t i = 1; i < chunk->info.records && c.is_sorted; i++)
		c.is_sorted = d->ticks[i] >= d->ticks[i - 1];
	for (uint32_t i = 0; rc == 0 && i < chunk->info.events; i++) {
		const struct bc_event *event = &chunk->events[i];
		if (event->kind != BC_EVENT_GAP)
			continue;
		rc = add_lost(d, &c, event->position, event->value, true);
		lost -= event->value < lost ? event->value : lost;
	}
	if (rc == 0 && lost != 0)
		rc = add_lost(d, &c, 0, lost, false);
	return rc == 0 ? add_runs(d, &c, chunk) : rc;
}

static int compare_columns(const void *x, const void *y, void *context)
{
	const struct bc_overview *o = context;
	const struct bc_overview_column *a = &o->columns[*(const uint32_t *)x];
	const struct bc_overview_column *b = &o->columns[*(const uint32_t *)y];

	if (a->recording != b->recording)
		return a->recording < b->recording ? -1 : 1;
	return (a->from_ns > b->from_ns) - (a->from_ns < b->from_ns);
}

/* Sorts the columns, which were added in the order of the records. */
static int sort_columns(struct bc_overview *o)
{
	uint32_t n = o->picture.column_count;
	uint32_t *order = calloc((size_t)n + 1, sizeof(*order));
	struct bc_overview_column *columns = calloc((size_t)n + 1, sizeof(*columns));
	struct bc_page_counts *cells = calloc((size_t)n + 1, sizeof(*cells));
	bool ok = order != NULL && columns != NULL && cells != NULL;

	for (uint32_t i = 0; ok && i < n; i++)
		order[i] = i;
	if (ok)
		qsort_r(order, n, sizeof(*order), compare_columns, o);
	for (uint32_t i = 0; ok && i < n; i++) {
		columns[i] = o->columns[order[i]];
		cells[i] = o->cells[order[i]];
	}
	if (ok && n != 0) {
		memcpy(o->columns, columns, n * sizeof(*columns));
		memcpy(o->cells, cells, n * sizeof(*cells));
	}
	free(order);
	free(columns);
	free(cells);
	return ok ? 0 : -ENOMEM;
}

static int draw_all_records(struct drawing *d)
{
	struct bc_overview *o = d->overview;
	uint32_t recording = NONE;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < o->segment_count; i++) {
		const struct bc_overview_segment *s = o->segments[i];
		struct unit u = {.segment = s};
		if (!s->is_in)
			continue;
		if (s->recording != recording)
			memset(d->bins, 0xFF, sizeof(d->bins));
		recording = s->recording;
		u.rows = bc_overview_load_rows(o, s);
		for (u.first = s->low; u.rows != NULL && rc == 0 && u.first <= s->high; u.first++)
			rc = draw_records(d, &u, o->chunk);
	}
	return rc == 0 ? sort_columns(o) : rc;
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

/* The number of columns if each has this many units, but not of several recordings. */
static uint64_t count_columns(const struct bc_overview *o, unsigned level, uint64_t per_column)
{
	uint64_t columns = 0;
	uint64_t units = 0;

	for (uint32_t i = 0; i < o->segment_count; i++) {
		const struct bc_overview_segment *s = o->segments[i];
		units += s->is_in ? units_of(s, level) : 0;
		if (i + 1 < o->segment_count && o->segments[i + 1]->recording == s->recording)
			continue;
		columns += (units + per_column - 1) / per_column;
		units = 0;
	}
	return columns;
}

/* Chooses the units, and how many a column has. */
static void choose_units(struct drawing *d)
{
	struct bc_overview *o = d->overview;
	uint64_t units[LEVELS] = {0};
	uint64_t columns = d->options->columns;
	uint64_t recordings = count_columns(o, LEVEL_SEGMENTS, UINT32_MAX);

	for (uint32_t i = 0; i < o->segment_count; i++)
		for (unsigned level = 0; o->segments[i]->is_in && level < LEVELS; level++)
			units[level] += units_of(o->segments[i], level);
	while (d->level < LEVEL_SEGMENTS && units[d->level] > UNITS_PER_COLUMN * columns)
		d->level++;
	/* Where whole segments are as fine, they need less reading. */
	if (units[d->level] == units[LEVEL_SEGMENTS] && d->level != LEVEL_CHUNKS)
		d->level = LEVEL_SEGMENTS;
	d->is_mixed = recordings > columns;
	d->per_column = 1;
	if (d->is_mixed)
		d->per_column = (units[d->level] + columns - 1) / columns;
	while (!d->is_mixed && count_columns(o, d->level, d->per_column) > columns)
		d->per_column++;
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
