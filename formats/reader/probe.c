#include "formats/reader/probe.h"

#include <lz4.h>
#include <lz4frame.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/bus/bcp1.h"
#include "formats/bus/dialect.h"
#include "formats/bus/sample.h"
#include "formats/reader/probe_text.h"
#include "formats/segment/raw_capture.h"
#include "formats/segment/segment.h"
#include "formats/segment/segment_header.h"

/* So many bytes of what isn't compressed are enough. */
#define PLAIN_BYTES (BC_PROBE_BYTES / 4)

/* Records are held against a format by what a bus can show; a few strange ones are forgiven. */
#define RECORDS_LOOKED_AT 2048u
#define STRANGE_PER_256   8u

static bool is_plausible_meta(const uint8_t meta[4])
{
	uint8_t size = meta[1];

	return (bc_reqtype_name(meta[0]) != NULL || meta[0] >= BC_REQ_INVALID) &&
	       (size <= 8 || size == 16 || size == 32) && meta[2] <= 7 && meta[3] <= 15;
}

static bool is_plausible_record(const uint8_t *in, enum bc_format format)
{
	uint64_t addr;
	uint64_t time;
	size_t meta = bc_dialect_bytes(format) == BC_RECORD_BYTES ? 4 : 8;

	bc_dialect_fields(in, format, &addr, &time);
	if (!is_plausible_meta(in + meta) || addr > UINT32_MAX || time > UINT32_MAX)
		return false;
	/* A bus is seldom idle for 4 million ticks; deltas read in the wrong byte order mostly are.
	 */
	return time < 1 << 22 || time == BC_TIME_NONE;
}

/* Byte enables of a bus are a run of neighbours; a special cycle has one of its own. */
static bool is_plausible_sample(const uint8_t *in)
{
	unsigned cycle = in[5] >> 4;
	unsigned enabled = (uint8_t)~in[4];

	if (strcmp(bc_cycle_name(cycle), "INVALID") == 0)
		return false;
	if (enabled == 0)
		return true;
	unsigned lowest = enabled & -enabled;
	return ((enabled + lowest) & enabled) == 0;
}

static bool fits(const uint8_t *head, size_t bytes, enum bc_format format)
{
	size_t stride = format == BC_FORMAT_RAW6 ? BC_SAMPLE_BYTES : bc_dialect_bytes(format);
	size_t n = bytes / stride < RECORDS_LOOKED_AT ? bytes / stride : RECORDS_LOOKED_AT;
	size_t strange = 0;

	for (size_t i = 0; i < n; i++) {
		const uint8_t *in = head + i * stride;
		bool ok = format == BC_FORMAT_RAW6 ? is_plausible_sample(in)
						   : is_plausible_record(in, format);
		strange += !ok;
	}
	return n != 0 && strange * 256 <= n * STRANGE_PER_256;
}

/* A header of bcp1 somewhere in the head: a capture may begin in the middle of a frame. */
static bool has_bcp1_header(const uint8_t *head, size_t bytes)
{
	struct bc_bcp1_header header;

	for (size_t at = 0; at + BC_BCP1_HEADER_BYTES <= bytes; at++)
		if (head[at] == 'B' && bc_bcp1_read_header(&header, head + at))
			return true;
	return false;
}

/* Nothing but the beginning of a first header: too short for any CRC. */
static bool is_torn_bcp1(const uint8_t *head, size_t bytes)
{
	return bytes >= 4 && bytes < BC_BCP1_HEADER_BYTES && memcmp(head, "BCP1", 4) == 0;
}

/* Whether a whole header of a file, a chunk or a block begins here; *form is then its format.
 * `piece` has room for a chunk and for a block. */
static bool is_item(const uint8_t *in, size_t bytes, void *piece, enum bc_format *form)
{
	struct bc_segment_header header;
	struct bc_raw_block *block = piece;
	size_t length;

	*form = BC_FORMAT_SEGMENT;
	if ((length = bc_chunk_header_bytes(in)) != 0)
		return length <= bytes && bc_chunk_header_read(piece, in, length);
	if ((length = bc_segment_header_bytes(in)) != 0)
		return length <= bytes && bc_segment_header_read(&header, in, length);
	if ((length = bc_raw_header_bytes(in)) != 0)
		return length <= bytes && bc_raw_header_read(&header, form, in, length);
	if ((length = bc_raw_table_bytes(in)) == 0 || length > bytes ||
		!bc_raw_table_read(block, in, length))
		return false;
	*form = block->form;
	return true;
}

/* The first whole item of a segment, or of a raw capture, somewhere in the head: the beginning may
 * be damaged. Returns BC_FORMAT_SEGMENT, the raw capture's form, or BC_FORMAT_UNKNOWN. */
static enum bc_format find_item(const uint8_t *head, size_t bytes, bool is_raw)
{
	enum bc_format form;
	void *piece = NULL;
	bool found = false;

	for (size_t at = 0; !found && at + BC_SKIPPABLE_BYTES <= bytes; at++) {
		if ((bc_le32(head + at) & ~7u) != BC_MAGIC_SEGMENT_HEADER)
			continue;
		if (piece == NULL)
			piece = malloc(sizeof(union {
				struct bc_chunk c;
				struct bc_raw_block b;
			}));
		found = piece != NULL && is_item(head + at, bytes - at, piece, &form) &&
			is_raw == (form != BC_FORMAT_SEGMENT);
	}
	free(piece);
	return found ? form : BC_FORMAT_UNKNOWN;
}

static bool has_segment_item(const uint8_t *head, size_t bytes)
{
	return find_item(head, bytes, false) == BC_FORMAT_SEGMENT;
}

/* The empty frame, and behind it a header with this magic, as far as the bytes go. */
static bool begins_as(uint32_t header_magic, const uint8_t *head, size_t bytes)
{
	if (bytes < BC_EMPTY_FRAME_BYTES || memcmp(head, bc_empty_frame, BC_EMPTY_FRAME_BYTES) != 0)
		return false;
	size_t rest = bytes - BC_EMPTY_FRAME_BYTES;
	uint8_t magic[4];
	bc_write_le32(magic, header_magic);
	return memcmp(head + BC_EMPTY_FRAME_BYTES, magic, rest < 4 ? rest : 4) == 0;
}

static bool begins_as_segment(const uint8_t *head, size_t bytes)
{
	return begins_as(BC_MAGIC_SEGMENT_HEADER, head, bytes);
}

/* Its header is the first thing in it. */
bool bc_may_be_capture(const uint8_t *head, size_t bytes)
{
	return bytes < BC_PROBE_BYTES && begins_as(BC_MAGIC_RAW_HEADER, head, bytes);
}

/* The plain formats. Returns the only one that fits, or BC_FORMAT_UNKNOWN with *err. */
static enum bc_format probe_plain(const uint8_t *head, size_t bytes, char *err, size_t errlen)
{
	static const enum bc_format plain[] = {
		BC_FORMAT_BYU, BC_FORMAT_BYU16, BC_FORMAT_BYU24, BC_FORMAT_BYU_BE, BC_FORMAT_RAW6};
	enum bc_format only = BC_FORMAT_UNKNOWN;
	unsigned fitting = 0;
	size_t used = 0;

	err[0] = '\0';
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		if (!fits(head, bytes, plain[i]))
			continue;
		only = plain[i];
		int n = snprintf(err + used, errlen - used, "%s%s", fitting++ ? " or " : "",
			bc_format_name(plain[i]));
		used += (size_t)n;
	}
	if (fitting == 1)
		return only;
	if (fitting > 1)
		snprintf(err + used, errlen - used, ": its content fits each");
	else
		snprintf(err, errlen, "its content fits no format known here");
	return BC_FORMAT_UNKNOWN;
}

/* The head of one block that is longer than what is there of it: the lz4 program's are up to 4 MiB.
 */
static size_t decode_block_head(uint8_t *out, size_t room, const uint8_t *frame, size_t bytes)
{
	size_t header = bytes >= LZ4F_MIN_SIZE_TO_KNOW_HEADER_LENGTH ? LZ4F_headerSize(frame, bytes)
								     : LZ4F_HEADER_SIZE_MAX;

	if (LZ4F_isError(header) || bytes < header + 4)
		return 0;
	bool is_stored = (bc_le32(frame + header) & 0x80000000) != 0;
	const uint8_t *block = frame + header + 4;
	size_t n = bytes - header - 4;
	if (is_stored) {
		n = n < room ? n : room;
		memcpy(out, block, n);
		return n;
	}
	/* A block never grows by more than a 255th: half as many bytes come of these in any case.
	 */
	int target = (int)(n / 2 < room ? n / 2 : room);
	int got = LZ4_decompress_safe_partial(
		(const char *)block, (char *)out, (int)n, target, (int)room);
	return got > 0 ? (size_t)got : 0;
}

/* Unpacks a head. Returns how many bytes it gave. */
static size_t unpack_head(
	uint8_t *out, size_t room, enum bc_packing packing, const uint8_t *head, size_t bytes)
{
	struct bc_unpacker *unpacker = bc_unpack_open(packing);
	size_t in_done = 0;
	size_t out_done = 0;

	while (unpacker != NULL && out_done < room) {
		size_t taken;
		ssize_t n = bc_unpack(unpacker, out + out_done, room - out_done, head + in_done,
			bytes - in_done, &taken);
		in_done += taken;
		out_done += n > 0 ? (size_t)n : 0;
		if (n < 0 || (n == 0 && taken == 0))
			break;
	}
	bc_unpack_close(unpacker);
	if (out_done == 0 && packing == BC_PACKING_LZ4)
		out_done = decode_block_head(out, room, head, bytes);
	return out_done;
}

/* What else compresses files, by its magic; NULL: nothing that is known. */
static const char *foreign_packing(const uint8_t *head, size_t bytes)
{
	if (bytes >= 6 && memcmp(head,
				  "\xFD"
				  "7zXZ",
				  6) == 0)
		return "xz";
	if (bytes >= 4 && memcmp(head, "BZh", 3) == 0 && head[3] >= '1' && head[3] <= '9')
		return "bzip2";
	return NULL;
}

static bool probe_bytes(struct bc_probe *probe, const uint8_t *head, size_t bytes, bool is_all)
{
	if (has_segment_item(head, bytes)) {
		probe->format = BC_FORMAT_SEGMENT;
		return true;
	}
	if (begins_as_segment(head, bytes)) {
		probe->format = BC_FORMAT_SEGMENT;
		/* An empty frame may be followed by any other. */
		return is_all || bytes >= BC_EMPTY_FRAME_BYTES + 4;
	}
	if (has_bcp1_header(head, bytes)) {
		probe->format = BC_FORMAT_BCP1;
		return true;
	}
	if (!is_all && bytes < PLAIN_BYTES)
		return false;
	if (is_torn_bcp1(head, bytes))
		probe->format = BC_FORMAT_BCP1;
	else if (bytes == 0 && probe->packing != BC_PACKING_NONE)
		snprintf(probe->err, sizeof(probe->err),
			"nothing comes out of its %s frames: they are empty, damaged or torn",
			bc_packing_name(probe->packing));
	else if (bytes == 0)
		snprintf(probe->err, sizeof(probe->err), "it is empty");
	else if (foreign_packing(head, bytes) != NULL)
		snprintf(probe->err, sizeof(probe->err),
			"it is compressed with %s, which is not undone here: unpack it first",
			foreign_packing(head, bytes));
	else if (bc_is_text(head, bytes))
		probe->format = bc_probe_text(head, bytes, is_all, probe->err, sizeof(probe->err));
	else
		probe->format = probe_plain(head, bytes, probe->err, sizeof(probe->err));
	return true;
}

bool bc_probe(struct bc_probe *probe, const uint8_t *head, size_t bytes, bool is_all)
{
	memset(probe, 0, sizeof(*probe));
	enum bc_format form = find_item(head, bytes, true);
	if (form != BC_FORMAT_UNKNOWN) {
		*probe = (struct bc_probe){
			.format = form, .packing = BC_PACKING_LZ4, .is_capture = true};
		return true;
	}
	if (!is_all && bc_may_be_capture(head, bytes))
		return false;
	enum bc_packing packing = bc_packing_of(head, bytes);
	if (begins_as_segment(head, bytes) || packing == BC_PACKING_NONE ||
		has_segment_item(head, bytes))
		return probe_bytes(probe, head, bytes < PLAIN_BYTES ? bytes : PLAIN_BYTES,
			is_all && bytes <= PLAIN_BYTES);

	probe->packing = packing;
	uint8_t *inner = malloc(PLAIN_BYTES);
	if (inner == NULL)
		return true;
	size_t n = unpack_head(inner, PLAIN_BYTES, packing, head, bytes);
	bool is_over = is_all || bytes >= BC_PROBE_BYTES;
	bool is_certain = probe_bytes(probe, inner, n, is_over);
	free(inner);
	return is_certain;
}
