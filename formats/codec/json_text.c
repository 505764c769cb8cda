#include "formats/codec/json_text.h"

#include <string.h>

#include "formats/base/utf8.h"

/* How to write a byte of a string. 0: unchanged; 'u': as \u00XX; 'm': it may start a UTF-8
 * sequence; any other: this character after a backslash. */
static char json_escape(uint8_t byte)
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

static char *write_escaped(char *out, uint8_t byte)
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
		char how = json_escape(*at);
		uint32_t n = 1;
		if (how == '\0') {
			*out++ = (char)*at;
		} else if (how == 'm' && (n = bc_utf8_bytes(at, left)) != 0) {
			out = mempcpy(out, at, n);
		} else if (how == 'm' || how == 'u') {
			out = write_escaped(out, *at);
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
