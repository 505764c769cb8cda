/* A length of trace: a time, a size of records, or everything. */
#ifndef BC_DAEMON_BASE_TIME_OR_SIZE_H
#define BC_DAEMON_BASE_TIME_OR_SIZE_H

#include "formats/base/must_check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bc_time_or_size_unit {
	BC_TIME_OR_SIZE_NONE,
	BC_TIME_OR_SIZE_TIME,
	BC_TIME_OR_SIZE_BYTES,
	BC_TIME_OR_SIZE_ALL
};

struct bc_time_or_size {
	enum bc_time_or_size_unit unit;
	uint64_t value; /* ns, or bytes of records (BC_RECORD_BYTES each), else 0 */
};

#define BC_TIME_OR_SIZE_TEXT_MAX 40

/* Parses a time ("5s", "10ms", "2m", or a number of seconds), a size ("16M", "64K", "1G"), or
 * "all". "0" is BC_TIME_OR_SIZE_NONE. On failure returns false with a phrase in `err`. */
bool bc_time_or_size_read(
	struct bc_time_or_size *length, const char *text, char *err, size_t errlen) BC_MUST_CHECK;

/* Formats a length as bc_time_or_size_read() parses it; BC_TIME_OR_SIZE_NONE is "0". */
void bc_time_or_size_print(char out[BC_TIME_OR_SIZE_TEXT_MAX], struct bc_time_or_size length);

#endif
