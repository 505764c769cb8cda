/* Prints the statistics of a segment file as text and as JSON. */
#ifndef BC_CLI_TRACE_SEGMENT_TEXT_H
#define BC_CLI_TRACE_SEGMENT_TEXT_H

#include <stdbool.h>

#include "cli/term/output.h"
#include "cli/trace/segment_info.h"
#include "formats/base/json.h"

void bc_segment_info_print(struct bc_output *output, const struct bc_segment_info *info);

/* Returns a new object, or NULL if out of memory. */
json_t *bc_segment_info_json(const struct bc_segment_info *info);

#endif
