/* Messages that fit their buffer, numbers in texts, and times. A message that is too long loses the
 * middle of its longest words, not its end: the end has the reason. */
#include "formats/base/text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "formats/base/fast_text.h"
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

/* ---- numbers */

/* clang-format off */
#define NO4    99, 99, 99, 99
#define NO16   NO4, NO4, NO4, NO4
#define DIGITS 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 99, 99, NO4
#define A_TO_F 99, 10, 11, 12, 13, 14, 15, 99, NO4, NO4

const uint8_t bc_hex_value[256] = {
	NO16, NO16, NO16, DIGITS,
	A_TO_F, NO16, A_TO_F, NO16,
	NO16, NO16, NO16, NO16,
	NO16, NO16, NO16, NO16,
};
/* clang-format on */

bool bc_number_read_start(uint64_t *value, const char *text, const char **rest)
{
	char *end;

	errno = 0;
	unsigned long long n = strtoull(text, &end, 10);
	*value = n;
	*rest = end;
	return isdigit((unsigned char)text[0]) && errno == 0;
}

bool bc_number_read(uint64_t *value, const char *text)
{
	const char *rest;

	return bc_number_read_start(value, text, &rest) && *rest == '\0';
}

bool bc_number_read_range(uint64_t *first, uint64_t *last, const char *text)
{
	const char *rest = text;

	*first = 0;
	*last = UINT64_MAX;
	if (*text != '-' && !bc_number_read_start(first, text, &rest))
		return false;
	if (*rest == '\0')
		*last = *first;
	else if (*rest == '-' && rest[1] != '\0')
		return bc_number_read(last, rest + 1);
	return *rest == '\0' || (*rest == '-' && rest != text);
}

const char *bc_hex_read(const char *at, const char *end, uint64_t *value)
{
	if (end - at > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
		at += 2;
	const char *first = at;
	*value = 0;
	for (; at != end && bc_hex_value[(uint8_t)*at] <= 15; at++) {
		if (*value >> 60 != 0)
			return NULL;
		*value = *value << 4 | bc_hex_value[(uint8_t)*at];
	}
	return at != first ? at : NULL;
}

const char *bc_number_group(char out[BC_GROUPED_MAX], uint64_t number)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%" PRIu64, number);
	char *p = out;

	for (int i = 0; i < n; i++) {
		if (i != 0 && (n - i) % 3 == 0)
			*p++ = ',';
		*p++ = digits[i];
	}
	*p = '\0';
	return out;
}

/* ---- times */

void bc_rfc3339_write(char out[BC_RFC3339_BYTES], int64_t ns)
{
	int fraction = (int)(ns % 1000000000);
	size_t n;

	if (fraction < 0)
		fraction += 1000000000;
	bc_rfc3339_write_seconds(out, ns);
	n = strlen(out) - 1;
	snprintf(out + n, BC_RFC3339_BYTES - n, ".%09dZ", fraction);
}

void bc_time_row_advance(struct bc_time_row *row, int64_t ns)
{
	char text[BC_RFC3339_BYTES];
	int64_t fraction = ns % 1000000000;

	/* The second of the lowest times has no number in ns: it wraps, and so does the sum. */
	row->second_ns = (int64_t)((uint64_t)ns - (uint64_t)fraction -
				   (fraction < 0 ? UINT64_C(1000000000) : 0));
	bc_rfc3339_write_seconds(text, ns);
	text[sizeof(row->text) - 1] = '.'; /* over the Z: all years have four digits */
	memcpy(row->text, text, sizeof(row->text));
}

void bc_rfc3339_write_seconds(char out[BC_RFC3339_BYTES], int64_t ns)
{
	time_t seconds = (time_t)(ns / 1000000000 - (ns % 1000000000 < 0));
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(out, BC_RFC3339_BYTES, "%Y-%m-%dT%H:%M:%SZ", &tm);
}
