/* Formats members of a JSON object with a template:
 *
 *     {path}       the member: an escaped string or a number; "-" if missing
 *     {path #}     a number with thousands separators: 12,345
 *     {path B}     a number of bytes: 1.24 GB
 *     {path word}  "1 word", "12,345 words"
 *     [...]        omitted if its first member is missing: null, an empty string, a negative
 *                  number or, with a word, 0 */
#ifndef BC_CLI_TERM_TEMPLATE_H
#define BC_CLI_TERM_TEMPLATE_H

#include <jansson.h>

#include "cli/term/output.h"

void bc_template_print(struct bc_output *output, const char *template, const json_t *object);

#endif
