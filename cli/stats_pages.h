/* The parts of the page of `buscap stats` that tell of memory and of time. */
#ifndef BC_CLI_STATS_PAGES_H
#define BC_CLI_STATS_PAGES_H

#include "cli/output.h"
#include "cli/stats_gather.h"

/* Footprint and reuse. */
void bc_stats_print_memory(struct bc_output *output, const struct bc_stats *stats);

/* Duration, rate, intervals, idles, bursts, windows and the clock's drift. */
void bc_stats_print_time(struct bc_output *output, const struct bc_stats *stats);

#endif
