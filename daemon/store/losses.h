/* Gaps and the samples lost in them, by cause: the one form in which losses are counted, from the
 * channel to the status. */
#ifndef BC_DAEMON_STORE_LOSSES_H
#define BC_DAEMON_STORE_LOSSES_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/bus/chunk.h"

struct bc_losses {
	uint64_t gaps[BC_GAP_CAUSES];
	uint64_t lost[BC_GAP_CAUSES];
	uint64_t inexact[BC_GAP_CAUSES]; /* gaps in which more samples may be missing */
};

/* Sums over all causes. */
struct bc_loss_sum {
	uint64_t gaps;
	uint64_t lost;
	uint64_t inexact;
};
struct bc_loss_sum bc_losses_sum(const struct bc_losses *losses);

/* Returns whether samples are missing, even an unknown number. */
bool bc_losses_has_any(const struct bc_losses *losses);

/* Add a gap event; a chunk's gap events. Causes unknown to this version count as 0. */
void bc_losses_add_gap(struct bc_losses *losses, const struct bc_event *gap);
void bc_losses_add_chunk(struct bc_losses *losses, const struct bc_chunk *chunk);

void bc_losses_add(struct bc_losses *losses, const struct bc_losses *more);

/* Returns what was added to `before` to make `now`. */
struct bc_losses bc_losses_since(const struct bc_losses *now, const struct bc_losses *before);

#endif
