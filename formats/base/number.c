#include "formats/base/number.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

bool bc_number_read(uint64_t *value, const char *text)
{
	char *end;

	errno = 0;
	unsigned long long n = strtoull(text, &end, 10);
	*value = n;
	return isdigit((unsigned char)text[0]) && *end == '\0' && errno == 0;
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
