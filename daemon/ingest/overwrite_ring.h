/* The overwrite ring: the flight recorder's memory. It has a channel's latest chunks in order, and
 * tells its owner when the oldest exceeds a limit. It stores slots, but does not own them. */
#ifndef BC_DAEMON_INGEST_OVERWRITE_RING_H
#define BC_DAEMON_INGEST_OVERWRITE_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/rules.h"
#include "daemon/ingest/slot.h"
#include "formats/base/must_check.h"

/* What to keep: the latest `ns` by the host's clock, the latest `bytes` of records, and at most
 * `chunks` chunks. 0: no such limit; chunks must be set. */
struct bc_overwrite_ring_limits {
	uint64_t ns;
	uint64_t bytes;
	unsigned chunks;
};

struct bc_overwrite_ring {
	struct bc_overwrite_ring_limits limits;
	struct bc_slot **slots; /* a ring of `limits.chunks` slots */
	unsigned oldest;
	unsigned count;
	uint64_t records;
};

/* How much is in the ring. */
struct bc_overwrite_ring_state {
	unsigned chunks;
	uint64_t records;
	uint64_t ns; /* since its first record arrived */
};

/* Returns 0 or -ENOMEM. Free the ring in both cases; it must be empty then. */
int bc_overwrite_ring_init(struct bc_overwrite_ring *ring,
	const struct bc_overwrite_ring_limits *limits) BC_MUST_CHECK;
void bc_overwrite_ring_free(struct bc_overwrite_ring *ring);

/* Appends a slot. The ring must not be full. */
void bc_overwrite_ring_add(struct bc_overwrite_ring *ring, struct bc_slot *slot);

/* Removes and returns the oldest slot; NULL if empty. */
struct bc_slot *bc_overwrite_ring_pop(struct bc_overwrite_ring *ring);

/* Returns the oldest slot without removing it; NULL if empty. */
struct bc_slot *bc_overwrite_ring_peek(const struct bc_overwrite_ring *ring);

/* Returns whether the limits permit removing the oldest slot, or the ring is full. `unfinished` is
 * the number of records in the chunk still being filled, which count too; now_ns is uv_hrtime(). */
bool bc_overwrite_ring_is_over(
	const struct bc_overwrite_ring *ring, uint64_t unfinished, uint64_t now_ns);

/* Returns whether a chunk that has been filled since since_ns should be added before it is full.
 * Time is discarded in steps of one chunk, so chunks must not last too long on a slow bus. */
bool bc_overwrite_ring_is_due(
	const struct bc_overwrite_ring *ring, uint64_t since_ns, uint64_t now_ns);

/* Returns how many records at the start of a chunk arrived before a given time, by interpolating
 * between its first and last arrival in proportion to ticks. */
uint32_t bc_slot_records_before(const struct bc_slot *slot, uint64_t ns);

/* The inverse: returns how long after the chunk's first record its record n arrived. */
uint64_t bc_slot_arrival_ns(const struct bc_slot *slot, uint32_t n);

#endif
