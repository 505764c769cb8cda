#include "formats/bus/tick_time.h"

#define NS_PER_S 1000000000

bool bc_tick_time(int64_t *ns, struct bc_clock_point point, uint64_t tick)
{
	uint64_t after = tick - point.tick;

	*ns = point.wall_ns;
	if (point.clock_hz == 0)
		return false;
	/* The usual case needs no division of 128 bits. */
	if (tick >= point.tick && after <= UINT64_MAX / NS_PER_S && point.clock_hz >= 2 &&
		!__builtin_add_overflow(
			point.wall_ns, (int64_t)(after * NS_PER_S / point.clock_hz), ns))
		return true;
	__int128 product = ((__int128)tick - point.tick) * NS_PER_S;
	__int128 passed = product / (__int128)point.clock_hz;
	passed -= product % (__int128)point.clock_hz < 0;
	__int128 sum = passed + point.wall_ns;
	*ns = sum > INT64_MAX ? INT64_MAX : sum < INT64_MIN ? INT64_MIN : (int64_t)sum;
	return true;
}

__int128 bc_time_tick(struct bc_clock_point point, int64_t ns)
{
	__int128 ahead = (__int128)ns - point.wall_ns;
	__int128 product;

	if (ahead <= 0)
		return point.tick;
	if (__builtin_mul_overflow(ahead, (__int128)point.clock_hz, &product))
		return (__int128)1 << 96;
	return point.tick + product / NS_PER_S + (product % NS_PER_S != 0);
}
