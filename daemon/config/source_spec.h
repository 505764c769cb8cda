/* The value of --source: `usb`, `file:PATH` or `sim`, each with its settings. */
#ifndef BC_DAEMON_CONFIG_SOURCE_SPEC_H
#define BC_DAEMON_CONFIG_SOURCE_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/sim/sim.h"
#include "daemon/config/config_types.h"
#include "formats/base/format_id.h"
#include "formats/base/must_check.h"

enum bc_source_kind { BC_SOURCE_NONE, BC_SOURCE_FILE, BC_SOURCE_SIM, BC_SOURCE_USB };

struct bc_source_spec {
	enum bc_source_kind kind;
	char path[4096];       /* file */
	enum bc_format format; /* file; BC_FORMAT_UNKNOWN: detected */
	uint64_t clock_hz;     /* file; 0: not given */
	struct bc_sim_options sim;
	uint64_t rate;  /* sim: samples per second; 0: as fast as they are consumed */
	char usb[1024]; /* usb: its settings, checked, for bc_usb_settings_read() */
};

/* The settings of `sim`; their fields are in struct bc_source_spec. The last row has no name. */
extern const struct bc_config_key bc_sim_settings[];

/* Parses a specification. On failure returns false with a message in `err`. */
bool bc_source_spec_read(
	struct bc_source_spec *spec, const char *text, char *err, size_t errlen) BC_MUST_CHECK;

#endif
