/* What `buscap stats` counts: a trace, batch by batch, into the modules that count. */
#ifndef BC_CLI_STATS_STATS_GATHER_H
#define BC_CLI_STATS_STATS_GATHER_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/io/trace.h"
#include "formats/base/must_check.h"
#include "formats/stats/drift.h"
#include "formats/stats/entry_counts.h"
#include "formats/stats/footprint.h"
#include "formats/stats/interval_stats.h"
#include "formats/stats/tally.h"

struct bc_stats_options {
	bool is_totals; /* without footprint, reuse, intervals and windows */
	struct bc_footprint_options footprint;
	uint64_t idle_ticks;
	uint64_t burst_ticks;
	uint64_t clock_hz; /* 0: as the trace says */
};

struct bc_stats {
	struct bc_stats_options options;
	enum bc_format format;
	int files;
	struct bc_tally tally;
	struct bc_entry_counts happenings;
	struct bc_interval_stats clockline;
	struct bc_drift drift;
	struct bc_footprint footprint;
	uint8_t unit;         /* of the ticks: enum bc_unit */
	bool is_unit_mixed;   /* several units occur */
	uint64_t clock_hz;    /* ticks a second; 0: not known, or not the same everywhere */
	bool is_hz_mixed;     /* the latter */
	bool has_clock;       /* clock, unit and epoch are those of what came before */
	int file;             /* which was read last */
	uint64_t tag;         /* of the chunk before */
	uint32_t epoch;       /* of what came before */
	uint64_t next_record; /* that should follow the chunk before */
};

/* Returns a new one, NULL when memory ran out. The options must be as the modules want them. */
struct bc_stats *bc_stats_new(const struct bc_stats_options *options);
void bc_stats_free(struct bc_stats *stats);

/* Reads the trace to its end. Returns 0 or -ENOMEM; what else went wrong is in trace->exit. Then
 * all can be read off. */
int bc_stats_gather(struct bc_stats *stats, struct bc_trace *trace) BC_MUST_CHECK;

/* Entries that were read: records, samples or lines; without gaps, marks and the like. */
uint64_t bc_stats_entries(const struct bc_stats *stats);

/* Ticks a second, where that is known. Returns 0 where it isn't. */
double bc_stats_hz(const struct bc_stats *stats);

/* Why the drift isn't known; a clause. */
const char *bc_stats_no_drift_reason(const struct bc_drift_result *drift);

#endif
