/* Times as programs that draw a trace need them: from 0, in ns or ps, never backwards, below 2^63.
 *
 * A tick is converted with the clock rate, from the start of the clock and rounded down, so that
 * errors do not add up. Without a rate, a tick is 1 ns. Named units (Tarmac) keep their meaning. In
 * a trace without times, each reference is one tick after the previous one. Where the trace's time
 * goes back or its clock restarts, it continues one tick later, which counts as a loss of time. */
#ifndef BC_FORMATS_CODEC_TIMELINE_H
#define BC_FORMATS_CODEC_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/clock.h"
#include "formats/trace/entry.h"
#include "formats/trace/printer.h"

#define BC_PS_PER_S UINT64_C(1000000000000)

struct bc_timeline {
	uint64_t now; /* time of the latest entry */
	bool has_time;
	uint64_t step;        /* length of a tick, at least 1 */
	uint64_t units_per_s; /* BC_PS_PER_S or BC_NS_PER_S */
	uint64_t clock_hz;    /* 0: a tick is 1 ns */
	bool is_timed;        /* the source has times */
	uint64_t start;       /* tick of the first entry, at time 0 */
	uint8_t start_unit;   /* enum bc_unit */
	uint64_t references;  /* in a trace without times: the tick of the next one */
	__int128 ahead;       /* offset from the source's time */
	uint32_t epoch;
};

void bc_timeline_init(struct bc_timeline *timeline, const struct bc_format_options *options,
	uint64_t units_per_s);

/* Sets `now` to the time of print->entries[0]. A gap is one tick after the previous entry, if not
 * earlier. Returns false with print->err set if the time has more than 63 bits. */
bool bc_timeline_advance(struct bc_timeline *timeline, struct bc_print *print);

#endif
