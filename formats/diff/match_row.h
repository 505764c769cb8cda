/* One of the two rows that formats/diff/match.h compares: the entries from its source, and those
 * kept for the look-ahead. Private to formats/diff/match.c. */
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
	uint64_t fields;            /* fields that the hashes cover */
	struct bc_backlog held;     /* entries kept, which come before `run` */
	const struct bc_entry *run; /* last entries from the source that are not kept yet */
	size_t left;
	bool is_over;
	uint64_t position; /* number of entries already processed */
	bool has_epoch;
	uint32_t epoch; /* of the last one */
};

/* Returns 0, or -ENOMEM with nothing to free. The source is copied. */
int bc_match_row_init(struct bc_match_row *row, const struct bc_match_source *source,
	const struct bc_match_options *options) BC_MUST_CHECK;
void bc_match_row_free(struct bc_match_row *row);

/* Sets *span to the next entries that are contiguous in memory. Returns their number, 0 at the end,
 * or a negative errno. */
int64_t bc_match_row_span(struct bc_match_row *row, const struct bc_entry **span) BC_MUST_CHECK;

/* Tries to keep `need` entries; fewer if the row ends or the memory is full. Returns 0 or a
 * negative errno. Invalidates the result of bc_match_row_span(). */
int bc_match_row_hold(struct bc_match_row *row, size_t need) BC_MUST_CHECK;

/* Consumes the first n entries returned by bc_match_row_span(). */
void bc_match_row_pass(struct bc_match_row *row, const struct bc_entry *span, size_t n);

/* The first entries kept, up to `most`. */
struct bc_align_row bc_match_row_align(const struct bc_match_row *row, size_t most);

#endif
