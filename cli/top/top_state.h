/* What buscap top knows of the daemon: its latest status, what was on the bus lately, and the last
 * minutes second by second. Fed with what the daemon answers (docs/api.md); whatever is missing in
 * it or makes no sense is 0, empty or not known. Nothing is drawn here: cli/top/top_page.h does. */
#ifndef BC_CLI_TOP_TOP_STATE_H
#define BC_CLI_TOP_TOP_STATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "cli/client/status_model.h"

#define BC_TOP_KINDS 256u /* of types and of processors that are told apart */
#define BC_TOP_PAGES 32u

struct bc_top_count {
	char name[16];
	uint64_t count;
};

/* An answer to /v1/mix. */
struct bc_top_mix {
	bool is_known;
	uint64_t at_ns;
	uint64_t sampled;
	uint64_t of;
	unsigned types_count;
	unsigned procs_count;
	unsigned pages_count;
	struct bc_top_count types[BC_TOP_KINDS];
	struct bc_top_count procs[BC_TOP_KINDS];
	uint64_t memory;
	struct bc_top_page_count {
		uint64_t addr;
		uint64_t samples; /* at least */
		uint64_t more;    /* at most so many more */
	} pages[BC_TOP_PAGES];
};

/* What is drawn as a line over time. */
enum bc_top_line {
	BC_TOP_SAMPLES,   /* a second */
	BC_TOP_RECORDS,   /* a second */
	BC_TOP_BYTES_OUT, /* a second */
	BC_TOP_BUFFER,    /* share of it in use, 0 to 1 */
	BC_TOP_LOST,      /* samples in that second */
	BC_TOP_LINES,
};

#define BC_TOP_SECONDS    1024u
#define BC_TOP_MIX_PERIOD 10u /* seconds over which types and processors are counted */

struct bc_top_second {
	uint64_t second;
	bool is_known;
	double values[BC_TOP_LINES];
};

struct bc_top_state {
	bool has_status; /* one came at least once */
	bool is_away;    /* since the last one it has been told that the daemon is away */
	char err[256];   /* it is away, or has no mix */
	uint64_t looked_ns;
	time_t looked_wall; /* when the latest status came */
	uint64_t lost_ns;   /* when something was lost last; 0: not while this has been running */
	struct bc_status status;
	struct bc_top_second seconds[BC_TOP_SECONDS]; /* by second modulo their number */
	struct bc_top_mix mixes[BC_TOP_MIX_PERIOD + 1];
	unsigned latest_mix;
};

/* The host's clocks, so that a test can have its own. */
struct bc_top_now {
	uint64_t ns; /* of the monotonic clock, not 0 */
	time_t wall;
};

/* All zero at first; it is too large for a stack. A status has come. Returns false, and changes
 * nothing, when the object is none. */
bool bc_top_state_status(
	struct bc_top_state *state, const json_t *status, const struct bc_top_now *now);

/* A mix has come; NULL: this daemon tells none. */
void bc_top_state_mix(struct bc_top_state *state, const json_t *mix, const struct bc_top_now *now);

/* The daemon can't be reached or says nothing sensible; `err`, safe to print, says it. */
void bc_top_state_away(struct bc_top_state *state, const char *err);

/* The latest mix; is_known says whether there is one. */
const struct bc_top_mix *bc_top_state_latest_mix(const struct bc_top_state *state);

/* What the latest mix counts up from: the oldest of the last BC_TOP_MIX_PERIOD seconds, or NULL
 * when there is none before the latest. */
const struct bc_top_mix *bc_top_state_earlier_mix(const struct bc_top_state *state);

/* A name's count in a table, 0 if it isn't there. */
uint64_t bc_top_count_of(const struct bc_top_count *table, unsigned count, const char *name);

/* One second of the monotonic clock, or NULL when nothing is known of it. */
const struct bc_top_second *bc_top_state_second(const struct bc_top_state *state, uint64_t second);

#endif
