/* A channel carries one decoded stream into chunks. Full chunks are discarded while it is idle,
 * kept in the overwrite ring in flight, and sent to the encoder, and so to disk, while it is
 * recording. The source has one channel for the daemon's lifetime; recordings start and end in it.
 *
 * Why a state per channel, not a pipeline per recording: a recording can start or end at any
 * record, because the record is still in the chunk being filled when triggers are searched. The
 * chunk is split there (formats/bus/chunk.h), which copies at most one chunk.
 *
 * The decoder repeats:
 *
 *     bc_channel_chunk()          the chunk to stamp records into; NULL: wait, or drop
 *     bc_channel_consumed()       the records that were stamped, or
 *     bc_channel_dropped()        the samples that were skipped because there was no chunk
 *     bc_channel_gap()            samples are missing here
 *
 * bc_channel_consumed() passes the new records through the filter, to live clients and to the
 * trigger engine, in this order. A trigger's action may start or end a recording within these
 * records. Positions are record indexes in the chunk being filled.
 *
 * Costs nothing per record beyond stamping, unless a filter, viewer or trigger is set; allocates
 * only in bc_channel_open(). All functions are called on the loop thread. */
#ifndef BC_DAEMON_INGEST_CHANNEL_H
#define BC_DAEMON_INGEST_CHANNEL_H

#include <uv.h>

#include "daemon/ingest/clock_map.h"
#include "daemon/ingest/overwrite_ring.h"
#include "formats/base/must_check.h"
#include "formats/bus/chunk.h"
#include "formats/bus/loss.h"

struct bc_counts;
struct bc_trigger_match;
struct bc_channel;
struct bc_pipeline;
struct bc_record_filter;
struct bc_stamped;
struct bc_stamper;
struct bc_trigger_engine;

enum bc_channel_state { BC_CHANNEL_IDLE, BC_CHANNEL_FLIGHT, BC_CHANNEL_RECORDING };

/* The position after the last record in the channel. */
#define BC_CHANNEL_NOW UINT32_MAX

/* How live clients see a channel. */
struct bc_channel_viewer {
	void *context;

	/* Records `from` to the chunk's end are new, with the events at their positions.
	 * `first_record` is the number of record `from` in the recording, UINT64_MAX outside a
	 * recording; `tick_before` is the tick of the record before it; clock_hz 0: unknown. */
	void (*records)(void *context, const struct bc_chunk *chunk, uint32_t from,
		uint64_t first_record, uint64_t tick_before, uint64_t clock_hz);

	/* The chunk is complete: the events after its last record may be shown. */
	void (*end)(void *context, const struct bc_chunk *chunk);

	/* This many records were dropped because no chunk was free. */
	void (*skipped)(void *context, uint64_t records);
};

struct bc_channel_options {
	uv_loop_t *loop;
	struct bc_pipeline *pipeline;
	bool is_live;      /* records arrive soon after they were on the bus */
	bool can_wait;     /* the source waits while no slot is free or the encoder is busy */
	uint64_t flush_ns; /* a recording's chunk is sent this long after its first record */
	bool has_flight;   /* between recordings the state is flight, not idle */
	struct bc_overwrite_ring_limits flight_limits;
	const struct bc_record_filter *filter;  /* which records to keep; NULL: all */
	const struct bc_channel_viewer *viewer; /* NULL: none */
	struct bc_trigger_engine *triggers;     /* NULL: none */
	void *context;

	/* A trigger matched. Its event is already in the chunk; the callee performs its action
	 * before returning. Called only for actions that are possible in the current state. */
	void (*on_match)(void *context, const struct bc_trigger_match *match);

	/* The clock map has something to tell; `ns`: its news_ns. May be NULL. */
	void (*on_clock)(void *context, enum bc_clock_map_news news, int64_t ns);

	void *session; /* the context of on_full() */

	/* The recording has reached its record limit; its last record is before position `at`. The
	 * callee calls bc_channel_finish_recording() or stops the decoder. May be NULL if no limit
	 * is ever set. */
	void (*on_full)(void *session, uint32_t at);
};

/* Opens a channel, idle or in flight. Returns 0 or -ENOMEM. */
int bc_channel_open(
	struct bc_channel **channel, const struct bc_channel_options *options) BC_MUST_CHECK;

/* Returns the channel's slots to the pool. No recording may be in progress and no end may be
 * waiting to be sent. The memory is freed when the loop has closed the handle. NULL is allowed. */
void bc_channel_close(struct bc_channel *channel);

enum bc_channel_state bc_channel_state(const struct bc_channel *channel);

void bc_channel_set_flush(struct bc_channel *channel, uint64_t flush_ns);

/* Sets the bus clock in ticks per second; 0: unknown. */
void bc_channel_set_clock(struct bc_channel *channel, uint64_t clock_hz);

/* Recordings */

/* Returns whether a recording can start: none is in progress or waiting to be sent. */
bool bc_channel_is_ready(const struct bc_channel *channel);

/* Sets whether triggers may start a recording; initially false. */
void bc_channel_allow_triggers(struct bc_channel *channel, bool may_start);

/* Tells the trigger engine, which must not be NULL, which triggers may act now. */
void bc_channel_limit_triggers(const struct bc_channel *channel);

/* Prepares a recording that starts with the record at position `at` (BC_CHANNEL_NOW: with the next
 * one to arrive), preceded by up to `before` of the overwrite ring: discards all earlier records.
 * Returns the new position. *wall_ns becomes the time of day at which the recording's first record
 * arrived, or the current time if it has not. */
uint32_t bc_channel_trim(struct bc_channel *channel, const struct bc_time_or_size *before,
	uint32_t at, int64_t *wall_ns);

/* Starts a recording, directly after bc_channel_trim(). `recording` must remain valid until its
 * BC_NOTICE_ENDED. records_max limits its records; 0: no limit. */
void bc_channel_start_recording(struct bc_channel *channel,
	const struct bc_recording_info *recording, uint64_t records_max);

/* Limits the recording to `records` more from position `at`, unless a lower limit is set. */
void bc_channel_limit_records(struct bc_channel *channel, uint32_t at, uint64_t records);

/* Likewise, up to the first record from position `at` whose tick is `tick` or later. No-op if the
 * chunk being filled has no such record. */
void bc_channel_limit_tick(struct bc_channel *channel, uint32_t at, uint64_t tick);

/* Calls on_full() if the recording has reached its record limit. */
void bc_channel_check_full(struct bc_channel *channel);

/* Ends the recording before position `at`: the rest is sent, and its segment sealed. */
void bc_channel_finish_recording(struct bc_channel *channel, uint32_t at);

/* Ends the current segment; the next record goes into a new one. */
void bc_channel_cut(struct bc_channel *channel);

/* The segment since the latest cut or the start; the writer may have cut it further, by size. */
struct bc_channel_segment {
	uint64_t first_record; /* counted in the recording */
	/* When that record arrived, if it has; when the recording started, if it is older. */
	uint64_t since_ns; /* uv_hrtime() */
	int64_t wall_ns;   /* time of day, of that record as in its chunk: not of its arrival */
};
const struct bc_channel_segment *bc_channel_segment(const struct bc_channel *channel);

/* Return how many records are in the recording so far, and how many more its limit permits. */
uint64_t bc_channel_records(const struct bc_channel *channel);
uint64_t bc_channel_records_left(const struct bc_channel *channel);

/* Sets *tick to the first tick that is not earlier than a time in uv_hrtime(). Returns false if the
 * clock map does not know, or is not used. */
bool bc_channel_tick_at(const struct bc_channel *channel, uint64_t *tick, uint64_t now_ns);

/* Returns whether the source has delivered anything. */
bool bc_channel_has_started(const struct bc_channel *channel);

/* Adds a mark or trigger after the latest record, and sets event->position. Returns false if no
 * slot is free, or if the source has not delivered anything: the first chunk of a recording must
 * not be sent before its description is complete. */
bool bc_channel_mark(struct bc_channel *channel, struct bc_event *event, const char *text);

/* Where the record at a position is, or will be. */
struct bc_place {
	uint64_t record; /* number in the recording; UINT64_MAX outside a recording */
	uint64_t tick;
	uint32_t epoch;
};
struct bc_place bc_channel_place(const struct bc_channel *channel, uint32_t at);

/* Returns the losses of the current or last recording: those that the gaps in its files show once
 * everything sent is written. */
struct bc_losses bc_channel_losses(const struct bc_channel *channel);

/* Returns when the last record arrived, in uv_hrtime(); when the channel was opened if none has. */
uint64_t bc_channel_last_ns(const struct bc_channel *channel);

/* Returns what the overwrite ring and the chunk being filled contain; zeros unless in flight. */
struct bc_overwrite_ring_state bc_channel_flight_state(const struct bc_channel *channel);

/* Call it when a slot is free again: sends the end that waited for one. */
void bc_channel_on_slot_free(struct bc_channel *channel);

/* For the decoder */

/* Starts an epoch, for the stamper too: submits the chunk being filled; the next one continues
 * after `tick`. Whatever follows is of this epoch, also gaps and marks. */
void bc_channel_begin_epoch(
	struct bc_channel *channel, struct bc_stamper *stamper, uint32_t epoch, uint64_t tick);

/* Returns the chunk to stamp records into, with the waiting gaps written; NULL if no slot is free,
 * or if the source can wait and the encoder is busy. */
struct bc_chunk *bc_channel_chunk(struct bc_channel *channel, struct bc_stamper *stamper);

/* Processes the records that a stamping call has added to that chunk. */
void bc_channel_consumed(
	struct bc_channel *channel, struct bc_stamper *stamper, const struct bc_stamped *stamped);

/* Counts the samples that a skipping call has passed over because no chunk was free, as a gap. */
void bc_channel_dropped(struct bc_channel *channel, const struct bc_stamped *stamped);

/* Adds a gap after the latest record: `lost` samples, or at least so many if not exact. */
void bc_channel_gap(struct bc_channel *channel, enum bc_gap_cause cause, uint64_t lost, bool exact);

/* Likewise, with the gap's duration by the host's clock. */
void bc_channel_gap_lasting(struct bc_channel *channel, enum bc_gap_cause cause, uint64_t lost,
	bool exact, uint64_t duration_ns);

/* Adds an event after the latest record: a copy from a replayed recording, or a board's trigger.
 * Returns false if no slot is free. */
bool bc_channel_event(struct bc_channel *channel, struct bc_stamper *stamper,
	const struct bc_event *event, const char *text);

/* Submits the chunk being filled unless it is empty; the next one continues after it. */
void bc_channel_submit(struct bc_channel *channel);

/* Until the epoch ends, chunks get the wall time wall_ns at `tick`, advanced by the ticks if
 * clock_hz is not 0, instead of that of the clock map. Call it after bc_channel_chunk(). */
void bc_channel_set_wall(
	struct bc_channel *channel, int64_t wall_ns, uint64_t tick, uint64_t clock_hz);

struct bc_counts *bc_channel_counts(struct bc_channel *channel);

#endif
