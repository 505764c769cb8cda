/* libsystemd, which is loaded only if systemd's environment variables ask for something: with the
 * libraries below it, it takes as long to load as half of the others. */
#ifndef BC_DAEMON_MAIN_SYSTEMD_H
#define BC_DAEMON_MAIN_SYSTEMD_H

#include <systemd/sd-daemon.h>

#include "formats/base/late_library.h"

#define BC_SYSTEMD_FUNCTIONS(F) F(sd_is_socket) F(sd_listen_fds) F(sd_watchdog_enabled)

struct bc_systemd {
	BC_SYSTEMD_FUNCTIONS(BC_LATE_POINTER)
};

/* Returns the functions, or NULL with a message in `err`. */
const struct bc_systemd *bc_systemd_load(char *err, size_t errlen);

#endif
