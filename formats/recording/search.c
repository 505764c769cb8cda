/* Searches segments for records: forwards chunk by chunk, or backwards for the last matches.
 *
 * Chunks are ruled out in the order of cost: by the file's page counts, by the index row, by the
 * page counts in the chunk's header; the others are read and scanned. Recordings may overlap in
 * time, so each is searched as a lane (formats/recording/lanes.h). Two chunks of each lane stay in
 * memory, so that context before and after a match does not read a chunk twice. Invariant: the hits
 * of a lane are reported in the order of its files, each record once: `reported` is the first that
 * has not been, `wanted` the end of the last match's context.
 *
 * To find the last matches, the lane that may have the latest record is searched from its end.
 * The time when a file was last changed bounds the times of lanes that have not been opened. The
 * search forwards then starts each lane at the first match that is to be reported. */
#include "formats/recording/search.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "formats/base/grow.h"
#include "formats/base/json.h"
#include "formats/base/text.h"
#include "formats/bus/tick_time.h"
#include "formats/recording/lanes.h"
#include "formats/segment/chunk_table.h"
#include "formats/segment/decode_ahead.h"
#include "formats/segment/segment_index.h"

/* A chunk in memory, with the tick of each record. */
struct chunk_cache {
	bool is_full;
	uint32_t row;
	struct bc_chunk chunk;
	uint64_t ticks[BC_CHUNK_RECORDS];
};

/* A position between two records. */
struct record_pos {
	int file;
	uint32_t row;
	uint32_t position;
};

/* A match found from the end. No later record of its lane has an earlier time. */
struct last_hit {
	int64_t ns;
	struct record_pos pos;
	int lane;
};

/* The part of a lane to search: between positions, for marks in it; for marks elsewhere, times. */
struct part {
	struct record_pos begin;
	struct record_pos end;
	int64_t from_ns;
	int64_t to_ns;
};

/* What is in memory of a lane's open file. */
struct view {
	struct chunk_cache chunks[2]; /* the chunk of a match and a neighbour */
	unsigned next_cache;          /* the one to use for the next chunk */
	uint64_t reported; /* records before this one, by their place in the file, are reported */
	uint64_t wanted;   /* those before this one are context of the last match */
	uint32_t row;      /* the next one to search */
	uint32_t hit;      /* the next one to report, of those in the row before */
	uint32_t hit_count;
	uint32_t hits[BC_CHUNK_RECORDS];
};

/* The matches in a chunk, wherever they are; other threads have their own. */
struct scan {
	struct bc_filter filter;
	uint32_t hit_count;
	uint32_t hits[BC_CHUNK_RECORDS];
};

struct search {
	const struct bc_search_options *options;
	struct bc_filter whole;  /* times are absolute */
	struct bc_filter filter; /* of the lane */
	bc_search_cb on_hit;
	uint64_t matches; /* reported, or counted */
	bool is_over;     /* enough has been found */
	struct bc_segments files;
	struct bc_lanes lanes;
	struct part *parts; /* by the lanes' ids */
	const struct part *part;
	struct view *view;
	struct bc_decode_ahead *ahead; /* of the open file, or NULL */
	const uint8_t *ahead_records;  /* of the chunk in ahead_row, or NULL */
	uint32_t ahead_row;
	struct scan scan;
	bool has_warned; /* about an unknown clock rate */
	bool has_query;
	struct bc_page_query query; /* the filter's addresses */
	/* Backwards: */
	struct last_hit *last; /* more than options->last only until keep_last() */
	size_t last_count;
	size_t last_capacity;
	int64_t enough_ns; /* that many matches are at or after it */
	bool is_replay;    /* times of change tell nothing */
};

static bool is_stopped(const struct search *s)
{
	return s->is_over || s->files.file.stop != 0;
}

static bool is_before(struct record_pos a, struct record_pos b)
{
	if (a.file != b.file)
		return a.file < b.file;
	return a.row != b.row ? a.row < b.row : a.position < b.position;
}

/* ---- chunks */

/* The threads read the file: call this before it is closed. */
static void end_ahead(struct search *s)
{
	bc_decode_ahead_close(s->ahead);
	s->ahead = NULL;
	s->ahead_records = NULL;
}

/* Opens a file, with a query only if it may have what is looked for. */
static bool open_file(struct search *s, int at, const struct bc_page_query *query)
{
	if (s->files.at == at)
		return true;
	end_ahead(s);
	s->view->chunks[0].is_full = s->view->chunks[1].is_full = false;
	s->view->reported = s->view->wanted = 0;
	s->view->row = s->view->hit_count = 0;
	return bc_segments_open(&s->files, at, query);
}

/* Whether the threads should search a chunk. If its number is not its row, the guess may be wrong,
 * which costs only time. */
static bool may_match(void *context, const struct bc_chunk_info *row)
{
	const struct search *s = context;
	const struct bc_chunk_table *t = &s->files.file.table;
	struct bc_chunk_info info = *row;
	struct bc_filter_bounds bounds;

	info.events = 0; /* only records are searched */
	return info.number < t->count && !t->rows[info.number].is_ruled_out &&
	       bc_filter_chunk(
		       &s->filter, &info, bc_segment_file_clock_hz(&s->files.file, 0), &bounds);
}

static void *open_scan(void *context)
{
	const struct search *s = context;
	struct scan *scan = malloc(sizeof(*scan));

	if (scan != NULL)
		scan->filter = s->filter;
	return scan;
}

static void scan_records(void *result, const struct bc_chunk_info *info, const uint8_t *records)
{
	struct scan *scan = result;
	uint64_t ticks;

	scan->hit_count = 0;
	for (uint32_t base = 0; base < info->records; base += BC_FILTER_RECORDS) {
		uint32_t left = info->records - base;
		uint64_t bits = bc_filter_records(&scan->filter,
			records + (size_t)base * BC_RECORD_BYTES,
			left < BC_FILTER_RECORDS ? left : BC_FILTER_RECORDS, &ticks);
		for (; bits != 0; bits &= bits - 1)
			scan->hits[scan->hit_count++] = base + (uint32_t)__builtin_ctzll(bits);
	}
}

/* Lets other threads search the file ahead, unless the page counts leave little to search. With
 * several recordings at a time, files are opened too often. */
static void start_ahead(struct search *s)
{
	const struct bc_chunk_work work = {open_scan, free, scan_records, s, true};
	const struct bc_chunk_table *t = &s->files.file.table;
	uint32_t left = 0;

	for (uint32_t row = 0; row < t->count; row++)
		left += !t->rows[row].is_ruled_out;
	if (s->ahead == NULL && left > t->count / 2 && s->lanes.count == 1 && s->options->last == 0)
		s->ahead = bc_decode_ahead_open(t->fd, may_match, s, &work);
}

/* Opens a file for the search. Returns false if it has no match, or can't be read. */
static bool open_to_search(struct search *s, int at)
{
	uint64_t bytes;

	if (!open_file(s, at, s->has_query ? &s->query : NULL))
		return false;
	if (s->has_query) {
		bc_page_search_rows(&s->files.file.table, &s->query, &bytes);
		if (!bc_segment_file_pace(&s->files.file, bytes))
			return false;
	}
	start_ahead(s);
	return true;
}

/* Continues with the part of a lane that is searched. */
static void set_part(struct search *s, const struct bc_lane *lane)
{
	s->part = &s->parts[lane->id];
	s->filter = s->whole;
	if (s->part->from_ns > s->filter.from_ns)
		s->filter.from_ns = s->part->from_ns;
	if (s->part->to_ns < s->filter.to_ns)
		s->filter.to_ns = s->part->to_ns;
	s->filter.has_wall |= s->part->from_ns != INT64_MIN || s->part->to_ns != INT64_MAX;
	s->scan.filter = s->filter;
}

/* Returns a chunk of the open file, or NULL if it can't be read, which has been reported. */
static const struct chunk_cache *load_chunk(struct search *s, uint32_t row)
{
	for (unsigned i = 0; i < 2; i++)
		if (s->view->chunks[i].is_full && s->view->chunks[i].row == row) {
			s->view->next_cache = 1 - i;
			return &s->view->chunks[i];
		}
	struct chunk_cache *l = &s->view->chunks[s->view->next_cache];
	l->is_full = s->ahead_records != NULL && s->ahead_row == row &&
		     bc_segment_file_read_header(&s->files.file, row, &l->chunk);
	if (l->is_full)
		memcpy(l->chunk.records, s->ahead_records,
			(size_t)l->chunk.info.records * BC_RECORD_BYTES);
	else
		l->is_full = bc_segment_file_read(&s->files.file, row, &l->chunk);
	if (!l->is_full)
		return NULL;
	l->row = row;
	bc_chunk_ticks(&l->chunk, l->ticks);
	s->view->next_cache = 1 - s->view->next_cache;
	return l;
}

/* ---- matches */

/* True if the chunk may contain a match. */
static bool is_candidate(struct search *s, uint32_t row, struct bc_filter_bounds *bounds)
{
	struct bc_chunk_info info = s->files.file.table.rows[row].info;
	const struct bc_filter *filter = &s->filter;
	uint64_t hz = bc_segment_file_clock_hz(&s->files.file, row);

	if (info.records == 0 ||
		!is_before((struct record_pos){s->files.at, row, 0}, s->part->end) ||
		!is_before(s->part->begin, (struct record_pos){s->files.at, row, info.records}))
		return false;
	if (filter->has_wall && hz == 0 && !s->has_warned) {
		s->has_warned = true;
		s->files.file.io->fault(s->files.file.io->context,
			&(struct bc_segment_fault){
				.kind = BC_SEGMENT_NO_CLOCK, .file = s->files.file.path});
	}
	info.events = 0; /* only records are searched */
	return bc_filter_chunk(filter, &info, hz, bounds);
}

/* True if the page counts rule out a match in the chunk. */
static bool is_ruled_out(struct search *s, uint32_t row)
{
	const struct bc_chunk_table *t = &s->files.file.table;
	struct chunk_cache *l = &s->view->chunks[s->view->next_cache];

	if (!s->has_query || t->rows[row].is_bad)
		return false;
	if (t->rows[row].is_ruled_out)
		return true;
	if (s->view->chunks[1 - s->view->next_cache].is_full &&
		s->view->chunks[1 - s->view->next_cache].row == row)
		return false;
	l->is_full = false;
	if (!bc_segment_file_pace(&s->files.file, bc_chunk_info_header_bytes(&t->rows[row].info)))
		return true;
	return !bc_page_search_chunk(t, row, &s->query, &l->chunk);
}

/* Sets s->view->hits to the positions of the matches in a chunk. Returns their number. */
static uint32_t scan_chunk(struct search *s, uint32_t row, const struct bc_filter_bounds *bounds)
{
	const struct chunk_cache *l = load_chunk(s, row);
	uint32_t hits = 0;

	if (l == NULL)
		return 0;
	scan_records(&s->scan, &l->chunk.info, l->chunk.records);
	for (uint32_t n = 0; n < s->scan.hit_count; n++) {
		uint32_t i = s->scan.hits[n];
		struct record_pos pos = {s->files.at, row, i};
		if (bc_span_has(bounds->numbers, l->chunk.info.first_record + i) &&
			bc_span_has(bounds->ticks, l->ticks[i]) &&
			!is_before(pos, s->part->begin) && is_before(pos, s->part->end))
			s->view->hits[hits++] = i;
	}
	return hits;
}

/* Takes the matches that other threads found in a chunk, and keeps its records. Returns false if
 * they did not search it, or if only part of it is to be searched. */
static bool take_hits(
	struct search *s, uint32_t row, const struct bc_filter_bounds *bounds, uint32_t *hits)
{
	const struct bc_chunk_row *r = &s->files.file.table.rows[row];
	const struct bc_chunk_info *info = &r->info;
	void *result;
	struct chunk_cache *l = &s->view->chunks[s->view->next_cache];

	if (s->ahead == NULL || r->is_bad)
		return false;
	l->is_full = false;
	s->ahead_row = row;
	s->ahead_records = bc_decode_ahead_pop(s->ahead, r->offset, info, &result);
	/* The threads have not seen the chunk's header. If that is damaged, reading reports it. */
	if (s->ahead_records == NULL || result == NULL ||
		!bc_segment_file_read_header(&s->files.file, row, &l->chunk) ||
		!bc_chunk_is_same(&l->chunk.info, info) ||
		!bc_span_has(bounds->numbers, info->first_record) ||
		!bc_span_has(bounds->numbers, info->first_record + info->records - 1) ||
		!bc_span_has(bounds->ticks, info->first_tick) ||
		!bc_span_has(bounds->ticks, info->last_tick) ||
		is_before((struct record_pos){s->files.at, row, 0}, s->part->begin) ||
		!is_before((struct record_pos){s->files.at, row, info->records - 1}, s->part->end))
		return false;
	const struct scan *scan = result;
	*hits = scan->hit_count;
	memcpy(s->view->hits, scan->hits, scan->hit_count * sizeof(scan->hits[0]));
	return true;
}

/* The matches in a chunk of the open file; none if it can't be read. */
static uint32_t search_row(struct search *s, uint32_t row)
{
	const struct bc_chunk_info *info = &s->files.file.table.rows[row].info;
	struct bc_filter_bounds bounds;
	uint32_t hits;

	if (is_stopped(s) || !is_candidate(s, row, &bounds) || is_ruled_out(s, row))
		return 0;
	if (!take_hits(s, row, &bounds, &hits))
		return scan_chunk(s, row, &bounds);
	return bc_segment_file_pace(&s->files.file, bc_chunk_encoded_bytes(info)) ? hits : 0;
}

/* ---- reporting */

/* The chunk that has the nth record of the file. */
static uint32_t row_of(const struct search *s, uint64_t nth)
{
	uint32_t low = 0;
	uint32_t high = s->files.file.table.count;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (s->files.file.table.rows[middle].before <= nth)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Reports the nth record of the open file, unless it can't be read. */
static void report_record(struct search *s, uint64_t nth, bool is_context)
{
	uint32_t row = row_of(s, nth);
	const struct chunk_cache *l = load_chunk(s, row);
	struct bc_search_hit hit = {.file = s->files.file.path,
		.is_context = is_context,
		.follows = s->view->reported == nth && nth != 0};

	s->view->reported = nth + 1;
	if (l == NULL)
		return;
	const struct bc_chunk_info *info = &l->chunk.info;
	const struct bc_segment_header *header = bc_chunk_table_header(&s->files.file.table, row);
	uint32_t i = (uint32_t)(nth - s->files.file.table.rows[row].before);
	uint64_t hz = bc_segment_file_clock_hz(&s->files.file, row);
	bc_entry_of_record(&hit.entry, l->chunk.records + (size_t)i * BC_RECORD_BYTES,
		info->first_record + i, l->ticks[i]);
	hit.entry.epoch = info->epoch;
	bc_entry_text(hit.text, &hit.entry);
	hit.recording = header != NULL ? header->recording : NULL;
	hit.host = header != NULL ? header->host : NULL;
	hit.is_segment = true;
	hit.segment = info->segment;
	hit.has_wall = bc_tick_time(&hit.wall_ns, bc_chunk_clock(info, hz), l->ticks[i]) &&
		       (s->files.file.io->by_axis || header == NULL || header->axis[0] == '\0');
	if (!s->on_hit(s->files.file.io->context, &hit)) {
		s->is_over = true;
		s->files.file.stop = -ECANCELED;
	}
}

/* Reports the context that follows the last match, up to the record before `end`. */
static void report_after(struct search *s, uint64_t end)
{
	while (s->view->reported < end && s->view->reported < s->view->wanted &&
		s->files.file.stop == 0)
		report_record(s, s->view->reported, true);
}

static void report_match(struct search *s, uint64_t nth)
{
	uint64_t context = s->options->context;
	uint64_t first = nth > context ? nth - context : 0;

	report_after(s, nth);
	for (uint64_t i = first > s->view->reported ? first : s->view->reported;
		i < nth && !is_stopped(s); i++)
		report_record(s, i, true);
	if (is_stopped(s))
		return;
	s->matches++;
	report_record(s, nth, false);
	s->view->wanted = nth + 1 + context;
}

static void end_file(struct search *s)
{
	const struct bc_chunk_table *t = &s->files.file.table;

	if (s->files.at >= 0 && t->count != 0)
		report_after(s, t->rows[t->count - 1].before + t->rows[t->count - 1].info.records);
}

/* ---- the search */

/* The time of a match in a chunk of the open file; of the chunk if the clock rate is unknown. */
static int64_t hit_ns(struct search *s, uint32_t row, uint32_t hit)
{
	const struct chunk_cache *l = load_chunk(s, row);
	const struct bc_chunk_info *info = &s->files.file.table.rows[row].info;
	int64_t ns = info->wall_ns;

	if (l != NULL)
		(void)bc_tick_time(&ns,
			bc_chunk_clock(info, bc_segment_file_clock_hz(&s->files.file, row)),
			l->ticks[s->view->hits[hit]]);
	return ns;
}

/* Reports the next match of the current lane, searches its next chunk, or opens its next file. */
static void step(struct search *s, struct bc_lane *lane)
{
	const struct bc_chunk_table *t = &s->files.file.table;
	struct view *v = s->view;

	if (v->hit < v->hit_count) {
		report_match(s, t->rows[v->row - 1].before + v->hits[v->hit++]);
		s->is_over = s->is_over ||
			     (s->options->first != 0 && s->matches >= s->options->first);
	} else if (s->files.at >= 0 && v->row < t->count) {
		v->hit = 0;
		v->hit_count = search_row(s, v->row++);
		if (s->options->is_count) {
			s->matches += v->hit_count;
			v->hit_count = 0;
		}
	} else {
		end_file(s);
		lane->is_over = lane->begin == lane->end;
		if (!lane->is_over)
			(void)open_to_search(s, lane->begin++);
	}
}

/* Sets the time of a lane to that of what is next in its open file. */
static void set_time(struct search *s, struct bc_lane *lane)
{
	const struct view *v = s->view;

	if (v->hit < v->hit_count)
		bc_lane_raise(lane, hit_ns(s, v->row - 1, v->hit));
	else if (s->files.at >= 0 && v->row < s->files.file.table.count)
		bc_lane_raise(lane, s->files.file.table.rows[v->row].info.wall_ns);
}

/* Reports the context after the last match, up to the next match, before switching lanes. */
static void report_near(struct search *s)
{
	const struct view *v = s->view;

	if (s->files.at < 0 || v->row == 0)
		return;
	const struct bc_chunk_row *row = &s->files.file.table.rows[v->row - 1];
	report_after(
		s, row->before + (v->hit < v->hit_count ? v->hits[v->hit] : row->info.records));
}

static bool enter_lane(struct search *s, struct bc_lane *lane)
{
	bc_lanes_enter(&s->lanes, lane);
	if (lane->state == NULL)
		lane->state = calloc(1, sizeof(*s->view));
	s->view = lane->state;
	set_part(s, lane);
	return s->view != NULL;
}

static int search_forward(struct search *s)
{
	struct bc_lane *lane;
	int64_t until_ns;

	while (!is_stopped(s) && (lane = bc_lanes_next(&s->lanes, &until_ns)) != NULL) {
		if (!enter_lane(s, lane))
			return -ENOMEM;
		while (!is_stopped(s) && !lane->is_over && lane->ns <= until_ns) {
			step(s, lane);
			if (until_ns != INT64_MAX)
				set_time(s, lane);
		}
		report_near(s);
	}
	/* After enough matches, their context. */
	for (int i = 0; i < s->lanes.count && s->files.file.stop == 0; i++)
		if (s->lanes.lanes[i].state != NULL && enter_lane(s, &s->lanes.lanes[i]))
			end_file(s);
	return 0;
}

/* A file's time of change may be by the clock of a file server. */
#define CLOCK_SLACK_NS INT64_C(60000000000)

/* No record in the first `end` files of a lane is later than this. A time of change before the
 * start of the recording was not kept when the file was copied, so it tells nothing. */
static int64_t changed_ns(const struct search *s, int end)
{
	struct stat st;
	int64_t start_ns;

	if (s->lanes.count == 1 || s->is_replay || bc_segments_stat(&s->files, end - 1, &st) != 0 ||
		!bc_segments_start(&s->files, end - 1, &start_ns))
		return INT64_MAX;
	int64_t ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + CLOCK_SLACK_NS;
	return ns > start_ns ? ns : INT64_MAX;
}

/* The lane that may have the latest record; NULL if none can have one of the last matches. */
static struct bc_lane *latest_lane(struct search *s)
{
	struct bc_lane *latest = NULL;

	for (int i = s->lanes.count - 1; i >= 0; i--) {
		struct bc_lane *lane = &s->lanes.lanes[i];
		if (lane->begin != lane->end && (latest == NULL || lane->ns > latest->ns))
			latest = lane;
	}
	return latest != NULL && latest->ns > s->enough_ns ? latest : NULL;
}

/* The latest first. */
static int compare_hits(const void *a, const void *b)
{
	const struct last_hit *x = a;
	const struct last_hit *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return is_before(x->pos, y->pos) - is_before(y->pos, x->pos);
}

/* Forgets matches that are not among the last ones. */
static void keep_last(struct search *s)
{
	uint64_t last = s->options->last;

	if (s->last_count < last)
		return;
	qsort(s->last, s->last_count, sizeof(*s->last), compare_hits);
	s->last_count = last;
	s->enough_ns = s->last[last - 1].ns;
}

/* Collects the matches of a chunk of a lane, from the end. */
static int collect_row(struct search *s, struct bc_lane *lane, uint32_t row)
{
	const struct bc_chunk_info *info = &s->files.file.table.rows[row].info;
	uint64_t last = s->options->last;
	uint32_t hits = search_row(s, row);
	uint32_t first = hits > last ? hits - (uint32_t)last : 0;

	for (uint32_t i = first; i < hits; i++) {
		struct last_hit *grown = bc_grow(
			s->last, &s->last_capacity, s->last_count, sizeof(*grown));
		if (grown == NULL)
			return -ENOMEM;
		s->last = grown;
		int64_t ns = hit_ns(s, row, i);
		s->last[s->last_count++] = (struct last_hit){ns < lane->ns ? ns : lane->ns,
			{s->files.at, row, s->view->hits[i]}, lane->id};
	}
	if (info->wall_ns < lane->ns)
		lane->ns = info->wall_ns;
	if (s->enough_ns == INT64_MIN || s->last_count / 2 >= last)
		keep_last(s);
	return 0;
}

/* True if the open file has records that are later than its last change: a capture may be replayed
 * faster than it was recorded. */
static bool is_replay(const struct search *s)
{
	uint32_t count = s->files.file.table.count;

	return count != 0 && bc_segment_file_span(&s->files.file, 0, count - 1).to_ns >
				     changed_ns(s, s->files.at + 1);
}

/* Collects the last matches. Returns 0 or -ENOMEM. */
static int search_backward(struct search *s)
{
	struct bc_lane *lane;
	int rc = 0;

	s->enough_ns = INT64_MIN;
	for (int i = 0; i < s->lanes.count; i++)
		s->lanes.lanes[i].ns = changed_ns(s, s->lanes.lanes[i].end);
	while (rc == 0 && !is_stopped(s) && (lane = latest_lane(s)) != NULL) {
		set_part(s, lane);
		bool is_open = open_to_search(s, --lane->end);
		if (is_open && !s->is_replay && is_replay(s)) {
			s->is_replay = true;
			for (int i = 0; i < s->lanes.count; i++)
				s->lanes.lanes[i].ns = INT64_MAX;
		}
		uint32_t row = is_open ? s->files.file.table.count : 0;
		while (rc == 0 && row-- != 0 && lane->ns > s->enough_ns && !is_stopped(s))
			rc = collect_row(s, lane, row);
		int64_t changed = lane->begin != lane->end ? changed_ns(s, lane->end) : INT64_MAX;
		if (changed < lane->ns)
			lane->ns = changed;
	}
	keep_last(s);
	return rc;
}

/* Finds the last matches, and limits the search forwards to them. */
static int begin_last(struct search *s)
{
	int rc = search_backward(s);

	for (int i = 0; i < s->lanes.count; i++)
		s->lanes.lanes[i].is_over = true;
	for (size_t i = 0; i < s->last_count; i++) {
		const struct last_hit *hit = &s->last[i];
		struct bc_lane *lane = &s->lanes.lanes[hit->lane];
		struct part *part = &s->parts[hit->lane];
		if (lane->is_over || is_before(hit->pos, part->begin)) {
			part->begin = hit->pos;
			lane->begin = hit->pos.file;
			lane->ns = hit->ns;
		}
		if (lane->is_over || hit->pos.file >= lane->end)
			lane->end = hit->pos.file + 1;
		lane->is_over = false;
	}
	return rc;
}

/* ---- marks */

static bool is_mark(const struct bc_chunk *chunk, const struct bc_event *event, const char *text)
{
	return (event->kind == BC_EVENT_MARK || event->kind == BC_EVENT_TRIGGER) &&
	       event->text_bytes == strlen(text) &&
	       memcmp(chunk->text + event->text, text, event->text_bytes) == 0;
}

/* A mark that begins or ends the search. */
struct found {
	const char *text; /* NULL: none */
	struct record_pos pos;
	int64_t ns;
	int lane; /* -1: not found */
};

/* The time of an event of a chunk in memory; only needed if there are several lanes. */
static int64_t event_ns(struct search *s, uint32_t row, const struct bc_event *event)
{
	struct chunk_cache *l = &s->view->chunks[0];
	const struct bc_chunk_info *info = &l->chunk.info;
	int64_t ns = info->wall_ns;
	uint32_t last = info->records != 0 ? info->records - 1 : 0;

	if (s->lanes.count != 1 && info->records != 0 &&
		bc_segment_file_read(&s->files.file, row, &l->chunk)) {
		bc_chunk_ticks(&l->chunk, l->ticks);
		(void)bc_tick_time(&ns,
			bc_chunk_clock(info, bc_segment_file_clock_hz(&s->files.file, row)),
			l->ticks[event->position < last ? event->position : last]);
	}
	return ns;
}

/* Looks for the first or the last mark with a text in a chunk. */
static void find_mark(struct search *s, const struct bc_lane *lane, uint32_t row,
	struct found *mark, bool is_last)
{
	const struct bc_chunk *chunk = &s->view->chunks[0].chunk;

	for (uint32_t i = 0; mark->text != NULL && i < chunk->info.events; i++) {
		const struct bc_event *event = &chunk->events[i];
		if (!is_mark(chunk, event, mark->text))
			continue;
		int64_t ns = event_ns(s, row, event);
		bool is_better = is_last ? ns >= mark->ns : ns < mark->ns;
		if (mark->lane >= 0 && (mark->lane == lane->id ? !is_last : !is_better))
			continue;
		*mark = (struct found){
			mark->text, {s->files.at, row, event->position}, ns, lane->id};
	}
}

/* Finds where marks begin and end the search: in their recordings, at their place, in others, at
 * their time. Returns the text of one that is missing, or NULL. */
static const char *set_marks(struct search *s)
{
	struct found begin = {.text = s->options->after_mark, .lane = -1};
	struct found end = {.text = s->options->before_mark, .lane = -1};
	struct bc_chunk *chunk = &s->view->chunks[0].chunk;

	if (begin.text == NULL && end.text == NULL)
		return NULL;
	for (int i = 0, lane = 0; i < s->files.count; i++) {
		lane += i == s->lanes.lanes[lane].end;
		if (!open_file(s, i, NULL))
			continue;
		for (uint32_t row = 0; row < s->files.file.table.count; row++) {
			/* If the header is damaged, reading the chunk reports that. */
			if (s->files.file.table.rows[row].info.events == 0 ||
				(!bc_segment_file_read_header(&s->files.file, row, chunk) &&
					!bc_segment_file_read(&s->files.file, row, chunk)))
				continue;
			find_mark(s, &s->lanes.lanes[lane], row, &begin, false);
			find_mark(s, &s->lanes.lanes[lane], row, &end, true);
		}
	}
	s->view->chunks[0].is_full = false;
	for (int i = 0; i < s->lanes.count; i++) {
		struct part *part = &s->parts[i];
		if (i == begin.lane)
			part->begin = begin.pos;
		else if (begin.lane >= 0)
			part->from_ns = begin.ns;
		if (i == end.lane)
			part->end = end.pos;
		else if (end.lane >= 0)
			part->to_ns = end.ns;
	}
	if (s->files.file.stop != 0)
		return NULL;
	return begin.lane < 0 && begin.text != NULL ? begin.text : end.lane < 0 ? end.text : NULL;
}

/* Makes times relative to the start absolute. */
static void set_start(struct search *s)
{
	for (int i = 0;
		i < s->files.count && (s->whole.from_is_relative || s->whole.to_is_relative); i++)
		if (open_file(s, i, NULL) && s->files.file.table.count != 0)
			bc_filter_start(&s->whole, s->files.file.table.rows[0].info.wall_ns);
}

static int search_lanes(struct search *s, const char **missing)
{
	int rc = 0;

	s->parts = calloc((size_t)s->lanes.count + 1, sizeof(*s->parts));
	if (s->parts == NULL)
		return -ENOMEM;
	for (int i = 0; i < s->lanes.count; i++)
		s->parts[i] = (struct part){
			.end.file = s->files.count, .from_ns = INT64_MIN, .to_ns = INT64_MAX};
	set_start(s);
	s->files.from_ns = s->whole.from_ns;
	s->files.to_ns = s->whole.to_ns;
	s->files.first_record = s->whole.numbers.first;
	s->files.last_record = s->whole.numbers.last;
	s->has_query = bc_filter_page_query(&s->whole, &s->query);
	*missing = set_marks(s);
	if (*missing != NULL)
		return -ENOENT;
	if (s->options->last != 0)
		rc = begin_last(s);
	else
		bc_lanes_start(&s->lanes);
	bc_lanes_sort(&s->lanes);
	return rc == 0 ? search_forward(s) : rc;
}

int bc_search_run(const struct bc_search_options *options, char *const *paths, int count,
	const struct bc_segment_io *io, bc_search_cb on_hit, uint64_t *matches,
	const char **missing)
{
	struct search *s = calloc(1, sizeof(*s));
	struct view *view = calloc(1, sizeof(*view));
	int rc = -ENOMEM;

	*matches = 0;
	*missing = NULL;
	if (s == NULL || view == NULL || !bc_segments_init(&s->files, io, paths, count))
		goto out;
	s->options = options;
	s->whole = options->filter;
	s->on_hit = on_hit;
	s->view = view;
	rc = bc_lanes_init(&s->lanes, &s->files);
	if (rc == 0)
		rc = search_lanes(s, missing);
	if (rc == 0 && s->files.file.stop == -ENOMEM)
		rc = -ENOMEM;
	*matches = s->matches;
	end_ahead(s);
	bc_lanes_free(&s->lanes);
	bc_segments_free(&s->files);
	free(s->parts);
	free(s->last);
out:
	free(view);
	free(s);
	return rc;
}

/* ---- hits as JSON */

static json_t *hex_json(uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, value);
	return json_string(text);
}

static json_t *type_of(const struct bc_entry *entry)
{
	const char *name = bc_ref_type_name(entry->type);

	return name != NULL ? json_string(name) : hex_json(entry->type);
}

json_t *bc_search_hit_json(const struct bc_search_hit *hit, json_t *name)
{
	const struct bc_entry *entry = &hit->entry;
	bool is_reference = entry->kind == BC_ENTRY_REFERENCE;
	char wall[BC_RFC3339_BYTES];

	bc_rfc3339_write(wall, hit->wall_ns);
	return BC_JSON_OBJECT({"number", bc_json_u64(entry->number)},
		{"tick", bc_json_u64_or_null((entry->traits & BC_TRAIT_TIME) != 0, entry->tick)},
		{"epoch", json_integer(entry->epoch)},
		{"delta", bc_json_u64_or_null(
				  entry->has_delta && entry->delta != BC_TIME_NONE, entry->delta)},
		{"time", hit->has_wall ? json_string(wall) : json_null()},
		{"file", bc_json_text(hit->file)},
		{"recording", bc_json_text_or_null(hit->recording != NULL ? hit->recording : "")},
		{"host", bc_json_text_or_null(hit->host != NULL ? hit->host : "")},
		{"segment", hit->is_segment ? json_integer(hit->segment) : json_null()},
		{"addr", hex_json(entry->addr)},
		{"type", is_reference ? type_of(entry) : json_null()},
		{"size", bc_json_u64_or_null((entry->traits & BC_TRAIT_SIZE) != 0, entry->size)},
		{"attr", bc_json_u64_or_null((entry->traits & BC_TRAIT_ATTR) != 0, entry->attr)},
		{"proc", bc_json_u64_or_null((entry->traits & BC_TRAIT_PROC) != 0, entry->proc)},
		{"name", name}, {"text", bc_json_text(hit->text)},
		{"is_context", json_boolean(hit->is_context)});
}
