/* The option --map, which gives names to addresses. */
#ifndef BC_CLI_IO_NAME_ARGS_H
#define BC_CLI_IO_NAME_ARGS_H

#include <stdbool.h>

#include "cli/term/console.h"
#include "formats/names/name_map.h"

#define BC_NAME_ARGS_HELP                                                                      \
	"show the names of addresses: \"pc\", or a file with lines such as \"a0000-bffff VGA " \
	"memory\" and \"port 80 POST\"; can be repeated"

/* Adds the names that `optarg` stands for; *map is created if it is NULL. Returns false if that
 * failed, after printing an error. */
bool bc_name_args_add(struct bc_name_map **map, const struct bc_console *console);

#endif
