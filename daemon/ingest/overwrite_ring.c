#include "daemon/ingest/overwrite_ring.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "formats/bus/chunk.h"

int bc_overwrite_ring_init(
	struct bc_overwrite_ring *r, const struct bc_overwrite_ring_limits *limits)
{
	*r = (struct bc_overwrite_ring){.limits = *limits};
	r->slots = calloc(limits->chunks, sizeof(struct bc_slot *));
	return r->slots == NULL ? -ENOMEM : 0;
}

void bc_overwrite_ring_free(struct bc_overwrite_ring *r)
{
	assert(r->count == 0);
	free(r->slots);
}

void bc_overwrite_ring_add(struct bc_overwrite_ring *r, struct bc_slot *slot)
{
	assert(r->count < r->limits.chunks);
	r->slots[(r->oldest + r->count++) % r->limits.chunks] = slot;
	r->records += slot->chunk.info.records;
}

struct bc_slot *bc_overwrite_ring_peek(const struct bc_overwrite_ring *r)
{
	return r->count != 0 ? r->slots[r->oldest] : NULL;
}

struct bc_slot *bc_overwrite_ring_pop(struct bc_overwrite_ring *r)
{
	struct bc_slot *slot = bc_overwrite_ring_peek(r);

	if (slot == NULL)
		return NULL;
	r->oldest = (r->oldest + 1) % r->limits.chunks;
	r->count--;
	r->records -= slot->chunk.info.records;
	return slot;
}

bool bc_overwrite_ring_is_over(
	const struct bc_overwrite_ring *r, uint64_t unfinished, uint64_t now_ns)
{
	const struct bc_slot *oldest = bc_overwrite_ring_peek(r);

	if (oldest == NULL)
		return false;
	if (r->count == r->limits.chunks)
		return true;
	uint64_t rest = r->records - oldest->chunk.info.records + unfinished;
	if (r->limits.bytes != 0 && rest * BC_RECORD_BYTES >= r->limits.bytes)
		return true;
	return r->limits.ns != 0 && now_ns - oldest->until_ns > r->limits.ns;
}

bool bc_overwrite_ring_is_due(const struct bc_overwrite_ring *r, uint64_t since_ns, uint64_t now_ns)
{
	/* Chunks this long cover the whole time with half of the ring. */
	uint64_t step = r->limits.ns / r->limits.chunks * 2;

	return r->limits.ns != 0 && now_ns - since_ns > step;
}

uint32_t bc_slot_records_before(const struct bc_slot *slot, uint64_t ns)
{
	const struct bc_chunk *chunk = &slot->chunk;
	uint64_t ticks = chunk->info.last_tick - chunk->info.first_tick;
	uint64_t span = slot->until_ns - slot->since_ns;

	if (ns <= slot->since_ns || chunk->info.records == 0)
		return 0;
	if (ns > slot->until_ns)
		return chunk->info.records;
	uint64_t until = (uint64_t)((unsigned __int128)(ns - slot->since_ns) * ticks /
				    (span != 0 ? span : 1));
	return bc_chunk_find_tick(chunk, 0, chunk->info.first_tick + until);
}

uint64_t bc_slot_arrival_ns(const struct bc_slot *slot, uint32_t n)
{
	const struct bc_chunk_info *info = &slot->chunk.info;
	uint64_t ticks = info->last_tick - info->first_tick;
	uint64_t span = slot->until_ns - slot->since_ns;

	if (n >= info->records || ticks == 0)
		return n == 0 ? 0 : span;
	uint64_t passed = bc_chunk_tick(&slot->chunk, n) - info->first_tick;
	return (uint64_t)((unsigned __int128)span * passed / ticks);
}
