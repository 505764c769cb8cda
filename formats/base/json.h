/* What jansson lacks: texts of any bytes, 64-bit numbers, one printed form, objects from a table:
 *
 *     json_t *disk = bc_json_object((struct bc_json_member[]){
 *             {"path", bc_json_text(path)},
 *             {"free_bytes", bc_json_u64(free_bytes)},
 *             {"stuck", json_boolean(is_stuck)},
 *             {NULL, NULL},
 *     });
 *
 * As in jansson, a value of NULL is memory that ran out: what would contain it is NULL, too, and
 * the other values are released. */
#ifndef BC_FORMATS_BASE_JSON_H
#define BC_FORMATS_BASE_JSON_H

#include "formats/base/must_check.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A string; null for NULL. Bytes that are not UTF-8 are replaced (formats/base/utf8.h): a file name
 * may be anything, a JSON text may not. NULL when memory ran out. */
json_t *bc_json_text(const char *text) BC_MUST_CHECK;

/* The same; null for the empty string. */
json_t *bc_json_text_or_null(const char *text) BC_MUST_CHECK;

/* An integer. jansson's are signed: a number above INT64_MAX becomes a string of its digits. NULL
 * when memory ran out. */
json_t *bc_json_u64(uint64_t value) BC_MUST_CHECK;

/* A number; an integer if it is whole (2, not 2.0), null if it is not finite. NULL when memory ran
 * out. */
json_t *bc_json_double(double value) BC_MUST_CHECK;

struct bc_json_member {
	const char *name;
	json_t *value;
};

/* An object of the members before the one with no name. It takes their values. */
json_t *bc_json_object(const struct bc_json_member *members) BC_MUST_CHECK;

/* Any value as text without blanks, the members in the order in which they were set. The caller
 * frees it. NULL when memory ran out, or for NULL. */
char *bc_json_print(const json_t *json) BC_MUST_CHECK;

/* Copies a string member to `out`, cut to outlen - 1 bytes; the empty string if there is none. */
void bc_json_member_text(const json_t *object, const char *name, char *out, size_t outlen);

/* A number member; 0 if there is none or it is negative. A fraction is cut off; one that is written
 * as a real number is 2^53 at most. */
uint64_t bc_json_member_u64(const json_t *object, const char *name);

#endif
