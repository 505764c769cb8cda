/* A request's JSON object, read strictly: invalid JSON (RFC 8259), a member that is unknown or
 * given twice, of another type or out of range is refused with a sentence that names it.
 *
 *     static const char *const names[] = {"text", "records", NULL};
 *
 *     if (!bc_body_parse(&body, text, bytes, names, why, room))
 *             return false;
 *     is_good = bc_body_text(&body, "text", out, sizeof(out)) &&
 *               bc_body_integer(&body, "records", 1, most, &records);
 *     bc_body_free(&body);
 *
 * Each reader leaves its variable alone, and is content, when the member is missing; one that must
 * be there is asked for with bc_body_require(). They return false with the sentence in `err`. */
#ifndef BC_DAEMON_API_API_BODY_H
#define BC_DAEMON_API_API_BODY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/segment/segment_header.h"

/* The longest body; the server refuses more. */
#define BC_BODY_MAX (UINT32_C(64) << 10)

/* The largest number: up to here a JSON number is exact wherever it is read. */
#define BC_BODY_INTEGER_MAX UINT64_C(9007199254740991)

struct bc_body {
	json_t *object;
	char where[64]; /* "limits.", "triggers[2]."; empty for the body itself */
	char *err;      /* the caller's */
	size_t room;
};

/* Reads a body; an empty one is {}. `names` ends with NULL and is what it may have. `err` is kept
 * for the readers. */
bool bc_body_parse(struct bc_body *body, const char *text, size_t bytes, const char *const *names,
	char *err, size_t errlen) BC_MUST_CHECK;

/* Frees what bc_body_parse() made; not for objects within it. */
void bc_body_free(struct bc_body *body);

bool bc_body_has(const struct bc_body *body, const char *name);

/* Refuses a body without this member. */
bool bc_body_require(const struct bc_body *body, const char *name) BC_MUST_CHECK;

/* A text of 1 to room - 1 bytes. */
bool bc_body_text(
	const struct bc_body *body, const char *name, char *out, size_t room) BC_MUST_CHECK;

bool bc_body_flag(const struct bc_body *body, const char *name, bool *flag) BC_MUST_CHECK;

/* A whole number; `most` is BC_BODY_INTEGER_MAX at most. */
bool bc_body_integer(const struct bc_body *body, const char *name, uint64_t least, uint64_t most,
	uint64_t *number) BC_MUST_CHECK;

/* A time above 0: a number of seconds, or a text such as "10ms". */
bool bc_body_time(const struct bc_body *body, const char *name, uint64_t *ns) BC_MUST_CHECK;

/* A size above 0: a number of bytes, or a text such as "64M". */
bool bc_body_size(const struct bc_body *body, const char *name, uint64_t *bytes) BC_MUST_CHECK;

/* What may be a number of seconds or a text that the caller reads: as text. */
bool bc_body_seconds_or_text(
	const struct bc_body *body, const char *name, char *out, size_t room) BC_MUST_CHECK;

/* The user's key=value pairs, by the rules of formats/segment/metadata.h: a JSON object, or the
 * empty text if there are none. */
bool bc_body_metadata(
	const struct bc_body *body, const char *name, char out[BC_METADATA_MAX]) BC_MUST_CHECK;

/* An object within, which stays the body's. *inner is empty where there is none. */
bool bc_body_object(const struct bc_body *body, const char *name, const char *const *names,
	struct bc_body *inner) BC_MUST_CHECK;

/* A list of up to `most` objects: how many there are, and the one at `at`. */
bool bc_body_list_size(
	const struct bc_body *body, const char *name, unsigned most, unsigned *count) BC_MUST_CHECK;
bool bc_body_element(const struct bc_body *body, const char *name, unsigned at,
	const char *const *names, struct bc_body *inner) BC_MUST_CHECK;

/* Puts "NAME: SENTENCE" into `err`. Returns false. */
bool bc_body_fail(const struct bc_body *body, const char *name, const char *sentence);

#endif
