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

uint64_t bc_pool_min_bytes(unsigned workers)
{
	return outputs_for(workers) * sizeof(struct bc_encoded) +
	       SLOTS_MIN * sizeof(struct bc_slot);
}

void bc_pool_free(struct bc_pool *p)
{
	free(p->slots);
	free(p->outputs);
	bc_queue_destroy(&p->free_slots);
	bc_queue_destroy(&p->chunks);
	bc_queue_destroy(&p->free_outputs);
	bc_queue_destroy(&p->encoded);
}

int bc_pool_init(struct bc_pool *p, uint64_t bytes, unsigned workers)
{
	p->outputs_count = outputs_for(workers);
	uint64_t left = bytes - p->outputs_count * sizeof(*p->outputs);
	p->slots_count = (unsigned)(left / sizeof(*p->slots));
	/* Untouched memory costs nothing; the queue returns recently used slots first. */
	p->slots = malloc(p->slots_count * sizeof(*p->slots));
	p->outputs = malloc(p->outputs_count * sizeof(*p->outputs));
	if (p->slots == NULL || p->outputs == NULL ||
		bc_queue_init(&p->free_slots, p->slots_count) != 0 ||
		bc_queue_init(&p->chunks, p->slots_count) != 0 ||
		bc_queue_init(&p->free_outputs, p->outputs_count) != 0 ||
		bc_queue_init(&p->encoded, p->outputs_count) != 0)
		return -ENOMEM;
	for (unsigned i = 0; i < p->slots_count; i++)
		bc_queue_push(&p->free_slots, &p->slots[i]);
	for (unsigned i = 0; i < p->outputs_count; i++)
		bc_queue_push(&p->free_outputs, &p->outputs[i]);
	return 0;
}
