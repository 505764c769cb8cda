/* Texts made of a JSON object by a template:
 *
 *     {path}       the member: a string made safe to print, or a number; "-" if there is none
 *     {path #}     a number with its thousands apart: 12,345
 *     {path B}     a number of bytes: 1.24 GB
 *     {path word}  "1 word", "12,345 words"
 *     [...]        left out if its first member is missing: null, an empty string, a negative
 *                  number or, with a word, 0 */
#ifndef BC_CLI_TERM_TEMPLATE_H
#define BC_CLI_TERM_TEMPLATE_H

#include <jansson.h>

#include "cli/term/output.h"

void bc_template_print(struct bc_output *output, const char *template, const json_t *object);

#endif
