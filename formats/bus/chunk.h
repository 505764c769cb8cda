/* A chunk: up to 87,381 records, their events, and a description of both. It is the unit of
 * encoding, writing, seeking and recovery.
 *
 * The recorder gets a chunk from its pool, calls bc_chunk_reset(), and fills it with bc_stamp_*()
 * and bc_chunk_add_event(). bc_chunk_describe() (formats/bus/describe.h) then computes the fields
 * that follow from the records. A segment reader fills a chunk in the same way. A chunk is one
 * allocation that includes records, events and their text. */
#ifndef BC_FORMATS_BUS_CHUNK_H
#define BC_FORMATS_BUS_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/bus/record.h"

/* As many whole records as fit in 1 MiB. */
#define BC_CHUNK_RECORDS 87381u
#define BC_CHUNK_BYTES   (BC_CHUNK_RECORDS * BC_RECORD_BYTES)

/* Ticks are below this: 292 years at 1 GHz. Input with a larger tick is invalid. */
#define BC_TICK_END (UINT64_C(1) << 63)

#define BC_CHUNK_EVENTS     256u
#define BC_CHUNK_TEXT_BYTES 4096u
#define BC_CHUNK_PAGE_BYTES 10240u

enum bc_event_kind {
	BC_EVENT_GAP = 1,     /* samples are missing before the record */
	BC_EVENT_ANCHOR = 2,  /* the record's absolute tick; its `time` is BC_TIME_NONE */
	BC_EVENT_MARK = 3,    /* a user's mark */
	BC_EVENT_TRIGGER = 4, /* a trigger of the board or the configuration fired */
	BC_EVENT_NOTE = 5,    /* metadata set here: a JSON object */
	BC_EVENT_END = 6,     /* the recording's end; formats/segment/segment_header.h */
};

/* Why samples are missing. */
enum bc_gap_cause {
	BC_GAP_BUFFER = 1,    /* no free chunk: the writer was too slow for the buffer */
	BC_GAP_DISK = 2,      /* the disk was full or failing, and the buffer filled up */
	BC_GAP_BOARD = 3,     /* the board reported that it dropped them */
	BC_GAP_SEQUENCE = 4,  /* whole frames did not arrive */
	BC_GAP_CRC = 5,       /* a frame's samples arrived damaged or torn */
	BC_GAP_UNPLUGGED = 6, /* the board was unplugged */
	BC_GAP_DAMAGED = 7,   /* recovery or replay could not read part of its input file */
	BC_GAP_TRANSFER = 8,  /* a transfer from the board failed, or the board had to be reset */
	BC_GAP_CRASH = 9,     /* the recorder ended before it could record its losses */
	BC_GAP_CAUSES,
};

struct bc_event {
	uint32_t position;    /* before this record of the chunk; number of records: at the end */
	uint8_t kind;         /* enum bc_event_kind */
	uint8_t cause;        /* gap: enum bc_gap_cause */
	bool exact;           /* gap, anchor: `value` is exact; otherwise it is a lower bound */
	uint64_t value;       /* gap: samples lost; anchor: tick; otherwise 0 */
	uint64_t duration_ns; /* gap: its duration on the host's clock; 0: not meaningful */
	uint16_t text; /* mark, trigger, note, end: offset in chunk->text of text_bytes bytes */
	uint16_t text_bytes;
};

/* What was lost since the recording started, up to and including the gaps of a chunk. */
struct bc_totals {
	uint64_t lost[BC_GAP_CAUSES]; /* samples, by enum bc_gap_cause; 0: other causes */
	uint64_t gaps;
	uint64_t inexact; /* gaps in which more samples may be missing */
	uint64_t away_ns; /* how long nothing was recorded: the gaps' durations */
};

/* The fields of a chunk header; docs/segment-format.md. */
struct bc_chunk_info {
	uint64_t recording_tag; /* XXH3-64 of the recording's id */
	uint32_t segment;       /* number of the segment in the recording */
	uint32_t number;        /* of the chunk in the segment, from 0 */
	uint64_t first_record;  /* number of its first record in the recording, from 0 */
	uint32_t records;
	uint32_t events;
	uint32_t epoch;        /* of all its ticks */
	uint64_t first_tick;   /* of its first record; without records: of the previous record */
	uint64_t last_tick;    /* of its last record; without records: of the previous record */
	int64_t wall_ns;       /* time of day of first_tick, Unix epoch: tick_time.h */
	uint32_t addr_low;     /* no record's address is lower; 0xFFFFFFFF without records */
	uint32_t addr_high;    /* none is higher; 0 without records */
	uint64_t types[4];     /* bitmap of the request types that occur */
	uint64_t procs[4];     /* bitmap of the processors that occur */
	uint64_t records_hash; /* XXH3-64 of the records' bytes */
	struct bc_totals totals;
	uint32_t frame_bytes; /* length of the frame of the records */
	uint32_t event_bytes; /* length of the encoded events */
	uint32_t page_bytes;  /* length of the encoded page counts; 0: none */
};

struct bc_chunk {
	struct bc_chunk_info info;
	struct bc_event events[BC_CHUNK_EVENTS]; /* info.events of them, sorted by position */
	char text[BC_CHUNK_TEXT_BYTES];
	uint32_t text_bytes;
	uint8_t pages[BC_CHUNK_PAGE_BYTES]; /* page counts: formats/bus/page_counts.h */
	uint8_t records[BC_CHUNK_BYTES];
};

/* Empties the chunk. Its ticks become `tick`, the tick of the previous record in this epoch. The
 * other fields of info become zero. */
void bc_chunk_reset(struct bc_chunk *chunk, uint64_t tick, uint32_t epoch);

/* Adds an event at event->position, which must not be below the last event's. Copies `text`
 * (event->text_bytes bytes, may be NULL if that is 0) and sets event->text in the chunk. Returns
 * false and changes nothing if the chunk has no room: use another chunk. */
bool bc_chunk_add_event(
	struct bc_chunk *chunk, const struct bc_event *event, const char *text) BC_MUST_CHECK;

/* True if there is room for at least one record and `events` events without text. */
static inline bool bc_chunk_has_room(const struct bc_chunk *chunk, uint32_t events)
{
	return chunk->info.records < BC_CHUNK_RECORDS &&
	       chunk->info.events + events <= BC_CHUNK_EVENTS;
}

static inline bool bc_chunk_is_empty(const struct bc_chunk *chunk)
{
	return chunk->info.records == 0 && chunk->info.events == 0;
}

/* The bytes of record n. */
static inline uint8_t *bc_chunk_record(struct bc_chunk *chunk, uint32_t n)
{
	return chunk->records + (size_t)n * BC_RECORD_BYTES;
}

/* The number of records missing before this chunk if record `expected` should be its first. Records
 * whose loss is already recorded by a gap with cause BC_GAP_DAMAGED at position 0 don't count. */
uint64_t bc_chunk_missing(const struct bc_chunk *chunk, uint64_t expected);

/* Adds the chunk's gaps. */
void bc_totals_add(struct bc_totals *totals, const struct bc_chunk *chunk);

/* Compares the chunk's totals with the previous chunk's, `before`. Sets `unreported` to the samples
 * lost in between that no gap in this chunk reports, by cause. Returns their sum. */
uint64_t bc_chunk_unreported(const struct bc_chunk *chunk, const struct bc_totals *before,
	uint64_t unreported[BC_GAP_CAUSES]);

/* The name of a cause in messages and JSON; "unknown" for other numbers. */
const char *bc_gap_cause_name(unsigned cause);

/* "gap", "mark", "trigger" or "note"; otherwise "epoch", which kind 0 announces. */
const char *bc_event_kind_name(unsigned kind);

/* Computes each record's tick: the previous one plus its time, or its anchor's if it has none. */
void bc_chunk_ticks(const struct bc_chunk *chunk, uint64_t ticks[BC_CHUNK_RECORDS]);

/* Returns `tick` plus the `time` of n records. Ignores anchors: BC_TIME_NONE counts as 0. */
uint64_t bc_records_ticks(const uint8_t *records, size_t n, uint64_t tick);

/* Editing a chunk: drop its front or back, split it in two, insert an event.
 *
 * Records keep their absolute ticks, and events keep their places. An event belongs to the record
 * after it: if a chunk is cut at record `at`, events below position `at` stay with the first part,
 * the others go to the second. The space of dropped text is freed.
 *
 * Call bc_chunk_describe() afterwards: its fields are not updated. wall_ns is not changed, so a
 * second part keeps the whole chunk's; the caller may correct it. */

/* The absolute tick of record n < info.records. Sums the deltas from the nearest known tick (start,
 * end, or the last anchor up to n): about 0.3 ns per record. */
uint64_t bc_chunk_tick(const struct bc_chunk *chunk, uint32_t n);

/* The tick to which the `time` of the chunk's first record is added: the tick of the record before
 * the chunk; first_tick if the chunk does not determine it. */
uint64_t bc_chunk_tick_before(const struct bc_chunk_info *info, const uint8_t *records);

/* The first record from `from` (< info.records) whose tick is at least `tick`; or info.records. */
uint32_t bc_chunk_find_tick(const struct bc_chunk *chunk, uint32_t from, uint64_t tick);

/* Drops the first n <= info.records records and the events before them, and adds n to first_record.
 * The new first record keeps its `time`, the ticks since the dropped record. If the dropped records
 * are not in the recording, call bc_chunk_detach() too. */
void bc_chunk_drop_front(struct bc_chunk *chunk, uint32_t n);

/* Drops all but the first `keep` <= info.records records, and events at position `keep` or on. */
void bc_chunk_drop_back(struct bc_chunk *chunk, uint32_t keep);

/* Moves the records and events from `at` <= info.records on to another chunk, `rest`, which is
 * overwritten. Both are then consecutive chunks of the recording: `rest` has the same epoch and
 * recording_tag, and its own first_record. Its segment and number are 0. */
void bc_chunk_split(struct bc_chunk *chunk, uint32_t at, struct bc_chunk *rest);

/* Inserts an event at event->position <= info.records, after the events already at this position.
 * `text` is as for bc_chunk_add_event(). Returns false and changes nothing if there is no room. */
bool bc_chunk_insert_event(
	struct bc_chunk *chunk, const struct bc_event *event, const char *text) BC_MUST_CHECK;

/* Makes the chunk's first record the first of a recording: its `time` becomes BC_TIME_NONE, and it
 * gets an anchor unless it has one. `is_exact` says that its tick is exact, not a lower bound:
 * !stamper->is_inexact, always true for live sources. Does nothing without records. Returns false
 * and changes nothing if there is no room for the anchor. */
bool bc_chunk_detach(struct bc_chunk *chunk, bool is_exact) BC_MUST_CHECK;

#endif
