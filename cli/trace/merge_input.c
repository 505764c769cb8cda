#include "cli/trace/merge_input.h"

#include <string.h>

#define NS_PER_S 1000000000
#define SIGN     (UINT64_C(1) << 63)

void bc_merge_input_fill(struct bc_merge_input *in)
{
	struct bc_batch batch;

	while (in->left == 0 && !in->is_over) {
		in->is_over = !bc_trace_next(&in->trace, &batch);
		if (in->is_over)
			break;
		in->at = batch.entries;
		in->left = batch.count;
	}
}

/* Returns the time of day of a tick in ns, with the sign bit inverted so that unsigned comparison
 * orders it. */
static uint64_t wall_of(struct bc_merge_input *in, uint64_t tick)
{
	const struct bc_moment *m = &in->trace.moment;
	uint64_t clock_hz = m->clock_hz != 0 ? m->clock_hz : in->clock_hz;

	if (!m->is_known || clock_hz == 0) {
		in->no_clock = true;
		return SIGN;
	}
	__int128 ns = ((__int128)tick - (__int128)m->tick) * NS_PER_S;
	/* Round down, also for times before the moment. */
	__int128 whole = ns / (__int128)clock_hz;
	whole -= ns % (__int128)clock_hz < 0;
	ns = whole + m->wall_ns;
	if (ns > INT64_MAX)
		ns = INT64_MAX;
	if (ns < INT64_MIN)
		ns = INT64_MIN;
	return (uint64_t)(int64_t)ns ^ SIGN;
}

void bc_merge_input_peek(struct bc_merge_input *in, enum bc_merge_by by)
{
	const struct bc_entry *entry = in->at;
	bool is_event = entry->kind == BC_ENTRY_EVENT;
	struct bc_merge_key key = {.epoch = entry->epoch, .time = entry->tick};

	if ((entry->has & BC_HAS_TIME) == 0 && !(is_event && in->trace.format == BC_FORMAT_SEGMENT))
		return;
	if (by == BC_MERGE_BY_WALL)
		key = (struct bc_merge_key){.time = wall_of(in, entry->tick)};
	if (in->has_key && bc_merge_key_is_less(key, in->key)) {
		/* At the end of a chunk, an event has the tick of the previous entry: it is not out
		 * of order. */
		if (!is_event) {
			uint64_t early = key.epoch == in->key.epoch ? in->key.time - key.time : 0;
			in->disorders++;
			in->most_early = early > in->most_early ? early : in->most_early;
		}
		return;
	}
	in->has_key = true;
	in->key = key;
}
