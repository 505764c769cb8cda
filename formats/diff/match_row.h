/* One of the two rows of entries that formats/diff/match.h goes through: what its source gave, and
 * what of it is held to look ahead. Private to formats/diff/match.c. */
#ifndef BC_FORMATS_DIFF_MATCH_ROW_H
#define BC_FORMATS_DIFF_MATCH_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/diff/align.h"
#include "formats/diff/backlog.h"
#include "formats/diff/match_options.h"

struct bc_match_row {
	struct bc_match_source source;
	uint64_t fields;            /* by which entries are held */
	struct bc_backlog held;     /* comes before: */
	const struct bc_entry *run; /* what the source gave last and isn't held */
	size_t left;
	bool is_over;
	uint64_t position; /* entries that are done with */
	bool has_epoch;
	uint32_t epoch; /* of the last one */
};

/* Returns 0, or -ENOMEM with nothing to free. The source is copied. */
int bc_match_row_init(struct bc_match_row *row, const struct bc_match_source *source,
	const struct bc_match_options *options) BC_MUST_CHECK;
void bc_match_row_free(struct bc_match_row *row);

/* What comes next, at one go: returns how many, 0 at the end, or a negative errno. */
int64_t bc_match_row_span(struct bc_match_row *row, const struct bc_entry **span) BC_MUST_CHECK;

/* Tries to hold `need` entries: what is there of them is, and what there is room for. Returns 0 or
 * a negative errno. What bc_match_row_span() gave is no longer valid then. */
int bc_match_row_hold(struct bc_match_row *row, size_t need) BC_MUST_CHECK;

/* Is done with the first n of what bc_match_row_span() gave. */
void bc_match_row_pass(struct bc_match_row *row, const struct bc_entry *span, size_t n);

/* The first entries held, `most` at most. */
struct bc_align_row bc_match_row_align(const struct bc_match_row *row, size_t most);

#endif
