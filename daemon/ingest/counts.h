/* The counts that status gives, in samples, of the daemon's life. Each is counted where it happens;
 * at every moment
 *
 *     received = written + in_flight + dropped_buffer + dropped_disk + dropped_invalid
 *                + dropped_filtered + dropped_idle
 *
 * They live on the loop's thread; what other threads do reaches them by reports. */
#ifndef BC_DAEMON_INGEST_COUNTS_H
#define BC_DAEMON_INGEST_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

struct bc_counts {
	uint64_t received;         /* in valid frames, invalid cycles included */
	uint64_t written;          /* given to the kernel */
	uint64_t durable;          /* of them, after fdatasync */
	uint64_t in_flight;        /* in a chunk, on the way to the disk */
	uint64_t dropped_buffer;   /* no chunk was free */
	uint64_t dropped_disk;     /* the same while the disk took nothing, and what was given up */
	uint64_t dropped_invalid;  /* invalid cycles, dropped by the mapping */
	uint64_t dropped_filtered; /* left out by a filter */
	uint64_t dropped_idle;     /* received while nothing was recording */
	uint64_t board_lost;       /* by the board's own count */
	uint64_t skipped_bytes;    /* of no valid frame, or torn */
	uint64_t gaps;
	uint64_t unknown_special;   /* special cycles of no known kind, among the records */
	uint64_t raw_dropped_bytes; /* of the stream, that a raw capture should have and hasn't */
};

static inline bool bc_counts_add_up(const struct bc_counts *c)
{
	return c->received == c->written + c->in_flight + c->dropped_buffer + c->dropped_disk +
				      c->dropped_invalid + c->dropped_filtered + c->dropped_idle;
}

#endif
