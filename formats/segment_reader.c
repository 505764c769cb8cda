#include "formats/segment_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "formats/bytes.h"
#include "formats/hash.h"
#include "formats/window.h"

/* The largest thing that is looked at whole is a chunk; a header of JSON is smaller. */
#define WINDOW_BYTES (2 * BC_CHUNK_ENCODED_MAX + BC_SEGMENT_HEADER_MAX)
#define HEAD_MAX     (1u << 20)

struct bc_segment_reader {
	struct bc_window w;
	bool skip_records;
	uint64_t found_at;
	bool has_header;
	struct bc_segment_header header;
	struct bc_segment_damage damage;
	struct bc_chunk_info last; /* the chunk found last */
	bool has_last;
	uint64_t missing;
	size_t encoded_header_bytes; /* of the chunk found last, at bytes[encoded_at] */
	size_t encoded_at;
	/* The present segment's own account of its index. */
	uint64_t segment_at; /* its place in the bytes */
	uint32_t rows;
	bool is_damaged; /* some of it could not be read: the index can't be checked */
	bool is_sealed;
	bool has_segment; /* one has begun */
	XXH3_state_t *rows_hash;
	uint8_t bytes[WINDOW_BYTES];
};

int bc_segment_reader_open(struct bc_segment_reader **reader, struct bc_stream stream,
	const uint8_t *head, size_t head_bytes)
{
	if (head_bytes > HEAD_MAX)
		return -EINVAL;
	struct bc_segment_reader *r = malloc(sizeof(*r));
	XXH3_state_t *hash = XXH3_createState();
	if (r == NULL || hash == NULL) {
		free(r);
		XXH3_freeState(hash);
		return -ENOMEM;
	}
	memset(r, 0, offsetof(struct bc_segment_reader, bytes));
	bc_window_open(&r->w, stream, r->bytes, WINDOW_BYTES, head, head_bytes);
	r->rows_hash = hash;
	XXH3_64bits_reset(hash);
	*reader = r;
	return 0;
}

void bc_segment_reader_close(struct bc_segment_reader *r)
{
	if (r == NULL)
		return;
	XXH3_freeState(r->rows_hash);
	free(r);
}

int bc_segment_reader_range(struct bc_segment_reader *r, uint64_t offset, uint64_t end)
{
	int rc = bc_window_range(&r->w, offset, end);

	if (rc != 0)
		return rc;
	r->has_last = false;
	r->is_damaged = true; /* only part of it is read */
	return 0;
}

void bc_segment_reader_skip_records(struct bc_segment_reader *r)
{
	r->skip_records = true;
}

const struct bc_segment_header *bc_segment_reader_header(const struct bc_segment_reader *r)
{
	return r->has_header ? &r->header : NULL;
}

const struct bc_segment_damage *bc_segment_reader_damage(const struct bc_segment_reader *r)
{
	return &r->damage;
}

const uint8_t *bc_segment_reader_encoded(const struct bc_segment_reader *r, size_t *header_bytes)
{
	*header_bytes = r->encoded_header_bytes;
	return r->bytes + r->encoded_at;
}

uint64_t bc_segment_reader_offset(const struct bc_segment_reader *r)
{
	return r->found_at;
}

uint64_t bc_segment_reader_missing(const struct bc_segment_reader *r)
{
	return r->missing;
}

bool bc_segment_reader_is_sealed(const struct bc_segment_reader *r)
{
	return r->is_sealed;
}

/* What stands here, by its first bytes. */
enum item { ITEM_NONE, ITEM_EMPTY_FRAME, ITEM_SEGMENT, ITEM_CHUNK, ITEM_INDEX };

/* Recognises an item, reads far enough to tell its header from chance, and sets its header's
 * length. Returns the item, ITEM_NONE with *why set, or a negative errno. */
static int recognise(
	struct bc_segment_reader *r, struct bc_chunk *chunk, size_t *bytes, const char **why)
{
	*why = "bytes that belong to no chunk";
	int rc = bc_window_fill(&r->w, BC_SKIPPABLE_BYTES);
	if (rc <= 0) {
		*why = "torn: the bytes end in a chunk's header";
		return rc;
	}
	if (memcmp(bc_window_here(&r->w), bc_empty_frame, BC_SKIPPABLE_BYTES) == 0) {
		*bytes = BC_EMPTY_FRAME_BYTES;
		rc = bc_window_fill(&r->w, *bytes);
		if (rc <= 0 || memcmp(bc_window_here(&r->w), bc_empty_frame, *bytes) != 0)
			return rc < 0 ? rc : ITEM_NONE;
		return ITEM_EMPTY_FRAME;
	}
	switch (bc_le32(bc_window_here(&r->w))) {
	case BC_MAGIC_SEGMENT_HEADER:
		*why = "the segment header is damaged";
		*bytes = bc_segment_header_bytes(bc_window_here(&r->w));
		break;
	case BC_MAGIC_CHUNK_HEADER:
		*why = "a chunk's header is damaged";
		*bytes = bc_chunk_header_bytes(bc_window_here(&r->w));
		break;
	case BC_MAGIC_INDEX:
		*why = "the index is damaged";
		*bytes = BC_INDEX_HEAD_BYTES;
		break;
	default:
		return ITEM_NONE;
	}
	if (*bytes == 0)
		return ITEM_NONE;
	rc = bc_window_fill(&r->w, *bytes);
	if (rc < 0)
		return rc;
	if (rc == 0) {
		*why = "torn: the bytes end in a header";
		return ITEM_NONE;
	}
	switch (bc_le32(bc_window_here(&r->w))) {
	case BC_MAGIC_SEGMENT_HEADER: {
		struct bc_segment_header header;
		if (!bc_segment_header_read(&header, bc_window_here(&r->w), *bytes))
			return ITEM_NONE;
		if (header.version != BC_SEGMENT_VERSION) {
			*why = "a segment of a version that this program doesn't know";
			return ITEM_NONE;
		}
		return ITEM_SEGMENT;
	}
	case BC_MAGIC_CHUNK_HEADER:
		return bc_chunk_header_read(chunk, bc_window_here(&r->w), *bytes) ? ITEM_CHUNK
										  : ITEM_NONE;
	default: {
		struct bc_index_head head;
		return bc_index_head_read(&head, bc_window_here(&r->w)) ? ITEM_INDEX : ITEM_NONE;
	}
	}
}

/* Finds the next place, from here on, where an item that can be told from chance begins. */
static int resynchronise(struct bc_segment_reader *r, struct bc_chunk *chunk)
{
	for (;;) {
		int rc = bc_window_seek_magic(&r->w);
		if (rc <= 0)
			return rc;
		size_t bytes;
		const char *why;
		rc = recognise(r, chunk, &bytes, &why);
		if (rc < 0)
			return rc;
		if (rc == ITEM_SEGMENT || rc == ITEM_CHUNK || rc == ITEM_INDEX)
			return 0;
		bc_window_take(&r->w, 1);
	}
}

static int report_damage(
	struct bc_segment_reader *r, struct bc_chunk *chunk, uint64_t offset, const char *what)
{
	r->damage.offset = offset;
	snprintf(r->damage.what, sizeof(r->damage.what), "%s", what);
	r->is_damaged = true;
	int rc = resynchronise(r, chunk);
	r->damage.bytes = r->w.offset - offset;
	return rc < 0 ? rc : BC_FOUND_DAMAGE;
}

static void begin_segment(struct bc_segment_reader *r, uint64_t offset)
{
	r->segment_at = offset;
	r->rows = 0;
	r->is_damaged = false;
	r->is_sealed = false;
	r->has_segment = true;
	XXH3_64bits_reset(r->rows_hash);
}

/* A segment's header says with which record it begins, so that a missing first chunk is noticed.
 * What went before of the same recording tells more. */
static void expect_first(struct bc_segment_reader *r)
{
	uint64_t tag = bc_recording_tag(r->header.recording);

	if (r->has_last && r->last.recording_tag == tag)
		return;
	r->has_last = true;
	r->last = (struct bc_chunk_info){
		.recording_tag = tag,
		.first_record = r->header.first_record,
	};
}

/* Moves past a chunk's frame without looking at it. Returns 1, 0 if the bytes end before, or a
 * negative errno. */
static int skip_frame(struct bc_segment_reader *r, size_t bytes)
{
	while (bytes != 0) {
		int rc = bc_window_fill(&r->w, 1);
		if (rc <= 0)
			return rc;
		size_t n = bc_window_held(&r->w) < bytes ? bc_window_held(&r->w) : bytes;
		bc_window_take(&r->w, n);
		bytes -= n;
	}
	return 1;
}

/* Takes a chunk for the one found last, unless it stands behind chunks that come after it: the way
 * through a recording is never gone back. */
static void remember(struct bc_segment_reader *r, const struct bc_chunk_info *info)
{
	if (r->has_last && r->last.recording_tag == info->recording_tag &&
		r->last.first_record + r->last.records > info->first_record + info->records)
		return;
	r->has_last = true;
	r->last = *info;
}

static int read_chunk(struct bc_segment_reader *r, struct bc_chunk *chunk, size_t header_bytes)
{
	const struct bc_chunk_info *info = &chunk->info;
	uint64_t offset = r->w.offset;
	uint8_t row[BC_INDEX_ROW_BYTES];
	char what[96];
	int rc;

	bc_index_row_write(row, offset - r->segment_at, bc_window_here(&r->w));
	r->missing = 0;
	if (r->has_last && r->last.recording_tag == info->recording_tag)
		r->missing = bc_chunk_missing(chunk, r->last.first_record + r->last.records);
	if (r->skip_records) {
		bc_window_take(&r->w, header_bytes);
		rc = skip_frame(r, info->frame_bytes);
	} else {
		rc = bc_window_fill(&r->w, header_bytes + info->frame_bytes);
	}
	if (rc < 0)
		return rc;
	if (rc == 0) {
		snprintf(what, sizeof(what),
			"chunk %" PRIu32 ": torn, the bytes end in its records", info->number);
		if (!r->skip_records)
			bc_window_take(&r->w, header_bytes);
		return report_damage(r, chunk, offset, what);
	}
	if (!r->skip_records) {
		size_t bytes = (size_t)info->records * BC_RECORD_BYTES;
		rc = bc_frame_read(chunk->records, bytes, bc_window_here(&r->w) + header_bytes,
			info->frame_bytes);
		if (rc == -ENOMEM)
			return rc;
		if (rc == 0 && bc_hash(chunk->records, bytes) != info->records_hash)
			rc = -EBADMSG;
		if (rc != 0) {
			snprintf(what, sizeof(what),
				"chunk %" PRIu32 " (%" PRIu32 " records): a checksum is wrong",
				info->number, info->records);
			bc_window_take(&r->w, header_bytes);
			return report_damage(r, chunk, offset, what);
		}
		r->encoded_at = r->w.start;
		r->encoded_header_bytes = header_bytes;
		bc_window_take(&r->w, header_bytes + info->frame_bytes);
	}
	XXH3_64bits_update(r->rows_hash, row, sizeof(row));
	r->rows++;
	r->is_sealed = false;
	remember(r, info);
	return BC_FOUND_CHUNK;
}

/* Goes through the rows of an index, and hashes them. Each row but the last names the place of the
 * next; where one doesn't, the index is torn and something else follows: the reader stays on the
 * last row that may still be part of it. Returns 1, 0 if it is not whole, with *why, or a negative
 * errno. */
static int read_rows(
	struct bc_segment_reader *r, uint32_t rows, XXH3_state_t *hash, const char **why)
{
	XXH3_64bits_reset(hash);
	for (uint32_t row = 0; row < rows; row++) {
		bool is_last = row + 1 == rows;
		struct bc_chunk_info info;
		struct bc_chunk_info next;
		int rc = bc_window_fill(
			&r->w, is_last ? BC_INDEX_ROW_BYTES : 2 * BC_INDEX_ROW_BYTES);
		*why = "torn: the bytes end in the index";
		if (rc <= 0)
			return rc;
		uint64_t offset = bc_index_row_read(&info, bc_window_here(&r->w));
		*why = "the index is damaged";
		if (!is_last &&
			bc_index_row_read(&next, bc_window_here(&r->w) + BC_INDEX_ROW_BYTES) !=
				offset + bc_chunk_encoded_bytes(&info))
			return 0;
		XXH3_64bits_update(hash, bc_window_here(&r->w), BC_INDEX_ROW_BYTES);
		if (!is_last)
			bc_window_take(&r->w, BC_INDEX_ROW_BYTES);
	}
	return 1;
}

/* What stands behind the rows. Returns what is wrong with it, or NULL. */
static const char *check_index_tail(
	const uint8_t *tail, const struct bc_index_head *head, uint64_t rows_hash)
{
	uint64_t index_offset;
	uint64_t file_bytes;

	if (bc_le64(tail) != rows_hash)
		return "the index is damaged";
	if (!bc_trailer_read(&index_offset, &file_bytes, tail + BC_HASH_BYTES) ||
		index_offset != head->offset ||
		file_bytes != head->offset + bc_index_bytes(head->rows))
		return "the trailer is damaged";
	return NULL;
}

static int read_index(struct bc_segment_reader *r, struct bc_chunk *chunk)
{
	struct bc_index_head head;
	uint64_t offset = r->w.offset;
	uint64_t derived = XXH3_64bits_digest(r->rows_hash);
	XXH3_state_t *hash = r->rows_hash; /* the chunks' rows are digested: it is free for these */
	const char *why;

	bc_index_head_read(&head, bc_window_here(&r->w));
	bc_window_take(&r->w, BC_INDEX_HEAD_BYTES);
	int rc = read_rows(r, head.rows, hash, &why);
	if (rc > 0) {
		size_t last_row = head.rows != 0 ? BC_INDEX_ROW_BYTES : 0;
		rc = bc_window_fill(&r->w, last_row + BC_HASH_BYTES + BC_TRAILER_BYTES);
		why = rc > 0 ? check_index_tail(bc_window_here(&r->w) + last_row, &head,
				       XXH3_64bits_digest(hash))
			     : "torn: the bytes end in the index";
		if (rc > 0 && why == NULL)
			bc_window_take(&r->w, last_row + BC_HASH_BYTES + BC_TRAILER_BYTES);
	}
	if (rc < 0)
		return rc;
	if (why != NULL)
		return report_damage(r, chunk, offset, why);
	if (!r->is_damaged && (head.rows != r->rows || XXH3_64bits_digest(hash) != derived ||
				      head.offset != offset - r->segment_at)) {
		r->damage = (struct bc_segment_damage){
			.offset = offset, .bytes = r->w.offset - offset};
		snprintf(r->damage.what, sizeof(r->damage.what),
			"the index doesn't match the chunks");
		return BC_FOUND_DAMAGE;
	}
	r->is_sealed = true;
	return BC_FOUND_INDEX;
}

int bc_segment_read(struct bc_segment_reader *r, struct bc_chunk *chunk)
{
	for (;;) {
		size_t bytes = 0;
		const char *why;

		r->found_at = r->w.offset;
		int rc = bc_window_fill(&r->w, 1);
		if (rc < 0)
			return rc;
		if (rc == 0)
			return BC_FOUND_END;
		int item = recognise(r, chunk, &bytes, &why);
		if (item < 0)
			return item;
		switch ((enum item)item) {
		case ITEM_EMPTY_FRAME:
			begin_segment(r, r->w.offset);
			r->has_header = false;
			bc_window_take(&r->w, bytes);
			continue;
		case ITEM_SEGMENT:
			if (r->w.offset - r->segment_at != BC_EMPTY_FRAME_BYTES || !r->has_segment)
				begin_segment(r, r->w.offset - BC_EMPTY_FRAME_BYTES);
			r->has_header = bc_segment_header_read(
				&r->header, bc_window_here(&r->w), bytes);
			expect_first(r);
			bc_window_take(&r->w, bytes);
			return BC_FOUND_SEGMENT;
		case ITEM_CHUNK:
			return read_chunk(r, chunk, bytes);
		case ITEM_INDEX:
			return read_index(r, chunk);
		case ITEM_NONE:
			break;
		}
		uint64_t offset = r->w.offset;
		r->is_sealed = false;
		bc_window_take(&r->w, 1);
		return report_damage(r, chunk, offset, why);
	}
}
