/* How much of a trace: by time, by bytes of records, or all there is. */
#ifndef BC_DAEMON_BASE_TIME_OR_SIZE_H
#define BC_DAEMON_BASE_TIME_OR_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bc_length_unit { BC_LENGTH_NONE, BC_LENGTH_TIME, BC_LENGTH_BYTES, BC_LENGTH_ALL };

struct bc_length {
	enum bc_length_unit unit;
	uint64_t value; /* ns; or bytes of records, BC_RECORD_BYTES each; else 0 */
};

#define BC_LENGTH_TEXT_MAX 40

/* Reads "5s", "10ms", "2m" or a bare number of seconds; "16M", "64K", "1G" of bytes; or "all". "0"
 * is BC_LENGTH_NONE. On failure returns false with a sentence in `why`. */
bool bc_length_read(struct bc_length *length, const char *text, char *why, size_t why_room)
	__attribute__((warn_unused_result));

/* Writes it as bc_length_read() reads it; nothing at all is "0". */
void bc_length_print(char out[BC_LENGTH_TEXT_MAX], struct bc_length length);

#endif
