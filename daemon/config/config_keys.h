/* The settings of the configuration file, in one table. Reading, printing and reloading use it;
 * --options (for completion), --list-settings, and the tables of settings in the documents
 * (`make docs`) are printed from it. */
#ifndef BC_DAEMON_CONFIG_CONFIG_KEYS_H
#define BC_DAEMON_CONFIG_CONFIG_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "daemon/config/config.h"
#include "daemon/config/config_types.h"
#include "formats/base/must_check.h"

/* Maximum size of a printed value, with the terminating zero. */
#define BC_CONFIG_VALUE_MAX 4200

/* Ends with a row without a name. */
extern const struct bc_config_key bc_config_keys[];

/* Sets the defaults in a configuration of zeros: those of the table, and what depends on the user
 * and the machine. Most of it stays untouched: calloc() it. */
void bc_config_default(struct bc_config *config);

/* Returns true if a section exists, else false with the reason in `err`. */
bool bc_config_check_section(const char *section, char *err, size_t errlen) BC_MUST_CHECK;

/* Sets one key. On failure returns false with the reason in `err`, which names neither the key nor
 * the value. The configuration can then be checked for more errors, but must not be used. */
bool bc_config_set(struct bc_config *config, const char *section, const char *key,
	const char *value, char *err, size_t errlen) BC_MUST_CHECK;

/* Returns the reason without its leading value: "addr=x: WHY" for a filter's only condition. */
const char *bc_config_reason(const char *err, const char *value);

/* Sets each of "key=value,key=value", the settings of a board in a source. An empty string sets
 * nothing. On failure returns false with a message in `err`. */
bool bc_usb_settings_read(
	struct bc_usb_options *options, const char *text, char *err, size_t errlen) BC_MUST_CHECK;

/* The settings of the board: from the source, then from [usb]. */
struct bc_usb_options bc_config_usb(const struct bc_config *config);

/* Prints all settings as a configuration file. Those of a board include the source's. */
void bc_config_print(FILE *out, const struct bc_config *config);

/* Takes over the settings that may change while the daemon runs. Calls on_change() for each setting
 * that differs, with its name; is_applied is false if it needs a restart. */
void bc_config_reload(struct bc_config *config, const struct bc_config *new, void *context,
	void (*on_change)(void *context, const char *name, bool is_applied));

#endif
