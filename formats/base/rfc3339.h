/* Time stamps in the format of RFC 3339, in UTC. */
#ifndef BC_FORMATS_BASE_RFC3339_H
#define BC_FORMATS_BASE_RFC3339_H

#include <stdint.h>

#define BC_RFC3339_BYTES \
	40 /* "2026-01-31T12:00:00.000000000Z" and any year, with the terminating zero */

/* `ns` is the time since the Unix epoch; it may be negative. */
void bc_rfc3339_write(char out[BC_RFC3339_BYTES], int64_t ns);

/* Without a fraction, rounded down. */
void bc_rfc3339_write_seconds(char out[BC_RFC3339_BYTES], int64_t ns);

#endif
