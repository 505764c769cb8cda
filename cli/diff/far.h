/* Finds where two traces meet again after a difference longer than the look-ahead, by reading both
 * a second time. */
#ifndef BC_CLI_DIFF_FAR_H
#define BC_CLI_DIFF_FAR_H

#include <stdint.h>

#include "cli/diff/compare.h"
#include "formats/base/must_check.h"

/* How many entries of each trace are searched. */
#define BC_FAR_MAX (UINT64_C(16) << 20)

/* Entries [0, *a_position) of A and [0, *b_position) of B are behind. Returns 1 and advances both
 * to entries that are equal and at the start of a long common part; 0 if there is none; -ENOTSUP if
 * a trace can be read only once; -ENOMEM. Needs 10 MiB. Adds
 * how many entries were read to *entries_read. */
int bc_far_find(const struct bc_match_source *a, const struct bc_match_source *b, uint64_t fields,
	uint64_t *a_position, uint64_t *b_position, uint64_t *entries_read) BC_MUST_CHECK;

#endif
