/* The segment header: a JSON object with a checksum in a skippable frame, at the start of a
 * segment. It describes the recording and its source; docs/segment-format.md lists the members. The
 * chunks can be read without it. */
#ifndef BC_FORMATS_SEGMENT_SEGMENT_HEADER_H
#define BC_FORMATS_SEGMENT_SEGMENT_HEADER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/bus/chunk.h"
#include "formats/bus/sample.h"
#include "formats/segment/segment.h"
#include "formats/segment/segment_name.h"

/* ---- the user's metadata of a recording: a JSON object of strings in the headers of its segments
 *
 * Metadata set during the recording is also kept as a note at
 * its place among the records (BC_EVENT_NOTE): an object with the members set there. */

#define BC_METADATA_MAX       4096  /* with the terminating zero */
#define BC_METADATA_VALUE_MAX 1024u /* bytes */

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

/* Sets one member and moves it to the end; an empty value removes it. Same checks and results, but
 * the message doesn't name the key. */
bool bc_metadata_set(char all[BC_METADATA_MAX], const char *key, const char *value, char *err,
	size_t errlen) BC_MUST_CHECK;

/* Adds the members of `more` to `all`. Existing members keep their position and get the new value.
 * Both are JSON objects or "", and may have members that a user could not set. On failure (too long
 * or out of memory), returns false with an error message, and `all` is unchanged. */
bool bc_metadata_merge(
	char all[BC_METADATA_MAX], const char *more, char *err, size_t errlen) BC_MUST_CHECK;

/* ---- the header */

/* Maximum length of a header. */
#define BC_SEGMENT_HEADER_MAX (1u << 16)

/* 32 hexadecimal digits and the terminating zero. */
#define BC_BOOT_ID_BYTES 33

/* Reads the kernel's id of the current boot, which distinguishes a crash from a power cut; the
 * empty string if it is unknown. The service can't see /proc/sys; it gets BUSCAPD_BOOT_ID. */
void bc_boot_id_read(char out[BC_BOOT_ID_BYTES]);

struct bc_segment_header {
	uint32_t version; /* reading: the file's; writing: ignored */
	char recording[BC_RECORDING_ID_MAX];
	uint64_t sequence; /* number of the recording in its directory, from 1; 0: unknown */
	char label[65];
	uint32_t segment;
	char continues[BC_RECORDING_ID_MAX]; /* the recording that this one continues; or empty */
	char source_kind[16];
	char source_name[256];
	char board_serial[33]; /* empty without a board */
	char board_firmware[17];
	uint64_t clock_hz; /* ticks per second; 0: unknown */
	char axis[12]; /* without times of day: what they count instead; docs/segment-format.md */
	bool has_mapping; /* the records were made from bus samples with `mapping` */
	struct bc_mapping_options mapping;
	char compression[16]; /* of the records: the encoder's level; empty: not known */
	char host[65];
	char program[32];
	char boot_id[BC_BOOT_ID_BYTES]; /* the kernel's id of the boot; empty: unknown */
	int64_t wall_ns;     /* host's time of day when the segment's first record arrived */
	uint64_t first_tick; /* of that record */
	uint32_t first_epoch;
	uint64_t first_record;          /* number of that record in the recording */
	char metadata[BC_METADATA_MAX]; /* the user's, a JSON object; empty: {} */
};

/* Writes everything before the first chunk: the empty frame and the header. Sets *out to a new
 * buffer, which the caller frees. Returns 0, -ENOMEM, or -EINVAL if metadata is not a JSON object
 * or the result is longer than BC_SEGMENT_HEADER_MAX. */
int bc_segment_header_write(
	uint8_t **out, size_t *bytes, const struct bc_segment_header *header) BC_MUST_CHECK;

/* The members of a header's JSON that tell the recording and its recorder. NULL: out of memory. */
json_t *bc_segment_origin_json(const struct bc_segment_header *header) BC_MUST_CHECK;

/* The JSON object of a valid header frame, with the members that this version doesn't know. The
 * caller releases it. Returns NULL with errno EINVAL or ENOMEM. */
json_t *bc_segment_header_json(const uint8_t *in, size_t bytes) BC_MUST_CHECK;

/* Writes such an object, which may be changed. Returns the same as bc_segment_header_write(). */
int bc_segment_header_write_json(
	uint8_t **out, size_t *bytes, enum bc_level level, const json_t *json) BC_MUST_CHECK;

/* The header's compression; the default one if it is not known. */
enum bc_level bc_segment_header_level(const struct bc_segment_header *header);

/* The length of the header frame whose first 8 bytes are at `in`, or 0 if it is not one. */
size_t bc_segment_header_bytes(const uint8_t in[BC_SKIPPABLE_BYTES]);

/* Reads a header frame. Missing members become empty or 0. Returns false with errno EBADMSG if the
 * hash is wrong or it is not a header's JSON, or ENOMEM. */
bool bc_segment_header_read(
	struct bc_segment_header *header, const uint8_t *in, size_t bytes) BC_MUST_CHECK;

/* Reads the header of the segment in a regular file. Returns 0; -EBADMSG if it is
 * damaged or not there; or another negative errno. */
int bc_segment_header_load(struct bc_segment_header *header, int fd) BC_MUST_CHECK;

/* How fast the times of chunks advance with their ticks: on an axis of ticks or records, by 1 ns
 * with each. 0: unknown. */
uint64_t bc_segment_header_axis_hz(const struct bc_segment_header *header);

/* An empty chunk at the start of a segment. */
struct bc_chunk_info bc_segment_header_chunk(const struct bc_segment_header *header);

/* ---- the end of a recording
 *
 * How a recording ended: the text of its BC_EVENT_END, the last event of its last chunk. A clean
 * end has one; after a kill or a power cut, recovery adds it. docs/segment-format.md has all. */

struct bc_recording_end {
	char reason[16];  /* "request", ...; "crash" and "power" are recovery's */
	int64_t ended_ns; /* time of day; after a crash, the last time that is known */
	char boot_id[BC_BOOT_ID_BYTES]; /* of the machine when the event was written; or empty */
};

/* Maximum length of the event's text. */
#define BC_RECORDING_END_MAX 160

/* Adds the event after the chunk's last record. Returns false if there is no room. */
bool bc_recording_end_add(struct bc_chunk *chunk, const struct bc_recording_end *end) BC_MUST_CHECK;

/* Finds the event in a chunk. Returns false if it is missing or invalid. */
bool bc_recording_end_find(struct bc_recording_end *end, const struct bc_chunk *chunk);

/* True if recovery wrote it. */
bool bc_recording_end_is_recovered(const struct bc_recording_end *end);

/* ---- the owner of a file
 *
 * Reads the header of a file whose name has these parts, and checks that it is a segment of
 * buscapd: the name alone proves nothing, because users and other programs put files with such
 * names next to the recordings. A segment is ours if its header can be read, was written by
 * buscapd, and has the recording and number of its file name. Everything else is foreign, including
 * the output of buscap, which the user has named: it is never deleted, renamed or counted.
 *
 * Returns 0 if it is ours; -EBADMSG: it has no header, or a damaged one; -EUCLEAN: the same, but
 * its index belongs to this segment; -EXDEV: the header of another file or program; or another
 * negative errno if it can't be read. */
int bc_segment_owner_check(struct bc_segment_header *header, int dir_fd, const char *file,
	const struct bc_segment_name *name) BC_MUST_CHECK;

/* True if this result of bc_segment_owner_check() says that the file is foreign, or may not be
 * read. After any other error, ask again: until then, its name says whose it is. */
bool bc_segment_is_foreign(int rc);

#endif
