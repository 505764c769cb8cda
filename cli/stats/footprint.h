/* How much memory the references touch, and how soon they reuse it.
 *
 * Footprint: the number of distinct lines and pages touched by reads, by writes, by fetches and in
 * total. A reference touches each line that it spans, one if its size is 0 or unknown.
 *
 * Reuse: for each line touched by a reference, the memory references since it was last touched: a
 * time, not the number of distinct lines used in between (the stack distance).
 *
 * Working set: the average number of lines and pages touched in a window. Miss ratio: lru_stack.h.
 *
 * Lines are in blocks of 128. A table that reaches its memory limit gets no more blocks: lines that
 * are in none are counted as untracked. */
#ifndef BC_CLI_STATS_FOOTPRINT_H
#define BC_CLI_STATS_FOOTPRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/stats/lru_stack.h"
#include "formats/base/json.h"
#include "formats/base/must_check.h"
#include "formats/trace/entry.h"

/* How a line or page was touched. */
enum {
	BC_TOUCH_READ = 1u << 0,
	BC_TOUCH_WRITE = 1u << 1,
	BC_TOUCH_FETCH = 1u << 2,
	BC_TOUCH_ALL = 7,
};

/* The number of distinct address spaces. */
#define BC_LINE_SPACES (1u << 16)

/* Finds a block of lines, or the number of an address space. */
struct bc_block_map {
	struct bc_block_slot *slots; /* or NULL */
	size_t slot_count;
	size_t count;
};

/* Powers of two of references, or of ticks. */
#define BC_REUSE_BUCKETS 62

/* The last tick. Only a crafted trace is longer: 550 years in ns. */
#define BC_FOOTPRINT_TICKS (UINT64_C(1) << 60)

/* Memory lines, or pages, with the ways in which each was touched and its last touch. */
struct bc_line_table {
	uint64_t **low; /* the blocks of space 0 that a BYU record can touch, or NULL */
	uint64_t low_count;
	struct bc_block_map high; /* all others */
	uint64_t blocks_left;     /* until the limit */
	uint64_t *free;           /* blocks that are allocated and not used yet */
	size_t free_count;
	void **pieces; /* what was allocated */
	size_t piece_count;
	uint64_t count;
	/* Lines touched in exactly this set of ways (BC_TOUCH_*). */
	uint64_t touched[BC_TOUCH_ALL + 1];
	/* For working sets: times from one touch of a line to the next, from the start to its
	 * first, and from its last to the end; and their sums. In buckets as bc_footprint.reuse. */
	uint64_t gaps[BC_REUSE_BUCKETS];
	unsigned __int128 gap_sums[BC_REUSE_BUCKETS];
};

/* The number of lines touched in at least one of these ways. table->count: in any way. */
uint64_t bc_line_table_count(const struct bc_line_table *table, unsigned touch);

/* Maximum number of lines counted for one reference. More set `is_cut`. */
#define BC_FOOTPRINT_LINES_MAX 65536u

struct bc_footprint_options {
	uint64_t line_bytes;   /* power of two */
	uint64_t page_bytes;   /* power of two, at least line_bytes */
	uint64_t memory_bytes; /* limit */
	bool has_working_set;
	bool has_miss_ratio;
};

struct bc_footprint {
	unsigned line_shift;
	unsigned page_shift;
	struct bc_line_table lines;
	struct bc_line_table pages;
	bool has_more;              /* working sets or miss ratios */
	struct bc_lru_stack *stack; /* for miss ratios, or NULL */
	uint64_t references;        /* to memory */
	uint64_t others;            /* references other than to memory: I/O, special cycles, ... */
	uint64_t touches;           /* of lines by references */
	uint64_t first;             /* touches of lines not touched before */
	uint64_t untracked;         /* touches of lines that did not fit */
	/* reuse[k]: touches of a line last touched more than 2^(k-1) and up to 2^k references
	 * before: 1 for k = 0, then 2, 3 to 4, 5 to 8, ... */
	uint64_t reuse[BC_REUSE_BUCKETS];
	bool is_cut;     /* counts are lower bounds: a reference had too many lines */
	bool lines_full; /* counts are lower bounds: the table is full */
	bool pages_full;
	uint64_t addr_low; /* of memory references; valid if there are any */
	uint64_t addr_high;
	struct bc_block_map spaces; /* their numbers */
};

/* Returns 0, -ENOMEM, or -EINVAL for invalid options. Call bc_footprint_close() in any case. */
int bc_footprint_open(
	struct bc_footprint *footprint, const struct bc_footprint_options *options) BC_MUST_CHECK;
void bc_footprint_close(struct bc_footprint *footprint);

/* Count the memory touched by BYU records, or by an entry that is a reference. */
void bc_footprint_records(struct bc_footprint *footprint, const uint8_t *records, size_t n);
void bc_footprint_reference(struct bc_footprint *footprint, const struct bc_entry *reference);

/* The average number of lines, or of pages, touched in the windows of 2^k references: all those
 * from the first reference to the last. Finish first: after that, nothing can be counted. */
void bc_footprint_finish(struct bc_footprint *footprint);
double bc_footprint_working_set(
	const struct bc_footprint *footprint, const struct bc_line_table *table, unsigned k);

/* Measures windows in ticks: sets the time of the next reference, in ticks since the first one. In
 * such a footprint, `references` counts ticks, and only lines, pages and working sets are valid. */
static inline void bc_footprint_at(struct bc_footprint *footprint, uint64_t ticks)
{
	footprint->references = ticks < BC_FOOTPRINT_TICKS ? ticks : BC_FOOTPRINT_TICKS;
}

/* What docs/stats.md calls working_set, with windows of `unit`, and miss_ratio: new arrays, or NULL
 * if out of memory. */
json_t *bc_footprint_windows_json(const struct bc_footprint *footprint, const char *unit);
json_t *bc_footprint_sizes_json(const struct bc_footprint *footprint);

#endif
