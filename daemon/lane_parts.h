/* The inside of a lane, for the files that it is made of: lane.c fills chunks and has its life,
 * lane_gaps.c knows what is missing, lane_recording.c begins and ends recordings, lane_raw.c keeps
 * raw bytes. What stands outside is daemon/lane.h. */
#ifndef BC_DAEMON_LANE_PARTS_H
#define BC_DAEMON_LANE_PARTS_H

#include "daemon/lane.h"
#include "daemon/raw_keep.h"

struct bc_lane {
	struct bc_lane_options options;
	struct bc_counts *counts;
	uv_timer_t flush;
	enum bc_lane_state state;

	struct bc_slot *filling;
	uint64_t tick; /* of the latest record; where a chunk without records goes on */
	uint32_t epoch;
	/* Gaps that wait for a chunk, one of each cause; kind 0: none. */
	struct bc_event pending[BC_GAP_CAUSES];
	uint64_t pending_since_ns[BC_GAP_CAUSES];
	struct bc_flight flight;
	uint64_t clock_hz;
	bool is_sifting; /* the records that are being stamped are to be sifted */
	struct bc_sift_state sift;
	bool may_record; /* triggers may begin a recording */
	bool has_begun;  /* the decoder has asked for a chunk */
	uint32_t scan;   /* of the chunk being filled, where triggers are looked for next */
	uint64_t last_ns;
	struct bc_gap_sum gaps[BC_GAP_CAUSES];

	/* The recording under way. */
	const struct bc_recording *recording;
	uint64_t sent; /* records of it, handed on */
	uint64_t records_max;
	bool is_fresh; /* no delta leads into its first record */
	bool has_cut;  /* a cut waits for a chunk to carry it */
	struct bc_raw_keep raw;
	size_t raw_kept; /* bytes of the piece in hand that are in blocks */

	/* One whose last chunk is still to be sent: `last` if it is filled already. Gaps that wait
	 * are its own until then. */
	const struct bc_recording *ending;
	struct bc_slot *last;
};

/* Records in the chunk being filled. */
static inline uint32_t bc_lane_filled(const struct bc_lane *l)
{
	return l->filling != NULL ? l->filling->chunk.info.records : 0;
}

/* lane.c */

/* An empty slot that goes on where the lane is; NULL: none is free. */
struct bc_slot *bc_lane_take_slot(struct bc_lane *l);

/* Hands on a slot of a recording, the next of it. */
void bc_lane_send_slot(
	struct bc_lane *l, struct bc_slot *slot, const struct bc_recording *recording);

/* A chunk gets nothing more: whoever looks at records is told. */
void bc_lane_leave(struct bc_lane *l, const struct bc_chunk *chunk);

/* A chunk's records are nobody's: counted, and the chunk is empty. */
void bc_lane_discard(struct bc_lane *l, struct bc_chunk *chunk);

/* Gives up the oldest chunk that is held in flight, of which there must be one. */
void bc_lane_drop_oldest(struct bc_lane *l);

/* The chunk being filled, with room for the gaps that wait, one event more and an anchor; NULL when
 * none is free. */
struct bc_chunk *bc_lane_filling_chunk(struct bc_lane *l, uint32_t epoch);

/* Something is in the chunk being filled: it waits no longer than `flush`. */
void bc_lane_time_flush(struct bc_lane *l);

/* lane_gaps.c: the gaps that wait for a chunk */

/* Adds to what bc_lane_take_gaps() takes. */
void bc_lane_sum_gap(
	struct bc_lane *l, enum bc_gap_cause cause, uint64_t gaps, uint64_t lost, bool exact);

uint32_t bc_lane_count_pending(const struct bc_lane *l);

/* Puts them at the end of a chunk, which must have room for them. */
void bc_lane_note_pending(struct bc_lane *l, struct bc_chunk *chunk);
void bc_lane_forget_pending(struct bc_lane *l);

/* lane_recording.c */

/* Where in the chunk being filled the recording has all it may hold; if nowhere, its end. */
uint32_t bc_lane_full_at(const struct bc_lane *l);

/* Sends the chunk being filled, or an empty one, to carry a cut. Returns false when there is none
 * to send. */
bool bc_lane_send_marked(struct bc_lane *l);

/* Sends the ended recording's last chunk, or an empty one, with what waits for it. Returns false
 * when there is none to send yet. */
bool bc_lane_send_end(struct bc_lane *l);

#endif
