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

/* Starts a thread for each core except the reader's, for the segment in the regular file `fd`,
 * which stays the caller's and is not moved. Leaves out the chunks that needs() rejects now; NULL
 * rejects none. Returns NULL on failure, and without an index or with too few chunks or cores. */
struct bc_decode_ahead *bc_decode_ahead_open(
	int fd, bool (*needs)(void *context, const struct bc_chunk_info *info), void *context);
void bc_decode_ahead_close(struct bc_decode_ahead *ahead);

/* Copies the records of the chunk at `offset`, as described by its header, and releases it and the
 * chunks before it. Waits for a thread that is decoding it. Returns false if it was not decoded.
 * Call it with increasing offsets. */
bool bc_decode_ahead_pop(struct bc_decode_ahead *ahead, uint64_t offset,
	const struct bc_chunk_info *info, uint8_t *records);

#endif
