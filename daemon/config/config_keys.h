/* The settings of the configuration file, in one table. bc_config_set() reads their values with it;
 * --options (for completion), --list-settings, and the tables of settings in the documents
 * (`make docs`) are printed from it. */
#ifndef BC_DAEMON_CONFIG_CONFIG_KEYS_H
#define BC_DAEMON_CONFIG_CONFIG_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/config/config.h"
#include "formats/base/must_check.h"

/* When a change takes effect after SIGHUP. */
enum bc_reload_time {
	BC_RELOAD_RESTART, /* not before a restart */
	BC_RELOAD_NOW,
	BC_RELOAD_NEXT_RECORDING,
};

struct bc_config_key {
	const char
		*name; /* "SECTION.KEY"; the user chooses words in capitals: "trigger NAME.when" */
	const char *metavar; /* "SIZE" */
	const char *kind;    /* of value, as in formats/base/usage.h */
	const char *initial; /* default, as the user would write it; NULL: none */
	const char *option;  /* the short way on the command line; NULL: only --set */
	enum bc_reload_time reload;
	const char *meaning; /* sentences; words in `backquotes` are literal */

	/* Parses a value into a field of the configuration. On failure returns false with a phrase
	 * in `err` that names neither key nor value. NULL: bc_config_set() handles the section. */
	bool (*read)(const struct bc_config_key *key, void *field, const char *value, char *err,
		size_t errlen);
	size_t offset; /* of the field in struct bc_config */
	size_t size;   /* of the field */
};

/* Ends with a row without a name. */
extern const struct bc_config_key bc_config_keys[];

/* Whether a section exists. If not, returns false with a message in `err` that names all. */
bool bc_config_check_section(const char *section, char *err, size_t errlen) BC_MUST_CHECK;

/* Sets one key. On failure returns false with a message in `err`, and nothing is changed. */
bool bc_config_set(struct bc_config *config, const char *section, const char *key,
	const char *value, char *err, size_t errlen) BC_MUST_CHECK;

#endif
