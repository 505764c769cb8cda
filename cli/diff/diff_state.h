/* A comparison under way: what was asked for, what was found, and the difference at hand. */
#ifndef BC_CLI_DIFF_DIFF_STATE_H
#define BC_CLI_DIFF_DIFF_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/io/trace.h"
#include "cli/term/console.h"
#include "cli/term/output.h"
#include "formats/diff/match.h"
#include "formats/reader/entry_convert.h"
#include "formats/trace/entry_text.h"

/* One entry of a difference, or of what stands around it. */
struct bc_diff_line {
	uint64_t number; /* its place in its trace */
	uint64_t fields; /* of a pair: those that differ */
	char text[BC_ENTRY_TEXT_MAX];
};

struct bc_diff_side {
	const char **paths; /* the command line's: of A one, of B one or a recording's segments */
	int path_count;
	struct bc_trace trace;
	struct bc_entry_converter fit;
	const struct bc_entry *run; /* what is left of what the fit gave */
	size_t left;
	const struct bc_diff *diff; /* whose side it is */
	uint64_t entries;           /* that were compared */
	bool has_last;
	uint64_t last; /* number of the last of them */
	/* Of the difference at hand: */
	uint64_t count;
	uint64_t first; /* numbers, with a count */
	bool has_behind;
	uint64_t behind;            /* number of the entry before it */
	struct bc_diff_line *lines; /* the first of them, up to `show` */
};

struct bc_diff {
	const struct bc_console *console;
	struct bc_diff_side a;
	struct bc_diff_side b;
	struct bc_match *match;
	struct bc_output output;
	/* What was asked for. */
	uint64_t only;   /* classes of entries: bc_diff_class_name() */
	uint64_t fields; /* BC_FIELD_* */
	size_t limit;    /* differences; 0: all */
	size_t show;
	size_t context;
	size_t lookahead;
	bool is_json;
	bool is_quiet;
	bool has_color;
	/* What was found. */
	uint64_t same;
	uint64_t reordered;
	uint64_t changed; /* pairs of entries that stand in each other's place */
	uint64_t only_a;
	uint64_t only_b;
	uint64_t differences;
	bool is_stopped;
	/* The difference at hand. */
	bool is_open;
	bool is_paired; /* entry for entry; `differ` are the fields in which they do */
	uint64_t differ;
	int64_t shifted;
	bool is_lost;
	/* The last entries before it that match and have not been shown, and how many of those
	 * behind the last difference are still to be. */
	struct bc_diff_line *before;
	size_t before_count;
	size_t after;
};

#endif
