/* Editing a chunk: drop its front or back, split it in two, insert an event.
 *
 * Records keep their absolute ticks, and events keep their places. An event belongs to the record
 * after it: if a chunk is cut at record `at`, events below position `at` stay with the first part,
 * the others go to the second. The space of dropped text is freed.
 *
 * Call bc_chunk_describe() afterwards: its fields are not updated. wall_ns is not changed, so a
 * second part has that of the whole chunk; the caller may correct it. */
#ifndef BC_FORMATS_BUS_CHUNK_SPLIT_H
#define BC_FORMATS_BUS_CHUNK_SPLIT_H

#include "formats/base/must_check.h"
#include "formats/bus/chunk.h"

/* The absolute tick of record n < info.records. Sums the deltas from the nearest known tick (start,
 * end, or the last anchor up to n): about 0.3 ns per record. */
uint64_t bc_chunk_tick(const struct bc_chunk *chunk, uint32_t n);

/* The tick to which the `time` of the chunk's first record is added: that of the record before the
 * chunk; first_tick if the chunk does not determine it. */
uint64_t bc_chunk_tick_before(const struct bc_chunk *chunk);

/* The first record at or after `from` (< info.records) whose tick is at least `tick`; info.records
 * if there is none. */
uint32_t bc_chunk_find_tick(const struct bc_chunk *chunk, uint32_t from, uint64_t tick);

/* Drops the first n <= info.records records and the events before them, and adds n to first_record.
 * The new first record keeps its `time`, the ticks since the dropped record. If the dropped records
 * are not in the recording, call bc_chunk_detach() too. */
void bc_chunk_drop_front(struct bc_chunk *chunk, uint32_t n);

/* Keeps the first `keep` <= info.records records. Drops the others, and all events at position
 * `keep` or above. */
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
