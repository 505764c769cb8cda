/* The memory that samples pass through, all of it taken at the start: slots for chunks, outputs for
 * what the encoder makes of them, both with room for raw bytes where those are kept; and the queues
 * they go round in. */
#ifndef BC_DAEMON_INGEST_POOL_H
#define BC_DAEMON_INGEST_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/queue.h"
#include "daemon/store/recording_info.h"
#include "formats/base/must_check.h"

struct bc_pool {
	unsigned slots_count;
	unsigned outputs_count;
	struct bc_slot *slots;
	struct bc_encoded *outputs;
	struct bc_raw_block *raw_blocks; /* one a slot; NULL where raw bytes aren't kept */
	uint8_t *raw_outputs;            /* BC_RAW_ENCODED_MAX an output, likewise */
	struct bc_queue free_slots;
	struct bc_queue chunks; /* for the encoder */
	struct bc_queue free_outputs;
	struct bc_queue encoded; /* for the writer */
};

/* The least memory that so many workers can do with. */
uint64_t bc_pool_min_bytes(unsigned workers, bool keeps_raw);

/* Takes so much memory, no less than that, into a pool of zeros. Returns 0 or -ENOMEM; free it
 * either way. */
int bc_pool_init(
	struct bc_pool *pool, uint64_t bytes, unsigned workers, bool keeps_raw) BC_MUST_CHECK;
void bc_pool_free(struct bc_pool *pool);

#endif
