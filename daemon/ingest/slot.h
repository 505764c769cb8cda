/* A chunk on its way from a channel to the encoder, where it becomes a struct bc_encoded. */
#ifndef BC_DAEMON_INGEST_SLOT_H
#define BC_DAEMON_INGEST_SLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/store/recording_info.h"
#include "formats/bus/chunk.h"

struct bc_slot {
	uint64_t sequence; /* counts the chunks given to the encoder, from 0 */
	const struct bc_recording_info *recording;
	uint64_t since_ns; /* arrival of the first and the last record, uv_hrtime() */
	uint64_t until_ns;
	bool cut_after;        /* the segment ends after this chunk */
	bool is_last;          /* the recording ends after this chunk */
	unsigned packed;       /* how many encoded chunks are packed in `chunk` instead, */
	size_t packed_bytes;   /* and how much of it they have taken; the pipeline's */
	struct bc_chunk chunk; /* may be empty: only the flags matter */
};

#endif
