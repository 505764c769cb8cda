#include "formats/segment_writer.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "formats/bytes.h"

#define ROWS_FIRST 256u /* then twice as many each time */

static int write_all(int fd, const uint8_t *p, size_t bytes, uint64_t offset)
{
	while (bytes != 0) {
		ssize_t n = pwrite(fd, p, bytes, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ENOSPC;
		p += n;
		bytes -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}

/* Undoes a write that failed half way. If even that fails, the next write goes over the same place,
 * and a reader stops at what is torn. */
static void cut_back(const struct bc_segment_writer *w)
{
	if (ftruncate(w->fd, (off_t)w->bytes) != 0)
		return;
}

static void forget(struct bc_segment_writer *w)
{
	free(w->rows);
	memset(w, 0, sizeof(*w));
	w->fd = -1;
}

int bc_segment_create(struct bc_segment_writer *w, int dir_fd, const char *name, const char *suffix,
	const struct bc_segment_header *header)
{
	uint8_t *head;
	size_t bytes;
	struct stat st;

	memset(w, 0, sizeof(*w));
	w->fd = -1;
	w->dir_fd = dir_fd;
	w->segment = header->segment;
	if (strlen(name) + strlen(suffix) >= BC_SEGMENT_FILE_MAX)
		return -ENAMETOOLONG;
	snprintf(w->name, sizeof(w->name), "%s", name);
	snprintf(w->open_name, sizeof(w->open_name), "%s%s", name, suffix);

	int rc = bc_segment_header_write(&head, &bytes, header);
	if (rc != 0)
		return rc;
	if (fstatat(dir_fd, w->name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		rc = -EEXIST;
		goto out;
	}
	w->fd = openat(dir_fd, w->open_name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	if (w->fd < 0) {
		rc = -errno;
		goto out;
	}
	rc = write_all(w->fd, head, bytes, 0);
	if (rc != 0) {
		unlinkat(dir_fd, w->open_name, 0);
		close(w->fd);
		forget(w);
		goto out;
	}
	w->bytes = bytes;
out:
	free(head);
	return rc;
}

static int make_row_room(struct bc_segment_writer *w)
{
	if (w->chunks < w->rows_room)
		return 0;
	uint32_t room = w->rows_room == 0 ? ROWS_FIRST : w->rows_room * 2;
	uint8_t *rows = realloc(w->rows, (size_t)room * BC_INDEX_ROW_BYTES);
	if (rows == NULL)
		return -ENOMEM;
	w->rows = rows;
	w->rows_room = room;
	return 0;
}

int bc_segment_append(struct bc_segment_writer *w, uint8_t *encoded, size_t header_bytes,
	const struct bc_chunk_info *info, uint64_t gaps, uint64_t lost)
{
	if (w->chunks == BC_SEGMENT_CHUNKS)
		return -EFBIG;
	int rc = make_row_room(w);
	if (rc != 0)
		return rc;
	size_t bytes = header_bytes + info->frame_bytes;
	bc_chunk_header_place(encoded, header_bytes, w->segment, w->chunks);
	rc = write_all(w->fd, encoded, bytes, w->bytes);
	if (rc != 0) {
		cut_back(w);
		return rc;
	}
	bc_index_row_write(w->rows + (size_t)w->chunks * BC_INDEX_ROW_BYTES, w->bytes, encoded);
	w->chunks++;
	w->bytes += bytes;
	w->records += info->records;
	w->gaps += gaps;
	w->lost += lost;
	return 0;
}

int bc_segment_sync(struct bc_segment_writer *w)
{
	if (fdatasync(w->fd) != 0)
		return -errno;
	/* A file is only as durable as its name. */
	if (!w->is_name_durable && fsync(w->dir_fd) != 0)
		return -errno;
	w->is_name_durable = true;
	w->durable = w->bytes;
	return 0;
}

static int write_index(const struct bc_segment_writer *w)
{
	size_t rows_bytes = (size_t)w->chunks * BC_INDEX_ROW_BYTES;
	uint8_t head[BC_INDEX_HEAD_BYTES];
	uint8_t tail[BC_HASH_BYTES + BC_TRAILER_BYTES];
	uint64_t file_bytes = w->bytes + bc_index_bytes(w->chunks);

	bc_index_head_write(head, &(struct bc_index_head){
					  .rows = w->chunks,
					  .records = w->records,
					  .gaps = w->gaps,
					  .lost = w->lost,
					  .offset = w->bytes,
				  });
	bc_put_le64(tail, XXH3_64bits(w->rows, rows_bytes));
	bc_trailer_write(tail + BC_HASH_BYTES, w->bytes, file_bytes);

	int rc = write_all(w->fd, head, sizeof(head), w->bytes);
	if (rc == 0)
		rc = write_all(w->fd, w->rows, rows_bytes, w->bytes + sizeof(head));
	if (rc == 0)
		rc = write_all(w->fd, tail, sizeof(tail), file_bytes - sizeof(tail));
	return rc;
}

/* Not every file system can rename without replacing; a link can't replace anywhere. */
static int rename_to_final(const struct bc_segment_writer *w)
{
	if (renameat2(w->dir_fd, w->open_name, w->dir_fd, w->name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL || linkat(w->dir_fd, w->open_name, w->dir_fd, w->name, 0) != 0)
		return -errno;
	unlinkat(w->dir_fd, w->open_name, 0);
	return 0;
}

int bc_segment_seal(struct bc_segment_writer *w)
{
	int rc = write_index(w);

	if (rc == 0)
		rc = bc_segment_sync(w);
	if (rc == 0)
		rc = rename_to_final(w);
	if (rc != 0) {
		cut_back(w);
		return rc;
	}
	/* Every byte is on the disk. A directory that can't be synced may lose the new name, not
	 * the file: it is found under the old one and recovered. */
	fsync(w->dir_fd);
	close(w->fd);
	forget(w);
	return 0;
}

void bc_segment_abandon(struct bc_segment_writer *w)
{
	if (w->fd >= 0)
		close(w->fd);
	forget(w);
}

bool bc_segment_is_deleted(const struct bc_segment_writer *w)
{
	struct stat st;

	return fstat(w->fd, &st) == 0 && st.st_nlink == 0;
}
