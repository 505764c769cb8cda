/* Searches the recordings in the output directory for clients, one search at a time, on a thread
 * that gives way to everything else: it has the lowest priority, the idle class of I/O, and a
 * limited rate. Results are streamed as newline-delimited JSON:
 *
 *   {"number": N, ...}            a record: formats/search/hit_json.h
 *   {"damage": {...}}             part of a file that could not be searched
 *   {"end": {...}}                the last line; without it, the response was cut short
 *
 * A client that reads nothing for ten seconds loses its search, and so does one whose search takes
 * too long; its last line says so. If it does not read what is left either, it is disconnected when
 * another client needs its place.
 *
 * Memory: 64 KiB per search, and for the one that runs 4 MiB and 500 bytes per chunk of a segment.
 * Loop thread only. */
#ifndef BC_DAEMON_SEARCH_SEARCHER_H
#define BC_DAEMON_SEARCH_SEARCHER_H

#include <stdint.h>
#include <uv.h>

#include "formats/base/must_check.h"
#include "formats/search/search.h"
#include "formats/segment/segment_name.h"

#define BC_SEARCHES_MAX    8u /* running and waiting */
#define BC_SEARCHES_OTHERS 6u /* of them, of users other than the owner */

#define BC_SEARCH_LIMIT_NS  UINT64_C(60000000000)
#define BC_SEARCH_CLIENT_NS UINT64_C(10000000000)

struct bc_request;
struct bc_searcher;

/* Starts the thread. `dir` is copied. `bytes_per_s` may be 0: no limit. A search may take
 * `limit_ns`, and its client may read nothing for `client_ns`. Returns 0 or a negative errno. */
int bc_searcher_open(struct bc_searcher **searcher, uv_loop_t *loop, const char *dir,
	uint64_t bytes_per_s, uint64_t limit_ns, uint64_t client_ns) BC_MUST_CHECK;

/* The server must be closed first, which ends all searches. Memory is freed when the loop has
 * closed the handle. If the thread hangs in the disk for more than two seconds, it is left behind.
 * NULL is allowed. */
void bc_searcher_close(struct bc_searcher *searcher);

struct bc_searcher_request {
	struct bc_search_options options;    /* without marks */
	char recording[BC_RECORDING_ID_MAX]; /* only this one; empty: all */
	bool is_known;                       /* the recording exists; it may have no segments yet */
};

/* Responds to a request with the results of a search, or with a 404 when its turn comes and there
 * is no such recording. Returns 0; -EBUSY if BC_SEARCHES_MAX are waiting or running, or
 * BC_SEARCHES_OTHERS and the client is not the owner; or -ENOMEM. On failure the caller still has
 * to respond to the request. */
int bc_searcher_add(struct bc_searcher *searcher, struct bc_request *request,
	const struct bc_searcher_request *search) BC_MUST_CHECK;

#endif
