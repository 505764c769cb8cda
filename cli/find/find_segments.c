#include "cli/find/find_segments.h"

#include <stdlib.h>
#include <string.h>

#include "cli/find/find_print.h"
#include "cli/find/segment_files.h"
#include "formats/segment/page_search.h"

/* A chunk in memory, with the tick of each record. */
struct loaded {
	bool is_loaded;
	uint32_t row;
	struct bc_chunk chunk;
	uint64_t ticks[BC_CHUNK_RECORDS];
};

/* A chunk with matches. */
struct found {
	int file;
	uint32_t row;
	uint32_t hits;
};

/* A position between two records. */
struct place {
	int file;
	uint32_t row;
	uint32_t position;
};

struct search {
	struct bc_find *find;
	struct bc_segment_files files;
	struct place begin; /* of what is searched, by --after-mark and --before-mark */
	struct place end;
	bool has_warned; /* about an unknown clock rate */
	bool has_query;
	struct bc_page_query query; /* the filter's addresses */
	/* Of the open file: */
	struct loaded *chunks; /* two: that of a match, and of its neighbours */
	unsigned next_loaded;  /* the one to use for the next chunk */
	uint64_t printed; /* records before this one, by their place in the file, are printed */
	uint64_t wanted;  /* those before this one are context of the last match */
	uint32_t hits[BC_CHUNK_RECORDS];
	/* Backwards: the chunks with matches, the last one first. */
	struct found *found;
	size_t found_count;
	size_t found_capacity;
};

static bool is_before(struct place a, struct place b)
{
	if (a.file != b.file)
		return a.file < b.file;
	return a.row != b.row ? a.row < b.row : a.position < b.position;
}

/* ---- chunks */

static bool open_file(struct search *s, int at)
{
	if (s->files.at == at)
		return true;
	s->chunks[0].is_loaded = s->chunks[1].is_loaded = false;
	s->printed = 0;
	s->wanted = 0;
	return bc_segment_files_open(&s->files, at);
}

/* Opens a file for the search. Returns false if it has no match, or can't be read. */
static bool open_to_search(struct search *s, int at)
{
	if (s->has_query && !bc_segment_files_may_have(&s->files, at, &s->query))
		return false;
	if (!open_file(s, at))
		return false;
	if (s->has_query)
		bc_page_search_rows(&s->files.table, &s->query);
	return true;
}

/* Returns a chunk of the open file, or NULL if it can't be read, which has been reported. */
static const struct loaded *load(struct search *s, uint32_t row)
{
	for (unsigned i = 0; i < 2; i++)
		if (s->chunks[i].is_loaded && s->chunks[i].row == row) {
			s->next_loaded = 1 - i;
			return &s->chunks[i];
		}
	struct loaded *l = &s->chunks[s->next_loaded];
	l->is_loaded = bc_segment_files_read(&s->files, row, &l->chunk);
	if (!l->is_loaded)
		return NULL;
	l->row = row;
	bc_chunk_ticks(&l->chunk, l->ticks);
	s->next_loaded = 1 - s->next_loaded;
	return l;
}

/* ---- matches */

/* Whether a chunk may contain a match. */
static bool is_candidate(struct search *s, uint32_t row, struct bc_filter_bounds *bounds)
{
	struct bc_chunk_info info = s->files.table.rows[row].info;
	const struct bc_filter *filter = &s->find->args.filter;
	uint64_t hz = bc_segment_files_clock_hz(&s->files, row);

	if (info.records == 0 || !is_before((struct place){s->files.at, row, 0}, s->end) ||
		!is_before(s->begin, (struct place){s->files.at, row, info.records}))
		return false;
	if (filter->has_wall && hz == 0 && !s->has_warned) {
		s->has_warned = true;
		bc_print_error(s->find->console, s->files.file.name,
			"clock rate unknown: --from and --to select whole chunks, by the time of "
			"day of their first record");
	}
	info.events = 0; /* only records are searched */
	return bc_filter_chunk(filter, &info, hz, bounds);
}

/* Whether the page counts say that a chunk has no match. */
static bool is_ruled_out(struct search *s, uint32_t row)
{
	const struct bc_chunk_table *t = &s->files.table;
	struct loaded *l = &s->chunks[s->next_loaded];

	if (!s->has_query || t->rows[row].is_bad)
		return false;
	if (t->rows[row].is_ruled_out)
		return true;
	if (s->chunks[1 - s->next_loaded].is_loaded && s->chunks[1 - s->next_loaded].row == row)
		return false;
	l->is_loaded = false;
	return !bc_page_search_chunk(t, row, &s->query, &l->chunk);
}

/* Sets s->hits to the positions of the matches in a chunk. Returns their number. */
static uint32_t scan(
	struct search *s, const struct loaded *l, const struct bc_filter_bounds *bounds)
{
	const struct bc_chunk_info *info = &l->chunk.info;
	uint32_t hits = 0;

	for (uint32_t base = 0; base < info->records; base += BC_FILTER_RECORDS) {
		uint32_t left = info->records - base;
		uint64_t ticks;
		uint64_t bits = bc_filter_records(&s->find->args.filter,
			l->chunk.records + (size_t)base * BC_RECORD_BYTES,
			left < BC_FILTER_RECORDS ? left : BC_FILTER_RECORDS, &ticks);
		for (; bits != 0; bits &= bits - 1) {
			uint32_t i = base + (uint32_t)__builtin_ctzll(bits);
			struct place place = {s->files.at, l->row, i};
			if (bc_span_has(bounds->numbers, info->first_record + i) &&
				bc_span_has(bounds->ticks, l->ticks[i]) &&
				!is_before(place, s->begin) && is_before(place, s->end))
				s->hits[hits++] = i;
		}
	}
	return hits;
}

/* The matches in a chunk of the open file; none if it can't be read. */
static uint32_t search_row(struct search *s, uint32_t row)
{
	struct bc_filter_bounds bounds;
	const struct loaded *l = is_candidate(s, row, &bounds) && !is_ruled_out(s, row)
					 ? load(s, row)
					 : NULL;

	return l != NULL ? scan(s, l, &bounds) : 0;
}

/* ---- printing */

/* The chunk that has the nth record of the file. */
static uint32_t row_of(const struct search *s, uint64_t nth)
{
	uint32_t low = 0;
	uint32_t high = s->files.table.count;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (s->files.table.rows[middle].before <= nth)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Prints the nth record of the open file, unless it can't be read. */
static void print_record(struct search *s, uint64_t nth, bool is_context)
{
	uint32_t row = row_of(s, nth);
	const struct loaded *l = load(s, row);
	struct bc_find_hit hit = {.file = s->files.file.name, .is_context = is_context};

	bool follows = s->printed == nth && nth != 0;

	s->printed = nth + 1;
	if (l == NULL)
		return;
	const struct bc_chunk_info *info = &l->chunk.info;
	const struct bc_segment_header *header = bc_chunk_table_header(&s->files.table, row);
	uint32_t i = (uint32_t)(nth - s->files.table.rows[row].before);
	uint64_t hz = bc_segment_files_clock_hz(&s->files, row);
	bc_entry_of_record(&hit.entry, l->chunk.records + (size_t)i * BC_RECORD_BYTES,
		info->first_record + i, l->ticks[i]);
	hit.entry.epoch = info->epoch;
	bc_entry_text(hit.text, &hit.entry);
	hit.recording = header != NULL ? header->recording : NULL;
	hit.is_segment = true;
	hit.segment = info->segment;
	hit.has_wall = hz != 0;
	hit.wall_ns = bc_chunk_wall(info, l->ticks[i], hz);
	bc_find_print(s->find, &hit, follows);
}

/* Prints the context that follows the last match, up to the record before `end`. */
static void print_after(struct search *s, uint64_t end)
{
	while (s->printed < end && s->printed < s->wanted && !bc_output_failed(&s->find->output))
		print_record(s, s->printed, true);
}

static void print_match(struct search *s, uint64_t nth)
{
	uint64_t context = s->find->context;
	uint64_t first = nth > context ? nth - context : 0;

	print_after(s, nth);
	for (uint64_t i = first > s->printed ? first : s->printed; i < nth; i++)
		print_record(s, i, true);
	print_record(s, nth, false);
	s->wanted = nth + 1 + context;
}

/* Prints the matches of a chunk, without the first `skip`. */
static void print_hits(struct search *s, uint32_t row, uint32_t hits, uint64_t skip)
{
	uint64_t before = s->files.table.rows[row].before;

	for (uint32_t i = (uint32_t)skip; i < hits && !bc_find_is_over(s->find); i++) {
		s->find->matches++;
		print_match(s, before + s->hits[i]);
	}
}

static void end_file(struct search *s)
{
	const struct bc_chunk_table *t = &s->files.table;

	if (s->files.at >= 0 && t->count != 0)
		print_after(s, t->rows[t->count - 1].before + t->rows[t->count - 1].info.records);
}

/* ---- the search */

static void search_forward(struct search *s)
{
	struct bc_find *f = s->find;

	for (int i = 0; i < s->files.count && !bc_find_is_over(f); i++) {
		if (!open_to_search(s, i))
			continue;
		for (uint32_t row = 0; row < s->files.table.count && !bc_find_is_over(f); row++) {
			uint32_t hits = search_row(s, row);
			if (f->is_count)
				f->matches += hits;
			else
				print_hits(s, row, hits, 0);
		}
		end_file(s);
	}
}

static bool add_found(struct search *s, uint32_t row, uint32_t hits)
{
	if (s->found_count == s->found_capacity) {
		size_t more = s->found_capacity == 0 ? 64 : 2 * s->found_capacity;
		struct found *grown = reallocarray(s->found, more, sizeof(*grown));
		if (grown == NULL)
			return false;
		s->found = grown;
		s->found_capacity = more;
	}
	s->found[s->found_count++] = (struct found){s->files.at, row, hits};
	return true;
}

/* Collects the chunks with the last matches. Returns the number of their matches. */
static uint64_t search_backward(struct search *s)
{
	uint64_t total = 0;

	for (int i = s->files.count - 1; i >= 0 && total < s->find->last; i--) {
		if (!open_to_search(s, i))
			continue;
		for (uint32_t row = s->files.table.count; row-- != 0 && total < s->find->last;) {
			uint32_t hits = search_row(s, row);
			if (hits == 0)
				continue;
			if (!add_found(s, row, hits)) {
				s->find->exit = bc_print_no_memory(s->find->console);
				return total;
			}
			total += hits;
		}
	}
	return total;
}

static void print_last(struct search *s)
{
	uint64_t total = search_backward(s);
	uint64_t skip = total > s->find->last ? total - s->find->last : 0;

	for (size_t i = s->found_count; i-- != 0; skip = 0) {
		const struct found *found = &s->found[i];
		if (s->files.at != found->file)
			end_file(s);
		if (!open_file(s, found->file) || found->row >= s->files.table.count)
			continue;
		uint32_t hits = search_row(s, found->row);
		print_hits(s, found->row, hits, skip);
	}
	end_file(s);
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
	const struct bc_find *f = s->find;
	struct bc_chunk *chunk = &s->chunks[0].chunk;

	if (!bc_segment_files_read(&s->files, row, chunk))
		return;
	for (uint32_t i = 0; i < chunk->info.events; i++) {
		const struct bc_event *event = &chunk->events[i];
		struct place place = {s->files.at, row, event->position};
		if (f->after_mark != NULL && !*has_begin && is_mark(chunk, event, f->after_mark)) {
			s->begin = place;
			*has_begin = true;
		}
		if (f->before_mark != NULL && is_mark(chunk, event, f->before_mark)) {
			s->end = place;
			*has_end = true;
		}
	}
}

static bool complain_mark(struct search *s, const char *option, const char *text)
{
	bc_print_error(s->find->console, NULL, "%s: no mark or trigger \"%s\"", option, text);
	s->find->exit = bc_exit_worse(s->find->exit, BC_EXIT_FAILED);
	return false;
}

/* Finds where --after-mark and --before-mark begin and end the search. Returns false if there is no
 * such mark. */
static bool set_marks(struct search *s)
{
	const struct bc_find *f = s->find;
	bool has_begin = f->after_mark == NULL;
	bool has_end = f->before_mark == NULL;

	if (has_begin && has_end)
		return true;
	for (int i = 0; i < s->files.count; i++) {
		if (!open_file(s, i))
			continue;
		for (uint32_t row = 0; row < s->files.table.count; row++)
			if (s->files.table.rows[row].info.events != 0)
				find_marks(s, row, &has_begin, &has_end);
	}
	if (!has_begin)
		return complain_mark(s, "--after-mark", f->after_mark);
	return has_end || complain_mark(s, "--before-mark", f->before_mark);
}

/* Makes times relative to the start absolute. */
static void set_start(struct search *s)
{
	const struct bc_filter_args *args = &s->find->args;
	bool is_relative = args->from_is_relative || args->to_is_relative;

	for (int i = 0; i < s->files.count && is_relative; i++)
		if (open_file(s, i) && s->files.table.count != 0) {
			bc_filter_args_start(&s->find->args, s->files.table.rows[0].info.wall_ns);
			is_relative = false;
		}
}

void bc_find_segments(struct bc_find *find, char *const *paths, int count)
{
	struct search *s = calloc(1, sizeof(*s));
	struct loaded *chunks = calloc(2, sizeof(*chunks));

	if (s == NULL || chunks == NULL ||
		!bc_segment_files_init(&s->files, find->console, paths, count)) {
		find->exit = bc_print_no_memory(find->console);
		goto out;
	}
	s->find = find;
	s->end.file = count;
	s->chunks = chunks;
	set_start(s);
	s->has_query = bc_filter_page_query(&find->args.filter, &s->query);
	if (set_marks(s)) {
		if (find->last != 0)
			print_last(s);
		else
			search_forward(s);
	}
	find->exit = bc_exit_worse(find->exit, s->files.exit);
	bc_segment_files_free(&s->files);
	free(s->found);
out:
	free(chunks);
	free(s);
}
