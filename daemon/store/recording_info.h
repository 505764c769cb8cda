/* A recording, as its segments describe it. The loop fills in this struct before the first chunk
 * goes to the encoder; the writer creates segments from it. Afterwards only the user's metadata
 * change: a note is in the headers of all segments created later, and in the stream as an event. */
#ifndef BC_DAEMON_STORE_RECORDING_INFO_H
#define BC_DAEMON_STORE_RECORDING_INFO_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/segment/segment_header.h"

struct bc_recording_info {
	/* Without segment, wall_ns and first_*. The loop may read the metadata without the lock;
	 * only bc_recording_info_note() may change them once chunks are in the pipeline. */
	struct bc_segment_header header;
	pthread_mutex_t lock;        /* for the metadata */
	uint64_t tag;                /* bc_recording_tag() of its id */
	struct bc_recording_end end; /* set by the loop before the last chunk is sent */
	int64_t started_ns;          /* time of day */
	uint64_t stop_bytes; /* the recording ends after the chunk that reaches it; 0: no limit */
};

/* Clears the struct. May be called again after the recording has ended. */
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

#endif
