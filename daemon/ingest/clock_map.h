/* When a tick of the bus was, on the host's clocks.
 *
 * A piece of the stream always arrives after its last record, by an unknown delay. The arrivals
 * with the least delay therefore show how the clocks relate: every point (bus time, arrival - bus
 * time) of an epoch lies above a line whose height is the offset of the clocks and whose slope is
 * their drift. The map keeps the lower hull of the last minute's arrivals and takes the line along
 * the hull's middle. It corrects its offset by at most 500 ppm, so that times advance with the bus
 * from chunk to chunk, except that
 *
 *     - a chunk that begins in the first fifth of a second of an epoch gets its time when it is
 *       complete, if it is the first;
 *     - when the host's clock is set, later chunks follow the new time of day at once;
 *     - when the drift is larger than any crystal's, the clock rate is wrong: the map starts again.
 *
 * With fewer than five pieces a second, no drift is measured: times may be off by that of a minute.
 *
 * Arrivals are on the monotonic clock. Costs a few instructions per piece; does not allocate. */
#ifndef BC_DAEMON_INGEST_CLOCK_MAP_H
#define BC_DAEMON_INGEST_CLOCK_MAP_H

#include <stdbool.h>
#include <stdint.h>

#define BC_CLOCK_MAP_POINTS 32u

enum bc_clock_map_news {
	BC_CLOCK_AS_BEFORE,
	BC_CLOCK_WAS_SET,   /* news_ns: by how much the time of day has moved */
	BC_CLOCK_RATE_WRONG /* news_ns: by how much times of day move as it starts again */
};

struct bc_clock_map {
	uint64_t clock_hz;
	bool has_offset;      /* a chunk has got its time since the start */
	uint64_t tick;        /* bus time is 0 there */
	int64_t offset_ns;    /* monotonic time - bus time, as used for chunks */
	int64_t offset_at_ns; /* bus time of the last chunk */
	int64_t real_ns;      /* time of day - monotonic time, as last used */
	int64_t set_ns;       /* by how much that has changed since it was told */
	int64_t counted;      /* arrivals since the start, but few of each second */
	int64_t in_second;    /* of bus time: arrivals in the latest one */
	int64_t news_ns;
	unsigned count; /* of `hull`; 0: nothing has arrived */
	struct bc_clock_arrival {
		int64_t bus_ns;
		int64_t late_ns; /* arrival - bus time */
		int64_t number;  /* `counted` up to here */
	} hull[BC_CLOCK_MAP_POINTS];
};

/* Forgets all: an epoch begins, or the clock rate changes. It must not be 0 unless the map is not
 * used. real_ns: the time of day minus the monotonic time. */
void bc_clock_map_begin(struct bc_clock_map *map, uint64_t clock_hz, int64_t real_ns);

/* Records up to the one at `tick` have arrived by now_ns, on the monotonic clock. */
void bc_clock_map_arrive(struct bc_clock_map *map, uint64_t tick, uint64_t now_ns);

/* Returns the time of day of a tick, as it is used now. Something must have arrived. */
int64_t bc_clock_map_time(const struct bc_clock_map *map, uint64_t tick);

/* The reverse, for a monotonic time: sets *tick to the first tick that is not earlier. Returns
 * false if nothing has arrived. */
bool bc_clock_map_tick(const struct bc_clock_map *map, uint64_t *tick, uint64_t now_ns);

/* Learns from the arrivals, of which there must be some, for a chunk that begins at `tick`; its
 * first records, or if it is_complete all of them, have arrived. Unless `has_offset` is set then,
 * too little has arrived in this epoch, and the chunk's time is settled when it is complete. Says
 * if there is something to tell. */
enum bc_clock_map_news bc_clock_map_settle(
	struct bc_clock_map *map, uint64_t tick, int64_t real_ns, bool is_complete);

#endif
