/* A recording: the segments from one start to one stop. The loop fills in this struct before the
 * first chunk goes to the encoder; the writer needs it to create segments. Afterwards only the
 * user's metadata change: a note is in the headers of all segments created later, and in the stream
 * as an event at its position.
 *
 * Also the two forms of a chunk in the pipeline: bc_slot before the encoder, bc_encoded after. */
#ifndef BC_DAEMON_STORE_RECORDING_INFO_H
#define BC_DAEMON_STORE_RECORDING_INFO_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/segment/raw_capture.h"
#include "formats/segment/segment_header.h"

struct bc_recording_info {
	/* Without segment, wall_ns and first_*. The loop may read the metadata without the lock;
	 * only bc_recording_info_note() may change them once chunks are in the pipeline. */
	struct bc_segment_header header;
	pthread_mutex_t lock; /* for the metadata */
	uint64_t tag;         /* bc_recording_tag() of its id */
	int64_t started_ns;   /* time of day */
	uint64_t stop_bytes;  /* the recording ends after the chunk that reaches it; 0: no limit */
};

/* Clears it. May be called again after the recording has ended. */
void bc_recording_info_init(struct bc_recording_info *recording);
void bc_recording_info_destroy(struct bc_recording_info *recording);

/* Merges metadata: `more` is a JSON object of strings (bc_metadata_read()). Writes the text for the
 * BC_EVENT_NOTE, which the caller adds to the stream, to `note`; empty: nothing to set. Returns
 * false with a reason in `err` and nothing changed if the object is invalid or the metadata would
 * become too long. Loop thread only. */
bool bc_recording_info_note(struct bc_recording_info *recording, const char *more,
	char note[BC_METADATA_MAX], char *err, size_t errlen) BC_MUST_CHECK;

/* Copies the header with the current metadata. Any thread. */
void bc_recording_info_header(
	const struct bc_recording_info *recording, struct bc_segment_header *header);

/* A chunk on its way to the encoder. */
struct bc_slot {
	uint64_t sequence; /* counts the chunks given to the encoder, from 0 */
	const struct bc_recording_info *recording;
	uint64_t since_ns; /* arrival of the first and the last record, uv_hrtime() */
	uint64_t until_ns;
	bool cut_after;           /* the segment ends after this chunk */
	bool is_last;             /* the recording ends after this chunk */
	struct bc_raw_block *raw; /* the bytes of the stream with keep_raw, else NULL */
	struct bc_chunk chunk;    /* may be empty: only the flags matter */
};

static inline bool bc_slot_is_empty(const struct bc_slot *slot)
{
	return bc_chunk_is_empty(&slot->chunk) &&
	       (slot->raw == NULL || bc_raw_block_is_empty(slot->raw));
}

/* Gaps and lost samples by cause. */
struct bc_losses {
	uint64_t gaps[BC_GAP_CAUSES];
	uint64_t lost[BC_GAP_CAUSES];
	bool inexact[BC_GAP_CAUSES]; /* `lost` is a minimum */
};

/* An encoded chunk. */
struct bc_encoded {
	uint64_t sequence;
	const struct bc_recording_info *recording;
	bool cut_after;
	bool is_last;
	bool is_written;     /* set by the writer, for retries */
	bool is_raw_written; /* likewise for the raw block */
	struct bc_chunk_info info;
	uint64_t gaps;           /* gap events */
	uint64_t lost;           /* samples lost in them */
	struct bc_losses losses; /* both by cause */
	size_t header_bytes;
	size_t bytes; /* 0: an empty chunk */
	enum bc_format raw_form;
	uint32_t raw_plain_bytes;
	size_t raw_bytes; /* 0: no raw block */
	uint8_t *raw;     /* BC_RAW_ENCODED_MAX bytes with keep_raw, else NULL */
	uint8_t data[BC_CHUNK_ENCODED_MAX];
};

#endif
