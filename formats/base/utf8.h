/* UTF-8 (RFC 3629) checks and repair. Text from devices, files and clients may be invalid; our
 * output is always valid UTF-8. */
#ifndef BC_FORMATS_BASE_UTF8_H
#define BC_FORMATS_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length of the UTF-8 sequence at `at`, of which `left` bytes may be read; 0: invalid or cut.
 */
uint32_t bc_utf8_bytes(const uint8_t *at, size_t left);

/* The code point of a valid sequence of `bytes` bytes. */
uint32_t bc_utf8_code(const uint8_t *at, uint32_t bytes);

/* True if a character must not be sent to a terminal or log: a control character, or an invisible
 * one that changes the direction or joining of the text around it. */
bool bc_utf8_is_unsafe(uint32_t code);

/* True if the whole text is valid. */
bool bc_utf8_is_valid(const char *text, size_t bytes);

/* The length of the longest prefix of `text` of at most `max` bytes that cuts no character. */
size_t bc_utf8_fit(const char *text, size_t max);

/* Returns a valid copy, which the caller frees. Each invalid byte becomes the character with that
 * number, U+0080 .. U+00FF, as in ndjson. Returns NULL if out of memory. */
char *bc_utf8_repair(const char *text);

/* A byte-order mark at the start of a text says that it is UTF-8. It is not part of the text. */
#define BC_BOM_BYTES 3u

static inline bool bc_starts_with_bom(const uint8_t *text, size_t bytes)
{
	return bytes >= BC_BOM_BYTES && text[0] == 0xEF && text[1] == 0xBB && text[2] == 0xBF;
}

#endif
