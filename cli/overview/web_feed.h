/* What the daemon does now, for all pages: one thread reads its events and its mix, and keeps the
 * last of each. It connects only while a page is watching, and again when the connection is lost.
 *
 * Functions may be called by any thread, except open and close. */
#ifndef BC_CLI_OVERVIEW_WEB_FEED_H
#define BC_CLI_OVERVIEW_WEB_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/term/console.h"
#include "formats/base/must_check.h"
#include "formats/trace/name_map.h"

/* Events that are kept, and the bytes of their text. */
#define BC_WEB_FEED_EVENTS 1000u
#define BC_WEB_FEED_BYTES  (4u << 20)

/* A page is watching if it asked within this time. */
#define BC_WEB_FEED_WATCH_NS UINT64_C(10000000000)

struct bc_web_feed;

struct bc_web_feed_options {
	const struct bc_console *console;
	const char *socket;              /* as for bc_client_open() */
	bool is_expected;                /* false: without a daemon there is simply no live view */
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
 * `state` is "connected"; "disconnected", with the reason in `error`, and no status and mix; or
 * "none". `status` is the last event of that name, `events` are the others after number `since`
 * that are still kept; `seq` is the number of the last one. Waits up to two seconds for the daemon
 * if no page was watching. */
char *bc_web_feed_write(struct bc_web_feed *feed, uint64_t since);

#endif
