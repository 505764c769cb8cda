/* Reads and prints values of a JSON object by path, see bc_json_path(). A missing value or one of
 * another type reads as 0 or NULL, because the object may come from another version of the daemon
 * or from another program. */
#ifndef BC_CLI_TERM_JSON_PATH_H
#define BC_CLI_TERM_JSON_PATH_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/term/output.h"
#include "formats/base/json.h"

/* Returns a string, unescaped; NULL if it is missing or empty. */
const char *bc_json_path_text(const json_t *object, const char *path);

/* Returns an integer from 0 to 2^64 - 1, possibly in a string, as bc_json_u64() writes it. */
uint64_t bc_json_path_count(const json_t *object, const char *path);

/* Returns a number from 0 to 1e18. */
double bc_json_path_number(const json_t *object, const char *path);

/* Parses a string that consists of one object. Returns a new reference, or NULL. */
json_t *bc_json_parse_object(const char *text, size_t bytes);

/* ---- Templates. Formats members of a JSON object with a template:
 *
 *     {path}       the member: an escaped string or a number; "-" if missing
 *     {path #}     a number with thousands separators: 12,345
 *     {path B}     a number of bytes: 1.24 GB
 *     {path word}  "1 word", "12,345 words"
 *     [...]        omitted if its first member is missing: null, an empty string, a negative
 *                  number or, with a word, 0 */

void bc_template_print(struct bc_output *output, const char *template, const json_t *object);

/* ---- Table cells, for the daemon's lists. Each cell is padded to its width and followed by two
 * spaces. A missing value is printed as "-". Text is escaped for the terminal. */

/* Returns the width of this member's longest text in the array: from `min_width` to 128. */
int bc_column_width(const json_t *array, const char *name, int min_width);

/* Prints a string member, left-aligned. */
void bc_column_text(struct bc_output *output, int width, const json_t *object, const char *name);

/* Prints a number member, right-aligned, with thousands separators. */
void bc_column_count(struct bc_output *output, int width, const json_t *object, const char *name);

/* Prints a time member cut to whole seconds: "2026-11-20T09:15:00". */
#define BC_COLUMN_TIME 19
void bc_column_time(struct bc_output *output, const json_t *object, const char *name);

#endif
