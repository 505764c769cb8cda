/* Values of a JSON object by their path, "source.board.state". Whatever is missing or of another
 * type is 0, NULL or an empty string: a daemon of another version, or none at all, may have
 * written it. */
#ifndef BC_CLI_TERM_JSON_PATH_H
#define BC_CLI_TERM_JSON_PATH_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* NULL: there is none. */
json_t *bc_json_path(const json_t *object, const char *path);

/* A string that isn't empty, not made safe yet; or NULL. */
const char *bc_json_path_text(const json_t *object, const char *path);

/* A number from 0 to 1e18. */
uint64_t bc_json_path_count(const json_t *object, const char *path);
double bc_json_path_number(const json_t *object, const char *path);

/* Parses an object that is all of the text, or returns NULL. */
json_t *bc_json_parse_object(const char *text, size_t bytes);

#endif
