/* Traces compressed in every way that is read. */
#ifndef BC_TESTS_SUPPORT_PACKED_H
#define BC_TESTS_SUPPORT_PACKED_H

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include "formats/segment/segment.h"
#include "tests/support/traces.h"

/* zstd, after room for other bytes. */
static inline struct trace pack_zstd(const struct trace *plain, size_t room_before)
{
	size_t room = room_before + ZSTD_compressBound(plain->n);
	struct trace packed = {.bytes = calloc(1, room)};

	assert_non_null(packed.bytes);
	packed.n = room_before + ZSTD_compress(packed.bytes + room_before, room - room_before,
					 plain->bytes, plain->n, 1);
	assert_true(packed.n <= room);
	return packed;
}

/* Compresses at a level; 0 stores the bytes as they are. */
static inline struct trace pack_gzip(const struct trace *plain, int level)
{
	z_stream z = {0};

	assert_int_equal(
		deflateInit2(&z, level, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
	struct trace packed = {.bytes = malloc(deflateBound(&z, plain->n))};
	assert_non_null(packed.bytes);
	z.next_in = plain->bytes;
	z.avail_in = (uInt)plain->n;
	z.next_out = packed.bytes;
	z.avail_out = (uInt)deflateBound(&z, plain->n);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	packed.n = z.total_out;
	deflateEnd(&z);
	return packed;
}

static inline struct trace pack_xz(const struct trace *plain)
{
	size_t room = lzma_stream_buffer_bound(plain->n);
	struct trace packed = {.bytes = malloc(room)};

	assert_non_null(packed.bytes);
	assert_int_equal(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC64, NULL, plain->bytes, plain->n,
				 packed.bytes, &packed.n, room),
		LZMA_OK);
	return packed;
}

/* A frame whose only block is stored, as compressors do with what they can't make smaller. */
static inline struct trace pack_stored(const struct trace *plain, enum bc_packing packing)
{
	static const uint8_t zstd[] = {0x28, 0xB5, 0x2F, 0xFD, 0, 7 << 3};
	struct trace packed = {.bytes = calloc(1, plain->n + 20)};

	assert_non_null(packed.bytes);
	assert_true(plain->n < 65536);
	if (packing == BC_PACKING_LZ4) {
		memcpy(packed.bytes, bc_frames_info[BC_FRAMES_LZ4].empty, 7);
		bc_write_le32(packed.bytes + 7, 0x80000000 | (uint32_t)plain->n);
		packed.n = 11 + plain->n + 4; /* the end mark is 0 */
		memcpy(packed.bytes + 11, plain->bytes, plain->n);
		return packed;
	}
	memcpy(packed.bytes, zstd, sizeof(zstd));
	bc_write_le32(packed.bytes + sizeof(zstd), 1 | (uint32_t)plain->n << 3);
	packed.n = sizeof(zstd) + 3 + plain->n;
	memcpy(packed.bytes + sizeof(zstd) + 3, plain->bytes, plain->n);
	return packed;
}

/* Every compression, and each but xz with the bytes stored. */
#define PACKED 7u

static const enum bc_packing packings[PACKED] = {BC_PACKING_LZ4, BC_PACKING_LZ4, BC_PACKING_GZIP,
	BC_PACKING_GZIP, BC_PACKING_ZSTD, BC_PACKING_ZSTD, BC_PACKING_XZ};

static inline void pack_all(struct trace packed[PACKED], const struct trace *plain)
{
	packed[0] = trace_to_lz4(plain, true);
	packed[1] = pack_stored(plain, BC_PACKING_LZ4);
	packed[2] = pack_gzip(plain, 6);
	packed[3] = pack_gzip(plain, 0);
	packed[4] = pack_zstd(plain, 0);
	packed[5] = pack_stored(plain, BC_PACKING_ZSTD);
	packed[6] = pack_xz(plain);
}

#endif
