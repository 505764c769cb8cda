/* The end of a check: writes a message and returns false.
 *
 *     return is_good || bc_fail(err, errlen, "%s: not a size", text); */
#ifndef BC_FORMATS_BASE_FAIL_H
#define BC_FORMATS_BASE_FAIL_H

#include <stdbool.h>
#include <stddef.h>

/* Returns false, with the message in `err`, cut off if it is longer than errlen - 1 bytes. */
bool bc_fail(char *err, size_t errlen, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
