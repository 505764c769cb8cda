/* Chooses which new records to keep: the [filter] rules and the sampling of [recording].
 *
 * Around each stamping call:
 *
 *     bc_record_filter_start(&state, &stamper, chunk);
 *     bc_stamp_...(&stamper, run, limit, chunk, &stamped);
 *     removed = bc_record_filter_records(&filter, &state, &stamper, chunk, clock_hz);
 *
 * Afterwards the chunk is as if the removed samples had never become records: the ticks, anchors
 * and events of the others are exact, here and in later chunks. The state is only valid between
 * these two calls; chunks, epochs, recordings and rules may change in between. */
#ifndef BC_DAEMON_INGEST_RECORD_FILTER_H
#define BC_DAEMON_INGEST_RECORD_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/rules.h"
#include "formats/base/must_check.h"
#include "formats/bus/stamp.h"
#include "formats/trace/filter.h"
#include "formats/trace/name_map.h"

#define BC_RECORD_FILTER_RULES 8u

struct bc_record_filter_rule {
	char name[BC_SETTING_NAME_MAX + 1]; /* NAME of `keep.NAME`; empty for `keep` */
	char where[200];                    /* as written */
	struct bc_filter filter;
};

struct bc_record_filter_rules {
	unsigned count;
	struct bc_record_filter_rule rules[BC_RECORD_FILTER_RULES];
};

/* Keeps the first width_ns of each period_ns of bus time from an epoch's tick 0. 0: keeps all. */
struct bc_sampling {
	uint64_t width_ns;
	uint64_t period_ns;
};

struct bc_record_filter {
	struct bc_record_filter_rules keep;      /* keep what matches any; none: keep all */
	struct bc_record_filter_rules leave_out; /* then remove what matches any */
	struct bc_sampling sampling;
};

/* The time line before a stamping call. */
struct bc_record_filter_state {
	uint32_t from; /* position of the first new record */
	struct bc_stamper stamper;
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
		.stamper = *stamper,
		.first_tick = chunk->info.first_tick,
		.last_tick = chunk->info.last_tick,
	};
}

/* Filters the records stamped since bc_record_filter_start() in place and returns how many were
 * removed. The next kept record gets their ticks, with an anchor if they do not fit into a delta;
 * if none is kept, the stamper is set so that its next record does. Events of removed records move
 * to the next kept record; anchors are removed with their records.
 *
 * A chunk without space for another event cannot take an anchor. To lose no ticks, it then keeps a
 * record that should be removed wherever the ticks would exceed a delta.
 *
 * clock_hz 0: BC_DEFAULT_CLOCK_HZ. `filter` may be NULL: nothing is removed. */
uint32_t bc_record_filter_records(const struct bc_record_filter *filter,
	const struct bc_record_filter_state *state, struct bc_stamper *stamper,
	struct bc_chunk *chunk, uint64_t clock_hz);

/* Sets one key of [filter]: keep, keep.NAME, leave_out or leave_out.NAME. Setting a key again
 * replaces its rule; an empty value removes it. On failure returns false with a sentence in `err`,
 * and the filter is unchanged. */
bool bc_record_filter_set(struct bc_record_filter *filter, const char *key, const char *value,
	char *err, size_t errlen) BC_MUST_CHECK;

/* Parses "WIDTH/PERIOD" such as 10ms/1s; empty or "all" keeps everything. On failure returns false
 * with a sentence in `err` that does not name the key, and *sampling is unchanged. */
bool bc_sampling_parse(
	struct bc_sampling *sampling, const char *text, char *err, size_t errlen) BC_MUST_CHECK;

/* Looks up the regions in its rules; until then they match nothing. On failure returns false with
 * a message in `err` that names the rule. */
bool bc_record_filter_find_regions(struct bc_record_filter *filter, const struct bc_name_map *names,
	char *err, size_t errlen) BC_MUST_CHECK;

#endif
