/* Messages in buffers of fixed size. A message has its object first and its reason last, and the
 * object may be a path of 4,095 bytes. So a message that is too long is never cut off at its end:
 * its longest words, usually paths, are shortened in the middle.
 *
 *     /srv/a/very/lo.../20260101T000000Z-1.byu.lz4: can't open: Permission denied */
#ifndef BC_FORMATS_BASE_FAIL_H
#define BC_FORMATS_BASE_FAIL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

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

#endif
