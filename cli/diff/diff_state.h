/* The state of a comparison: options, counts, and the current difference. */
#ifndef BC_CLI_DIFF_DIFF_STATE_H
#define BC_CLI_DIFF_DIFF_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/diff/match.h"
#include "cli/io/operands.h"
#include "cli/io/trace.h"
#include "cli/term/console.h"
#include "cli/term/output.h"
#include "formats/codec/format.h"
#include "formats/trace/entry.h"
#include "formats/trace/filter.h"

/* ---- What the headers of two segments say about how their recordings are related. */

struct bc_diff_origin {
	bool is_known;
	char recordings[1024]; /* ids of this recording and of those that it was made from */
	char cut[1024];        /* the selection, if it was cut from another one; or empty */
	bool has_filter;       /* it selects by address, type or processor: */
	struct bc_filter filter;
};

/* Reads the header of the trace's current file, without reading on. */
void bc_diff_origin_read(struct bc_diff_origin *origin, const struct bc_trace *trace);

/* Whether both were made from one recording, so that they are on one clock. */
bool bc_diff_origin_is_shared(const struct bc_diff_origin *a, const struct bc_diff_origin *b);

/* An entry of a difference, or of its context. */
struct bc_diff_line {
	uint64_t number; /* in its trace */
	uint64_t fields; /* in a pair: those that differ */
	char text[BC_ENTRY_TEXT_MAX];
};

struct bc_diff_side {
	struct bc_operands operands;
	struct bc_files files; /* one file, or the segments of a recording */
	struct bc_peek peek;
	struct bc_trace trace;
	struct bc_entry_converter fit;
	const struct bc_entry *run; /* unread entries of the fit's output */
	size_t left;
	const struct bc_diff *diff; /* the owner */
	bool is_waiting;            /* for the start address */
	struct bc_diff_origin origin;
	uint64_t filtered; /* entries that the other trace's selection leaves out */
	uint64_t entries;  /* entries compared */
	bool has_last;
	uint64_t last; /* number of the last entry compared */
	/* The current difference: */
	uint64_t count;
	uint64_t first; /* numbers of its first and last entry, if count != 0 */
	uint64_t end;
	bool has_behind;
	uint64_t behind;            /* number of the entry before it */
	struct bc_diff_line *lines; /* its first entries, up to `show` */
	uint64_t moved;             /* entries that the other side has elsewhere */
	uint64_t moved_first;       /* number of the first of them */
	uint64_t moved_from;        /* where the other side has it */
	bool has_gap;               /* it lost samples here: */
	struct bc_diff_line gap;
};

struct bc_diff {
	const struct bc_console *console;
	struct bc_diff_side a;
	struct bc_diff_side b;
	struct bc_match *match;
	struct bc_output output;
	/* Options. */
	uint64_t only;   /* classes of entries: bc_diff_class_name() */
	uint64_t fields; /* BC_FIELD_* */
	size_t limit;    /* differences; 0: all */
	size_t show;
	size_t context;
	size_t lookahead;
	bool has_start; /* begin at the first entry with this address */
	uint64_t start;
	bool is_same_clock;
	bool ignores_rest;
	bool is_json;
	bool is_quiet;
	bool has_color;
	/* Counts. */
	uint64_t same;
	uint64_t reordered;
	uint64_t changed; /* pairs of entries that differ */
	uint64_t only_a;
	uint64_t only_b;
	uint64_t moved;
	uint64_t differences;
	bool is_stopped;
	/* The current difference. */
	bool is_open;
	bool is_paired; /* compared entry by entry; `differ` are the fields that differ */
	uint64_t differ;
	int64_t shifted;
	bool is_lost;
	bool is_pipe; /* matches further away could not be searched */
	/* Context: the last matching entries that have not been printed, and the number of matching
	 * entries to print after the last difference. */
	struct bc_diff_line *before;
	size_t before_count;
	size_t after;
};

#endif
