/* The default settings of a board. */
#ifndef BC_TESTS_SUPPORT_USB_OPTIONS_H
#define BC_TESTS_SUPPORT_USB_OPTIONS_H

#include <stdlib.h>

#include "daemon/config/config_keys.h"

static inline struct bc_usb_options usb_options_default(void)
{
	struct bc_config *config = calloc(1, sizeof(*config));

	if (config == NULL)
		abort();
	bc_config_default(config);
	struct bc_usb_options options = config->usb;
	free(config);
	return options;
}

#endif
