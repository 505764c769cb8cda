/* The chunks of a segment file, to read any of them in any order. The list comes from the index of
 * a sealed segment, otherwise from the headers of the chunks. */
#ifndef BC_FORMATS_SEGMENT_CHUNK_TABLE_H
#define BC_FORMATS_SEGMENT_CHUNK_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/bus/page_counts.h"
#include "formats/segment/page_summary.h"
#include "formats/segment/segment.h"
#include "formats/segment/segment_header.h"
#include "formats/segment/segment_reader.h"

struct bc_chunk_row {
	uint64_t offset;   /* in the file */
	uint64_t before;   /* records in the rows before it */
	uint32_t header;   /* index of the last header before it */
	bool is_bad;       /* for the caller */
	bool is_ruled_out; /* by bc_page_search_rows() */
	struct bc_chunk_info info;
};

struct bc_chunk_table {
	int fd;
	struct bc_chunk_row *rows;
	uint32_t count;
	size_t capacity;
	struct bc_segment_header
		*headers; /* of the segments in the file; one unless concatenated */
	uint32_t header_count;
	uint8_t *encoded; /* buffer for a chunk in the file */
};

struct bc_chunk_table_io {
	void *context;

	/* Damage that was found while the headers were read. */
	void (*damage)(void *context, const struct bc_segment_damage *damage);

	/* About to read this many bytes, or has just read them. Returns false to stop. */
	bool (*pace)(void *context, uint64_t bytes);
};

/* Lists the chunks of the regular file `fd`, which stays the caller's. Returns 0; -ECANCELED if
 * pace() stopped it; or another negative errno. Free the table in either case. */
int bc_chunk_table_load(
	struct bc_chunk_table *table, int fd, const struct bc_chunk_table_io *io) BC_MUST_CHECK;
void bc_chunk_table_free(struct bc_chunk_table *table);

/* The header of a row's segment, or NULL if that was damaged. Its clock_hz may be 0. */
const struct bc_segment_header *bc_chunk_table_header(
	const struct bc_chunk_table *table, uint32_t row);

/* Reads a chunk. Returns 0; -EBADMSG: damaged, or not the one listed; or another negative errno. */
int bc_chunk_table_read(
	struct bc_chunk_table *table, uint32_t row, struct bc_chunk *chunk) BC_MUST_CHECK;

/* ---- searching by address
 *
 * Finds the chunks that may touch an address by the page counts in the file: of the whole segment,
 * of groups of chunks (formats/segment/page_summary.h), and of each chunk. The file is not trusted:
 * counts that are missing, damaged or don't add up rule nothing out. */

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

/* The same for the whole segment. */
int bc_page_search_top(struct bc_page_search *search) BC_MUST_CHECK;

/* Returns true if the segment in the regular file `fd` may match. Sets *bytes to the bytes read. */
bool bc_page_search_segment(int fd, const struct bc_page_query *query, uint64_t *bytes);

/* Sets is_ruled_out of each row of a table that can't have it, by the summary. Sets *bytes. */
void bc_page_search_rows(
	struct bc_chunk_table *table, const struct bc_page_query *query, uint64_t *bytes);

/* Reads a chunk's header into `chunk`. Returns true if, by the header, it may have a match. */
bool bc_page_search_chunk(const struct bc_chunk_table *table, uint32_t row,
	const struct bc_page_query *query, struct bc_chunk *chunk);

#endif
