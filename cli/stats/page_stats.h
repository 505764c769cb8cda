/* Counts the records of a segment by the page counts in the headers of its chunks: their classes,
 * and the pages of memory that they touch. The records of a chunk are needed if its page counts are
 * absent, coarser than a page, or crossed. So all counts are exact. */
#ifndef BC_CLI_STATS_PAGE_STATS_H
#define BC_CLI_STATS_PAGE_STATS_H

#include "cli/stats/footprint.h"
#include "formats/bus/page_counts.h"

/* A record at the end of memory may reach into one page more. */
#define BC_STATS_PAGES (BC_PORT_0 + 1)

/* A page has, in its lowest bits, the ways in which it is touched, and above them the references
 * that begin in it. */
#define BC_STATS_WAY_BITS 3u

struct bc_page_stats {
	uint64_t *pages;                      /* BC_STATS_PAGES */
	uint64_t classes[2][BC_PAGE_CLASSES]; /* references to memory, and to ports */
	struct bc_page_counts counts;         /* of the last chunk */
};

/* Returns 0 or -ENOMEM. Close it in either case. */
int bc_page_stats_open(struct bc_page_stats *stats) BC_MUST_CHECK;
void bc_page_stats_close(struct bc_page_stats *stats);

/* Reads the page counts of a chunk. Returns true if its records are needed. */
bool bc_page_stats_need_records(struct bc_page_stats *stats, const struct bc_chunk *chunk);

/* Counts a run of that chunk, by its records if it has them. */
void bc_page_stats_add(struct bc_page_stats *stats, const struct bc_record_run *run);

/* Counts the references and pages in a footprint. */
void bc_page_stats_finish(const struct bc_page_stats *stats, struct bc_footprint *footprint);

#endif
