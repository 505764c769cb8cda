/* Where a command writes a trace: any format that can be written, to a file or standard output; a
 * segment to a file alone, one that isn't there yet.
 *
 *     bc_target_open()
 *     bc_target_add() ...       entries, as they come
 *     bc_target_close()         what the format could not hold is told, by kind
 */
#ifndef BC_CLI_IO_TARGET_H
#define BC_CLI_IO_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/io/output_file.h"
#include "cli/io/segment_target.h"
#include "cli/io/trace.h"
#include "cli/term/console.h"
#include "cli/term/output.h"
#include "formats/reader/entry_convert.h"
#include "formats/trace/printer.h"

struct bc_target {
	const struct bc_console *console;
	const char *path; /* NULL: the console's output */
	enum bc_format format;
	const struct bc_format_info *info;
	bool is_strict;
	/* Where the entries come from: for messages that name one, and for what a segment says of
	 * it. Who merges traces sets both before each bc_target_add(). */
	const struct bc_trace *source;
	const struct bc_moment *moment;
	struct bc_entry_converter converter;
	struct bc_segment_target *segment; /* NULL: it goes through the printer */
	struct bc_output_file file;        /* that `own` goes to */
	struct bc_output own;
	struct bc_output *output; /* own, or that of the target beside */
	void *state;              /* the printer's */
	uint64_t kept_lines;      /* of kinds that aren't modelled */
	enum bc_exit exit;
};

struct bc_target_options {
	enum bc_format format;
	struct bc_format_options options;
	const char *path;        /* "-" or NULL: the console's output */
	bool is_strict;          /* what the format can't hold is refused, not counted */
	struct bc_origin origin; /* of a segment: what its metadata say; key NULL: converted_from */
	uint32_t source_holds;   /* traits that may come beside those of the source */
	/* Writes into this one's output, which is closed later; NULL: into its own. */
	struct bc_target *shared;
};

/* Whether anything of a trace can stand in a format; complains, with a usage error, if not. */
enum bc_exit bc_target_check(
	const struct bc_console *console, const struct bc_trace *trace, enum bc_format to);

/* Opens it; `source` is the trace that the entries come from, and stays the caller's. Returns
 * BC_EXIT_OK, or another code after a complaint, with nothing to close. */
enum bc_exit bc_target_open(struct bc_target *target, const struct bc_console *console,
	const struct bc_target_options *options, const struct bc_trace *source);

/* Writes entries, or as many as it can: returns false when no more are of use, because somebody
 * stopped reading, an entry is too large, or something is lost that may not be; target->exit says
 * which. */
bool bc_target_add(struct bc_target *target, const struct bc_entry *entries, size_t count);

/* What is known of the source at its end, trace->exit: where something of it could not be read at
 * all, that is said of the output, and a segment is not sealed, for its name says that it is whole.
 * What is damaged or malformed has been told, and is no reason for that. */
void bc_target_end_source(struct bc_target *target, enum bc_exit exit);

/* Shows what is gathered when the source has to be waited for. */
void bc_target_flush_if_idle(struct bc_target *target);

/* Completes what was written. Returns how it went. */
enum bc_exit bc_target_close(struct bc_target *target);

#endif
