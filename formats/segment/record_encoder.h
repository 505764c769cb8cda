/* The record encoder: compresses BYU records to an LZ4 block that any LZ4 decoder reads.
 *
 * It knows that records are 12 bytes long and that their fields repeat: it looks for matches once a
 * record and by field, where LZ4 looks at every byte. docs/encoder.md explains the method.
 *
 * Each level makes smaller blocks than the one before it, on records that suit the encoder, and
 * from BC_LEVEL_FAST on it takes longer. Other records are left to LZ4. */
#ifndef BC_FORMATS_SEGMENT_RECORD_ENCODER_H
#define BC_FORMATS_SEGMENT_RECORD_ENCODER_H

#include <stddef.h>
#include <stdint.h>

#include "formats/base/compression.h"

/* Compresses `bytes` (up to BC_CHUNK_BYTES) of records to an LZ4 block of at most `room` bytes at
 * `out`, with a level below BC_LEVELS. `bytes` need not be whole records. Returns the length of the
 * block, or 0 if it does not fit. Keeps no state between calls. */
size_t bc_record_compress(
	uint8_t *out, size_t room, const uint8_t *records, size_t bytes, enum bc_level level);

#endif
