/* Whether the times of two entries are equal. Inline, because it is called for every pair. Private
 * to this room. */
#ifndef BC_FORMATS_DIFF_MATCH_TIME_H
#define BC_FORMATS_DIFF_MATCH_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/bus/record.h"
#include "formats/diff/compare.h"
#include "formats/diff/match_options.h"
#include "formats/trace/entry.h"

static inline bool bc_time_is_compared(const struct bc_match_options *options)
{
	return (options->fields & BC_FIELD_TIME) != 0;
}

static inline bool bc_time_has_no_delta(const struct bc_entry *entry)
{
	return entry->has_delta && entry->delta == BC_TIME_NONE;
}

/* Whether the times of a pair are equal if `skew` is added to that of A. */
static inline bool bc_time_is_same(const struct bc_match_options *options, const struct bc_entry *a,
	const struct bc_entry *b, uint64_t skew)
{
	if (!bc_time_is_compared(options) || ((a->has | b->has) & BC_HAS_TIME) == 0)
		return true;
	if ((a->has & b->has & BC_HAS_TIME) == 0)
		return false;
	if (a->unit != b->unit && a->unit != BC_UNIT_TICK && b->unit != BC_UNIT_TICK)
		return false;
	if (options->is_same_clock ? a->epoch != b->epoch
				   : a->has_delta && b->has_delta &&
					     bc_time_has_no_delta(a) != bc_time_has_no_delta(b))
		return false;
	uint64_t apart = b->tick - a->tick - skew;
	return apart <= options->window || 0 - apart <= options->window;
}

#endif
