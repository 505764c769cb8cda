#include "formats/base/fail.h"

#include <stdio.h>
#include <string.h>

#include "formats/base/utf8.h"

/* A word is shortened to no less, "..." included. */
#define WORD_MIN 40u

#define DOTS "..."

/* Returns the longest word, and its length in *bytes. */
static char *longest_word(char *text, size_t *bytes)
{
	char *longest = text;

	*bytes = 0;
	while (*text != '\0') {
		size_t n = strcspn(text, " ");
		if (n > *bytes) {
			longest = text;
			*bytes = n;
		}
		text += n + (text[n] == ' ');
	}
	return longest;
}

/* Replaces the middle of the first `bytes` bytes, so that at most `keep` are left. The end of a
 * path says more than its start. Returns by how much the text became shorter. */
static size_t cut_middle(char *word, size_t bytes, size_t keep)
{
	size_t dots = keep < strlen(DOTS) ? keep : strlen(DOTS);
	size_t head = bc_utf8_fit(word, (keep - dots) / 3);
	size_t tail = keep - dots - head;

	while (tail != 0 && ((unsigned char)word[bytes - tail] & 0xC0) == 0x80)
		tail--;
	memcpy(word + head, DOTS, dots);
	memmove(word + head + dots, word + bytes - tail, strlen(word + bytes) + tail + 1);
	return bytes - head - dots - tail;
}

void bc_shorten(char *text, size_t max)
{
	size_t length = strlen(text);
	size_t bytes;

	while (length > max) {
		size_t excess = length - max;
		char *word = longest_word(text, &bytes);
		if (bytes > WORD_MIN)
			length -= cut_middle(
				word, bytes, bytes > WORD_MIN + excess ? bytes - excess : WORD_MIN);
		else
			length -= cut_middle(text, length, max);
	}
}

void bc_vmessage(char *out, size_t size, const char *format, va_list args)
{
	char text[BC_MESSAGE_MAX];
	va_list again;

	if (size == 0)
		return;
	va_copy(again, args);
	int n = vsnprintf(out, size, format, args);
	if (n >= 0 && (size_t)n >= size) {
		vsnprintf(text, sizeof(text), format, again);
		bc_shorten(text, size - 1);
		memcpy(out, text, strlen(text) + 1);
	}
	va_end(again);
}

void bc_message(char *out, size_t size, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	bc_vmessage(out, size, format, args);
	va_end(args);
}

bool bc_fail(char *err, size_t errlen, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	bc_vmessage(err, errlen, format, args);
	va_end(args);
	return false;
}
