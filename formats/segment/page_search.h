/* Finds the chunks of a segment that may touch an address, by the page counts in the file: those of
 * the whole segment, of groups of chunks (formats/segment/page_summary.h), of a chunk. Nothing here
 * is trusted: what is missing, damaged or doesn't add up rules nothing out. */
#ifndef BC_FORMATS_SEGMENT_PAGE_SEARCH_H
#define BC_FORMATS_SEGMENT_PAGE_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/bus/page_counts.h"
#include "formats/segment/chunk_table.h"
#include "formats/segment/page_summary.h"

struct bc_page_search {
	int fd;
	uint64_t bytes; /* read so far */
	struct bc_index_head index;
	struct bc_summary_head head;
	uint8_t *lengths;
	uint8_t *node;
	struct bc_page_counts counts; /* of the node that was read last */
};

/* Opens the page summary of the sealed segment in the regular file `fd`, which stays the caller's.
 * Returns 0, -ENOENT if it has none, -EBADMSG if it is damaged, or another negative errno. Close it
 * in either case. */
int bc_page_search_open(struct bc_page_search *search, int fd) BC_MUST_CHECK;
void bc_page_search_close(struct bc_page_search *search);

/* Reads the counts of a node, which covers this many records, into search->counts. `level` and
 * `node` count from 0. Returns 0, -ENOENT if they are unknown or the node does not exist, -EBADMSG
 * if they are damaged, or another negative errno. */
int bc_page_search_node(struct bc_page_search *search, unsigned level, uint32_t node,
	uint64_t records) BC_MUST_CHECK;

/* Whether the segment in the regular file `fd` may have what is looked for. Sets *bytes to the
 * number of bytes read. */
bool bc_page_search_segment(int fd, const struct bc_page_query *query, uint64_t *bytes);

/* Sets is_ruled_out of each row of a table that can't have it, by the summary. Sets *bytes. */
void bc_page_search_rows(
	struct bc_chunk_table *table, const struct bc_page_query *query, uint64_t *bytes);

/* Whether a chunk may have it, by its header, which is read into `chunk`. */
bool bc_page_search_chunk(const struct bc_chunk_table *table, uint32_t row,
	const struct bc_page_query *query, struct bc_chunk *chunk);

#endif
