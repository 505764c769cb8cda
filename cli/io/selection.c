/* Selects entries. Segments and BYU files are filtered as records, 64 at a time; only those that
 * match become entries, unless all of a segment's records up to the next event do: they stay a run.
 * Which match is found by the threads that decode a segment's chunks, if they have time.
 * Everything else is filtered entry by entry.
 *
 * Invariant: the sum of the deltas passed on up to an entry is its absolute tick. A kept entry
 * after dropped ones (has_skipped) therefore gets the ticks since the last kept one. If the ticks
 * of a dropped one are unknown (is_delta_lost), so is the delta; a segment then gets an anchor with
 * the absolute tick. Clocks restart with each file or, in segments, with each recording. */
#include "cli/io/selection.h"

#include <stdlib.h>

static bool get_bounds(
	struct bc_selection *s, const struct bc_chunk_info *info, struct bc_filter_bounds *bounds)
{
	struct bc_trace *trace = s->trace;
	const struct bc_segment_header *header = trace->is_open ? bc_reader_header(trace->reader)
								: NULL;
	uint64_t clock_hz = header != NULL ? header->clock_hz : 0;

	return bc_filter_args_chunk(&s->args, s->console, trace->file.name, info, clock_hz, bounds);
}

static bool selects_chunk(void *context, const struct bc_chunk_info *info)
{
	struct bc_filter_bounds bounds;

	return get_bounds(context, info, &bounds);
}

#define PARTS ((BC_CHUNK_RECORDS - 1) / BC_FILTER_RECORDS + 1)

/* What bc_filter_records() returns for the parts of a chunk. */
struct matches {
	const struct bc_filter *filter;
	uint64_t bits[PARTS];
	uint64_t ticks[PARTS];
};

static void *open_matches(void *context)
{
	const struct bc_selection *s = context;
	const struct bc_filter *f = &s->args.filter;
	bool is_needed = f->has_addr || f->has_types || f->has_procs;
	struct matches *m = is_needed ? malloc(sizeof(*m)) : NULL;

	if (m != NULL)
		m->filter = f;
	return m;
}

static void find_matches(void *result, const struct bc_chunk_info *info, const uint8_t *records)
{
	struct matches *m = result;
	size_t left = info->records;

	for (size_t i = 0; left != 0; i++) {
		size_t n = left < BC_FILTER_RECORDS ? left : BC_FILTER_RECORDS;
		m->bits[i] = bc_filter_records(m->filter, records, n, &m->ticks[i]);
		records += n * BC_RECORD_BYTES;
		left -= n;
	}
}

void bc_selection_read(struct bc_selection *s, struct bc_reader_options *options)
{
	/* Few records match an address. */
	s->work = (struct bc_chunk_work){
		open_matches, free, find_matches, s, s->args.filter.has_addr};
	options->work = &s->work;
	options->as_records = true; /* of BYU files */
	options->as_runs = true;    /* of segments */
	options->needs_chunk = selects_chunk;
	options->context = s;
}

/* Passes on the collected entries. */
static void flush_entries(struct bc_selection *s)
{
	if (s->n != 0 && !s->is_over)
		s->is_over = !s->add(s->context, s->entries, s->n);
	s->n = 0;
}

/* Forgets the entries before, because the ticks that follow have another clock. */
static void start_clock(struct bc_selection *s)
{
	s->has_last = false;
	s->is_delta_lost = false;
	s->is_inexact = false;
}

/* Adds the ticks of dropped entries to the delta of the next kept one. The first kept entry of a
 * file counts from tick 0, so that deltas add up to the tick; so does one out of order. */
static void update_delta(struct bc_selection *s, struct bc_entry *entry)
{
	bool has_base = s->has_last && s->last_epoch == entry->epoch && entry->tick >= s->last_tick;
	bool is_short = s->to == BC_FORMAT_BYU || s->to == BC_FORMAT_BYU16 ||
			s->to == BC_FORMAT_BYU_BE;

	if (s->as_found || !entry->has_delta || !s->has_skipped || entry->delta == BC_TIME_NONE)
		return;
	entry->delta = entry->tick - (has_base ? s->last_tick : 0);
	if (s->is_delta_lost || (!has_base && s->to == BC_FORMAT_SEGMENT)) {
		entry->delta = BC_TIME_NONE; /* a segment gets an anchor with the absolute tick */
	} else if (is_short && entry->delta >= BC_TIME_NONE) {
		entry->delta = BC_TIME_NONE;
		s->long_deltas += has_base;
	}
}

/* Returns space for an entry to keep. */
static struct bc_entry *next_entry(struct bc_selection *s)
{
	if (s->n == BC_SELECTION_ENTRIES)
		flush_entries(s);
	return &s->entries[s->n];
}

/* Keeps the entry there. */
static void keep_entry(struct bc_selection *s)
{
	struct bc_entry *kept = &s->entries[s->n++];

	if (kept->kind == BC_ENTRY_EVENT) {
		s->events += kept->note.event.kind != 0; /* that is a new epoch */
		return;
	}
	update_delta(s, kept);
	s->has_last = true;
	s->last_tick = kept->tick;
	s->last_epoch = kept->epoch;
	s->has_skipped = false;
	s->is_delta_lost = false;
	s->kept++;
}

/* Drops an entry. If its delta is unknown, the next kept delta is unknown too, unless the tick of
 * the dropped entry is known from an anchor or because it is the first of the trace. */
static void skip_entry(struct bc_selection *s, uint64_t delta, bool is_inexact)
{
	s->has_skipped = true;
	s->is_delta_lost |= delta == BC_TIME_NONE && is_inexact;
}

static bool in_bounds(const struct bc_filter_bounds *bounds, uint64_t number, uint64_t tick)
{
	return bc_span_has(bounds->numbers, number) && bc_span_has(bounds->ticks, tick);
}

/* Handles up to BC_FILTER_RECORDS records, some of which match, one by one. */
static void select_some(struct bc_selection *s, struct bc_record_run *run,
	const struct bc_filter_bounds *bounds, size_t n, uint64_t bits)
{
	bool is_plain = s->trace->format != BC_FORMAT_SEGMENT;

	for (size_t i = 0; i < n; i++) {
		uint32_t time = bc_le32(run->records + 8);
		uint64_t ticks = time != BC_TIME_NONE ? time : 0;
		uint64_t tick = run->tick + ticks;
		run->is_inexact |= is_plain && time == BC_TIME_NONE && run->number != 0;
		if ((bits >> i & 1) != 0 && in_bounds(bounds, run->number, tick)) {
			struct bc_entry *entry = next_entry(s);
			bc_entry_of_record(entry, run->records, run->number, tick);
			entry->epoch = run->epoch;
			entry->is_inexact = run->is_inexact;
			keep_entry(s);
		} else {
			skip_entry(s, time, run->is_inexact);
		}
		bc_record_run_skip(run, 1, ticks);
	}
}

/* Returns true if one of these records has no delta. */
static bool has_no_delta(const uint8_t *records, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bc_le32(records + i * BC_RECORD_BYTES + 8) == BC_TIME_NONE)
			return true;
	return false;
}

/* Passes on a run of a segment if all of it matches: the first record alone, if it needs another
 * delta. Returns false, and does nothing, if some may not match. */
static bool pass_run(
	struct bc_selection *s, struct bc_record_run *run, const struct bc_filter_bounds *bounds)
{
	const struct bc_filter *f = &s->args.filter;
	uint32_t time = bc_le32(run->records + 8);
	uint64_t first_tick = run->tick + (time != BC_TIME_NONE ? time : 0);

	if (f->has_addr || f->has_types || f->has_procs || s->trace->format != BC_FORMAT_SEGMENT ||
		!in_bounds(bounds, run->number, first_tick) ||
		!bc_span_has(bounds->numbers, run->number + run->count - 1))
		return false;
	uint64_t tick = bc_records_ticks(run->records, run->count, run->tick);
	if (!bc_span_has(bounds->ticks, tick))
		return false;
	if (s->has_skipped)
		select_some(s, run, bounds, 1, 1);
	flush_entries(s);
	s->is_over = s->is_over || !s->add_run(s->context, *run);
	s->has_last = true;
	s->last_tick = tick;
	s->last_epoch = run->epoch;
	s->kept += run->count;
	return true;
}

/* Filters records, 64 at a time: bc_filter_records() returns a bitmap of those that match, unless a
 * thread has already found them (`found`). In a segment only the first record of a run can lack a
 * delta; its tick is known from the anchor. */
static void select_run(struct bc_selection *s, struct bc_record_run *run,
	const struct bc_filter_bounds *bounds, const struct matches *found)
{
	bool is_plain = s->trace->format != BC_FORMAT_SEGMENT;

	if (run->count == 0 || pass_run(s, run, bounds))
		return;
	for (size_t i = 0; run->count != 0 && !s->is_over; i++) {
		size_t part = run->count < BC_FILTER_RECORDS ? run->count : BC_FILTER_RECORDS;
		uint64_t ticks;
		uint64_t bits;
		if (found != NULL) {
			bits = found->bits[i];
			ticks = found->ticks[i];
		} else {
			bits = bc_filter_records(&s->args.filter, run->records, part, &ticks);
		}
		bool is_out = run->number + part <= bounds->numbers.first ||
			      run->number > bounds->numbers.last ||
			      run->tick + ticks < bounds->ticks.first ||
			      run->tick > bounds->ticks.last;
		if (bits != 0 && !is_out) {
			select_some(s, run, bounds, part, bits);
		} else if (bc_le32(run->records + 8) == BC_TIME_NONE ||
			   (is_plain && has_no_delta(run->records, part))) {
			select_some(s, run, bounds, part, 0);
		} else {
			s->has_skipped = true;
			bc_record_run_skip(run, part, ticks);
		}
	}
}

/* Selects from a part of a chunk: events, then records. Events are kept if the next record is in
 * the bounds; after the chunk's last record, that one decides. */
static void select_segment(struct bc_selection *s, const struct bc_batch *batch)
{
	const struct bc_chunk_info *info = batch->chunk_info;
	struct bc_record_run run = batch->run;
	uint64_t end = info->first_record + info->records;
	uint64_t next = batch->count != 0 ? batch->entries[0].number : run.number;
	struct bc_filter_bounds bounds;

	if (s->tag != info->recording_tag) {
		start_clock(s);
		s->tag = info->recording_tag;
		s->next_number = 0;
	}
	/* Chunks before this one were not needed or are missing. */
	s->has_skipped |= next != s->next_number;
	s->next_number = run.count != 0 ? run.number + run.count : next;
	if (!get_bounds(s, info, &bounds))
		return; /* can't happen: the reader has asked */
	for (size_t i = 0; i < batch->count; i++) {
		struct bc_entry *event = next_entry(s);
		*event = batch->entries[i];
		event->number -= event->number == end && end != 0;
		/* Kind 0 announces an epoch; the records have it, too. */
		if (event->note.event.kind != 0 && in_bounds(&bounds, event->number, event->tick))
			keep_entry(s);
	}
	select_run(s, &run, &bounds, batch->result);
}

/* Selects plain records. Their numbers and ticks restart with each file. */
static void select_records(struct bc_selection *s, const struct bc_batch *batch)
{
	const struct bc_filter *f = &s->args.filter;
	struct bc_record_run run = batch->run;

	run.is_inexact = s->is_inexact;
	select_run(s, &run, &(struct bc_filter_bounds){.numbers = f->numbers, .ticks = f->ticks},
		NULL);
	s->is_inexact = run.is_inexact;
}

/* Selects entries. Those of one line are kept or dropped together. */
static void select_entries(struct bc_selection *s, const struct bc_entry *entries, size_t count)
{
	for (size_t i = 0; i < count && !s->is_over;) {
		bool is_wanted = false;
		size_t end = i;
		do
			is_wanted |= bc_filter_entry(&s->args.filter, &entries[end++]);
		while (end < count && entries[end].is_continued);
		for (; i < end; i++) {
			if (is_wanted) {
				*next_entry(s) = entries[i];
				keep_entry(s);
			} else if (entries[i].kind != BC_ENTRY_EVENT) {
				skip_entry(s, entries[i].has_delta ? entries[i].delta : 0,
					entries[i].is_inexact);
			}
		}
	}
}

/* True if no later entry of the file can match: numbers increase. Segments: selects_chunk(). */
static bool is_past_end(const struct bc_selection *s, const struct bc_batch *batch)
{
	uint64_t last = s->args.filter.numbers.last;

	if (s->trace->format == BC_FORMAT_SEGMENT || last == UINT64_MAX)
		return false;
	if (batch->count != 0)
		return batch->entries[batch->count - 1].number > last;
	return batch->run.count != 0 && batch->run.number + batch->run.count > last;
}

bool bc_selection_add(struct bc_selection *s, const struct bc_batch *batch)
{
	if (s->file != s->trace->next) {
		s->file = s->trace->next;
		if (s->trace->format != BC_FORMAT_SEGMENT)
			start_clock(s);
	}
	if (batch->chunk_info != NULL)
		select_segment(s, batch);
	else if (batch->run.count != 0)
		select_records(s, batch);
	else
		select_entries(s, batch->entries, batch->count);
	flush_entries(s); /* their texts are the batch's */
	if (is_past_end(s, batch))
		bc_trace_skip_file(s->trace);
	return !s->is_over;
}
