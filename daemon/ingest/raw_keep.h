/* A live stream on its way into raw blocks: where in it the next byte stands, and what has to be
 * said before it. daemon/ingest/channel.h has the blocks, and asks here what goes into them. */
#ifndef BC_DAEMON_INGEST_RAW_KEEP_H
#define BC_DAEMON_INGEST_RAW_KEEP_H

#include <stddef.h>
#include <stdint.h>

#include "capture/source/source.h"
#include "formats/segment/raw_capture.h"

/* Breaks that wait for a block; what comes beyond them is added to the last. */
#define BC_RAW_PENDING 4u

/* All zero at the beginning of a stream. */
struct bc_raw_keep {
	enum bc_format form;
	uint64_t offset; /* in the stream, of what the next entry says */
	uint32_t phase;  /* raw6: bytes of a sample that the stream stands behind */
	uint32_t pending_count;
	struct bc_raw_entry pending[BC_RAW_PENDING];
	uint64_t dropping_since_ns;
};

/* How many entries a part of a piece may need in the block it goes to. */
static inline uint32_t bc_raw_keep_entries(const struct bc_raw_keep *keep)
{
	return keep->pending_count + 1;
}

/* Gives an empty block its place. */
void bc_raw_keep_start_block(
	const struct bc_raw_keep *keep, struct bc_raw_block *block, uint64_t tag);

/* Puts what waits into a block. */
void bc_raw_keep_flush(struct bc_raw_keep *keep, struct bc_raw_block *block);

/* Puts `count` of a piece's bytes, from `from` on, or the break that it is, into a block that has
 * room for them, behind what waits. Returns how many bytes are left out: behind some that were
 * dropped, those of a sample that is not whole. */
size_t bc_raw_keep_add(struct bc_raw_keep *keep, struct bc_raw_block *block,
	const struct bc_source_data *data, size_t from, size_t count);

/* There is no block for what of a piece stands at `from`: its bytes are dropped, and a break says
 * so later; a break waits. */
void bc_raw_keep_drop(struct bc_raw_keep *keep, const struct bc_source_data *data, size_t from,
	enum bc_gap_cause cause, uint64_t now_ns);

#endif
