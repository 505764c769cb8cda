/* The traces that a command reads: its files, one after another, as one row of batches.
 *
 * What is wrong with them is told on standard error as it is met, the first few of each file one by
 * one and the rest by their number, and kept in `exit`. */
#ifndef BC_CLI_IO_TRACE_H
#define BC_CLI_IO_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/io/file.h"
#include "cli/term/console.h"
#include "cli/term/progress.h"
#include "formats/reader/reader.h"

/* What ties ticks to the time of day: the clock stood at `tick` of `epoch` at that time. */
struct bc_moment {
	bool is_known;
	int64_t wall_ns; /* since 1970 UTC */
	uint64_t tick;
	uint32_t epoch;
	uint64_t clock_hz; /* 0: not known */
};

struct bc_trace {
	const struct bc_console *console;
	const char **paths; /* the caller's */
	int count;
	int next; /* the file to be opened next */
	enum bc_format wanted;
	enum bc_format format; /* of the files; all are of one */
	struct bc_reader_options options;
	struct bc_file file; /* the one at hand, when is_open */
	bool is_open;
	struct bc_reader *reader;
	struct bc_sequence_check sequence;
	uint64_t faults; /* of the file at hand */
	struct bc_progress own_progress;
	struct bc_progress *progress; /* that or another trace's; NULL: none is shown */
	uint64_t done_bytes;          /* of the files before it */
	uint64_t shown_bytes;         /* so many of the progress are this trace's */
	struct bc_moment moment;      /* of segments: the chunk of the batch */
	bool has_header;
	struct bc_segment_header header; /* the first that was met */
	enum bc_exit exit;
};

/* Opens the first of the files, "-" being the console's input, and tells its format; `wanted` is
 * the one that the user named, or BC_FORMAT_UNKNOWN. Segments are put in order first. `options` is
 * copied, but for its `continuity` and `index_fd`, which are the trace's own. Returns BC_EXIT_OK,
 * or another code after a complaint; close it in any case. */
enum bc_exit bc_trace_open(struct bc_trace *trace, const struct bc_console *console,
	const char **paths, int count, enum bc_format wanted,
	const struct bc_reader_options *options);
void bc_trace_close(struct bc_trace *trace);

/* From now on shows on a terminal how far it is, on the line of `with`, another trace that shows it
 * already and stays where it is, or on its own: NULL. Neither trace may be moved then. */
void bc_trace_show_progress(struct bc_trace *trace, struct bc_trace *with);

/* Takes that off the screen, before something else is written there and at the end. */
void bc_trace_hide_progress(const struct bc_trace *trace);

/* The next batch, of whichever file: true, or false at the end, or when reading failed and
 * trace->exit says so. A fault behind the batch has been told already. */
bool bc_trace_next(struct bc_trace *trace, struct bc_batch *batch);

/* "record 17", "sample 17", "line 18": how a message names an entry of the trace. */
#define BC_PLACE_TEXT_MAX 48
const char *bc_trace_place(
	const struct bc_trace *trace, uint64_t number, char out[BC_PLACE_TEXT_MAX]);

/* Nothing more of the file at hand is wanted: the next batch is of the next file. */
void bc_trace_skip_file(struct bc_trace *trace);

/* Ticks a second of the file at hand, before it is read: what a segment's header says; 0: not
 * known.
 */
uint64_t bc_trace_clock_hz(const struct bc_trace *trace);

/* The traits that the trace's entries may have, with what the options add. */
uint32_t bc_trace_has(const struct bc_trace *trace);

#endif
