/* The inputs of a merge: each a trace of its own, whose next entry has a time to be ordered by.
 *
 *     bc_merge_input_open() of each
 *     bc_merge_input_fill() of each, before its first entry and whenever it has none left
 *     bc_merge_input_peek() at each entry that has come to stand first, for its key
 *
 * The entry of the input whose key is the least is then taken off: `at` and `left`. */
#ifndef BC_CLI_TRACE_MERGE_INPUT_H
#define BC_CLI_TRACE_MERGE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/io/trace.h"

enum bc_merge_by {
	BC_MERGE_BY_UNKNOWN,
	BC_MERGE_BY_TICK, /* epoch and tick as they stand: one clock */
	BC_MERGE_BY_WALL, /* the time of day, in ns */
};

/* What entries are ordered by. */
struct bc_merge_key {
	uint32_t epoch;
	uint64_t time; /* tick, or ns since 1970 with the sign bit turned over */
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
	uint64_t clock_hz; /* where the trace doesn't tell its own; 0: not known either */
	const struct bc_entry *at;
	size_t left;
	struct bc_merge_key key; /* of the entry at `at` */
	bool is_over;
	bool has_key;        /* an entry with a time has gone by */
	bool no_clock;       /* a time of day could not be told */
	uint64_t disorders;  /* entries whose time lies before that of the one before */
	uint64_t most_early; /* by how much, at most */
};

/* Opens it. Returns BC_EXIT_OK, or another code after a complaint; close it in any case. */
enum bc_exit bc_merge_input_open(struct bc_merge_input *input, enum bc_format wanted,
	const struct bc_reader_options *options);
void bc_merge_input_close(struct bc_merge_input *input);

/* Reads on until there is an entry or nothing more: is_over. Set the key of a first entry with
 * bc_merge_input_peek(), once it is known what to merge by. */
void bc_merge_input_fill(struct bc_merge_input *input);

/* Sets the key of the entry at hand. An entry without a time goes behind the one before, and so
 * does one whose time lies before that one's. */
void bc_merge_input_peek(struct bc_merge_input *input, enum bc_merge_by by);

#endif
