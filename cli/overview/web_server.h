/* The HTTP server of `buscap web`: one thread per connection, GET only. docs/web.md lists the
 * paths. */
#ifndef BC_CLI_OVERVIEW_WEB_SERVER_H
#define BC_CLI_OVERVIEW_WEB_SERVER_H

#include "cli/overview/web_data.h"
#include "cli/overview/web_feed.h"
#include "cli/overview/web_guard.h"
#include "cli/term/console.h"
#include "formats/base/must_check.h"

/* More connections are closed at once. */
#define BC_WEB_CONNECTIONS 64u

/* A connection is closed when the client neither sends nor reads for this long, or has not sent a
 * complete head this long after it connected or read the previous response. */
#define BC_WEB_TIMEOUT_S 10u

/* The time for reading the files for one response. */
#define BC_WEB_READ_S 60u

/* A response has at most this many bytes, and all that are being sent together. */
#define BC_WEB_RESPONSE_BYTES  (16u << 20)
#define BC_WEB_RESPONSES_BYTES (64u << 20)

/* The time for the daemon's history. */
#define BC_WEB_HISTORY_MS 2000

/* Searches at a time. */
#define BC_WEB_SEARCHES 4u

struct bc_web_server;

struct bc_web_server_options {
	const struct bc_console *console;
	const char *socket; /* of the daemon, as for bc_client_open() */
	struct bc_web_guard guard;
	struct bc_web_data *data;
	struct bc_web_feed *feed;
	const char *page; /* the document */
	size_t page_bytes;
	const struct bc_name_map *names; /* for regions in searches */
};

/* Loads the library for HTTP, before the first server starts. Prints an error if that fails. */
enum bc_exit bc_web_server_load(const struct bc_console *console) BC_MUST_CHECK;

/* Serves connections to `listen_fd`, which the server closes in the end, also if this fails. The
 * options are copied; what they point to must outlive the server. Returns 0 or a negative errno. */
int bc_web_server_start(struct bc_web_server **server, int listen_fd,
	const struct bc_web_server_options *options) BC_MUST_CHECK;

/* Closes connections whose heads are late. Call it about once a second. */
void bc_web_server_poll(struct bc_web_server *server);

/* Cuts all responses off and waits for their threads. NULL is allowed. */
void bc_web_server_stop(struct bc_web_server *server);

#endif
