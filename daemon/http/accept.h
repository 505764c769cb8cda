/* Which of several types a client accepts: the Accept header (RFC 9110, 12.5.1). */
#ifndef BC_DAEMON_HTTP_ACCEPT_H
#define BC_DAEMON_HTTP_ACCEPT_H

#include <stdbool.h>

struct bc_acceptance {
	unsigned quality; /* 0: refused; 1,000: no other type is better */
	bool is_named;    /* not only by a wildcard */
};

/* Returns how welcome a type is, such as "text/plain". A range with another value of the parameter
 * `version` is another type; other parameters don't matter. Of the ranges that match, the most
 * specific one counts. Without a header (NULL), every type is accepted; invalid parts of it say
 * nothing. */
struct bc_acceptance bc_accept_find(const char *header, const char *type, const char *version);

#endif
