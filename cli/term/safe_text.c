#include "cli/term/safe_text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/utf8.h"

size_t bc_safe_piece(char out[BC_SAFE_PIECE_MAX], const char *text, size_t n, bool is_escaped)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t length = bc_utf8_bytes(p, n);
	uint32_t code = length != 0 ? bc_utf8_code(p, (uint32_t)length) : 0;
	size_t used = 0;

	if (length != 0 && !bc_utf8_is_unsafe(code) && (code != '\\' || is_escaped)) {
		memcpy(out, text, length);
		out[length] = '\0';
		return length;
	}
	length = length != 0 ? length : 1;
	for (size_t i = 0; i < length; i++)
		used += (size_t)snprintf(out + used, BC_SAFE_PIECE_MAX - used, "\\x%02x", p[i]);
	return length;
}

const char *bc_safe_text(char *out, size_t outlen, const char *text)
{
	size_t n = text != NULL ? strlen(text) : 0;
	size_t used = 0;
	char piece[BC_SAFE_PIECE_MAX];

	while (n != 0) {
		size_t consumed = bc_safe_piece(piece, text, n, false);
		size_t bytes = strlen(piece);
		if (bytes >= outlen - used)
			break;
		memcpy(out + used, piece, bytes);
		used += bytes;
		text += consumed;
		n -= consumed;
	}
	out[used] = '\0';
	return out;
}

void bc_safe_print_escaped(FILE *out, const char *text)
{
	size_t left = strlen(text);
	char buffer[1024] = "";
	size_t used = 0;

	/* Standard error is unbuffered: collect the message, so that it is one write. */
	while (left != 0) {
		if (sizeof(buffer) - used < BC_SAFE_PIECE_MAX) {
			fwrite(buffer, 1, used, out);
			used = 0;
		}
		size_t consumed = bc_safe_piece(buffer + used, text, left, true);
		used += strlen(buffer + used);
		text += consumed;
		left -= consumed;
	}
	fwrite(buffer, 1, used, out);
}
