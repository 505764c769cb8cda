/* [recording] of the configuration: when to record, and the metadata of recordings. */
#ifndef BC_DAEMON_CONFIG_RECORDING_SETTINGS_H
#define BC_DAEMON_CONFIG_RECORDING_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/trigger/record_filter.h"
#include "formats/base/must_check.h"
#include "formats/segment/segment_header.h"

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

struct bc_recording_settings bc_recording_settings_default(void);

/* Sets record, flight_time, flight_size, metadata.KEY, or sampling (in *sampling). On failure
 * returns false with a message in `err`. */
bool bc_recording_setting_read(struct bc_recording_settings *settings, struct bc_sampling *sampling,
	const char *key, const char *value, char *err, size_t errlen) BC_MUST_CHECK;

/* "always", "on-demand", "flight". */
const char *bc_record_mode_name(enum bc_record_mode mode);

#endif
