/* The data shown by buscap top: the latest status, the recent bus mix, and one sample per second of
 * the last minutes. It is updated from the daemon's responses (docs/api.md). Members that are
 * missing or invalid become 0, empty or unknown. cli/live/top_page.h draws it. */
#ifndef BC_CLI_LIVE_TOP_STATE_H
#define BC_CLI_LIVE_TOP_STATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "formats/trace/name_map.h"

/* A response of /v1/mix. */
struct bc_top_mix {
	json_t *json; /* NULL: none */
	uint64_t at_ns;
	uint64_t sampled; /* records */
	uint64_t of;      /* records from which they were sampled */
};

/* Values that are drawn as graphs. */
enum bc_top_series {
	BC_TOP_SAMPLES,   /* per second */
	BC_TOP_RECORDS,   /* per second */
	BC_TOP_BYTES_OUT, /* per second */
	BC_TOP_BUFFER,    /* share in use, 0 to 1 */
	BC_TOP_LOST,      /* samples in this second */
	BC_TOP_SERIES,
};

#define BC_TOP_SECONDS    1024u
#define BC_TOP_MIX_PERIOD 10u /* seconds over which types and processors are counted */

struct bc_top_second {
	uint64_t second;
	bool is_known;
	double values[BC_TOP_SERIES];
};

struct bc_top_state {
	json_t *status;      /* the latest; NULL: none yet */
	bool is_unreachable; /* see bc_top_state_set_unreachable() */
	char err[256];       /* if is_unreachable */
	uint64_t status_ns;  /* time of the latest status */
	time_t status_wall;
	uint64_t lost_ns;                             /* time of the last loss; 0: none known */
	struct bc_top_second seconds[BC_TOP_SECONDS]; /* index: second modulo BC_TOP_SECONDS */
	struct bc_top_mix mixes[BC_TOP_MIX_PERIOD + 1];
	unsigned latest_mix;
	const struct bc_name_map *names; /* of pages; NULL: none are shown */
};

/* The current time, passed in for tests. */
struct bc_top_now {
	uint64_t ns; /* monotonic clock, not 0 */
	time_t wall;
};

/* Zero the state before the first call; it is too large for the stack. */

/* Adds a status. If the object is not a status, changes nothing and returns false. */
bool bc_top_state_add_status(
	struct bc_top_state *state, json_t *status, const struct bc_top_now *now);

/* Adds the seconds of a response of /v1/history that are not known, after a status of the same
 * daemon. They may be off by one: the last one counts as the one before `now`. */
void bc_top_state_add_history(
	struct bc_top_state *state, const json_t *history, const struct bc_top_now *now);

/* Returns a copy, or NULL if out of memory. */
struct bc_top_state *bc_top_state_copy(const struct bc_top_state *state);

/* Frees a state or a copy. NULL is allowed. */
void bc_top_state_free(struct bc_top_state *state);

/* Adds a mix. NULL: the daemon has none. */
void bc_top_state_add_mix(struct bc_top_state *state, json_t *mix, const struct bc_top_now *now);

/* Marks the daemon as unreachable until the next status. `err` must be safe to print. */
void bc_top_state_set_unreachable(struct bc_top_state *state, const char *err);

/* Returns the latest mix; its JSON is NULL before the first. */
const struct bc_top_mix *bc_top_state_latest_mix(const struct bc_top_state *state);

/* Returns the oldest mix of the last BC_TOP_MIX_PERIOD seconds, from which the latest one is
 * counted; NULL before the first. */
const struct bc_top_mix *bc_top_state_earlier_mix(const struct bc_top_state *state);

/* Returns the values for a second of the monotonic clock, or NULL if unknown. */
const struct bc_top_second *bc_top_state_second(const struct bc_top_state *state, uint64_t second);

#endif
