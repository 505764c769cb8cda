/* The statistics of a trace: what stats.c counts and stats_print.c prints. docs/stats.md defines
 * the figures and lists the members of the JSON object. */
#ifndef BC_CLI_STATS_STATS_H
#define BC_CLI_STATS_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/io/filter_args.h"
#include "cli/io/operands.h"
#include "cli/io/trace.h"
#include "cli/stats/counts.h"
#include "cli/stats/footprint.h"
#include "cli/stats/interval_stats.h"
#include "cli/stats/page_stats.h"
#include "cli/term/output.h"
#include "formats/base/json.h"
#include "formats/trace/name_map.h"

struct bc_stats_options {
	bool is_full; /* read the records of segments, not only the headers of their chunks */
	bool windows_are_ticks; /* of working sets */
	struct bc_footprint_options footprint;
	uint64_t idle_ticks;
	uint64_t burst_ticks;
	uint64_t clock_hz;         /* 0: the trace's */
	struct bc_name_map *names; /* NULL: references are not counted by name */
};

struct bc_stats {
	struct bc_stats_options options;
	enum bc_format format;
	const char *format_name;
	int files;
	struct bc_tally tally;
	struct bc_entry_counts counts;
	struct bc_string_counter names; /* references by the name of their address */
	uint64_t unnamed;               /* references to addresses without a name */
	struct bc_interval_stats intervals;
	struct bc_drift drift;
	struct bc_footprint footprint;
	struct bc_footprint windows; /* by ticks, with options.windows_are_ticks */
	struct bc_page_stats pages;  /* not options.is_full */
	uint8_t unit;                /* of the ticks: enum bc_unit */
	bool is_unit_mixed;          /* several units occur */
	uint64_t clock_hz;           /* ticks per second; 0: unknown or several rates */
	bool is_hz_mixed;            /* several rates */
	/* Private to stats.c. */
	bool has_clock;     /* `epoch` and `tag` are set */
	int file;           /* the last file read */
	uint64_t source_hz; /* the trace's clock rate; 0: unknown */
	uint64_t tag;       /* recording tag of the previous chunk */
	uint32_t epoch;     /* of the previous chunk or entry */
};

/* Returns the number of entries read: records, samples or lines, but not gaps and marks. */
uint64_t bc_stats_entries(const struct bc_stats *stats);

/* Returns the ticks per second, or 0 if unknown. */
double bc_stats_hz(const struct bc_stats *stats);

/* The statistics as a JSON object: a new reference, or NULL if out of memory. */
json_t *bc_stats_json(const struct bc_stats *stats);

/* Reads a trace, or what `args` select of it, for such an object with its working sets or its miss
 * ratios: of lines of 32 bytes and pages of 4 KiB. *json becomes a new reference, or NULL if the
 * trace can't be read or memory is short, which was printed. BC_EXIT_DAMAGED: it is of the intact
 * part. */
enum bc_exit bc_stats_read(json_t **json, bool is_miss_ratio, const struct bc_console *console,
	const struct bc_filter_args *args, enum bc_format from,
	const struct bc_format_options *format, const struct bc_files *files);

/* Compares two such objects: prints each figure of both, and their difference, as JSON or as a page
 * with at most `top` figures of a table. False: out of memory. */
bool bc_stats_compare(struct bc_output *output, json_t *a, json_t *b, bool is_json, uint64_t top);

/* Prints the page, with at most `top` rows per table. False: out of memory, rows are missing. */
bool bc_stats_print(struct bc_output *output, const struct bc_stats *stats, uint64_t top);

#endif
