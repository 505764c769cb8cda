/* What shows a stream of the daemon as it comes: until it ends, nobody reads the output any more,
 * or Ctrl-C, which ends it as cleanly. */
#ifndef BC_CLI_CLIENT_LIVE_H
#define BC_CLI_CLIENT_LIVE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/term/console.h"
#include "cli/term/output.h"

struct bc_live {
	const struct bc_console *console;
	const char *socket; /* NULL: see bc_client_open() */
	const char *path;   /* "/v1/events" */
	bool is_json;       /* lines are printed as they came, made safe; else by show() */
	int silence_ms;     /* so long without a line is no answer; -1: it may be silent for ever */

	/* An object that came. Returns false when it can't be one of this stream, which ends it. */
	bool (*show)(void *context, struct bc_output *output, const json_t *object);
	/* Asked of each object first: whether it is to be shown. NULL: all are. */
	bool (*is_wanted)(void *context, const json_t *object);
	/* Asked after each: whether that was enough. NULL: it never is. */
	bool (*is_enough)(void *context);
	void *context;
};

/* Shows it. Complains of what fails. */
enum bc_exit bc_live_run(const struct bc_live *live);

#endif
