/* Encodes and decodes the structures of a segment: frames, chunks with their events, index rows,
 * trailer. Everything here works on bytes in memory; nothing reads or writes files.
 *
 * Offsets are listed in the order of docs/segment-format.md. A decoder checks cheap fields
 * before it computes a checksum, because a search after damage tries it at many places, and it
 * never trusts a length before it has compared it with the limits. An index row is a copy of the
 * fixed part of a chunk header, so one function reads both. */
#include "formats/segment/segment.h"

#include <errno.h>
#include <lz4.h>
#include <lz4frame.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zstd.h>

#include "formats/base/bytes.h"
#include "formats/base/hash.h"
#include "formats/segment/record_encoder.h"

enum {
	FLG_VERSION_1 = 0x40,
	FLG_INDEPENDENT = 0x20,
	FLG_CONTENT_SIZE = 0x08,
	BD_1_MIB = 6 << 4,
};

#define BLOCK_STORED 0x80000000u
#define BLOCK_MAX    (1u << 20)

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

static size_t write_lz4_frame(uint8_t *out, const uint8_t *data, size_t bytes, enum bc_level level)
{
	uint8_t *p = out;

	bc_write_le32(p, bc_frames_info[BC_FRAMES_LZ4].magic);
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

/* ---- zstd frames */

/* Of the frame header: the content size has four bytes, and no window is needed. */
#define ZSTD_CONTENT_SIZE_4 0xA0

#define ZSTD_RAW_BLOCK_MAX (1u << 17)

/* Writes a zstd frame that is not compressed. */
static size_t store_zstd_frame(uint8_t *out, const uint8_t *data, size_t bytes)
{
	uint8_t *p = out;

	bc_write_le32(p, bc_frames_info[BC_FRAMES_ZSTD].magic);
	p[4] = ZSTD_CONTENT_SIZE_4;
	bc_write_le32(p + 5, (uint32_t)bytes);
	p += 9;
	for (;;) {
		size_t n = bytes < ZSTD_RAW_BLOCK_MAX ? bytes : ZSTD_RAW_BLOCK_MAX;
		bool is_last = n == bytes;
		bc_write_le16(p, (uint16_t)(n << 3 | is_last));
		p[2] = (uint8_t)(n >> 13);
		memcpy(p + 3, data, n);
		p += 3 + n;
		if (is_last)
			return (size_t)(p - out);
		data += n;
		bytes -= n;
	}
}

static size_t compress_zstd(
	const struct bc_compressor *c, uint8_t *out, const uint8_t *data, size_t bytes)
{
	int level = (int)(c->level - BC_LEVEL_ZSTD) + 1;
	size_t n = ZSTD_compressCCtx(c->zstd, out, bytes, data, bytes, level);

	return ZSTD_isError(n) ? 0 : n;
}

/* Compressing a whole chunk makes zstd allocate all that it needs. */
int bc_compressor_open(struct bc_compressor *c, enum bc_level level)
{
	*c = (struct bc_compressor){.level = level};
	if (bc_level_frames(level) != BC_FRAMES_ZSTD)
		return 0;
	uint8_t *zeros = calloc(2, BC_CHUNK_BYTES);
	c->zstd = ZSTD_createCCtx();
	bool ok = zeros != NULL && c->zstd != NULL &&
		  compress_zstd(c, zeros + BC_CHUNK_BYTES, zeros, BC_CHUNK_BYTES) != 0;
	free(zeros);
	return ok ? 0 : -ENOMEM;
}

void bc_compressor_close(struct bc_compressor *c)
{
	ZSTD_freeCCtx(c->zstd);
}

/* After many short chunks zstd gives memory back. If it then gets none, the chunk is stored. */
size_t bc_frame_write(
	uint8_t *out, const uint8_t *data, size_t bytes, const struct bc_compressor *c)
{
	if (bc_level_frames(c->level) == BC_FRAMES_LZ4)
		return write_lz4_frame(out, data, bytes, c->level);
	size_t n = c->zstd != NULL ? compress_zstd(c, out, data, bytes) : 0;
	return n != 0 ? n : store_zstd_frame(out, data, bytes);
}

/* Decodes exactly one frame. zstd allocates only the context, because it has the whole output. */
static int read_zstd_frame(uint8_t *out, size_t bytes, const uint8_t *frame, size_t frame_bytes)
{
	if (ZSTD_findFrameCompressedSize(frame, frame_bytes) != frame_bytes)
		return -EBADMSG;
	ZSTD_DCtx *context = ZSTD_createDCtx();
	if (context == NULL)
		return -ENOMEM;
	size_t n = ZSTD_decompressDCtx(context, out, bytes, frame, frame_bytes);
	ZSTD_freeDCtx(context);
	return n == bytes ? 0 : -EBADMSG;
}

/* ---- reading LZ4 frames, and any */

#define HEAD_BYTES 15
#define END_BYTES  4

#define NOT_OWN 1

/* Decodes a frame of the form that write_lz4_frame() gives it: at most one block. Faster than LZ4F,
 * which allocates buffers for each frame. Returns 0, -EBADMSG or NOT_OWN. */
static int read_own_frame(uint8_t *out, size_t bytes, const uint8_t *frame, size_t frame_bytes)
{
	if (frame_bytes < HEAD_BYTES + END_BYTES ||
		bc_le32(frame) != bc_frames_info[BC_FRAMES_LZ4].magic ||
		frame[4] != (FLG_VERSION_1 | FLG_INDEPENDENT | FLG_CONTENT_SIZE) ||
		frame[5] != BD_1_MIB || bc_le64(frame + 6) != bytes ||
		frame[14] != (uint8_t)(XXH32(frame + 4, 10, 0) >> 8))
		return NOT_OWN;
	uint32_t head = bc_le32(frame + HEAD_BYTES);
	if (bytes == 0)
		return head == 0 && frame_bytes == HEAD_BYTES + END_BYTES ? 0 : NOT_OWN;
	const uint8_t *block = frame + HEAD_BYTES + 4;
	size_t n = head & ~BLOCK_STORED;
	if (n != frame_bytes - HEAD_BYTES - 4 - END_BYTES || n > BLOCK_MAX || bytes > BLOCK_MAX ||
		bc_le32(block + n) != 0)
		return NOT_OWN;
	if ((head & BLOCK_STORED) == 0)
		return LZ4_decompress_safe((const char *)block, (char *)out, (int)n, (int)bytes) ==
				       (int)bytes
			       ? 0
			       : -EBADMSG;
	if (n != bytes)
		return -EBADMSG;
	memcpy(out, block, n);
	return 0;
}

int bc_lz4_error(size_t code)
{
	/* liblz4 publishes the names of its codes, not their numbers. */
	return strcmp(LZ4F_getErrorName(code), "ERROR_allocation_failed") == 0 ? -ENOMEM : -EBADMSG;
}

/* Decodes any LZ4 frame, in one call: it has the whole input, and room for the output. */
static int read_any_frame(uint8_t *out, size_t bytes, const uint8_t *frame, size_t frame_bytes)
{
	LZ4F_dctx *dctx = NULL;
	size_t in_done = frame_bytes;
	size_t out_done = bytes;

	if (LZ4F_isError(LZ4F_createDecompressionContext(&dctx, LZ4F_VERSION)))
		return -ENOMEM;
	size_t hint = LZ4F_decompress(dctx, out, &out_done, frame, &in_done, NULL);
	LZ4F_freeDecompressionContext(dctx);
	if (LZ4F_isError(hint))
		return bc_lz4_error(hint);
	return hint == 0 && in_done == frame_bytes && out_done == bytes ? 0 : -EBADMSG;
}

int bc_frame_read(uint8_t *out, size_t bytes, const uint8_t *frame, size_t frame_bytes)
{
	if (bc_frame_is_zstd(frame, frame_bytes))
		return read_zstd_frame(out, bytes, frame, frame_bytes);
	int rc = read_own_frame(out, bytes, frame, frame_bytes);

	return rc == NOT_OWN ? read_any_frame(out, bytes, frame, frame_bytes) : rc;
}

int bc_frame_read_checked(
	uint8_t *out, size_t bytes, const uint8_t *frame, size_t frame_bytes, uint64_t hash)
{
	int rc = bc_frame_read(out, bytes, frame, frame_bytes);

	return rc == 0 && bc_hash(out, bytes) != hash ? -EBADMSG : rc;
}

/* ---- chunks, index and trailer */

/* Offsets in a chunk header. The fixed part follows the skippable header. */
enum {
	AT_SIZE = 4,
	AT_VERSION = 8,
	AT_SEGMENT = 12,
	AT_NUMBER = 16,
	AT_LOST = 160,
	AT_GAPS = AT_LOST + 8 * BC_GAP_CAUSES,
	AT_VARIABLE = AT_GAPS + 24,
};

/* The fields of the fixed part after the version: bits, offset, and member of the chunk's info.
 * The losses by cause follow the recording's tag. */
/* clang-format off */
#define FIXED_FIELDS(F) \
	F(32, AT_SEGMENT, segment) \
	F(32, AT_NUMBER, number) \
	F(32, 20, records) \
	F(32, 24, frame_bytes) \
	F(32, 28, epoch) \
	F(16, 32, events) \
	F(16, 34, page_bytes) \
	F(32, 36, event_bytes) \
	F(64, 40, first_record) \
	F(64, 48, first_tick) \
	F(64, 56, last_tick) \
	F(64, 64, wall_ns) \
	F(32, 72, addr_low) \
	F(32, 76, addr_high) \
	F(64, 80, types[0]) F(64, 88, types[1]) F(64, 96, types[2]) F(64, 104, types[3]) \
	F(64, 112, procs[0]) F(64, 120, procs[1]) F(64, 128, procs[2]) F(64, 136, procs[3]) \
	F(64, 144, records_hash) \
	F(64, 152, recording_tag) \
	F(64, AT_GAPS, totals.gaps) \
	F(64, AT_GAPS + 8, totals.inexact) \
	F(64, AT_GAPS + 16, totals.away_ns)
/* clang-format on */

_Static_assert(AT_VARIABLE == BC_SKIPPABLE_BYTES + BC_CHUNK_FIXED_BYTES, "the fixed part's length");

/* Offsets in an event. */
enum {
	EVENT_KIND = 0,
	EVENT_FLAGS = 1,
	EVENT_CAUSE = 2,
	EVENT_POSITION = 4,
	EVENT_VALUE = 8,
	EVENT_DURATION_NS = 16,
	EVENT_TEXT_BYTES = 24,
};

#define EVENT_EXACT 1

static const uint8_t trailer_magic[8] = {'B', 'C', 'A', 'P', 'E', 'N', 'D', '1'};

uint64_t bc_recording_tag(const char *recording)
{
	return XXH3_64bits(recording, strlen(recording));
}

static uint8_t *write_event(uint8_t *p, const struct bc_event *event, const char *text)
{
	memset(p, 0, BC_EVENT_BYTES);
	p[EVENT_KIND] = event->kind;
	p[EVENT_FLAGS] = event->exact ? EVENT_EXACT : 0;
	p[EVENT_CAUSE] = event->cause;
	bc_write_le32(p + EVENT_POSITION, event->position);
	bc_write_le64(p + EVENT_VALUE, event->value);
	bc_write_le64(p + EVENT_DURATION_NS, event->duration_ns);
	bc_write_le16(p + EVENT_TEXT_BYTES, event->text_bytes);
	memcpy(p + BC_EVENT_BYTES, text + event->text, event->text_bytes);
	return p + BC_EVENT_BYTES + event->text_bytes;
}

size_t bc_chunk_header_write(uint8_t *out, const struct bc_chunk *chunk)
{
	const struct bc_chunk_info *info = &chunk->info;
	uint8_t *p = out + AT_VARIABLE;

	for (uint32_t i = 0; i < info->events; i++)
		p = write_event(p, &chunk->events[i], chunk->text);
	memcpy(p, chunk->pages, info->page_bytes);
	p += info->page_bytes;
	bc_write_le32(out, BC_MAGIC_CHUNK_HEADER);
	bc_write_le32(
		out + AT_SIZE, (uint32_t)(bc_chunk_info_header_bytes(info) - BC_SKIPPABLE_BYTES));
	bc_write_le32(out + AT_VERSION, BC_SEGMENT_VERSION);
#define WRITE(bits, at, member) bc_write_le##bits(out + (at), (uint##bits##_t)info->member);
	FIXED_FIELDS(WRITE)
#undef WRITE
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++)
		bc_write_le64(out + AT_LOST + 8 * cause, info->totals.lost[cause]);
	bc_checksum_write(p, out);
	return (size_t)(p - out) + BC_HASH_BYTES;
}

/* The frame comes after the page counts, whose limit depends on its length. It is written there if
 * they keep that limit, and moved if they must be shorter, which is when it is short. */
size_t bc_chunk_encode(uint8_t *out, struct bc_chunk *chunk, const struct bc_compressor *compressor,
	struct bc_chunk_pages *pages, size_t *header_bytes)
{
	struct bc_chunk_info *info = &chunk->info;

	info->event_bytes = info->events * BC_EVENT_BYTES + chunk->text_bytes;
	bc_chunk_describe(chunk, pages);
	info->page_bytes = info->records != 0 ? (uint32_t)bc_page_counts_write(chunk->pages,
							BC_CHUNK_PAGE_BYTES, &pages->counts)
					      : 0;
	uint8_t *frame = out + bc_chunk_info_header_bytes(info);
	info->frame_bytes = (uint32_t)bc_frame_write(
		frame, chunk->records, (size_t)info->records * BC_RECORD_BYTES, compressor);

	size_t room = bc_page_counts_room(
		BC_CHUNK_HEADER_MIN + info->event_bytes + info->frame_bytes, BC_CHUNK_PAGE_SHARE,
		BC_CHUNK_PAGE_SHARE_SMALL, BC_CHUNK_PAGE_BYTES_SMALL);
	if (info->page_bytes > room) {
		info->page_bytes = (uint32_t)bc_page_counts_write(
			chunk->pages, room, &pages->counts);
		memmove(out + bc_chunk_info_header_bytes(info), frame, info->frame_bytes);
	}
	*header_bytes = bc_chunk_header_write(out, chunk);
	return *header_bytes + info->frame_bytes;
}

void bc_chunk_header_place(uint8_t *header, size_t header_bytes, uint32_t segment, uint32_t number)
{
	bc_write_le32(header + AT_SEGMENT, segment);
	bc_write_le32(header + AT_NUMBER, number);
	bc_checksum_write(header + header_bytes - BC_HASH_BYTES, header);
}

uint64_t bc_chunk_encoded_bytes(const struct bc_chunk_info *info)
{
	return (uint64_t)bc_chunk_info_header_bytes(info) + info->frame_bytes;
}

size_t bc_chunk_header_bytes(const uint8_t in[BC_SKIPPABLE_BYTES])
{
	return bc_skippable_bytes(
		in, BC_MAGIC_CHUNK_HEADER, BC_CHUNK_HEADER_MIN, BC_CHUNK_HEADER_MAX);
}

/* Reads the fixed part at `p`, which follows a skippable header or an index row's offset. */
static void read_fixed(struct bc_chunk_info *info, const uint8_t *p)
{
	const uint8_t *header = p - BC_SKIPPABLE_BYTES;

#define READ(bits, at, member) info->member = (__typeof__(info->member))bc_le##bits(header + (at));
	FIXED_FIELDS(READ)
#undef READ
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++)
		info->totals.lost[cause] = bc_le64(header + AT_LOST + 8 * cause);
}

static bool read_events(struct bc_chunk *chunk, const uint8_t *p, const uint8_t *end)
{
	uint32_t events = chunk->info.events;
	uint32_t previous = 0;

	chunk->info.events = 0;
	chunk->text_bytes = 0;
	for (uint32_t i = 0; i < events; i++) {
		if (end - p < BC_EVENT_BYTES)
			return false;
		struct bc_event event = {
			.position = bc_le32(p + EVENT_POSITION),
			.kind = p[EVENT_KIND],
			.cause = p[EVENT_CAUSE],
			.exact = (p[EVENT_FLAGS] & EVENT_EXACT) != 0,
			.value = bc_le64(p + EVENT_VALUE),
			.duration_ns = bc_le64(p + EVENT_DURATION_NS),
			.text_bytes = bc_le16(p + EVENT_TEXT_BYTES),
		};
		p += BC_EVENT_BYTES;
		if ((event.kind == BC_EVENT_ANCHOR && event.value >= BC_TICK_END) ||
			event.position < previous || event.position > chunk->info.records ||
			end - p < event.text_bytes ||
			!bc_chunk_add_event(chunk, &event, (const char *)p))
			return false;
		previous = event.position;
		p += event.text_bytes;
	}
	return p == end;
}

bool bc_chunk_header_read(struct bc_chunk *chunk, const uint8_t *header, size_t header_bytes)
{
	const uint8_t *hash = header + header_bytes - BC_HASH_BYTES;
	struct bc_chunk_info *info = &chunk->info;

	/* The cheap checks are first: a search tries many places that are not headers. */
	if (bc_le32(header + AT_VERSION) != BC_SEGMENT_VERSION)
		return false;
	read_fixed(info, header + BC_SKIPPABLE_BYTES);
	if (info->records > BC_CHUNK_RECORDS || info->events > BC_CHUNK_EVENTS ||
		info->frame_bytes > BC_FRAME_MAX || info->number >= BC_SEGMENT_CHUNKS ||
		bc_chunk_info_header_bytes(info) != header_bytes ||
		info->page_bytes > BC_CHUNK_PAGE_BYTES ||
		info->events * BC_EVENT_BYTES > info->event_bytes ||
		info->first_tick >= BC_TICK_END || info->last_tick >= BC_TICK_END ||
		!bc_checksum_is_valid(hash, header))
		return false;
	const uint8_t *pages = hash - info->page_bytes;
	memcpy(chunk->pages, pages, info->page_bytes);
	return read_events(chunk, header + AT_VARIABLE, pages);
}

int bc_chunk_frame_read(struct bc_chunk *chunk, const uint8_t *frame)
{
	const struct bc_chunk_info *info = &chunk->info;

	return bc_frame_read_checked(chunk->records, (size_t)info->records * BC_RECORD_BYTES, frame,
		info->frame_bytes, info->records_hash);
}

void bc_index_row_write(uint8_t out[BC_INDEX_ROW_BYTES], uint64_t offset, const uint8_t *header)
{
	bc_write_le64(out, offset);
	memcpy(out + 8, header + BC_SKIPPABLE_BYTES, BC_CHUNK_FIXED_BYTES);
}

uint64_t bc_index_row_read(struct bc_chunk_info *info, const uint8_t row[BC_INDEX_ROW_BYTES])
{
	read_fixed(info, row + 8);
	return bc_le64(row);
}

void bc_index_head_write(uint8_t out[BC_INDEX_HEAD_BYTES], const struct bc_index_head *head)
{
	bc_write_le32(out, BC_MAGIC_INDEX);
	bc_write_le32(out + 4, (uint32_t)(bc_index_bytes(head->rows) - BC_SKIPPABLE_BYTES));
	bc_write_le32(out + 8, BC_SEGMENT_VERSION);
	bc_write_le32(out + 12, head->rows);
	bc_write_le64(out + 16, head->records);
	bc_write_le32(out + 24, (uint32_t)head->loss.gaps);
	bc_write_le32(out + 28, (uint32_t)head->loss.inexact);
	bc_write_le64(out + 32, head->loss.lost);
	bc_write_le64(out + 40, head->offset);
	bc_write_le64(out + 48, head->pages);
	bc_checksum_write(out + 56, out);
}

bool bc_index_head_read(struct bc_index_head *head, const uint8_t in[BC_INDEX_HEAD_BYTES])
{
	if (bc_le32(in) != BC_MAGIC_INDEX || !bc_checksum_is_valid(in + 56, in) ||
		bc_le32(in + 8) != BC_SEGMENT_VERSION)
		return false;
	head->rows = bc_le32(in + 12);
	head->records = bc_le64(in + 16);
	head->loss = (struct bc_loss){
		.gaps = bc_le32(in + 24), .lost = bc_le64(in + 32), .inexact = bc_le32(in + 28)};
	head->offset = bc_le64(in + 40);
	head->pages = bc_le64(in + 48);
	return head->rows <= BC_SEGMENT_CHUNKS &&
	       bc_le32(in + 4) == bc_index_bytes(head->rows) - BC_SKIPPABLE_BYTES;
}

void bc_trailer_write(uint8_t out[BC_TRAILER_BYTES], uint64_t index_offset, uint64_t file_bytes)
{
	bc_write_le64(out, index_offset);
	bc_write_le64(out + 8, file_bytes);
	memcpy(out + 16, trailer_magic, sizeof(trailer_magic));
	bc_checksum_write(out + 24, out);
}

bool bc_trailer_read(
	uint64_t *index_offset, uint64_t *file_bytes, const uint8_t in[BC_TRAILER_BYTES])
{
	if (memcmp(in + 16, trailer_magic, sizeof(trailer_magic)) != 0 ||
		!bc_checksum_is_valid(in + 24, in))
		return false;
	*index_offset = bc_le64(in);
	*file_bytes = bc_le64(in + 8);
	return *index_offset <= *file_bytes;
}
