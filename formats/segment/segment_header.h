/* The segment header: a JSON object with a checksum, in a skippable frame at the head of a segment.
 * It says what was recorded, by whom, from what; docs/segment-format.md lists the members. A reader
 * that finds it damaged can still read every chunk. */
#ifndef BC_FORMATS_SEGMENT_SEGMENT_HEADER_H
#define BC_FORMATS_SEGMENT_SEGMENT_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/format_id.h"
#include "formats/base/must_check.h"
#include "formats/bus/mapping.h"
#include "formats/segment/metadata.h"
#include "formats/segment/segment.h"

#define BC_RECORDING_ID_MAX 112 /* with the terminating zero; formats/segment/segment_name.h */

/* A header is no longer than this. */
#define BC_SEGMENT_HEADER_MAX (1u << 16)

struct bc_segment_header {
	uint32_t version; /* read: the file's; written: BC_SEGMENT_VERSION */
	char recording[BC_RECORDING_ID_MAX];
	char label[65];
	uint32_t segment;
	char continues[BC_RECORDING_ID_MAX]; /* the recording this one goes on after; or empty */
	char source_kind[16];
	char source_name[256];
	char board_serial[33]; /* empty without a board */
	char board_firmware[17];
	uint64_t clock_hz; /* ticks a second; 0: not known */
	bool has_mapping;  /* the records were made from bus samples, with this mapping */
	struct bc_mapping_options mapping;
	char host[65];
	char program[32];
	int64_t wall_ns;     /* host's time of day when the segment's first record arrived */
	uint64_t first_tick; /* of that record; below 2^63 here, any in its chunk's header */
	uint32_t first_epoch;
	uint64_t first_record;          /* its number in the recording */
	char metadata[BC_METADATA_MAX]; /* the user's, a JSON object; empty: {} */
};

/* Writes empty LZ4 frame and header: all that stands before the first chunk. *out is set to a new
 * buffer that the caller frees. Returns 0, -ENOMEM, -EINVAL if metadata is no JSON object or what
 * results is longer than BC_SEGMENT_HEADER_MAX. */
int bc_segment_header_write(
	uint8_t **out, size_t *bytes, const struct bc_segment_header *header) BC_MUST_CHECK;

/* The length of the header frame whose first 8 bytes are at `in`, or 0 if they begin none. */
size_t bc_segment_header_bytes(const uint8_t in[BC_SKIPPABLE_BYTES]);

/* Reads a header frame. Returns false if its hash is wrong or it isn't the JSON it should be. What
 * the object lacks is empty or 0. */
bool bc_segment_header_read(
	struct bc_segment_header *header, const uint8_t *in, size_t bytes) BC_MUST_CHECK;

/* The same for a raw capture (formats/segment/raw_capture.h): its header is a segment's, with the
 * form of its bytes, BC_FORMAT_BCP1 or BC_FORMAT_RAW6. */
int bc_raw_header_write(uint8_t **out, size_t *bytes, const struct bc_segment_header *header,
	enum bc_format form) BC_MUST_CHECK;
size_t bc_raw_header_bytes(const uint8_t in[BC_SKIPPABLE_BYTES]);
bool bc_raw_header_read(struct bc_segment_header *header, enum bc_format *form, const uint8_t *in,
	size_t bytes) BC_MUST_CHECK;

#endif
