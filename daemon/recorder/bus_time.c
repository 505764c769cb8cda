#include "daemon/recorder/bus_time.h"

#include "formats/bus/stamp.h"

void bc_bus_time_init(struct bc_bus_time *t)
{
	*t = (struct bc_bus_time){
		.clock_hz = BC_DEFAULT_CLOCK_HZ,
		.cut_at = UINT64_MAX,
		.stop_at = UINT64_MAX,
		.paced_until = UINT64_MAX,
	};
}

uint64_t bc_bus_time_ticks(const struct bc_bus_time *t, uint64_t ns)
{
	double ticks = (double)ns * 1e-9 * (double)t->clock_hz;

	return ticks < 1 ? 1 : ticks > 9e18 ? UINT64_MAX : (uint64_t)(ticks + 0.5);
}

/* Adds times; UINT64_MAX is infinity. */
static uint64_t add_times(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t bc_bus_time(const struct bc_bus_time *t, uint64_t tick)
{
	return t->epoch_base + (tick > t->epoch_first ? tick - t->epoch_first : 0);
}

void bc_bus_time_start_epoch(struct bc_bus_time *t, uint64_t tick, uint64_t last)
{
	if (t->has_epoch)
		t->epoch_base = bc_bus_time(t, last);
	t->has_epoch = true;
	t->epoch_first = tick;
}

void bc_bus_time_set_cut(struct bc_bus_time *t, const struct bc_rotation *rotation, uint64_t tick)
{
	uint64_t now = bc_bus_time(t, tick);

	t->cut_at = UINT64_MAX;
	if (rotation->duration_ns != 0)
		t->cut_at = add_times(now, bc_bus_time_ticks(t, rotation->duration_ns));
	if (rotation->interval_ns != 0) {
		uint64_t interval = bc_bus_time_ticks(t, rotation->interval_ns);
		uint64_t at = add_times(now, interval - tick % interval);
		t->cut_at = at < t->cut_at ? at : t->cut_at;
	}
}

uint64_t bc_bus_time_limit(const struct bc_bus_time *t)
{
	uint64_t at = t->cut_at < t->stop_at ? t->cut_at : t->stop_at;

	at = at < t->paced_until ? at : t->paced_until;
	if (at == UINT64_MAX)
		return BC_NO_TICK_LIMIT;
	return add_times(t->epoch_first, at > t->epoch_base ? at - t->epoch_base : 0);
}
