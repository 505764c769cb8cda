/* UTF-8, RFC 3629: what is of it and what isn't. Texts come from devices, files and clients; what
 * we print is always UTF-8. */
#ifndef BC_FORMATS_BASE_UTF8_H
#define BC_FORMATS_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length of the sequence for one character at `at`, of which `left` bytes may be read; 0 if
 * there is none. */
uint32_t bc_utf8_bytes(const uint8_t *at, size_t left);

/* The character that such a sequence of so many bytes is for. */
uint32_t bc_utf8_code(const uint8_t *at, uint32_t bytes);

/* Whether the character is not for a terminal or a log: a control, which would be obeyed, or one
 * that is seen by nobody but turns or joins what stands around it. */
bool bc_utf8_is_harmful(uint32_t code);

/* Whether all of the text is UTF-8. */
bool bc_utf8_is_valid(const char *text, size_t bytes);

/* The length of `text`, or how much of it fits into `most` bytes without a character cut in two. */
size_t bc_utf8_cut(const char *text, size_t most);

/* A copy in UTF-8, for the caller to free: a byte that belongs to no sequence becomes the character
 * of its number, U+0080 to U+00FF, as ndjson has it. NULL when memory ran out. */
char *bc_utf8_mend(const char *text);

#endif
