/* Threads that decode the frames of a sealed segment ahead of its reader.
 *
 * The index tells them where the frames are. They only help: the reader decodes a frame itself if
 * they could not, or if its length or hash differs from the header that the reader found. A few
 * frames are decoded ahead; each takes 1 MiB. */
#ifndef BC_FORMATS_SEGMENT_DECODE_AHEAD_H
#define BC_FORMATS_SEGMENT_DECODE_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/bus/chunk.h"

struct bc_decode_ahead;

/* What the threads do with the records of a chunk once they are decoded. */
struct bc_chunk_work {
	/* Returns a place for the result of a chunk, of which there are a few; NULL: none of them
	 * is worked on. Called, as close(), by the thread that opens and closes. */
	void *(*open)(void *context);
	void (*close)(void *result);
	/* Works on a chunk, in any order. */
	void (*run)(void *result, const struct bc_chunk_info *info, const uint8_t *records);
	void *context;
	bool is_most; /* the reader has little left to do, so it needs no core */
};

/* Starts a thread for each core, except the reader's unless work->is_most, for the segment in the
 * regular file `fd`, which stays the caller's and is not moved. Leaves out the chunks that needs()
 * rejects now; NULL rejects none. `work` may be NULL. Returns NULL on failure, and without an index
 * or with too few chunks or cores. */
struct bc_decode_ahead *bc_decode_ahead_open(int fd,
	bool (*needs)(void *context, const struct bc_chunk_info *info), void *context,
	const struct bc_chunk_work *work);
void bc_decode_ahead_close(struct bc_decode_ahead *ahead);

/* Returns the records of the chunk at `offset`, as described by its header, and sets *result to
 * what was made of them, or NULL. They stay until the next call, which releases this chunk and
 * those before it. Waits for a thread that is working on it. Returns NULL if it was not decoded.
 * Call it with increasing offsets. */
const uint8_t *bc_decode_ahead_pop(struct bc_decode_ahead *ahead, uint64_t offset,
	const struct bc_chunk_info *info, void **result);

#endif
