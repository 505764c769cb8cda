/* Counts everything in a trace other than references: gaps, marks, triggers and epochs;
 * instructions and micro-ops; register writes, kernel events and verbatim lines. */
#ifndef BC_FORMATS_STATS_ENTRY_COUNTS_H
#define BC_FORMATS_STATS_ENTRY_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/stats/string_counter.h"
#include "formats/trace/entry.h"

struct bc_gap_count {
	uint64_t gaps;
	uint64_t lost;    /* samples, a lower bound */
	uint64_t inexact; /* gaps whose number of lost samples is only a lower bound or unknown */
};

/* An empty one is all zero. */
struct bc_entry_counts {
	uint64_t kinds[BC_ENTRY_KINDS]; /* entries by kind */

	struct bc_gap_count gaps; /* with any cause */
	struct bc_gap_count causes[BC_GAP_CAUSES];
	uint64_t marks;
	uint64_t triggers;

	uint64_t effects[3]; /* instructions by enum bc_effect */
	struct bc_string_counter sets;
	struct bc_string_counter mnemonics; /* first words of executed ones */
	uint64_t undecoded;                 /* executed instructions without a disassembly */

	uint64_t macro_ops; /* first micro-ops of macro-ops */
	struct bc_string_counter macros;
	struct bc_string_counter micros;
	uint64_t loads;
	uint64_t stores;
	uint64_t taken;
	uint64_t not_taken;
	uint64_t flag_reads; /* micro-ops that read the flags */
	uint64_t flag_writes;

	struct bc_string_counter registers; /* register writes by name */
	struct bc_string_counter tags;      /* of kernel events */
};

/* Counts a gap, mark or trigger. Other events are ignored. */
void bc_entry_counts_event(struct bc_entry_counts *counts, const struct bc_event *event);

/* Counts an entry of any kind. Returns 0 or -ENOMEM. */
int bc_entry_counts_add(struct bc_entry_counts *counts, const struct bc_entry *entry) BC_MUST_CHECK;

/* Sorts all names. Nothing can be counted afterwards. */
void bc_entry_counts_sort(struct bc_entry_counts *counts);

void bc_entry_counts_free(struct bc_entry_counts *counts);

#endif
