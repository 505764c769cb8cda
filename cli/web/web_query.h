/* A search as query parameters of /data/find (docs/web.md, "Paths"). */
#ifndef BC_CLI_WEB_WEB_QUERY_H
#define BC_CLI_WEB_WEB_QUERY_H

#include <stdbool.h>
#include <stddef.h>

#include "formats/base/must_check.h"
#include "formats/names/name_map.h"
#include "formats/search/search.h"

/* The names of the parameters, ending with NULL. */
extern const char *const bc_web_query_names[];

/* Sets the options of a search. `value` returns the value of a parameter, or NULL if it is absent.
 * Without first, last and count, the first 1,000 matches are selected. `names` has the regions.
 * Returns false with a message that names the parameter. */
bool bc_web_query_read(struct bc_search_options *options, const struct bc_name_map *names,
	const char *(*value)(void *context, const char *name), void *context, char *err,
	size_t errlen) BC_MUST_CHECK;

#endif
