/* What the kinds of files that are dumped share: what was asked for, and the lines that begin with
 * "# ". */
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

/* A dump under way: what is wanted, and how far it is. */
struct bc_dump {
	const struct bc_console *console;
	struct bc_output output;
	struct bc_format_options format; /* what was said behind the format's name */
	struct bc_record_text text;
	struct bc_sequence_check sequence;
	bool has_last; /* `last` is the chunk that was passed last, printed or not */
	struct bc_chunk_info last;
	uint64_t repeated_chunks; /* of the file at hand, left out: they were there before */
	uint64_t repeated_records;
	struct bc_range records;
	struct bc_range ticks;
	struct bc_range epochs;
	bool has_range;   /* some of it isn't wanted */
	bool has_epochs;  /* of these, the epochs are not all */
	bool has_ticks;   /* each record's tick is: to choose by, or to print */
	bool is_plain;    /* no lines that begin with '#' */
	bool is_absolute; /* each line ends in its tick */
	bool has_epoch;   /* `epoch` is that of the chunk or frame printed last */
	uint32_t epoch;
	enum bc_exit exit;
};

/* The lines that begin with '#'; none when the dump is plain. */
void bc_dump_gap(struct bc_dump *dump, const struct bc_event *gap);
void bc_dump_note(struct bc_dump *dump, const char *word, const char *text, size_t bytes);
void bc_dump_epoch(struct bc_dump *dump, uint32_t epoch);

/* Complains of a place that can't be read; the dump goes on. */
void bc_dump_damage(struct bc_dump *dump, const struct bc_file *file, uint64_t offset,
	uint64_t bytes, const char *what);

/* Whether a record or sample is wanted. */
static inline bool bc_dump_selects(
	const struct bc_dump *dump, uint64_t number, uint64_t tick, uint32_t epoch)
{
	return bc_range_has(dump->records, number) && bc_range_has(dump->ticks, tick) &&
	       bc_range_has(dump->epochs, epoch);
}

#endif
