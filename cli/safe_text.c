#include "cli/safe_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "formats/utf8.h"

/* The length of the UTF-8 character at `p`, of which `n` bytes are there; 0 if it is none. */
static size_t character(const unsigned char *p, size_t n, uint32_t *code)
{
	uint32_t bytes = bc_utf8_bytes(p, n);

	*code = bytes != 0 ? bc_utf8_code(p, bytes) : 0;
	return bytes;
}

static bool is_control(uint32_t code)
{
	return code < 0x20 || (code >= 0x7F && code <= 0x9F);
}

#define PIECE_MAX 20u

/* The next piece of a text: what is to be written for it, up to 16 bytes and a zero. Returns how
 * many bytes of the text it is for. */
static size_t next_piece(char out[PIECE_MAX], const char *text, size_t n, bool is_escaped)
{
	const unsigned char *p = (const unsigned char *)text;
	uint32_t code = 0;
	size_t length = character(p, n, &code);
	size_t used = 0;

	if (length != 0 && !bc_utf8_is_harmful(code) && (code != '\\' || is_escaped)) {
		memcpy(out, text, length);
		out[length] = '\0';
		return length;
	}
	length = length != 0 ? length : 1;
	for (size_t i = 0; i < length; i++)
		used += (size_t)snprintf(out + used, PIECE_MAX - used, "\\x%02x", p[i]);
	return length;
}

const char *bc_safe_text(char *out, size_t room, const char *text)
{
	size_t n = text != NULL ? strlen(text) : 0;
	size_t used = 0;
	char piece[PIECE_MAX];

	while (n != 0) {
		size_t took = next_piece(piece, text, n, false);
		size_t bytes = strlen(piece);
		if (bytes >= room - used)
			break;
		memcpy(out + used, piece, bytes);
		used += bytes;
		text += took;
		n -= took;
	}
	out[used] = '\0';
	return out;
}

static void write_pieces(struct bc_output *output, const char *text, size_t bytes, bool is_escaped)
{
	char piece[PIECE_MAX];

	while (bytes != 0) {
		size_t took = next_piece(piece, text, bytes, is_escaped);
		bc_output_text(output, piece, strlen(piece));
		text += took;
		bytes -= took;
	}
}

void bc_safe_write_bytes(struct bc_output *output, const char *text, size_t bytes)
{
	write_pieces(output, text, bytes, false);
}

void bc_safe_write(struct bc_output *output, const char *text)
{
	write_pieces(output, text, text != NULL ? strlen(text) : 0, false);
}

void bc_safe_write_escaped(struct bc_output *output, const char *text)
{
	write_pieces(output, text, strlen(text), true);
}

void bc_safe_print_escaped(FILE *out, const char *text)
{
	size_t left = strlen(text);
	char buffer[1024] = "";
	size_t used = 0;

	/* Standard error has no buffer of its own: a message is to be one write. */
	while (left != 0) {
		if (sizeof(buffer) - used < PIECE_MAX) {
			fwrite(buffer, 1, used, out);
			used = 0;
		}
		size_t took = next_piece(buffer + used, text, left, true);
		used += strlen(buffer + used);
		text += took;
		left -= took;
	}
	fwrite(buffer, 1, used, out);
}

void bc_safe_json(struct bc_output *output, const char *json, size_t bytes)
{
	bool is_string = false;
	bool is_escaped = false;

	for (size_t took; bytes != 0; json += took, bytes -= took) {
		uint32_t code = 0;
		took = character((const unsigned char *)json, bytes, &code);
		if (!is_string && (took == 0 || is_control(code))) {
			took = took != 0 ? took : 1;
			bc_output_text(output, " ", 1);
			continue;
		}
		if (took == 0)
			bc_output_text(output, "\\ufffd", 6);
		else if (is_control(code))
			bc_output_format(output, "\\u%04x", (unsigned)code);
		else
			bc_output_text(output, json, took);
		took = took != 0 ? took : 1;
		if (*json == '"' && !is_escaped)
			is_string = !is_string;
		is_escaped = is_string && *json == '\\' && !is_escaped;
	}
	bc_output_text(output, "\n", 1);
}
