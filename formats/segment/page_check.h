/* Checks the page counts in a segment against its records.
 *
 * Call bc_page_check_start() for each segment, bc_page_check_chunk() for each of its chunks, and
 * bc_page_check_node() for each node of its page summary. */
#ifndef BC_FORMATS_SEGMENT_PAGE_CHECK_H
#define BC_FORMATS_SEGMENT_PAGE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/bus/chunk.h"

struct bc_page_check;

/* Returns NULL if out of memory. */
struct bc_page_check *bc_page_check_open(void);
void bc_page_check_close(struct bc_page_check *check);

void bc_page_check_start(struct bc_page_check *check);

/* Whether the counts in a chunk's header are those of its records, or it has none. Computes the
 * fields of bc_chunk_count() again. */
bool bc_page_check_chunk(struct bc_page_check *check, struct bc_chunk *chunk);

/* From now on, the segment's nodes can't be checked: part of it is missing. */
void bc_page_check_damage(struct bc_page_check *check);

/* Whether a node of the summary, with its valid hash, has the counts of its chunks. True if it is
 * unknown (0 bytes) or can't be checked. `number` nodes are before it. */
bool bc_page_check_node(
	struct bc_page_check *check, uint32_t number, const uint8_t *node, size_t bytes);

#endif
