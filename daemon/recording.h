/* A recording: a row of segments from start to stop. What the loop settles before its first chunk
 * goes to the encoder, and the writer needs to make its segments. Not changed afterwards. */
#ifndef BC_DAEMON_RECORDING_H
#define BC_DAEMON_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/raw_capture.h"
#include "formats/segment_header.h"

struct bc_recording {
	struct bc_segment_header header; /* all but segment, wall_ns and first_* */
	uint64_t tag;                    /* bc_recording_tag() of its id */
	int64_t started_ns;              /* host's time of day */
};

/* A chunk's way through the pipeline, with what goes beside its bytes. */
struct bc_slot {
	uint64_t sequence; /* of the chunks given to the encoder, from 0 */
	const struct bc_recording *recording;
	bool cut_after;           /* the segment ends with this chunk */
	bool is_last;             /* the recording does */
	struct bc_raw_block *raw; /* the stream's bytes, where they are kept; else NULL */
	struct bc_chunk chunk;    /* empty: only what stands above matters */
};

static inline bool bc_slot_is_empty(const struct bc_slot *slot)
{
	return bc_chunk_is_empty(&slot->chunk) &&
	       (slot->raw == NULL || bc_raw_block_is_empty(slot->raw));
}

/* A chunk once encoded. */
struct bc_encoded {
	uint64_t sequence;
	const struct bc_recording *recording;
	bool cut_after;
	bool is_last;
	bool is_written;     /* the writer's: only what follows the writing is still to do */
	bool is_raw_written; /* the same of the raw block */
	struct bc_chunk_info info;
	uint64_t gaps; /* gap events, and what they say is lost */
	uint64_t lost;
	size_t header_bytes;
	size_t bytes; /* 0: an empty chunk */
	enum bc_format raw_form;
	uint32_t raw_plain_bytes;
	size_t raw_bytes; /* 0: no raw block */
	uint8_t *raw;     /* BC_RAW_ENCODED_MAX where raw bytes are kept; else NULL */
	uint8_t data[BC_CHUNK_ENCODED_MAX];
};

#endif
