/* The option --map, which gives names to addresses. */
#ifndef BC_CLI_IO_NAME_ARGS_H
#define BC_CLI_IO_NAME_ARGS_H

#include "cli/term/console.h"
#include "formats/names/name_map.h"

#define BC_NAME_ARGS_HELP                                                                      \
	"show the names of addresses: \"pc\", or a file with lines such as \"a0000-bffff VGA " \
	"memory\" and \"port 80 POST\"; can be repeated"

/* Adds the names that `optarg` selects, to a new map if *map is NULL. The caller closes the map.
 * Returns BC_EXIT_OK, or prints an error and returns another code. */
enum bc_exit bc_name_args_add(struct bc_name_map **map, const struct bc_console *console);

#endif
