#include "formats/base/fail.h"

#include <stdarg.h>
#include <stdio.h>

bool bc_fail(char *err, size_t errlen, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(err, errlen, format, args);
	va_end(args);
	return false;
}
