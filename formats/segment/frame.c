#include "formats/segment/frame.h"

#include <errno.h>
#include <lz4.h>
#include <lz4frame.h>
#include <stdbool.h>
#include <string.h>
#include <xxhash.h>

#include "formats/base/bytes.h"
#include "formats/base/hash.h"
#include "formats/base/lz4_error.h"

#define LZ4_MAGIC 0x184D2204u

enum {
	FLG_VERSION_1 = 0x40,
	FLG_INDEPENDENT = 0x20,
	FLG_CONTENT_SIZE = 0x08,
	BD_64_KIB = 4 << 4,
	BD_1_MIB = 6 << 4,
};

#define BLOCK_STORED 0x80000000u
#define BLOCK_MAX    (1u << 20)

const uint8_t bc_empty_frame[BC_EMPTY_FRAME_BYTES] = {
	0x04, 0x22, 0x4D, 0x18, FLG_VERSION_1 | FLG_INDEPENDENT, BD_64_KIB, 0x82, 0, 0, 0, 0};

size_t bc_skippable_bytes(
	const uint8_t in[BC_SKIPPABLE_BYTES], uint32_t magic, size_t min, size_t max)
{
	size_t bytes = (size_t)bc_le32(in + 4) + BC_SKIPPABLE_BYTES;

	return bc_le32(in) == magic && bytes >= min && bytes <= max ? bytes : 0;
}

void bc_checksum_write(uint8_t *end, const uint8_t *start)
{
	bc_write_le64(end, XXH3_64bits(start, (size_t)(end - start)));
}

bool bc_checksum_is_valid(const uint8_t *end, const uint8_t *start)
{
	return bc_le64(end) == XXH3_64bits(start, (size_t)(end - start));
}

size_t bc_frame_write(uint8_t *out, const uint8_t *data, size_t bytes, enum bc_level level)
{
	uint8_t *p = out;

	bc_write_le32(p, LZ4_MAGIC);
	p[4] = FLG_VERSION_1 | FLG_INDEPENDENT | FLG_CONTENT_SIZE;
	p[5] = BD_1_MIB;
	bc_write_le64(p + 6, bytes);
	p[14] = (uint8_t)(XXH32(p + 4, 10, 0) >> 8);
	p += 15;
	if (bytes != 0) {
		uint8_t *block = p + 4;
		size_t n = bc_record_compress(block, bytes - 1, data, bytes, level);
		uint32_t stored = n == 0 ? BLOCK_STORED : 0;
		if (n == 0) {
			n = bytes;
			memcpy(block, data, n);
		}
		bc_write_le32(p, (uint32_t)n | stored);
		p = block + n;
	}
	bc_write_le32(p, 0);
	return (size_t)(p + 4 - out);
}

#define HEAD_BYTES 15
#define END_BYTES  4

enum own { OWN_READ, OWN_DAMAGED, NOT_OWN };

/* Decodes a frame of the form that bc_frame_write() gives it: at most one block. Faster than LZ4F,
 * which allocates buffers for each frame. */
static enum own read_own_frame(uint8_t *out, size_t bytes, const uint8_t *frame, size_t frame_bytes)
{
	if (frame_bytes < HEAD_BYTES + END_BYTES || bc_le32(frame) != LZ4_MAGIC ||
		frame[4] != (FLG_VERSION_1 | FLG_INDEPENDENT | FLG_CONTENT_SIZE) ||
		frame[5] != BD_1_MIB || bc_le64(frame + 6) != bytes ||
		frame[14] != (uint8_t)(XXH32(frame + 4, 10, 0) >> 8))
		return NOT_OWN;
	uint32_t head = bc_le32(frame + HEAD_BYTES);
	if (bytes == 0)
		return head == 0 && frame_bytes == HEAD_BYTES + END_BYTES ? OWN_READ : NOT_OWN;
	const uint8_t *block = frame + HEAD_BYTES + 4;
	size_t n = head & ~BLOCK_STORED;
	if (n != frame_bytes - HEAD_BYTES - 4 - END_BYTES || n > BLOCK_MAX || bytes > BLOCK_MAX ||
		bc_le32(block + n) != 0)
		return NOT_OWN;
	if ((head & BLOCK_STORED) == 0)
		return LZ4_decompress_safe((const char *)block, (char *)out, (int)n, (int)bytes) ==
				       (int)bytes
			       ? OWN_READ
			       : OWN_DAMAGED;
	if (n != bytes)
		return OWN_DAMAGED;
	memcpy(out, block, n);
	return OWN_READ;
}

/* Decodes any frame. */
static int read_any_frame(uint8_t *out, size_t bytes, const uint8_t *frame, size_t frame_bytes)
{
	LZ4F_dctx *dctx = NULL;
	size_t in_done = 0;
	size_t out_done = 0;
	size_t hint = 1;

	if (LZ4F_isError(LZ4F_createDecompressionContext(&dctx, LZ4F_VERSION)))
		return -ENOMEM;
	while (hint != 0) {
		size_t in_now = frame_bytes - in_done;
		size_t out_now = bytes - out_done;
		hint = LZ4F_decompress(
			dctx, out + out_done, &out_now, frame + in_done, &in_now, NULL);
		if (LZ4F_isError(hint) || (in_now == 0 && out_now == 0))
			break;
		in_done += in_now;
		out_done += out_now;
	}
	LZ4F_freeDecompressionContext(dctx);
	if (LZ4F_isError(hint))
		return bc_lz4_error(hint);
	return hint == 0 && in_done == frame_bytes && out_done == bytes ? 0 : -EBADMSG;
}

int bc_frame_read(uint8_t *out, size_t bytes, const uint8_t *frame, size_t frame_bytes)
{
	switch (read_own_frame(out, bytes, frame, frame_bytes)) {
	case OWN_READ:
		return 0;
	case OWN_DAMAGED:
		return -EBADMSG;
	default:
		return read_any_frame(out, bytes, frame, frame_bytes);
	}
}

int bc_frame_read_checked(
	uint8_t *out, size_t bytes, const uint8_t *frame, size_t frame_bytes, uint64_t hash)
{
	int rc = bc_frame_read(out, bytes, frame, frame_bytes);

	return rc == 0 && bc_hash(out, bytes) != hash ? -EBADMSG : rc;
}
