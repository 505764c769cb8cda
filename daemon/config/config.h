/* The configuration: defaults, then /etc/buscapd/buscapd.conf (or -c FILE), then the files
 * conf.d/(anything).conf next to it, then the command line. docs/configuration.md has every key. */
#ifndef BC_DAEMON_CONFIG_CONFIG_H
#define BC_DAEMON_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/usb/usb_source.h"
#include "daemon/base/log.h"
#include "daemon/base/permissions.h"
#include "daemon/base/rules.h"
#include "daemon/config/source_spec.h"
#include "daemon/ingest/record_filter.h"
#include "daemon/ingest/trigger.h"
#include "formats/base/compression.h"
#include "formats/base/tcp_address.h"
#include "formats/base/user_paths.h"
#include "formats/bus/sample.h"
#include "formats/segment/segment_header.h"
#include "formats/segment/segment_name.h"
#include "formats/trace/name_map.h"

#define BC_WORKERS_MAX 64u

#define BC_CONFIG_FILE "/etc/buscapd/buscapd.conf"

enum bc_record_mode {
	BC_RECORD_ALWAYS,    /* from the start to the end */
	BC_RECORD_ON_DEMAND, /* when a request or a trigger starts it */
	BC_RECORD_FLIGHT,    /* on demand, with the latest records kept in memory until then */
};

struct bc_recording_settings {
	enum bc_record_mode mode;
	uint64_t flight_ns;             /* kept by the flight recorder; 0: no limit */
	uint64_t flight_bytes;          /* of records, likewise; 0: limited by the buffer */
	char metadata[BC_METADATA_MAX]; /* a JSON object of strings; empty: {} */
};

struct bc_config {
	/* [source] */
	struct bc_source_spec source;
	char source_text[4096]; /* as written */
	double speed; /* of a file: 0: as fast as possible; 1: real time; N: N times that */

	/* [usb] */
	struct bc_usb_options usb;

	/* [output] */
	char dir[4096];
	char label[BC_LABEL_MAX + 1];
	enum bc_level compression;
	char sealed_command[4096];  /* run for each sealed file; empty: none */
	uint64_t sealed_timeout_ns; /* 0: no limit */
	char host[65];

	/* [recording], [filter] (and sampling of [recording]), [trigger NAME] */
	struct bc_recording_settings recording;
	struct bc_record_filter filter;
	struct bc_trigger triggers[BC_TRIGGERS_CONFIGURED];
	unsigned triggers_count;

	/* [rotation], [stop], [space] */
	struct bc_rotation rotation;
	struct bc_stop_rules stop;
	struct bc_retention_rules space;
	uint64_t disk_low_ns; /* 0: never */

	/* [pipeline] */
	uint64_t buffer_bytes;
	unsigned workers;
	uint64_t flush_ns;
	uint64_t sync_ns;
	uint64_t stuck_ns; /* 0: never */

	/* [mapping] */
	struct bc_mapping_options mapping;

	/* [socket] */
	char socket[BC_SOCKET_PATH_MAX]; /* empty: none */
	char socket_group[33];
	unsigned connections;                     /* maximum at one time */
	uint32_t reserve;                         /* bits of enum bc_permission */
	char metrics_listen[BC_TCP_ADDRESS_TEXT]; /* a loopback address; empty: none */

	/* [log] */
	enum bc_log_level log_level;

	/* [names] */
	char names_map[4096];      /* path; empty: none */
	char names_symbols[4096];  /* "PATH" or "PATH:OFFSET" */
	struct bc_name_map *names; /* of these files; NULL: not read yet */
};

/* Receives all errors of a configuration. */
struct bc_config_errors {
	unsigned count; /* reported so far; 0 at the start */
	void *context;
	void (*on_error)(void *context, const char *text); /* a sentence without a newline */
};

/* Reports an error. Returns false. */
bool bc_config_error(struct bc_config_errors *errors, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* "always", "on-demand", "flight". */
const char *bc_record_mode_name(enum bc_record_mode mode);

/* Adapts the configuration to --once, which records from the start: removes triggers with the
 * actions start and snapshot, and the `pre` of others. */
void bc_config_make_once(struct bc_config *config);

#endif
