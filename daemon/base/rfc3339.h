/* Times of day as RFC 3339 writes them, in UTC with nanoseconds. */
#ifndef BC_DAEMON_BASE_RFC3339_H
#define BC_DAEMON_BASE_RFC3339_H

#include <stdint.h>

#define BC_RFC3339_BYTES 40 /* "2026-01-31T12:00:00.000000000Z" and any year, with its zero */

/* `ns` since the Unix epoch; it may lie before. */
void bc_rfc3339_write(char out[BC_RFC3339_BYTES], int64_t ns);

#endif
