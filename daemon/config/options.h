/* The command line of buscapd. */
#ifndef BC_DAEMON_CONFIG_OPTIONS_H
#define BC_DAEMON_CONFIG_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/config/config.h"

#define BC_OVERRIDES_MAX 64

struct bc_options {
	const char *config_file; /* NULL: the usual one, if it is there */
	bool check_config;
	bool list_boards;
	bool once;
	bool has_socket; /* --socket was given: --once opens one then */

	/* Settings that go over the configuration's, each time it is loaded. */
	struct {
		const char *section;
		const char *key;
		const char *value; /* argv's */
	} overrides[BC_OVERRIDES_MAX];
	unsigned overrides_count;
};

enum bc_options_result { BC_OPTIONS_RUN, BC_OPTIONS_EXIT, BC_OPTIONS_WRONG };

/* Reads the command line. BC_OPTIONS_EXIT: --help or --version was printed; BC_OPTIONS_WRONG: a
 * line on standard error says what is wrong. Keeps argv. */
enum bc_options_result bc_options_read(struct bc_options *options, int argc, char **argv);

/* Loads the configuration and what the command line sets over it. On failure returns false with a
 * sentence in `err`. */
bool bc_options_config(
	const struct bc_options *options, struct bc_config *config, char *err, size_t errlen);

#endif
