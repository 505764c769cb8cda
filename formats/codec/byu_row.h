/* Converts entries to the fields of BYU records, for the printers of BYU and RowBinary.
 *
 * bc_byu_row() converts each entry to one row, in order. The row's `time` is the entry's original
 * delta if that agrees with the absolute ticks of this entry and the previous one. Otherwise
 * (because entries between them were left out or traces were merged), and if there is no delta, it
 * is the difference of the ticks. The first delta of a slice is kept. The time is BC_TIME_NONE
 *
 *   for a first entry without a delta,
 *   at the start of an epoch,
 *   if the difference does not fit the field, or the ticks go back (both counted as lost),
 *   if an entry has no time but others of its trace do.
 *
 * The first tick of the trace or of an epoch is lost if the target has only times, and these do not
 * add up to it.
 *
 * In a trace without a clock, each entry takes one tick; the first is at tick 1. Bus samples that
 * were left out count as a tick, too. */
#ifndef BC_FORMATS_CODEC_BYU_ROW_H
#define BC_FORMATS_CODEC_BYU_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/trace/printer.h"

struct bc_byu_clock {
	uint64_t tick;   /* of the previous entry */
	uint64_t number; /* of the previous entry */
	uint32_t epoch;
	bool has_tick;    /* there was a previous entry with a time */
	bool is_ticked;   /* the trace has times */
	bool is_relative; /* the target has no absolute ticks: its first tick is its first time */
};

struct bc_byu_row {
	uint64_t addr;
	uint8_t meta[4]; /* reqtype, size, attr, proc */
	uint64_t time;
	uint64_t tick; /* absolute */
};

void bc_byu_clock_init(struct bc_byu_clock *clock, const struct bc_format_options *options);

/* Converts print->entries[0], whose type must be below 0x100. addr_max and time_max are the largest
 * values of these fields: 32 or 64 bits, all set. Returns 0, or -ERANGE with print->err set. */
int bc_byu_row(struct bc_byu_row *row, struct bc_byu_clock *clock, struct bc_print *print,
	uint64_t addr_max, uint64_t time_max) BC_MUST_CHECK;

#endif
