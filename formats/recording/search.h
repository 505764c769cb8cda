/* Searches segment files for the records that match a filter, forwards or from the end. Reads the
 * page counts first (formats/segment/chunk_table.h), then only chunks that may have a match. */
#ifndef BC_FORMATS_RECORDING_SEARCH_H
#define BC_FORMATS_RECORDING_SEARCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/recording/segments.h"
#include "formats/trace/entry.h"
#include "formats/trace/filter.h"

struct bc_search_options {
	struct bc_filter filter;
	const char *after_mark;  /* only after the first mark with this text; NULL: anywhere */
	const char *before_mark; /* only before the last mark with this text */
	uint64_t first;          /* stop after this many matches; 0: no limit */
	uint64_t last;           /* only this many, from the end; 0: no limit */
	uint64_t context;        /* records to report on either side of a match */
	bool is_count;           /* only count the matches */
};

/* A record that matches, or one next to it. */
struct bc_search_hit {
	struct bc_entry entry;
	char text[BC_ENTRY_TEXT_MAX];
	const char *file;
	const char *recording; /* NULL: unknown */
	const char *host;      /* likewise */
	bool is_segment;       /* `segment` is known */
	uint32_t segment;
	bool has_wall;
	int64_t wall_ns;
	bool is_context; /* not a match */
	bool follows;    /* directly the one reported before */
};

/* Receives the hits in the order of time. Returns false to stop. The strings are only
 * valid during the call. */
typedef bool (*bc_search_cb)(void *context, const struct bc_search_hit *hit);

/* Searches files, which are in the order of their recordings and segments. `io` and `on_hit` have
 * the same context. Sets *matches to the number of matches reported, or counted. Returns 0;
 * -ENOMEM; or -ENOENT with *missing set to the text of a mark that was not found. */
int bc_search_run(const struct bc_search_options *options, char *const *paths, int count,
	const struct bc_segment_io *io, bc_search_cb on_hit, uint64_t *matches,
	const char **missing) BC_MUST_CHECK;

/* What a search finds, as JSON; docs/find.md lists the members. Returns an object, or NULL if out
 * of memory. `name` is the address's name, or null, and belongs to the object. */
json_t *bc_search_hit_json(const struct bc_search_hit *hit, json_t *name) BC_MUST_CHECK;

#endif
