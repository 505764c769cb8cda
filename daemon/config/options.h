/* The command line of buscapd. */
#ifndef BC_DAEMON_CONFIG_OPTIONS_H
#define BC_DAEMON_CONFIG_OPTIONS_H

#include <stdbool.h>

#include "daemon/config/config.h"
#include "formats/base/must_check.h"

#define BC_OVERRIDES_MAX 64

struct bc_daemon_options {
	const char *config_file; /* NULL: the default one, if it exists */
	bool check_config;
	bool print_config;
	bool list_boards;
	bool once;
	bool json; /* print the status at the end, also on a terminal */

	/* Settings that override the configuration each time it is loaded. */
	struct {
		const char *option; /* "--set" */
		const char *section;
		const char *key;
		const char *value;
	} overrides[BC_OVERRIDES_MAX];
	unsigned overrides_count;
};

enum bc_daemon_options_result { BC_OPTIONS_RUN, BC_OPTIONS_EXIT, BC_OPTIONS_WRONG };

/* Parses the command line; `options` refers to argv. BC_OPTIONS_EXIT: something was printed on
 * standard output, such as the help text; BC_OPTIONS_WRONG: an error, on standard error. */
enum bc_daemon_options_result bc_daemon_options_read(
	struct bc_daemon_options *options, int argc, char **argv);

/* Loads the configuration into zeros, applies the settings of the command line, and checks the
 * result. Reports all errors; returns true if there were none: config->names then belongs to the
 * caller, else it is NULL. */
bool bc_daemon_options_config(const struct bc_daemon_options *options, struct bc_config *config,
	struct bc_config_errors *errors) BC_MUST_CHECK;

#endif
