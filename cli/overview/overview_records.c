/* What needs single records: pictures of a few records, and the times of events.
 *
 * A picture is made of bins, columns of equal time. Chunks are decoded in the order of the
 * recording, and each record is added to the bin of its time; a bin becomes a column when its first
 * record arrives, so at the end the columns are sorted. Recordings that overlap in time have their
 * own columns, and there are fewer bins if these would be too many.
 *
 * Bins are by time of day, rates by the bus clock. Both pass equally fast within a chunk, but each
 * chunk starts when it arrived: a delay leaves a pause before the chunk and makes it overlap the
 * next one. So where two chunks meet, the difference is added to the bins' durations there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/overview/overview_internal.h"
#include "formats/bus/tick_time.h"

#define NONE UINT32_MAX

/* Chunks that bc_overview_events() decodes. In further ones, times of events are estimated. */
#define DECODED_CHUNKS 512u

/* ---- columns */

struct sorting {
	struct bc_overview *overview;
	bool is_mixed;  /* a column may have several recordings */
	bool has_holes; /* holes have their own columns */
	unsigned bin_count;
	uint32_t bins[BC_OVERVIEW_COLUMNS];    /* the column of each bin, or NONE */
	__int128 more_ns[BC_OVERVIEW_COLUMNS]; /* by the bus clock than by time of day, per bin */
	struct bc_chunk_info before;           /* the last chunk of this recording */
	bool has_before;
	uint64_t ticks[BC_CHUNK_RECORDS]; /* scratch */
};

/* True if the end of a killed recording follows this chunk. */
static bool has_left(const struct bc_overview_segment *s, uint32_t row)
{
	return row + 1 == s->rows && s->left.gaps != 0;
}

static uint32_t bin_of(const struct sorting *s, int64_t ns)
{
	const struct bc_overview_picture *p = &s->overview->picture;
	uint64_t span = (uint64_t)p->to_ns - (uint64_t)p->from_ns + 1;
	uint64_t at = (uint64_t)ns - (uint64_t)p->from_ns;

	return span != 0 ? (uint32_t)((unsigned __int128)at * s->bin_count / span) : 0;
}

/* The start of a bin. */
static int64_t bin_from(const struct sorting *s, uint32_t bin)
{
	const struct bc_overview_picture *p = &s->overview->picture;
	unsigned __int128 span = (unsigned __int128)((uint64_t)p->to_ns - (uint64_t)p->from_ns) + 1;
	unsigned __int128 bins = s->bin_count;
	unsigned __int128 ns = (span * bin + bins - 1) / bins + (uint64_t)p->from_ns;

	return (int64_t)(uint64_t)ns;
}

static bool is_inside(const struct bc_overview_picture *p, int64_t ns)
{
	return ns >= p->from_ns && ns <= p->to_ns;
}

/* Returns the column of a time in the picture, new if need be. Bins are counted by the times in
 * chunk headers; records beyond these, by their deltas, are in the first or last bin. */
static struct bc_overview_column *bin_column(struct sorting *s, uint32_t recording, int64_t ns)
{
	struct bc_overview *o = s->overview;
	const struct bc_overview_recording *r = &o->recordings[recording];
	int64_t from = r->from_ns > o->picture.from_ns ? r->from_ns : o->picture.from_ns;
	int64_t to = r->to_ns < o->picture.to_ns ? r->to_ns : o->picture.to_ns;
	if (from <= to)
		ns = ns < from ? from : ns > to ? to : ns;
	uint32_t bin = bin_of(s, ns);

	if (s->bins[bin] == NONE) {
		s->bins[bin] = bc_overview_add_column(o, recording, bin_from(s, bin));
		struct bc_overview_column *c = &o->columns[s->bins[bin]];
		c->to_ns = bin_from(s, bin + 1);
		c->duration_ns = (uint64_t)c->to_ns - (uint64_t)c->from_ns;
		c->first_record = UINT64_MAX;
	}
	return &o->columns[s->bins[bin]];
}

static void set_first_record(struct bc_overview_column *c, uint64_t record)
{
	c->first_record = record < c->first_record ? record : c->first_record;
}

/* A chunk that is being sorted into columns. */
struct sorted_chunk {
	const struct bc_overview_segment *segment;
	const struct bc_chunk_info *info;
	bool is_sorted;   /* its ticks never decrease */
	int64_t until_ns; /* the next absence: its records are earlier, even if they arrived late */
};

static int64_t time_of(const struct sorting *s, const struct sorted_chunk *c, uint32_t at)
{
	uint64_t tick = c->info->records == 0   ? c->info->first_tick
			: at < c->info->records ? s->ticks[at]
						: s->ticks[c->info->records - 1];

	int64_t ns;
	(void)bc_tick_time(&ns, bc_chunk_clock(c->info, c->segment->clock_hz), tick);
	return ns < c->until_ns ? ns : c->until_ns;
}

/* The bin of a time; -1 before the picture, INT64_MAX after it. */
static int64_t bin_or_edge(const struct sorting *s, int64_t ns)
{
	const struct bc_overview_picture *p = &s->overview->picture;

	return ns < p->from_ns ? -1 : ns > p->to_ns ? INT64_MAX : bin_of(s, ns);
}

/* Returns the end of the run of records from `at` that are in the same bin. */
static uint32_t run_end(const struct sorting *s, const struct sorted_chunk *c, uint32_t at)
{
	int64_t bin = bin_or_edge(s, time_of(s, c, at));
	uint32_t low = at + 1;
	uint32_t high = c->info->records;

	while (!c->is_sorted && low < high && bin_or_edge(s, time_of(s, c, low)) == bin)
		low++;
	while (c->is_sorted && low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (bin_or_edge(s, time_of(s, c, middle)) == bin)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Adds the records of a decoded chunk that are in the picture. */
static int add_runs(struct sorting *s, const struct sorted_chunk *c, const struct bc_chunk *chunk)
{
	struct bc_overview *o = s->overview;
	int rc = 0;

	for (uint32_t at = 0, end; rc == 0 && at < chunk->info.records; at = end) {
		int64_t ns = time_of(s, c, at);
		end = run_end(s, c, at);
		if (!is_inside(&o->picture, ns))
			continue;
		struct bc_overview_column *column = bin_column(s, c->segment->recording, ns);
		column->records += end - at;
		set_first_record(column, chunk->info.first_record + at);
		rc = bc_overview_add_records(o, (uint32_t)(column - o->columns), chunk, at, end);
	}
	return rc;
}

/* Adds what was lost before a record of a chunk. */
static void add_loss(
	struct sorting *s, const struct sorted_chunk *c, uint32_t at, struct bc_loss loss)
{
	int64_t ns = time_of(s, c, at);

	if (!is_inside(&s->overview->picture, ns))
		return;
	struct bc_overview_column *column = bin_column(s, c->segment->recording, ns);
	bc_loss_add(&column->loss, loss);
	set_first_record(column, c->info->first_record + at);
}

/* Adds a chunk that can't be read, at the time of its first record. */
static void add_unreadable(struct sorting *s, const struct sorted_chunk *c, struct bc_loss loss)
{
	const struct bc_overview_picture *p = &s->overview->picture;
	int64_t ns = c->info->wall_ns;

	ns = ns < p->from_ns ? p->from_ns : ns > p->to_ns ? p->to_ns : ns;
	struct bc_overview_column *column = bin_column(s, c->segment->recording, ns);
	column->records += c->info->records;
	column->uncounted += c->info->records;
	bc_loss_add(&column->loss, loss);
	set_first_record(column, c->info->first_record);
}

/* ---- durations by the bus clock */

/* A duration is at least this part of the bin, or the edge of a pause would have a burst's rate. */
#define SHORT_PART 4

/* Spreads a difference evenly over the bins of a time. */
static void add_difference(struct sorting *s, int64_t from_ns, int64_t to_ns, __int128 more_ns)
{
	const struct bc_overview_picture *p = &s->overview->picture;
	__int128 span = (__int128)to_ns - from_ns;

	if (from_ns > p->to_ns || to_ns < p->from_ns)
		return;
	if (span == 0) {
		s->more_ns[bin_of(s, from_ns)] += more_ns;
		return;
	}
	uint32_t first = bin_of(s, from_ns > p->from_ns ? from_ns : p->from_ns);
	uint32_t last = bin_of(s, to_ns < p->to_ns ? to_ns : p->to_ns);
	for (uint32_t bin = first; bin <= last; bin++) {
		int64_t low = bin_from(s, bin);
		int64_t high = bin_from(s, bin + 1);
		low = low > from_ns ? low : from_ns;
		high = high < to_ns ? high : to_ns;
		if (high > low)
			s->more_ns[bin] += more_ns * ((__int128)high - low) / span;
	}
}

/* Adds how much more time passed by the bus clock between a chunk and the one before it. */
static void add_clock_difference(
	struct sorting *s, const struct bc_chunk_info *info, uint64_t clock_hz)
{
	const struct bc_chunk_info *before = &s->before;

	if (!s->is_mixed && s->has_before && clock_hz != 0 && before->epoch == info->epoch &&
		before->last_tick <= info->first_tick) {
		unsigned __int128 ticks = info->first_tick - before->last_tick;
		int64_t end_ns = bc_overview_row_to(before, clock_hz);
		int64_t start_ns = info->wall_ns;
		__int128 more_ns = (__int128)(ticks * 1000000000 / clock_hz) + end_ns - start_ns;
		/* Headers may have any times. */
		if (more_ns < INT64_MAX && more_ns > -(__int128)INT64_MAX)
			add_difference(s, end_ns < start_ns ? end_ns : start_ns,
				end_ns < start_ns ? start_ns : end_ns, more_ns);
	}
	s->before = *info;
	s->has_before = true;
}

/* Adds a column for a hole. The bin before it ends there, the bin after it begins there, and those
 * in between become the hole. If both are the same bin, it is divided. */
static void add_hole(struct sorting *s, const struct bc_overview_blank *blank, bool is_followed)
{
	struct bc_overview *o = s->overview;
	const struct bc_overview_picture *p = &o->picture;
	uint32_t recording = blank->segment->recording;
	bool has_before = blank->from_ns >= p->from_ns;
	bool has_after = blank->to_ns <= p->to_ns && is_followed;
	int64_t from_ns = has_before ? blank->from_ns : p->from_ns;
	int64_t to_ns = blank->to_ns <= p->to_ns ? blank->to_ns : p->to_ns;
	uint32_t first = bin_of(s, from_ns);
	uint32_t end = bin_of(s, to_ns) + !has_after;
	struct bc_overview_blank inside = *blank;

	if (!s->has_holes) {
		bin_column(s, recording, to_ns)->missing += blank->missing;
		return;
	}
	if (has_before && s->bins[first] != NONE) {
		struct bc_overview_column *before = &o->columns[s->bins[first]];
		from_ns++;
		if (!before->is_hole && before->to_ns > from_ns) {
			before->duration_ns -= (uint64_t)before->to_ns - (uint64_t)from_ns;
			before->to_ns = from_ns;
		}
		s->bins[first] = first == end ? NONE : s->bins[first];
	}
	if (has_after && s->bins[end] == NONE) {
		struct bc_overview_column *after = bin_column(s, recording, to_ns);
		after->from_ns = to_ns;
		after->duration_ns = (uint64_t)after->to_ns - (uint64_t)to_ns;
	}
	inside.from_ns = from_ns;
	inside.to_ns = to_ns;
	uint32_t column = (uint32_t)(bc_overview_add_hole(o, &inside) - o->columns);
	for (uint32_t bin = first; bin < end; bin++)
		s->bins[bin] = s->bins[bin] == NONE ? column : s->bins[bin];
}

/* Ends a recording: sets the durations of its bins. */
static void end_bins(struct sorting *s)
{
	for (uint32_t bin = 0; bin < s->bin_count; bin++) {
		if (s->bins[bin] == NONE || s->overview->columns[s->bins[bin]].is_hole)
			continue;
		struct bc_overview_column *c = &s->overview->columns[s->bins[bin]];
		__int128 ns = (__int128)c->duration_ns + s->more_ns[bin];
		__int128 least_ns = (__int128)c->duration_ns / SHORT_PART;
		ns = ns < least_ns ? least_ns : ns;
		c->duration_ns = ns < INT64_MAX ? (uint64_t)ns : INT64_MAX;
	}
	memset(s->bins, 0xFF, sizeof(s->bins));
	memset(s->more_ns, 0, sizeof(s->more_ns));
	s->has_before = false;
}

static int draw_chunk(struct sorting *s, const struct bc_overview_segment *segment,
	struct bc_chunk_row *rows, uint32_t at, uint64_t drawn_away_ns,
	const struct bc_overview_blank *next)
{
	struct bc_overview *o = s->overview;
	struct bc_chunk *chunk = o->chunk;
	struct bc_chunk_row *row = &rows[at];
	bool has_end = next != NULL && next->segment->recording == segment->recording &&
		       row->info.wall_ns <= next->from_ns;
	struct sorted_chunk c = {.segment = segment,
		.info = &row->info,
		.is_sorted = true,
		.until_ns = has_end ? next->from_ns : INT64_MAX};
	struct bc_loss loss = bc_overview_loss(segment, rows, at, at + 1);

	loss.away_ns -= drawn_away_ns < loss.away_ns ? drawn_away_ns : loss.away_ns;
	add_clock_difference(s, &row->info, segment->clock_hz);
	if (!bc_overview_read_chunk(o, row, chunk)) {
		if (o->open.stop == 0)
			add_unreadable(s, &c, loss);
		return o->open.stop;
	}
	bc_chunk_ticks(chunk, s->ticks);
	for (uint32_t i = 1; i < chunk->info.records && c.is_sorted; i++)
		c.is_sorted = s->ticks[i] >= s->ticks[i - 1];
	for (uint32_t i = 0; i < chunk->info.events; i++) {
		const struct bc_event *event = &chunk->events[i];
		if (event->kind != BC_EVENT_GAP)
			continue;
		struct bc_loss own = {1, event->value, !event->exact, event->duration_ns};
		own.away_ns = own.away_ns < loss.away_ns ? own.away_ns : loss.away_ns;
		add_loss(s, &c, event->position, own);
		loss = bc_loss_since(loss, own);
	}
	if (has_left(segment, at)) {
		add_loss(s, &c, row->info.records, segment->left);
		loss = bc_loss_since(loss, segment->left);
	}
	if ((loss.gaps | loss.lost | loss.inexact | loss.away_ns) != 0)
		add_loss(s, &c, 0, loss);
	return add_runs(s, &c, chunk);
}

static bool is_before(const struct bc_overview_column *a, const struct bc_overview_column *b)
{
	return a->recording != b->recording ? a->recording < b->recording : a->from_ns < b->from_ns;
}

/* Sorts the columns. They were added in the order of the records, which is nearly the order of
 * time, so insertion is fast. */
static void sort_columns(struct bc_overview *o)
{
	for (uint32_t i = 1; i < o->picture.column_count; i++) {
		struct bc_overview_column column = o->columns[i];
		struct bc_overview_cells cells = o->cells[i];
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
static uint64_t count_bins(const struct sorting *s)
{
	const struct bc_overview *o = s->overview;
	uint64_t columns = s->has_holes ? 2 * o->absence_count : 0;

	for (uint32_t i = 0; i < o->segment_count; i++) {
		const struct bc_overview_recording *r = &o->recordings[o->segments[i]->recording];
		columns += s->has_holes && bc_overview_is_hole_in(o, o->segments[i]) ? 2 : 0;
		if (i != 0 && o->segments[i - 1]->recording == o->segments[i]->recording)
			continue;
		int64_t from = r->from_ns > o->picture.from_ns ? r->from_ns : o->picture.from_ns;
		int64_t to = r->to_ns < o->picture.to_ns ? r->to_ns : o->picture.to_ns;
		columns += from <= to ? bin_of(s, to) - bin_of(s, from) + 1 : 0;
	}
	return columns;
}

/* An absence, if it is in this segment; otherwise NULL. */
static const struct bc_overview_blank *absence_in(
	const struct bc_overview *o, const struct bc_overview_segment *segment, size_t at)
{
	return at < o->absence_count && o->absences[at].segment == segment ? &o->absences[at]
									   : NULL;
}

static int draw_segments(struct sorting *s)
{
	struct bc_overview *o = s->overview;
	size_t next = 0; /* absence */
	uint32_t recording = NONE;
	int rc = 0;

	memset(s->bins, 0xFF, sizeof(s->bins));
	for (uint32_t i = 0; rc == 0 && i < o->segment_count; i++) {
		const struct bc_overview_segment *segment = o->segments[i];
		bool has_hole = bc_overview_is_hole_in(o, segment);
		if (!segment->is_in && !has_hole && absence_in(o, segment, next) == NULL)
			continue;
		if (segment->recording != recording && !s->is_mixed)
			end_bins(s);
		recording = segment->recording;
		const struct bc_overview_blank hole = bc_overview_hole_of(segment);
		if (has_hole)
			add_hole(s, &hole, segment->is_in);
		struct bc_chunk_row *rows = segment->is_in ? bc_overview_load_rows(o, segment)
							   : NULL;
		const struct bc_overview_blank *absence;
		for (uint32_t at = segment->low; rows != NULL && rc == 0 && at <= segment->high;
			at++) {
			uint64_t away_ns = 0;
			for (; (absence = absence_in(o, segment, next)) != NULL &&
				absence->row <= at;
				next++) {
				add_hole(s, absence, true);
				away_ns = absence->row == at ? absence->away_ns : 0;
			}
			rc = draw_chunk(s, segment, rows, at, away_ns,
				next < o->absence_count ? &o->absences[next] : NULL);
		}
		for (; (absence = absence_in(o, segment, next)) != NULL; next++)
			add_hole(s, absence, false);
	}
	end_bins(s);
	return rc;
}

int bc_overview_draw_records(struct bc_overview *o, unsigned columns, bool is_mixed, bool has_holes)
{
	struct sorting *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return -ENOMEM;
	s->overview = o;
	s->is_mixed = is_mixed;
	s->has_holes = has_holes;
	s->bin_count = columns;
	/* Recordings that overlap share the columns. */
	while (!is_mixed && s->bin_count > 1 && count_bins(s) > columns)
		s->bin_count--;
	int rc = draw_segments(s);
	sort_columns(o);
	free(s);
	return rc;
}

/* ---- marks, triggers and gaps */

struct event_listing {
	struct bc_overview *overview;
	int64_t from_ns;
	int64_t to_ns;
	bc_overview_event_cb on_event;
	void *context;
	bool is_over;
	uint32_t decoded;
	uint64_t ticks[BC_CHUNK_RECORDS];
};

static bool is_listed_kind(const struct bc_event *event)
{
	return event->kind == BC_EVENT_MARK || event->kind == BC_EVENT_TRIGGER ||
	       event->kind == BC_EVENT_GAP;
}

/* True if an event is in the middle of the chunk: then its tick is not in the header. */
static bool needs_records(const struct bc_chunk *chunk)
{
	for (uint32_t i = 0; i < chunk->info.events; i++)
		if (is_listed_kind(&chunk->events[i]) && chunk->events[i].position != 0 &&
			chunk->events[i].position < chunk->info.records)
			return true;
	return false;
}

static uint64_t tick_of(const struct event_listing *l, const struct bc_chunk *chunk,
	uint32_t position, bool is_decoded)
{
	const struct bc_chunk_info *info = &chunk->info;
	uint64_t span = info->last_tick - info->first_tick;

	if (position == 0 || info->records == 0)
		return info->first_tick;
	if (position >= info->records)
		return info->last_tick;
	if (is_decoded)
		return l->ticks[position];
	return info->first_tick + (uint64_t)((unsigned __int128)span * position / info->records);
}

static void list_events(struct event_listing *l, const struct bc_overview_segment *s,
	const struct bc_chunk *chunk, bool is_decoded)
{
	for (uint32_t i = 0; i < chunk->info.events && !l->is_over; i++) {
		const struct bc_event *event = &chunk->events[i];
		bool is_gap = event->kind == BC_EVENT_GAP;
		if (!is_listed_kind(event))
			continue;
		struct bc_overview_event out = {.kind = event->kind,
			.recording = s->recording,
			.record = chunk->info.first_record + event->position,
			.text = chunk->text + event->text,
			.text_bytes = event->text_bytes,
			.cause = event->cause,
			.lost = is_gap ? event->value : 0,
			.is_exact = is_gap && event->exact,
			.duration_ns = is_gap ? event->duration_ns : 0};
		(void)bc_tick_time(&out.time_ns, bc_chunk_clock(&chunk->info, s->clock_hz),
			tick_of(l, chunk, event->position, is_decoded));
		if (out.time_ns >= l->from_ns && out.time_ns <= l->to_ns)
			l->is_over = !l->on_event(l->context, &out);
	}
}

static int list_row(struct event_listing *l, const struct bc_overview_segment *s,
	struct bc_chunk_row *rows, uint32_t at)
{
	struct bc_overview *o = l->overview;
	struct bc_chunk_row *row = &rows[at];
	struct bc_chunk *chunk = o->chunk;
	bool is_decoded = false;

	if (!bc_segment_file_read_header(&o->open, (uint32_t)(row - o->open.table.rows), chunk)) {
		(void)bc_overview_read_chunk(o, row, chunk); /* reports it */
		return o->open.stop;
	}
	if (has_left(s, at) && chunk->info.events < BC_CHUNK_EVENTS)
		chunk->events[chunk->info.events++] = (struct bc_event){.kind = BC_EVENT_GAP,
			.cause = BC_GAP_CRASH,
			.position = chunk->info.records};
	if (needs_records(chunk) && l->decoded < DECODED_CHUNKS) {
		l->decoded++;
		is_decoded = bc_overview_read_chunk(o, row, chunk);
		if (is_decoded)
			bc_chunk_ticks(chunk, l->ticks);
	}
	list_events(l, s, chunk, is_decoded);
	return 0;
}

static int list_segment(struct event_listing *l, const struct bc_overview_segment *s)
{
	struct bc_chunk_row *rows = bc_overview_load_rows(l->overview, s);
	int rc = 0;

	for (uint32_t i = 0; rows != NULL && rc == 0 && !l->is_over && i < s->rows; i++)
		if ((rows[i].info.events != 0 || has_left(s, i)) &&
			rows[i].info.wall_ns <= l->to_ns &&
			bc_overview_row_to(&rows[i].info, s->clock_hz) >= l->from_ns)
			rc = list_row(l, s, rows, i);
	return rc;
}

int bc_overview_events(struct bc_overview *o, int64_t from_ns, int64_t to_ns,
	bc_overview_event_cb on_event, void *context)
{
	struct event_listing *l = calloc(1, sizeof(*l));
	int rc = 0;

	if (l == NULL)
		return -ENOMEM;
	o->open.stop = 0;
	l->overview = o;
	l->from_ns = from_ns;
	l->to_ns = to_ns;
	l->on_event = on_event;
	l->context = context;
	for (uint32_t i = 0; rc == 0 && !l->is_over && i < o->segment_count; i++) {
		const struct bc_overview_segment *s = o->segments[i];
		if (!bc_segment_file_pace(&o->open, 0))
			rc = -ECANCELED;
		else if ((s->has_events || s->left.gaps != 0) && s->from_ns <= to_ns &&
			 s->to_ns >= from_ns)
			rc = list_segment(l, s);
	}
	free(l);
	return o->open.stop != 0 ? o->open.stop : rc;
}

/* ---- records that match a filter */

struct reading {
	struct bc_overview *overview;
	struct bc_filter filter;
	uint64_t left; /* records that may still be read */
	bc_overview_records_cb on_records;
	void *context;
	uint64_t ticks[BC_CHUNK_RECORDS];                    /* scratch */
	uint8_t records[BC_CHUNK_RECORDS * BC_RECORD_BYTES]; /* those of a chunk that match */
};

static void read_matches(struct reading *r, const struct bc_filter_bounds *bounds)
{
	const struct bc_chunk *chunk = r->overview->chunk;
	uint64_t deltas;
	size_t count = 0;

	bc_chunk_ticks(chunk, r->ticks);
	for (uint32_t at = 0; at < chunk->info.records; at += BC_FILTER_RECORDS) {
		const uint32_t left = chunk->info.records - at;
		uint64_t bits = bc_filter_records(&r->filter, chunk->records + at * BC_RECORD_BYTES,
			left < BC_FILTER_RECORDS ? left : BC_FILTER_RECORDS, &deltas);
		for (; bits != 0; bits &= bits - 1) {
			const uint32_t i = at + (uint32_t)__builtin_ctzll(bits);
			if (!bc_span_has(bounds->ticks, r->ticks[i]) ||
				!bc_span_has(bounds->numbers, chunk->info.first_record + i))
				continue;
			memcpy(r->records + count++ * BC_RECORD_BYTES,
				chunk->records + i * BC_RECORD_BYTES, BC_RECORD_BYTES);
		}
	}
	r->on_records(r->context, r->records, count);
}

/* Reads the chunks of a segment that may have matches. Returns 0 or an errno, negative. */
static int read_segment(struct reading *r, const struct bc_overview_segment *s)
{
	struct bc_overview *o = r->overview;
	struct bc_chunk_row *rows = bc_overview_load_rows(o, s);
	struct bc_filter_bounds bounds;

	for (uint32_t at = 0; rows != NULL && o->open.stop == 0 && at < s->rows; at++) {
		const struct bc_chunk_info *info = &rows[at].info;
		if (info->records == 0 || !bc_filter_chunk(&r->filter, info, s->clock_hz, &bounds))
			continue;
		if (info->records > r->left)
			return -E2BIG;
		r->left -= info->records;
		if (bc_overview_read_chunk(o, &rows[at], o->chunk))
			read_matches(r, &bounds);
	}
	return o->open.stop;
}

int bc_overview_read(struct bc_overview *o, const struct bc_filter *filter, const char *recording,
	uint64_t most, bc_overview_records_cb on_records, void *context)
{
	struct reading *r = malloc(sizeof(*r));
	int rc = recording == NULL ? 0 : -ESRCH;

	if (r == NULL)
		return -ENOMEM;
	o->open.stop = 0;
	r->overview = o;
	r->filter = *filter;
	r->left = most;
	r->on_records = on_records;
	r->context = context;
	bc_filter_start(&r->filter, o->from_ns);
	for (uint32_t i = 0; (rc == 0 || rc == -ESRCH) && i < o->segment_count; i++)
		if (recording == NULL || strcmp(o->segments[i]->id, recording) == 0)
			rc = read_segment(r, o->segments[i]);
	free(r);
	return rc;
}
