/* The part of a trace that options select (cli/io/filter_args.h). Absolute times stay: the ticks of
 * dropped entries are added to the delta of the next kept one.
 *
 *     bc_selection_read()       before the trace is opened
 *     bc_selection_add() ...    each batch of the trace; passes on what is kept
 */
#ifndef BC_CLI_IO_SELECTION_H
#define BC_CLI_IO_SELECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/io/filter_args.h"
#include "cli/io/trace.h"
#include "cli/term/console.h"
#include "formats/base/format_id.h"
#include "formats/codec/reader.h"
#include "formats/segment/decode_ahead.h"
#include "formats/trace/entry.h"

#define BC_SELECTION_ENTRIES 256u

/* All zero, except for the first members, which the caller sets. */
struct bc_selection {
	const struct bc_console *console;
	struct bc_filter_args args;
	struct bc_trace *trace;
	struct bc_chunk_work work; /* private */
	enum bc_format to;         /* what the deltas must fit */
	bool as_found;             /* leave them as they are in the trace: `to` is not used */
	/* Take what is kept, in order. Return false to stop. */
	bool (*add)(void *context, const struct bc_entry *entries, size_t count);
	bool (*add_run)(void *context, struct bc_record_run run);
	void *context;
	/* Results: */
	uint64_t kept;        /* entries, not counting events */
	uint64_t events;      /* gaps, marks and triggers */
	uint64_t long_deltas; /* deltas that didn't fit their field */
	/* Private. The last entry kept from the current file or, for segments, recording. */
	bool has_last;
	uint64_t last_tick;
	uint32_t last_epoch;
	int file;             /* trace->next, which identifies the current file */
	uint64_t tag;         /* of the current recording */
	uint64_t next_number; /* expected number of the next record of a segment */
	bool has_skipped;     /* entries were dropped since the last one kept */
	bool is_delta_lost;   /* the ticks of one of them are unknown */
	bool is_inexact;      /* plain records: a record without a delta was read */
	bool is_over;
	size_t n;
	struct bc_entry entries[BC_SELECTION_ENTRIES];
};

/* Sets how the trace is to be read: call it when the options are known. The selection must not move
 * afterwards. */
void bc_selection_read(struct bc_selection *selection, struct bc_reader_options *options);

/* Selects from the next batch of the trace. Skips the rest of a file that can't match. Returns
 * false if add() or add_run() did. */
bool bc_selection_add(struct bc_selection *selection, const struct bc_batch *batch);

#endif
