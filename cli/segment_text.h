/* What is known of a segment file, as text and as JSON. */
#ifndef BC_CLI_SEGMENT_TEXT_H
#define BC_CLI_SEGMENT_TEXT_H

#include <stdbool.h>

#include "cli/output.h"
#include "cli/segment_info.h"
#include "formats/json.h"

void bc_segment_info_print(struct bc_output *output, const struct bc_segment_info *info);

/* Adds members to an object. Returns false when memory ran out. */
bool bc_segment_info_json(cJSON *object, const struct bc_segment_info *info);

#endif
