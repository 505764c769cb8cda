/* A row of a table of settings (daemon/config/config_keys.h, source_spec.h), and the types of
 * settings: how a value is parsed into a field of the configuration, and printed. */
#ifndef BC_DAEMON_CONFIG_CONFIG_TYPES_H
#define BC_DAEMON_CONFIG_CONFIG_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "formats/base/quantity.h"

struct bc_config;
struct bc_config_key;

/* The arguments of a type's functions: the key, its field, and the text. */
#define BC_CONFIG_READER \
	const struct bc_config_key *key, void *field, const char *value, char *err, size_t errlen
#define BC_CONFIG_WRITER const struct bc_config_key *key, const void *field, char *out, size_t size

struct bc_config_type {
	/* Parses a value. On failure returns false with a phrase in `err` that names neither key
	 * nor value, and the field any value. NULL: bc_config_set() handles the section. */
	bool (*read)(BC_CONFIG_READER);

	/* Writes the value as read() parses it. */
	void (*write)(BC_CONFIG_WRITER);

	/* Instead of write(), of several keys: prints a line for each that is set. */
	void (*print_lines)(const struct bc_config *config, FILE *out);

	enum bc_quantity quantity; /* of a number, size or time */
};

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
	const char *initial; /* default, as the user would write it, or a phrase; NULL: none */
	const char *option;  /* the short way on the command line; NULL: only --set */
	enum bc_reload_time reload;
	const char *meaning; /* sentences; words in `backquotes` are literal */

	/* NULL: of several keys, or of the field of an earlier row. */
	const struct bc_config_type *type;
	size_t offset; /* of the field in struct bc_config, or bc_source_spec */
	size_t size;   /* of the field */

	/* Of numbers, sizes and times: see bc_type_number. */
	uint64_t min;
	uint64_t max;
	uint64_t unit;
};

/* Sets the defaults of all keys of a table in its struct. A phrase sets nothing. */
void bc_config_keys_default(const struct bc_config_key *keys, void *fields);

/* A string of key->size bytes; likewise one in which "~" is an error. */
extern const struct bc_config_type bc_type_text;
extern const struct bc_config_type bc_type_path;
void bc_config_write_text(BC_CONFIG_WRITER);

/* Integers of 1 to 8 bytes from key->min to key->max (0: no limit). The field has units of
 * key->unit (0: 1): bytes or ns. */
extern const struct bc_config_type bc_type_number;
extern const struct bc_config_type bc_type_bytes;
extern const struct bc_config_type bc_type_time;

/* One of the words in key->kind, "choice:always|on-demand". The field is a bool or an enum: the
 * index of the word, from key->min on. */
extern const struct bc_config_type bc_type_choice;

#endif
