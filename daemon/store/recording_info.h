/* A recording: a row of segments from start to stop. What the loop settles before its first chunk
 * goes to the encoder, and the writer needs to make its segments. Not changed afterwards, but for
 * the user's metadata: what is noted while it goes on is in the headers of the segments begun from
 * then on, and in the stream, as an event at its place. */
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
	/* All but segment, wall_ns and first_*. Its metadata are the loop's to read, and
	 * bc_recording_info_note()'s to change once chunks are under way. */
	struct bc_segment_header header;
	pthread_mutex_t lock; /* of the metadata */
	uint64_t tag;         /* bc_recording_tag() of its id */
	int64_t started_ns;   /* host's time of day */
	uint64_t stop_bytes;  /* it ends after the chunk that passes it; 0: it doesn't */
};

/* An empty recording. One that was begun may be begun again, once it has ended. */
void bc_recording_info_init(struct bc_recording_info *recording);
void bc_recording_info_destroy(struct bc_recording_info *recording);

/* Sets metadata: `more` is an object of strings as bc_metadata_read() takes it. `note` gets what
 * was set, the text of the BC_EVENT_NOTE that tells of it (the caller's to add; empty: there was
 * nothing to set). Returns false, with nothing changed and a clause in `err`, when it is no such
 * object or the metadata would grow too long. The loop's thread. */
bool bc_recording_info_note(struct bc_recording_info *recording, const char *more,
	char note[BC_METADATA_MAX], char *err, size_t errlen) BC_MUST_CHECK;

/* Its header, with the metadata as they are now. Any thread. */
void bc_recording_info_header(
	const struct bc_recording_info *recording, struct bc_segment_header *header);

/* A chunk's way through the pipeline, with what goes beside its bytes. */
struct bc_slot {
	uint64_t sequence; /* of the chunks given to the encoder, from 0 */
	const struct bc_recording_info *recording;
	uint64_t since_ns; /* when its first and its latest records came, of uv_hrtime() */
	uint64_t until_ns;
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

/* What gaps say is lost. */
struct bc_losses {
	uint64_t gaps[BC_GAP_CAUSES];
	uint64_t lost[BC_GAP_CAUSES];
	bool inexact[BC_GAP_CAUSES]; /* at least so many */
};

/* A chunk once encoded. */
struct bc_encoded {
	uint64_t sequence;
	const struct bc_recording_info *recording;
	bool cut_after;
	bool is_last;
	bool is_written;     /* the writer's: only what follows the writing is still to do */
	bool is_raw_written; /* the same of the raw block */
	struct bc_chunk_info info;
	uint64_t gaps; /* gap events, and what they say is lost */
	uint64_t lost;
	struct bc_losses losses; /* the same by cause */
	size_t header_bytes;
	size_t bytes; /* 0: an empty chunk */
	enum bc_format raw_form;
	uint32_t raw_plain_bytes;
	size_t raw_bytes; /* 0: no raw block */
	uint8_t *raw;     /* BC_RAW_ENCODED_MAX where raw bytes are kept; else NULL */
	uint8_t data[BC_CHUNK_ENCODED_MAX];
};

#endif
