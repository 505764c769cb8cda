/* libsystemd, loaded only if systemd's environment variables ask for something: loading it, with
 * the libraries that it needs, takes half as long as loading all others. */
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
