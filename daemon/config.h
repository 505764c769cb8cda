/* The configuration: defaults, then /etc/buscapd/buscapd.conf (or -c FILE) and
 * conf.d/(anything).conf beside it, then what the command line says. docs/configuration.md lists
 * every key. */
#ifndef BC_DAEMON_CONFIG_H
#define BC_DAEMON_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/usb_source.h"
#include "daemon/log.h"
#include "daemon/rules.h"
#include "daemon/spec.h"
#include "formats/mapping.h"
#include "formats/segment_name.h"

#define BC_CONFIG_FILE "/etc/buscapd/buscapd.conf"

struct bc_config {
	/* [source] */
	struct bc_source_spec source;
	char source_text[4096]; /* as written */
	double speed; /* of a file: 0: as fast as it goes; 1: as it was; N: N times that */

	/* [usb] */
	struct bc_usb_options usb;

	/* [output] */
	char dir[4096];
	char label[BC_LABEL_MAX + 1];
	bool keep_raw;
	char host[65];

	/* [rotation], [stop], [space] */
	struct bc_rotation rotation;
	struct bc_stop_rules stop;
	struct bc_space_rules space;

	/* [pipeline] */
	uint64_t buffer_bytes;
	unsigned workers;
	uint64_t flush_ns;
	uint64_t sync_ns;

	/* [mapping] */
	struct bc_mapping_options mapping;

	/* [socket] */
	char socket[108]; /* empty: none */
	char socket_group[33];

	/* [log] */
	enum bc_log_level log_level;
};

void bc_config_default(struct bc_config *config);

/* Sets one key. On failure returns false with a sentence in `why`. */
bool bc_config_set(struct bc_config *config, const char *section, const char *key,
	const char *value, char *why, size_t why_room) __attribute__((warn_unused_result));

/* Reads a file and conf.d/(anything).conf beside it, in the order of their names. `is_optional`:
 * the file may be missing. On failure returns false with a line in `why` that names file and line.
 */
bool bc_config_load(struct bc_config *config, const char *path, bool is_optional, char *why,
	size_t why_room) __attribute__((warn_unused_result));

/* Whether raw bytes are to be kept: a file is its own capture. */
bool bc_config_keeps_raw(const struct bc_config *config);

/* The board: as [usb] says, but for what the source says itself. */
struct bc_usb_options bc_config_usb(const struct bc_config *config);

/* What no single key can tell: settings that don't go together. */
bool bc_config_check(const struct bc_config *config, char *why, size_t why_room)
	__attribute__((warn_unused_result));

#endif
