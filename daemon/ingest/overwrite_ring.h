/* The flight recorder's memory: the latest chunks of a channel, in order, the oldest given up when
 * there are more than the limits say. It only keeps slots; taking and giving back is its owner's.
 */
#ifndef BC_DAEMON_INGEST_OVERWRITE_RING_H
#define BC_DAEMON_INGEST_OVERWRITE_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/time_or_size.h"
#include "daemon/store/recording_info.h"
#include "formats/base/must_check.h"

/* What is to be held: the latest `ns` by the host's clock, the latest `bytes` of records, and no
 * more than so many chunks. 0: no such limit, but for chunks. */
struct bc_overwrite_ring_limits {
	uint64_t ns;
	uint64_t bytes;
	unsigned chunks;
};

struct bc_overwrite_ring {
	struct bc_overwrite_ring_limits limits;
	struct bc_slot **slots; /* `limits.chunks` of them, a ring */
	unsigned oldest;
	unsigned count;
	uint64_t records;
};

/* How much is held. */
struct bc_overwrite_ring_state {
	unsigned chunks;
	uint64_t records;
	uint64_t ns; /* since its first record arrived */
};

/* Returns 0 or -ENOMEM. Free it either way; no slot may be in it then. */
int bc_overwrite_ring_init(struct bc_overwrite_ring *ring,
	const struct bc_overwrite_ring_limits *limits) BC_MUST_CHECK;
void bc_overwrite_ring_free(struct bc_overwrite_ring *ring);

/* Adds a chunk behind the others. There must be room: bc_overwrite_ring_has_room(). */
void bc_overwrite_ring_add(struct bc_overwrite_ring *ring, struct bc_slot *slot);

static inline bool bc_overwrite_ring_has_room(const struct bc_overwrite_ring *ring)
{
	return ring->count < ring->limits.chunks;
}

/* Takes the oldest out; NULL: it is empty. */
struct bc_slot *bc_overwrite_ring_pop(struct bc_overwrite_ring *ring);

/* The oldest, which stays; NULL: it is empty. */
struct bc_slot *bc_overwrite_ring_peek(const struct bc_overwrite_ring *ring);

/* Whether the oldest is more than the limits want held. `behind` records are held besides, in a
 * chunk that is not full yet; `now_ns` is of uv_hrtime(). */
bool bc_overwrite_ring_is_over(
	const struct bc_overwrite_ring *ring, uint64_t unfinished, uint64_t now_ns);

/* Whether a chunk that has been filled since then should be added though it isn't full: the time to
 * be held is given up in steps of chunks, on a slow bus, too. */
bool bc_overwrite_ring_is_due(
	const struct bc_overwrite_ring *ring, uint64_t since_ns, uint64_t now_ns);

/* How many records at the head of a chunk arrived before a moment, as its first and last arrival
 * and its ticks tell: evenly by the bus's clock between them. */
uint32_t bc_slot_records_before(const struct bc_slot *slot, uint64_t ns);

#endif
