#include <errno.h>
#include <lz4frame.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "formats/codec/unpack.h"
#include "tests/support/dice.h"
#include "tests/support/failing_heap.h"
#include "tests/support/test.h"

/* Enough for several blocks in each format. */
#define PLAIN 300000u
#define ROOM  (4 * PLAIN)

static const enum bc_packing packings[] = {
	BC_PACKING_LZ4, BC_PACKING_GZIP, BC_PACKING_ZSTD, BC_PACKING_XZ};

#define PACKINGS (COUNT_OF(packings))

struct fixture {
	uint8_t plain[PLAIN];
	uint8_t packed[PACKINGS][ROOM];
	size_t bytes[PACKINGS];
};

static size_t pack_gzip(uint8_t *out, const uint8_t *in, size_t bytes)
{
	z_stream z = {0};

	assert_int_equal(
		deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (uint8_t *)(uintptr_t)in;
	z.avail_in = (uInt)bytes;
	z.next_out = out;
	z.avail_out = ROOM;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	size_t n = ROOM - z.avail_out;
	deflateEnd(&z);
	return n;
}

static size_t pack_xz(uint8_t *out, const uint8_t *in, size_t bytes)
{
	size_t n = 0;

	assert_int_equal(
		lzma_easy_buffer_encode(1, LZMA_CHECK_CRC64, NULL, in, bytes, out, &n, ROOM),
		LZMA_OK);
	return n;
}

static size_t pack(uint8_t *out, enum bc_packing packing, const uint8_t *in, size_t bytes)
{
	if (packing == BC_PACKING_GZIP)
		return pack_gzip(out, in, bytes);
	if (packing == BC_PACKING_XZ)
		return pack_xz(out, in, bytes);
	size_t n = packing == BC_PACKING_LZ4 ? LZ4F_compressFrame(out, ROOM, in, bytes, NULL)
					     : ZSTD_compress(out, ROOM, in, bytes, 3);
	assert_true(n < ROOM);
	return n;
}

static void set_up(struct fixture *f)
{
	struct dice dice = {.state = 7};

	for (size_t i = 0; i < PLAIN; i++)
		f->plain[i] = i % 3 != 0 ? (uint8_t)(i / 100) : (uint8_t)dice_roll(&dice);
	for (size_t i = 0; i < PACKINGS; i++)
		f->bytes[i] = pack(f->packed[i], packings[i], f->plain, PLAIN);
}

TEST_FIXTURE(fixture, set_up, NOTHING)

struct result {
	size_t given; /* bytes returned, which matched `plain` */
	bool is_damaged;
	bool may_end;
};

/* Decompresses pieces of `piece` bytes into `room` bytes, and compares the output. */
static struct result unpack(enum bc_packing packing, const uint8_t *packed, size_t bytes,
	size_t piece, size_t room, const uint8_t *plain, size_t plain_bytes)
{
	struct bc_unpacker *u = bc_unpack_open(packing, BC_WINDOW_LOG);
	struct result result = {0};
	uint8_t *out = malloc(room);
	size_t at = 0;

	assert_non_null(u);
	assert_non_null(out);
	while (!result.is_damaged) {
		size_t n = bytes - at < piece ? bytes - at : piece;
		size_t consumed;
		ssize_t got = bc_unpack(u, out, room, packed + at, n, &consumed);
		assert_true(consumed <= n && got <= (ssize_t)room);
		at += consumed;
		result.is_damaged = got < 0;
		if (got < 0) {
			assert_int_equal(got, -EBADMSG);
			continue;
		}
		assert_true(result.given + (size_t)got <= plain_bytes);
		assert_memory_equal(out, plain + result.given, (size_t)got);
		result.given += (size_t)got;
		if (got == 0 && consumed == 0 && (n == 0 || at == bytes))
			break;
	}
	result.may_end = bc_unpack_may_end(u);
	bc_unpack_close(u);
	free(out);
	return result;
}

TEST_F(data_is_restored_for_any_piece_sizes)
{
	static const size_t pieces[] = {1, 3, 4096, 65536, ROOM};
	static const size_t rooms[] = {7, 4096, 1u << 20};

	for (size_t i = 0; i < PACKINGS; i++)
		for (size_t p = 0; p < COUNT_OF(pieces); p++)
			for (size_t r = 0; r < COUNT_OF(rooms); r++) {
				struct result result = unpack(packings[i], f->packed[i],
					f->bytes[i], pieces[p], rooms[r], f->plain, PLAIN);
				assert_int_equal(result.given, PLAIN);
				assert_true(result.may_end && !result.is_damaged);
			}
}

TEST_F(consecutive_frames_are_one_trace)
{
	uint8_t *twice = malloc(2 * ROOM);
	uint8_t *plain = malloc(2 * PLAIN);

	assert_non_null(twice);
	assert_non_null(plain);
	memcpy(plain, f->plain, PLAIN);
	memcpy(plain + PLAIN, f->plain, PLAIN);
	for (size_t i = 0; i < PACKINGS; i++) {
		memcpy(twice, f->packed[i], f->bytes[i]);
		memcpy(twice + f->bytes[i], f->packed[i], f->bytes[i]);
		struct result result = unpack(
			packings[i], twice, 2 * f->bytes[i], 1000, 1000, plain, 2 * PLAIN);
		assert_int_equal(result.given, 2 * PLAIN);
		assert_true(result.may_end);
	}
	free(twice);
	free(plain);
}

TEST_F(zeros_after_gzip_are_skipped_and_other_bytes_are_damage)
{
	uint8_t *packed = calloc(1, ROOM);

	assert_non_null(packed);
	memcpy(packed, f->packed[1], f->bytes[1]);
	struct result result = unpack(
		BC_PACKING_GZIP, packed, f->bytes[1] + 600, 512, 4096, f->plain, PLAIN);
	assert_int_equal(result.given, PLAIN);
	assert_true(result.may_end && !result.is_damaged);
	packed[f->bytes[1] + 300] = 'x';
	result = unpack(BC_PACKING_GZIP, packed, f->bytes[1] + 600, 512, 4096, f->plain, PLAIN);
	assert_int_equal(result.given, PLAIN);
	assert_true(result.is_damaged);
	free(packed);
}

TEST_F(zeros_may_be_between_and_after_streams_of_xz)
{
	uint8_t *packed = calloc(2, ROOM);
	uint8_t *plain = malloc(2 * PLAIN);
	size_t bytes = f->bytes[3];

	assert_non_null(packed);
	assert_non_null(plain);
	memcpy(plain, f->plain, PLAIN);
	memcpy(plain + PLAIN, f->plain, PLAIN);
	memcpy(packed, f->packed[3], bytes);
	memcpy(packed + bytes + 8, f->packed[3], bytes);
	for (size_t piece = 1; piece < 2 * ROOM; piece *= 100) {
		struct result result = unpack(
			BC_PACKING_XZ, packed, 2 * bytes + 12, piece, 4096, plain, 2 * PLAIN);
		assert_int_equal(result.given, 2 * PLAIN);
		assert_true(result.may_end && !result.is_damaged);
	}
	packed[bytes + 4] = 'x';
	struct result result = unpack(
		BC_PACKING_XZ, packed, 2 * bytes + 12, 512, 4096, plain, 2 * PLAIN);
	assert_int_equal(result.given, PLAIN);
	assert_true(result.is_damaged);
	free(packed);
	free(plain);
}

/* The index and the footer. */
TEST_F(a_wrong_byte_at_the_end_of_xz_is_damage)
{
	uint8_t *packed = malloc(ROOM);

	assert_non_null(packed);
	size_t bytes = pack(packed, BC_PACKING_XZ, f->plain, 300);
	for (size_t at = bytes - 24; at < bytes; at++) {
		packed[at] ^= 0x10;
		struct result result = unpack(
			BC_PACKING_XZ, packed, bytes, bytes, 4096, f->plain, 300);
		assert_true(result.is_damaged || !result.may_end);
		packed[at] ^= 0x10;
	}
	free(packed);
}

TEST_F(a_dictionary_of_xz_may_be_too_large)
{
	uint8_t *packed = malloc(ROOM);
	uint8_t out[1000];

	assert_non_null(packed);
	for (uint32_t level = 6; level <= 9; level += 3) { /* 8 and 64 MiB */
		size_t bytes = 0;
		assert_int_equal(lzma_easy_buffer_encode(level, LZMA_CHECK_CRC32, NULL, f->plain,
					 sizeof(out), packed, &bytes, ROOM),
			LZMA_OK);
		for (unsigned log = 22; log <= BC_WINDOW_LOG; log++) {
			struct bc_unpacker *u = bc_unpack_open(BC_PACKING_XZ, log);
			size_t consumed;
			assert_non_null(u);
			ssize_t n = bc_unpack(u, out, sizeof(out), packed, bytes, &consumed);
			assert_int_equal(
				n, log < (level == 6 ? 23 : 26) ? -ENOBUFS : (ssize_t)sizeof(out));
			bc_unpack_close(u);
		}
	}
	free(packed);
}

/* Every prefix of a short file, and some of a long one. */
TEST_F(a_torn_file_gives_its_data_and_may_not_end)
{
	uint8_t *packed = malloc(ROOM);

	assert_non_null(packed);
	for (size_t i = 0; i < PACKINGS; i++) {
		size_t bytes = pack(packed, packings[i], f->plain, 300);
		for (size_t n = 1; n < bytes; n++) {
			struct result result = unpack(
				packings[i], packed, n, n, 4096, f->plain, 300);
			assert_false(result.may_end);
		}
		for (size_t n = f->bytes[i] / 2; n < f->bytes[i]; n += f->bytes[i] / 5) {
			struct result result = unpack(
				packings[i], f->packed[i], n, n, 4096, f->plain, PLAIN);
			assert_true(result.given > 0 && result.given < PLAIN);
			assert_false(result.may_end);
		}
	}
	free(packed);
}

/* The checksum and the length at the end of a gzip member, all of which fits in one call. */
TEST_F(a_wrong_end_of_a_short_gzip_file_is_damage)
{
	uint8_t *packed = malloc(ROOM);

	assert_non_null(packed);
	size_t bytes = pack(packed, BC_PACKING_GZIP, f->plain, 300);
	for (size_t bit = 8 * (bytes - 8); bit < 8 * bytes; bit++) {
		packed[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_true(unpack(BC_PACKING_GZIP, packed, bytes, bytes, 4096, f->plain, 300)
				    .is_damaged);
		packed[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	memset(packed + bytes - 8, 0, 8);
	assert_true(unpack(BC_PACKING_GZIP, packed, bytes, bytes, 4096, f->plain, 300).is_damaged);
	free(packed);
}

TEST_F(each_format_is_detected_by_its_magic)
{
	for (size_t i = 0; i < PACKINGS; i++) {
		assert_int_equal(bc_packing_of(f->packed[i], f->bytes[i]), packings[i]);
		assert_int_equal(bc_packing_of(f->packed[i], 2), BC_PACKING_NONE);
	}
	assert_int_equal(bc_packing_of(f->plain, PLAIN), BC_PACKING_NONE);
	assert_int_equal(bc_packing_of(NULL, 0), BC_PACKING_NONE);
	assert_true(bc_packing_is_certain(f->plain, 4));
	assert_false(bc_packing_is_certain(f->plain, 3));
}

/* As pzstd writes them. */
TEST_F(skippable_frames_may_precede_any_frame)
{
	static const uint8_t skippable[12] = {0x50, 0x2A, 0x4D, 0x18, 4};
	static const size_t framed[] = {0, 2};
	uint8_t *packed = malloc(2 * sizeof(skippable) + ROOM);

	assert_non_null(packed);
	memcpy(packed, skippable, sizeof(skippable));
	memcpy(packed + sizeof(skippable), skippable, sizeof(skippable));
	for (size_t i = 0; i < COUNT_OF(framed); i++) {
		enum bc_packing packing = packings[framed[i]];
		size_t bytes = 2 * sizeof(skippable) + f->bytes[framed[i]];
		memcpy(packed + 2 * sizeof(skippable), f->packed[framed[i]], f->bytes[framed[i]]);
		for (size_t n = 0; n < 40; n++) {
			bool is_certain = n >= 2 * sizeof(skippable) + 4;
			assert_int_equal(bc_packing_is_certain(packed, n), is_certain);
			assert_int_equal(bc_packing_of(packed, n), is_certain ? packing
								   : n < 4    ? BC_PACKING_NONE
									      : BC_PACKING_LZ4);
		}
		struct result result = unpack(packing, packed, bytes, 5, 4096, f->plain, PLAIN);
		assert_int_equal(result.given, PLAIN);
		assert_true(result.may_end && !result.is_damaged);
	}
	free(packed);
}

TEST_F(a_window_of_zstd_may_be_too_large)
{
	uint8_t *packed = malloc(ROOM);
	ZSTD_CCtx *c = ZSTD_createCCtx();
	ZSTD_inBuffer from = {.src = f->plain, .size = 1000};
	ZSTD_outBuffer to = {.dst = packed, .size = ROOM};
	uint8_t out[1000];

	assert_non_null(packed);
	assert_non_null(c);
	ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, 21);
	/* In two steps, because a length that is known limits the window. */
	assert_false(ZSTD_isError(ZSTD_compressStream2(c, &to, &from, ZSTD_e_continue)));
	assert_int_equal(ZSTD_compressStream2(c, &to, &from, ZSTD_e_end), 0);
	for (unsigned log = 20; log <= 21; log++) {
		struct bc_unpacker *u = bc_unpack_open(BC_PACKING_ZSTD, log);
		size_t done = 0;
		ssize_t n = 0;
		assert_non_null(u);
		while (n == 0 && done < to.pos) {
			size_t consumed;
			n = bc_unpack(u, out, sizeof(out), packed + done, to.pos - done, &consumed);
			done += consumed;
		}
		assert_int_equal(n, log < 21 ? -ENOBUFS : (ssize_t)sizeof(out));
		bc_unpack_close(u);
	}
	ZSTD_freeCCtx(c);
	free(packed);
}

/* Decompresses everything into `out`. Returns the number of bytes, or a negative errno. */
static ssize_t unpack_all(struct fixture *f, size_t i, uint8_t *out)
{
	struct bc_unpacker *u = bc_unpack_open(packings[i], BC_WINDOW_LOG);
	size_t in_done = 0;
	size_t out_done = 0;
	ssize_t n = u != NULL ? 1 : -ENOMEM;

	while (n > 0 || (n == 0 && in_done < f->bytes[i])) {
		size_t consumed;
		n = bc_unpack(u, out + out_done, ROOM - out_done, f->packed[i] + in_done,
			f->bytes[i] - in_done, &consumed);
		in_done += consumed;
		out_done += n > 0 ? (size_t)n : 0;
	}
	bc_unpack_close(u);
	return n < 0 ? n : (ssize_t)out_done;
}

TEST_F(an_allocation_that_fails_is_not_reported_as_damage)
{
	uint8_t *out = malloc(ROOM);

	assert_non_null(out);
	for (size_t i = 0; i < PACKINGS; i++) {
		long failed = 0;
		ssize_t got;
		do {
			failing_heap_start(failed++, false);
			got = unpack_all(f, i, out);
			failing_heap_stop();
			assert_int_equal(heap.live, 0);
			if (got >= 0) {
				assert_int_equal(got, PLAIN);
				assert_memory_equal(out, f->plain, PLAIN);
			} else {
				assert_int_equal(got, -ENOMEM);
			}
		} while (heap.has_failed);
		assert_true(failed > 2); /* at least the unpacker and its library's state */
	}
	free(out);
}
