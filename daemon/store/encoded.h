/* An encoded chunk on its way from the encoder to the writer. */
#ifndef BC_DAEMON_STORE_ENCODED_H
#define BC_DAEMON_STORE_ENCODED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/recording_info.h"
#include "formats/bus/loss.h"
#include "formats/segment/segment.h"

/* Set by the writer, for retries: nothing is written twice. */
enum bc_encoded_state {
	BC_ENCODED_CHUNK,   /* as encoded */
	BC_ENCODED_END,     /* the recording's last chunk: has its end, or needs none */
	BC_ENCODED_WRITTEN, /* or discarded */
};

struct bc_encoded {
	uint64_t sequence;
	const struct bc_recording_info *recording;
	bool cut_after;
	bool is_last;
	enum bc_encoded_state state;
	struct bc_chunk_info info;
	struct bc_loss loss;     /* of its gaps */
	struct bc_losses losses; /* gaps and lost samples, by cause */
	size_t header_bytes;
	size_t bytes;    /* 0: an empty chunk */
	void *packed_in; /* the slot of a packed one (daemon/ingest/pipeline.c), else NULL */
	uint8_t *data;   /* header and frame: in `room`, or if packed, after the last region */
	struct bc_chunk_pages pages;
	uint8_t room[BC_CHUNK_ENCODED_MAX];
};

#endif
