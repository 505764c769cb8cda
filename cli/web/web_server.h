/* The HTTP server of `buscap web`. docs/web.md lists its paths and limits.
 *
 * It decides which requests are served: only those with the token of the link that were sent
 * neither by a script of another web site nor to another name of this host. There are no cookies:
 * browsers send a host's cookies to all of its ports, and so to servers of other users. */
#ifndef BC_CLI_WEB_WEB_SERVER_H
#define BC_CLI_WEB_WEB_SERVER_H

#include "cli/term/console.h"
#include "cli/web/web_data.h"
#include "cli/web/web_feed.h"
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

/* What a request has; NULL: absent. */
struct bc_web_credentials {
	const char *host;
	const char *origin;
	const char *fetch_site; /* Sec-Fetch-Site */
	const char *fetch_dest; /* Sec-Fetch-Dest */
	const char *token;      /* in the query */
};

bool bc_web_guard_allows(
	const struct bc_web_guard *guard, const struct bc_web_credentials *credentials);

struct bc_web_server;

struct bc_web_server_options {
	const struct bc_console *console;
	const char *socket; /* of the daemon, as for bc_client_open() */
	struct bc_web_guard guard;
	struct bc_web_data *data;
	struct bc_web_feed *feed;
	const struct bc_name_map *names; /* for regions in searches */
};

/* Starts to serve connections to `listen_fd`, which is the caller's, after bc_server_load(). The
 * options are copied; what they point to must outlive the server. Returns 0 or a negative errno. */
int bc_web_server_start(struct bc_web_server **server, int listen_fd,
	const struct bc_web_server_options *options) BC_MUST_CHECK;

/* Serves until `interrupt_fd` is readable. */
void bc_web_server_run(struct bc_web_server *server, int interrupt_fd);

/* Stops the requests that are being worked on, and closes all connections. */
void bc_web_server_close(struct bc_web_server *server);

#endif
