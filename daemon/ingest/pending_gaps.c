#include "daemon/ingest/pending_gaps.h"

#include <assert.h>
#include <stddef.h>
#include <uv.h>

uint32_t bc_pending_gaps_count(const struct bc_pending_gaps *g)
{
	uint32_t count = 0;

	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++)
		count += g->events[cause].kind != 0;
	return count;
}

void bc_pending_gaps_write(struct bc_pending_gaps *g, struct bc_chunk *chunk)
{
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++) {
		struct bc_event *gap = &g->events[cause];
		if (gap->kind == 0)
			continue;
		gap->position = chunk->info.records;
		if (!bc_chunk_add_event(chunk, gap, NULL))
			assert(false && "the caller checked for space");
		gap->kind = 0;
	}
}

void bc_pending_gaps_clear(struct bc_pending_gaps *g)
{
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++)
		g->events[cause].kind = 0;
}

/* The gap of this cause after the chunk's last record; NULL: none. */
static struct bc_event *gap_at_end(struct bc_chunk *chunk, enum bc_gap_cause cause)
{
	for (uint32_t i = chunk != NULL ? chunk->info.events : 0; i-- > 0;) {
		struct bc_event *event = &chunk->events[i];
		if (event->position != chunk->info.records)
			break;
		if (event->kind == BC_EVENT_GAP && event->cause == cause)
			return event;
	}
	return NULL;
}

struct bc_event *bc_pending_gaps_add(struct bc_pending_gaps *g, struct bc_chunk *chunk,
	enum bc_gap_cause cause, uint64_t lost, bool exact, struct bc_losses *losses)
{
	struct bc_event *gap = gap_at_end(chunk, cause);

	if (gap == NULL)
		gap = &g->events[cause];
	if (gap->kind == 0) {
		*gap = (struct bc_event){
			.kind = BC_EVENT_GAP,
			.cause = (uint8_t)cause,
			.exact = true,
		};
		g->since_ns[cause] = uv_hrtime();
		if (losses != NULL)
			losses->gaps[cause]++;
	}
	if (losses != NULL) {
		losses->lost[cause] += lost;
		losses->inexact[cause] += gap->exact && !exact;
	}
	gap->value += lost;
	gap->exact = gap->exact && exact;
	return gap;
}

void bc_pending_gaps_add_losses(const struct bc_pending_gaps *g, struct bc_losses *losses)
{
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++)
		if (g->events[cause].kind != 0)
			bc_losses_add_gap(losses, &g->events[cause]);
}
