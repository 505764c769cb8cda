/* The counts that status reports, in samples since the daemon started unless noted. Each is counted
 * where it happens; at every moment
 *
 *     received = written + in_flight + dropped_buffer + dropped_disk + dropped_invalid
 *                + dropped_filtered + dropped_idle
 *
 * They belong to the loop, which learns of the threads' work from the writer's statistics. */
#ifndef BC_DAEMON_INGEST_COUNTS_H
#define BC_DAEMON_INGEST_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/bus/loss.h"

struct bc_counts {
	uint64_t received;         /* in valid frames, including invalid cycles */
	uint64_t written;          /* handed to the kernel */
	uint64_t durable;          /* of those, after fdatasync */
	uint64_t in_flight;        /* in a chunk, not yet written */
	uint64_t dropped_buffer;   /* no chunk was free */
	uint64_t dropped_disk;     /* no chunk was free while the disk was stuck, or abandoned */
	uint64_t dropped_invalid;  /* invalid cycles, dropped by the mapping */
	uint64_t dropped_filtered; /* removed by a filter */
	uint64_t dropped_idle;     /* received while not recording */
	uint64_t skipped_bytes;    /* in no valid frame, or torn */
	uint64_t unknown_special;  /* records of special cycles of unknown kind */
	uint64_t deleted_records;  /* of `written`, in segments that others deleted while open */

	/* In recordings and in the flight recorder. Samples that never arrived are not part of
	 * `received`; those lost to buffer and disk are also in dropped_buffer and dropped_disk. */
	struct bc_losses losses;
};

static inline bool bc_counts_add_up(const struct bc_counts *c)
{
	return c->received == c->written + c->in_flight + c->dropped_buffer + c->dropped_disk +
				      c->dropped_invalid + c->dropped_filtered + c->dropped_idle;
}

#endif
