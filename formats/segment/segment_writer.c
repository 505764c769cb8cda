#include "formats/segment/segment_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "formats/base/bytes.h"
#include "formats/base/grow.h"

static void writer_reset(struct bc_segment_writer *w)
{
	struct bc_atomic_file closed = {.fd = -1, .sealed_bytes = w->file.sealed_bytes};

	memcpy(closed.sealed_hash, w->file.sealed_hash, sizeof(closed.sealed_hash));
	free(w->rows);
	bc_page_summary_free(&w->pages);
	memset(w, 0, sizeof(*w));
	w->file = closed;
}

int bc_segment_create_copy(struct bc_segment_writer *w, int dir_fd, const char *name,
	const char *suffix, const struct bc_segment_header *header, const json_t *json)
{
	uint8_t *head;
	size_t bytes;

	memset(w, 0, sizeof(*w));
	w->file.fd = -1;
	w->segment = header->segment;
	w->first_record = header->first_record;
	w->wall_ns = header->wall_ns;
	int rc = json != NULL ? bc_segment_header_write_json(
					&head, &bytes, bc_segment_header_level(header), json)
			      : bc_segment_header_write(&head, &bytes, header);
	if (rc != 0)
		return rc;
	rc = bc_atomic_file_create(&w->file, dir_fd, name, suffix, head, bytes);
	free(head);
	return rc;
}

int bc_segment_create(struct bc_segment_writer *w, int dir_fd, const char *name, const char *suffix,
	const struct bc_segment_header *header)
{
	return bc_segment_create_copy(w, dir_fd, name, suffix, header, NULL);
}

static int reserve_row(struct bc_segment_writer *w)
{
	uint8_t *rows = bc_grow(w->rows, &w->rows_capacity, w->chunks, BC_INDEX_ROW_BYTES);

	if (rows == NULL)
		return -ENOMEM;
	w->rows = rows;
	return 0;
}

int bc_segment_append(struct bc_segment_writer *w, uint8_t *encoded, size_t header_bytes,
	const struct bc_chunk_info *info, const struct bc_loss *loss,
	const struct bc_page_counts *pages)
{
	if (w->chunks == BC_SEGMENT_CHUNKS)
		return -EFBIG;
	int rc = reserve_row(w);
	if (rc != 0)
		return rc;
	size_t bytes = header_bytes + info->frame_bytes;
	bc_chunk_header_place(encoded, header_bytes, w->segment, w->chunks);
	uint64_t offset = w->file.bytes;
	rc = bc_atomic_file_append(&w->file, encoded, bytes);
	if (rc != 0)
		return rc;
	bc_index_row_write(w->rows + (size_t)w->chunks * BC_INDEX_ROW_BYTES, offset, encoded);
	bc_page_summary_add(&w->pages, pages, bytes);
	w->chunks++;
	w->records += info->records;
	bc_loss_add(&w->loss, *loss);
	return 0;
}

uint64_t bc_segment_end_bytes(const struct bc_segment_writer *w, uint32_t more)
{
	return bc_page_summary_bytes(&w->pages, more) + bc_index_bytes(w->chunks + more);
}

static int write_index(struct bc_segment_writer *w)
{
	size_t rows_bytes = (size_t)w->chunks * BC_INDEX_ROW_BYTES;
	uint8_t head[BC_INDEX_HEAD_BYTES];
	uint8_t tail[BC_HASH_BYTES + BC_TRAILER_BYTES];
	int rc = bc_page_summary_write(&w->pages, &w->file);

	if (rc != 0)
		return rc;
	bool has_summary = w->file.end_bytes != 0;
	uint64_t offset = w->file.bytes + w->file.end_bytes;
	bc_index_head_write(head, &(struct bc_index_head){
					  .rows = w->chunks,
					  .records = w->records,
					  .loss = w->loss,
					  .offset = offset,
					  .pages = has_summary ? w->file.bytes : 0,
				  });
	bc_write_le64(tail, XXH3_64bits(w->rows, rows_bytes));
	bc_trailer_write(tail + BC_HASH_BYTES, offset, offset + bc_index_bytes(w->chunks));

	rc = bc_atomic_file_append_end(&w->file, head, sizeof(head));
	if (rc == 0)
		rc = bc_atomic_file_append_end(&w->file, w->rows, rows_bytes);
	if (rc == 0)
		rc = bc_atomic_file_append_end(&w->file, tail, sizeof(tail));
	return rc;
}

int bc_segment_end(struct bc_segment_writer *w)
{
	int rc = write_index(w);

	if (rc != 0)
		bc_atomic_file_truncate(&w->file);
	return rc;
}

int bc_segment_seal(struct bc_segment_writer *w)
{
	int rc = w->file.end_bytes == 0 ? bc_segment_end(w) : 0;

	if (rc == 0)
		rc = bc_atomic_file_seal(&w->file);
	if (rc == 0)
		writer_reset(w);
	return rc;
}

void bc_segment_abandon(struct bc_segment_writer *w)
{
	bc_atomic_file_abandon(&w->file);
	writer_reset(w);
}
