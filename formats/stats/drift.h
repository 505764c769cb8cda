/* How a board's clock drifts against its host's: from pairs of a tick and the host's time of day,
 * as the chunks of a segment have them.
 *
 * The difference between the host's time and the time that the ticks tell at their nominal rate is
 * fitted by a straight line (least squares); its slope is the drift. A host sees a record some
 * milliseconds late and not always by the same, hence the standard error, and the time that is
 * wanted at least. Each recording's epoch is a clock of its own; the one that was watched longest
 * counts. */
#ifndef BC_FORMATS_STATS_DRIFT_H
#define BC_FORMATS_STATS_DRIFT_H

#include <stdbool.h>
#include <stdint.h>

/* With less than this no drift is told. */
#define BC_DRIFT_SECONDS_MIN 10
#define BC_DRIFT_PAIRS_MIN   4

/* With more than this the ticks did not pass at their clock's pace: a replay. */
#define BC_DRIFT_PPM_MAX 10000

/* One clock, watched. */
struct bc_drift_watch {
	uint64_t recording_tag;
	uint32_t epoch;
	uint64_t clock_hz;
	uint64_t first_tick;
	uint64_t last_tick;
	int64_t first_wall_ns;
	uint64_t pairs;
	/* Running means and sums of squares about them: seconds by the ticks, and by how many ns
	 * the host's time is ahead of them. */
	double mean_s;
	double mean_ns;
	double sum_ss;
	double sum_sn;
	double sum_nn;
};

/* Empty when all zero. */
struct bc_drift {
	struct bc_drift_watch now;
	struct bc_drift_watch longest; /* of those before */
};

/* Adds a pair, in the order of the trace. clock_hz 0, not known: it is passed over. */
void bc_drift_add(struct bc_drift *drift, uint64_t recording_tag, uint32_t epoch, uint64_t clock_hz,
	uint64_t tick, int64_t wall_ns);

enum bc_drift_state {
	BC_DRIFT_KNOWN,
	BC_DRIFT_NO_PAIRS, /* no pairs at all: no segments, or a clock whose rate nobody knows */
	BC_DRIFT_SHORT,    /* too few pairs, or too short a time */
	BC_DRIFT_REPLAY,   /* see BC_DRIFT_PPM_MAX */
};

struct bc_drift_result {
	enum bc_drift_state state;
	double ppm;       /* known: positive where the board's clock is fast */
	double error_ppm; /* its standard error */
	double seconds;   /* by the ticks, from the first pair to the last */
	uint64_t pairs;
	uint32_t epoch;
};

void bc_drift_result(const struct bc_drift *drift, struct bc_drift_result *result);

#endif
