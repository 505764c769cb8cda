#include "formats/base/number.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "formats/base/fast_parse.h"

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
