/* Names of memory regions and I/O ports; docs/names.md describes their files and rules.
 *
 * A map has layers. A name of a later layer hides those of earlier ones; within a layer, the
 * smallest range that has the address counts. A layer comes from the built-in map of the PC, from
 * the symbols of a program (formats/trace/name_file.h), or from a file with one name per line and
 * hexadecimal addresses:
 *
 *     # the test fixture
 *     a0000-bffff   VGA memory
 *     port 80       POST
 *     port 3f8-3ff  COM1 */
#ifndef BC_FORMATS_TRACE_NAME_MAP_H
#define BC_FORMATS_TRACE_NAME_MAP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"

/* Ranges of addresses of memory or I/O ports, and a region: the ranges that a name selects. */

struct bc_name_range {
	bool is_port;
	uint64_t first;
	uint64_t last; /* inclusive */
};

#define BC_NAME_REGION_RANGES 16u

/* Disjoint ranges in order, memory before ports. */
struct bc_name_region {
	unsigned count;
	struct bc_name_range ranges[BC_NAME_REGION_RANGES];
};

/* A layer: ranges of addresses, each with a name.
 *
 *     bc_name_layer_add() ...   in any order
 *     bc_name_map_add_layer()   sorts it
 *
 * An empty layer is all zero. */

struct bc_name_row {
	uint64_t first;
	uint64_t last;
	size_t up;   /* just after the nearest earlier row of its kind that ends later; or its first
		      */
	size_t name; /* offset in the layer's text */
	bool is_port;
};

struct bc_name_layer {
	struct bc_name_row *rows; /* sorted by the first address, ports after memory */
	size_t count;
	size_t capacity;
	size_t ports; /* index of the first port */
	char *text;   /* the names, each with a terminating zero */
	size_t text_used;
	size_t text_capacity;
	bool is_symbols;
};

/* Adds a range. Returns 0 or -ENOMEM. */
int bc_name_layer_add(struct bc_name_layer *layer, const struct bc_name_range *range,
	const char *name, size_t bytes) BC_MUST_CHECK;

void bc_name_layer_sort(struct bc_name_layer *layer);
void bc_name_layer_free(struct bc_name_layer *layer);

static inline const char *bc_name_layer_text(
	const struct bc_name_layer *layer, const struct bc_name_row *row)
{
	return layer->text + row->name;
}

struct bc_name_map;

/* Returns a map without names, except that bc_name_map_region() knows those of the PC; or NULL if
 * out of memory. */
struct bc_name_map *bc_name_map_open(void) BC_MUST_CHECK;
void bc_name_map_close(struct bc_name_map *map);

/* Adds a layer: that of the PC, or the lines of a text. Returns 0; -ENOMEM; or -EINVAL with a
 * message such as "line 3: ...", and the map unchanged. */
int bc_name_map_add_pc(struct bc_name_map *map) BC_MUST_CHECK;
int bc_name_map_add_text(struct bc_name_map *map, const char *text, size_t bytes, char *err,
	size_t errlen) BC_MUST_CHECK;

/* Sorts and adds a layer, which then belongs to the map. Returns 0, or -ENOMEM with the layer
 * freed. */
int bc_name_map_add_layer(struct bc_name_map *map, struct bc_name_layer *layer) BC_MUST_CHECK;

/* The name of an address. */
struct bc_name {
	const char *text; /* the map's */
	bool is_symbol;
	uint64_t offset; /* from its start */
};

/* Returns false if the address has no name. */
bool bc_name_map_find(
	const struct bc_name_map *map, bool is_port, uint64_t addr, struct bc_name *name);

/* Returns the name of an address as a JSON string, "COM1" or "main+0x12" (a symbol); null if it has
 * none, or if there is no map; or NULL if out of memory. */
json_t *bc_name_map_json(const struct bc_name_map *map, bool is_port, uint64_t addr) BC_MUST_CHECK;

/* Finds the ranges of a region, in the last layer that has any: those with this name, or else those
 * whose names have its words, one after the other. Case is ignored, and '_' counts as a blank. A
 * symbol must be named exactly. The last layer searched is that of the PC. Returns false, with a
 * sentence in `err` that does not have the name, if there is none, or if it has too many ranges. */
bool bc_name_map_region(const struct bc_name_map *map, const char *name,
	struct bc_name_region *region, char *err, size_t errlen) BC_MUST_CHECK;

/* Returns the position of the first character that is not a blank, tab or carriage return. */
const char *bc_name_skip_blanks(const char *at, const char *end);

#endif
