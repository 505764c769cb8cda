/* Prints a stream of the daemon until it ends, the output is closed, or Ctrl-C. */
#ifndef BC_CLI_LIVE_LIVE_H
#define BC_CLI_LIVE_LIVE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/term/console.h"
#include "cli/term/output.h"

struct bc_live {
	const struct bc_console *console;
	const char *socket; /* NULL: see bc_client_open() */
	const char *path;   /* "/v1/events" */
	bool is_json;       /* print escaped JSON lines, not print() */
	int silence_ms;     /* fail after this long without a line; -1: never */

	/* Prints an object. Returns false if the stream can't contain it, which is an error. */
	bool (*print)(void *context, struct bc_output *output, const json_t *object);
	/* Called first, with each object. Returns whether to print it. NULL: always. */
	bool (*filter)(void *context, const json_t *object);
	/* Called last. Returns whether to end the stream. NULL: never. */
	bool (*is_done)(void *context);
	void *context;
};

/* Prints the stream. Prints errors on standard error. */
enum bc_exit bc_live_run(const struct bc_live *live);

#endif
