/* The modules that match.c consists of: two windows (window.c), the plan of what matches in them
 * (plan.c), which aligns their keys (align.c), and the search beyond them (edge.c, far.c). */
#ifndef BC_CLI_DIFF_MATCH_INTERNAL_H
#define BC_CLI_DIFF_MATCH_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/diff/compare.h"
#include "cli/diff/match.h"
#include "formats/base/must_check.h"
#include "formats/bus/record.h"
#include "formats/trace/entry.h"

/* ---- window.c: a trace's source, and the entries (with strings) that are kept to be aligned. */

/* The entry before another one, as far as the time between them needs it. */
struct bc_predecessor {
	bool has_time;
	uint64_t tick;
	uint32_t epoch;
};

struct bc_window {
	struct bc_match_source source;
	uint64_t fields; /* that the keys cover */
	size_t limit;    /* maximum number of entries kept */
	/* The window is entries[begin, end) and the same range of keys, is_taken and text_at. */
	size_t begin;
	size_t end;
	size_t room;
	struct bc_entry *entries;
	uint64_t *keys;  /* equal entries have equal keys, whatever their times */
	bool *is_taken;  /* for use by the owner; false for a new entry */
	size_t *text_at; /* offset of an entry's strings in `text` */
	char *text;
	size_t text_end;
	size_t text_room;
	/* Entries that come after the window. */
	const struct bc_entry *run;
	size_t left;
	bool is_over;
	struct bc_predecessor last; /* before the first entry */
	uint64_t position;          /* its number, from 0 */
};

/* Returns 0, or -ENOMEM with nothing to free. Copies the source. An entry needs 360 bytes. */
int bc_window_init(struct bc_window *window, const struct bc_match_source *source, uint64_t fields,
	size_t limit) BC_MUST_CHECK;
void bc_window_free(struct bc_window *window);

static inline size_t bc_window_count(const struct bc_window *window)
{
	return window->end - window->begin;
}

/* Sets *span to the next entries that are contiguous in memory: the window, or what comes from the
 * source if it is empty. Returns their number, 0 at the end. */
size_t bc_window_span(struct bc_window *window, const struct bc_entry **span);

/* Tries to keep `need` entries; fewer if the trace ends or the memory is full. Invalidates the
 * result of bc_window_span(). */
void bc_window_hold(struct bc_window *window, size_t need);

/* Removes the first n entries of the span. */
void bc_window_pass(struct bc_window *window, size_t n);

/* After the source has skipped n entries, from the first of the span on. The window must be empty.
 * bc_window_before() is wrong until at least one more entry is removed. */
void bc_window_skip(struct bc_window *window, size_t n);

/* True if the trace ends after the window. */
static inline bool bc_window_is_last(const struct bc_window *window)
{
	return window->is_over && window->left == 0;
}

/* The entry before entries[begin + i]. */
struct bc_predecessor bc_window_before(const struct bc_window *window, size_t i);

/* Writes a key for each of the first n entries that covers its fields and its time: since its
 * predecessor (`by_delta`), or absolute, plus the skew. */
void bc_window_timed_keys(
	const struct bc_window *window, size_t n, bool by_delta, uint64_t skew, uint64_t *keys);

/* ---- Times of entries. Inline, because they are compared for every pair. */

static inline bool bc_time_is_compared(const struct bc_match_options *options)
{
	return (options->fields & BC_FIELD_TIME) != 0;
}

static inline bool bc_time_has_no_delta(const struct bc_entry *entry)
{
	return entry->has_delta && entry->delta == BC_TIME_NONE;
}

/* True if the times of a pair are equal after adding `skew` to A's. */
static inline bool bc_time_is_same(const struct bc_match_options *options, const struct bc_entry *a,
	const struct bc_entry *b, uint64_t skew)
{
	if (!bc_time_is_compared(options) || ((a->traits | b->traits) & BC_TRAIT_TIME) == 0)
		return true;
	if ((a->traits & b->traits & BC_TRAIT_TIME) == 0)
		return false;
	if (a->unit != b->unit && a->unit != BC_UNIT_TICK && b->unit != BC_UNIT_TICK)
		return false;
	if (options->is_same_clock ? a->epoch != b->epoch
				   : a->has_delta && b->has_delta &&
					     bc_time_has_no_delta(a) != bc_time_has_no_delta(b))
		return false;
	uint64_t apart = b->tick - a->tick - skew;
	return apart <= options->window || 0 - apart <= options->window;
}

/* ---- align.c: aligns two sequences of keys: finds which items of one correspond to which of the
 * other, so that few items remain without a counterpart. Equal items have equal keys. */

/* a[a, a + n) corresponds to b[b, b + n). */
struct bc_block {
	size_t a;
	size_t b;
	size_t n;
};

/* Appends a block, or extends the last one; nothing if n is 0. Returns the number of blocks. */
size_t bc_block_append(struct bc_block *blocks, size_t count, size_t a, size_t b, size_t n);

struct bc_align;

/* Returns 0 or -ENOMEM. Sequences have at most `items`, up to 1,000,000, of 280 bytes each. */
int bc_align_open(struct bc_align **align, size_t items) BC_MUST_CHECK;
void bc_align_close(struct bc_align *align);

/* Aligns a[0, n) and b[0, m). Writes at most min(n, m) blocks, in increasing order in both
 * sequences, and returns their number. */
size_t bc_align_run(struct bc_align *align, const uint64_t *a, size_t n, const uint64_t *b,
	size_t m, struct bc_block *blocks);

struct bc_pair {
	uint32_t a;
	uint32_t b;
};

/* Reduces pairs to the longest chain in which both numbers increase. `pairs` must be sorted by `a`
 * and, if that is equal, by `b` downwards; `work` needs room for 2 * count numbers. Returns the
 * length of the chain, which is at the start of `pairs`. */
size_t bc_longest_chain(struct bc_pair *pairs, size_t count, uint32_t *work);

/* ---- plan.c: which entries of the two windows match, by their contents or by their times. */

struct bc_plan {
	const struct bc_match_options *options; /* the owner's, and the windows */
	const struct bc_window *a;
	const struct bc_window *b;
	uint64_t skew; /* of B's clock against A's; the owner sets it */
	/* The result: blocks of matches, as indices from the start of the windows, and the ends of
	 * the entries for which it is known what matches. */
	struct bc_block *blocks;
	size_t count;
	size_t a_stop;
	size_t b_stop;
	size_t matched; /* entries of each window that have a match, also beyond these ends */
	/* Private. */
	struct bc_align *align;
	struct bc_block *parts;
	uint64_t *a_keys;
	uint64_t *b_keys;
};

/* Returns 0, or -ENOMEM with nothing to free. The options and windows must outlive the plan. */
int bc_plan_init(struct bc_plan *plan, const struct bc_match_options *options,
	const struct bc_window *a, const struct bc_window *b) BC_MUST_CHECK;
void bc_plan_free(struct bc_plan *plan);

/* Aligns the first n entries of A and k of B, neither of which is 0, by their contents. Returns
 * false if nothing is settled: more entries are needed, or at the last try nothing matches. */
bool bc_plan_align(struct bc_plan *plan, size_t n, size_t k, bool is_last_try) BC_MUST_CHECK;

/* The same for traces without times, and up to the last match: the windows end where the best
 * alignment leaves them (bc_edge_find()). Either may be empty. */
void bc_plan_align_to_edge(struct bc_plan *plan, size_t n, size_t k);

/* The same for traces on the same clock, by their times. */
bool bc_plan_align_by_time(struct bc_plan *plan, size_t n, size_t k) BC_MUST_CHECK;

/* ---- edge.c: where the best alignment leaves the largest windows. It reads the traces again. */

/* The keys of the next entries of a trace. */
struct bc_edge_keys {
	void *again; /* the trace, read a second time */
	const struct bc_entry *run;
	size_t left;
	uint64_t *keys;
	size_t count;
	size_t room;
	uint64_t position; /* of the first key, or of `run` */
};

struct bc_edge {
	struct bc_edge_keys a;
	struct bc_edge_keys b;
	struct bc_edge_reach *reach;
	uint64_t diagonals; /* visited by all searches */
	bool can_read;
};

/* Looks at what comes after the next *n and *k entries, which are all that the windows show.
 * Returns true and reduces one of them, perhaps to 0, if the best alignment leaves the windows
 * there; false if that is unknown. `edge` must be zero at first. */
bool bc_edge_find(struct bc_edge *edge, const struct bc_window *a, const struct bc_window *b,
	size_t *n, size_t *k);
void bc_edge_close(
	struct bc_edge *edge, const struct bc_match_source *a, const struct bc_match_source *b);

/* ---- far.c: where two traces meet again beyond the look-ahead. It reads them again. */

/* How many entries of each trace are searched. */
#define BC_FAR_MAX (UINT64_C(16) << 20)

/* Entries [0, *a_position) of A and [0, *b_position) of B have already been compared. Returns 1 and
 * advances both to the start of a long common part; 0 if they do not meet again; -ENOTSUP if a
 * trace can be read only once; -ENOMEM. Needs 10 MiB. Adds the entries read to *entries_read. */
int bc_far_find(const struct bc_match_source *a, const struct bc_match_source *b, uint64_t fields,
	uint64_t *a_position, uint64_t *b_position, uint64_t *entries_read) BC_MUST_CHECK;

#endif
