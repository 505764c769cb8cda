/* Searches segments for records: forwards chunk by chunk, or backwards for the last matches.
 *
 * Chunks are ruled out in the order of cost: by the file's page counts, by the index row, by the
 * page counts in the chunk's header; the others are read and scanned. Two chunks are in memory, so
 * that context before and after a match does not read a chunk twice. Invariant: hits are reported
 * in the order of the files, each record once: `reported` is the first that has not been, `wanted`
 * the end of the last match's context.
 *
 * Backwards, the last matches are collected first, then reported forwards. Recordings may overlap
 * in time, so the last ones are those with the latest times: each recording is a lane, and the lane
 * that may have the latest record is searched next. What is not opened yet is bounded by the time
 * when its file was last changed. */
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
#include "formats/segment/chunk_table.h"

/* A chunk in memory, with the tick of each record. */
struct chunk_cache {
	bool is_full;
	uint32_t row;
	struct bc_chunk chunk;
	uint64_t ticks[BC_CHUNK_RECORDS];
};

/* A match, from the end: its position, and its time, which is not above that of a later record of
 * its recording. */
struct last_hit {
	int64_t ns;
	int file;
	uint32_t row;
	uint32_t at;
};

/* The files of a recording, from the end: `begin` to `end` - 1 have not been searched. No record in
 * them is later than `latest_ns`. */
struct lane {
	int begin;
	int end;
	int64_t latest_ns;
};

/* A position between two records. */
struct record_pos {
	int file;
	uint32_t row;
	uint32_t position;
};

struct search {
	const struct bc_search_options *options;
	struct bc_filter filter;
	bc_search_cb on_hit;
	uint64_t matches; /* reported, or counted */
	bool is_over;     /* enough has been found */
	struct bc_segments files;
	struct record_pos begin; /* of what is searched, by --after-mark and --before-mark */
	struct record_pos end;
	bool has_warned; /* about an unknown clock rate */
	bool has_query;
	struct bc_page_query query; /* the filter's addresses */
	/* Of the open file: */
	struct chunk_cache *chunks; /* two: the chunk of a match and a neighbour */
	unsigned next_cache;        /* the one to use for the next chunk */
	uint64_t reported; /* records before this one, by their place in the file, are reported */
	uint64_t wanted;   /* those before this one are context of the last match */
	uint32_t hits[BC_CHUNK_RECORDS];
	/* Backwards: */
	struct lane *lanes;
	int lane_count;
	struct last_hit *last; /* more than options->last only until keep_last() */
	size_t last_count;
	size_t last_capacity;
	int64_t enough_ns; /* that many matches are at or after it */
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

/* Opens a file, with a query only if it may have what is looked for. */
static bool open_if(struct search *s, int at, const struct bc_page_query *query)
{
	if (s->files.at == at)
		return true;
	s->chunks[0].is_full = s->chunks[1].is_full = false;
	s->reported = 0;
	s->wanted = 0;
	return bc_segments_open(&s->files, at, query);
}

static bool open_file(struct search *s, int at)
{
	return open_if(s, at, NULL);
}

/* Opens a file for the search. Returns false if it has no match, or can't be read. */
static bool open_to_search(struct search *s, int at)
{
	if (!open_if(s, at, s->has_query ? &s->query : NULL))
		return false;
	if (!s->has_query)
		return true;
	uint64_t bytes;
	bc_page_search_rows(&s->files.file.table, &s->query, &bytes);
	return bc_segment_file_pace(&s->files.file, bytes);
}

/* Returns a chunk of the open file, or NULL if it can't be read, which has been reported. */
static const struct chunk_cache *load_chunk(struct search *s, uint32_t row)
{
	for (unsigned i = 0; i < 2; i++)
		if (s->chunks[i].is_full && s->chunks[i].row == row) {
			s->next_cache = 1 - i;
			return &s->chunks[i];
		}
	struct chunk_cache *l = &s->chunks[s->next_cache];
	l->is_full = bc_segment_file_read(&s->files.file, row, &l->chunk);
	if (!l->is_full)
		return NULL;
	l->row = row;
	bc_chunk_ticks(&l->chunk, l->ticks);
	s->next_cache = 1 - s->next_cache;
	return l;
}

/* ---- matches */

/* True if the chunk may contain a match. */
static bool is_candidate(struct search *s, uint32_t row, struct bc_filter_bounds *bounds)
{
	struct bc_chunk_info info = s->files.file.table.rows[row].info;
	const struct bc_filter *filter = &s->filter;
	uint64_t hz = bc_segment_file_clock_hz(&s->files.file, row);

	if (info.records == 0 || !is_before((struct record_pos){s->files.at, row, 0}, s->end) ||
		!is_before(s->begin, (struct record_pos){s->files.at, row, info.records}))
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
	struct chunk_cache *l = &s->chunks[s->next_cache];

	if (!s->has_query || t->rows[row].is_bad)
		return false;
	if (t->rows[row].is_ruled_out)
		return true;
	if (s->chunks[1 - s->next_cache].is_full && s->chunks[1 - s->next_cache].row == row)
		return false;
	l->is_full = false;
	if (!bc_segment_file_pace(&s->files.file, bc_chunk_info_header_bytes(&t->rows[row].info)))
		return true;
	return !bc_page_search_chunk(t, row, &s->query, &l->chunk);
}

/* Sets s->hits to the positions of the matches in a chunk. Returns their number. */
static uint32_t scan_chunk(
	struct search *s, const struct chunk_cache *l, const struct bc_filter_bounds *bounds)
{
	const struct bc_chunk_info *info = &l->chunk.info;
	uint32_t hits = 0;

	for (uint32_t base = 0; base < info->records; base += BC_FILTER_RECORDS) {
		uint32_t left = info->records - base;
		uint64_t ticks;
		uint64_t bits = bc_filter_records(&s->filter,
			l->chunk.records + (size_t)base * BC_RECORD_BYTES,
			left < BC_FILTER_RECORDS ? left : BC_FILTER_RECORDS, &ticks);
		for (; bits != 0; bits &= bits - 1) {
			uint32_t i = base + (uint32_t)__builtin_ctzll(bits);
			struct record_pos pos = {s->files.at, l->row, i};
			if (bc_span_has(bounds->numbers, info->first_record + i) &&
				bc_span_has(bounds->ticks, l->ticks[i]) &&
				!is_before(pos, s->begin) && is_before(pos, s->end))
				s->hits[hits++] = i;
		}
	}
	return hits;
}

/* The matches in a chunk of the open file; none if it can't be read. */
static uint32_t search_row(struct search *s, uint32_t row)
{
	struct bc_filter_bounds bounds;
	const struct chunk_cache *l = !is_stopped(s) && is_candidate(s, row, &bounds) &&
						      !is_ruled_out(s, row)
					      ? load_chunk(s, row)
					      : NULL;

	return l != NULL ? scan_chunk(s, l, &bounds) : 0;
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
		.follows = s->reported == nth && nth != 0};

	s->reported = nth + 1;
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
	hit.has_wall = bc_tick_time(&hit.wall_ns, bc_chunk_clock(info, hz), l->ticks[i]);
	if (!s->on_hit(s->files.file.io->context, &hit)) {
		s->is_over = true;
		s->files.file.stop = -ECANCELED;
	}
}

/* Reports the context that follows the last match, up to the record before `end`. */
static void report_after(struct search *s, uint64_t end)
{
	while (s->reported < end && s->reported < s->wanted && s->files.file.stop == 0)
		report_record(s, s->reported, true);
}

static void report_match(struct search *s, uint64_t nth)
{
	uint64_t context = s->options->context;
	uint64_t first = nth > context ? nth - context : 0;

	report_after(s, nth);
	for (uint64_t i = first > s->reported ? first : s->reported; i < nth && !is_stopped(s); i++)
		report_record(s, i, true);
	if (is_stopped(s))
		return;
	s->matches++;
	report_record(s, nth, false);
	s->wanted = nth + 1 + context;
}

/* Reports the matches of a chunk, without the first `skip`. */
static void report_hits(struct search *s, uint32_t row, uint32_t hits, uint64_t skip)
{
	uint64_t before = s->files.file.table.rows[row].before;

	for (uint32_t i = (uint32_t)skip; i < hits && !is_stopped(s); i++) {
		report_match(s, before + s->hits[i]);
		s->is_over = s->is_over ||
			     (s->options->first != 0 && s->matches >= s->options->first);
	}
}

static void end_file(struct search *s)
{
	const struct bc_chunk_table *t = &s->files.file.table;

	if (s->files.at >= 0 && t->count != 0)
		report_after(s, t->rows[t->count - 1].before + t->rows[t->count - 1].info.records);
}

/* ---- the search */

static void search_forward(struct search *s)
{
	for (int i = 0; i < s->files.count && !is_stopped(s); i++) {
		if (!open_to_search(s, i))
			continue;
		for (uint32_t row = 0; row < s->files.file.table.count && !is_stopped(s); row++) {
			uint32_t hits = search_row(s, row);
			if (s->options->is_count)
				s->matches += hits;
			else
				report_hits(s, row, hits, 0);
		}
		end_file(s);
	}
}

/* A file's time of change may be by the clock of a file server. */
#define CLOCK_SLACK_NS INT64_C(60000000000)

/* No record in the first `end` files of a lane is later than this. A time of change before the
 * start of the recording was not kept when the file was copied, so it tells nothing. */
static int64_t changed_ns(const struct search *s, int end)
{
	struct stat st;
	int64_t start_ns;

	if (end == 0 || bc_segments_stat(&s->files, end - 1, &st) != 0 ||
		!bc_segments_start(&s->files, end - 1, &start_ns))
		return INT64_MAX;
	int64_t ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + CLOCK_SLACK_NS;
	return ns > start_ns ? ns : INT64_MAX;
}

static int make_lanes(struct search *s)
{
	s->lanes = calloc((size_t)s->files.count + 1, sizeof(*s->lanes));
	if (s->lanes == NULL)
		return -ENOMEM;
	for (int i = 0; i < s->files.count; i++) {
		if (!bc_segments_follows(&s->files, i))
			s->lanes[s->lane_count++].begin = i;
		s->lanes[s->lane_count - 1].end = i + 1;
	}
	for (int i = 0; i < s->lane_count && s->lane_count != 1; i++)
		s->lanes[i].latest_ns = changed_ns(s, s->lanes[i].end);
	if (s->lane_count == 1)
		s->lanes[0].latest_ns = INT64_MAX;
	return 0;
}

/* The lane that may have the latest record; NULL if none can have one of the last matches. */
static struct lane *latest_lane(struct search *s)
{
	struct lane *latest = NULL;

	for (int i = s->lane_count - 1; i >= 0; i--)
		if (s->lanes[i].begin != s->lanes[i].end &&
			(latest == NULL || s->lanes[i].latest_ns > latest->latest_ns))
			latest = &s->lanes[i];
	return latest != NULL && latest->latest_ns > s->enough_ns ? latest : NULL;
}

static int compare_places(const void *a, const void *b)
{
	const struct last_hit *x = a;
	const struct last_hit *y = b;

	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

/* The latest first. */
static int compare_times(const void *a, const void *b)
{
	const struct last_hit *x = a;
	const struct last_hit *y = b;

	return x->ns != y->ns ? (x->ns > y->ns ? -1 : 1) : compare_places(b, a);
}

/* Forgets matches that are not among the last ones. */
static void keep_last(struct search *s)
{
	uint64_t last = s->options->last;

	if (s->last_count < last)
		return;
	qsort(s->last, s->last_count, sizeof(*s->last), compare_times);
	s->last_count = last;
	s->enough_ns = s->last[last - 1].ns;
}

/* Collects the matches of a chunk of a lane, from the end. */
static int collect_row(struct search *s, struct lane *lane, uint32_t row)
{
	const struct bc_chunk_info *info = &s->files.file.table.rows[row].info;
	uint64_t hz = bc_segment_file_clock_hz(&s->files.file, row);
	uint64_t last = s->options->last;
	uint32_t hits = search_row(s, row);
	uint32_t first = hits > last ? hits - (uint32_t)last : 0;
	const uint64_t *ticks = hits != 0 ? load_chunk(s, row)->ticks : NULL;

	for (uint32_t i = first; i < hits; i++) {
		struct last_hit *grown = bc_grow(
			s->last, &s->last_capacity, s->last_count, sizeof(*grown));
		if (grown == NULL)
			return -ENOMEM;
		s->last = grown;
		int64_t ns; /* of the chunk if the clock rate is unknown */
		(void)bc_tick_time(&ns, bc_chunk_clock(info, hz), ticks[s->hits[i]]);
		s->last[s->last_count++] = (struct last_hit){
			ns < lane->latest_ns ? ns : lane->latest_ns, s->files.at, row, s->hits[i]};
	}
	if (info->wall_ns < lane->latest_ns)
		lane->latest_ns = info->wall_ns;
	if (s->enough_ns == INT64_MIN || s->last_count / 2 >= last)
		keep_last(s);
	return 0;
}

/* Collects the last matches. Returns 0 or -ENOMEM. */
static int search_backward(struct search *s)
{
	struct lane *lane;
	int rc = make_lanes(s);

	s->enough_ns = INT64_MIN;
	while (rc == 0 && !is_stopped(s) && (lane = latest_lane(s)) != NULL) {
		bool is_open = open_to_search(s, --lane->end);
		uint32_t row = is_open ? s->files.file.table.count : 0;
		while (rc == 0 && row-- != 0 && lane->latest_ns > s->enough_ns && !is_stopped(s))
			rc = collect_row(s, lane, row);
		int64_t changed = lane->begin != lane->end && s->lane_count != 1
					  ? changed_ns(s, lane->end)
					  : INT64_MAX;
		if (changed < lane->latest_ns)
			lane->latest_ns = changed;
	}
	keep_last(s);
	return rc;
}

static int report_last(struct search *s)
{
	int rc = search_backward(s);

	if (rc == 0 && s->last_count != 0)
		qsort(s->last, s->last_count, sizeof(*s->last), compare_places);
	for (size_t i = 0; rc == 0 && i < s->last_count && !is_stopped(s); i++) {
		const struct last_hit *hit = &s->last[i];
		if (s->files.at != hit->file)
			end_file(s);
		if (open_file(s, hit->file) && hit->row < s->files.file.table.count)
			report_match(s, s->files.file.table.rows[hit->row].before + hit->at);
	}
	end_file(s);
	return rc;
}

/* ---- marks */

static bool is_mark(const struct bc_chunk *chunk, const struct bc_event *event, const char *text)
{
	return (event->kind == BC_EVENT_MARK || event->kind == BC_EVENT_TRIGGER) &&
	       event->text_bytes == strlen(text) &&
	       memcmp(chunk->text + event->text, text, event->text_bytes) == 0;
}

/* Looks for the marks in a chunk's header. */
static void find_marks(struct search *s, uint32_t row, bool *has_begin, bool *has_end)
{
	const struct bc_search_options *o = s->options;
	struct bc_chunk *chunk = &s->chunks[0].chunk;

	/* If the header is damaged, reading the chunk reports that. */
	if (!bc_segment_file_read_header(&s->files.file, row, chunk) &&
		!bc_segment_file_read(&s->files.file, row, chunk))
		return;
	for (uint32_t i = 0; i < chunk->info.events; i++) {
		const struct bc_event *event = &chunk->events[i];
		struct record_pos pos = {s->files.at, row, event->position};
		if (o->after_mark != NULL && !*has_begin && is_mark(chunk, event, o->after_mark)) {
			s->begin = pos;
			*has_begin = true;
		}
		if (o->before_mark != NULL && is_mark(chunk, event, o->before_mark)) {
			s->end = pos;
			*has_end = true;
		}
	}
}

/* Finds where marks begin and end the search. Returns the text of one that is missing, or NULL. */
static const char *set_marks(struct search *s)
{
	const struct bc_search_options *o = s->options;
	bool has_begin = o->after_mark == NULL;
	bool has_end = o->before_mark == NULL;

	if (has_begin && has_end)
		return NULL;
	for (int i = 0; i < s->files.count; i++) {
		if (!open_file(s, i))
			continue;
		for (uint32_t row = 0; row < s->files.file.table.count; row++)
			if (s->files.file.table.rows[row].info.events != 0)
				find_marks(s, row, &has_begin, &has_end);
	}
	if (s->files.file.stop != 0)
		return NULL;
	return !has_begin ? o->after_mark : !has_end ? o->before_mark : NULL;
}

/* Makes times relative to the start absolute. */
static void set_start(struct search *s)
{
	for (int i = 0;
		i < s->files.count && (s->filter.from_is_relative || s->filter.to_is_relative); i++)
		if (open_file(s, i) && s->files.file.table.count != 0)
			bc_filter_start(&s->filter, s->files.file.table.rows[0].info.wall_ns);
}

int bc_search_run(const struct bc_search_options *options, char *const *paths, int count,
	const struct bc_segment_io *io, bc_search_cb on_hit, uint64_t *matches,
	const char **missing)
{
	struct search *s = calloc(1, sizeof(*s));
	struct chunk_cache *chunks = calloc(2, sizeof(*chunks));
	int rc = -ENOMEM;

	*matches = 0;
	*missing = NULL;
	if (s == NULL || chunks == NULL || !bc_segments_init(&s->files, io, paths, count))
		goto out;
	s->options = options;
	s->filter = options->filter;
	s->on_hit = on_hit;
	s->end.file = count;
	s->chunks = chunks;
	set_start(s);
	s->files.from_ns = s->filter.from_ns;
	s->files.to_ns = s->filter.to_ns;
	s->files.first_record = s->filter.numbers.first;
	s->files.last_record = s->filter.numbers.last;
	s->has_query = bc_filter_page_query(&s->filter, &s->query);
	*missing = set_marks(s);
	rc = *missing != NULL ? -ENOENT : 0;
	if (rc == 0 && options->last != 0)
		rc = report_last(s);
	else if (rc == 0)
		search_forward(s);
	if (rc == 0 && s->files.file.stop == -ENOMEM)
		rc = -ENOMEM;
	*matches = s->matches;
	bc_segments_free(&s->files);
	free(s->lanes);
	free(s->last);
out:
	free(chunks);
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
	return bc_json_object((struct bc_json_member[]){
		{"number", bc_json_u64(entry->number)},
		{"tick", (entry->traits & BC_TRAIT_TIME) != 0 ? bc_json_u64(entry->tick)
							      : json_null()},
		{"epoch", json_integer(entry->epoch)},
		{"delta", entry->has_delta && entry->delta != BC_TIME_NONE
				  ? bc_json_u64(entry->delta)
				  : json_null()},
		{"time", hit->has_wall ? json_string(wall) : json_null()},
		{"file", bc_json_text(hit->file)},
		{"recording", bc_json_text_or_null(hit->recording != NULL ? hit->recording : "")},
		{"host", bc_json_text_or_null(hit->host != NULL ? hit->host : "")},
		{"segment", hit->is_segment ? json_integer(hit->segment) : json_null()},
		{"addr", hex_json(entry->addr)},
		{"type", is_reference ? type_of(entry) : json_null()},
		{"size", (entry->traits & BC_TRAIT_SIZE) != 0 ? json_integer(entry->size)
							      : json_null()},
		{"attr", (entry->traits & BC_TRAIT_ATTR) != 0 ? json_integer(entry->attr)
							      : json_null()},
		{"proc", (entry->traits & BC_TRAIT_PROC) != 0 ? json_integer(entry->proc)
							      : json_null()},
		{"name", name},
		{"text", bc_json_text(hit->text)},
		{"is_context", json_boolean(hit->is_context)},
		{NULL, NULL},
	});
}
