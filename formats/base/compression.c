#include "formats/base/compression.h"

#include <stdio.h>
#include <string.h>

#include "formats/base/bytes.h"

static const char *const names[] = {"lz4", "fast", "default", "dense", "zstd"};

/* The empty zstd frame has a two-byte dictionary id of 0, "none", and so the length of the LZ4 one:
 * in all files, the header is at the same offset. */
const struct bc_frames_info bc_frames_info[BC_FRAMES_COUNT] = {
	[BC_FRAMES_LZ4] = {.magic = 0x184D2204,
		.empty = {0x04, 0x22, 0x4D, 0x18, 0x60, 0x40, 0x82, 0, 0, 0, 0},
		.suffix = ".byu.lz4",
		.level = BC_LEVEL_DEFAULT},
	[BC_FRAMES_ZSTD] = {.magic = 0xFD2FB528,
		.empty = {0x28, 0xB5, 0x2F, 0xFD, 0x22, 0, 0, 0, 1, 0, 0},
		.suffix = ".byu.zst",
		.level = BC_LEVEL_ZSTD},
};

void bc_level_write(char out[BC_LEVEL_NAME_MAX], enum bc_level level)
{
	if (level <= BC_LEVEL_ZSTD)
		snprintf(out, BC_LEVEL_NAME_MAX, "%s", names[level]);
	else
		snprintf(out, BC_LEVEL_NAME_MAX, "zstd-%u",
			(unsigned)(level - BC_LEVEL_ZSTD + 1) % 100);
}

bool bc_level_read(enum bc_level *level, const char *name)
{
	char text[BC_LEVEL_NAME_MAX];

	for (*level = BC_LEVEL_LZ4; *level <= BC_LEVEL_ZSTD_19; (*level)++) {
		bc_level_write(text, *level);
		if (strcmp(text, name) == 0)
			return true;
	}
	*level = BC_LEVEL_DEFAULT;
	return false;
}

bool bc_is_empty_frame(const uint8_t *in, size_t bytes)
{
	size_t n = bytes < BC_EMPTY_FRAME_BYTES ? bytes : BC_EMPTY_FRAME_BYTES;

	return memcmp(in, bc_frames_info[BC_FRAMES_LZ4].empty, n) == 0 ||
	       memcmp(in, bc_frames_info[BC_FRAMES_ZSTD].empty, n) == 0;
}

bool bc_frame_is_zstd(const uint8_t *frame, size_t bytes)
{
	return bytes >= 4 && bc_le32(frame) == bc_frames_info[BC_FRAMES_ZSTD].magic;
}

bool bc_frames_by_name(enum bc_frame_format *frames, const char *name, size_t bytes)
{
	for (*frames = 0; *frames < BC_FRAMES_COUNT; (*frames)++) {
		const char *suffix = bc_frames_info[*frames].suffix;
		size_t n = strlen(suffix);
		if (bytes >= n && memcmp(name + bytes - n, suffix, n) == 0)
			return true;
	}
	*frames = BC_FRAMES_LZ4;
	return false;
}
