/* The options --map and --symbols, which give names to addresses, and the printing of names.
 * docs/names.md describes both. */
#ifndef BC_CLI_IO_NAME_ARGS_H
#define BC_CLI_IO_NAME_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/term/console.h"
#include "cli/term/output.h"
#include "formats/names/name_map.h"

enum {
	BC_NAME_OPT_MAP = 1200,
	BC_NAME_OPT_SYMBOLS,
};

/* Rows for the options of a command. */
#define BC_NAME_OPTIONS                                                                       \
	{BC_NAME_OPT_MAP, "map", "FILE", "file",                                              \
		"names of addresses: \"pc\", or a file with lines such as \"a0000-bffff VGA " \
		"memory\" and \"port 80 POST\"; can be repeated"},                            \
	{                                                                                     \
		BC_NAME_OPT_SYMBOLS, "symbols", "FILE[:OFFSET]", "file",                      \
			"the symbols of an ELF file or a System.map are names too; adds the " \
			"hexadecimal offset (-c0000000) to their addresses; can be repeated"  \
	}

/* Whether an option is one of these. */
static inline bool bc_name_args_has(int letter)
{
	return letter == BC_NAME_OPT_MAP || letter == BC_NAME_OPT_SYMBOLS;
}

/* Adds the names that the value in `optarg` selects, to a new map if *map is NULL. The caller
 * closes the map. Returns BC_EXIT_OK, or prints an error and returns another code. */
enum bc_exit bc_name_args_add(
	struct bc_name_map **map, const struct bc_console *console, int letter);

/* Prints `before`, the name of an address and `after`; or nothing if it has no name, or if there is
 * no map. */
void bc_name_print(struct bc_output *output, const struct bc_name_map *map, bool is_port,
	uint64_t addr, const char *before, const char *after);

#endif
