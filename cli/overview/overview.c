/* Draws a picture in four steps, none of which reads more than it needs:
 *
 *   1. Count the chunks of each segment that are in the picture. This decides the units of time
 *      (chunks, nodes of page summaries, segments) and how many of them share a column.
 *   2. Add the page counts of each unit to its column. All counts together decide the size of the
 *      rows (overview_columns.c).
 *   3. Units whose counts are coarser than the rows were deferred. Add these by finer counts, or by
 *      decoding their records. If that is more work than allowed, the least coarse are added as
 *      they are, and the rows become as large.
 *   4. Make the rows, and convert the cells of all columns to them.
 *
 * So the work depends on the picture, not on the length of the recording. If there are only a few
 * records, overview_records.c draws them instead of steps 2 and 3.
 *
 * In a picture by processor, a unit of several tracks is replaced in step 2 by the units below it,
 * down to its records; if these may be too much work, the picture has no tracks.
 *
 * Invariant: every record in the picture is counted in exactly one column, by class and place or as
 * uncounted. A deferred unit is counted in `records` of its column, but not yet in its cells. */
#include "cli/overview/overview.h"

#include <errno.h>
#include <stdlib.h>

#include "cli/overview/overview_internal.h"
#include "formats/base/grow.h"
#include "formats/segment/segment_index.h"

/* A picture decodes at most this many records, which takes about 0.2 s. One made of records decodes
 * all of them, so it is used only if they are at most a part of this. */
#define WORK         (UINT64_C(1) << 24)
#define RECORDS_PART 4u

/* Excess of unknown counts; known counts have at most BC_PAGE_SHIFTS. */
#define UNKNOWN_EXCESS (BC_PAGE_SHIFTS + 1)

/* A column lasts at least this part of its even share of the time. The rate of a shorter one, such
 * as the last chunk of a segment, would mean nothing. */
#define SHORT_PART 4u

/* There are at most this many units for each column. */
#define UNITS_PER_COLUMN 4u

#define LEVEL_CHUNKS   0u
#define LEVEL_SEGMENTS (1u + BC_SUMMARY_LEVELS)
#define LEVELS         (LEVEL_SEGMENTS + 1)

/* When a unit begins or ends. */
struct moment {
	int64_t ns;
	uint32_t epoch;
	uint64_t tick;
};

/* A unit whose counts were too coarse when it was drawn. */
struct deferred {
	const struct bc_overview_segment *segment;
	uint64_t records;
	uint32_t first;
	uint32_t end;
	uint32_t column;
	unsigned level;
	bool is_known;
	unsigned page_shift;
	unsigned port_shift;
};

struct drawing {
	struct bc_overview *overview;
	const struct bc_overview_options *options;
	unsigned level; /* of the units: LEVEL_CHUNKS, 1 + a level of the summary, LEVEL_SEGMENTS */
	uint64_t shared;     /* this many units share options->columns columns */
	uint64_t unit;       /* the next one, counted in its recording */
	bool is_mixed;       /* a column may have several recordings */
	bool has_holes;      /* holes have their own columns */
	uint64_t missing;    /* otherwise: records missing before the next unit */
	bool is_new;         /* the last column has one unit */
	uint64_t least_ns;   /* length of a column */
	struct moment first; /* of the last column */
	struct moment last;  /* its last record */
	bool has_before;     /* a column of the same epoch before it */
	struct moment before;
	uint64_t clock_hz;      /* of the last column; 0: unknown, or it has several recordings */
	size_t absence;         /* the next one to draw */
	uint64_t drawn_away_ns; /* of the one that was drawn just now */
	/* What units without records lost, which is in the column of the next record. */
	bool is_loss_waiting;
	uint32_t waiting_recording;
	struct moment waiting_at;
	struct bc_loss waiting;
	struct deferred *deferred;
	size_t deferred_count;
	size_t deferred_capacity;
	bool is_second;    /* step 3 */
	unsigned accepted; /* doublings by which counts may be coarser than the rows */
	uint64_t work;     /* that may still be done */
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
		.rows = 200,
		.work = WORK};
}

/* ---- the counts of units */

/* Reads the page counts of a chunk. */
static const struct bc_page_counts *chunk_counts(
	struct bc_overview *o, const struct bc_chunk_row *row)
{
	struct bc_chunk *chunk = o->chunk;
	struct bc_page_counts *counts = &o->pages.counts;

	if (!bc_segment_file_read_header(&o->open, (uint32_t)(row - o->open.table.rows), chunk))
		return NULL;
	*counts = (struct bc_page_counts){
		.capacity = BC_CHUNK_REGIONS, .regions = o->pages.regions};
	bool is_known = chunk->info.records == row->info.records &&
			bc_page_counts_read(
				counts, chunk->pages, chunk->info.page_bytes, row->info.records);
	return is_known ? counts : NULL;
}

/* Opens the page summary of the open file. */
static bool has_summary(struct bc_overview *o)
{
	if (o->has_search)
		return o->is_searchable;
	int rc = bc_page_search_open(&o->search, o->open.table.fd);
	o->has_search = rc != -ENOMEM;
	o->is_searchable = rc == 0;
	if (rc == -ENOMEM) {
		bc_page_search_close(&o->search);
		o->open.stop = rc;
	}
	return o->is_searchable;
}

static uint64_t rows_records(const struct bc_chunk_row *rows, uint32_t first, uint32_t end)
{
	const struct bc_chunk_row *last = &rows[end - 1];

	return last->before + last->info.records - rows[first].before;
}

static uint64_t unit_records(const struct unit *u)
{
	return u->rows != NULL ? rows_records(u->rows, u->first, u->end) : u->segment->records;
}

/* Reads the summary node that covers exactly this unit. Returns NULL if there is none. */
static const struct bc_page_counts *node_counts(
	struct bc_overview *o, const struct unit *u, unsigned level)
{
	uint64_t each = UINT64_C(1) << 4 * level;

	if (!u->segment->is_sealed || !has_summary(o) || u->first % each != 0 ||
		o->search.head.chunks != u->segment->rows ||
		(u->end - u->first != each && u->end != u->segment->rows) ||
		!bc_segment_file_pace(&o->open, BC_SUMMARY_NODE_BYTES))
		return NULL;
	return bc_page_search_node(
		       &o->search, level - 1, (uint32_t)(u->first / each), unit_records(u)) == 0
		       ? &o->search.counts
		       : NULL;
}

/* Reads the root node of a segment, which does not need its list of chunks. */
static const struct bc_page_counts *segment_counts(
	struct bc_overview *o, const struct bc_overview_segment *s)
{
	unsigned level = 0;

	if (!bc_segment_file_pace(&o->open, BC_SUMMARY_NODE_BYTES))
		return NULL;
	if (!s->is_sealed || !bc_overview_open_file(o, s->file) || !has_summary(o) ||
		o->search.index.records != s->records || o->search.head.chunks != s->rows)
		return NULL;
	while (bc_summary_level_nodes(s->rows, level) > 1)
		level++;
	return bc_page_search_node(&o->search, level, 0, s->records) == 0 ? &o->search.counts
									  : NULL;
}

/* ---- units whose counts are too coarse */

static uint64_t work_of(uint64_t records, uint64_t chunks)
{
	return records + BC_OVERVIEW_CHUNK * chunks;
}

/* Defers a unit to step 3. */
static int defer_unit(struct drawing *d, uint32_t column, const struct unit *u, unsigned level,
	const struct bc_page_counts *counts)
{
	struct deferred *grown = bc_grow(
		d->deferred, &d->deferred_capacity, d->deferred_count, sizeof(*grown));

	if (grown == NULL)
		return -ENOMEM;
	d->deferred = grown;
	struct deferred *deferred = &d->deferred[d->deferred_count++];
	*deferred = (struct deferred){.segment = u->segment,
		.records = unit_records(u),
		.first = u->first,
		.end = u->end,
		.column = column,
		.level = level,
		.is_known = counts != NULL};
	if (counts != NULL) {
		struct bc_page_counts part = bc_overview_inside(d->overview, counts);
		deferred->page_shift = part.page_shift;
		deferred->port_shift = part.port_shift;
	}
	return 0;
}

/* Adds a chunk by its records; or by `counts` (NULL: unknown) if they are damaged or too much.
 * Records of several tracks that are damaged are in none of them. */
static int add_decoded(struct drawing *d, uint32_t column, struct bc_chunk_row *row,
	const struct bc_page_counts *counts)
{
	struct bc_overview *o = d->overview;
	unsigned track = bc_overview_track_of(o, row->info.procs);
	uint64_t work = work_of(row->info.records, 1);
	bool is_decoded = work <= d->work;

	if (is_decoded) {
		d->work -= work;
		is_decoded = bc_overview_read_chunk(o, row, o->chunk);
		if (o->open.stop != 0)
			return o->open.stop;
	}
	if (is_decoded)
		return bc_overview_add_records(o, column, o->chunk, 0, row->info.records);
	if (counts == NULL && o->picture.by_processor)
		counts = chunk_counts(o, row); /* of several tracks, so they were not asked for */
	if (counts != NULL)
		return bc_overview_add_counts(o, column, track, counts);
	o->columns[column].uncounted += row->info.records;
	return 0;
}

/* Adds chunks to a column: by the counts of this level if these are known, of one track, and as
 * fine as the rows, else by the counts of the level below. */
static int add_unit(struct drawing *d, uint32_t column, const struct unit *u, unsigned level)
{
	struct bc_overview *o = d->overview;
	uint64_t below = UINT64_C(1) << 4 * (level != LEVEL_CHUNKS ? level - 1 : 0);
	unsigned track = bc_overview_track_of(
		o, level == LEVEL_CHUNKS ? u->rows[u->first].info.procs : u->segment->procs);
	bool has_several = o->picture.by_processor && track == ALL_TRACKS;
	const struct bc_page_counts *counts = has_several ? NULL
					      : level == LEVEL_CHUNKS
						      ? chunk_counts(o, &u->rows[u->first])
					      : level == LEVEL_SEGMENTS
						      ? segment_counts(o, u->segment)
						      : node_counts(o, u, level);
	struct unit part = *u;
	int rc = 0;

	if (o->open.stop != 0)
		return o->open.stop;
	if (counts != NULL && bc_overview_mark_places(o, counts) <= d->accepted)
		return bc_overview_add_counts(o, column, track, counts);
	if (!d->is_second && !has_several && (counts != NULL || level == LEVEL_CHUNKS))
		return unit_records(u) != 0 ? defer_unit(d, column, u, level, counts) : 0;
	if (level == LEVEL_CHUNKS)
		return add_decoded(d, column, &u->rows[u->first], counts);
	if (u->rows == NULL)
		part.rows = bc_overview_load_rows(o, u->segment);
	if (part.rows == NULL) {
		o->columns[column].uncounted += u->segment->records;
		return 0;
	}
	for (uint64_t first = u->first; rc == 0 && first < u->end; first = part.end) {
		uint64_t end = (first / below + 1) * below;
		part.first = (uint32_t)first;
		part.end = end < u->end ? (uint32_t)end : u->end;
		rc = add_unit(d, column, &part, level - 1);
	}
	return rc;
}

/* By how many doublings the counts of a unit are coarser than the rows. */
static unsigned excess_of(const struct bc_overview *o, const struct deferred *deferred)
{
	return deferred->is_known
		       ? bc_overview_excess(o, deferred->page_shift, deferred->port_shift)
		       : UNKNOWN_EXCESS;
}

/* The smallest excess to accept so that the other deferred units are not too much work. */
static unsigned accepted_excess(const struct drawing *d)
{
	uint64_t work[UNKNOWN_EXCESS + 1] = {0};
	uint64_t sum = 0;
	unsigned accepted = UNKNOWN_EXCESS;

	for (size_t i = 0; i < d->deferred_count; i++) {
		const struct deferred *deferred = &d->deferred[i];
		work[excess_of(d->overview, deferred)] += work_of(
			deferred->records, deferred->end - deferred->first);
	}
	for (; accepted != 0 && sum + work[accepted] <= d->work; accepted--)
		sum += work[accepted];
	return accepted;
}

/* Step 3. The size of the rows is known now, unless the deferred units make it larger. */
static int add_deferred(struct drawing *d)
{
	struct bc_overview *o = d->overview;
	int rc = 0;

	d->is_second = true;
	d->accepted = accepted_excess(d);
	for (size_t i = 0; rc == 0 && i < d->deferred_count; i++) {
		const struct deferred *deferred = &d->deferred[i];
		struct unit u = {deferred->segment, NULL, deferred->first, deferred->end};
		if (deferred->level != LEVEL_SEGMENTS)
			u.rows = bc_overview_load_rows(o, deferred->segment);
		if (u.rows == NULL && deferred->level != LEVEL_SEGMENTS)
			o->columns[deferred->column].uncounted += deferred->records;
		else
			rc = add_unit(d, deferred->column, &u, deferred->level);
	}
	return rc;
}

/* ---- units */

/* The column of a unit, both counted in the recording. */
static uint64_t column_of(const struct drawing *d, uint64_t unit)
{
	return unit * d->options->columns / d->shared;
}

/* The length of the last column: by the bus clock if possible, which is more exact. */
static uint64_t length_ns(const struct drawing *d, int64_t to_ns, uint64_t to_tick)
{
	const struct bc_overview *o = d->overview;
	const struct bc_overview_column *c = &o->columns[o->picture.column_count - 1];
	unsigned __int128 ticks = to_tick - d->first.tick;
	bool is_timed = d->clock_hz != 0 && d->first.epoch == d->last.epoch &&
			to_tick >= d->first.tick;

	return is_timed ? (uint64_t)(ticks * 1000000000 / d->clock_hz)
			: (uint64_t)to_ns - (uint64_t)c->from_ns;
}

static void end_column(struct drawing *d, int64_t to_ns, uint64_t to_tick)
{
	struct bc_overview *o = d->overview;
	struct bc_overview_column *c = &o->columns[o->picture.column_count - 1];

	c->to_ns = to_ns;
	c->duration_ns = length_ns(d, to_ns, to_tick);
}

/* Ends the last column of a recording or epoch at its last record. If it is too short for a rate,
 * it joins the column before it, or has no rate if it is the first. */
static int end_epoch(struct drawing *d)
{
	struct bc_overview *o = d->overview;
	uint32_t last = o->picture.column_count - 1;
	bool is_short = length_ns(d, d->last.ns, d->last.tick) < d->least_ns;
	int rc = 0;

	if (o->columns[last].is_hole)
		return 0;
	if (is_short && d->has_before) {
		rc = bc_overview_join_columns(o);
		for (size_t i = d->deferred_count; i != 0 && d->deferred[i - 1].column == last; i--)
			d->deferred[i - 1].column--;
		d->first = d->before;
		/* Times of day may go backwards. */
		int64_t to_ns = o->columns[last - 1].to_ns;
		d->last.ns = to_ns > d->last.ns ? to_ns : d->last.ns;
	}
	end_column(d, d->last.ns, d->last.tick);
	if (is_short && !d->has_before)
		o->columns[last].duration_ns = 0;
	return rc;
}

/* Finds the column of the next unit of a segment, which starts at `first`. */
static int next_column(
	struct drawing *d, const struct bc_overview_segment *s, const struct moment *first)
{
	struct bc_overview *o = d->overview;
	uint32_t count = o->picture.column_count;
	struct bc_overview_column *last = count != 0 ? &o->columns[count - 1] : NULL;
	bool is_recording = last != NULL && s->recording == last->recording;
	bool is_same = last != NULL && (d->is_mixed || is_recording);
	bool is_after_hole = last != NULL && last->is_hole;
	bool is_next = is_recording && !is_after_hole && first->epoch == d->last.epoch;
	int rc = 0;

	/* An absence may divide a unit. */
	d->unit = is_same ? d->unit + !is_after_hole : 0;
	d->is_new = (!is_same || is_after_hole ||
			    column_of(d, d->unit) != column_of(d, d->unit - 1)) &&
		    !(is_next && length_ns(d, first->ns, first->tick) < d->least_ns);
	if (!d->is_new) {
		d->clock_hz = is_recording ? d->clock_hz : 0;
		return 0;
	}
	if (is_next)
		end_column(d, first->ns >= last->from_ns ? first->ns : d->last.ns, first->tick);
	else if (last != NULL)
		rc = end_epoch(d);
	d->has_before = is_next;
	d->before = d->first;
	d->first = d->last = *first;
	d->clock_hz = s->clock_hz;
	bc_overview_add_column(o, s->recording, first->ns);
	return rc;
}

/* Adds a loss that no record of its recording follows to the recording's last column. */
static int end_recording(struct drawing *d)
{
	struct bc_overview *o = d->overview;
	uint32_t count = o->picture.column_count;
	struct bc_overview_column *last = count != 0 ? &o->columns[count - 1] : NULL;
	int rc = 0;

	if (!d->is_loss_waiting)
		return 0;
	if (last == NULL || last->is_hole ||
		(last->recording != d->waiting_recording && !d->is_mixed)) {
		rc = last != NULL ? end_epoch(d) : 0;
		last = &o->columns[bc_overview_add_column(
			o, d->waiting_recording, d->waiting_at.ns)];
		d->first = d->last = d->waiting_at;
		d->has_before = false;
	}
	bc_loss_add(&last->loss, d->waiting);
	d->is_loss_waiting = false;
	return rc;
}

/* The records before a blank are earlier than it, even if they arrived late. */
static int draw_blank(struct drawing *d, const struct bc_overview_blank *blank)
{
	struct bc_overview *o = d->overview;
	int rc = d->waiting_recording != blank->segment->recording ? end_recording(d) : 0;

	if (rc == 0 && o->picture.column_count != 0) {
		int64_t first_ns = o->columns[o->picture.column_count - 1].from_ns;
		if (d->last.ns > blank->from_ns && first_ns <= blank->from_ns)
			d->last.ns = blank->from_ns;
		rc = end_epoch(d);
	}
	bc_overview_add_hole(o, blank);
	return rc;
}

/* Draws the hole before a segment. */
static int draw_hole(struct drawing *d, const struct bc_overview_segment *s)
{
	const struct bc_overview_blank hole = bc_overview_hole_of(s);

	if (d->has_holes)
		return draw_blank(d, &hole);
	d->missing = s->is_in ? hole.missing : 0;
	return 0;
}

/* Draws the absences of a segment up to the one before a row. */
static int draw_absences(struct drawing *d, const struct bc_overview_segment *s, uint32_t row)
{
	const struct bc_overview *o = d->overview;
	int rc = 0;

	for (; rc == 0 && d->absence < o->absence_count; d->absence++) {
		const struct bc_overview_blank *blank = &o->absences[d->absence];
		if (blank->segment != s || blank->row > row)
			break;
		rc = draw_blank(d, blank);
		d->drawn_away_ns = blank->row == row ? blank->away_ns : 0;
	}
	return rc;
}

/* The row before which the next absence of a segment is; UINT32_MAX: it has no more. */
static uint32_t next_absence(const struct drawing *d, const struct bc_overview_segment *s)
{
	const struct bc_overview *o = d->overview;

	return d->absence < o->absence_count && o->absences[d->absence].segment == s
		       ? o->absences[d->absence].row
		       : UINT32_MAX;
}

/* Keeps the loss of a unit without records for the next one. It moves no column's end. */
static void keep_loss(
	struct drawing *d, const struct unit *u, const struct moment *at, struct bc_loss loss)
{
	if (!d->is_loss_waiting)
		d->waiting = (struct bc_loss){.gaps = 0};
	bc_loss_add(&d->waiting, loss);
	d->is_loss_waiting = true;
	d->waiting_recording = u->segment->recording;
	d->waiting_at = *at;
}

/* Adds a unit, from a moment to a moment, to its column. */
static int draw_unit(struct drawing *d, const struct unit *u, const struct moment *first,
	const struct moment *last, struct bc_loss loss, unsigned level)
{
	struct bc_overview *o = d->overview;

	loss.away_ns -= d->drawn_away_ns < loss.away_ns ? d->drawn_away_ns : loss.away_ns;
	d->drawn_away_ns = 0;
	int rc = d->waiting_recording != u->segment->recording ? end_recording(d) : 0;
	if (rc != 0)
		return rc;
	if (unit_records(u) == 0) {
		keep_loss(d, u, first, loss);
		return 0;
	}
	if (d->is_loss_waiting)
		bc_loss_add(&loss, d->waiting);
	d->is_loss_waiting = false;
	rc = next_column(d, u->segment, first);
	uint32_t column = o->picture.column_count - 1;
	struct bc_overview_column *c = &o->columns[column];
	if (d->is_new)
		c->first_record = u->rows != NULL ? u->rows[u->first].info.first_record
						  : u->segment->first_record;
	c->missing += d->missing;
	d->missing = 0;
	c->records += unit_records(u);
	bc_loss_add(&c->loss, loss);
	d->last = (struct moment){
		last->ns > d->last.ns ? last->ns : d->last.ns, last->epoch, last->tick};
	return rc != 0 ? rc : add_unit(d, column, u, level);
}

static int draw_segment(struct drawing *d, const struct bc_overview_segment *s)
{
	const struct moment first = {s->from_ns, s->first_epoch, s->first_tick};
	const struct moment last = {s->last_ns, s->last_epoch, s->last_tick};
	const struct unit u = {s, NULL, 0, s->rows};

	return draw_unit(d, &u, &first, &last, bc_overview_segment_loss(s), LEVEL_SEGMENTS);
}

static int draw_rows(struct drawing *d, const struct unit *u, unsigned level)
{
	const struct bc_chunk_info *from = &u->rows[u->first].info;
	struct moment first = {from->wall_ns, from->epoch, from->first_tick};
	struct moment last = first;
	bool has_records = false;

	for (uint32_t row = u->first; row < u->end; row++) {
		const struct bc_chunk_info *info = &u->rows[row].info;
		int64_t to_ns = bc_overview_row_to(info, u->segment->clock_hz);
		if (info->records == 0)
			continue;
		if (!has_records)
			first = last = (struct moment){
				info->wall_ns, info->epoch, info->first_tick};
		has_records = true;
		last = (struct moment){
			to_ns > last.ns ? to_ns : last.ns, info->epoch, info->last_tick};
	}
	return draw_unit(d, u, &first, &last,
		bc_overview_loss(u->segment, u->rows, u->first, u->end), level);
}

/* Draws the units of a segment that have chunks in the picture, which an absence divides. */
static int draw_units(struct drawing *d, const struct bc_overview_segment *s)
{
	unsigned level = d->level == LEVEL_SEGMENTS ? LEVEL_SEGMENTS - 1 : d->level;
	uint64_t each = UINT64_C(1) << 4 * level;
	struct unit u = {.segment = s, .rows = bc_overview_load_rows(d->overview, s)};
	int rc = 0;

	if (u.rows == NULL)
		return 0;
	u.end = (uint32_t)(s->low / each * each);
	while (rc == 0 && u.end < s->rows && u.end <= s->high) {
		u.first = u.end;
		rc = draw_absences(d, s, u.first);
		uint64_t end = d->level == LEVEL_SEGMENTS ? s->rows : (u.first / each + 1) * each;
		end = end < s->rows ? end : s->rows;
		u.end = next_absence(d, s) < end ? next_absence(d, s) : (uint32_t)end;
		if (rc == 0)
			rc = draw_rows(d, &u, level);
	}
	return rc;
}

/* ---- the picture */

/* Absences are drawn if they are longer than this part of the picture's time, which is about half a
 * pixel, and at most as many as a part of the columns. */
#define ABSENCE_PART    2048u
#define ABSENCE_COLUMNS 4u

static int add_absence(struct bc_overview *o, const struct bc_overview_blank *blank)
{
	struct bc_overview_blank *grown = bc_grow(
		o->absences, &o->absence_capacity, o->absence_count, sizeof(*grown));

	if (grown == NULL)
		return -ENOMEM;
	o->absences = grown;
	o->absences[o->absence_count++] = *blank;
	return 0;
}

/* Finds the absences in a segment, and before it, that are in the picture and at least so long. One
 * ends with the record after it, and begins so long before, but not before the chunk of the record
 * before it: that chunk's later records may seem to be in the absence if it arrived late.
 * `start_ns` is the start of the last chunk before the segment. */
static int find_absences_in(struct bc_overview *o, const struct bc_overview_segment *s,
	int64_t start_ns, uint64_t least_ns)
{
	const struct bc_overview_picture *p = &o->picture;
	const struct bc_chunk_row *rows = bc_overview_load_rows(o, s);
	int rc = o->open.stop;

	for (uint32_t row = 0; rows != NULL && rc == 0 && row < s->rows; row++) {
		const struct bc_chunk_info *info = &rows[row].info;
		uint64_t away_ns = bc_overview_loss(s, rows, row, row + 1).away_ns;
		__int128 from_ns = (__int128)info->wall_ns - away_ns;
		from_ns = from_ns > start_ns ? from_ns : start_ns;
		if (away_ns >= least_ns && info->wall_ns - from_ns >= least_ns &&
			from_ns <= p->to_ns && info->wall_ns >= p->from_ns)
			rc = add_absence(o, &(struct bc_overview_blank){.segment = s,
						    .row = row,
						    .from_ns = (int64_t)from_ns,
						    .to_ns = info->wall_ns,
						    .first_record = info->first_record,
						    .away_ns = away_ns});
		if (info->records != 0 && info->wall_ns > start_ns)
			start_ns = info->wall_ns;
	}
	return rc;
}

static int compare_lengths(const void *x, const void *y)
{
	const uint64_t *a = x;
	const uint64_t *b = y;

	return (*a < *b) - (*a > *b);
}

/* Keeps the longest absences. */
static int keep_longest(struct bc_overview *o, size_t most)
{
	size_t kept = 0;

	if (o->absence_count <= most)
		return 0;
	uint64_t *lengths = calloc(o->absence_count, sizeof(*lengths));
	if (lengths == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < o->absence_count; i++)
		lengths[i] = (uint64_t)o->absences[i].to_ns - (uint64_t)o->absences[i].from_ns;
	qsort(lengths, o->absence_count, sizeof(*lengths), compare_lengths);
	uint64_t least_ns = lengths[most];
	free(lengths);
	for (size_t i = 0; i < o->absence_count; i++) {
		const struct bc_overview_blank *blank = &o->absences[i];
		if ((uint64_t)blank->to_ns - (uint64_t)blank->from_ns > least_ns)
			o->absences[kept++] = *blank;
	}
	o->absence_count = kept;
	return 0;
}

/* Finds the absences to draw. Only the lists of segments with one are read. */
static int find_absences(struct bc_overview *o, unsigned columns)
{
	const struct bc_overview_picture *p = &o->picture;
	uint64_t least_ns = ((uint64_t)p->to_ns - (uint64_t)p->from_ns) / ABSENCE_PART + 1;
	int rc = 0;

	o->absence_count = 0;
	for (uint32_t i = 0; rc == 0 && i < o->segment_count; i++) {
		const struct bc_overview_segment *s = o->segments[i];
		const struct bc_overview_segment *before = i != 0 ? o->segments[i - 1] : s;
		bool is_next = before != s && before->recording == s->recording;
		int64_t start_ns = is_next ? before->chunk_ns : INT64_MIN;
		if (s->rows != 0 && s->to_ns >= p->from_ns &&
			(is_next ? start_ns : s->from_ns) <= p->to_ns &&
			bc_loss_since(s->after, s->base).away_ns >= least_ns)
			rc = find_absences_in(o, s, start_ns, least_ns);
	}
	return rc == 0 ? keep_longest(o, columns / ABSENCE_COLUMNS) : rc;
}

/* Finds the chunks of a segment that are in the picture. */
static void find_chunks(struct bc_overview *o, struct bc_overview_segment *s)
{
	const struct bc_overview_picture *p = &o->picture;

	s->is_in = s->rows != 0 && s->from_ns <= p->to_ns && s->to_ns >= p->from_ns;
	s->low = 0;
	s->high = s->rows - 1;
	s->part = s->records;
	if (!s->is_in || (s->from_ns >= p->from_ns && s->to_ns <= p->to_ns))
		return;
	const struct bc_chunk_row *rows = bc_overview_load_rows(o, s);
	uint32_t low = 0;
	uint32_t high = 0;
	s->is_in = false;
	for (uint32_t i = 0; rows != NULL && i < s->rows; i++) {
		const struct bc_chunk_info *info = &rows[i].info;
		if (info->wall_ns > p->to_ns || bc_overview_row_to(info, s->clock_hz) < p->from_ns)
			continue;
		low = s->is_in ? low : i;
		high = i;
		s->is_in = true;
	}
	if (!s->is_in)
		return;
	s->low = low;
	s->high = high;
	s->part = rows_records(rows, low, high + 1);
}

/* Sets which chunks of a segment are in the picture. */
static void set_chunks(
	struct bc_overview *o, struct bc_overview_segment *s, uint32_t low, uint32_t high)
{
	if (s->low == low && s->high == high)
		return;
	const struct bc_chunk_row *rows = bc_overview_load_rows(o, s);
	s->low = low;
	s->high = high;
	s->part = rows != NULL ? rows_records(rows, low, high + 1) : s->records;
}

/* Adds the chunks between the first and the last one of a recording in the picture. Chunks may
 * overlap in time if the source was faster than the bus, and columns need them in order. */
static void join_chunks(struct bc_overview *o)
{
	struct bc_overview_segment *last = NULL;

	for (uint32_t i = 0; i < o->segment_count; i++) {
		struct bc_overview_segment *s = o->segments[i];
		if (!s->is_in)
			continue;
		if (last != NULL && last->recording == s->recording) {
			set_chunks(o, last, last->low, last->rows - 1);
			set_chunks(o, s, 0, s->high);
			for (uint32_t j = i; o->segments[--j] != last;) {
				struct bc_overview_segment *between = o->segments[j];
				between->is_in = between->rows != 0;
				if (between->is_in)
					set_chunks(o, between, 0, between->rows - 1);
			}
		}
		last = s;
	}
}

static uint64_t units_of(const struct bc_overview_segment *s, unsigned level)
{
	return level == LEVEL_SEGMENTS ? 1 : (s->high >> 4 * level) - (s->low >> 4 * level) + 1;
}

/* The most columns needed if none has several recordings. A hole has one and may divide another. */
static uint64_t count_columns(const struct drawing *d)
{
	const struct bc_overview *o = d->overview;
	uint64_t columns = d->has_holes ? 2 * o->absence_count : 0;
	uint64_t units = 0;

	for (uint32_t i = 0; i < o->segment_count; i++) {
		const struct bc_overview_segment *s = o->segments[i];
		units += s->is_in ? units_of(s, d->level) : 0;
		columns += d->has_holes && bc_overview_is_hole_in(o, s) ? 2 : 0;
		if (i + 1 < o->segment_count && o->segments[i + 1]->recording == s->recording)
			continue;
		columns += units != 0 ? column_of(d, units - 1) + 1 : 0;
		units = 0;
	}
	return columns;
}

/* Chooses the units: the finest that are not too many. Then chooses what may share columns: first
 * holes join their neighbours, then recordings. `shared` grows until the columns suffice. */
static void choose_units(struct drawing *d)
{
	struct bc_overview *o = d->overview;
	uint64_t units[LEVELS] = {0};
	uint64_t columns = d->options->columns;
	uint32_t most_rows = 0;
	uint64_t records = 0;

	for (uint32_t i = 0; i < o->segment_count; i++) {
		const struct bc_overview_segment *s = o->segments[i];
		for (unsigned level = 0; s->is_in && level < LEVELS; level++)
			units[level] += units_of(s, level);
		records += s->is_in ? s->part : 0;
		most_rows = s->is_in && s->rows > most_rows ? s->rows : most_rows;
	}
	while (d->level < LEVEL_SEGMENTS && units[d->level] > UNITS_PER_COLUMN * columns)
		d->level++;
	/* If units are whole segments anyway, their root nodes need less reading. */
	if (d->level != LEVEL_CHUNKS && most_rows <= UINT64_C(1) << 4 * d->level)
		d->level = LEVEL_SEGMENTS;
	/* With one column for each recording, is there room? */
	d->shared = UINT64_MAX;
	d->has_holes = true;
	d->has_holes = count_columns(d) <= columns;
	if (!d->has_holes)
		o->absence_count = 0;
	d->is_mixed = count_columns(d) > columns;
	d->shared = units[d->level] > columns ? units[d->level] : columns;
	while (!d->is_mixed && count_columns(d) > columns)
		d->shared += 1 + d->shared / 64;
	if (!d->is_mixed)
		d->least_ns = ((uint64_t)o->picture.to_ns - (uint64_t)o->picture.from_ns) /
			      columns / SHORT_PART;
	bool is_little = work_of(records, units[LEVEL_CHUNKS]) <= d->work / RECORDS_PART;
	o->picture.unit = is_little                    ? BC_OVERVIEW_RECORDS
			  : d->level == LEVEL_CHUNKS   ? BC_OVERVIEW_CHUNKS
			  : d->level == LEVEL_SEGMENTS ? BC_OVERVIEW_SEGMENTS
						       : BC_OVERVIEW_SUMMARY;
}

/* True if it is not too much work to decode all chunks of segments that have several tracks. */
static bool can_tell_processors(const struct drawing *d)
{
	uint64_t work = 0;

	for (uint32_t i = 0; i < d->overview->segment_count; i++) {
		const struct bc_overview_segment *s = d->overview->segments[i];
		if (s->is_in && bc_overview_track_of(d->overview, s->procs) == ALL_TRACKS)
			work += work_of(s->part, s->high - s->low + 1);
	}
	return work <= d->work;
}

static int draw_picture(struct drawing *d)
{
	struct bc_overview *o = d->overview;
	int rc = 0;

	for (uint32_t i = 0; i < o->segment_count; i++) {
		if (!bc_segment_file_pace(&o->open, 0))
			return -ECANCELED;
		find_chunks(o, o->segments[i]);
	}
	join_chunks(o);
	rc = find_absences(o, d->options->columns);
	if (rc != 0)
		return rc;
	choose_units(d);
	o->picture.by_processor = d->options->by_processor && o->track_count > 1;
	if (o->picture.unit != BC_OVERVIEW_RECORDS && !can_tell_processors(d))
		o->picture.by_processor = false;
	if (o->picture.unit == BC_OVERVIEW_RECORDS)
		return bc_overview_draw_records(o, d->options->columns, d->is_mixed, d->has_holes);
	for (uint32_t i = 0; rc == 0 && i < o->segment_count; i++) {
		if (bc_overview_is_hole_in(o, o->segments[i]))
			rc = draw_hole(d, o->segments[i]);
		const struct bc_overview_segment *s = o->segments[i];
		bool is_whole = d->level == LEVEL_SEGMENTS && next_absence(d, s) == UINT32_MAX;
		if (rc == 0 && s->is_in && is_whole)
			rc = draw_segment(d, s);
		else if (rc == 0 && s->is_in)
			rc = draw_units(d, s);
		if (rc == 0) /* those after its last chunk in the picture */
			rc = draw_absences(d, s, UINT32_MAX);
	}
	if (rc == 0)
		rc = end_recording(d);
	if (rc == 0 && o->picture.column_count != 0)
		rc = end_epoch(d);
	return rc == 0 ? add_deferred(d) : rc;
}

int bc_overview_draw(struct bc_overview *o, const struct bc_overview_options *options)
{
	struct drawing *d = calloc(1, sizeof(*d));
	int rc = -ENOMEM;

	bc_overview_clear(o);
	o->open.stop = 0;
	o->row_limit = options->rows;
	o->picture.from_ns = options->from_ns > o->from_ns ? options->from_ns : o->from_ns;
	o->picture.to_ns = options->to_ns < o->to_ns ? options->to_ns : o->to_ns;
	o->picture.place_from = options->place_from;
	o->picture.place_to = options->place_to;
	if (d == NULL)
		return rc;
	d->overview = o;
	d->options = options;
	d->work = options->work;
	rc = draw_picture(d);
	if (o->open.stop != 0)
		rc = o->open.stop;
	if (rc == 0)
		rc = bc_overview_make_rows(o);
	if (rc != 0)
		bc_overview_clear(o);
	free(d->deferred);
	free(d);
	return rc;
}
