/* The pool: all memory on the sample path, allocated at startup, and the queues it circulates in.
 * Slots contain chunks, outputs contain encoded chunks.
 *
 * Allocating up front bounds the memory, and a recording cannot fail later because memory has run
 * out. Untouched pages cost nothing: free slots are reused newest first, so an idle or fast system
 * uses few of them, and those stay in the cache. */
#ifndef BC_DAEMON_INGEST_POOL_H
#define BC_DAEMON_INGEST_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/queue.h"
#include "daemon/ingest/slot.h"
#include "daemon/store/encoded.h"
#include "formats/base/must_check.h"

struct bc_pool {
	unsigned slots_count;
	unsigned outputs_count;
	struct bc_slot *slots;
	struct bc_encoded *outputs;
	struct bc_queue free_slots;
	struct bc_queue chunks; /* for the encoder */
	struct bc_queue free_outputs;
	struct bc_queue encoded; /* for the writer */
};

/* Returns the minimum memory for this many workers. */
uint64_t bc_pool_min_bytes(unsigned workers);

/* Allocates `bytes`, at least bc_pool_min_bytes(), into a pool that is all zero. Returns 0 or
 * -ENOMEM; free the pool in both cases. */
int bc_pool_init(struct bc_pool *pool, uint64_t bytes, unsigned workers) BC_MUST_CHECK;
void bc_pool_free(struct bc_pool *pool);

#endif
