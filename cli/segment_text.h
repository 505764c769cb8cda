/* What is known of a segment file, as text and as JSON. */
#ifndef BC_CLI_SEGMENT_TEXT_H
#define BC_CLI_SEGMENT_TEXT_H

#include <stdbool.h>

#include "cli/output.h"
#include "cli/segment_info.h"
#include "formats/json.h"

/* One fact on a line: the name in a column of its own. */
void bc_fact(struct bc_output *output, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same of a text of others, made safe to print. */
void bc_fact_text(struct bc_output *output, const char *name, const char *text);

void bc_segment_info_print(struct bc_output *output, const struct bc_segment_info *info);

/* Adds members to an object. Returns false when memory ran out. */
bool bc_segment_info_json(cJSON *object, const struct bc_segment_info *info);

#endif
