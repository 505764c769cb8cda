#include "formats/base/rfc3339.h"

#include <stdio.h>
#include <time.h>

void bc_rfc3339_write(char out[BC_RFC3339_BYTES], int64_t ns)
{
	int64_t fraction = ns % 1000000000;
	time_t seconds = (time_t)(ns / 1000000000);
	struct tm tm;
	char whole[24];

	if (fraction < 0) {
		fraction += 1000000000;
		seconds--;
	}
	gmtime_r(&seconds, &tm);
	strftime(whole, sizeof(whole), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out, BC_RFC3339_BYTES, "%s.%09dZ", whole, (int)fraction);
}
