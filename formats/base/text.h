/* Text: messages, numbers and times.
 *
 * Messages are written to buffers of fixed size. A message has its object first and its reason
 * last, and the object may be a path of 4,095 bytes. So a message that is too long is never cut off
 * at its end: its longest words, usually paths, are shortened in the middle.
 *
 *     /srv/a/very/lo.../20260101T000000Z-1.byu.lz4: can't open: Permission denied */
#ifndef BC_FORMATS_BASE_TEXT_H
#define BC_FORMATS_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"

/* Longest text that is formatted before it is shortened, with its zero: three paths. */
#define BC_MESSAGE_MAX 16384u

/* Shortens text, in place, to at most `max` bytes: first its longest words, to no less than about
 * 40 bytes each, then the whole text in its middle. Does not split UTF-8 characters. */
void bc_shorten(char *text, size_t max);

/* Like snprintf(), but shortens a text that has more than size - 1 bytes. */
void bc_message(char *out, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void bc_vmessage(char *out, size_t size, const char *format, va_list args)
	__attribute__((format(printf, 3, 0)));

/* The end of a check: writes a message like bc_message() and returns false.
 *
 *     return is_good || bc_fail(err, errlen, "%s: not a size", text); */
bool bc_fail(char *err, size_t errlen, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- numbers */

/* Reads a decimal integer, which is all of the text. False if it is not one, or does not fit. */
bool bc_number_read(uint64_t *value, const char *text) BC_MUST_CHECK;

/* Reads one at the start of a text, and sets *rest to what follows it. */
bool bc_number_read_start(uint64_t *value, const char *text, const char **rest) BC_MUST_CHECK;

/* Reads "100-199", "100-", "-199" or "100". False for other text. *last may be below *first. */
bool bc_number_read_range(uint64_t *first, uint64_t *last, const char *text) BC_MUST_CHECK;

/* Reads hexadecimal digits, with an optional "0x". Returns the position after them; NULL if there
 * are none, or more than fit in 64 bits. */
const char *bc_hex_read(const char *at, const char *end, uint64_t *value);

/* Returns the plural suffix: "1 chunk", "2 chunks". */
static inline const char *bc_plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* Writes a number with commas: "1,234,567". Returns `out`. */
#define BC_GROUPED_MAX 28
const char *bc_number_group(char out[BC_GROUPED_MAX], uint64_t n);

/* The same, as an argument of a message: valid until the end of the block. */
#define BC_GROUPED(n) bc_number_group((char[BC_GROUPED_MAX]){""}, (n))

/* ---- times: RFC 3339, in UTC */

#define BC_RFC3339_BYTES \
	40 /* "2026-01-31T12:00:00.000000000Z" and any year, with the terminating zero */

/* `ns` is the time since the Unix epoch; it may be negative. */
void bc_rfc3339_write(char out[BC_RFC3339_BYTES], int64_t ns);

/* Without a fraction, rounded down. */
void bc_rfc3339_write_seconds(char out[BC_RFC3339_BYTES], int64_t ns);

#endif
