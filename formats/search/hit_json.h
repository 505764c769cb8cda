/* What a search finds, as JSON. docs/find.md lists the members. */
#ifndef BC_FORMATS_SEARCH_HIT_JSON_H
#define BC_FORMATS_SEARCH_HIT_JSON_H

#include <jansson.h>

#include "formats/base/must_check.h"
#include "formats/search/search.h"

/* Returns an object, or NULL if out of memory. `name` is that of the address, or null, and belongs
 * to the object. */
json_t *bc_search_hit_json(const struct bc_search_hit *hit, json_t *name) BC_MUST_CHECK;

/* The other lines of a response (docs/api.md, "Search"). Return NULL if out of memory. A fault is
 * one that concerns the results: see bc_search_fault_is_damage(). */
json_t *bc_search_fault_json(const struct bc_search_fault *fault) BC_MUST_CHECK;
json_t *bc_search_end_json(
	uint64_t matches, int segments, uint64_t damaged_places, const char *cut_off) BC_MUST_CHECK;

/* Whether a fault means that records may be missing from the results. */
static inline bool bc_search_fault_is_damage(const struct bc_search_fault *fault)
{
	return fault->kind == BC_SEARCH_DAMAGED || fault->kind == BC_SEARCH_UNREADABLE;
}

#endif
