/* An entry as the fields of a BYU record: what the printers of those fields share.
 *
 * Each entry that a printer is given becomes one row, in their order, by bc_byu_row(). The row's
 * `time` is the entry's delta as it stands wherever that agrees with the absolute ticks of this
 * entry and the one printed before it; where it doesn't (entries between them were left out, or two
 * traces were merged) and where there is none, it is the difference of the ticks. The first delta
 * of a slice stays as it stands. BC_TIME_NONE stands
 *
 *   for the first entry, where it has no delta,
 *   where an epoch begins,
 *   where a difference is too long for the field, or the ticks fall: counted as a time that is
 * lost, where an entry lacks a time and others of its trace have one.
 *
 * A trace without a clock has one tick an entry, the first at tick 1; of bus samples, those that
 * were left out had their ticks too. */
#ifndef BC_FORMATS_CODEC_BYU_ROW_H
#define BC_FORMATS_CODEC_BYU_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/trace/printer.h"

struct bc_byu_clock {
	uint64_t tick;   /* of the entry before */
	uint64_t number; /* of the entry before */
	uint32_t epoch;
	bool has_tick;  /* an entry with a time came before */
	bool is_ticked; /* the trace has times */
};

struct bc_byu_row {
	uint64_t addr;
	uint8_t meta[4]; /* reqtype, size, attr, proc */
	uint64_t time;
	uint64_t tick; /* absolute */
};

void bc_byu_clock_init(struct bc_byu_clock *clock, const struct bc_format_options *options);

/* Turns print->entries[0], whose type is below 0x100, into a row. addr_most and time_most are what
 * the fields hold: 32 or 64 bits, all set. Returns 0, or -ERANGE with print->why. */
int bc_byu_row(struct bc_byu_row *row, struct bc_byu_clock *clock, struct bc_print *print,
	uint64_t addr_most, uint64_t time_most) BC_MUST_CHECK;

#endif
