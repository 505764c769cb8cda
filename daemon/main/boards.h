/* `buscapd --list-boards`: what is on the USB, which of it is a capture board, and why the rest
 * isn't. */
#ifndef BC_DAEMON_MAIN_BOARDS_H
#define BC_DAEMON_MAIN_BOARDS_H

#include "daemon/config/config.h"
#include "daemon/recorder/exit_status.h"

/* Prints the list on standard output. Returns BC_EXIT_OK, BC_EXIT_NO_DEVICE when no board is among
 * them that could be recorded from, or BC_EXIT_FAILED, with what is wrong on standard error. */
enum bc_exit bc_boards_print(const struct bc_config *config);

#endif
