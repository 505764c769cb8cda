/* `buscapd --list-boards`: lists the USB devices: which ones are capture boards, and why the
 * others are not. */
#ifndef BC_DAEMON_MAIN_BOARDS_H
#define BC_DAEMON_MAIN_BOARDS_H

#include "daemon/config/config.h"
#include "daemon/recorder/exit_status.h"

/* Prints the list to standard output. Returns BC_EXIT_OK, BC_EXIT_NO_DEVICE if no usable board was
 * found, or BC_EXIT_FAILED with an error on standard error. */
enum bc_exit bc_boards_print(const struct bc_config *config);

#endif
