/* Undoes what a trace is compressed in: LZ4 frames, gzip members, zstd frames, one or many behind
 * one another.
 *
 * bc_unpack_open(), then bc_unpack() with the bytes as they come; what it gives before it finds
 * damage is good. */
#ifndef BC_FORMATS_READER_UNPACK_H
#define BC_FORMATS_READER_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum bc_packing {
	BC_PACKING_NONE,
	BC_PACKING_LZ4,
	BC_PACKING_GZIP,
	BC_PACKING_ZSTD,
};

/* "LZ4", "gzip", "zstd"; "" for none. */
const char *bc_packing_name(enum bc_packing packing);

/* What bytes are compressed in, by the magic at their head. */
enum bc_packing bc_packing_of(const uint8_t *head, size_t bytes);

struct bc_unpacker;

/* Returns NULL when there is not enough memory. zstd frames may ask for windows of up to 128 MiB,
 * LZ4 and gzip take little. */
struct bc_unpacker *bc_unpack_open(enum bc_packing packing);
void bc_unpack_close(struct bc_unpacker *unpacker);

/* Unpacks some of the bytes at `in`, and sets *taken to how many it used up; with bytes 0, gives
 * what it holds. Returns how many bytes it put at `out`, or -EBADMSG when what comes next is
 * damaged. It may return 0 and want more. */
ssize_t bc_unpack(struct bc_unpacker *unpacker, uint8_t *out, size_t room, const uint8_t *in,
	size_t bytes, size_t *taken);

/* Whether the compressed bytes may end here: between two frames or members. */
bool bc_unpack_may_end(const struct bc_unpacker *unpacker);

#endif
