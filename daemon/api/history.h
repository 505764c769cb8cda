/* The history of the capture: what was received, lost and written in each of the last 3,600 seconds
 * and 1,440 minutes, and how full the buffer was. docs/api.md describes its JSON.
 *
 *     bc_history_open()
 *     bc_history_poll() about ten times a second, bc_history_write() at any time
 *     bc_history_close()
 *
 * An interval counts what the polls during it find, and keeps the fullest buffer that they find. An
 * interval without a poll was missed: the machine was suspended, or the process stopped. Intervals
 * are counted from the start, so that late polls do not shift them.
 *
 * Allocates 200 KiB in bc_history_open(). Not thread-safe. */
#ifndef BC_DAEMON_API_HISTORY_H
#define BC_DAEMON_API_HISTORY_H

#include <stdint.h>

#include "formats/base/must_check.h"

#define BC_HISTORY_SECONDS 3600u
#define BC_HISTORY_MINUTES 1440u

enum bc_history_figure {
	BC_HISTORY_RECEIVED_SAMPLES,
	BC_HISTORY_LOST_SAMPLES,
	BC_HISTORY_RECORD_BYTES,
	BC_HISTORY_WRITTEN_BYTES,
	BC_HISTORY_USED_CHUNKS, /* no count: the most in an interval */
	BC_HISTORY_FIGURES,
};

struct bc_history;

/* Starts the first second and minute at boot_ns, a time of bc_boot_ns(). Returns 0 or -ENOMEM. */
int bc_history_open(struct bc_history **history, uint64_t boot_ns) BC_MUST_CHECK;

/* NULL is allowed. */
void bc_history_close(struct bc_history *history);

/* Counts what was added since the last poll. Except for BC_HISTORY_USED_CHUNKS, the figures are
 * totals, which start at 0 and never decrease. */
void bc_history_poll(
	struct bc_history *history, const uint64_t figures[BC_HISTORY_FIGURES], uint64_t boot_ns);

/* Returns the complete intervals as a line of JSON of less than 512 KiB, which the caller frees;
 * NULL if out of memory. boot_ns and wall_ns: the same moment in bc_boot_ns() and bc_wall_ns(). */
char *bc_history_write(const struct bc_history *history, uint64_t boot_ns, int64_t wall_ns);

#endif
