/* The progress line of a long operation on files. It is updated four times a second and erased at
 * the end. It is shown only if standard error is a terminal, and only after the first second. */
#ifndef BC_CLI_TERM_PROGRESS_H
#define BC_CLI_TERM_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/term/console.h"

struct bc_progress {
	const struct bc_console *console; /* NULL: no progress line */
	uint64_t total_bytes;             /* 0: unknown */
	uint64_t done_bytes;
	uint64_t start_ns;
	uint64_t next_ns;
	bool is_shown; /* the line is on the screen */
};

/* Starts, if standard error is a terminal. `total_bytes` 0: unknown. */
void bc_progress_start(
	struct bc_progress *progress, const struct bc_console *console, uint64_t total_bytes);

/* Adds to the total. 0 makes the total unknown for good. */
void bc_progress_extend(struct bc_progress *progress, uint64_t total_bytes);

/* Returns false if there is no progress line; the caller then need not count bytes. */
static inline bool bc_progress_is_on(const struct bc_progress *progress)
{
	return progress->console != NULL;
}

/* Returns true if it is time for bc_progress_show(). Cheap enough to call for each batch. */
bool bc_progress_is_due(struct bc_progress *progress);

/* Draws the line from done_bytes and total_bytes. */
void bc_progress_show(struct bc_progress *progress);

/* Erases the line. Call it before printing anything else to standard error, and at the end. */
void bc_progress_clear(struct bc_progress *progress);

/* Formats the line: "1.20 GB of 4.00 GB (30 %), 250 MB/s, 0:11 left". */
#define BC_PROGRESS_TEXT_MAX 176
void bc_progress_print(char out[BC_PROGRESS_TEXT_MAX], uint64_t done_bytes, uint64_t total_bytes,
	uint64_t elapsed_ns);

#endif
