#include "formats/codec/timeline.h"

#include <inttypes.h>

#include "formats/base/text.h"

void bc_timeline_init(
	struct bc_timeline *t, const struct bc_format_options *options, uint64_t units_per_s)
{
	*t = (struct bc_timeline){.units_per_s = units_per_s,
		.clock_hz = options->clock_hz,
		.is_timed = (options->source_traits & BC_TRAIT_TIME) != 0};
	t->step = units_per_s / (t->clock_hz != 0 ? t->clock_hz : BC_NS_PER_S);
	if (t->step == 0)
		t->step = 1;
}

/* A tick in the unit of the timeline. */
static __int128 convert_tick(const struct bc_timeline *t, uint64_t tick, unsigned unit)
{
	uint64_t ps = bc_unit_picoseconds(unit);
	uint64_t ticks_per_s = t->clock_hz != 0 ? t->clock_hz : BC_NS_PER_S;

	if (ps != 0)
		return (__int128)tick * (__int128)ps / (__int128)(BC_PS_PER_S / t->units_per_s);
	return (__int128)tick * (__int128)t->units_per_s / (__int128)ticks_per_s;
}

bool bc_timeline_advance(struct bc_timeline *t, struct bc_print *p)
{
	const struct bc_entry *entry = p->entries;
	bool is_event = entry->kind == BC_ENTRY_EVENT;
	bool has_tick = !t->is_timed || is_event || (entry->traits & BC_TRAIT_TIME) != 0;
	uint64_t tick = !t->is_timed ? t->references : has_tick ? entry->tick : 0;
	__int128 own = convert_tick(t, tick, entry->unit);
	__int128 next = (__int128)t->now + (__int128)t->step;

	if (!t->has_time) {
		t->start = tick;
		t->start_unit = entry->unit;
		t->ahead = -own;
		t->epoch = entry->epoch;
	}
	__int128 time = has_tick ? own + t->ahead : (__int128)t->now;
	bool is_back = t->has_time && (entry->epoch != t->epoch || time < (__int128)t->now);
	if (is_back ||
		(t->has_time && is_event && entry->note.event.kind == BC_EVENT_GAP && time > next))
		time = next;
	if (time > INT64_MAX)
		return bc_fail(p->err, sizeof(p->err),
			"time %" PRIu64 " doesn't fit in 63 bits of %s, the limit of viewers",
			entry->tick, t->units_per_s == BC_PS_PER_S ? "ps" : "ns");
	t->references++;
	t->has_time = true;
	t->now = (uint64_t)time;
	if (!is_back || is_event)
		return true;
	bc_print_lose(p, BC_TRAIT_TIME);
	t->epoch = entry->epoch;
	if (has_tick)
		t->ahead = time - own;
	return true;
}
