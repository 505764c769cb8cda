/* Lists the recordings in the output directory, for GET /v1/recordings. Reads the directory on
 * libuv's thread pool, one job at a time for any number of requests, so that they block neither the
 * loop nor the disk.
 *
 *     bc_catalog_open()
 *     bc_catalog_list() ...
 *     bc_catalog_close()
 *
 * Call from the loop thread; callbacks are called there too. */
#ifndef BC_DAEMON_API_CATALOG_H
#define BC_DAEMON_API_CATALOG_H

#include "formats/base/must_check.h"

#include <jansson.h>
#include <stdint.h>
#include <uv.h>

struct bc_catalog;

/* `dir` is copied. Returns 0 or -ENOMEM. */
int bc_catalog_open(struct bc_catalog **catalog, uv_loop_t *loop, const char *dir) BC_MUST_CHECK;

/* Receives the result of bc_catalog_read() and owns it. NULL: the directory cannot be read, which
 * has been logged; out of memory; or the catalog is closing. */
typedef void (*bc_catalog_cb)(void *context, json_t *rows);

/* Lists the directory; the result is not older than this call. cb() is called once, never before
 * this returns. The current recording is listed as open once it has a file; the caller has to
 * correct this. Returns 0, or -ENOMEM, and then cb() is not called. */
int bc_catalog_list(struct bc_catalog *catalog, void *context, bc_catalog_cb cb) BC_MUST_CHECK;

/* Call once a second with bc_now_ns(): logs suppressed error messages. */
void bc_catalog_poll(struct bc_catalog *catalog, uint64_t now_ns);

/* Number of older recordings that the last list omitted. */
uint64_t bc_catalog_omitted(const struct bc_catalog *catalog);

/* Calls all pending callbacks with NULL before it returns. Memory is freed when the running job has
 * ended. NULL is allowed. */
void bc_catalog_close(struct bc_catalog *catalog);

#endif
