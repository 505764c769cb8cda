/* Whether the times of a pair are equal according to formats/diff/match.h: the time of B minus the
 * skew differs from that of A by at most the window. Inline, because it is called for every pair.
 * Private to formats/diff/match.c. */
#ifndef BC_FORMATS_DIFF_MATCH_TIME_H
#define BC_FORMATS_DIFF_MATCH_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/bus/record.h"
#include "formats/diff/compare.h"
#include "formats/diff/match_options.h"
#include "formats/trace/entry.h"

static inline bool bc_match_time_is_compared(const struct bc_match_options *options)
{
	return (options->fields & BC_FIELD_TIME) != 0;
}

static inline bool bc_match_time_is_same(const struct bc_match_options *options,
	const struct bc_entry *a, const struct bc_entry *b, uint64_t skew)
{
	if (!bc_match_time_is_compared(options) || ((a->has | b->has) & BC_HAS_TIME) == 0)
		return true;
	if ((a->has & b->has & BC_HAS_TIME) == 0)
		return false;
	if (a->unit != b->unit && a->unit != BC_UNIT_TICK && b->unit != BC_UNIT_TICK)
		return false;
	/* A missing delta never equals a known one, regardless of the sums. */
	if (a->has_delta && b->has_delta &&
		(a->delta == BC_TIME_NONE) != (b->delta == BC_TIME_NONE))
		return false;
	uint64_t apart = b->tick - a->tick - skew;
	return apart <= options->window || 0 - apart <= options->window;
}

#endif
