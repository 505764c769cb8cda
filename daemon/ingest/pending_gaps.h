/* Gaps that wait for a chunk: where samples are missing, none may be being filled, so the gap is
 * written before the next record. There is one gap per cause: further losses at the same place are
 * added to it, even after it was written. */
#ifndef BC_DAEMON_INGEST_PENDING_GAPS_H
#define BC_DAEMON_INGEST_PENDING_GAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/bus/chunk.h"
#include "formats/bus/loss.h"

/* By cause. Initially all zeros: none. */
struct bc_pending_gaps {
	struct bc_event events[BC_GAP_CAUSES]; /* kind 0: none */
	uint64_t since_ns[BC_GAP_CAUSES];      /* uv_hrtime() when the latest one was added */
};

/* Returns how many events bc_pending_gaps_write() will write. */
uint32_t bc_pending_gaps_count(const struct bc_pending_gaps *gaps);

/* Moves the gaps to the end of a chunk, which must have room for them. */
void bc_pending_gaps_write(struct bc_pending_gaps *gaps, struct bc_chunk *chunk);

void bc_pending_gaps_clear(struct bc_pending_gaps *gaps);

/* Adds a loss to the gap of this cause at the end of `chunk`, which may be NULL, or else to the
 * waiting gap: `lost` samples are missing or, if not exact, at least `lost`. Adds the same to
 * `losses` unless it is NULL. Returns the gap; the caller sets its duration. */
struct bc_event *bc_pending_gaps_add(struct bc_pending_gaps *gaps, struct bc_chunk *chunk,
	enum bc_gap_cause cause, uint64_t lost, bool exact, struct bc_losses *losses);

/* Adds the waiting gaps to `losses`. */
void bc_pending_gaps_add_losses(const struct bc_pending_gaps *gaps, struct bc_losses *losses);

#endif
