/* The state of a dump, shared by the modules for the kinds of files, and the printing of lines that
 * start with "# ". */
#ifndef BC_CLI_TRACE_DUMP_PRINT_H
#define BC_CLI_TRACE_DUMP_PRINT_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/io/file.h"
#include "cli/io/record_text.h"
#include "cli/term/console.h"
#include "cli/term/options.h"
#include "cli/term/output.h"
#include "formats/base/options.h"
#include "formats/segment/sequence_check.h"

/* A dump: its options and its progress. */
struct bc_dump {
	const struct bc_console *console;
	struct bc_output output;
	struct bc_format_options format; /* options of the input format */
	struct bc_record_text text;
	struct bc_sequence_check sequence;
	bool has_last; /* `last` is the previous chunk, printed or not */
	struct bc_chunk_info last;
	uint64_t repeated_chunks; /* in the current file: not printed, they were read before */
	uint64_t repeated_records;
	struct bc_range records;
	struct bc_range ticks;
	struct bc_range epochs;
	uint64_t end;     /* after the highest record, sample or line number so far */
	bool has_range;   /* records, ticks or epochs is restricted */
	bool has_epochs;  /* epochs is restricted */
	bool has_ticks;   /* the tick of each record is needed, to select or to print */
	bool is_plain;    /* omit lines that start with '#' */
	bool is_absolute; /* append the tick to each line */
	bool has_epoch;   /* `epoch` is that of the last chunk or frame printed */
	uint32_t epoch;
	enum bc_exit exit;
};

/* Print a line that starts with '#', or nothing if the dump is plain. Texts are escaped. */
void bc_dump_gap(struct bc_dump *dump, const struct bc_event *gap);
void bc_dump_note(struct bc_dump *dump, const char *word, const char *text, size_t bytes);
void bc_dump_epoch(struct bc_dump *dump, uint32_t epoch);

/* Prints an error about damaged bytes, and sets dump->exit. */
void bc_dump_damage(struct bc_dump *dump, const struct bc_file *file, uint64_t offset,
	uint64_t bytes, const char *what);

/* Returns true if a record or sample is selected. */
static inline bool bc_dump_selects(
	const struct bc_dump *dump, uint64_t number, uint64_t tick, uint32_t epoch)
{
	return bc_range_has(dump->records, number) && bc_range_has(dump->ticks, tick) &&
	       bc_range_has(dump->epochs, epoch);
}

#endif
