/* The inputs of a merge: open traces whose next entries have keys to order by.
 *
 *     bc_merge_input_fill()     before the first entry, and when there are none left
 *     bc_merge_input_peek()     sets the key of the next entry
 *
 * The caller consumes the entry of the input with the lowest key by advancing `at` and `left`. */
#ifndef BC_CLI_TRACE_MERGE_INPUT_H
#define BC_CLI_TRACE_MERGE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/io/operands.h"
#include "cli/io/trace.h"

enum bc_merge_by {
	BC_MERGE_BY_UNKNOWN,
	BC_MERGE_BY_TICK, /* epoch and tick: the inputs share one clock */
	BC_MERGE_BY_WALL, /* time of day, in ns */
};

/* The order of entries. */
struct bc_merge_key {
	uint32_t epoch;
	uint64_t time; /* tick, or ns since 1970 with the sign bit inverted */
};

static inline bool bc_merge_key_is_less(struct bc_merge_key a, struct bc_merge_key b)
{
	return a.epoch != b.epoch ? a.epoch < b.epoch : a.time < b.time;
}

struct bc_merge_input {
	const struct bc_console *console;
	const char **paths; /* the caller's */
	int count;
	struct bc_trace trace;
	uint64_t clock_hz; /* used if the trace has no clock rate; 0: unknown */
	const struct bc_entry *at;
	size_t left;
	struct bc_merge_key key; /* of the entry at `at` */
	bool is_over;
	bool has_key;        /* `key` is set: an entry had a time */
	bool no_clock;       /* a time of day was needed but unknown */
	uint64_t disorders;  /* entries with an earlier time than their predecessor */
	uint64_t most_early; /* the largest such difference */
};

/* Reads until there is an entry, or sets is_over at the end. */
void bc_merge_input_fill(struct bc_merge_input *input);

/* Sets the key of the next entry. An entry without a time, or with an earlier time than its
 * predecessor, gets the predecessor's key. */
void bc_merge_input_peek(struct bc_merge_input *input, enum bc_merge_by by);

/* Zero-initialised: no inputs. */
struct bc_merge_inputs {
	struct bc_merge_input *all;
	size_t count;
};

/* Makes an input of each group of the files, which must outlive them. Opens nothing. Returns false
 * if out of memory. Close the inputs in either case. */
bool bc_merge_inputs_make(struct bc_merge_inputs *inputs, const struct bc_console *console,
	const struct bc_files *files, uint64_t clock_hz);
void bc_merge_inputs_close(struct bc_merge_inputs *inputs);

/* Returns true if there are several inputs, and each is a different recording in segments. The
 * inputs must be open. */
bool bc_merge_inputs_are_recordings(const struct bc_merge_inputs *inputs);

/* Returns true if the first entry of each input had a time of day. Otherwise prints an error. Call
 * it after bc_merge_input_peek() of each. */
bool bc_merge_inputs_have_clocks(const struct bc_merge_inputs *inputs);

/* Returns the index of the input that comes first, and in *rival that of the second; `count` if
 * there is none. */
size_t bc_merge_inputs_first(const struct bc_merge_inputs *inputs, size_t *rival);

/* Returns true if `first` still comes before `rival`. */
bool bc_merge_inputs_stays_first(const struct bc_merge_inputs *inputs, size_t first, size_t rival);

#endif
