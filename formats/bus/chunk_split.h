/* Parts of a chunk: its front or its back dropped, one chunk made two, an event put in between.
 *
 * Each record keeps its absolute tick, and each event its place before its record, through all of
 * these. An event belongs to the record that it stands before: where a chunk is cut at `at`, events
 * at positions below `at` stay with what comes before, those at `at` and behind go with what
 * follows. The texts of events that go make room again.
 *
 * What bc_chunk_describe() fills in is not kept up: describe a chunk after it was cut. wall_ns is
 * the caller's, too: what follows a cut has that of the whole. */
#ifndef BC_FORMATS_BUS_CHUNK_SPLIT_H
#define BC_FORMATS_BUS_CHUNK_SPLIT_H

#include "formats/base/must_check.h"
#include "formats/bus/chunk.h"

/* The absolute tick of record n, n < info.records. Takes as long as the way to it from the nearest
 * of the chunk's beginning, its end, and an anchor before it: about 0.3 ns a record. */
uint64_t bc_chunk_tick(const struct bc_chunk *chunk, uint32_t n);

/* The first record at or behind `from` (< info.records) whose tick is `tick` or later;
 * info.records: there is none. */
uint32_t bc_chunk_find_tick(const struct bc_chunk *chunk, uint32_t from, uint64_t tick);

/* Leaves out the first n records, n <= info.records, with the events before them. What is then the
 * first record keeps its own `time`, the ticks since the one that went: call bc_chunk_detach() if
 * that is not in the recording. first_record counts on by n. */
void bc_chunk_drop_front(struct bc_chunk *chunk, uint32_t n);

/* Leaves the first `keep` records, keep <= info.records, and goes without what follows: also the
 * events that stood before the first record that went, or behind the last record there was. */
void bc_chunk_drop_back(struct bc_chunk *chunk, uint32_t keep);

/* Moves the records from `at` on, at <= info.records, and the events at `at` and behind, to `rest`,
 * which is another chunk and is overwritten. The two are as two chunks of one recording: epoch and
 * recording_tag are the same, first_record goes on. Segment and number are zero in `rest`. */
void bc_chunk_split(struct bc_chunk *chunk, uint32_t at, struct bc_chunk *rest);

/* Adds an event at event->position <= info.records, behind those that are there already and before
 * those of later records. `text` as in bc_chunk_add_event(). Returns false, and changes nothing,
 * when there is no room for it. */
bool bc_chunk_insert_event(
	struct bc_chunk *chunk, const struct bc_event *event, const char *text) BC_MUST_CHECK;

/* The chunk's first record is the first of its recording: its `time` becomes BC_TIME_NONE, and it
 * gets an anchor, unless it has one. `is_exact`: its tick is known, not just a lower bound, which
 * is !stamper->is_inexact, and always so of live sources. Nothing to do in a chunk without records.
 * Returns false, and changes nothing, when there is no room for the anchor. */
bool bc_chunk_detach(struct bc_chunk *chunk, bool is_exact) BC_MUST_CHECK;

#endif
