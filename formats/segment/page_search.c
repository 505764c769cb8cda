#include "formats/segment/page_search.h"

#include <errno.h>
#include <stdlib.h>

#include "formats/base/bytes.h"
#include "formats/segment/segment_index.h"

/* A region has at least two bytes in a file. */
#define REGION_BYTES_MIN 2u

static int load_lengths(struct bc_page_search *s)
{
	size_t bytes = bc_summary_lengths_bytes(&s->head);

	s->lengths = malloc(bytes);
	if (s->lengths == NULL)
		return -ENOMEM;
	int rc = bc_segment_read_at(
		s->fd, s->lengths, bytes, s->head.offset + BC_SUMMARY_HEAD_BYTES);
	return rc == 0 && !bc_summary_lengths_are_valid(&s->head, s->lengths) ? -EBADMSG : rc;
}

/* Makes room for the longest node. */
static int make_room(struct bc_page_search *s)
{
	uint32_t max = 0;

	for (uint32_t i = 0; i < s->head.nodes; i++) {
		uint32_t bytes = bc_le32(s->lengths + (size_t)i * 4);
		max = bytes > max ? bytes : max;
	}
	s->node = malloc(max != 0 ? max : 1);
	return s->node != NULL ? bc_page_counts_init(&s->counts, max / REGION_BYTES_MIN + 2)
			       : -ENOMEM;
}

int bc_page_search_open(struct bc_page_search *s, int fd)
{
	uint8_t head[BC_SUMMARY_HEAD_BYTES];

	*s = (struct bc_page_search){.fd = fd};
	int rc = bc_segment_index_read_head(&s->index, fd);
	if (rc == 0 && s->index.pages == 0)
		rc = -ENOENT;
	if (rc == 0)
		rc = bc_segment_read_at(fd, head, sizeof(head), s->index.pages);
	if (rc == 0 && (!bc_summary_head_read(&s->head, head) || s->head.offset != s->index.pages ||
			       s->head.chunks != s->index.rows))
		rc = -EBADMSG;
	if (rc == 0)
		rc = load_lengths(s);
	return rc == 0 ? make_room(s) : rc;
}

void bc_page_search_close(struct bc_page_search *s)
{
	free(s->lengths);
	free(s->node);
	bc_page_counts_free(&s->counts);
}

int bc_page_search_node(struct bc_page_search *s, unsigned level, uint32_t node, uint64_t records)
{
	uint64_t offset = s->head.offset + BC_SUMMARY_HEAD_BYTES +
			  bc_summary_lengths_bytes(&s->head);
	uint32_t at = node;

	for (unsigned i = 0; i < level; i++)
		at += bc_summary_level_nodes(s->head.chunks, i);
	if (at >= s->head.nodes)
		return -ENOENT;
	for (uint32_t i = 0; i < at; i++)
		offset += bc_le32(s->lengths + (size_t)i * 4);
	uint32_t bytes = bc_le32(s->lengths + (size_t)at * 4);
	if (bytes == 0)
		return -ENOENT;
	int rc = bc_segment_read_at(s->fd, s->node, bytes, offset);
	return rc == 0 && !bc_summary_node_read(&s->counts, s->node, bytes, records) ? -EBADMSG
										     : rc;
}

static unsigned top_level(const struct bc_page_search *s)
{
	unsigned level = 0;

	while (bc_summary_level_nodes(s->head.chunks, level) > 1)
		level++;
	return level;
}

bool bc_page_search_segment(int fd, const struct bc_page_query *query)
{
	struct bc_page_search s;
	bool may_have = true;

	if (bc_page_search_open(&s, fd) == 0 && s.head.chunks != 0 &&
		bc_page_search_node(&s, top_level(&s), 0, s.index.records) == 0)
		may_have = bc_page_counts_may_have(&s.counts, query);
	bc_page_search_close(&s);
	return may_have;
}

/* Rules out the rows below a node, or looks at the nodes below it. */
static void search_node(struct bc_page_search *s, struct bc_chunk_table *t, unsigned level,
	uint32_t node, const struct bc_page_query *query)
{
	uint32_t each = BC_SUMMARY_FANOUT << 4 * level;
	uint32_t first = node * each;
	uint32_t end = t->count - first < each ? t->count : first + each;
	const struct bc_chunk_row *last = &t->rows[end - 1];
	uint64_t records = last->before + last->info.records - t->rows[first].before;

	if (bc_page_search_node(s, level, node, records) == 0 &&
		!bc_page_counts_may_have(&s->counts, query)) {
		for (uint32_t row = first; row < end; row++)
			t->rows[row].is_ruled_out = true;
		return;
	}
	uint32_t below = level != 0 ? bc_summary_level_nodes(t->count, level - 1) : 0;
	for (uint32_t i = node * BC_SUMMARY_FANOUT; i < below && i / BC_SUMMARY_FANOUT == node; i++)
		search_node(s, t, level - 1, i, query);
}

void bc_page_search_rows(struct bc_chunk_table *t, const struct bc_page_query *query)
{
	struct bc_page_search s;

	if (bc_page_search_open(&s, t->fd) == 0 && t->count != 0 && s.head.chunks == t->count)
		search_node(&s, t, top_level(&s), 0, query);
	bc_page_search_close(&s);
}

bool bc_page_search_chunk(const struct bc_chunk_table *t, uint32_t row,
	const struct bc_page_query *query, struct bc_chunk *chunk)
{
	struct bc_region regions[BC_CHUNK_PAGE_BYTES / REGION_BYTES_MIN];
	struct bc_page_counts counts = {
		.capacity = sizeof(regions) / sizeof(regions[0]), .regions = regions};
	const struct bc_chunk_row *r = &t->rows[row];

	return bc_chunk_header_load(chunk, t->fd, r->offset, &r->info) != 0 ||
	       !bc_page_counts_read(
		       &counts, chunk->pages, chunk->info.page_bytes, r->info.records) ||
	       bc_page_counts_may_have(&counts, query);
}
