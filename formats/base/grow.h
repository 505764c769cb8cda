/* Arrays that grow. */
#ifndef BC_FORMATS_BASE_GROW_H
#define BC_FORMATS_BASE_GROW_H

#include <stddef.h>
#include <stdlib.h>

/* Makes room for at least one item after the first `count` ones. `*capacity` is the number of items
 * that there is room for; 0 if `items` is NULL. Returns the items, which may have moved, or NULL if
 * out of memory; both are unchanged then. */
static inline void *bc_grow(void *items, size_t *capacity, size_t count, size_t item_bytes)
{
	if (count < *capacity)
		return items;
	size_t more = 2 * count + 64;
	void *grown = reallocarray(items, more, item_bytes);
	if (grown != NULL)
		*capacity = more;
	return grown;
}

#endif
