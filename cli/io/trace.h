/* The input of a command: its files, read one after another as one sequence of batches.
 *
 * Faults are printed to standard error as they are found, and recorded in `exit`. */
#ifndef BC_CLI_IO_TRACE_H
#define BC_CLI_IO_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/io/file.h"
#include "cli/term/console.h"
#include "cli/term/json_path.h"
#include "cli/term/text.h"
#include "formats/base/format_id.h"
#include "formats/bus/chunk.h"
#include "formats/bus/loss.h"
#include "formats/codec/reader.h"
#include "formats/trace/entry.h"
#include "formats/trace/parser.h"

/* ---- Messages about the faults that a reader found (malformed, torn, missing): the first 10 of a
 * file individually, then the number of the others. */

/* Prints a fault, unless `reported`, the number of the file's previous ones, is at the limit. */
void bc_print_fault(const struct bc_console *console, const char *file,
	const struct bc_fault *fault, uint64_t reported);

/* At the end of the file: prints what its format's parser left out or decided. */
void bc_print_notes(
	const struct bc_console *console, const char *file, const struct bc_parse_notes *notes);

/* At the end of the file: prints how many of its `faults` were not printed, if any. */
void bc_print_faults_left(const struct bc_console *console, const char *file, uint64_t faults);

/* ---- Gaps and losses, for people. */

/* Bytes, with the terminating zero. */
#define BC_GAP_TEXT_MAX 160

/* The samples lost in a recording, for a column or a line: "1,234", ">= 1,234", "unknown", or "-"
 * if they were not counted. `recording` is the JSON of bc_recording_summary_json(). */
const char *bc_loss_cell(char out[BC_HUMANIZE_MAX], struct bc_loss loss);
const char *bc_lost_cell(char out[BC_HUMANIZE_MAX], const json_t *recording);

/* Writes "at least 250 samples lost (buffer, 0.001200 s)". Returns `out`. */
const char *bc_gap_text(char out[BC_GAP_TEXT_MAX], const struct bc_event *gap);

struct bc_trace {
	const struct bc_console *console;
	const char **paths; /* the caller's */
	int count;
	int next; /* index of the next file to open */
	enum bc_format wanted;
	enum bc_format format; /* of all files; with accept(), of the current one */
	const char *layout;    /* the same for that of its lines, or NULL */
	struct bc_reader_options options;
	struct bc_file file; /* the current file, if is_open */
	bool is_open;
	struct bc_reader *reader;
	struct bc_sequence_check sequence;
	uint64_t faults;         /* of the current file */
	uint64_t done_bytes;     /* size of the files before the current one */
	uint64_t shown_bytes;    /* this trace's part of the progress */
	struct bc_moment moment; /* segments: of the batch's chunk */
	bool has_header;
	bc_traits traits;                /* of the entries of the current file */
	bool has_wall;                   /* they may have a time of day */
	struct bc_segment_header header; /* the first one found */
	enum bc_exit exit;
	/* Takes files of any format: is called when one is open, before it is read, and skips it by
	 * returning another code than BC_EXIT_OK. NULL: all must have the format of the first. */
	enum bc_exit (*accept)(void *context);
	void *context;
};

/* Opens the first file; "-" is the console's input. The files are read in the order given. `wanted`
 * is the format given by the user, or BC_FORMAT_UNKNOWN to detect it. `options` is copied, except
 * `sequence`, `is_partial` and `index_fd`, which the trace sets. Returns BC_EXIT_OK, or prints an
 * error and returns another code. Close the trace in either case. */
enum bc_exit bc_trace_open(struct bc_trace *trace, const struct bc_console *console,
	const char **paths, int count, enum bc_format wanted,
	const struct bc_reader_options *options);
/* The same, but opens nothing: bc_trace_next() opens the first file, too. Set `accept` then. */
void bc_trace_init(struct bc_trace *trace, const struct bc_console *console, const char **paths,
	int count, enum bc_format wanted, const struct bc_reader_options *options);
void bc_trace_close(struct bc_trace *trace);

/* True if all are regular files, which can be read twice. */
bool bc_are_regular_files(const char *const *paths, int count);

/* Shows progress on a terminal from now on, together with that of the command's other traces. */
void bc_trace_show_progress(const struct bc_trace *trace);

/* Reads the next batch, opening the next file if necessary. Returns false at the end of the last
 * file. A file that can't be read is reported, recorded in trace->exit, and skipped. A fault after
 * the batch is already reported. */
bool bc_trace_next(struct bc_trace *trace, struct bc_batch *batch);

/* Formats an entry's number for a message: "record 17", "sample 17", "line 18". Returns `out`. */
#define BC_PLACE_TEXT_MAX 48
const char *bc_trace_place(
	const struct bc_trace *trace, uint64_t number, char out[BC_PLACE_TEXT_MAX]);

/* The name of the format, or of the layout of its lines, of the files so far. */
const char *bc_trace_format_name(const struct bc_trace *trace);

/* Closes the current file: the next batch is from the next file. */
void bc_trace_skip_file(struct bc_trace *trace);

/* Reads the header of the current segment. Returns false without one, or if it is damaged. */
bool bc_trace_header(const struct bc_trace *trace, struct bc_segment_header *header);

/* Returns the clock rate in the header of the current segment, without reading on, or 0. */
uint64_t bc_trace_clock_hz(const struct bc_trace *trace);

/* Returns the traits that the trace's entries can have: the format's, and those set by options. */
bc_traits bc_trace_traits(const struct bc_trace *trace);

/* ---- A look at the start of a trace whose format leaves open which fields an entry has, to find
 * out what can be compared with another trace. */

struct bc_peek {
	bool is_known;    /* false: not a Tarmac file, or it can't be read twice */
	bc_traits traits; /* of any entry near the start */
	unsigned unit;    /* of the first time that names one, or BC_UNIT_TICK */
};

/* Reads the first 64 KiB of a Tarmac trace, and on until an access and an instruction were read (up
 * to 64 MiB), without messages. Other formats and files that are read only once stay unknown. */
struct bc_peek bc_peek(const struct bc_console *console, const char *path, enum bc_format format,
	const struct bc_reader_options *options);

/* How the times of two traces relate. */
enum bc_peek_units {
	BC_PEEK_SAME,        /* also if one of them names no unit */
	BC_PEEK_CONVERTIBLE, /* such as ns and ps */
	BC_PEEK_UNRELATED,   /* such as clk and ns */
};
enum bc_peek_units bc_peek_compare_units(struct bc_peek a, struct bc_peek b);

#endif
