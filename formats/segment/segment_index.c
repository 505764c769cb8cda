/* Finds chunks by binary search. The rows are in file order, so they are sorted by first record and
 * also by epoch and last tick: one search serves both keys. The trailer has a fixed size and is at
 * the end of the file, so loading takes three reads: trailer, head and rows. The trailer also has
 * the size of its segment, so a file of several segments is recognised.
 *
 * Rows stay encoded as in the file; a search decodes only the rows it visits, log2(rows). It costs
 * 160 bytes of memory per chunk, which has up to 87,381 records. */
#include "formats/segment/segment_index.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_at(int fd, void *out, size_t bytes, uint64_t offset)
{
	uint8_t *p = out;

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
	int rc = read_at(fd, trailer, sizeof(trailer), size - sizeof(trailer));
	if (rc != 0)
		return rc;
	if (!bc_trailer_read(&offset, &file_bytes, trailer) || file_bytes != size)
		return -ENOENT;
	if (size - offset < bc_index_bytes(0))
		return -EBADMSG;
	rc = read_at(fd, head, sizeof(head), offset);
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
	rc = read_at(fd, index->rows, rows_bytes + BC_HASH_BYTES, rows_at);
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

static bool is_before(
	const struct bc_chunk_info *info, bool by_tick, uint32_t epoch, uint64_t value)
{
	if (!by_tick)
		return info->first_record + info->records <= value;
	return info->epoch < epoch || (info->epoch == epoch && info->last_tick < value);
}

/* Finds the first row that is not before a tick of an epoch, or before a record. */
static uint32_t first_row(
	const struct bc_segment_index *index, bool by_tick, uint32_t epoch, uint64_t value)
{
	uint32_t low = 0;
	uint32_t high = index->head.rows;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		struct bc_chunk_info info;
		bc_segment_index_row(index, middle, &info);
		if (is_before(&info, by_tick, epoch, value))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint32_t bc_segment_index_find_record(const struct bc_segment_index *index, uint64_t record)
{
	return first_row(index, false, 0, record);
}

uint32_t bc_segment_index_find_tick(
	const struct bc_segment_index *index, uint32_t epoch, uint64_t tick)
{
	return first_row(index, true, epoch, tick);
}
