/* The user's metadata of a recording: a JSON object of strings, kept in the headers of its segments
 * (formats/segment/segment_header.h), and, once it is recording, as notes at their places among the
 * records (BC_EVENT_NOTE): each is an object of the members that were set there. */
#ifndef BC_FORMATS_SEGMENT_METADATA_H
#define BC_FORMATS_SEGMENT_METADATA_H

#include "formats/base/must_check.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define BC_METADATA_MAX       4096 /* with the terminating zero */
#define BC_METADATA_KEY_MAX   64
#define BC_METADATA_VALUE_MAX 1024u /* bytes */

/* Whether a key is 1..BC_METADATA_KEY_MAX letters, digits, '.', '_' and '-'. */
bool bc_metadata_key_is_valid(const char *key);

/* The object that a recording's metadata are, for the caller to release; {} for NULL and the empty
 * string. NULL if the text is not JSON, or when memory ran out. */
json_t *bc_metadata_parse(const char *text) BC_MUST_CHECK;

/* Checks what a user sets: a JSON object whose members are strings, their keys valid, each value
 * UTF-8 of up to BC_METADATA_VALUE_MAX bytes, the whole shorter than BC_METADATA_MAX. `out` gets
 * the object without blanks; the empty string if it has no member. On failure returns false with a
 * clause in `err`, `out` as it was. `text` may be `out`. */
bool bc_metadata_read(
	char out[BC_METADATA_MAX], const char *text, char *err, size_t errlen) BC_MUST_CHECK;
bool bc_metadata_from_json(
	char out[BC_METADATA_MAX], const json_t *object, char *err, size_t errlen) BC_MUST_CHECK;

/* Sets one member, which becomes the last; an empty value removes it. Same checks and result. */
bool bc_metadata_set(char all[BC_METADATA_MAX], const char *key, const char *value, char *err,
	size_t errlen) BC_MUST_CHECK;

/* Sets the members of `more` in `all`: those that are there already get their new values, where
 * they stand. Both are JSON objects or empty strings, and may have members that no user set. On
 * failure returns false with a clause in `err`, `all` as it was: it would grow too long, or memory
 * ran out. */
bool bc_metadata_merge(
	char all[BC_METADATA_MAX], const char *more, char *err, size_t errlen) BC_MUST_CHECK;

#endif
