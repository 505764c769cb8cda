/* Decompression of four formats behind one function, and the names of formats that can't be read.
 *
 * bc_unpack() must return all output before damage. LZ4 and zstd report damage instead of what they
 * decoded before it in the same call, so they get one block at a time, which they ask for; zlib and
 * liblzma return the output, and the error with the next call. `is_between`: the data may end. */
#include "formats/codec/unpack.h"

#include <errno.h>
#include <lz4.h>
#include <lz4frame.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "formats/base/bytes.h"
#include "formats/base/compression.h"
#include "formats/segment/segment.h"

/* Length of the size field before each block of an LZ4 frame. */
#define LENGTH_BYTES 4u

#define MAGIC_XZ 0x587A37FDu

/* Of the frames that decoders of LZ4 and of zstd skip; the last four bits may have any value. */
#define MAGIC_SKIPPABLE      0x184D2A50u
#define SKIPPABLE_HEAD_BYTES 8u

/* Bytes that the zstd decoder needs first. */
#define FRAME_HEADER_MIN 5u

struct bc_unpacker {
	enum bc_packing packing;
	bool is_between; /* between two frames or members */
	bool is_padded;  /* gzip: in the zeros after the last member */
	size_t hint;     /* LZ4, zstd: number of bytes that the decoder asks for */
	LZ4F_dctx *lz4;
	ZSTD_DStream *zstd;
	z_stream gzip;
	lzma_stream xz;
	uint64_t xz_memory; /* that its decoder may use */
	int xz_error;       /* found in the call that returned what came before */
};

/* What the decoder of xz needs besides the dictionary. */
#define XZ_STATE_BYTES (1u << 20)

const char *bc_packing_name(enum bc_packing packing)
{
	static const char *const names[] = {"", "LZ4", "gzip", "zstd", "xz"};

	return names[packing];
}

/* Returns the length of the skippable frames at the start, of which the last one may be cut off. */
static size_t count_skippable(const uint8_t *head, size_t bytes)
{
	size_t at = 0;

	while (bytes - at >= 4 && (bc_le32(head + at) & ~15u) == MAGIC_SKIPPABLE) {
		if (bytes - at < SKIPPABLE_HEAD_BYTES)
			return bytes;
		uint64_t n = SKIPPABLE_HEAD_BYTES + (uint64_t)bc_le32(head + at + 4);
		at = n < bytes - at ? at + (size_t)n : bytes;
	}
	return at;
}

enum bc_packing bc_packing_of(const uint8_t *head, size_t bytes)
{
	size_t skipped = count_skippable(head, bytes);
	uint32_t magic = bytes - skipped >= 4 ? bc_le32(head + skipped) : 0;

	if (magic == bc_frames_info[BC_FRAMES_ZSTD].magic)
		return BC_PACKING_ZSTD;
	if (magic == MAGIC_XZ && skipped == 0)
		return BC_PACKING_XZ;
	if (skipped != 0 || magic == bc_frames_info[BC_FRAMES_LZ4].magic)
		return BC_PACKING_LZ4;
	if (bytes >= 3 && head[0] == 0x1F && head[1] == 0x8B && head[2] == 8)
		return BC_PACKING_GZIP;
	return BC_PACKING_NONE;
}

bool bc_packing_is_certain(const uint8_t *head, size_t bytes)
{
	size_t skipped = count_skippable(head, bytes);

	return bytes >= 4 && (skipped == 0 || bytes - skipped >= 4);
}

void bc_unpack_too_large(char *err, size_t errlen, enum bc_packing packing, unsigned window_log)
{
	snprintf(err, errlen, "its %s of more than %u MiB; decompress it first",
		packing == BC_PACKING_XZ ? "xz streams need a dictionary"
					 : "zstd frames need a window",
		(1u << window_log) >> 20);
}

static bool open_zstd(struct bc_unpacker *u, unsigned window_log)
{
	u->zstd = ZSTD_createDStream();
	if (u->zstd == NULL)
		return false;
	u->hint = ZSTD_initDStream(u->zstd);
	return !ZSTD_isError(ZSTD_DCtx_setParameter(u->zstd, ZSTD_d_windowLogMax, (int)window_log));
}

struct bc_unpacker *bc_unpack_open(enum bc_packing packing, unsigned window_log)
{
	struct bc_unpacker *u = calloc(1, sizeof(*u));
	bool ok = false;

	if (u == NULL)
		return NULL;
	u->packing = packing;
	u->is_between = true;
	switch (packing) {
	case BC_PACKING_LZ4:
		ok = !LZ4F_isError(LZ4F_createDecompressionContext(&u->lz4, LZ4F_VERSION));
		break;
	case BC_PACKING_GZIP:
		/* 16: expect a gzip header and nothing else. */
		ok = inflateInit2(&u->gzip, 16 + MAX_WBITS) == Z_OK;
		break;
	case BC_PACKING_ZSTD:
		ok = open_zstd(u, window_log);
		break;
	case BC_PACKING_XZ:
		u->xz_memory = (UINT64_C(1) << window_log) + XZ_STATE_BYTES;
		ok = lzma_stream_decoder(&u->xz, u->xz_memory, 0) == LZMA_OK;
		break;
	case BC_PACKING_NONE:
		break;
	}
	if (ok)
		return u;
	bc_unpack_close(u);
	return NULL;
}

void bc_unpack_close(struct bc_unpacker *u)
{
	if (u == NULL)
		return;
	LZ4F_freeDecompressionContext(u->lz4);
	ZSTD_freeDStream(u->zstd);
	(void)inflateEnd(&u->gzip); /* nothing, if it was not started */
	lzma_end(&u->xz);
	free(u);
}

bool bc_unpack_may_end(const struct bc_unpacker *u)
{
	return u->is_between;
}

/* A call that finds damage does not report what it decoded before. So each call gets only one unit:
 * a block without the size field of the next one, which the decoder asks for along with it. */
static ssize_t unpack_lz4(struct bc_unpacker *u, uint8_t *out, size_t capacity, const uint8_t *in,
	size_t bytes, size_t *consumed)
{
	size_t request = u->hint > LENGTH_BYTES ? u->hint - LENGTH_BYTES : LENGTH_BYTES;
	size_t out_now = capacity;

	*consumed = bytes < request ? bytes : request;
	size_t given = *consumed;
	u->hint = LZ4F_decompress(u->lz4, out, &out_now, in, consumed, NULL);
	if (LZ4F_isError(u->hint))
		return bc_lz4_error(u->hint);
	if (given != 0)
		u->is_between = u->hint == 0;
	return (ssize_t)out_now;
}

static int zstd_error(size_t rc)
{
	switch (ZSTD_getErrorCode(rc)) {
	case ZSTD_error_memory_allocation:
		return -ENOMEM;
	case ZSTD_error_frameParameter_windowTooLarge:
		return -ENOBUFS;
	default:
		return -EBADMSG;
	}
}

/* What the decoder requests also ends with a block. */
static ssize_t unpack_zstd(struct bc_unpacker *u, uint8_t *out, size_t capacity, const uint8_t *in,
	size_t bytes, size_t *consumed)
{
	size_t request = u->hint != 0 ? u->hint : FRAME_HEADER_MIN;
	ZSTD_inBuffer from = {.src = in, .size = bytes < request ? bytes : request};
	ZSTD_outBuffer to = {.dst = out, .size = capacity};

	size_t rc = ZSTD_decompressStream(u->zstd, &to, &from);
	if (ZSTD_isError(rc))
		return zstd_error(rc);
	*consumed = from.pos;
	if (from.size != 0 || to.pos != 0)
		u->is_between = rc == 0;
	u->hint = rc;
	return (ssize_t)to.pos;
}

/* Zeros may follow the last member, as tapes and some tools leave them. */
static ssize_t skip_padding(const uint8_t *in, size_t bytes, size_t *consumed)
{
	for (size_t i = 0; i < bytes; i++)
		if (in[i] != 0)
			return -EBADMSG;
	*consumed = bytes;
	return 0;
}

static ssize_t unpack_gzip(struct bc_unpacker *u, uint8_t *out, size_t capacity, const uint8_t *in,
	size_t bytes, size_t *consumed)
{
	z_stream *z = &u->gzip;

	if (u->is_between && bytes != 0 && z->total_in != 0) {
		if (in[0] == 0)
			u->is_padded = true;
		else if (inflateReset(z) != Z_OK)
			return -EBADMSG;
	}
	if (u->is_padded)
		return skip_padding(in, bytes, consumed);
	if (u->is_between && bytes == 0)
		return 0;
	/* zlib counts in 32 bits, and its input is not const. */
	size_t most = 1u << 30;
	z->next_in = (uint8_t *)(uintptr_t)in;
	z->avail_in = (uInt)(bytes < most ? bytes : most);
	z->next_out = out;
	z->avail_out = (uInt)(capacity < most ? capacity : most);
	size_t in_room = z->avail_in;
	size_t out_room = z->avail_out;
	int rc = inflate(z, Z_NO_FLUSH);
	*consumed = in_room - z->avail_in;
	ssize_t n = (ssize_t)(out_room - z->avail_out);
	u->is_between = rc == Z_STREAM_END;
	if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR) {
		if (n > 0)
			return n; /* the next call fails again */
		return rc == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
	}
	return n;
}

static int xz_error(lzma_ret rc)
{
	switch (rc) {
	case LZMA_OK:
	case LZMA_STREAM_END:
	case LZMA_BUF_ERROR: /* no input, or no room for output */
		return 0;
	case LZMA_MEM_ERROR:
		return -ENOMEM;
	case LZMA_MEMLIMIT_ERROR:
		return -ENOBUFS;
	default:
		return -EBADMSG;
	}
}

/* Zeros may be between two streams and after the last. */
static ssize_t unpack_xz(struct bc_unpacker *u, uint8_t *out, size_t capacity, const uint8_t *in,
	size_t bytes, size_t *consumed)
{
	lzma_stream *x = &u->xz;

	if (u->xz_error != 0)
		return u->xz_error;
	if (u->is_between && x->total_in != 0) {
		while (*consumed < bytes && in[*consumed] == 0)
			++*consumed;
		if (*consumed != 0 || bytes == 0)
			return 0;
		u->xz_error = xz_error(lzma_stream_decoder(x, u->xz_memory, 0));
		if (u->xz_error != 0)
			return u->xz_error;
	}
	x->next_in = in;
	x->avail_in = bytes;
	x->next_out = out;
	x->avail_out = capacity;
	lzma_ret rc = lzma_code(x, LZMA_RUN);
	*consumed = bytes - x->avail_in;
	ssize_t n = (ssize_t)(capacity - x->avail_out);
	if (x->total_in != 0)
		u->is_between = rc == LZMA_STREAM_END;
	u->xz_error = xz_error(rc);
	return n == 0 ? u->xz_error : n;
}

ssize_t bc_unpack(struct bc_unpacker *u, uint8_t *out, size_t capacity, const uint8_t *in,
	size_t bytes, size_t *consumed)
{
	*consumed = 0;
	switch (u->packing) {
	case BC_PACKING_LZ4:
		return unpack_lz4(u, out, capacity, in, bytes, consumed);
	case BC_PACKING_ZSTD:
		return unpack_zstd(u, out, capacity, in, bytes, consumed);
	case BC_PACKING_GZIP:
		return unpack_gzip(u, out, capacity, in, bytes, consumed);
	case BC_PACKING_XZ:
		return unpack_xz(u, out, capacity, in, bytes, consumed);
	case BC_PACKING_NONE:
		break;
	}
	return -EBADMSG;
}

/* Decodes the start of an LZ4 block that is longer than the bytes available (the lz4 program's
 * blocks have up to 4 MiB). */
static size_t decode_block_head(uint8_t *out, size_t capacity, const uint8_t *frame, size_t bytes)
{
	size_t header = bytes >= LZ4F_MIN_SIZE_TO_KNOW_HEADER_LENGTH ? LZ4F_headerSize(frame, bytes)
								     : LZ4F_HEADER_SIZE_MAX;

	if (LZ4F_isError(header) || bytes < header + 4)
		return 0;
	uint32_t size = bc_le32(frame + header) & 0x7FFFFFFF;
	if (size > 1u << (8 + 2 * (frame[5] >> 4 & 7))) /* the frame's limit: damaged */
		return 0;
	bool is_stored = size != bc_le32(frame + header);
	const uint8_t *block = frame + header + 4;
	size_t n = bytes - header - 4;
	n = n < size ? n : size;
	if (is_stored) {
		n = n < capacity ? n : capacity;
		memcpy(out, block, n);
		return n;
	}
	/* A block grows by at most a 255th, so its first n bytes decode to at least n / 2. */
	int target = (int)(n / 2 < capacity ? n / 2 : capacity);
	int got = LZ4_decompress_safe_partial(
		(const char *)block, (char *)out, (int)n, target, (int)capacity);
	return got > 0 ? (size_t)got : 0;
}

ssize_t bc_unpack_head(uint8_t *out, size_t capacity, enum bc_packing packing, const uint8_t *head,
	size_t bytes, unsigned window_log)
{
	struct bc_unpacker *unpacker = bc_unpack_open(packing, window_log);
	ssize_t n = unpacker != NULL ? 0 : -ENOMEM;
	size_t in_done = 0;
	size_t out_done = 0;

	while (n >= 0 && out_done < capacity) {
		size_t consumed;
		n = bc_unpack(unpacker, out + out_done, capacity - out_done, head + in_done,
			bytes - in_done, &consumed);
		in_done += consumed;
		out_done += n > 0 ? (size_t)n : 0;
		if (n == 0 && consumed == 0)
			break;
	}
	bc_unpack_close(unpacker);
	if (n < 0 && n != -EBADMSG)
		return n;
	if (out_done == 0 && packing == BC_PACKING_LZ4)
		out_done = decode_block_head(out, capacity, head, bytes);
	return (ssize_t)out_done;
}

/* ---- files that can't be read */

/* What a file is, and the command that prints what is in it. */
struct foreign {
	const char *name;
	const char *is;   /* a phrase with the name */
	const char *verb; /* what the command does to it */
	const char *command;
};

#define PACKED(name, command)                                                  \
	{                                                                      \
		(name), "compressed with " name, "decompress", command " FILE" \
	}
#define ARCHIVE(name, command)                                           \
	{                                                                \
		(name), "a " name " archive", "extract", command " FILE" \
	}

/* The supported compressions. One inside another is reported as foreign. */
static const struct foreign packings[] = {
	[BC_PACKING_LZ4] = PACKED("LZ4", "lz4 -dc"),
	[BC_PACKING_GZIP] = PACKED("gzip", "gzip -dc"),
	[BC_PACKING_ZSTD] = PACKED("zstd", "zstd -dc"),
	[BC_PACKING_XZ] = PACKED("xz", "xz -dc"),
};

static const struct {
	size_t offset;
	size_t length;
	char magic[8];
	struct foreign foreign;
} magics[] = {
	{0, 2, "\x1F\x9D", PACKED("compress (.Z)", "gzip -dc")},
	{0, 2, "\x1F\xA0", PACKED("compress -H (.z)", "gzip -dc")},
	{0, 2, "\x1F\x1E", PACKED("pack (.z)", "gzip -dc")},
	{0, 3, "BZh", PACKED("bzip2", "bzip2 -dc")},
	{0, 5, "LZIP\x01", PACKED("lzip", "lzip -dc")},
	{0, 8, "\x89LZO\0\r\n\x1A", PACKED("lzop", "lzop -dc")},
	{0, 4, "\x02!L\x18", PACKED("an old LZ4", "lz4 -dc")},
	{0, 6, "7z\xBC\xAF'\x1C", ARCHIVE("7z", "7z x -so")},
	{0, 6, "Rar!\x1A\x07", ARCHIVE("rar", "unrar p -inul")},
	{257, 5, "ustar", ARCHIVE("tar", "tar -xOf")},
};

static const struct foreign zlib = PACKED("zlib", "pigz -dc <");
static const struct foreign lzma = PACKED("lzma", "xz -dc");
static const struct foreign old_mac = {"text whose lines end in CR", "text whose lines end in CR",
	"convert", "tr '\\r' '\\n' <FILE"};

/* Texts with a character in one byte of several and zeros in the others. */
static const struct {
	size_t width;
	size_t at;
	struct foreign foreign;
} wide[] = {
	{2, 0, {"UTF-16 text", "UTF-16 text", "convert", "iconv -f UTF-16LE -t UTF-8 FILE"}},
	{2, 1, {"UTF-16 text", "UTF-16 text", "convert", "iconv -f UTF-16BE -t UTF-8 FILE"}},
	{4, 0, {"UTF-32 text", "UTF-32 text", "convert", "iconv -f UTF-32LE -t UTF-8 FILE"}},
	{4, 3, {"UTF-32 text", "UTF-32 text", "convert", "iconv -f UTF-32BE -t UTF-8 FILE"}},
};

/* The header of zlib is two bytes: deflate with a window of up to 32 KiB, and five check bits. */
static bool is_zlib(const uint8_t *head, size_t bytes)
{
	return bytes >= 8 && (head[0] & 0x0F) == 8 && head[0] >> 4 <= 7 && (head[1] & 0x20) == 0 &&
	       (head[0] << 8 | head[1]) % 31 == 0;
}

/* The usual properties, a dictionary of whole 64 KiB, a length that is unknown or below 2^40. */
static bool is_lzma(const uint8_t *head, size_t bytes)
{
	if (bytes < 14 || head[0] != 0x5D || head[1] != 0 || head[2] != 0 || head[13] != 0)
		return false;
	bool is_unknown = memcmp(head + 5, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 8) == 0;
	return is_unknown || (head[10] | head[11] | head[12]) == 0;
}

static bool is_ascii(uint8_t byte)
{
	return (byte >= ' ' && byte <= '~') || byte == '\t' || byte == '\n' || byte == '\r';
}

/* True if nearly all units of `width` bytes are an ASCII character at offset `at` and zeros. */
static bool is_wide(const uint8_t *head, size_t bytes, size_t width, size_t at)
{
	size_t units = bytes / width < 2048 ? bytes / width : 2048;
	size_t good = 0;

	for (size_t i = 0; i < units; i++) {
		const uint8_t *unit = head + i * width;
		bool is_good = is_ascii(unit[at]);
		for (size_t other = 0; other < width; other++)
			is_good &= other == at || unit[other] == 0;
		good += is_good;
	}
	return units >= 4 && good * 8 >= units * 7;
}

/* True if the text starts with a byte order mark and has no zero character. */
static bool has_wide_mark(const uint8_t *head, size_t bytes, size_t at)
{
	if (bytes < 4 || head[at] != 0xFF || head[1 - at] != 0xFE)
		return false;
	for (size_t i = 2; i + 1 < bytes; i += 2)
		if (head[i] == 0 && head[i + 1] == 0)
			return false;
	return true;
}

/* True if all lines end in a carriage return alone, as before Mac OS X. */
static bool has_only_returns(const uint8_t *head, size_t bytes)
{
	const uint8_t *first = memchr(head, '\r', bytes);

	return first != NULL && first != head + bytes - 1 && memchr(head, '\n', bytes) == NULL;
}

/* True if one of the first 512 bytes is not ASCII text. */
static bool has_binary(const uint8_t *head, size_t bytes)
{
	for (size_t i = 0; i < bytes && i < 512; i++)
		if (!is_ascii(head[i]))
			return true;
	return false;
}

static const struct foreign *find_magic(const uint8_t *head, size_t bytes, size_t least)
{
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++) {
		size_t end = magics[i].offset + magics[i].length;
		if (bytes >= end && magics[i].length >= least &&
			memcmp(head + magics[i].offset, magics[i].magic, magics[i].length) == 0)
			return &magics[i].foreign;
	}
	return NULL;
}

/* What each file in a zip archive begins with; its name follows after 30 bytes. */
#define ZIP "PK\x03\x04"

/* True if the name of one of the first files begins with `name`. */
static bool has_member(const uint8_t *head, size_t bytes, const char *name)
{
	size_t n = strlen(name);

	for (size_t at = 0; at + 30 + n <= bytes; at++)
		if (memcmp(head + at, ZIP, 4) == 0 && memcmp(head + at + 30, name, n) == 0)
			return true;
	return false;
}

static const struct foreign *find_zip(const uint8_t *head, size_t bytes)
{
	static const struct foreign zip = ARCHIVE("zip", "unzip -p");
	static const struct foreign sigrok = {"a sigrok session",
		"a sigrok session: signals, no accesses", "decode",
		"sigrok-cli -i FILE -P DECODER, and write its accesses as xdin"};
	static const struct foreign drmemtrace = {"drmemtrace", "a zip archive of drmemtrace",
		"print",
		"drrun -t drmemtrace -tool view -infile FILE, and write its accesses as xdin"};

	if (has_member(head, bytes, "version") && has_member(head, bytes, "metadata"))
		return &sigrok;
	return has_member(head, bytes, "chunk.0") ? &drmemtrace : &zip;
}

static const struct foreign *find_foreign(const uint8_t *head, size_t bytes, bool may_be_records)
{
	if (!has_binary(head, bytes))
		return has_only_returns(head, bytes) ? &old_mac : NULL;
	if (bytes >= 4 && memcmp(head, ZIP, 4) == 0)
		return find_zip(head, bytes);
	const struct foreign *found = find_magic(head, bytes, may_be_records ? 4 : 2);
	if (found != NULL || may_be_records)
		return found;
	for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++)
		if (is_wide(head, bytes, wide[i].width, wide[i].at) ||
			(wide[i].width == 2 && has_wide_mark(head, bytes, wide[i].at)))
			return &wide[i].foreign;
	return is_lzma(head, bytes) ? &lzma : is_zlib(head, bytes) ? &zlib : NULL;
}

bool bc_is_elf(const uint8_t *head, size_t bytes)
{
	return bytes >= 4 && memcmp(head, "\177ELF", 4) == 0;
}

bool bc_describe_foreign(char *err, size_t errlen, enum bc_packing packing, const uint8_t *head,
	size_t bytes, bool may_be_records)
{
	enum bc_packing inner = bc_packing_of(head, bytes);
	const struct foreign *foreign = inner != BC_PACKING_NONE
						? &packings[inner]
						: find_foreign(head, bytes, may_be_records);

	if (foreign == NULL)
		return false;
	if (packing != BC_PACKING_NONE)
		snprintf(err, errlen, "%s within %s; decompress it first: %s", foreign->name,
			bc_packing_name(packing), packings[packing].command);
	else
		snprintf(err, errlen, "%s; %s it first: %s", foreign->is, foreign->verb,
			foreign->command);
	return true;
}
