/* What a trace holds beside its references, counted: gaps, marks, triggers and epochs; instructions
 * and micro-ops; register writes, kernel events, and lines kept as they stand. */
#ifndef BC_FORMATS_STATS_ENTRY_COUNTS_H
#define BC_FORMATS_STATS_ENTRY_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/stats/string_counter.h"
#include "formats/trace/entry.h"

struct bc_gap_count {
	uint64_t gaps;
	uint64_t lost;    /* samples, at least */
	uint64_t inexact; /* gaps that lost at least what they say, or nobody knows how many */
};

/* Empty when all zero. */
struct bc_happenings {
	uint64_t kinds[BC_ENTRY_KINDS]; /* entries of each */

	struct bc_gap_count gaps; /* of all causes */
	struct bc_gap_count causes[BC_GAP_CAUSES];
	uint64_t marks;
	uint64_t triggers;

	uint64_t effects[3]; /* instructions, by enum bc_effect */
	struct bc_string_counter sets;
	struct bc_string_counter mnemonics; /* of those executed: the disassembly's first word */
	uint64_t undecoded;                 /* executed without a disassembly */

	uint64_t macro_ops; /* micro-ops that are their macro-op's first */
	struct bc_string_counter macros;
	struct bc_string_counter micros;
	uint64_t loads;
	uint64_t stores;
	uint64_t taken;
	uint64_t not_taken;
	uint64_t flag_reads; /* micro-ops that read, and that write the flags */
	uint64_t flag_writes;

	struct bc_string_counter registers; /* written, by name */
	struct bc_string_counter tags;      /* of kernel events */
};

/* Counts a gap, mark or trigger; an event of another kind is passed over. */
void bc_happenings_event(struct bc_happenings *happenings, const struct bc_event *event);

/* Counts an entry of any kind. Returns 0 or -ENOMEM. */
int bc_happenings_entry(
	struct bc_happenings *happenings, const struct bc_entry *entry) BC_MUST_CHECK;

/* Puts all names in order; nothing can be counted afterwards. */
void bc_happenings_sort(struct bc_happenings *happenings);

void bc_happenings_free(struct bc_happenings *happenings);

#endif
