#include "cli/io/record_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/fast_format.h"

_Static_assert(8 + 27 + 8 + 1 <= BC_RECORD_TEXT_MAX, "a line with the longest cached text");

void bc_record_text_init(struct bc_record_text *text)
{
	memset(text, 0, sizeof(*text));
}

static void cache_text(struct bc_record_text *text, size_t slot, const uint8_t *in)
{
	char line[BC_RECORD_TEXT_MAX];
	struct bc_record record = bc_record_load(in);
	size_t n = bc_record_print(line, &record);
	size_t middle = n - 8 - 8 - 1; /* without address, time and newline */

	text->kept[slot].meta = bc_le32(in + 4);
	text->kept[slot].bytes = (uint8_t)middle;
	memcpy(text->kept[slot].text, line + 8, middle);
}

size_t bc_record_text_print(
	struct bc_record_text *text, char *out, const uint8_t *records, size_t n)
{
	const uint8_t *end = records + n * BC_RECORD_BYTES;
	char *p = out;

	for (const uint8_t *in = records; in < end; in += BC_RECORD_BYTES) {
		uint32_t meta = bc_le32(in + 4);
		size_t slot = meta * 0x9E3779B1u >> 24;
		if (text->kept[slot].meta != meta || text->kept[slot].bytes == 0)
			cache_text(text, slot, in);
		p = bc_write_hex32(p, bc_le32(in));
		/* A copy of constant length is faster; the time overwrites the excess. */
		memcpy(p, text->kept[slot].text, sizeof(text->kept[slot].text));
		p = bc_write_hex32(p + text->kept[slot].bytes, bc_le32(in + 8));
		*p++ = '\n';
	}
	return (size_t)(p - out);
}
