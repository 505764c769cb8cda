/* Reads values of a JSON object by path, see bc_json_path(). A missing value or one of another
 * type reads as 0 or NULL, because the object may come from another version of the daemon or from
 * another program. */
#ifndef BC_CLI_TERM_JSON_PATH_H
#define BC_CLI_TERM_JSON_PATH_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/json.h"

/* Returns a string, or NULL if there is none or it is empty. The string is not escaped. */
const char *bc_json_path_text(const json_t *object, const char *path);

/* Returns an integer from 0 to 2^64 - 1, also if it is in a string, as bc_json_u64() writes it. */
uint64_t bc_json_path_count(const json_t *object, const char *path);

/* Returns a number from 0 to 1e18. */
double bc_json_path_number(const json_t *object, const char *path);

/* Parses a string that consists of one object. Returns a new reference, or NULL. */
json_t *bc_json_parse_object(const char *text, size_t bytes);

#endif
