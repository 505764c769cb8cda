/* The statistics as a JSON object; docs/stats.md lists its members. */
#ifndef BC_CLI_STATS_STATS_JSON_H
#define BC_CLI_STATS_STATS_JSON_H

#include "cli/stats/stats_gather.h"
#include "formats/base/json.h"

/* Returns a new reference, or NULL if out of memory. */
json_t *bc_stats_json(const struct bc_stats *stats);

/* A memory type has two interpretations: its low two bits as in the BYU document, or the code of
 * the P6 bus (NULL for unnamed codes). */
const char *bc_stats_attr_byu(unsigned attr);
const char *bc_stats_attr_p6(unsigned attr);

#endif
