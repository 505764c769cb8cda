/* The state of a comparison, shared by the command (diff.c), its options (diff_options.c) and what
 * it prints (diff_print.c): options, both traces, counts, and the current difference. */
#ifndef BC_CLI_DIFF_DIFF_H
#define BC_CLI_DIFF_DIFF_H

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

/* An entry of a difference, or of its context. */
struct bc_diff_line {
	uint64_t number; /* in its trace */
	uint64_t fields; /* in a pair: those that differ */
	char text[BC_ENTRY_TEXT_MAX];
};

/* What a segment's header says about the recordings that its records come from. */
struct bc_diff_origin {
	/* " ID ID ": of this recording, and of those that it was made from; "": unknown */
	char recordings[1024];
	char cut[1024];  /* the selection, if it was cut from another one; or empty */
	bool has_filter; /* the selection is by address, type or processor: */
	struct bc_filter filter;
};

/* One of the two traces. */
struct bc_diff_side {
	const struct bc_diff *diff; /* the owner */
	struct bc_operands operands;
	struct bc_files files; /* one file, or the segments of a recording */
	enum bc_format format; /* BC_FORMAT_UNKNOWN: detect by content */
	struct bc_reader_options reader;
	struct bc_peek peek;
	struct bc_trace trace;
	struct bc_console silent; /* of a side that is read a second time */
	struct bc_diff_origin origin;
	struct bc_entry_converter converter; /* to the other format's entries */
	const struct bc_entry *run;          /* unread entries of the converter's output */
	size_t left;
	bool awaits_start; /* the entry with the start address has not been reached */
	uint64_t filtered; /* entries that the other trace's selection leaves out */
	uint64_t entries;  /* entries compared */
	bool has_last;
	uint64_t last; /* number of the last entry compared */
	/* The current difference: */
	uint64_t count;
	uint64_t first; /* numbers of its first and last entry, if count != 0 */
	uint64_t end;
	bool has_previous;
	uint64_t previous;          /* number of the entry before it */
	struct bc_diff_line *lines; /* its first entries, up to `show` */
	bool has_gap;               /* samples were lost here: */
	struct bc_diff_line gap;
};

struct bc_diff {
	const struct bc_console *console;
	struct bc_diff_side a;
	struct bc_diff_side b;
	struct bc_match_options how;
	struct bc_match *match;
	struct bc_output output;
	/* Options. */
	uint64_t only;          /* classes of entries: bc_diff_class_name(); 0: all */
	uint64_t wanted_fields; /* BC_FIELD_*; 0: all that can be compared */
	uint64_t ignored_fields;
	uint64_t limit; /* differences; 0: all */
	uint64_t show;
	uint64_t context; /* 0 if it is not printed */
	bool has_start;   /* begin at the first entry with this address */
	uint64_t start;
	bool is_json;
	bool is_quiet;
	bool has_color;
	/* Counts. */
	uint64_t same;
	uint64_t reordered;
	uint64_t changed; /* pairs of entries that differ */
	uint64_t only_a;
	uint64_t only_b;
	uint64_t differences;
	bool is_stopped; /* at the limit */
	/* The current difference. */
	bool is_open;
	bool is_paired; /* compared entry by entry; `differ` are the fields that differ */
	uint64_t differ;
	int64_t shifted;
	bool is_lost;
	bool is_pipe; /* matches beyond the look-ahead could not be searched */
	/* Context: the last matching entries that have not been printed, and the number of matching
	 * entries to print after the last difference. */
	struct bc_diff_line *before;
	size_t before_count;
	size_t after;
};

/* ---- Options: diff_options.c */

/* Classes of entries for --only. Fetches are instructions: some formats have only these. */
enum {
	BC_DIFF_INST = 1u << 0,
	BC_DIFF_MEM = 1u << 1,
	BC_DIFF_REG = 1u << 2,
	BC_DIFF_UOP = 1u << 3,
	BC_DIFF_KERNEL = 1u << 4,
	BC_DIFF_EVENT = 1u << 5,
	BC_DIFF_LINE = 1u << 6,
	BC_DIFF_CLASSES = (1u << 7) - 1,
};

/* Returns the class of an entry. */
uint32_t bc_diff_class_of(const struct bc_entry *entry);

/* Returns the classes of entries with these traits. */
uint32_t bc_diff_classes_of(bc_traits traits);

/* The name of a class: "inst", "mem", ... */
const char *bc_diff_class_name(uint64_t one);

/* Reads the arguments into `diff`, whose console must be set. Returns false if the command must
 * exit with *code: after an error or after printing help. */
bool bc_diff_read_options(struct bc_diff *diff, int argc, char **argv, enum bc_exit *code);

/* ---- Printing: diff_print.c. As text, as JSON (one object per line: docs/diff.md) or, if quiet,
 * not at all. */

/* Prints the names of the traces. */
void bc_diff_print_start(struct bc_diff *diff);

/* Prints the current difference, which must be complete. */
void bc_diff_print_difference(struct bc_diff *diff);

/* Prints a matching entry after a difference, as text. */
void bc_diff_print_context(struct bc_diff *diff, const struct bc_diff_line *line);

/* Prints as one difference all entries of `side` that the selection of the `other` leaves out. */
void bc_diff_print_filtered(
	struct bc_diff *diff, const struct bc_diff_side *side, const struct bc_diff_side *other);

/* Prints the summary. `is_whole`: both traces were read to the end, and nothing was damaged. */
void bc_diff_print_summary(struct bc_diff *diff, bool is_whole);

#endif
