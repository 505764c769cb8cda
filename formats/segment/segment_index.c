/* Loads the index from the end of the file. The trailer has a fixed size and is the last thing in
 * the file, so loading takes three reads: trailer, head and rows. The trailer also has the size of
 * its segment, so a file of several segments is recognised.
 *
 * Rows stay encoded as in the file, 240 bytes per chunk of up to 87,381 records, and are decoded
 * when a reader asks for them: scanning them costs less than decoding a chunk. */
#include "formats/segment/segment_index.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int bc_segment_read_at(int fd, void *out, size_t bytes, uint64_t offset)
{
	uint8_t *p = out;

	if (offset > INT64_MAX - bytes)
		return -EBADMSG;
	while (bytes != 0) {
		ssize_t n = pread(fd, p, bytes, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EBADMSG;
		p += n;
		bytes -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}

int bc_chunk_header_load(
	struct bc_chunk *chunk, int fd, uint64_t offset, const struct bc_chunk_info *info)
{
	uint8_t header[BC_CHUNK_HEADER_MAX];
	size_t bytes = bc_chunk_info_header_bytes(info);

	if (bytes > sizeof(header))
		return -EBADMSG;
	int rc = bc_segment_read_at(fd, header, bytes, offset);
	if (rc != 0)
		return rc;
	return bc_chunk_header_bytes(header) == bytes && bc_chunk_header_read(chunk, header, bytes)
		       ? 0
		       : -EBADMSG;
}

int bc_segment_index_read_head(struct bc_index_head *index_head, int fd)
{
	uint8_t trailer[BC_TRAILER_BYTES];
	uint8_t head[BC_INDEX_HEAD_BYTES];
	uint64_t offset;
	uint64_t file_bytes;
	struct stat st;

	if (fstat(fd, &st) != 0)
		return -errno;
	uint64_t size = (uint64_t)st.st_size;
	if (!S_ISREG(st.st_mode) || size < bc_index_bytes(0))
		return -ENOENT;
	int rc = bc_segment_read_at(fd, trailer, sizeof(trailer), size - sizeof(trailer));
	if (rc != 0)
		return rc;
	if (!bc_trailer_read(&offset, &file_bytes, trailer) || file_bytes != size)
		return -ENOENT;
	if (size - offset < bc_index_bytes(0))
		return -EBADMSG;
	rc = bc_segment_read_at(fd, head, sizeof(head), offset);
	if (rc != 0)
		return rc;
	if (!bc_index_head_read(index_head, head) || index_head->offset != offset ||
		bc_index_bytes(index_head->rows) != size - offset)
		return -EBADMSG;
	return 0;
}

int bc_segment_index_load(struct bc_segment_index *index, int fd)
{
	index->rows = NULL;
	int rc = bc_segment_index_read_head(&index->head, fd);
	if (rc != 0)
		return rc;
	uint64_t rows_at = index->head.offset + BC_INDEX_HEAD_BYTES;
	size_t rows_bytes = (size_t)index->head.rows * BC_INDEX_ROW_BYTES;
	index->rows = malloc(rows_bytes + BC_HASH_BYTES);
	if (index->rows == NULL)
		return -ENOMEM;
	rc = bc_segment_read_at(fd, index->rows, rows_bytes + BC_HASH_BYTES, rows_at);
	if (rc == 0 && !bc_checksum_is_valid(index->rows + rows_bytes, index->rows))
		rc = -EBADMSG;
	if (rc != 0)
		bc_segment_index_free(index);
	return rc;
}

void bc_segment_index_free(struct bc_segment_index *index)
{
	free(index->rows);
	index->rows = NULL;
}

uint64_t bc_segment_index_row(
	const struct bc_segment_index *index, uint32_t row, struct bc_chunk_info *info)
{
	return bc_index_row_read(info, index->rows + (size_t)row * BC_INDEX_ROW_BYTES);
}

bool bc_chunk_is_same(const struct bc_chunk_info *a, const struct bc_chunk_info *b)
{
	return a->recording_tag == b->recording_tag && a->segment == b->segment &&
	       a->number == b->number && a->first_record == b->first_record &&
	       a->records == b->records && a->events == b->events && a->epoch == b->epoch &&
	       a->first_tick == b->first_tick && a->last_tick == b->last_tick &&
	       a->wall_ns == b->wall_ns && a->frame_bytes == b->frame_bytes &&
	       a->records_hash == b->records_hash;
}
