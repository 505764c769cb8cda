/* Reads segments. The records of each chunk become entries, with the chunk's events between them.
 * Missing and damaged chunks become faults, and so does each run of duplicates.
 *
 * If the caller filters chunks (needs_chunk) and the file has an index, only the runs of chunks
 * that are needed are read. Otherwise the file is read from start to end. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/bus/chunk.h"
#include "formats/codec/reader_internal.h"
#include "formats/segment/segment_index.h"
#include "formats/segment/segment_reader.h"

/* A run of duplicate chunks that is still to be reported. */
struct duplicates {
	uint64_t offset;
	uint64_t bytes;
	uint64_t records;
	uint32_t first; /* number of the first one */
	uint32_t count; /* 0: none */
};

struct chunk_state {
	struct bc_segment_reader *reader;
	struct bc_segment_index index; /* rows is NULL: read from start to end */
	uint32_t row;                  /* next row of the index */
	bool is_open;                  /* reading from start to end: no index has been found yet */
	bool has_started;
	bool is_over;
	bool has_chunk; /* records [next, info.records) of the chunk are still to be returned */
	uint32_t next;
	uint32_t event;  /* and events from this one on */
	uint64_t tick;   /* of the previous record */
	bool is_inexact; /* `tick` is only a lower bound */
	bool has_epoch;
	uint32_t epoch;
	struct bc_sequence_check own;
	struct bc_sequence_check *sequence;
	struct duplicates duplicates;
	int found;    /* by the last read: enum bc_segment_found or a negative errno */
	bool is_held; /* it is not handled yet: duplicates before it are reported first */
	int place;    /* of the chunk, if one was found: enum bc_sequence_place */
	bool is_after_hole;
	struct bc_missing missing;
	struct bc_chunk chunk;
};

static int open_chunks(struct bc_reader *r)
{
	struct chunk_state *c = malloc(sizeof(*c));

	if (c == NULL)
		return -ENOMEM;
	memset(c, 0, offsetof(struct chunk_state, chunk));
	r->state = c;
	c->sequence = r->options.sequence != NULL ? r->options.sequence : &c->own;
	if (r->options.needs_chunk != NULL && r->options.index_fd >= 0 &&
		bc_segment_index_load(&c->index, r->options.index_fd) != 0)
		c->index.rows = NULL;
	c->is_open = c->index.rows == NULL;
	int rc = bc_input_segments(r->input, &c->reader);
	if (rc != 0 || c->index.rows == NULL)
		return rc;
	/* Read the header first, and nothing after it. */
	struct bc_chunk_info info;
	uint64_t end = c->index.head.offset;
	if (c->index.head.rows != 0)
		end = bc_segment_index_row(&c->index, 0, &info);
	return bc_segment_reader_range(c->reader, 0, end);
}

static void close_chunks(struct bc_reader *r)
{
	struct chunk_state *c = r->state;

	if (c == NULL)
		return;
	bc_segment_reader_close(c->reader);
	bc_segment_index_free(&c->index);
	bc_sequence_check_reset(&c->own);
	free(c);
}

static bool is_needed(void *reader, const struct bc_chunk_info *info)
{
	const struct bc_reader *r = reader;

	return r->options.needs_chunk == NULL || r->options.needs_chunk(r->options.context, info);
}

static int set_fault(struct bc_reader *r, struct bc_batch *batch, uint64_t offset, uint64_t bytes,
	const char *what)
{
	r->fault = (struct bc_fault){.offset = offset, .bytes = bytes};
	snprintf(r->fault.what, sizeof(r->fault.what), "%s", what);
	batch->fault = &r->fault;
	return 1;
}

/* Whether needed records are missing between the chunks read before and this one. */
static bool follows_hole(
	struct bc_reader *r, const struct chunk_state *c, const struct bc_chunk_info *info)
{
	uint64_t clock_hz = r->header != NULL ? r->header->clock_hz : 0;

	/* First the chunk itself: times may be relative to the first one that is asked about. */
	(void)is_needed(r, info);
	return bc_sequence_check_misses(c->sequence, info, clock_hz, is_needed, r);
}

/* A chunk that is skipped is not missing. One before the expected record is a duplicate. */
static void skip_chunk(struct chunk_state *c, const struct bc_chunk_info *info)
{
	const struct bc_sequence_check *check = c->sequence;

	if (!check->has_recording || check->tag != info->recording_tag ||
		check->next <= info->first_record)
		bc_sequence_check_skip(c->sequence, info);
}

/* Moves the reader to the next run of chunks that are needed. Returns 1, 0 if there are none, or a
 * negative errno. */
static int next_range(struct bc_reader *r, struct chunk_state *c)
{
	struct bc_chunk_info info;

	while (c->row < c->index.head.rows) {
		uint64_t begin = bc_segment_index_row(&c->index, c->row, &info);
		uint64_t end = begin;
		/* After missing records that are needed, the first chunk is read to report them. */
		bool is_read = c->row == 0 && follows_hole(r, c, &info);
		while (c->row < c->index.head.rows) {
			bc_segment_index_row(&c->index, c->row, &info);
			if (!is_read && !is_needed(r, &info))
				break;
			is_read = false;
			end += bc_chunk_encoded_bytes(&info);
			c->row++;
		}
		if (end == begin) {
			skip_chunk(c, &info);
			c->row++;
			continue;
		}
		int rc = bc_segment_reader_range(c->reader, begin, end);
		return rc < 0 ? rc : 1;
	}
	return 0;
}

/* Adds a gap at the start of a chunk for what is missing before it. */
static void insert_gap(
	struct bc_chunk *chunk, enum bc_gap_cause cause, uint64_t missing, bool is_exact)
{
	if (chunk->info.events == BC_CHUNK_EVENTS)
		return; /* no room; the fault reports it anyway */
	memmove(chunk->events + 1, chunk->events, chunk->info.events * sizeof(chunk->events[0]));
	chunk->events[0] = (struct bc_event){
		.kind = BC_EVENT_GAP, .cause = (uint8_t)cause, .exact = is_exact, .value = missing};
	chunk->info.events++;
}

/* Reports what is missing before a chunk, and adds gaps for it. */
static void report_missing(struct bc_reader *r, struct chunk_state *c, struct bc_batch *batch)
{
	const struct bc_chunk_info *info = &c->chunk.info;
	const struct bc_missing *missing = &c->missing;
	char what[128];

	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++)
		if (missing->lost[cause] != 0)
			insert_gap(&c->chunk, cause, missing->lost[cause], false);
	if (missing->records != 0)
		insert_gap(&c->chunk, BC_GAP_DAMAGED, missing->records, true);
	if (bc_is_missing(&missing->place)) {
		bc_missing_write(what, &missing->place);
	} else {
		snprintf(what, sizeof(what),
			"%" PRIu64 " sample%s lost before chunk %" PRIu32 ", but no gap reports %s",
			missing->samples, missing->samples == 1 ? " was" : "s were", info->number,
			missing->samples == 1 ? "it" : "them");
	}
	set_fault(r, batch, bc_segment_reader_offset(c->reader), 0, what);
	r->fault.is_before = missing->place.count != 0;
}

/* Reads on until it finds something other than a duplicate chunk. Sets `found`. */
static void read_past_duplicates(struct bc_reader *r, struct chunk_state *c)
{
	const struct bc_chunk_info *info = &c->chunk.info;
	struct duplicates *d = &c->duplicates;

	for (;;) {
		c->found = bc_segment_read(c->reader, &c->chunk);
		r->header = bc_segment_reader_header(c->reader);
		if (c->found != BC_FOUND_CHUNK)
			return;
		c->has_started = true;
		c->is_after_hole = follows_hole(r, c, info);
		c->place = bc_sequence_check_chunk(c->sequence, &c->chunk, &c->missing);
		if (c->place < 0)
			c->found = c->place;
		if (c->place != BC_SEQUENCE_DUPLICATE)
			return;
		if (d->count++ == 0)
			*d = (struct duplicates){.offset = bc_segment_reader_offset(c->reader),
				.first = info->number,
				.count = 1};
		d->bytes += bc_chunk_encoded_bytes(info);
		d->records += info->records;
	}
}

static int report_duplicates(struct bc_reader *r, struct chunk_state *c, struct bc_batch *batch)
{
	const struct duplicates d = c->duplicates;
	const char *plural = d.records == 1 ? "" : "s";
	char what[128];

	c->duplicates.count = 0;
	if (d.count == 1)
		snprintf(what, sizeof(what),
			"chunk %" PRIu32 " (%" PRIu64 " record%s) is a duplicate; skipped", d.first,
			d.records, plural);
	else
		snprintf(what, sizeof(what),
			"%" PRIu32 " chunks from chunk %" PRIu32 " on (%" PRIu64
			" record%s) are duplicates; skipped",
			d.count, d.first, d.records, plural);
	return set_fault(r, batch, d.offset, d.bytes, what);
}

/* Starts a chunk, unless it is not needed. Returns 1 for a fault, or 0. */
static int start_chunk(struct bc_reader *r, struct chunk_state *c, struct bc_batch *batch)
{
	const struct bc_chunk_info *info = &c->chunk.info;
	const struct bc_missing *missing = &c->missing;
	char what[128];

	c->has_chunk = is_needed(r, info);
	c->next = 0;
	c->event = 0;
	c->tick = info->first_tick;
	if (c->place == BC_SEQUENCE_LATE) {
		snprintf(what, sizeof(what),
			"chunk %" PRIu32 " is out of order: later chunks precede it", info->number);
		return set_fault(r, batch, bc_segment_reader_offset(c->reader),
			bc_chunk_encoded_bytes(info), what);
	}
	if (missing->records != 0
			? !c->is_after_hole
			: !c->has_chunk || (missing->samples == 0 && missing->place.count == 0))
		return 0;
	report_missing(r, c, batch);
	c->has_chunk = is_needed(r, info); /* it has the gaps now */
	return 1;
}

/* Reports a segment without an index, unless damage explains it. Returns 1 for a fault. */
static int end_segment(struct bc_reader *r, struct chunk_state *c, struct bc_batch *batch)
{
	bool was_open = c->is_open;

	c->is_open = false;
	if (!was_open || r->options.is_partial)
		return 0;
	return set_fault(r, batch, bc_segment_reader_offset(c->reader), 0,
		"no index: the segment was cut off or is not sealed; all whole chunks were read");
}

/* Reads the next chunk. Returns 1 for a fault, 0, or a negative errno. */
static int find_chunk(struct bc_reader *r, struct chunk_state *c, struct bc_batch *batch)
{
	bool is_whole = c->index.rows == NULL;
	int rc = 0;

	if (!c->is_held)
		read_past_duplicates(r, c);
	c->is_held = c->duplicates.count != 0;
	if (c->is_held)
		return report_duplicates(r, c, batch);
	if (c->found < 0)
		return c->found;
	switch ((enum bc_segment_found)c->found) {
	case BC_FOUND_SEGMENT:
		bc_sequence_check_expect(c->sequence, r->header);
		rc = c->has_started ? end_segment(r, c, batch) : 0;
		/* Only now: needs_chunk() may ask for the header. */
		if (!c->has_started && r->options.index_fd >= 0 && !r->options.is_one_of_many)
			bc_segment_reader_decode_ahead(c->reader, r->options.index_fd,
				r->options.needs_chunk, r->options.context);
		c->has_started = true;
		c->is_open = is_whole;
		return rc;
	case BC_FOUND_CHUNK:
		return start_chunk(r, c, batch);
	case BC_FOUND_INDEX:
		c->is_open = false;
		return 0;
	case BC_FOUND_DAMAGE: {
		const struct bc_segment_damage *d = bc_segment_reader_damage(c->reader);
		c->is_open = false;
		return set_fault(r, batch, d->offset, d->bytes, d->what);
	}
	case BC_FOUND_END:
		break;
	}
	if (!is_whole) {
		rc = next_range(r, c);
		c->is_over = rc == 0;
		return rc < 0 ? rc : 0;
	}
	c->is_over = true;
	return end_segment(r, c, batch);
}

/* The tick of the next record, or at the end of the chunk, that of the previous one. `time` is the
 * next record's. */
static uint64_t next_tick(const struct chunk_state *c, uint32_t time)
{
	const struct bc_chunk_info *info = &c->chunk.info;

	if (c->next == 0 || c->next == info->records)
		return c->tick;
	if (time != BC_TIME_NONE)
		return c->tick + time;
	for (uint32_t i = c->event; i < info->events && c->chunk.events[i].position <= c->next; i++)
		if (c->chunk.events[i].kind == BC_EVENT_ANCHOR)
			return c->chunk.events[i].value;
	return c->tick;
}

static void add_event(struct bc_reader *r, const struct chunk_state *c, struct bc_batch *batch,
	const struct bc_event *event, uint32_t time)
{
	struct bc_entry *entry = &r->entries[batch->count++];

	bc_entry_reference(entry, 0, 0, c->chunk.info.first_record + c->next);
	entry->kind = BC_ENTRY_EVENT;
	entry->tick = next_tick(c, time);
	entry->epoch = c->chunk.info.epoch;
	entry->is_inexact = c->is_inexact;
	entry->note.event = *event;
	entry->note.text = (struct bc_text){
		.at = c->chunk.text + event->text, .bytes = event->text_bytes};
}

/* An anchor holds the tick of a record without a delta. The first record's tick is in the
 * header. */
static void apply_anchor(struct chunk_state *c, const struct bc_event *anchor, uint32_t time)
{
	if (time != BC_TIME_NONE)
		return;
	if (c->next != 0)
		c->tick = anchor->value;
	c->is_inexact = !anchor->exact;
}

/* Returns as many records and events of the chunk as fit. */
static void next_entries(struct bc_reader *r, struct chunk_state *c, struct bc_batch *batch)
{
	const struct bc_chunk_info *info = &c->chunk.info;

	if (c->next == 0 && c->event == 0) {
		if (c->has_epoch && c->epoch != info->epoch)
			add_event(r, c, batch, &(struct bc_event){.kind = 0}, 0);
		c->is_inexact = c->is_inexact && c->has_epoch && c->epoch == info->epoch;
		c->has_epoch = true;
		c->epoch = info->epoch;
	}
	batch->chunk_info = info;
	while (batch->count < BC_READER_ENTRIES) {
		const uint8_t *record = c->chunk.records + (size_t)c->next * BC_RECORD_BYTES;
		const struct bc_event *event = &c->chunk.events[c->event];
		uint32_t time = c->next < info->records ? bc_le32(record + 8) : 0;
		if (c->event < info->events && event->position <= c->next) {
			c->event++;
			if (event->kind == BC_EVENT_ANCHOR)
				apply_anchor(c, event, time);
			else if (event->kind < BC_EVENT_END) /* that describes the file */
				add_event(r, c, batch, event, time);
			continue;
		}
		if (c->next == info->records) {
			c->has_chunk = false;
			return;
		}
		c->tick += c->next != 0 && time != BC_TIME_NONE ? time : 0;
		struct bc_entry *entry = &r->entries[batch->count++];
		bc_entry_of_record(entry, record, info->first_record + c->next, c->tick);
		entry->epoch = info->epoch;
		entry->is_inexact = c->is_inexact;
		c->next++;
	}
}

static int next_chunk(struct bc_reader *r, struct bc_batch *batch)
{
	struct chunk_state *c = r->state;

	while (batch->count == 0) {
		if (c->has_chunk && r->options.as_records) {
			c->has_chunk = false;
			batch->records = c->chunk.records;
			batch->record_count = c->chunk.info.records;
			batch->first_number = c->chunk.info.first_record;
			batch->tick = bc_chunk_tick_before(&c->chunk);
			batch->chunk = &c->chunk;
			batch->chunk_info = &c->chunk.info;
			return 1;
		}
		if (c->has_chunk) {
			next_entries(r, c, batch);
			continue;
		}
		if (c->is_over)
			return 0;
		int rc = find_chunk(r, c, batch);
		if (rc != 0)
			return rc;
	}
	return 1;
}

const struct bc_reader_kind bc_chunk_reader = {
	.open = open_chunks, .next = next_chunk, .close = close_chunks};
