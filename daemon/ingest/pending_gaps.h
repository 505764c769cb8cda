/* Gaps that wait for a chunk. Where samples are missing, there may be no chunk being filled; the
 * gap is then written before the next record. There is one gap for each cause: what is missing at
 * the same place is added to it, even after it was written. */
#ifndef BC_DAEMON_INGEST_PENDING_GAPS_H
#define BC_DAEMON_INGEST_PENDING_GAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/store/losses.h"
#include "formats/bus/chunk.h"

/* By cause. Initially all zeros: none. */
struct bc_pending_gaps {
	struct bc_event events[BC_GAP_CAUSES]; /* kind 0: none */
	uint64_t since_ns[BC_GAP_CAUSES];      /* uv_hrtime() when the latest one was added */
};

/* Returns how many events bc_pending_gaps_write() will write. */
uint32_t bc_pending_gaps_count(const struct bc_pending_gaps *gaps);

/* Moves them to the end of a chunk, which must have space for them. */
void bc_pending_gaps_write(struct bc_pending_gaps *gaps, struct bc_chunk *chunk);

void bc_pending_gaps_clear(struct bc_pending_gaps *gaps);

/* Adds a loss to the gap of this cause at the end of `chunk` (NULL: there is none), or else to the
 * waiting one: `lost` samples are missing, or, if not exact, at least `lost`. Counts what is added
 * in `losses`, unless it is NULL. Returns the gap, whose duration is the caller's. */
struct bc_event *bc_pending_gaps_add(struct bc_pending_gaps *gaps, struct bc_chunk *chunk,
	enum bc_gap_cause cause, uint64_t lost, bool exact, struct bc_losses *losses);

/* Adds the waiting gaps to `losses`. */
void bc_pending_gaps_add_losses(const struct bc_pending_gaps *gaps, struct bc_losses *losses);

#endif
