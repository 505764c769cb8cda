#include "formats/codec/json_text.h"

#include <string.h>

#include "formats/base/utf8.h"

/* How a byte of a string is written: 0: as it is; 'u': \u00XX; 'm': it begins a sequence of UTF-8,
 * or belongs to none; else behind a backslash. */
static char escape(uint8_t byte)
{
	static const char controls[32] = "uuuuuuuubtnufruuuuuuuuuuuuuuuuuu";

	if (byte < 32)
		return controls[byte];
	if (byte >= 0x80)
		return 'm';
	if (byte == '"')
		return '"';
	return byte == '\\' ? '\\' : '\0';
}

static char *put_escaped(char *out, uint8_t byte)
{
	out = BC_WRITE_LITERAL(out, "\\u00");
	return bc_write_hex8(out, byte);
}

char *bc_json_write_text(char *out, struct bc_text text)
{
	const uint8_t *at = (const uint8_t *)text.at;
	uint32_t left = text.bytes;

	*out++ = '"';
	while (left != 0) {
		char how = escape(*at);
		uint32_t n = 1;
		if (how == '\0') {
			*out++ = (char)*at;
		} else if (how == 'm' && (n = bc_utf8_bytes(at, left)) != 0) {
			out = mempcpy(out, at, n);
		} else if (how == 'm' || how == 'u') {
			out = put_escaped(out, *at);
			n = 1;
		} else {
			*out++ = '\\';
			*out++ = how;
		}
		at += n;
		left -= n;
	}
	*out++ = '"';
	return out;
}
