/* Reads traces of three kinds: frames (bcp1), chunks (segments), and blocks of lines or of records
 * of a fixed size. Each kind has a state and the functions of a struct reader_kind.
 *
 * A kind's next() returns a batch as soon as it has entries, a run or a fault. Its state says where
 * to go on, so whatever comes after a fault is found by the next call: entries come in order, and
 * each fault once, where it is. Text in entries points into the state until the next call.
 */
#include "formats/codec/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/base/text.h"
#include "formats/base/utf8.h"
#include "formats/bus/bcp1.h"
#include "formats/bus/record.h"
#include "formats/bus/sample.h"
#include "formats/codec/format.h"
#include "formats/segment/segment_index.h"
#include "formats/segment/segment_reader.h"

#define READER_ENTRIES 192

struct reader_kind {
	int (*open)(struct bc_reader *reader); /* sets reader->state */
	int (*next)(struct bc_reader *reader, struct bc_batch *batch);
	/* As bc_reader_run(), from the reference with this number on. */
	bool (*run)(const struct bc_reader *reader, uint64_t number, struct bc_reader_run *run);
	void (*skip)(struct bc_reader *reader, const struct bc_entry *entry, size_t n);
	void (*close)(struct bc_reader *reader); /* state may be NULL */
};

struct bc_reader {
	const struct reader_kind *kind;
	struct bc_input *input;
	enum bc_format format;
	const struct bc_format_info *info;
	const struct bc_parser *parser;
	struct bc_reader_options options;
	bc_traits traits; /* of the entries */
	bool has_wall;
	void *state;
	const struct bc_segment_header *header;
	struct bc_fault fault;
	struct bc_entry entries[READER_ENTRIES];
};

/* Ends a batch with a fault at an offset. Returns 1. */
static int __attribute__((format(printf, 5, 6))) set_fault(struct bc_reader *r,
	struct bc_batch *batch, uint64_t offset, uint64_t bytes, const char *format, ...)
{
	va_list args;

	r->fault = (struct bc_fault){.offset = offset, .bytes = bytes};
	va_start(args, format);
	vsnprintf(r->fault.what, sizeof(r->fault.what), format, args);
	va_end(args);
	batch->fault = &r->fault;
	return 1;
}

/* ---- frames: samples become entries, gaps and damage between frames events and faults */

struct frame_state {
	struct bc_frames *frames;
	bool has_frame; /* samples [next, header.samples) of the current frame are still to be
			   returned */
	uint32_t next;
	uint64_t tick;   /* of the previous sample */
	uint64_t number; /* of the next sample */
	bool has_epoch;
	uint32_t epoch; /* of the last entry */
	bool is_over;
	struct bc_mapping mapping;
};

static int open_frames(struct bc_reader *r)
{
	struct frame_state *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return -ENOMEM;
	r->state = f;
	bc_mapping_init(&f->mapping, NULL);
	return bc_frames_open(&f->frames, bc_input_stream(r->input));
}

static void close_frames(struct bc_reader *r)
{
	struct frame_state *f = r->state;

	if (f == NULL)
		return;
	bc_frames_close(f->frames);
	free(f);
}

/* Returns as many samples of the frame as fit. */
static void next_samples(struct bc_reader *r, struct frame_state *f, struct bc_batch *batch)
{
	const struct bc_bcp1_header *header = &f->frames->frame.header;
	bool has_agent = (header->flags & BC_BCP1_AGENT) != 0;

	while (f->next < header->samples && batch->count < READER_ENTRIES) {
		const uint8_t *sample = f->frames->frame.samples +
					(size_t)f->next * BC_BCP1_SAMPLE_BYTES;
		struct bc_entry *entry = &r->entries[batch->count++];
		f->tick += f->next != 0 ? bc_le16(sample + BC_SAMPLE_BYTES) : 0;
		bc_entry_of_sample(entry, sample, &f->mapping,
			has_agent ? sample[5] & 15 : header->proc, f->number++, f->tick);
		entry->epoch = f->epoch;
		f->next++;
	}
	f->has_frame = f->next < header->samples;
}

static void add_frame_event(
	struct bc_reader *r, struct frame_state *f, struct bc_batch *batch, struct bc_event event)
{
	struct bc_entry *entry = &r->entries[batch->count++];

	bc_entry_of_event(
		entry, &event, "", f->number, f->frames->frame.header.tick, f->frames->epoch);
}

static void start_frame(struct bc_reader *r, struct frame_state *f, struct bc_batch *batch)
{
	if (f->frames->frame.header.samples == 0)
		return;
	if (f->has_epoch && f->epoch != f->frames->epoch)
		add_frame_event(r, f, batch, (struct bc_event){.kind = 0});
	f->has_epoch = true;
	f->epoch = f->frames->epoch;
	f->has_frame = true;
	f->next = 0;
	f->tick = f->frames->frame.header.tick;
}

static int next_frame(struct bc_reader *r, struct bc_batch *batch)
{
	struct frame_state *f = r->state;

	while (batch->count == 0) {
		if (f->has_frame) {
			next_samples(r, f, batch);
			break;
		}
		if (f->is_over)
			return 0;
		int rc = bc_frames_next(f->frames);
		switch (rc) {
		case BC_FRAMES_FRAME:
			start_frame(r, f, batch);
			break;
		case BC_FRAMES_GAP:
			add_frame_event(r, f, batch,
				(struct bc_event){.kind = BC_EVENT_GAP,
					.cause = (uint8_t)f->frames->gap.cause,
					.exact = f->frames->gap.is_exact,
					.value = f->frames->gap.lost});
			if (f->frames->gap.cause != BC_GAP_SEQUENCE)
				break;
			return set_fault(
				r, batch, f->frames->gap.offset, 0, "frames are missing here");
		case BC_FRAMES_TRIGGER:
			add_frame_event(r, f, batch, (struct bc_event){.kind = BC_EVENT_TRIGGER});
			break;
		case BC_FRAMES_DAMAGE:
			return set_fault(r, batch, f->frames->damage.offset,
				f->frames->damage.bytes, "%s", f->frames->damage.what);
		case BC_FRAMES_END:
			f->is_over = true;
			break;
		case -EBADMSG:
			f->is_over = true;
			return set_fault(r, batch, f->frames->whole_end, 0,
				"the compressed data is damaged or torn here");
		default:
			return rc;
		}
	}
	return 1;
}

static bool run_in_frame(const struct bc_reader *r, uint64_t number, struct bc_reader_run *run)
{
	const struct frame_state *f = r->state;
	uint64_t first = number - (f->number - f->next); /* in the frame */

	if (!f->has_frame || first >= f->next)
		return false;
	*run = (struct bc_reader_run){
		.bytes = f->frames->frame.samples + first * BC_BCP1_SAMPLE_BYTES,
		.count = f->frames->frame.header.samples - first,
		.each = BC_BCP1_SAMPLE_BYTES,
		.layout = BC_FORMAT_BCP1 << 8 | (f->frames->frame.header.flags & BC_BCP1_AGENT)};
	return true;
}

static void skip_in_frame(struct bc_reader *r, const struct bc_entry *entry, size_t n)
{
	struct frame_state *f = r->state;
	uint32_t end = f->next + (uint32_t)(entry->number + n - f->number);

	for (; f->next < end; f->next++)
		f->tick += bc_le16(f->frames->frame.samples +
				   (size_t)f->next * BC_BCP1_SAMPLE_BYTES + BC_SAMPLE_BYTES);
	f->number = entry->number + n;
	f->has_frame = end < f->frames->frame.header.samples;
}

static const struct reader_kind frame_reader = {.open = open_frames,
	.next = next_frame,
	.run = run_in_frame,
	.skip = skip_in_frame,
	.close = close_frames};

/* ---- chunks
 *
 * Reads segments. The records of each chunk become entries, with the chunk's events between them.
 * Missing and damaged chunks become faults, and so does each run of duplicates.
 *
 * If the caller filters chunks (needs_chunk) and the file has an index, only the runs of chunks
 * that are needed are read. Otherwise the file is read from start to end. */

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
	bool lacks_records; /* of the chunk: they were not needed */
	bool has_chunk;     /* records [next, info.records) of the chunk are still to be returned */
	uint32_t next;
	uint32_t event;  /* and events from this one on */
	uint64_t tick;   /* of the previous record */
	bool is_inexact; /* `tick` is only a lower bound */
	bool has_epoch;  /* a chunk has been returned */
	uint32_t epoch;
	bool has_end;              /* of the recording */
	struct bc_chunk_info last; /* chunk, needed or not */
	struct bc_sequence_check own;
	struct bc_sequence_check *sequence;
	struct duplicates duplicates;
	int found;    /* by the last read: enum bc_segment_found or a negative errno */
	bool is_held; /* it is not handled yet: duplicates before it are reported first */
	int place;    /* of the chunk, if one was found: enum bc_sequence_place */
	bool is_after_hole;
	struct bc_missing missing;
	const uint8_t *records; /* of the chunk */
	void *result;           /* of the work on all of them, or NULL */
	struct bc_chunk chunk;
};

static bool needs_records(void *reader, const struct bc_chunk *chunk)
{
	struct bc_reader *r = reader;
	struct chunk_state *c = r->state;

	c->lacks_records = !r->options.needs_records(r->options.context, chunk);
	return !c->lacks_records;
}

static int open_chunks(struct bc_reader *r)
{
	struct chunk_state *c = malloc(sizeof(*c));

	if (c == NULL)
		return -ENOMEM;
	memset(c, 0, offsetof(struct chunk_state, chunk));
	r->state = c;
	c->sequence = r->options.sequence != NULL ? r->options.sequence : &c->own;
	if (r->options.needs_chunk != NULL && r->options.index_fd >= 0 && !r->options.is_killed &&
		bc_segment_index_load(&c->index, r->options.index_fd) != 0)
		c->index.rows = NULL;
	c->is_open = c->index.rows == NULL;
	int rc = bc_input_segments(r->input, &c->reader);
	if (rc == 0 && r->options.needs_records != NULL && r->options.index_fd >= 0)
		bc_segment_reader_skip_records(c->reader, r->options.index_fd, needs_records, r);
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

/* True if needed records are missing between the chunks read so far and this one. */
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

/* Moves the reader to the next chunks that are needed. Returns 1, 0: none, or a negative errno. */
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
	char what[BC_MISSING_TEXT];

	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++)
		if (missing->lost[cause] != 0)
			insert_gap(&c->chunk, cause, missing->lost[cause], false);
	if (missing->records != 0)
		insert_gap(&c->chunk, BC_GAP_DAMAGED, missing->records, true);
	uint64_t offset = bc_segment_reader_offset(c->reader);
	if (bc_is_missing(&missing->place))
		set_fault(r, batch, offset, 0, "%s", bc_missing_write(what, &missing->place));
	else
		set_fault(r, batch, offset, 0,
			"%s sample%s lost before chunk %" PRIu32 ", but no gap reports %s",
			BC_GROUPED(missing->samples), missing->samples == 1 ? " was" : "s were",
			info->number, missing->samples == 1 ? "it" : "them");
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

	c->duplicates.count = 0;
	if (d.count == 1)
		return set_fault(r, batch, d.offset, d.bytes,
			"chunk %" PRIu32 " (%s record%s) is a duplicate; skipped", d.first,
			BC_GROUPED(d.records), bc_plural(d.records));
	return set_fault(r, batch, d.offset, d.bytes,
		"%s chunks from chunk %" PRIu32 " on (%s record%s) are duplicates; skipped",
		BC_GROUPED(d.count), d.first, BC_GROUPED(d.records), bc_plural(d.records));
}

/* Starts a chunk, unless it is not needed. Returns 1 for a fault, or 0. */
static int start_chunk(struct bc_reader *r, struct chunk_state *c, struct bc_batch *batch)
{
	const struct bc_chunk_info *info = &c->chunk.info;
	const struct bc_missing *missing = &c->missing;

	c->last = *info;
	c->records = bc_segment_reader_records(c->reader, &c->result);
	c->has_chunk = is_needed(r, info);
	c->next = 0;
	c->event = 0;
	c->tick = info->first_tick;
	if (c->place == BC_SEQUENCE_LATE)
		return set_fault(r, batch, bc_segment_reader_offset(c->reader),
			bc_chunk_encoded_bytes(info),
			"chunk %" PRIu32 " is out of order: later chunks precede it", info->number);
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

/* Adds a gap at the end, unless the last chunk has the recording's end. Without a chunk, the gap
 * follows the header. */
static void add_last_gap(struct bc_reader *r, struct chunk_state *c)
{
	struct bc_chunk_info *info = &c->chunk.info;

	if (!c->has_epoch && r->header != NULL)
		c->last = bc_segment_header_chunk(r->header);
	if ((!c->has_epoch && r->header == NULL) || c->has_end || !is_needed(r, &c->last))
		return;
	*info = c->last;
	c->chunk.events[0] = (struct bc_event){
		.kind = BC_EVENT_GAP, .cause = BC_GAP_CRASH, .position = info->records};
	info->events = 1;
	c->event = 0;
	c->next = info->records;
	c->tick = info->last_tick;
	c->has_chunk = true;
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
		if (!c->has_started && r->options.index_fd >= 0 && !r->options.is_one_of_many &&
			r->options.needs_records == NULL)
			bc_segment_reader_decode_ahead(c->reader, r->options.index_fd,
				r->options.needs_chunk, r->options.context, r->options.work);
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
		return set_fault(r, batch, d->offset, d->bytes, "%s", d->what);
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
	if (r->options.is_killed)
		add_last_gap(r, c);
	return end_segment(r, c, batch);
}

/* The tick of the next record; at the end of the chunk, the last one's. `time`: the next one's. */
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

static void add_chunk_event(struct bc_reader *r, const struct chunk_state *c,
	struct bc_batch *batch, const struct bc_event *event, uint32_t time)
{
	struct bc_entry *entry = &r->entries[batch->count++];

	bc_entry_of_event(entry, event, c->chunk.text + event->text,
		c->chunk.info.first_record + c->next, next_tick(c, time), c->chunk.info.epoch);
	entry->is_inexact = c->is_inexact;
}

/* An anchor holds the tick of a record without a delta. The first one's is in the header. */
static void apply_anchor(struct chunk_state *c, const struct bc_event *anchor, uint32_t time)
{
	if (time != BC_TIME_NONE)
		return;
	if (c->next != 0)
		c->tick = anchor->value;
	c->is_inexact = !anchor->exact;
}

/* Returns as many records and events of the chunk as fit, or events up to a run. */
static void next_entries(struct bc_reader *r, struct chunk_state *c, struct bc_batch *batch)
{
	const struct bc_chunk_info *info = &c->chunk.info;

	if (c->next == 0 && c->event == 0) {
		if (c->has_epoch && c->epoch != info->epoch)
			add_chunk_event(r, c, batch, &(struct bc_event){.kind = 0}, 0);
		c->is_inexact = c->is_inexact && c->has_epoch && c->epoch == info->epoch;
		c->has_epoch = true;
		c->epoch = info->epoch;
	}
	batch->chunk_info = info;
	while (batch->count < READER_ENTRIES && batch->run.count == 0) {
		const uint8_t *record = c->records + (size_t)c->next * BC_RECORD_BYTES;
		const struct bc_event *event = &c->chunk.events[c->event];
		uint32_t time = c->lacks_records          ? BC_TIME_NONE /* of any anchor */
				: c->next < info->records ? bc_le32(record + 8)
							  : 0;
		bool has_event = c->event < info->events;
		if (has_event && event->position <= c->next) {
			c->event++;
			if (event->kind == BC_EVENT_ANCHOR)
				apply_anchor(c, event, time);
			else if (event->kind < BC_EVENT_END) /* that describes the file */
				add_chunk_event(r, c, batch, event, time);
			c->has_end = c->has_end || event->kind == BC_EVENT_END;
			continue;
		}
		if (c->next == info->records) {
			c->has_chunk = false;
			return;
		}
		has_event = has_event && !c->lacks_records; /* or the run is the whole chunk */
		struct bc_record_run run = {.records = c->lacks_records ? NULL : record,
			.count = (has_event ? event->position : info->records) - c->next,
			.number = info->first_record + c->next,
			.tick = c->next != 0 || c->lacks_records
					? c->tick
					: bc_chunk_tick_before(info, record),
			.epoch = info->epoch,
			.is_inexact = c->is_inexact};
		if (r->options.as_runs) {
			batch->run = run;
			if (run.count == info->records && !run.is_inexact)
				batch->result = c->result;
			c->next += (uint32_t)run.count;
			/* Without an event, nothing needs the tick. */
			c->tick = has_event ? bc_records_ticks(record, run.count, run.tick) : 0;
			return;
		}
		size_t n = bc_record_run_entries(
			&run, r->entries + batch->count, READER_ENTRIES - batch->count);
		batch->count += n;
		c->next += (uint32_t)n;
		c->tick = run.tick;
	}
}

static int next_chunk(struct bc_reader *r, struct bc_batch *batch)
{
	struct chunk_state *c = r->state;

	while (batch->count == 0 && batch->run.count == 0) {
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

/* A run ends before the next event, which has not been returned. */
static bool run_in_chunk(const struct bc_reader *r, uint64_t number, struct bc_reader_run *run)
{
	const struct chunk_state *c = r->state;
	const struct bc_chunk_info *info = &c->chunk.info;
	uint64_t first = number - info->first_record;

	if (!c->has_chunk || first >= c->next ||
		(c->event != 0 && c->chunk.events[c->event - 1].position > first))
		return false;
	uint32_t end = c->event < info->events ? c->chunk.events[c->event].position : info->records;
	*run = (struct bc_reader_run){.bytes = c->records + first * BC_RECORD_BYTES,
		.count = end - first,
		.each = BC_RECORD_BYTES,
		.layout = BC_FORMAT_BYU << 8};
	return true;
}

static void skip_in_chunk(struct bc_reader *r, const struct bc_entry *entry, size_t n)
{
	struct chunk_state *c = r->state;
	size_t end = (size_t)(entry->number - c->chunk.info.first_record) + n;

	c->tick = bc_records_ticks(
		c->records + (size_t)c->next * BC_RECORD_BYTES, end - c->next, c->tick);
	c->next = (uint32_t)end;
}

static const struct reader_kind chunk_reader = {.open = open_chunks,
	.next = next_chunk,
	.run = run_in_chunk,
	.skip = skip_in_chunk,
	.close = close_chunks};

/* ---- blocks */

/* Reads text lines and fixed-size records. The input is read in blocks. Whole lines or records go
 * to the format's parser; an incomplete one at the end of a block is kept for the next. */

#define BLOCK_BYTES (256u << 10)

_Static_assert(BLOCK_BYTES >= 2 * BC_LINE_MAX, "a block holds the longest line and more");
_Static_assert(READER_ENTRIES >= 2 * BC_LINE_ENTRIES, "a batch holds the longest line's");

struct block_state {
	uint64_t offset;  /* of bytes[0] in the input */
	size_t start;     /* parsed up to here */
	size_t whole;     /* whole lines or records up to here */
	size_t end;       /* bytes read up to here */
	uint64_t number;  /* of the line or record at `start` */
	uint64_t tick;    /* as_records: tick of the record before `start` */
	bool is_over;     /* end of input, or nothing more can be read */
	bool is_long;     /* skipping a line that is too long, up to its newline */
	bool has_added;   /* a newline was added to the last line */
	bool is_reported; /* an open line at the end */
	bool as_records;
	int error;        /* reported after everything before it: -EBADMSG or a read error */
	void *parser;     /* state of the parser */
	uint8_t *records; /* as_records, for byu-be: buffer for a converted block */
	uint8_t bytes[BLOCK_BYTES + BC_PARSE_PADDING];
};

/* Reads more bytes to the block. */
static void read_block(struct bc_reader *r, struct block_state *b)
{
	/* Leave one byte free for a newline that the last line may lack. */
	ssize_t n = bc_input_read(r->input, b->bytes + b->end, BLOCK_BYTES - 1 - b->end);

	b->is_over = n <= 0;
	b->error = n < 0 ? (int)n : 0;
	b->end += n > 0 ? (size_t)n : 0;
	if (r->info->is_text && b->offset == 0 && bc_starts_with_bom(b->bytes, b->end))
		b->start = b->whole = BC_BOM_BYTES;
}

/* Fills the first block. Its lines say what the entries may have. */
static void read_traits(struct bc_reader *r, struct block_state *b)
{
	const struct bc_parser *parser = r->parser;

	while (parser->reads_head && !b->is_over && b->end < BLOCK_BYTES - 1)
		read_block(r, b);
	const uint8_t *newline = memrchr(b->bytes, '\n', b->end);
	if (newline == NULL && parser->reads_head)
		return;
	const char *end = newline != NULL ? (const char *)newline + 1 : (const char *)b->bytes;
	bc_traits traits = parser->traits(
		b->parser, (const char *)b->bytes + b->start, end, &r->has_wall);
	if ((traits & BC_KINDS) != 0)
		r->traits = traits;
}

static int open_blocks(struct bc_reader *r)
{
	const struct bc_parser *parser = r->parser;
	struct block_state *b = malloc(sizeof(*b));

	if (b == NULL)
		return -ENOMEM;
	memset(b, 0, offsetof(struct block_state, bytes));
	memset(b->bytes + BLOCK_BYTES, 0, BC_PARSE_PADDING);
	r->state = b;
	b->number = parser->record_bytes == 0;
	b->parser = bc_parser_start(parser, &r->options.format);
	if (b->parser == NULL)
		return -ENOMEM;
	if (parser->traits != NULL)
		read_traits(r, b);
	/* The records of the other dialects may be too large. */
	b->as_records = r->options.as_records && bc_dialect_bytes(r->format) == BC_RECORD_BYTES;
	if (!b->as_records || r->format == BC_FORMAT_BYU)
		return 0;
	b->records = malloc(BLOCK_BYTES);
	return b->records != NULL ? 0 : -ENOMEM;
}

static void close_blocks(struct bc_reader *r)
{
	struct block_state *b = r->state;

	if (b == NULL)
		return;
	free(b->parser);
	free(b->records);
	free(b);
}

static void set_line_fault(struct bc_reader *r, const struct block_state *b, struct bc_batch *batch,
	size_t column, const char *what)
{
	set_fault(r, batch, 0, 0, "%s", what);
	r->fault.line = b->number;
	r->fault.column = (uint32_t)column;
}

/* True if the line at `start` exceeds BC_LINE_MAX. */
static bool has_long_line(const struct bc_reader *r, const struct block_state *b)
{
	return b->end - b->start >= BC_LINE_MAX && r->parser->record_bytes == 0 &&
	       memchr(b->bytes + b->start, '\n', BC_LINE_MAX) == NULL;
}

/* Skips the buffered part of a line that is too long. Returns whether to report the line. */
static bool skip_long_line(struct bc_reader *r, struct block_state *b, struct bc_batch *batch)
{
	bool is_new = !b->is_long;
	const uint8_t *newline = memchr(b->bytes + b->start, '\n', b->end - b->start);
	char what[64];

	snprintf(what, sizeof(what), "line longer than %u bytes; skipped", BC_LINE_MAX - 1);
	if (is_new)
		set_line_fault(r, b, batch, BC_LINE_MAX, what);
	b->is_long = newline == NULL;
	b->start = newline != NULL ? (size_t)(newline - b->bytes) + 1 : b->end;
	b->whole = b->start;
	b->number += newline != NULL;
	return is_new;
}

/* Handles an incomplete line or record at the end of the input. Returns true for a fault. */
static bool finish_blocks(struct bc_reader *r, struct block_state *b, struct bc_batch *batch)
{
	size_t record = r->parser->record_bytes;
	size_t rest = b->end - b->start;

	if (rest == 0)
		return false;
	if (record == 0 && b->error != 0) {
		/* Do not parse it: a cut line may look like a valid one. */
		set_line_fault(r, b, batch, rest + 1, "the line is cut off; skipped");
		b->start = b->whole = b->end;
		return true;
	}
	if (record == 0) {
		b->bytes[b->end++] = '\n';
		b->whole = b->end;
		b->has_added = true;
		return false;
	}
	set_fault(r, batch, b->offset + b->start, rest, "torn: left over after %llu whole %s%s",
		(unsigned long long)b->number, r->format == BC_FORMAT_RAW6 ? "sample" : "record",
		b->number == 1 ? "" : "s");
	b->start = b->whole = b->end;
	return true;
}

/* Sets `whole` to the end of the last whole line, or to the start of the first line that is too
 * long. It searches backwards for a newline in steps of BC_LINE_MAX, so few lines are looked at. */
static void find_whole(const struct bc_reader *r, struct block_state *b)
{
	size_t record = r->parser->record_bytes;
	size_t at = b->start;
	size_t left;

	if (record != 0) {
		b->whole = b->end - (b->end - b->start) % record;
		return;
	}
	while ((left = b->end - at) != 0) {
		size_t n = left < BC_LINE_MAX ? left : BC_LINE_MAX;
		const uint8_t *newline = memrchr(b->bytes + at, '\n', n);
		if (newline == NULL)
			break;
		at = (size_t)(newline - b->bytes) + 1;
	}
	b->whole = at;
}

/* Reads until there is a whole line or record, or the input ends. Returns 1 for a fault, else 0. */
static int fill_block(struct bc_reader *r, struct block_state *b, struct bc_batch *batch)
{
	while (b->start == b->whole) {
		if ((b->is_long || has_long_line(r, b)) && skip_long_line(r, b, batch))
			return 1;
		find_whole(r, b);
		if (b->start != b->whole || (!b->is_long && has_long_line(r, b)))
			continue;
		if (b->is_over)
			return finish_blocks(r, b, batch);
		memmove(b->bytes, b->bytes + b->start, b->end - b->start);
		b->offset += b->start;
		b->end -= b->start;
		b->start = b->whole = 0;
		read_block(r, b);
	}
	return 0;
}

/* Returns BYU records without converting them to entries. */
static void next_records(struct bc_reader *r, struct block_state *b, struct bc_batch *batch)
{
	const uint8_t *in = b->bytes + b->start;
	size_t n = (b->whole - b->start) / BC_RECORD_BYTES;

	if (b->records != NULL) {
		(void)bc_dialect_read(b->records, in, n, r->format);
		in = b->records;
	}
	batch->run = (struct bc_record_run){
		.records = in, .count = n, .number = b->number, .tick = b->tick};
	b->tick = bc_records_ticks(in, n, b->tick);
	b->number += n;
	b->start += n * BC_RECORD_BYTES;
}

/* Reports and skips a malformed line or record. */
static void skip_malformed(struct bc_reader *r, struct block_state *b, struct bc_batch *batch,
	const struct bc_parse *p)
{
	const char *line = (const char *)b->bytes + b->start;
	size_t record = r->parser->record_bytes;
	char what[160];

	if (record != 0) {
		set_fault(r, batch, b->offset + b->start, record, "record %llu: %s; skipped",
			(unsigned long long)b->number, p->expected);
		b->start += record;
		b->number++;
		return;
	}
	const char *end = rawmemchr(line, '\n');
	bool is_torn = b->has_added && end + 1 == (const char *)b->bytes + b->end;
	snprintf(what, sizeof(what), "%s%s", p->expected,
		is_torn ? "; the file ends in this line" : "");
	set_line_fault(r, b, batch, (size_t)(p->bad - line) + 1, what);
	b->start = (size_t)(end - (const char *)b->bytes) + 1;
	b->number++;
}

static void parse_block(struct bc_reader *r, struct block_state *b, struct bc_batch *batch)
{
	struct bc_parse p = {.at = (const char *)b->bytes + b->start,
		.end = (const char *)b->bytes + b->whole,
		.number = b->number,
		.entries = r->entries,
		.capacity = READER_ENTRIES};
	enum bc_parse_end end = r->parser->parse(b->parser, &p);

	b->start = (size_t)(p.at - (const char *)b->bytes);
	b->number = p.number;
	batch->count = p.count;
	if (end == BC_PARSE_BAD)
		skip_malformed(r, b, batch, &p);
}

static int next_block(struct bc_reader *r, struct bc_batch *batch)
{
	struct block_state *b = r->state;

	for (;;) {
		if (fill_block(r, b, batch) != 0)
			return 1;
		if (b->start == b->whole)
			break;
		if (b->as_records)
			next_records(r, b, batch);
		else
			parse_block(r, b, batch);
		if (batch->count != 0 || batch->run.count != 0 || batch->fault != NULL)
			return 1;
	}
	struct bc_parse_notes notes;
	int error = b->error;
	bc_reader_notes(r, &notes);
	if (error == 0 && notes.open_line != 0 && !b->is_reported) {
		b->is_reported = true;
		b->number = notes.open_line;
		set_line_fault(r, b, batch, 1, "the file ends within what begins in this line");
		return 1;
	}
	b->error = 0;
	if (error != -EBADMSG)
		return error;
	return set_fault(r, batch, b->offset + b->end, 0,
		"the compressed data is damaged or torn here; the rest can't be read");
}

static bool run_in_block(const struct bc_reader *r, uint64_t number, struct bc_reader_run *run)
{
	const struct block_state *b = r->state;
	size_t each = r->parser->record_bytes;

	if (r->parser->skip == NULL || number >= b->number)
		return false;
	size_t first = b->start - (size_t)(b->number - number) * each;
	*run = (struct bc_reader_run){.bytes = b->bytes + first,
		.count = (b->whole - first) / each,
		.each = each,
		.layout = r->format << 8};
	return true;
}

static void skip_in_block(struct bc_reader *r, const struct bc_entry *entry, size_t n)
{
	struct block_state *b = r->state;
	size_t more = (size_t)(entry->number + n - b->number);

	r->parser->skip(b->parser, b->bytes + b->start, more);
	b->start += more * r->parser->record_bytes;
	b->number += more;
}

static const struct reader_kind block_reader = {.open = open_blocks,
	.next = next_block,
	.run = run_in_block,
	.skip = skip_in_block,
	.close = close_blocks};

/* ---- any */

static const struct reader_kind *kind_of(enum bc_format format)
{
	switch (format) {
	case BC_FORMAT_SEGMENT:
		return &chunk_reader;
	case BC_FORMAT_BCP1:
		return &frame_reader;
	default:
		return bc_format_info(format)->parser != NULL ? &block_reader : NULL;
	}
}

int bc_reader_open(struct bc_reader **reader, struct bc_input *input, enum bc_format format,
	const struct bc_reader_options *options)
{
	const struct reader_kind *kind = kind_of(format);

	if (kind == NULL)
		return -ENOTSUP;
	struct bc_reader *r = malloc(sizeof(*r));
	if (r == NULL)
		return -ENOMEM;
	memset(r, 0, offsetof(struct bc_reader, entries));
	r->kind = kind;
	r->input = input;
	r->format = format;
	r->info = bc_format_info(format);
	r->traits = r->info->traits;
	r->has_wall = format == BC_FORMAT_SEGMENT;
	r->options = *options;
	if (r->options.format.layout == NULL)
		r->options.format.layout = bc_input_layout(input);
	r->parser = bc_format_parser(format, r->options.format.layout);
	int rc = kind->open(r);
	if (rc != 0) {
		bc_reader_close(r);
		return rc;
	}
	*reader = r;
	return 0;
}

void bc_reader_close(struct bc_reader *r)
{
	if (r == NULL)
		return;
	r->kind->close(r);
	free(r);
}

int bc_reader_next(struct bc_reader *r, struct bc_batch *batch)
{
	*batch = (struct bc_batch){.entries = r->entries};
	return r->kind->next(r, batch);
}

bool bc_reader_run(
	const struct bc_reader *r, const struct bc_entry *entry, struct bc_reader_run *run)
{
	/* Otherwise it is not a record, or its tick is so large that a sum might overflow. */
	return entry->kind == BC_ENTRY_REFERENCE && entry->tick < BC_TICK_END &&
	       r->kind->run(r, entry->number, run);
}

void bc_reader_skip(struct bc_reader *r, const struct bc_entry *entry, size_t n)
{
	r->kind->skip(r, entry, n);
}

bc_traits bc_reader_traits(const struct bc_reader *r, bool *has_wall)
{
	*has_wall = r->has_wall;
	return r->traits;
}

void bc_reader_notes(const struct bc_reader *r, struct bc_parse_notes *notes)
{
	const struct block_state *b = r->state;

	*notes = (struct bc_parse_notes){0};
	if (r->kind == &block_reader && r->parser->notes != NULL)
		r->parser->notes(b->parser, notes);
}

const struct bc_segment_header *bc_reader_header(const struct bc_reader *r)
{
	return r->header;
}
