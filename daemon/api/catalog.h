/* What is recorded in the output directory, for GET /v1/recordings: read on libuv's pool, one job
 * at a time however many ask, so that neither the loop nor the disk is kept busy by them.
 *
 *     bc_catalog_open()
 *     bc_catalog_list() ...
 *     bc_catalog_close()
 *
 * Calls and callbacks are of the loop's thread. */
#ifndef BC_DAEMON_API_CATALOG_H
#define BC_DAEMON_API_CATALOG_H

#include "formats/base/must_check.h"

#include <jansson.h>
#include <stdint.h>
#include <uv.h>

struct bc_catalog;

/* `dir` is copied. Returns 0 or -ENOMEM. */
int bc_catalog_open(struct bc_catalog **catalog, uv_loop_t *loop, const char *dir) BC_MUST_CHECK;

/* Takes `rows`, an array as bc_catalog_read() makes it, which is the callee's. NULL: the directory
 * can't be read, which was logged, or memory ran out, or the catalog is being closed. */
typedef void (*bc_catalog_cb)(void *context, json_t *rows);

/* Lists the directory as it is from now on. answer() is called once, never from within this call.
 * The recording under way is among the rows once it has a file, as a torn one: the caller knows
 * more of it. Returns 0, or -ENOMEM with nothing to come. */
int bc_catalog_list(
	struct bc_catalog *catalog, void *context, bc_catalog_cb answer) BC_MUST_CHECK;

/* To be called once a second, with bc_now_ns(): tells what was only counted of failures. */
void bc_catalog_poll(struct bc_catalog *catalog, uint64_t now_ns);

/* Older recordings of the last list that are not among its rows. */
uint64_t bc_catalog_omitted(const struct bc_catalog *catalog);

/* Whoever waits still is answered with NULL, from within. Memory goes when the job that runs
 * has ended. NULL is none. */
void bc_catalog_close(struct bc_catalog *catalog);

#endif
