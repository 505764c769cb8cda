/* Gaps and the samples lost in them: the one form in which losses are counted, from the channel to
 * the files, the status and every command. No number of lost samples goes without its exactness. */
#ifndef BC_FORMATS_BUS_LOSS_H
#define BC_FORMATS_BUS_LOSS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/bus/chunk.h"

struct bc_losses {
	uint64_t gaps[BC_GAP_CAUSES];
	uint64_t lost[BC_GAP_CAUSES];
	uint64_t inexact[BC_GAP_CAUSES]; /* gaps in which more samples may be missing */
	uint64_t away_ns;                /* how long nothing was recorded: the gaps' durations */
};

/* Sums over all causes. */
struct bc_loss {
	uint64_t gaps;
	uint64_t lost;    /* at least, if `inexact` is not 0 */
	uint64_t inexact; /* gaps in which more samples may be missing */
	uint64_t away_ns; /* how long nothing was recorded */
};

/* The gaps of a chunk. */
struct bc_loss bc_chunk_loss(const struct bc_chunk *chunk);

/* What a chunk's totals say. */
struct bc_loss bc_totals_loss(const struct bc_totals *totals);

void bc_loss_add(struct bc_loss *loss, struct bc_loss more);

/* Returns what `now` has more than `before`; at least 0, because totals in files may be wrong. */
struct bc_loss bc_loss_since(struct bc_loss now, struct bc_loss before);

/* Raises each member to that of `least`, which is known from elsewhere. */
void bc_loss_raise(struct bc_loss *loss, struct bc_loss least);

/* The members `gaps`, `lost`, `inexact_gaps` and `away_ns` of a JSON object; all null if `loss`
 * is NULL: unknown. Returns NULL if out of memory. */
json_t *bc_loss_json(const struct bc_loss *loss) BC_MUST_CHECK;

/* The same, and `causes`: those members but `away_ns` for each cause that has gaps. */
json_t *bc_losses_json(const struct bc_losses *losses) BC_MUST_CHECK;

/* With the terminating zero. */
#define BC_LOSS_TEXT_MAX 96

/* Returns "an unknown number of samples lost", "at least 250 samples lost" or "250 samples lost",
 * and, if known, for how long: "..., 0.001200 s". Writes to `out`. */
const char *bc_loss_text(char out[BC_LOSS_TEXT_MAX], struct bc_loss loss);

struct bc_loss bc_losses_sum(const struct bc_losses *losses);
struct bc_totals bc_losses_totals(const struct bc_losses *losses);

/* Returns whether samples are missing, even an unknown number. */
bool bc_losses_has_any(const struct bc_losses *losses);

/* Add a gap event; a chunk's gap events. Causes unknown to this version count as 0. */
void bc_losses_add_gap(struct bc_losses *losses, const struct bc_event *gap);
void bc_losses_add_chunk(struct bc_losses *losses, const struct bc_chunk *chunk);

void bc_losses_add(struct bc_losses *losses, const struct bc_losses *more);

/* Returns what was added to `before` to make `now`. */
struct bc_losses bc_losses_since(const struct bc_losses *now, const struct bc_losses *before);

#endif
