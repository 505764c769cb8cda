/* What `buscap stats` counted, as a page to read; docs/stats.md says what each figure is. */
#ifndef BC_CLI_STATS_STATS_TEXT_H
#define BC_CLI_STATS_STATS_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/stats/stats_gather.h"
#include "cli/term/output.h"

/* Prints the page: the figures of bc_stats_json() in words, at most `top` opcodes, registers,
 * processors and the like of each. Returns false, with nothing printed, when memory ran out. */
bool bc_stats_print(struct bc_output *output, const struct bc_stats *stats, uint64_t top);

#endif
