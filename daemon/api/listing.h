/* Pages of the list of recordings, for GET /v1/recordings. The catalogue
 * knows which recordings exist; their contents are read on libuv's thread pool, one page at a time,
 * so that any number of requests blocks neither the loop nor the disk.
 *
 *     bc_listing_open()
 *     bc_listing_page() ...
 *     bc_listing_close()
 *
 * Call from the loop thread; callbacks are called there too. */
#ifndef BC_DAEMON_API_LISTING_H
#define BC_DAEMON_API_LISTING_H

#include <jansson.h>
#include <stdint.h>
#include <uv.h>

#include "formats/base/must_check.h"
#include "formats/segment/segment_name.h"

struct bc_catalogue;
struct bc_listing;

/* `dir` is copied; the catalogue must outlive the loop. Returns 0 or -ENOMEM. */
int bc_listing_open(struct bc_listing **listing, uv_loop_t *loop, const char *dir,
	struct bc_catalogue *catalogue) BC_MUST_CHECK;

#define BC_PAGE_RECORDINGS     200u
#define BC_PAGE_RECORDINGS_MAX 1000u

struct bc_page {
	char before[BC_RECORDING_ID_MAX]; /* only recordings older than this one; or empty */
	uint32_t limit;                   /* 1 to BC_PAGE_RECORDINGS_MAX */
};

/* Receives an array of recordings (docs/api.md), oldest first, and the number of recordings before
 * them. The callee owns the array. NULL: the directory could not be read, which has been logged;
 * out of memory; or the listing is closing. */
typedef void (*bc_page_cb)(void *context, json_t *rows, uint64_t omitted);

/* Reads a page. cb() is called once, never before this returns. The current recording is listed as
 * open once it has a file; the caller has to correct this. Returns 0, or -ENOMEM without cb(). */
int bc_listing_page(struct bc_listing *listing, const struct bc_page *page, void *context,
	bc_page_cb cb) BC_MUST_CHECK;

/* Calls all pending callbacks with NULL before it returns. Memory is freed when the running job has
 * ended. NULL is allowed. */
void bc_listing_close(struct bc_listing *listing);

#endif
