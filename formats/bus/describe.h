/* Describes the records of a chunk: the fields of its header that follow from them, and which pages
 * and ports they touch. */
#ifndef BC_FORMATS_BUS_DESCRIBE_H
#define BC_FORMATS_BUS_DESCRIBE_H

#include "formats/bus/chunk.h"
#include "formats/bus/page_counts.h"

/* The page counts of a chunk, with room for more regions than a chunk's header has. */
#define BC_CHUNK_REGIONS 4096u
struct bc_chunk_pages {
	struct bc_page_counts counts;
	struct bc_region regions[BC_CHUNK_REGIONS];
};

/* Computes addr_low, addr_high, types and procs from info->records records, and their page counts,
 * for which nothing needs to be initialized. Allocates nothing, but needs 350 KB of stack. */
void bc_chunk_count(
	struct bc_chunk_info *info, const uint8_t *records, struct bc_chunk_pages *pages);

/* The same for a chunk, and records_hash. */
void bc_chunk_describe(struct bc_chunk *chunk, struct bc_chunk_pages *pages);

#endif
