/* A channel: one decoder's way into chunks. It has the chunk being filled, keeps gaps until there
 * is a chunk to hold them, cuts chunks by time, and knows what becomes of a full one:
 *
 *   idle        nothing is kept: samples are looked at and counted
 *   flight      the latest chunks are held in memory (daemon/ingest/overwrite_ring.h), the oldest
 * given up recording   each goes to the encoder, and so to the disk
 *
 * A live source has one channel for the daemon's life, in which recordings begin and end; a replay
 * has one of its own.
 *
 * The decoder asks for a chunk with bc_channel_chunk(), stamps records into it and says so with
 * bc_channel_consumed(); what it has to leave out goes to bc_channel_dropped(), what is missing in
 * the stream to bc_channel_gap(). Where raw bytes are kept, each piece of the stream goes through
 * bc_channel_keep_raw() first.
 *
 * In bc_channel_consumed() the new records are looked at: the filter takes out what isn't wanted,
 * live clients see them, triggers fire. A trigger's action may begin or end a recording within
 * those records: positions are of the chunk being filled.
 *
 * All calls are of the loop's thread. */
#ifndef BC_DAEMON_INGEST_CHANNEL_H
#define BC_DAEMON_INGEST_CHANNEL_H

#include <uv.h>

#include "daemon/ingest/overwrite_ring.h"
#include "formats/base/must_check.h"
#include "formats/bus/chunk.h"

struct bc_counts;
struct bc_trigger_match;
struct bc_channel;
struct bc_pipeline;
struct bc_record_filter;
struct bc_source_data;
struct bc_stamped;
struct bc_stamper;
struct bc_trigger_engine;

enum bc_channel_state { BC_CHANNEL_IDLE, BC_CHANNEL_FLIGHT, BC_CHANNEL_RECORDING };

/* The end of what the channel has now, as a position. */
#define BC_CHANNEL_NOW UINT32_MAX

/* What live clients see of a channel. */
struct bc_channel_viewer {
	void *context;

	/* The records from `from` to the chunk's end are new, with the events at their positions.
	 * `first_record` is the number of record `from` in the recording, UINT64_MAX outside of
	 * one; `tick_before` is the tick of the record before it. */
	void (*records)(void *context, const struct bc_chunk *chunk, uint32_t from,
		uint64_t first_record, uint64_t tick_before);

	/* Nothing more comes into the chunk: the events after its last record can be shown. */
	void (*end)(void *context, const struct bc_chunk *chunk);

	/* This many records passed that no chunk was free for. */
	void (*passed)(void *context, uint64_t records);
};

struct bc_channel_options {
	uv_loop_t *loop;
	struct bc_pipeline *pipeline;
	bool keeps_raw;    /* a recording's bytes are saved beside its records */
	uint64_t flush_ns; /* a recording's chunk is handed on this long after its first record */
	bool has_flight;   /* between recordings it is in flight, not idle */
	struct bc_overwrite_ring_limits flight_limits;
	const struct bc_record_filter *filter;  /* what is kept; NULL: everything */
	const struct bc_channel_viewer *viewer; /* NULL: none */
	struct bc_trigger_engine *triggers;     /* NULL: none */
	void *context;

	/* A trigger of the watch has hit: its event is on record; what it sets off is the callee's
	 * to do, at once. Only what can be done as things stand is asked for. */
	void (*on_match)(void *context, const struct bc_trigger_match *match);

	void *session; /* the context of on_full() */

	/* The recording has as many records as bc_channel_start_recording() was told, the last of
	 * them before position `at`: bc_channel_finish_recording() it, or see to it that no more
	 * comes. May be NULL if no limit is ever set. */
	void (*on_full)(void *session, uint32_t at);
};

/* Opens a channel, idle or in flight. Returns 0 or -ENOMEM. */
int bc_channel_open(
	struct bc_channel **channel, const struct bc_channel_options *options) BC_MUST_CHECK;

/* No recording may be under way, nor an end wait to be sent. Gives its slots back. Memory goes when
 * the loop has closed the handle. NULL is none. */
void bc_channel_close(struct bc_channel *channel);

enum bc_channel_state bc_channel_state(const struct bc_channel *channel);

void bc_channel_set_flush(struct bc_channel *channel, uint64_t flush_ns);

/* The ticks of a second of the bus; 0: not known. */
void bc_channel_set_clock(struct bc_channel *channel, uint64_t clock_hz);

/* Recordings */

/* Whether a recording may begin: none is under way, nor still to be handed on. */
bool bc_channel_is_ready(const struct bc_channel *channel);

/* Whether triggers may begin one; at first they may not. And what triggers can set off as things
 * stand, as bc_trigger_engine.actions has it. */
void bc_channel_allow_triggers(struct bc_channel *channel, bool may_start);
uint32_t bc_channel_possible_actions(const struct bc_channel *channel);

/* Begins a recording with the record at position `at` of the chunk being filled, or with
 * BC_CHANNEL_NOW the next to come, and in flight with so much of what was held before it. The
 * caller keeps its description until its BC_NOTICE_ENDED. It is full with `records_max` records (0:
 * never). Returns the position at which that record then stands. */
uint32_t bc_channel_start_recording(struct bc_channel *channel,
	const struct bc_recording_info *recording, const struct bc_time_or_size *before,
	uint32_t at, uint64_t records_max);

/* No more than so many records of the recording under way may come behind position `at`; or, of
 * those that are in the chunk being filled, none behind `at` whose tick is `tick` or later. It
 * stays at less if less may come already. */
void bc_channel_limit_records(struct bc_channel *channel, uint32_t at, uint64_t records);
void bc_channel_limit_tick(struct bc_channel *channel, uint32_t at, uint64_t tick);

/* A recording that has all it may hold ends: on_full(). */
void bc_channel_check_full(struct bc_channel *channel);

/* Ends the recording before position `at`: what is in hand is written, the segment sealed. */
void bc_channel_finish_recording(struct bc_channel *channel, uint32_t at);

/* Ends the segment here: what comes next is in a new one. */
void bc_channel_cut(struct bc_channel *channel);

/* Records taken into the recording so far; and how many more may come. */
uint64_t bc_channel_records(const struct bc_channel *channel);
uint64_t bc_channel_records_left(const struct bc_channel *channel);

/* Whether anything has come from the source. */
bool bc_channel_has_started(const struct bc_channel *channel);

/* Puts a mark or trigger before position `at`: where it then stands is in *event. Returns false
 * when there is no room for it now, or nothing has come yet: a recording's first chunk must not go
 * before its description is complete. */
bool bc_channel_mark(
	struct bc_channel *channel, struct bc_event *event, const char *text, uint32_t at);

/* Where the record at position `at` is, or would be. */
struct bc_place {
	uint64_t record; /* of the recording; UINT64_MAX where there is none */
	uint64_t tick;
	uint32_t epoch;
};
struct bc_place bc_channel_place(const struct bc_channel *channel, uint32_t at);

/* What is missing by one cause since it was taken last: gaps, and what they say is lost. */
struct bc_gap_sum {
	uint64_t gaps;
	uint64_t lost;
	bool is_inexact;
};
void bc_channel_pop_gaps(struct bc_channel *channel, struct bc_gap_sum sums[BC_GAP_CAUSES]);

/* When records came last, of uv_hrtime(); at first when the channel was opened. */
uint64_t bc_channel_last_ns(const struct bc_channel *channel);

/* What is held in flight. */
struct bc_overwrite_ring_state bc_channel_flight_state(const struct bc_channel *channel);

/* There is room in the pipeline again: sends an end that waited for it. */
void bc_channel_on_slot_free(struct bc_channel *channel);

/* The decoder's */

/* Keeps a new piece of the stream as it came, if the channel does. Called before the piece is
 * decoded, once. Without room, a live source's bytes are dropped, counted, and said to be by a
 * break in the capture; of any other source returns false: offer the piece again. */
bool bc_channel_keep_raw(
	struct bc_channel *channel, const struct bc_source_data *data, bool is_live);

/* Whether nothing was kept or dropped of the recording's stream yet. */
bool bc_channel_is_raw_fresh(const struct bc_channel *channel);

/* The chunk to put records into: of the stamper's epoch, with what is missing before them noted.
 * NULL when none is free. */
struct bc_chunk *bc_channel_chunk(struct bc_channel *channel, struct bc_stamper *stamper);

/* What a stamping call did with the chunk. */
void bc_channel_consumed(
	struct bc_channel *channel, struct bc_stamper *stamper, const struct bc_stamped *stamped);

/* What a skipping call passed over because there was no chunk: counted, and a gap at this place of
 * what is kept. */
void bc_channel_dropped(struct bc_channel *channel, const struct bc_stamped *stamped);

/* Samples are missing here: `lost` of them, or at least so many. */
void bc_channel_gap(struct bc_channel *channel, enum bc_gap_cause cause, uint64_t lost, bool exact);

/* The same, for so long by the host's clock. */
void bc_channel_gap_lasting(struct bc_channel *channel, enum bc_gap_cause cause, uint64_t lost,
	bool exact, uint64_t duration_ns);

/* Carries over a gap or mark of a recording that is replayed, or sets a board's trigger. Position
 * and text offset are set here. Returns false when there is no chunk to hold it yet. */
bool bc_channel_event(struct bc_channel *channel, struct bc_stamper *stamper,
	const struct bc_event *event, const char *text);

/* Hands on the chunk being filled, if it holds anything; the next goes on behind it. */
void bc_channel_submit(struct bc_channel *channel);

/* The host's time of day of the present chunk's first record, where it is not now. */
void bc_channel_set_wall(struct bc_channel *channel, int64_t wall_ns);

struct bc_counts *bc_channel_counts(struct bc_channel *channel);

#endif
