/* Gives the blocks of a raw capture (formats/segment/raw_capture.h) to a sink as the live source
 * gave its pieces: transfer by transfer, with their times, and the breaks; where some of the stream
 * is missing, a break as well.
 *
 *     bc_block_replay_start()      a block, and how it follows the one before
 *     bc_block_replay_push()       until it returns true: a sink that refuses is offered the same
 *     bc_block_replay_flush()      the same, behind the last block, or before anything else
 *     bc_block_replay_free() */
#ifndef BC_CAPTURE_SOURCE_BLOCK_REPLAY_H
#define BC_CAPTURE_SOURCE_BLOCK_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/source/source.h"
#include "formats/segment/segment_reader.h"

/* All zero at the beginning. */
struct bc_block_replay {
	/* The block in hand. */
	uint32_t next_entry; /* to be given */
	size_t given;        /* bytes before it */
	uint32_t skip;       /* bytes of its first sample that are left out: it isn't whole */
	bool is_broken;      /* a break comes before it */
	bool is_joined;      /* the next entry's bytes stand in `joined` already */
	struct bc_source_break broken;

	/* A transfer that goes on from block to block: its times tell of all its bytes. */
	uint8_t *joined;
	size_t joined_bytes;
	size_t joined_room;
	struct bc_source_data joined_data;
	struct bc_segment_header joined_header;
};

void bc_block_replay_start(struct bc_block_replay *replay, const struct bc_raw_block *block,
	enum bc_raw_follows follows);

/* Gives what of the block wasn't given yet; `header` is its file's, or NULL. *is_over is looked at
 * after each call of the sink: once it is set, nothing more is given. Returns whether the sink is
 * done with all of it. */
bool bc_block_replay_push(struct bc_block_replay *replay, const struct bc_raw_block *block,
	const struct bc_segment_header *header, const struct bc_source_sink *sink,
	const bool *is_over);

/* Gives what is held of a transfer whose rest doesn't come. Returns whether the sink took it. */
bool bc_block_replay_flush(struct bc_block_replay *replay, const struct bc_source_sink *sink);

void bc_block_replay_free(struct bc_block_replay *replay);

#endif
