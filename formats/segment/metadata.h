/* The user's metadata of a recording: a JSON object of strings in the headers of its segments
 * (formats/segment/segment_header.h). Metadata set during the recording is also kept as a note at
 * its place among the records (BC_EVENT_NOTE): an object with the members set there. */
#ifndef BC_FORMATS_SEGMENT_METADATA_H
#define BC_FORMATS_SEGMENT_METADATA_H

#include "formats/base/must_check.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define BC_METADATA_MAX       4096  /* with the terminating zero */
#define BC_METADATA_VALUE_MAX 1024u /* bytes */

/* Whether a word is 1 .. BC_WORD_MAX letters, digits, '.', '_' and '-', as metadata keys and labels
 * must be. */
#define BC_WORD_MAX 64
bool bc_word_is_valid(const char *word);

/* Parses stored metadata; NULL and "" give {}. The caller releases the result. Returns NULL if the
 * text is not JSON or if out of memory. */
json_t *bc_metadata_parse(const char *text) BC_MUST_CHECK;

/* Checks metadata given by a user: a JSON object of strings with valid keys and UTF-8 values of at
 * most BC_METADATA_VALUE_MAX bytes, shorter than BC_METADATA_MAX in total. Writes the object
 * without spaces to `out`; "" if it has no members. `text` may be `out`. On failure, returns false
 * with an error message, and `out` is unchanged. */
bool bc_metadata_read(
	char out[BC_METADATA_MAX], const char *text, char *err, size_t errlen) BC_MUST_CHECK;
bool bc_metadata_from_json(
	char out[BC_METADATA_MAX], const json_t *object, char *err, size_t errlen) BC_MUST_CHECK;

/* Sets one member and moves it to the end; an empty value removes it. Same checks and results. */
bool bc_metadata_set(char all[BC_METADATA_MAX], const char *key, const char *value, char *err,
	size_t errlen) BC_MUST_CHECK;

/* Adds the members of `more` to `all`. Existing members keep their position and get the new value.
 * Both are JSON objects or "", and may have members that a user could not set. On failure (too long
 * or out of memory), returns false with an error message, and `all` is unchanged. */
bool bc_metadata_merge(
	char all[BC_METADATA_MAX], const char *more, char *err, size_t errlen) BC_MUST_CHECK;

#endif
