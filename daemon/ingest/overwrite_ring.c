#include "daemon/ingest/overwrite_ring.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "formats/bus/chunk.h"

int bc_overwrite_ring_init(
	struct bc_overwrite_ring *f, const struct bc_overwrite_ring_limits *limits)
{
	*f = (struct bc_overwrite_ring){.limits = *limits};
	f->slots = calloc(limits->chunks, sizeof(struct bc_slot *));
	return f->slots == NULL ? -ENOMEM : 0;
}

void bc_overwrite_ring_free(struct bc_overwrite_ring *f)
{
	assert(f->count == 0);
	free(f->slots);
}

void bc_overwrite_ring_add(struct bc_overwrite_ring *f, struct bc_slot *slot)
{
	assert(bc_overwrite_ring_has_room(f));
	f->slots[(f->oldest + f->count++) % f->limits.chunks] = slot;
	f->records += slot->chunk.info.records;
}

struct bc_slot *bc_overwrite_ring_peek(const struct bc_overwrite_ring *f)
{
	return f->count != 0 ? f->slots[f->oldest] : NULL;
}

struct bc_slot *bc_overwrite_ring_pop(struct bc_overwrite_ring *f)
{
	struct bc_slot *slot = bc_overwrite_ring_peek(f);

	if (slot == NULL)
		return NULL;
	f->oldest = (f->oldest + 1) % f->limits.chunks;
	f->count--;
	f->records -= slot->chunk.info.records;
	return slot;
}

bool bc_overwrite_ring_is_over(const struct bc_overwrite_ring *f, uint64_t behind, uint64_t now_ns)
{
	const struct bc_slot *oldest = bc_overwrite_ring_peek(f);

	if (oldest == NULL)
		return false;
	if (!bc_overwrite_ring_has_room(f))
		return true;
	uint64_t rest = f->records - oldest->chunk.info.records + behind;
	if (f->limits.bytes != 0 && rest * BC_RECORD_BYTES >= f->limits.bytes)
		return true;
	return f->limits.ns != 0 && now_ns - oldest->until_ns > f->limits.ns;
}

bool bc_overwrite_ring_wants(const struct bc_overwrite_ring *f, uint64_t since_ns, uint64_t now_ns)
{
	/* Half of the chunks are enough for all the time. */
	uint64_t step = f->limits.ns / f->limits.chunks * 2;

	return f->limits.ns != 0 && now_ns - since_ns > step;
}

uint32_t bc_slot_records_before(const struct bc_slot *slot, uint64_t ns)
{
	const struct bc_chunk *chunk = &slot->chunk;
	uint64_t ticks = chunk->info.last_tick - chunk->info.first_tick;
	uint64_t span = slot->until_ns - slot->since_ns;
	uint32_t n = 0;

	if (ns <= slot->since_ns)
		return 0;
	if (ns > slot->until_ns)
		return chunk->info.records;
	uint64_t until = (uint64_t)((unsigned __int128)(ns - slot->since_ns) * ticks /
				    (span != 0 ? span : 1));
	const struct bc_event *event = chunk->events;
	const struct bc_event *end = event + chunk->info.events;
	uint64_t tick = chunk->info.first_tick;
	for (; n < chunk->info.records; n++) {
		uint32_t time = bc_le32(chunk->records + (size_t)n * BC_RECORD_BYTES + 8);
		tick += n != 0 && time != BC_TIME_NONE ? time : 0;
		for (; event < end && event->position <= n; event++)
			if (event->kind == BC_EVENT_ANCHOR)
				tick = event->value;
		if (tick - chunk->info.first_tick >= until)
			break;
	}
	return n;
}
