/* How far long work on files is: one line on a terminal, rewritten a few times a second, gone at
 * the end. Nothing is shown of what takes less than a second, nor where standard error is no
 * terminal.
 */
#ifndef BC_CLI_TERM_PROGRESS_H
#define BC_CLI_TERM_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/term/console.h"

struct bc_progress {
	const struct bc_console *console; /* NULL: nothing is shown */
	uint64_t total_bytes;             /* 0: not known */
	uint64_t done_bytes;
	uint64_t start_ns;
	uint64_t next_ns;
	bool is_shown; /* the line is on the screen */
};

/* Begins, if standard error is a terminal. */
void bc_progress_start(
	struct bc_progress *progress, const struct bc_console *console, uint64_t total_bytes);

/* There is so much more to do; 0: nobody knows how much, and so not how much in all. */
void bc_progress_extend(struct bc_progress *progress, uint64_t total_bytes);

/* Whether anything is shown: who doesn't need to count need not. */
static inline bool bc_progress_is_on(const struct bc_progress *progress)
{
	return progress->console != NULL;
}

/* Whether it is time for bc_progress_show(): cheap enough to be asked for each batch. */
bool bc_progress_is_due(struct bc_progress *progress);

/* Shows that done_bytes of the total are done. */
void bc_progress_show(struct bc_progress *progress);

/* Takes the line off the screen, before something else is written there and at the end. */
void bc_progress_clear(struct bc_progress *progress);

/* The line's text, "1.2 GB of 4.0 GB (30 %), 250 MB/s, 0:11 left": for so many bytes done of so
 * many in so many nanoseconds. */
#define BC_PROGRESS_TEXT_MAX 96
void bc_progress_print(char out[BC_PROGRESS_TEXT_MAX], uint64_t done_bytes, uint64_t total_bytes,
	uint64_t elapsed_ns);

#endif
