#include "formats/base/rfc3339.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

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

void bc_rfc3339_write_seconds(char out[BC_RFC3339_BYTES], int64_t ns)
{
	time_t seconds = (time_t)(ns / 1000000000 - (ns % 1000000000 < 0));
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(out, BC_RFC3339_BYTES, "%Y-%m-%dT%H:%M:%SZ", &tm);
}
