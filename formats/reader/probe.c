#include "formats/reader/probe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/bus/bcp1.h"
#include "formats/bus/dialect.h"
#include "formats/bus/sample.h"
#include "formats/reader/foreign.h"
#include "formats/reader/probe_text.h"
#include "formats/segment/segment.h"
#include "formats/segment/segment_header.h"

/* Uncompressed bytes that are examined. */
#define PLAIN_BYTES (BC_PROBE_BYTES / 4)

/* Records are checked for values that a bus can produce. A few implausible ones are allowed. */
#define RECORDS_CHECKED     2048u
#define IMPLAUSIBLE_PER_256 8u

static bool is_plausible_meta(const uint8_t meta[4])
{
	uint8_t size = meta[1];

	return (bc_reqtype_name(meta[0]) != NULL || meta[0] >= BC_REQ_INVALID) &&
	       (size <= 8 || size == 16 || size == 32) && meta[2] <= 7 && meta[3] <= 15;
}

static bool is_plausible_record(const uint8_t *in, enum bc_format format, uint64_t addr_max)
{
	uint64_t addr;
	uint64_t time;
	size_t meta = bc_dialect_bytes(format) == BC_RECORD_BYTES ? 4 : 8;

	bc_dialect_fields(in, format, &addr, &time);
	if (!is_plausible_meta(in + meta) || addr > addr_max || time > UINT32_MAX)
		return false;
	/* A bus is rarely idle for 4 million ticks, but deltas in the wrong byte order usually have
	 * such values. */
	return time < 1 << 22 || time == BC_TIME_NONE;
}

/* Byte enables are a contiguous run, except in a special cycle, where a single bit is clear. */
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

static bool fits_records(
	const uint8_t *head, size_t bytes, enum bc_format format, uint64_t addr_max)
{
	size_t stride = format == BC_FORMAT_RAW6 ? BC_SAMPLE_BYTES : bc_dialect_bytes(format);
	size_t n = bytes / stride < RECORDS_CHECKED ? bytes / stride : RECORDS_CHECKED;
	size_t implausible = 0;

	for (size_t i = 0; i < n; i++) {
		const uint8_t *in = head + i * stride;
		bool ok = format == BC_FORMAT_RAW6 ? is_plausible_sample(in)
						   : is_plausible_record(in, format, addr_max);
		implausible += !ok;
	}
	return n != 0 && implausible * 256 <= n * IMPLAUSIBLE_PER_256;
}

/* Searches for a bcp1 header anywhere in the head, because a capture may start in mid-frame. */
static bool has_bcp1_header(const uint8_t *head, size_t bytes)
{
	struct bc_bcp1_header header;

	for (size_t at = 0; at + BC_BCP1_HEADER_BYTES <= bytes; at++)
		if (head[at] == 'B' && bc_bcp1_read_header(&header, head + at))
			return true;
	return false;
}

/* Only the start of a first header, too short to check its CRC. */
static bool is_torn_bcp1(const uint8_t *head, size_t bytes)
{
	return bytes >= 4 && bytes < BC_BCP1_HEADER_BYTES && memcmp(head, "BCP1", 4) == 0;
}

/* Whether a whole header of a segment or chunk starts here. */
static bool is_item(const uint8_t *in, size_t bytes, struct bc_chunk *chunk)
{
	struct bc_segment_header header;
	size_t length;

	if ((length = bc_chunk_header_bytes(in)) != 0)
		return length <= bytes && bc_chunk_header_read(chunk, in, length);
	length = bc_segment_header_bytes(in);
	return length != 0 && length <= bytes && bc_segment_header_read(&header, in, length);
}

/* Searches for a whole header anywhere in the head, because the start may be damaged. */
static bool has_segment_item(const uint8_t *head, size_t bytes)
{
	struct bc_chunk *chunk = NULL;
	bool found = false;

	for (size_t at = 0; !found && at + BC_SKIPPABLE_BYTES <= bytes; at++) {
		if ((bc_le32(head + at) & ~7u) != BC_MAGIC_SEGMENT_HEADER)
			continue;
		if (chunk == NULL)
			chunk = malloc(sizeof(*chunk));
		found = chunk != NULL && is_item(head + at, bytes - at, chunk);
	}
	free(chunk);
	return found;
}

/* Whether the bytes are an empty frame followed by a segment header, or the start of one. */
static bool starts_as_segment(const uint8_t *head, size_t bytes)
{
	if (bytes < BC_EMPTY_FRAME_BYTES || memcmp(head, bc_empty_frame, BC_EMPTY_FRAME_BYTES) != 0)
		return false;
	size_t rest = bytes - BC_EMPTY_FRAME_BYTES;
	uint8_t magic[4];
	bc_write_le32(magic, BC_MAGIC_SEGMENT_HEADER);
	return memcmp(head + BC_EMPTY_FRAME_BYTES, magic, rest < 4 ? rest : 4) == 0;
}

/* Physical addresses of 64-bit machines have up to 52 bits. So may 12-byte records that are read as
 * longer ones; therefore such addresses count only if no format fits without them. */
#define WIDE_ADDR_MAX UINT64_C(0xFFFFFFFFFFFFF)

/* Returns the number of plain formats that fit, the last of which is *only, with their names in
 * `err`. */
static unsigned count_fitting(const uint8_t *head, size_t bytes, uint64_t addr_max,
	enum bc_format *only, char *err, size_t errlen)
{
	static const enum bc_format plain[] = {
		BC_FORMAT_BYU, BC_FORMAT_BYU16, BC_FORMAT_BYU24, BC_FORMAT_BYU_BE, BC_FORMAT_RAW6};
	unsigned fitting = 0;
	size_t used = 0;

	err[0] = '\0';
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		if (!fits_records(head, bytes, plain[i], addr_max))
			continue;
		*only = plain[i];
		int n = snprintf(err + used, errlen - used, "%s%s", fitting++ ? " or " : "",
			bc_format_name(plain[i]));
		used += (size_t)n;
	}
	return fitting;
}

/* Checks the plain formats, and sets probe->format to the only one that fits, or probe->err.
 * Returns the number that fit. */
static unsigned probe_plain(struct bc_probe *probe, const uint8_t *head, size_t bytes)
{
	enum bc_format only = BC_FORMAT_UNKNOWN;
	unsigned fitting = count_fitting(
		head, bytes, UINT32_MAX, &only, probe->err, sizeof(probe->err));

	if (fitting == 0)
		fitting = count_fitting(
			head, bytes, WIDE_ADDR_MAX, &only, probe->err, sizeof(probe->err));
	size_t used = strlen(probe->err);
	if (fitting == 1)
		probe->format = only;
	else if (fitting > 1)
		snprintf(
			probe->err + used, sizeof(probe->err) - used, ": each matches the content");
	else
		snprintf(probe->err, sizeof(probe->err), "the content fits no known format");
	return fitting;
}

/* Number of bytes before the padding at the end: zeros, which a crash may leave there, or the
 * Ctrl-Z of CP/M and DOS. */
static size_t before_padding(const uint8_t *head, size_t bytes)
{
	while (bytes != 0 && (head[bytes - 1] == 0 || head[bytes - 1] == 0x1A))
		bytes--;
	return bytes;
}

static void probe_content(struct bc_probe *probe, const uint8_t *head, size_t bytes, bool is_all)
{
	size_t text = before_padding(head, bytes);
	unsigned fitting = 0;

	if (bc_is_elf(head, bytes)) {
		snprintf(probe->err, sizeof(probe->err), "an ELF file, not a trace");
		probe->is_foreign = true;
		return;
	}
	if (bc_is_text(head, text) && (text == bytes || memchr(head, '\n', text) != NULL))
		probe->format = bc_probe_text(
			head, text, is_all || text != bytes, probe->err, sizeof(probe->err));
	else
		fitting = probe_plain(probe, head, bytes);
	if (probe->format == BC_FORMAT_UNKNOWN)
		probe->is_foreign = bc_describe_foreign(
			probe->err, sizeof(probe->err), probe->packing, head, bytes, fitting != 0);
}

static bool probe_bytes(struct bc_probe *probe, const uint8_t *head, size_t bytes, bool is_all)
{
	if (has_segment_item(head, bytes)) {
		probe->format = BC_FORMAT_SEGMENT;
		return true;
	}
	if (starts_as_segment(head, bytes)) {
		probe->format = BC_FORMAT_SEGMENT;
		/* An empty frame may precede any other frame. */
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
			"no data in its %s frames: they are empty, damaged or torn",
			bc_packing_name(probe->packing));
	else if (bytes == 0)
		snprintf(probe->err, sizeof(probe->err), "empty file");
	else
		probe_content(probe, head, bytes, is_all);
	return true;
}

bool bc_probe(
	struct bc_probe *probe, const uint8_t *head, size_t bytes, bool is_all, unsigned window_log)
{
	enum bc_packing packing = bc_packing_of(head, bytes);
	bool is_plain = packing == BC_PACKING_NONE || starts_as_segment(head, bytes);

	memset(probe, 0, sizeof(*probe));
	if (is_plain)
		return probe_bytes(probe, head, bytes < PLAIN_BYTES ? bytes : PLAIN_BYTES,
			is_all && bytes <= PLAIN_BYTES);

	probe->packing = packing;
	uint8_t *inner = malloc(PLAIN_BYTES);
	ssize_t n = inner != NULL
			    ? bc_unpack_head(inner, PLAIN_BYTES, packing, head, bytes, window_log)
			    : -ENOMEM;
	bool is_over = is_all || bytes >= BC_PROBE_BYTES;
	bool is_certain = true;
	probe->is_foreign = n == -ENOBUFS;
	if (n == -ENOBUFS)
		bc_unpack_too_large(probe->err, sizeof(probe->err), packing, window_log);
	else if (n < 0)
		snprintf(probe->err, sizeof(probe->err), "out of memory");
	else
		is_certain = probe_bytes(probe, inner, (size_t)n, is_over && n < PLAIN_BYTES);
	free(inner);
	if (n < 0 || !is_certain || probe->format == BC_FORMAT_SEGMENT)
		return is_certain;
	/* The LZ4 frames may be those of a segment whose start is damaged. This is examined last,
	 * because compression may also store the bytes of a whole one as they are. */
	if (has_segment_item(head, bytes))
		*probe = (struct bc_probe){.format = BC_FORMAT_SEGMENT};
	return true;
}
