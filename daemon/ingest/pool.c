#include "daemon/ingest/pool.h"

#include <errno.h>
#include <stdlib.h>

/* One being filled, one being encoded, and one to continue with. */
#define SLOTS_MIN 3u

/* With fewer, one slow worker stalls the others: the writer needs its chunk first. */
#define OUTPUTS_PER_WORKER 2u

static unsigned outputs_for(unsigned workers)
{
	return workers * OUTPUTS_PER_WORKER;
}

static size_t slot_bytes(bool keeps_raw)
{
	return sizeof(struct bc_slot) + (keeps_raw ? sizeof(struct bc_raw_block) : 0);
}

static size_t output_bytes(bool keeps_raw)
{
	return sizeof(struct bc_encoded) + (keeps_raw ? BC_RAW_ENCODED_MAX : 0);
}

uint64_t bc_pool_min_bytes(unsigned workers, bool keeps_raw)
{
	return outputs_for(workers) * output_bytes(keeps_raw) + SLOTS_MIN * slot_bytes(keeps_raw);
}

void bc_pool_free(struct bc_pool *p)
{
	free(p->slots);
	free(p->outputs);
	free(p->raw_blocks);
	free(p->raw_outputs);
	bc_queue_destroy(&p->free_slots);
	bc_queue_destroy(&p->chunks);
	bc_queue_destroy(&p->free_outputs);
	bc_queue_destroy(&p->encoded);
}

static int alloc_raw(struct bc_pool *p)
{
	p->raw_blocks = malloc(p->slots_count * sizeof(*p->raw_blocks));
	p->raw_outputs = malloc((size_t)p->outputs_count * BC_RAW_ENCODED_MAX);
	return p->raw_blocks == NULL || p->raw_outputs == NULL ? -ENOMEM : 0;
}

int bc_pool_init(struct bc_pool *p, uint64_t bytes, unsigned workers, bool keeps_raw)
{
	p->outputs_count = outputs_for(workers);
	uint64_t left = bytes - p->outputs_count * output_bytes(keeps_raw);
	p->slots_count = (unsigned)(left / slot_bytes(keeps_raw));
	/* Untouched memory costs nothing; the queue returns recently used slots first. */
	p->slots = malloc(p->slots_count * sizeof(*p->slots));
	p->outputs = malloc(p->outputs_count * sizeof(*p->outputs));
	if (p->slots == NULL || p->outputs == NULL ||
		bc_queue_init(&p->free_slots, p->slots_count) != 0 ||
		bc_queue_init(&p->chunks, p->slots_count) != 0 ||
		bc_queue_init(&p->free_outputs, p->outputs_count) != 0 ||
		bc_queue_init(&p->encoded, p->outputs_count) != 0 ||
		(keeps_raw && alloc_raw(p) != 0))
		return -ENOMEM;
	for (unsigned i = 0; i < p->slots_count; i++) {
		p->slots[i].raw = keeps_raw ? &p->raw_blocks[i] : NULL;
		bc_queue_push(&p->free_slots, &p->slots[i]);
	}
	for (unsigned i = 0; i < p->outputs_count; i++) {
		size_t at = (size_t)i * BC_RAW_ENCODED_MAX;
		p->outputs[i].raw = keeps_raw ? p->raw_outputs + at : NULL;
		bc_queue_push(&p->free_outputs, &p->outputs[i]);
	}
	return 0;
}
