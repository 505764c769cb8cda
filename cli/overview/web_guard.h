/* Decides which requests are served: those that have the token of the link, and that neither
 * another web site nor another name of this host sent. There are no cookies: browsers send those of
 * a host to all its ports, and so to servers of other users. */
#ifndef BC_CLI_OVERVIEW_WEB_GUARD_H
#define BC_CLI_OVERVIEW_WEB_GUARD_H

#include <stdbool.h>

#include "formats/base/must_check.h"
#include "formats/base/tcp_address.h"

#define BC_WEB_TOKEN_TEXT 33 /* 128 random bits in hexadecimal, with the terminating zero */

struct bc_web_guard {
	union bc_tcp_address address; /* with the port that is in use */
	char token[BC_WEB_TOKEN_TEXT];
};

/* Makes a new token. Returns 0 or a negative errno. */
int bc_web_guard_init(
	struct bc_web_guard *guard, const union bc_tcp_address *address) BC_MUST_CHECK;

/* What a request has; NULL: nothing. */
struct bc_web_credentials {
	const char *host;
	const char *origin;
	const char *fetch_site; /* Sec-Fetch-Site */
	const char *token;      /* in the query */
};

bool bc_web_guard_allows(
	const struct bc_web_guard *guard, const struct bc_web_credentials *credentials);

#endif
