/* The configuration: defaults, then /etc/buscapd/buscapd.conf (or -c FILE) and
 * conf.d/(anything).conf beside it, then what the command line says. docs/configuration.md lists
 * every key. */
#ifndef BC_DAEMON_CONFIG_CONFIG_H
#define BC_DAEMON_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/usb/usb_source.h"
#include "daemon/base/log.h"
#include "daemon/base/rules.h"
#include "daemon/config/recording_settings.h"
#include "daemon/config/source_spec.h"
#include "daemon/http/loopback.h"
#include "daemon/http/permissions.h"
#include "daemon/trigger/record_filter.h"
#include "daemon/trigger/trigger.h"
#include "formats/base/must_check.h"
#include "formats/bus/mapping.h"
#include "formats/segment/segment_name.h"

#define BC_WORKERS_MAX 64u

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
	char sealed_command[4096];  /* run for each sealed file; empty: none */
	uint64_t sealed_timeout_ns; /* 0: none */
	char host[65];

	/* [recording], [filter] (and sampling of [recording]), [trigger NAME] */
	struct bc_recording_settings recording;
	struct bc_record_filter sift;
	struct bc_trigger triggers[BC_TRIGGERS_CONFIGURED];
	unsigned triggers_count;

	/* [rotation], [stop], [space] */
	struct bc_rotation rotation;
	struct bc_stop_rules stop;
	struct bc_retention_rules space;

	/* [pipeline] */
	uint64_t buffer_bytes;
	unsigned workers;
	uint64_t flush_ns;
	uint64_t sync_ns;
	uint64_t stuck_ns; /* 0: never */

	/* [mapping] */
	struct bc_mapping_options mapping;

	/* [socket] */
	char socket[108]; /* empty: none */
	char socket_group[33];
	unsigned connections; /* at one time, at most */
	uint32_t reserve;     /* bits of enum bc_permission */
	struct bc_loopback metrics_listen;

	/* [log] */
	enum bc_log_level log_level;
};

void bc_config_default(struct bc_config *config);

/* Whether the source can't wait: a board, or a simulated one with a rate. */
bool bc_config_is_live(const struct bc_config *config);

/* --once records from the start: what wants the flight recorder goes, snapshots and pre-lengths. */
void bc_config_make_once(struct bc_config *config);

/* Whether raw bytes are to be kept: a file is its own capture. */
bool bc_config_keeps_raw(const struct bc_config *config);

/* The board: as [usb] says, but for what the source says itself. */
struct bc_usb_options bc_config_usb(const struct bc_config *config);

/* What no single key can tell: settings that don't go together. */
bool bc_config_check(const struct bc_config *config, char *err, size_t errlen) BC_MUST_CHECK;

#endif
