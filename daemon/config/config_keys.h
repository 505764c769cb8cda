/* The keys of the configuration, as one table: bc_config_set() reads their values by it, --options
 * lists it, for what is completed behind --set, and the manual page is checked against it. What a
 * key means is in docs/configuration.md. */
#ifndef BC_DAEMON_CONFIG_CONFIG_KEYS_H
#define BC_DAEMON_CONFIG_CONFIG_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/config/config.h"
#include "formats/base/must_check.h"
#include "formats/base/usage.h"

struct bc_config_key {
	/* Its name is SECTION.KEY; words in capitals are chosen by who writes them: "trigger
	 * NAME.when". */
	struct bc_usage_option usage;

	/* Takes the value; returns false with a phrase in `err`. NULL: the module that its section
	 * is for has keys of its own (triggers, filters, a board), and reads it. */
	bool (*read)(struct bc_config *config, const char *value, char *err, size_t errlen);
};

/* Ends in a row without help. */
extern const struct bc_config_key bc_config_keys[];

/* Sets one key. On failure returns false with a sentence in `err`. */
bool bc_config_set(struct bc_config *config, const char *section, const char *key,
	const char *value, char *err, size_t errlen) BC_MUST_CHECK;

#endif
