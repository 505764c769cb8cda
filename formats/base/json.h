/* Additions to jansson: strings of any bytes, uint64_t, one printed form, and objects from a table:
 *
 *     json_t *disk = BC_JSON_OBJECT({"path", bc_json_text(path)},
 *             {"free_bytes", bc_json_u64(free_bytes)}, {"stuck", json_boolean(is_stuck)});
 *
 * As in jansson, NULL means out of memory. A container that should hold a NULL becomes NULL itself,
 * and its other values are released. */
#ifndef BC_FORMATS_BASE_JSON_H
#define BC_FORMATS_BASE_JSON_H

#include "formats/base/must_check.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A string, or JSON's null if `text` is NULL. Bytes that are not UTF-8 (file names may have them)
 * are converted with bc_utf8_repair(). Returns NULL if out of memory. */
json_t *bc_json_text(const char *text) BC_MUST_CHECK;

/* A string, or JSON's null if `text` is empty. Otherwise like bc_json_text(). */
json_t *bc_json_text_or_null(const char *text) BC_MUST_CHECK;

/* A time as in formats/base/text.h, with nanoseconds or in whole seconds. NULL if out of memory. */
json_t *bc_json_time(int64_t ns) BC_MUST_CHECK;
json_t *bc_json_time_seconds(int64_t ns) BC_MUST_CHECK;

/* An integer. jansson's integers are signed: a number above INT64_MAX becomes a string of its
 * digits. Returns NULL if out of memory. */
json_t *bc_json_u64(uint64_t value) BC_MUST_CHECK;

/* The same, or JSON's null if the number is not known. */
json_t *bc_json_u64_or_null(bool is_known, uint64_t value) BC_MUST_CHECK;

/* A number: an integer if it has no fraction (2, not 2.0), JSON's null if it is not finite. Returns
 * NULL if out of memory. */
json_t *bc_json_double(double value) BC_MUST_CHECK;

struct bc_json_member {
	const char *name;
	json_t *value;
};

/* An object of the members up to the one whose name is NULL. Takes ownership of the values, even if
 * it fails. Returns NULL if out of memory or if a value is NULL. */
json_t *bc_json_object(const struct bc_json_member *members) BC_MUST_CHECK;

/* Makes an object of the members in braces, without a terminating one. */
#define BC_JSON_OBJECT(...) \
	bc_json_object((const struct bc_json_member[]){__VA_ARGS__, {NULL, NULL}})

/* Appends a value to an array. Both are taken. Returns the array; or NULL if one of them is NULL,
 * or out of memory. */
json_t *bc_json_append(json_t *array, json_t *value) BC_MUST_CHECK;

/* Adds the members of `more` to an object. Both are taken. Returns the object; or NULL if one of
 * them is NULL, or out of memory. */
json_t *bc_json_merge(json_t *object, json_t *more) BC_MUST_CHECK;

/* Parses a text with jansson's flags, as json_loadb() does; use no other function for that. Returns
 * NULL with errno EINVAL or ENOMEM, and with *error set, which may be NULL. */
json_t *bc_json_parse(
	const char *text, size_t bytes, size_t flags, json_error_t *error) BC_MUST_CHECK;

/* Any value as text without spaces, members in insertion order. The caller frees it. Returns NULL
 * if out of memory or if `json` is NULL. */
char *bc_json_print(const json_t *json) BC_MUST_CHECK;

/* The same, followed by a newline. */
char *bc_json_print_line(const json_t *json) BC_MUST_CHECK;

/* Like bc_json_print(), which prints 15 digits of a number. Prints more where they are needed for
 * the text to have the same value. */
char *bc_json_print_exact(const json_t *json) BC_MUST_CHECK;

/* Returns the value at a path such as "source.board.state", which belongs to `object`, or NULL. */
json_t *bc_json_path(const json_t *object, const char *path);

/* Copies a string member to `out`, truncated to outlen - 1 bytes; without one, "". */
void bc_json_member_text(const json_t *object, const char *name, char *out, size_t outlen);

/* True if the object has a string member with this text. */
bool bc_json_member_is(const json_t *object, const char *name, const char *text);

/* A number member, without its fraction; 0 if it is missing, not a number or negative. A number in
 * floating-point notation is limited to 2^53. */
uint64_t bc_json_member_u64(const json_t *object, const char *name);

#endif
