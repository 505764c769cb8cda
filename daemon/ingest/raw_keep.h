/* Puts a live stream's bytes into raw blocks for the raw capture. Tracks the stream offset of the
 * next byte and the breaks to write before it. The channel (daemon/ingest/channel.h) owns the
 * blocks. */
#ifndef BC_DAEMON_INGEST_RAW_KEEP_H
#define BC_DAEMON_INGEST_RAW_KEEP_H

#include <stddef.h>
#include <stdint.h>

#include "capture/source/source.h"
#include "formats/segment/raw_capture.h"

/* Breaks that can wait for a block; further ones are added to the last. */
#define BC_RAW_PENDING 4u

/* All zero at the start of a stream. */
struct bc_raw_keep {
	enum bc_format form;
	uint64_t offset; /* stream offset of the next entry */
	uint32_t phase;  /* raw6: bytes of an incomplete sample before the next byte */
	uint32_t pending_count;
	struct bc_raw_entry pending[BC_RAW_PENDING];
	uint64_t dropping_since_ns;
};

/* Returns how many entries a part of a piece may need in its block. */
static inline uint32_t bc_raw_keep_entries(const struct bc_raw_keep *keep)
{
	return keep->pending_count + 1;
}

/* Resets a block and sets its stream offset. */
void bc_raw_keep_start_block(
	const struct bc_raw_keep *keep, struct bc_raw_block *block, uint64_t tag);

/* Writes the pending breaks into a block. */
void bc_raw_keep_flush(struct bc_raw_keep *keep, struct bc_raw_block *block);

/* Writes the pending breaks, then `count` of a piece's bytes starting at `from`, or the break that
 * it is, into a block that has space for them. Returns how many bytes were left out: after dropped
 * bytes, the rest of an incomplete sample. */
size_t bc_raw_keep_add(struct bc_raw_keep *keep, struct bc_raw_block *block,
	const struct bc_source_data *data, size_t from, size_t count);

/* Handles a piece for which no block is free, starting at `from`: its bytes are dropped and added
 * to a pending break; a break becomes pending. */
void bc_raw_keep_drop(struct bc_raw_keep *keep, const struct bc_source_data *data, size_t from,
	enum bc_gap_cause cause, uint64_t now_ns);

#endif
