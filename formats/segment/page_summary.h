/* The page summary of a segment: the page counts of 16 chunks together, of 256, and so on, up to
 * the whole segment. Each is a node of a tree; docs/segment-format.md, section 9.
 *
 * A search looks at the counts of the segment first, then goes down to the chunks that may have the
 * address. A picture takes the level that has about as many nodes as it has columns.
 *
 * Writing: bc_page_summary_add() for each chunk, then bc_page_summary_write(). Searching it is in
 * formats/segment/chunk_table.h. */
#ifndef BC_FORMATS_SEGMENT_PAGE_SUMMARY_H
#define BC_FORMATS_SEGMENT_PAGE_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/atomic_file.h"
#include "formats/base/must_check.h"
#include "formats/bus/chunk.h"
#include "formats/bus/page_counts.h"
#include "formats/segment/segment.h"

#define BC_SUMMARY_FANOUT 16u
#define BC_SUMMARY_LEVELS 4u /* 16 ^ 4 = BC_SEGMENT_CHUNKS */

/* Maximum bytes of a node of the lowest level; each higher level has four times as many. */
#define BC_SUMMARY_NODE_BYTES 4096u

/* A node has at most 1/256 of the bytes of its chunks; one of few 1/16, up to 1 KiB. */
#define BC_SUMMARY_SHARE       256u
#define BC_SUMMARY_SHARE_SMALL 16u
#define BC_SUMMARY_BYTES_SMALL 1024u

/* Skippable header, fixed part and their hash. The lengths of the nodes and their hash follow. */
#define BC_SUMMARY_HEAD_BYTES (BC_SKIPPABLE_BYTES + 24 + BC_HASH_BYTES)
#define BC_SUMMARY_NODES_MAX  4369u /* 4,096 + 256 + 16 + 1 */

/* The number of nodes of a level, from 0; and of all. */
uint32_t bc_summary_level_nodes(uint32_t chunks, unsigned level);
uint32_t bc_summary_nodes(uint32_t chunks);

/* ---- writing */

struct bc_summary_level {
	struct bc_page_counts counts; /* of the node that is being filled */
	bool is_unknown;              /* they lack a chunk */
	uint32_t items;               /* in that node */
	uint64_t chunk_bytes;         /* of its chunks in the file */
	uint32_t nodes;               /* finished ones */
	uint8_t *encoded;
	size_t encoded_bytes;
};

struct bc_page_summary {
	uint32_t chunks;
	bool is_finished;
	bool has_failed; /* there will be no summary */
	struct bc_summary_level levels[BC_SUMMARY_LEVELS];
	uint32_t lengths[BC_SUMMARY_NODES_MAX]; /* of the nodes: 4,096, then 256, 16 and 1 */
};

/* Adds the counts of the next chunk, which has this many bytes in the file. NULL: they are unknown.
 * Needs up to 500 KB, more in segments of more than 256 chunks, and the bytes of the nodes. If
 * there is no memory, the segment will have no summary. */
void bc_page_summary_add(
	struct bc_page_summary *summary, const struct bc_page_counts *counts, uint64_t chunk_bytes);

/* The length of the frame that bc_page_summary_write() would write after `more` further chunks, at
 * most. Exact for 0 more, once it has written the frame. */
uint64_t bc_page_summary_bytes(const struct bc_page_summary *summary, uint32_t more);

/* Appends the frame to a file in which the segment starts at offset 0. It can be written again if
 * that fails; if a chunk is added first, there will be no summary. Returns 0, even if it wrote
 * nothing, or a negative errno. */
int bc_page_summary_write(
	struct bc_page_summary *summary, struct bc_atomic_file *file) BC_MUST_CHECK;

/* Finishes the summary, and returns a node with its hash and sets *bytes to its length; 0 if it is
 * unknown or there is no such node. `number` nodes are before it. */
const uint8_t *bc_page_summary_node(
	struct bc_page_summary *summary, uint32_t number, size_t *bytes);

/* Frees everything, for a new segment. */
void bc_page_summary_free(struct bc_page_summary *summary);

/* ---- reading */

struct bc_summary_head {
	uint32_t chunks;
	uint32_t nodes;
	uint64_t offset;      /* of the frame in the segment */
	uint64_t nodes_bytes; /* of all nodes together */
};

bool bc_summary_head_read(
	struct bc_summary_head *head, const uint8_t in[BC_SUMMARY_HEAD_BYTES]) BC_MUST_CHECK;

/* The length of the lengths and their hash, which follow the head. */
static inline size_t bc_summary_lengths_bytes(const struct bc_summary_head *head)
{
	return (size_t)head->nodes * 4 + BC_HASH_BYTES;
}

/* True if the lengths are valid. */
bool bc_summary_lengths_are_valid(const struct bc_summary_head *head, const uint8_t *lengths);

/* True if a node ends with its hash. */
bool bc_summary_node_is_valid(const uint8_t *node, size_t bytes);

/* Reads a node with its hash. Returns false if it is invalid, or not of this many records. */
bool bc_summary_node_read(struct bc_page_counts *counts, const uint8_t *node, size_t bytes,
	uint64_t records) BC_MUST_CHECK;

/* ---- checking: the page counts in a segment against its records
 *
 * Call bc_page_check_start() for each segment, bc_page_check_chunk() for each of its chunks, and
 * bc_page_check_node() for each node of its page summary. */

struct bc_page_check;

/* Returns NULL if out of memory. */
struct bc_page_check *bc_page_check_open(void);
void bc_page_check_close(struct bc_page_check *check);

void bc_page_check_start(struct bc_page_check *check);

/* True if the counts in a chunk's header match those of its records, from bc_chunk_count(), or it
 * has none. May make `counts` coarser. */
bool bc_page_check_chunk(
	struct bc_page_check *check, const struct bc_chunk *chunk, struct bc_page_counts *counts);

/* From now on, the segment's nodes can't be checked: part of it is missing. */
void bc_page_check_damage(struct bc_page_check *check);

/* Returns true if a node of the summary, whose hash is valid, has the counts of its chunks, or if
 * it is unknown (0 bytes) or can't be checked. `number` nodes precede it. */
bool bc_page_check_node(
	struct bc_page_check *check, uint32_t number, const uint8_t *node, size_t bytes);

#endif
