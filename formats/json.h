/* What cJSON lacks: 64-bit integers that never pass through a double. */
#ifndef BC_FORMATS_JSON_H
#define BC_FORMATS_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Add an integer member. Return false when memory ran out. */
bool bc_json_add_u64(cJSON *object, const char *name, uint64_t value);
bool bc_json_add_i64(cJSON *object, const char *name, int64_t value);

/* Adds the string, or null for NULL. What of it isn't UTF-8 is made so (formats/utf8.h): a file's
 * name may be anything, a JSON text may not. */
bool bc_json_add_text(cJSON *object, const char *name, const char *text);

/* Copies a string member to `out`, cut to fit with its zero; the empty string if there is none. */
void bc_json_get_text(const cJSON *object, const char *name, char *out, size_t room);

/* A number member from 0 to 2^53, cut to that range; 0 if there is none. */
uint64_t bc_json_get_u64(const cJSON *object, const char *name);

#endif
