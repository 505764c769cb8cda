#include "formats/base/number.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

bool bc_number_read(uint64_t *value, const char *text)
{
	char *end;

	errno = 0;
	unsigned long long n = strtoull(text, &end, 10);
	*value = n;
	return isdigit((unsigned char)text[0]) && *end == '\0' && errno == 0;
}
