/* What the daemon does now, for all pages: a thread reads its events and mix, and keeps the last.
 * It connects only while a page is watching, and reconnects when the connection is lost.
 *
 * bc_web_feed_write() may be called by any thread. */
#ifndef BC_CLI_WEB_WEB_FEED_H
#define BC_CLI_WEB_WEB_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/term/console.h"
#include "formats/base/must_check.h"
#include "formats/trace/name_map.h"

/* Events that are kept, and bytes of their text. */
#define BC_WEB_FEED_EVENTS 1000u
#define BC_WEB_FEED_BYTES  (4u << 20)

/* A page is watching if it asked within this time. */
#define BC_WEB_FEED_WATCH_NS UINT64_C(10000000000)

struct bc_web_feed;

struct bc_web_feed_options {
	const struct bc_console *console;
	const char *socket; /* as for bc_client_open() */
	bool is_expected;   /* a daemon; else the state is "none" until there was one */
	const struct bc_name_map *names; /* adds names to the pages of the mix; may be NULL */
};

/* Starts the thread. The options must outlive the feed. Returns 0 or a negative errno. */
int bc_web_feed_open(
	struct bc_web_feed **feed, const struct bc_web_feed_options *options) BC_MUST_CHECK;
void bc_web_feed_close(struct bc_web_feed *feed);

/* Returns an object as text, which the caller frees; NULL if out of memory:
 *
 *   {"state":"connected","error":null,"seq":12,"status":{...},"mix":{...},"events":[...]}
 *
 * `state` is "connected"; "disconnected", with the reason in `error` and without status and mix; or
 * "none". `status` is the last event of this name. `events` are the other events after number
 * `since` that are still kept; `seq` is the number of the last event. Waits up to two seconds for
 * the daemon if no page was watching. */
char *bc_web_feed_write(struct bc_web_feed *feed, uint64_t since);

#endif
