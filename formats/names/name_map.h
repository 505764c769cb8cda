/* Names of memory regions and I/O ports.
 *
 * A map has layers. A name of a later layer hides those of earlier ones; within a layer, the
 * smallest range that has the address counts. A layer comes from the built-in map of the PC or from
 * a file, with one name per line and hexadecimal addresses:
 *
 *     # the test fixture
 *     a0000-bffff   VGA memory
 *     port 80       POST
 *     port 3f8-3ff  COM1 */
#ifndef BC_FORMATS_NAMES_NAME_MAP_H
#define BC_FORMATS_NAMES_NAME_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"

#define BC_NAME_MAX 64 /* bytes, with the terminating zero */

struct bc_name_map;

/* Returns an empty map, or NULL if out of memory. */
struct bc_name_map *bc_name_map_open(void) BC_MUST_CHECK;
void bc_name_map_close(struct bc_name_map *map);

/* Adds a layer: that of the PC, or the lines of a text. Returns 0; -ENOMEM; or -EINVAL with a
 * message such as "line 3: ...", and the map unchanged. */
int bc_name_map_add_pc(struct bc_name_map *map) BC_MUST_CHECK;
int bc_name_map_add_text(struct bc_name_map *map, const char *text, size_t bytes, char *err,
	size_t errlen) BC_MUST_CHECK;

/* Returns the name of an address, or NULL. The text is the map's. */
const char *bc_name_map_find(const struct bc_name_map *map, bool is_port, uint64_t addr);

#endif
