#include "daemon/main/source_open.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "capture/source/file_source.h"
#include "capture/source/sim_source.h"
#include "capture/usb/usb_source.h"
#include "daemon/config/config_keys.h"
#include "formats/base/text.h"

static int open_usb(
	struct bc_source **source, uv_loop_t *loop, const struct bc_config *config, bool is_once)
{
	struct bc_usb_options usb = bc_config_usb(config);

	if (!is_once)
		usb.wait_ns = 0;
	return bc_usb_source_open(source, loop, &usb);
}

int bc_source_open(struct bc_source **source, uv_loop_t *loop, const struct bc_config *config,
	bool is_once, char *err, size_t errlen)
{
	const struct bc_source_spec *spec = &config->source;
	const char *hint = "";
	int rc;

	if (spec->kind == BC_SOURCE_SIM) {
		rc = bc_sim_source_open(source, loop, &spec->sim, spec->rate);
	} else if (spec->kind == BC_SOURCE_USB) {
		rc = open_usb(source, loop, config, is_once);
		if (rc == -ENOTSUP)
			hint = ": can't initialize libusb; is AF_NETLINK allowed?";
	} else {
		rc = bc_file_source_open(source, loop, spec->path, spec->format, spec->clock_hz);
	}
	if (rc != 0)
		bc_message(err, errlen, "%s: can't open: %s%s", config->source_text, strerror(-rc),
			hint);
	return rc;
}
