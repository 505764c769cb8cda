/* The compressions of records in segments: their names, and the frames of the files.
 *
 * A file's frames are all LZ4 frames, or all zstd frames, each with an independent block of
 * records. Readers go by the bytes of a frame, never by the name of the file.
 * formats/segment/segment.h writes and reads frames, docs/segment-format.md specifies them. */
#ifndef BC_FORMATS_BASE_COMPRESSION_H
#define BC_FORMATS_BASE_COMPRESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How records are compressed. formats/segment/record_encoder.h makes LZ4 blocks, in which each
 * level is smaller than the one before it. */
enum bc_level {
	BC_LEVEL_LZ4, /* LZ4's own default encoder */
	BC_LEVEL_FAST,
	BC_LEVEL_DEFAULT,
	BC_LEVEL_DENSE,
	BC_LEVELS,
	BC_LEVEL_ZSTD = BC_LEVELS, /* zstd's level 1; its other levels follow */
	BC_LEVEL_ZSTD_19 = BC_LEVEL_ZSTD + 18,
};

/* "lz4", "fast", "default", "dense", "zstd", "zstd-2", ... "zstd-19" */
#define BC_LEVEL_NAME_MAX 8
void bc_level_write(char out[BC_LEVEL_NAME_MAX], enum bc_level level);

/* Parses such a name. Returns false, with the default level, for any other text. */
bool bc_level_read(enum bc_level *level, const char *name);

enum bc_frame_format { BC_FRAMES_LZ4, BC_FRAMES_ZSTD, BC_FRAMES_COUNT };

#define BC_EMPTY_FRAME_BYTES 11

struct bc_frames_info {
	uint32_t magic;                      /* the first four bytes of a frame */
	uint8_t empty[BC_EMPTY_FRAME_BYTES]; /* the start of a file: a frame without data */
	const char *suffix;                  /* of the file's name */
	enum bc_level level;                 /* unless another one is given */
};

extern const struct bc_frames_info bc_frames_info[BC_FRAMES_COUNT];

static inline enum bc_frame_format bc_level_frames(enum bc_level level)
{
	return level < BC_LEVEL_ZSTD ? BC_FRAMES_LZ4 : BC_FRAMES_ZSTD;
}

/* True if a file begins with an empty frame, or its first bytes if there are fewer. */
bool bc_is_empty_frame(const uint8_t *in, size_t bytes);

/* True if a frame has zstd's magic. */
bool bc_frame_is_zstd(const uint8_t *frame, size_t bytes);

/* The frames whose suffix the first `bytes` of a name end in. Returns false if it is neither. */
bool bc_frames_by_name(enum bc_frame_format *frames, const char *name, size_t bytes);

#endif
