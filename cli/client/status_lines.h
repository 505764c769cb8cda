/* The status in words: lines of short phrases, for `buscap status`, which prints all of them, and
 * `buscap top`, which shows those that there is space for. */
#ifndef BC_CLI_CLIENT_STATUS_LINES_H
#define BC_CLI_CLIENT_STATUS_LINES_H

#include <stdbool.h>
#include <time.h>

#include "cli/client/status_model.h"
#include "cli/term/humanize.h"
#include "cli/term/output.h"

enum bc_status_line_id {
	BC_STATUS_SOURCE,
	BC_STATUS_BOARD,
	BC_STATUS_RECORDING, /* its name and place */
	BC_STATUS_AMOUNTS,   /* what is in it */
	BC_STATUS_REPLAY,
	BC_STATUS_RATES,
	BC_STATUS_LOST,
	BC_STATUS_LEFT_OUT,
	BC_STATUS_BUFFER,
	BC_STATUS_DISK,
	BC_STATUS_FLIGHT,
	BC_STATUS_DAEMON,
	BC_STATUS_LINES,
};

enum bc_tone { BC_TONE_PLAIN, BC_TONE_GOOD, BC_TONE_WARN, BC_TONE_BAD };

/* Where the phrases go. */
struct bc_status_writer {
	/* Takes a phrase, which may be overwritten when it returns. The most important come first.
	 */
	void (*say)(void *context, enum bc_tone tone, const char *phrase);
	void *context;
	bool is_brief;     /* rounded numbers, and no phrases that space is too short for */
	time_t now;        /* when is_brief: for how long a recording has been running */
	double lost_s_ago; /* since the last loss; less than 0: not known */
};

/* "recording": the label of a line. */
const char *bc_status_label(enum bc_status_line_id line);

/* Says the phrases of a line; none when the daemon has nothing of the kind. */
void bc_status_say(const struct bc_status *status, enum bc_status_line_id line,
	const struct bc_status_writer *writer);

/* "3 s", "2 min 5 s": as bc_humanize_time(), in whole seconds. Returns `out`. */
const char *bc_status_seconds(char out[BC_HUMANIZE_MAX], double seconds);

/* Prints the whole page; each of its lines ends in `line_end` and a newline. */
void bc_status_print(
	struct bc_output *output, const struct bc_status *status, const char *line_end);

#endif
