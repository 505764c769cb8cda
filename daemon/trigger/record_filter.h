/* What of the new records is kept: filters, and periodic sampling. [filter] of the configuration,
 * and `sampling` of [recording].
 *
 * Around each stamping call:
 *
 *     bc_record_filter_start(&state, &stamper, chunk);
 *     bc_stamp_...(&stamper, run, limit, chunk, &stamped);
 *     removed = bc_record_filter_records(&sift, &state, &stamper, chunk, clock_hz);
 *
 * and the chunk is as if the samples that went had never been records: ticks, anchors and events of
 * those that stay are exact, here and in whatever comes next. The state lives from one of the two
 * calls to the other, and no longer: chunks, epochs and recordings may change in between, and rules
 * come and go. */
#ifndef BC_DAEMON_TRIGGER_RECORD_FILTER_H
#define BC_DAEMON_TRIGGER_RECORD_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/bus/stamp.h"
#include "formats/trace/filter.h"

#define BC_RECORD_FILTER_RULES    8u
#define BC_RECORD_FILTER_NAME_MAX 32u

/* What is taken for a clock that nobody knows, in ticks a second; docs/configuration.md. */
#define BC_DEFAULT_CLOCK_HZ 66000000u

struct bc_record_filter_rule {
	char name[BC_RECORD_FILTER_NAME_MAX + 1]; /* of `keep.NAME`; empty for `keep` */
	char where[200];                          /* as written */
	struct bc_filter filter;
};

struct bc_record_filter_rules {
	unsigned count;
	struct bc_record_filter_rule rules[BC_RECORD_FILTER_RULES];
};

/* The first width_ns of each period_ns are kept, by the bus's clock: a tick's time is counted from
 * tick 0 of its epoch. period_ns 0: all. */
struct bc_sampling {
	uint64_t width_ns;
	uint64_t period_ns;
};

struct bc_record_filter {
	struct bc_record_filter_rules keep;      /* what one of these wants; none: everything */
	struct bc_record_filter_rules leave_out; /* but for what one of these wants */
	struct bc_sampling sampling;
};

/* Where the time line stood before a stamping call. */
struct bc_record_filter_state {
	uint32_t from; /* the first new record's place in the chunk */
	uint64_t record_tick;
	bool is_first;
	bool is_inexact;
	bool is_delta_lost;
	uint64_t first_tick; /* of the chunk */
	uint64_t last_tick;
};

static inline bool bc_record_filter_keeps_all(const struct bc_record_filter *filter)
{
	return filter->keep.count == 0 && filter->leave_out.count == 0 &&
	       filter->sampling.period_ns == 0;
}

static inline void bc_record_filter_start(struct bc_record_filter_state *state,
	const struct bc_stamper *stamper, const struct bc_chunk *chunk)
{
	*state = (struct bc_record_filter_state){
		.from = chunk->info.records,
		.record_tick = stamper->record_tick,
		.is_first = stamper->is_first,
		.is_inexact = stamper->is_inexact,
		.is_delta_lost = stamper->is_delta_lost,
		.first_tick = chunk->info.first_tick,
		.last_tick = chunk->info.last_tick,
	};
}

/* Takes what isn't wanted out of the records that were stamped since bc_record_filter_start(), in
 * place, and returns how many went. The next record that stays takes up their ticks, with an anchor
 * where that is too many for a delta; if none stays, the stamper is set so that the next one it
 * makes does. Events of records that went stand before the next that stays; anchors go with their
 * records.
 *
 * A chunk with all its events used up has no room for an anchor. Then, so that no tick is lost, a
 * record that isn't wanted stays wherever the ticks would grow too many for a delta.
 *
 * clock_hz 0: BC_DEFAULT_CLOCK_HZ is taken. `sift` may be NULL: nothing to do. */
uint32_t bc_record_filter_records(const struct bc_record_filter *filter,
	const struct bc_record_filter_state *state, struct bc_stamper *stamper,
	struct bc_chunk *chunk, uint64_t clock_hz);

/* Sets one key of [filter]: keep, keep.NAME, leave_out, leave_out.NAME; the same key again replaces
 * its rule, an empty value takes it away. On failure returns false with a sentence in `err`. */
bool bc_record_filter_set(struct bc_record_filter *filter, const char *key, const char *value,
	char *err, size_t errlen) BC_MUST_CHECK;

/* Reads "WIDTH/PERIOD", as 10ms/1s; empty or "all": everything. The same. */
bool bc_sampling_parse(
	struct bc_sampling *sampling, const char *text, char *err, size_t errlen) BC_MUST_CHECK;

#endif
