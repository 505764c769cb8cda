/* A layer of a map of names (formats/names/name_map.h): ranges of addresses, each with a name.
 *
 *     bc_name_layer_add() ...   in any order
 *     bc_name_layer_sort()
 *     bc_name_layer_find(), bc_name_layer_region() ...
 *
 * An empty layer is all zero. */
#ifndef BC_FORMATS_NAMES_NAME_LAYER_H
#define BC_FORMATS_NAMES_NAME_LAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/names/name_region.h"

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

/* Adds a range; the layer must be sorted afterwards. Returns 0 or -ENOMEM. */
int bc_name_layer_add(struct bc_name_layer *layer, const struct bc_name_range *range,
	const char *name, size_t bytes) BC_MUST_CHECK;

void bc_name_layer_sort(struct bc_name_layer *layer);
void bc_name_layer_free(struct bc_name_layer *layer);

static inline const char *bc_name_layer_text(
	const struct bc_name_layer *layer, const struct bc_name_row *row)
{
	return layer->text + row->name;
}

/* Returns the smallest range that has an address, or NULL. */
const struct bc_name_row *bc_name_layer_find(
	const struct bc_name_layer *layer, bool is_port, uint64_t addr);

/* Adds the ranges that a name selects to `region`; see bc_name_map_region(). Returns 0, also if
 * there are none; or -E2BIG. */
int bc_name_layer_region(const struct bc_name_layer *layer, const char *name,
	struct bc_name_region *region) BC_MUST_CHECK;

/* How many characters at the start of a word in `text` are those of `name`. Case is ignored. */
size_t bc_name_likeness(const char *text, const char *name);

#endif
