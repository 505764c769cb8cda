/* A chunk: up to 87,381 records with what is known of them, the unit of encoding, writing, seeking
 * and recovery.
 *
 * The recorder takes a chunk from its pool, calls bc_chunk_reset(), lets bc_stamp_*() put records
 * in, adds events, and hands it on; bc_chunk_describe() then fills in what is read off the records.
 * A segment reader gives chunks the same way. A chunk owns its memory: one allocation, records and
 * events included. */
#ifndef BC_FORMATS_BUS_CHUNK_H
#define BC_FORMATS_BUS_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/bus/record.h"

/* The most whole records in 1 MiB. */
#define BC_CHUNK_RECORDS 87381u
#define BC_CHUNK_BYTES   (BC_CHUNK_RECORDS * BC_RECORD_BYTES)

/* An encoder may read this far past the records; the bytes exist, and are anything. */
#define BC_CHUNK_PADDING 64

/* Ticks from here up are nobody's: 292 years at 1 GHz. What says one is not valid. */
#define BC_TICK_END (UINT64_C(1) << 63)

#define BC_CHUNK_EVENTS     256u
#define BC_CHUNK_TEXT_BYTES 4096u

enum bc_event_kind {
	BC_EVENT_GAP = 1,     /* samples are missing before the record */
	BC_EVENT_ANCHOR = 2,  /* the record's absolute tick, where its `time` is no delta */
	BC_EVENT_MARK = 3,    /* a note that someone set */
	BC_EVENT_TRIGGER = 4, /* the board's trigger, or one of the configuration, fired */
	BC_EVENT_NOTE = 5,    /* metadata were set: a JSON object of them */
};

/* Why samples are missing. */
enum bc_gap_cause {
	BC_GAP_BUFFER = 1,    /* no free chunk: the writer was too slow for the buffer */
	BC_GAP_DISK = 2,      /* the disk was full or failing, and the buffer with it */
	BC_GAP_BOARD = 3,     /* the board dropped them, by its own count */
	BC_GAP_SEQUENCE = 4,  /* whole frames did not arrive */
	BC_GAP_CRC = 5,       /* a frame's samples arrived damaged or torn */
	BC_GAP_UNPLUGGED = 6, /* the board was away */
	BC_GAP_DAMAGED = 7,  /* a chunk of the file that this one was made from could not be read */
	BC_GAP_TRANSFER = 8, /* a transfer from the board failed, or the board had to be reset */
	BC_GAP_CAUSES,
};

struct bc_event {
	uint32_t position; /* before this record of the chunk; its record count: at the end */
	uint8_t kind;      /* enum bc_event_kind */
	uint8_t cause;     /* gap: enum bc_gap_cause */
	bool exact;        /* gap: `value` is the number lost, not just at least that many; anchor:
			    * the tick is known, not just a lower bound */
	uint64_t value;    /* gap: samples lost; anchor: the tick; else 0 */
	uint64_t duration_ns; /* gap: host time it lasted, 0 where that says nothing */
	uint16_t text; /* mark, trigger, note: text_bytes bytes of UTF-8, from here in `text` */
	uint16_t text_bytes;
};

/* What a chunk's header says, field by field; docs/segment-format.md. */
struct bc_chunk_info {
	uint64_t recording_tag; /* XXH3-64 of the recording's id: tells chunks of different ones
				   apart */
	uint32_t segment;       /* number of the segment in the recording */
	uint32_t number;        /* of the chunk in the segment, from 0 */
	uint64_t first_record;  /* number of its first record in the recording, from 0 */
	uint32_t records;
	uint32_t events;
	uint32_t epoch;      /* all of a chunk's ticks are of one epoch */
	uint64_t first_tick; /* of its first and last record; of the last record before it if */
	uint64_t last_tick;  /* it has none */
	int64_t wall_ns;     /* host's time of day when its first record arrived, Unix epoch */
	uint32_t addr_low;   /* lowest and highest address; 0xFFFFFFFF and 0 if it has no records */
	uint32_t addr_high;
	uint64_t types[4];     /* bitmap of the request types that occur */
	uint64_t procs[4];     /* and of the processors */
	uint64_t records_hash; /* XXH3-64 of the records' bytes */
	uint32_t frame_bytes;  /* length of the LZ4 frame that holds them */
	uint32_t event_bytes;  /* length of the encoded events */
};

struct bc_chunk {
	struct bc_chunk_info info;
	struct bc_event events[BC_CHUNK_EVENTS]; /* info.events of them, by position */
	char text[BC_CHUNK_TEXT_BYTES];
	uint32_t text_bytes;
	uint8_t records[BC_CHUNK_BYTES + BC_CHUNK_PADDING];
};

/* An empty chunk that goes on from the given tick and epoch. Identity, wall_ns and first_record are
 * zero. */
void bc_chunk_reset(struct bc_chunk *chunk, uint64_t tick, uint32_t epoch);

/* Adds an event at event->position, which must not lie before the last one's. `text` (event->
 * text_bytes long, may be NULL when that is 0) is copied; event->text is set here. Returns false,
 * and changes nothing, when the chunk has no room for it: begin another. */
bool bc_chunk_add_event(
	struct bc_chunk *chunk, const struct bc_event *event, const char *text) BC_MUST_CHECK;

/* Room for n more events without text, and for a record at least. */
static inline bool bc_chunk_has_room(const struct bc_chunk *chunk, uint32_t events)
{
	return chunk->info.records < BC_CHUNK_RECORDS &&
	       chunk->info.events + events <= BC_CHUNK_EVENTS;
}

static inline bool bc_chunk_is_empty(const struct bc_chunk *chunk)
{
	return chunk->info.records == 0 && chunk->info.events == 0;
}

/* Fills in addr_low, addr_high, types, procs and records_hash from the records. */
void bc_chunk_describe(struct bc_chunk *chunk);

/* How many records of the recording are missing before this chunk, when the one before it ended
 * just before record `expected`, beyond what a gap at its head says of damage already. */
uint64_t bc_chunk_missing(const struct bc_chunk *chunk, uint64_t expected);

/* How many gap events a chunk has, and how many samples they say are lost, at least. */
void bc_chunk_gaps(const struct bc_chunk *chunk, uint64_t *gaps, uint64_t *lost);

/* The word that the program's texts and JSON use for a cause; "unknown" for another number. */
const char *bc_gap_cause_name(unsigned cause);

/* Adds the ticks of n records to *tick, anchors aside: what BC_TIME_NONE marks adds nothing. */
uint64_t bc_records_ticks(const uint8_t *records, size_t n, uint64_t tick);

#endif
