/* The lower hull of the arrivals, as a stack: each arrival is pushed, after popping those that lie
 * above the line from the one before them to it.
 *
 * Invariant: the points of the hull have rising bus times, and the slopes between them rise. */
#include "daemon/ingest/clock_map.h"

#include <assert.h>
#include <string.h>

#include "formats/bus/tick_time.h"

#define NS_PER_S      INT64_C(1000000000)
#define WINDOW_NS     (60 * NS_PER_S)
#define FIRST_NS      (NS_PER_S / 5)
#define DRIFT_FROM_NS (10 * NS_PER_S) /* in less, a drift can't be told from delays */
#define DRIFT_MAX     INT64_C(500000) /* ns per second; also how fast errors are corrected */
#define SPARSE        5               /* fewer pieces a second show no drift */
#define COUNTED_MAX   10              /* of a second, so that a busy one does not hide idle ones */
#define BUS_MAX       (INT64_MAX / 4)
#define SET_NS        INT64_C(128000000) /* NTP slews less than that */

static int64_t clamp(__int128 value, int64_t most)
{
	return value > most ? most : value < -most ? -most : (int64_t)value;
}

/* The source may send any ticks. */
static int64_t bus_ns(const struct bc_clock_map *m, uint64_t tick)
{
	const struct bc_clock_point start = {0, m->tick, m->clock_hz};
	int64_t ns;

	(void)bc_tick_time(&ns, start, tick);
	return clamp(ns, BUS_MAX);
}

void bc_clock_map_begin(struct bc_clock_map *m, uint64_t clock_hz, int64_t real_ns)
{
	*m = (struct bc_clock_map){.clock_hz = clock_hz, .real_ns = real_ns};
}

/* True if b is not below the line from a to c. */
static bool is_above(const struct bc_clock_arrival *a, const struct bc_clock_arrival *b,
	const struct bc_clock_arrival *c)
{
	return (__int128)(b->late_ns - a->late_ns) * (c->bus_ns - a->bus_ns) >=
	       (__int128)(c->late_ns - a->late_ns) * (b->bus_ns - a->bus_ns);
}

void bc_clock_map_arrive(struct bc_clock_map *m, uint64_t tick, uint64_t now_ns)
{
	struct bc_clock_arrival *hull = m->hull;

	m->tick = m->count == 0 ? tick : m->tick;
	struct bc_clock_arrival new = {.bus_ns = bus_ns(m, tick)};
	new.late_ns = (int64_t)now_ns - new.bus_ns;
	if (m->count != 0 && new.bus_ns <= hull[m->count - 1].bus_ns)
		return;
	if (m->count == 0 || new.bus_ns / NS_PER_S != hull[m->count - 1].bus_ns / NS_PER_S)
		m->in_second = 0;
	new.number = m->counted += ++m->in_second <= COUNTED_MAX;
	while (m->count > 1 && is_above(&hull[m->count - 2], &hull[m->count - 1], &new))
		m->count--;
	if (m->count == BC_CLOCK_MAP_POINTS ||
		(m->count > 1 && new.bus_ns - hull[0].bus_ns > WINDOW_NS))
		memmove(hull, hull + 1, --m->count * sizeof(*hull));
	hull[m->count++] = new;
}

static int64_t span_ns(const struct bc_clock_map *m)
{
	return m->hull[m->count - 1].bus_ns - m->hull[0].bus_ns;
}

static bool is_sparse(const struct bc_clock_arrival *from, const struct bc_clock_arrival *to)
{
	return to->number - from->number < SPARSE * ((to->bus_ns - from->bus_ns) / NS_PER_S);
}

/* The drift of the clocks, in ns per second: the slope of the hull in the middle of the window, if
 * enough has arrived before and after it. */
static int64_t learnt_drift(const struct bc_clock_map *m)
{
	const struct bc_clock_arrival *b = &m->hull[1];

	if (span_ns(m) < DRIFT_FROM_NS)
		return 0;
	while (b->bus_ns - m->hull[0].bus_ns < span_ns(m) / 2)
		b++;
	const struct bc_clock_arrival *a = b - 1;
	if (is_sparse(m->hull, b) || is_sparse(a, &m->hull[m->count - 1]))
		return 0;
	__int128 rise = (__int128)(b->late_ns - a->late_ns) * NS_PER_S;
	return clamp(rise / (b->bus_ns - a->bus_ns), NS_PER_S);
}

/* The offset of the clocks at a bus time, on a line below all arrivals. */
static int64_t learnt_offset(const struct bc_clock_map *m, int64_t at_ns)
{
	int64_t drift = clamp(learnt_drift(m), DRIFT_MAX);
	int64_t least_ns = INT64_MAX;

	for (unsigned i = 0; i < m->count; i++) {
		__int128 since_ns = at_ns - m->hull[i].bus_ns;
		int64_t ns = m->hull[i].late_ns + (int64_t)(since_ns * drift / NS_PER_S);
		least_ns = ns < least_ns ? ns : least_ns;
	}
	return least_ns;
}

/* The monotonic time of bus time 0, as it is used now. */
static int64_t start_ns(const struct bc_clock_map *m)
{
	return m->has_offset ? m->offset_ns : learnt_offset(m, 0);
}

int64_t bc_clock_map_time(const struct bc_clock_map *m, uint64_t tick)
{
	const struct bc_clock_point start = {start_ns(m) + m->real_ns, m->tick, m->clock_hz};
	int64_t ns;

	(void)bc_tick_time(&ns, start, tick);
	return ns;
}

bool bc_clock_map_tick(const struct bc_clock_map *m, uint64_t *tick, uint64_t now_ns)
{
	if (m->count == 0)
		return false;
	const struct bc_clock_point start = {start_ns(m), m->tick, m->clock_hz};
	struct bc_clock_point zero = {.clock_hz = m->clock_hz};
	(void)bc_tick_time(&zero.wall_ns, start, 0);
	__int128 at = bc_time_tick(zero, now_ns < INT64_MAX ? (int64_t)now_ns : INT64_MAX);
	*tick = at < BC_TICK_END ? (uint64_t)at : BC_TICK_END;
	return true;
}

enum bc_clock_map_news bc_clock_map_settle(
	struct bc_clock_map *m, uint64_t tick, int64_t real_ns, bool is_complete)
{
	assert(m->count != 0);
	int64_t at_ns = bus_ns(m, tick);
	int64_t passed_ns = at_ns > m->offset_at_ns ? at_ns - m->offset_at_ns : 0;
	int64_t error_ns = learnt_offset(m, at_ns) - m->offset_ns;
	int64_t slew_ns = (int64_t)((__int128)passed_ns * DRIFT_MAX / NS_PER_S);
	int64_t drift = learnt_drift(m);

	m->set_ns += real_ns - m->real_ns;
	m->real_ns = real_ns;
	if (!m->has_offset && !is_complete && span_ns(m) < FIRST_NS)
		return BC_CLOCK_AS_BEFORE;
	m->offset_ns += m->has_offset ? clamp(error_ns, slew_ns) : error_ns;
	m->offset_at_ns = at_ns;
	m->has_offset = true;
	if (drift > DRIFT_MAX || drift < -DRIFT_MAX) {
		/* This chunk takes what is known when it is complete. */
		m->hull[0] = m->hull[m->count - 1];
		m->count = 1;
		m->has_offset = false;
		m->news_ns = m->hull[0].late_ns - m->offset_ns;
		return BC_CLOCK_RATE_WRONG;
	}
	if (m->set_ns <= SET_NS && m->set_ns >= -SET_NS)
		return BC_CLOCK_AS_BEFORE;
	m->news_ns = m->set_ns;
	m->set_ns = 0;
	return BC_CLOCK_WAS_SET;
}
