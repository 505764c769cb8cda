#include "formats/base/utf8.h"

#include <stdlib.h>
#include <string.h>

uint32_t bc_utf8_bytes(const uint8_t *at, size_t left)
{
	if (left == 0)
		return 0;
	uint8_t first = at[0];
	uint32_t n = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
	uint8_t low = 0x80;
	uint8_t high = 0xBF;

	if (first < 0x80)
		return 1;
	if (first < 0xC2 || first > 0xF4 || n > left)
		return 0;
	if (first == 0xE0)
		low = 0xA0; /* lower codes have a shorter sequence */
	if (first == 0xED)
		high = 0x9F; /* higher codes are surrogates */
	if (first == 0xF0)
		low = 0x90;
	if (first == 0xF4)
		high = 0x8F; /* higher codes are above U+10FFFF */
	if (at[1] < low || at[1] > high)
		return 0;
	for (uint32_t i = 2; i < n; i++)
		if (at[i] >> 6 != 2)
			return 0;
	return n;
}

uint32_t bc_utf8_code(const uint8_t *at, uint32_t bytes)
{
	uint32_t code = bytes == 1 ? at[0] : at[0] & (0xFFu >> (bytes + 1));

	for (uint32_t i = 1; i < bytes; i++)
		code = code << 6 | (at[i] & 0x3F);
	return code;
}

bool bc_utf8_is_unsafe(uint32_t code)
{
	return code < 0x20 || (code >= 0x7F && code <= 0x9F) ||
	       (code >= 0x200B && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) ||
	       (code >= 0x2060 && code <= 0x206F) || code == 0xFEFF;
}

bool bc_utf8_is_valid(const char *text, size_t bytes)
{
	const uint8_t *at = (const uint8_t *)text;
	uint32_t n;

	for (; bytes != 0; at += n, bytes -= n) {
		n = bc_utf8_bytes(at, bytes);
		if (n == 0)
			return false;
	}
	return true;
}

size_t bc_utf8_fit(const char *text, size_t max)
{
	size_t n = strnlen(text, max + 1);

	if (n <= max)
		return n;
	for (n = max; n > 0 && ((uint8_t)text[n] >> 6) == 2; n--)
		;
	return n;
}

char *bc_utf8_repair(const char *text)
{
	size_t left = strlen(text);
	const uint8_t *at = (const uint8_t *)text;
	char *repaired = malloc(2 * left + 1);
	char *out = repaired;
	uint32_t n;

	if (repaired == NULL)
		return NULL;
	for (; left != 0; at += n, left -= n) {
		n = bc_utf8_bytes(at, left);
		if (n != 0) {
			out = mempcpy(out, at, n);
			continue;
		}
		*out++ = (char)(0xC0 | *at >> 6);
		*out++ = (char)(0x80 | (*at & 0x3F));
		n = 1;
	}
	*out = '\0';
	return repaired;
}
