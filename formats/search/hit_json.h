/* What a search finds, as JSON. docs/find.md lists the members. */
#ifndef BC_FORMATS_SEARCH_HIT_JSON_H
#define BC_FORMATS_SEARCH_HIT_JSON_H

#include <jansson.h>

#include "formats/base/must_check.h"
#include "formats/search/search.h"

/* Returns an object, or NULL if out of memory. `name` is that of the address, or null, and belongs
 * to the object. */
json_t *bc_search_hit_json(const struct bc_search_hit *hit, json_t *name) BC_MUST_CHECK;

#endif
