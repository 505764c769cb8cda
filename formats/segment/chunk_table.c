/* The chunks of a file, listed once, then read in any order; and the search by address.
 *
 * The list comes from the index of a sealed segment, or else from the chunk headers, one after the
 * other. Rows are in file order, with the number of records before each.
 *
 * The search goes down the tree of page counts: a node without the address rules out all chunks
 * below it, and any other has its children examined. What can't be read rules out nothing, so a
 * damaged summary makes a search slower, never incomplete. */
#include "formats/segment/chunk_table.h"

#include <errno.h>
#include <stdlib.h>

#include "formats/base/bytes.h"
#include "formats/base/grow.h"
#include "formats/segment/segment_index.h"

#define NO_HEADER UINT32_MAX

static int add_row(struct bc_chunk_table *t, uint64_t offset, const struct bc_chunk_info *info)
{
	struct bc_chunk_row *rows = bc_grow(t->rows, &t->capacity, t->count, sizeof(*rows));
	uint64_t before = 0;

	if (rows == NULL)
		return -ENOMEM;
	t->rows = rows;
	if (t->count != 0)
		before = rows[t->count - 1].before + rows[t->count - 1].info.records;
	rows[t->count++] = (struct bc_chunk_row){.offset = offset,
		.before = before,
		.header = t->header_count - 1, /* NO_HEADER without one */
		.info = *info};
	return 0;
}

static int add_header(struct bc_chunk_table *t, const struct bc_segment_header *header)
{
	struct bc_segment_header *headers = reallocarray(
		t->headers, t->header_count + 1, sizeof(*headers));

	if (headers == NULL)
		return -ENOMEM;
	t->headers = headers;
	headers[t->header_count++] = *header;
	return 0;
}

static int load_from_index(struct bc_chunk_table *t, const struct bc_segment_index *index,
	const struct bc_chunk_table_io *io)
{
	struct bc_segment_header header;
	struct bc_chunk_info info;
	int rc = bc_segment_header_load(&header, t->fd);

	if (rc == 0)
		rc = add_header(t, &header);
	if (rc == -EBADMSG) {
		struct bc_segment_damage damage = {.what = "the segment header is damaged"};
		if (index->head.rows != 0)
			damage.bytes = bc_segment_index_row(index, 0, &info);
		io->damage(io->context, &damage);
		rc = 0;
	}
	if (rc == 0 && !io->pace(io->context, bc_index_bytes(index->head.rows)))
		rc = -ECANCELED;
	for (uint32_t i = 0; rc == 0 && i < index->head.rows; i++) {
		uint64_t offset = bc_segment_index_row(index, i, &info);
		rc = add_row(t, offset, &info);
	}
	return rc;
}

static int read_chunks(struct bc_chunk_table *t, struct bc_segment_reader *reader,
	struct bc_chunk *chunk, const struct bc_chunk_table_io *io)
{
	int rc = 0;

	while (rc == 0) {
		int found = bc_segment_read(reader, chunk);
		if (found < 0)
			return found;
		switch ((enum bc_segment_found)found) {
		case BC_FOUND_SEGMENT:
			rc = add_header(t, bc_segment_reader_header(reader));
			break;
		case BC_FOUND_CHUNK:
			rc = add_row(t, bc_segment_reader_offset(reader), &chunk->info);
			break;
		case BC_FOUND_DAMAGE:
			io->damage(io->context, bc_segment_reader_damage(reader));
			break;
		case BC_FOUND_INDEX:
			break;
		case BC_FOUND_END:
			return 0;
		}
	}
	return rc;
}

/* A file that is read by its headers. */
struct scanned {
	int fd;
	const struct bc_chunk_table_io *io;
};

static ssize_t read_paced(void *context, void *out, size_t size)
{
	const struct scanned *file = context;
	const struct bc_input_stream stream = {.fd = file->fd, .wake_fd = -1};

	return file->io->pace(file->io->context, size) ? bc_input_stream_read(stream, out, size)
						       : -ECANCELED;
}

/* Goes from one chunk header to the next, and searches where something else follows. */
static int load_by_headers(struct bc_chunk_table *t, const struct bc_chunk_table_io *io)
{
	struct scanned file = {t->fd, io};
	struct bc_input_stream stream = {
		.fd = t->fd, .wake_fd = -1, .read = read_paced, .context = &file};
	struct bc_segment_reader *reader = NULL;
	struct bc_chunk *chunk = malloc(sizeof(*chunk));
	int rc = chunk != NULL ? 0 : -ENOMEM;

	if (rc == 0)
		rc = bc_segment_reader_open(&reader, stream, NULL, 0);
	if (rc == 0)
		rc = bc_segment_reader_range(reader, 0, UINT64_MAX);
	if (rc == 0) {
		bc_segment_reader_skip_records(reader, t->fd, NULL, NULL);
		rc = read_chunks(t, reader, chunk, io);
	}
	bc_segment_reader_close(reader);
	free(chunk);
	return rc;
}

int bc_chunk_table_load(struct bc_chunk_table *t, int fd, const struct bc_chunk_table_io *io)
{
	struct bc_segment_index index;

	*t = (struct bc_chunk_table){.fd = fd, .encoded = malloc(BC_CHUNK_ENCODED_MAX)};
	if (t->encoded == NULL)
		return -ENOMEM;
	int rc = bc_segment_index_load(&index, fd);
	if (rc != 0)
		return rc == -ENOMEM ? rc : load_by_headers(t, io);
	rc = load_from_index(t, &index, io);
	bc_segment_index_free(&index);
	return rc;
}

void bc_chunk_table_free(struct bc_chunk_table *t)
{
	free(t->rows);
	free(t->headers);
	free(t->encoded);
	*t = (struct bc_chunk_table){.fd = -1};
}

const struct bc_segment_header *bc_chunk_table_header(const struct bc_chunk_table *t, uint32_t row)
{
	if (t->count == 0) /* only a header */
		return t->header_count != 0 ? &t->headers[0] : NULL;
	const struct bc_chunk_row *r = &t->rows[row];
	const struct bc_segment_header *header = r->header != NO_HEADER ? &t->headers[r->header]
									: NULL;

	/* In a concatenation, the header before it may belong to another segment. */
	return header != NULL && header->segment == r->info.segment &&
			       bc_recording_tag(header->recording) == r->info.recording_tag
		       ? header
		       : NULL;
}

int bc_chunk_table_read(struct bc_chunk_table *t, uint32_t row, struct bc_chunk *chunk)
{
	const struct bc_chunk_row *r = &t->rows[row];
	size_t header_bytes = bc_chunk_info_header_bytes(&r->info);

	if (header_bytes > BC_CHUNK_HEADER_MAX || r->info.frame_bytes > BC_FRAME_MAX)
		return -EBADMSG;
	int rc = bc_segment_read_at(
		t->fd, t->encoded, header_bytes + r->info.frame_bytes, r->offset);
	if (rc != 0)
		return rc;
	if (bc_chunk_header_bytes(t->encoded) != header_bytes ||
		!bc_chunk_header_read(chunk, t->encoded, header_bytes) ||
		!bc_chunk_is_same(&chunk->info, &r->info))
		return -EBADMSG;
	return bc_chunk_frame_read(chunk, t->encoded + header_bytes);
}

/* ---- searching by address */

/* A region has at least two bytes in a file. */
#define REGION_BYTES_MIN 2u

static int load_lengths(struct bc_page_search *s)
{
	size_t bytes = bc_summary_lengths_bytes(&s->head);

	s->lengths = malloc(bytes);
	if (s->lengths == NULL)
		return -ENOMEM;
	s->bytes += bytes;
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

	*s = (struct bc_page_search){.fd = fd, .bytes = BC_INDEX_HEAD_BYTES};
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
	s->bytes += bytes;
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

int bc_page_search_top(struct bc_page_search *s)
{
	return s->head.chunks != 0 ? bc_page_search_node(s, top_level(s), 0, s->index.records)
				   : -ENOENT;
}

bool bc_page_search_segment(int fd, const struct bc_page_query *query, uint64_t *bytes)
{
	struct bc_page_search s;
	bool may_have = true;

	if (bc_page_search_open(&s, fd) == 0 && bc_page_search_top(&s) == 0)
		may_have = bc_page_counts_may_have(&s.counts, query);
	*bytes = s.bytes;
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

void bc_page_search_rows(
	struct bc_chunk_table *t, const struct bc_page_query *query, uint64_t *bytes)
{
	struct bc_page_search s;

	if (bc_page_search_open(&s, t->fd) == 0 && t->count != 0 && s.head.chunks == t->count)
		search_node(&s, t, top_level(&s), 0, query);
	*bytes = s.bytes;
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
