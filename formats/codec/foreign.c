#include "formats/codec/foreign.h"

#include <stdio.h>
#include <string.h>

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

/* The compressions that are read: their command, and what they are within another one. */
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
	{0, 4, "PK\x03\x04", ARCHIVE("zip", "unzip -p")},
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

/* The header of zlib is two bytes: deflate with a window of up to 32 KiB, and a checksum of five
 * bits. */
static bool is_zlib(const uint8_t *head, size_t bytes)
{
	return bytes >= 8 && (head[0] & 0x0F) == 8 && head[0] >> 4 <= 7 && (head[1] & 0x20) == 0 &&
	       (head[0] << 8 | head[1]) % 31 == 0;
}

/* The usual properties, a dictionary of whole 64 KiB, and a length that is unknown or below 2^40.
 */
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

/* Whether nearly all units of `width` bytes are a character, at this place in the unit, and zeros.
 */
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

/* Whether there is a mark of the order of bytes, with whole characters after it. */
static bool has_wide_mark(const uint8_t *head, size_t bytes, size_t at)
{
	if (bytes < 4 || head[at] != 0xFF || head[1 - at] != 0xFE)
		return false;
	for (size_t i = 2; i + 1 < bytes; i += 2)
		if (head[i] == 0 && head[i + 1] == 0)
			return false;
	return true;
}

/* Whether there are lines of a Macintosh before OS X, and no others. */
static bool has_only_returns(const uint8_t *head, size_t bytes)
{
	const uint8_t *first = memchr(head, '\r', bytes);

	return first != NULL && first != head + bytes - 1 && memchr(head, '\n', bytes) == NULL;
}

/* Whether one of the first bytes is none of ASCII text. */
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

static const struct foreign *find_foreign(const uint8_t *head, size_t bytes, bool may_be_records)
{
	if (!has_binary(head, bytes))
		return has_only_returns(head, bytes) ? &old_mac : NULL;
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
	return bytes >= 4 && memcmp(head,
				     "\x7F"
				     "ELF",
				     4) == 0;
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
