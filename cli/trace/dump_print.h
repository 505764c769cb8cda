/* The state of a dump, the kinds of files that dump.c does not print itself, and lines that
 * start with "# ". */
#ifndef BC_CLI_TRACE_DUMP_PRINT_H
#define BC_CLI_TRACE_DUMP_PRINT_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/io/file.h"
#include "cli/io/filter_args.h"
#include "cli/io/record_text.h"
#include "cli/term/console.h"
#include "cli/term/options.h"
#include "cli/term/output.h"
#include "formats/base/format_id.h"
#include "formats/codec/reader.h"
#include "formats/segment/sequence_check.h"

/* What follows each record. */
enum bc_dump_time {
	BC_DUMP_DELTA, /* nothing: a record ends with its time */
	BC_DUMP_TICK,
	BC_DUMP_RELATIVE, /* seconds since the first record */
	BC_DUMP_WALL,     /* the time of day */
	BC_DUMP_TIMES,
};

/* A dump: its options and its progress. */
struct bc_dump {
	const struct bc_console *console;
	struct bc_output output;
	struct bc_reader *reader;        /* of the current file, if bc_dump_read() reads it */
	struct bc_format_options format; /* options of the input format */
	struct bc_record_text text;
	struct bc_sequence_check sequence;
	struct bc_filter_args args; /* what to print */
	bool is_part;               /* not everything */
	bool is_by_field;           /* it depends on addresses, types or processors */
	bool is_by_record; /* records must be looked at one by one, to select or to print */
	enum bc_dump_time time;
	struct bc_name_map *names; /* NULL: no names are shown */
	uint64_t clock_hz;         /* of the current segment; 0: unknown */
	bool has_start;            /* `start_ns` is the time of day of the first record */
	int64_t start_ns;
	bool has_warned; /* about an unknown clock rate */
	uint64_t end;    /* after the highest record, sample or line number so far */
	bool is_plain;   /* omit lines that start with '#' */
	bool has_epoch;  /* `epoch` is that of the last chunk or frame printed */
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

/* Reads a file with a reader, in dump->reader, and prints its faults. print() gets each batch, and
 * returns whether to go on. Sets dump->exit. */
void bc_dump_read(struct bc_dump *dump, const struct bc_file *file,
	const struct bc_reader_options *options,
	bool (*print)(void *context, const struct bc_batch *batch), void *context);

/* Returns true if a record or sample is selected by number, tick and epoch. */
static inline bool bc_dump_selects(
	const struct bc_dump *dump, uint64_t number, uint64_t tick, uint32_t epoch)
{
	const struct bc_filter *f = &dump->args.filter;

	return bc_span_has(f->numbers, number) && bc_span_has(f->ticks, tick) &&
	       bc_span_has(f->epochs, epoch);
}

/* Appends the tick to the line that was printed last, if wanted. */
void bc_dump_tick(struct bc_dump *dump, char before, uint64_t tick);

/* Appends the name of an address to the line that was printed last, if it has one. */
void bc_dump_name(struct bc_dump *dump, char before, bool is_port, uint64_t addr);

/* Checks that a format other than segments has what the options need. Returns false after printing
 * an error, with dump->exit set. */
bool bc_dump_check(struct bc_dump *dump, const struct bc_file *file);

/* Print one file and set dump->exit: a segment, whose records are printed like b2a does; a plain
 * file of records or samples (BYU and its dialects, raw6); bcp1 frames. */
void bc_dump_segments(struct bc_dump *dump, struct bc_file *file);
void bc_dump_plain(struct bc_dump *dump, struct bc_file *file);
void bc_dump_frames(struct bc_dump *dump, struct bc_file *file);

#endif
