/* What `buscap stats` counted, as a page to read and as a JSON object. docs/stats.md says what each
 * figure and each member is. */
#ifndef BC_CLI_STATS_TEXT_H
#define BC_CLI_STATS_TEXT_H

#include <stdint.h>

#include "cli/output.h"
#include "cli/stats_gather.h"

/* At most `top` opcodes, registers, processors and the like are printed of each. */
void bc_stats_print(struct bc_output *output, const struct bc_stats *stats, uint64_t top);

/* What a memory type is called: "uncacheable"; where bit 2 is set by both readings: "write-through
 * (P6), write-through (low two bits)". */
#define BC_ATTR_TEXT_MAX 64
const char *bc_attr_text(char out[BC_ATTR_TEXT_MAX], unsigned attr);

/* The two readings of a memory type's code: the low two bits, as the BYU document names them, and
 * the P6 bus's code, NULL for one without a name. */
const char *bc_attr_byu(unsigned attr);
const char *bc_attr_p6(unsigned attr);

#endif
