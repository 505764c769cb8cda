/* Gathers the statistics of a trace: passes each batch to the counting modules. */
#ifndef BC_CLI_STATS_STATS_GATHER_H
#define BC_CLI_STATS_STATS_GATHER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/io/trace.h"
#include "cli/stats/counts.h"
#include "cli/stats/footprint.h"
#include "cli/stats/interval_stats.h"
#include "formats/base/must_check.h"
#include "formats/trace/name_map.h"

/* A thread for part of the work on each batch. */
struct bc_second_thread {
	bool is_started;
	bool is_over;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	void (*work)(void *context); /* NULL: none */
	void *context;
};

struct bc_stats_options {
	bool is_totals; /* without footprint, reuse, intervals and windows */
	struct bc_footprint_options footprint;
	uint64_t idle_ticks;
	uint64_t burst_ticks;
	uint64_t clock_hz;         /* 0: the trace's */
	struct bc_name_map *names; /* NULL: references are not counted by name */
};

struct bc_stats {
	struct bc_stats_options options;
	enum bc_format format;
	int files;
	struct bc_tally tally;
	struct bc_entry_counts counts;
	struct bc_string_counter names; /* references by the name of their address */
	uint64_t unnamed;               /* references to addresses without a name */
	struct bc_interval_stats intervals;
	struct bc_drift drift;
	struct bc_footprint footprint;
	struct bc_second_thread second; /* counts the footprint of records */
	uint8_t unit;                   /* of the ticks: enum bc_unit */
	bool is_unit_mixed;             /* several units occur */
	uint64_t clock_hz;              /* ticks per second; 0: unknown or several rates */
	bool is_hz_mixed;               /* several rates */
	bool has_clock;       /* `epoch` and `tag` are those of the previous chunk or entry */
	int file;             /* the last file read */
	uint64_t tag;         /* recording tag of the previous chunk */
	uint32_t epoch;       /* of the previous chunk or entry */
	uint64_t next_record; /* expected first record of the next chunk */
};

/* Returns a new object, or NULL if out of memory. The options must be valid for the modules:
 * line_bytes and page_bytes are powers of two. */
struct bc_stats *bc_stats_new(const struct bc_stats_options *options);
void bc_stats_free(struct bc_stats *stats);

/* Reads the trace to its end. Returns 0 or -ENOMEM. Other errors are in trace->exit. */
int bc_stats_gather(struct bc_stats *stats, struct bc_trace *trace) BC_MUST_CHECK;

/* Returns the number of entries read: records, samples or lines, but not gaps, marks and the
 * like. */
uint64_t bc_stats_entries(const struct bc_stats *stats);

/* Returns the ticks per second, or 0 if unknown. */
double bc_stats_hz(const struct bc_stats *stats);

/* Returns the reason why the drift is unknown, or NULL if it is known. */
const char *bc_stats_no_drift_reason(const struct bc_drift_result *drift);

#endif
