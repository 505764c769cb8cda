/* The statistics as a page of text; docs/stats.md defines the figures. */
#ifndef BC_CLI_STATS_STATS_TEXT_H
#define BC_CLI_STATS_STATS_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/stats/stats_gather.h"
#include "cli/term/output.h"

/* Prints the page, with at most `top` rows per table. Returns false if out of memory; then rows of
 * a table are missing. */
bool bc_stats_print(struct bc_output *output, const struct bc_stats *stats, uint64_t top);

#endif
