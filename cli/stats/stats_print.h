/* The statistics as a page of text and as a JSON object; docs/stats.md defines the figures and
 * lists the members. */
#ifndef BC_CLI_STATS_STATS_PRINT_H
#define BC_CLI_STATS_STATS_PRINT_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/stats/stats_gather.h"
#include "cli/term/output.h"
#include "formats/base/json.h"

/* Returns the object, a new reference, or NULL if out of memory. */
json_t *bc_stats_json(const struct bc_stats *stats);

/* Prints the page, with at most `top` rows per table. Returns false if out of memory; then rows of
 * a table are missing. */
bool bc_stats_print(struct bc_output *output, const struct bc_stats *stats, uint64_t top);

#endif
