/* The daemon's status (docs/api.md, /v1/status) as lines of short phrases. `buscap status` prints
 * all of them, `buscap top` those that fit. */
#ifndef BC_CLI_LIVE_STATUS_H
#define BC_CLI_LIVE_STATUS_H

#include <jansson.h>
#include <stdbool.h>
#include <time.h>

#include "cli/term/output.h"
#include "cli/term/text.h"
#include "formats/base/figures.h"
#include "formats/bus/loss.h"

enum bc_status_line_id {
	BC_STATUS_SOURCE,
	BC_STATUS_BOARD,
	BC_STATUS_RECORDING, /* id and directory */
	BC_STATUS_AMOUNTS,   /* records, bytes, duration */
	BC_STATUS_RATES,
	BC_STATUS_LOST,
	BC_STATUS_LEFT_OUT,
	BC_STATUS_BUFFER,
	BC_STATUS_DISK,
	BC_STATUS_FLIGHT,
	BC_STATUS_DAEMON,
	BC_STATUS_LINES,
};

struct bc_status_writer {
	/* Receives each phrase of a line, the most important first; it is valid until it returns.
	 */
	void (*write)(void *context, enum bc_tone tone, const char *phrase);
	void *context;
	bool is_brief;     /* rounded numbers, fewer phrases */
	time_t now;        /* if is_brief: for the duration of the recording */
	double lost_s_ago; /* seconds since the last loss; negative: unknown */
};

/* True if an object is a status. */
bool bc_is_status(const json_t *object);

/* The losses since the start, without the time away. */
struct bc_loss bc_status_loss(const json_t *status);

/* True if chunks cannot be written. */
bool bc_status_is_stuck(const json_t *status);

/* The lines: the label ("recording") and what writes the phrases; none if it does not apply. */
struct bc_status_row {
	const char *label;
	void (*write)(const json_t *status, const struct bc_status_writer *writer);
};
extern const struct bc_status_row bc_status_rows[BC_STATUS_LINES];

/* Returns a time in seconds since 1970, or 0 if it is missing. */
double bc_status_time(const json_t *object, const char *path);

/* Like bc_humanize_time(), but in whole seconds: "3 s", "2 min 5 s". Returns `out`. */
const char *bc_status_seconds(char out[BC_HUMANIZE_MAX], double seconds);

/* Prints all lines. Each ends with `line_end` and a newline. */
void bc_status_print(struct bc_output *output, const json_t *status, const char *line_end);

/* Prints each note of a recording's metadata as KEY=VALUE, with `before` and `after` around it. */
void bc_notes_print(
	struct bc_output *output, const json_t *metadata, const char *before, const char *after);

#endif
