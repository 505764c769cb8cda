/* Strict parsing of a request's JSON object: invalid JSON (RFC 8259) and members that are unknown,
 * duplicate, of the wrong type or out of range are errors. The message names the member.
 *
 *     static const char *const names[] = {"text", "records", NULL};
 *
 *     if (!bc_body_parse(&body, text, bytes, names, err, errlen))
 *             return false;
 *     is_ok = bc_body_text(&body, "text", out, sizeof(out)) &&
 *               bc_body_integer(&body, "records", 1, max, &records);
 *     bc_body_free(&body);
 *
 * If a member is absent, its function succeeds and leaves the variable unchanged; use
 * bc_body_require() for required members. On errors they return false with a message in `err`. */
#ifndef BC_DAEMON_API_API_BODY_H
#define BC_DAEMON_API_API_BODY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/segment/segment_header.h"

/* The largest integer: up to here, JSON numbers are exact in every implementation. */
#define BC_BODY_INTEGER_MAX UINT64_C(9007199254740991)

struct bc_body {
	json_t *object;
	char prefix[64]; /* of member names: "limits.", "triggers[2]."; empty for the body itself */
	char *err;       /* the caller's */
	size_t errlen;
};

/* Parses a body; an empty one means {}. `names` lists the allowed members and ends with NULL. `err`
 * is kept for the functions below. */
bool bc_body_parse(struct bc_body *body, const char *text, size_t bytes, const char *const *names,
	char *err, size_t errlen) BC_MUST_CHECK;

/* Frees a parsed body. Not for its inner objects. */
void bc_body_free(struct bc_body *body);

bool bc_body_has(const struct bc_body *body, const char *name);

/* Fails if the member is absent. */
bool bc_body_require(const struct bc_body *body, const char *name) BC_MUST_CHECK;

/* A string of 1 to size - 1 bytes. */
bool bc_body_text(
	const struct bc_body *body, const char *name, char *out, size_t size) BC_MUST_CHECK;

bool bc_body_flag(const struct bc_body *body, const char *name, bool *flag) BC_MUST_CHECK;

/* An integer from `min` to `max`; `max` is at most BC_BODY_INTEGER_MAX. */
bool bc_body_integer(const struct bc_body *body, const char *name, uint64_t min, uint64_t max,
	uint64_t *number) BC_MUST_CHECK;

/* A duration above 0: a number of seconds, or a string such as "10ms". */
bool bc_body_time(const struct bc_body *body, const char *name, uint64_t *ns) BC_MUST_CHECK;

/* A file size above 0: a number of kB (1000 bytes) as in configuration and options, or a string
 * such as "64M". */
bool bc_body_file_size(const struct bc_body *body, const char *name, uint64_t *bytes) BC_MUST_CHECK;

/* A number of seconds or a string, for the caller to parse. A number becomes "1.500000000s". */
bool bc_body_seconds_or_text(
	const struct bc_body *body, const char *name, char *out, size_t size) BC_MUST_CHECK;

/* The user's metadata, an object of strings that follows the rules of
 * formats/segment/segment_header.h, as JSON text; empty if there is none. */
bool bc_body_metadata(
	const struct bc_body *body, const char *name, char out[BC_METADATA_MAX]) BC_MUST_CHECK;

/* An inner object, owned by the body. *inner is empty if the member is absent. */
bool bc_body_object(const struct bc_body *body, const char *name, const char *const *names,
	struct bc_body *inner) BC_MUST_CHECK;

/* An array of up to `max` objects: its length, and the element at `index`. */
bool bc_body_list_size(
	const struct bc_body *body, const char *name, unsigned max, unsigned *count) BC_MUST_CHECK;
bool bc_body_element(const struct bc_body *body, const char *name, unsigned index,
	const char *const *names, struct bc_body *inner) BC_MUST_CHECK;

/* Writes "NAME: MESSAGE" to `err`. Returns false. */
bool bc_body_fail(const struct bc_body *body, const char *name, const char *message);

#endif
