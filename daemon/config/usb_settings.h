/* The settings of a board: [usb] of the configuration, and `usb:KEY=VALUE,...` of a source. */
#ifndef BC_DAEMON_CONFIG_USB_SETTINGS_H
#define BC_DAEMON_CONFIG_USB_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "capture/usb/usb_source.h"
#include "formats/base/must_check.h"

/* Sets one. On failure returns false with a message in `err`. */
bool bc_usb_setting_read(struct bc_usb_options *options, const char *key, const char *value,
	char *err, size_t errlen) BC_MUST_CHECK;

/* Sets each of "key=value,key=value"; an empty string sets nothing. On failure as above. */
bool bc_usb_settings_read(
	struct bc_usb_options *options, const char *text, char *err, size_t errlen) BC_MUST_CHECK;

/* Whether all settings are equal. */
bool bc_usb_settings_equal(const struct bc_usb_options *a, const struct bc_usb_options *b);

#endif
