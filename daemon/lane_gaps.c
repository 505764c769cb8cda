#include "daemon/lane_parts.h"

#include <assert.h>
#include <string.h>

uint32_t bc_lane_count_pending(const struct bc_lane *l)
{
	uint32_t count = 0;

	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++)
		count += l->pending[cause].kind != 0;
	return count;
}

void bc_lane_note_pending(struct bc_lane *l, struct bc_chunk *chunk)
{
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++) {
		struct bc_event *gap = &l->pending[cause];
		if (gap->kind == 0)
			continue;
		gap->position = chunk->info.records;
		if (!bc_chunk_add_event(chunk, gap, NULL))
			assert(!"the caller saw to the room");
		gap->kind = 0;
	}
}

void bc_lane_forget_pending(struct bc_lane *l)
{
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++)
		l->pending[cause].kind = 0;
}

static struct bc_event *placed_gap(struct bc_lane *l, enum bc_gap_cause cause)
{
	struct bc_chunk *chunk = l->filling != NULL ? &l->filling->chunk : NULL;

	for (uint32_t i = chunk != NULL ? chunk->info.events : 0; i-- > 0;) {
		struct bc_event *event = &chunk->events[i];
		if (event->position != chunk->info.records)
			break;
		if (event->kind == BC_EVENT_GAP && event->cause == cause)
			return event;
	}
	return NULL;
}

static struct bc_event *pending_gap(struct bc_lane *l, enum bc_gap_cause cause)
{
	struct bc_event *gap = placed_gap(l, cause);

	if (gap != NULL)
		return gap;
	gap = &l->pending[cause];
	if (gap->kind == 0) {
		*gap = (struct bc_event){
			.kind = BC_EVENT_GAP,
			.cause = (uint8_t)cause,
			.exact = true,
		};
		l->pending_since_ns[cause] = uv_hrtime();
		l->counts->gaps += l->state != BC_LANE_IDLE;
		if (l->state != BC_LANE_IDLE)
			bc_lane_sum_gap(l, cause, 1, 0, true);
	}
	return gap;
}

void bc_lane_sum_gap(
	struct bc_lane *l, enum bc_gap_cause cause, uint64_t gaps, uint64_t lost, bool exact)
{
	l->gaps[cause].gaps += gaps;
	l->gaps[cause].lost += lost;
	l->gaps[cause].is_inexact = l->gaps[cause].is_inexact || !exact;
}

void bc_lane_gap(struct bc_lane *l, enum bc_gap_cause cause, uint64_t lost, bool exact)
{
	bc_lane_gap_lasting(l, cause, lost, exact, 0);
}

void bc_lane_gap_lasting(
	struct bc_lane *l, enum bc_gap_cause cause, uint64_t lost, bool exact, uint64_t duration_ns)
{
	if (l->ending != NULL)
		return; /* nothing is kept now, and what waits is the ended recording's */
	struct bc_event *gap = pending_gap(l, cause);
	if (l->state != BC_LANE_IDLE)
		bc_lane_sum_gap(l, cause, 0, lost, exact);
	gap->value += lost;
	gap->exact = gap->exact && exact;
	gap->duration_ns += duration_ns;
}

void bc_lane_dropped(struct bc_lane *l, const struct bc_stamped *stamped)
{
	bool is_stuck = bc_pipeline_report(l->options.pipeline)->is_stuck;
	enum bc_gap_cause cause = is_stuck ? BC_GAP_DISK : BC_GAP_BUFFER;
	struct bc_counts *c = l->counts;

	c->received += stamped->taken;
	c->dropped_invalid += stamped->invalid;
	if (stamped->kept == 0)
		return;
	l->last_ns = uv_hrtime();
	if (l->options.taps != NULL)
		bc_taps_passed(l->options.taps, stamped->kept);
	if (l->state == BC_LANE_IDLE || l->ending != NULL) {
		c->dropped_idle += stamped->kept;
		return;
	}
	if (cause == BC_GAP_DISK)
		c->dropped_disk += stamped->kept;
	else
		c->dropped_buffer += stamped->kept;
	struct bc_event *gap = pending_gap(l, cause);
	bc_lane_sum_gap(l, cause, 0, stamped->kept, true);
	gap->value += stamped->kept;
	gap->duration_ns = uv_hrtime() - l->pending_since_ns[cause];
}

void bc_lane_take_gaps(struct bc_lane *l, struct bc_gap_sum sums[BC_GAP_CAUSES])
{
	memcpy(sums, l->gaps, sizeof(l->gaps));
	memset(l->gaps, 0, sizeof(l->gaps));
}
