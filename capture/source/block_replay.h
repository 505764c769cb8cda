/* Replays the blocks of a raw capture (formats/segment/raw_capture.h): the sink receives the same
 * pieces as from the live source, transfer by transfer, with their times and breaks. Where part of
 * the stream is missing, a break is added.
 *
 *     bc_block_replay_start()      a block, and how it follows the previous one
 *     bc_block_replay_push()       until it returns true; a sink that is full gets the piece again
 *     bc_block_replay_flush()      likewise, after the last block or before any other data
 *     bc_block_replay_free() */
#ifndef BC_CAPTURE_SOURCE_BLOCK_REPLAY_H
#define BC_CAPTURE_SOURCE_BLOCK_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/source/source.h"
#include "formats/segment/segment_reader.h"

/* Initialize it to zero. */
struct bc_block_replay {
	/* The current block. */
	uint32_t next_entry;
	size_t consumed; /* bytes of the entries before it */
	uint32_t skip;   /* bytes to skip at its start: the rest of an incomplete sample */
	bool is_broken;  /* a break precedes it */
	bool is_joined;  /* the next entry's bytes are already in `joined` */
	struct bc_source_break broken;

	/* A transfer that continues in the next block. Its times apply to all its bytes, so it is
	 * joined before it goes to the sink. */
	uint8_t *joined;
	size_t joined_bytes;
	size_t joined_capacity;
	struct bc_source_data joined_data;
	struct bc_segment_header joined_header;
};

void bc_block_replay_start(struct bc_block_replay *replay, const struct bc_raw_block *block,
	enum bc_raw_follows follows);

/* Passes the rest of the block to the sink. `header` is its file's, or NULL. Stops as soon as a
 * call to the sink sets *is_over. Returns false if the sink is full. */
bool bc_block_replay_push(struct bc_block_replay *replay, const struct bc_raw_block *block,
	const struct bc_segment_header *header, const struct bc_source_sink *sink,
	const bool *is_over);

/* Passes on the start of a transfer whose rest is missing. Returns false if the sink is full. */
bool bc_block_replay_flush(struct bc_block_replay *replay, const struct bc_source_sink *sink);

void bc_block_replay_free(struct bc_block_replay *replay);

#endif
