/* The curves of the records that an overview reads: working sets and miss ratios. */
#ifndef BC_CLI_WEB_LOCALITY_H
#define BC_CLI_WEB_LOCALITY_H

#include "cli/overview/overview.h"
#include "formats/base/json.h"

/* An object with the working_set and miss_ratio of docs/stats.md, of the records that match in a
 * recording (NULL: in all): lines of 32 bytes and pages of 4 KiB. *json becomes a new reference.
 * Returns the same as bc_overview_read(), of at most 16 million records. */
int bc_locality_read(json_t **json, struct bc_overview *overview, const struct bc_filter *filter,
	const char *recording) BC_MUST_CHECK;

#endif
