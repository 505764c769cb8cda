/* How a file is read, and how reading continues after damage.
 *
 * A file is a series of items: empty frame, file header, chunks, page summary, index. Each item has
 * a magic and a header with a checksum; parse_item() reads it as a whole and accepts it only if the
 * checksum matches. If it does not, resynchronise() searches byte by byte for the next place where
 * an item is valid. Random bytes pass neither magic nor checksum, and the search costs nothing
 * unless the file is damaged. The frame of a chunk that other threads have decoded is skipped.
 * Memory is constant: the buffer holds the largest item, and the index is checked against a running
 * hash of the rows derived from the chunks.
 *
 * The search must be linear even where a magic is at every place. So each item has fields that are
 * checked before its checksum is computed: the text of a file header has no control characters, and
 * so no magic; the lengths in the header of a chunk must agree. What such fields do not exclude
 * costs at most one checksum per 40 bytes or so. Only a file that was made for it gets there, and
 * count_work() lets the search be cancelled even then. */

#include "formats/segment/segment_reader.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "formats/base/bytes.h"
#include "formats/base/text.h"
#include "formats/segment/page_summary.h"

/* A chunk is the largest item. */
#define BUFFER_BYTES (2 * BC_CHUNK_ENCODED_MAX + BC_SEGMENT_HEADER_MAX)
#define HEAD_MAX     (1u << 20)

/* What is read at a time, if no more is needed: enough to make few calls, and little enough to stay
 * in the cache. Where the frames are skipped, what most chunk headers have. */
#define READ_BYTES   (256u << 10)
#define HEADER_BYTES (16u << 10)

/* Bytes that may be examined in vain before the stream is polled: some milliseconds. */
#define WORK_BYTES (8u << 20)

/* ---- the buffer: whole structures in memory, and the search for the next one after damage */

#define MAGIC_FIRST 0x184D2A50u

struct read_buffer {
	struct bc_input_stream stream;
	bool at_end;       /* the stream has ended */
	uint64_t read_end; /* reading stops before this offset */
	uint64_t offset;   /* of bytes[start] in the stream */
	size_t start;      /* the buffered bytes: bytes[start .. end) */
	size_t end;
	size_t at_once; /* how much is read, if no more is needed */
	size_t capacity;
	uint8_t *bytes; /* owned by the caller */
};

static inline const uint8_t *buffer_data(const struct read_buffer *buffer)
{
	return buffer->bytes + buffer->start;
}

static inline size_t buffer_bytes(const struct read_buffer *buffer)
{
	return buffer->end - buffer->start;
}

static inline void buffer_consume(struct read_buffer *buffer, size_t bytes)
{
	buffer->start += bytes;
	buffer->offset += bytes;
}

/* Consumes bytes that need not be buffered, of a regular file. Returns 0 or a negative errno. */
static int buffer_skip(struct read_buffer *b, size_t bytes)
{
	size_t buffered = buffer_bytes(b) < bytes ? buffer_bytes(b) : bytes;
	size_t rest = bytes - buffered;

	buffer_consume(b, buffered);
	if (rest == 0)
		return 0;
	b->start = b->end = 0;
	b->offset += rest;
	return lseek(b->stream.fd, (off_t)rest, SEEK_CUR) >= 0 ? 0 : -errno;
}

/* Reads until `need` bytes are buffered, at most the capacity. Returns 1, 0 if the stream ends
 * first, or a negative errno. */
static int buffer_fill(struct read_buffer *b, size_t need)
{
	assert(need <= b->capacity);
	if (b->start + need > b->capacity) {
		memmove(b->bytes, buffer_data(b), buffer_bytes(b));
		b->end -= b->start;
		b->start = 0;
	}
	while (buffer_bytes(b) < need && !b->at_end) {
		size_t missing = need - buffer_bytes(b);
		size_t most = missing > b->at_once ? missing : b->at_once;
		size_t room = b->capacity - b->end < most ? b->capacity - b->end : most;
		uint64_t left = b->read_end - (b->offset + buffer_bytes(b));
		ssize_t n = left == 0 ? 0
				      : bc_input_stream_read(b->stream, b->bytes + b->end,
						left < room ? (size_t)left : room);
		if (n < 0)
			return (int)n;
		b->at_end = n == 0;
		b->end += (size_t)n;
	}
	return buffer_bytes(b) >= need;
}

/* Skips to the next magic of one of our skippable frames, 0x184D2A50 .. 0x184D2A57, which may be
 * here. Returns 1, 0 if the stream ends first, or a negative errno. */
static int buffer_seek_magic(struct read_buffer *b)
{
	for (;;) {
		/* The magics differ only in the low three bits. */
		const uint8_t *p = buffer_data(b);
		size_t n = buffer_bytes(b);
		size_t at = 0;
		while (at + 4 <= n && (bc_le32(p + at) & ~7u) != MAGIC_FIRST)
			at++;
		buffer_consume(b, at);
		if (at + 4 <= n)
			return 1;
		if (b->at_end) {
			buffer_consume(b, buffer_bytes(b));
			return 0;
		}
		int rc = buffer_fill(b, buffer_bytes(b) + 1);
		if (rc < 0)
			return rc;
	}
}

/* ---- the reader */

struct bc_segment_reader {
	struct read_buffer in;
	struct bc_decode_ahead *ahead; /* or NULL */
	const uint8_t *records;        /* of the last chunk */
	void *result;                  /* of the work on them, or NULL */
	int skip_fd;                   /* of the file whose records are skipped; -1: none are */
	bool (*needs_records)(void *context, const struct bc_chunk *chunk);
	void *needs_context;
	uint64_t found_at; /* offset of the last result */
	bool has_header;
	struct bc_segment_header header;
	struct bc_segment_damage damage;
	size_t work;                 /* bytes examined in vain since the last poll */
	struct bc_chunk *chunk;      /* the caller's */
	size_t encoded_header_bytes; /* of the last chunk or header, at bytes[encoded_at] */
	size_t encoded_at;
	/* What the current segment's index should contain. */
	uint64_t segment_at; /* its offset in the stream */
	uint64_t summary_at; /* of its page summary, in the segment; 0: none so far */
	uint32_t rows;       /* chunks */
	bool is_damaged;     /* part of the segment was not read: the index can't be checked */
	bool is_sealed;
	bool has_segment;
	XXH3_state_t *rows_hash;
	void (*on_node)(void *context, uint32_t number, const uint8_t *node, size_t bytes);
	void *on_node_context;
	uint8_t lengths[BC_SUMMARY_NODES_MAX * 4 + BC_HASH_BYTES]; /* of a page summary's nodes */
	uint8_t bytes[BUFFER_BYTES];
};

int bc_segment_reader_open(struct bc_segment_reader **reader, struct bc_input_stream stream,
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
	r->skip_fd = -1;
	r->in = (struct read_buffer){.stream = stream,
		.read_end = UINT64_MAX,
		.end = head_bytes,
		.at_once = READ_BYTES,
		.capacity = BUFFER_BYTES,
		.bytes = r->bytes};
	if (head_bytes != 0)
		memcpy(r->bytes, head, head_bytes);
	r->rows_hash = hash;
	XXH3_64bits_reset(hash);
	*reader = r;
	return 0;
}

void bc_segment_reader_close(struct bc_segment_reader *r)
{
	if (r == NULL)
		return;
	bc_decode_ahead_close(r->ahead);
	XXH3_freeState(r->rows_hash);
	free(r);
}

void bc_segment_reader_decode_ahead(struct bc_segment_reader *r, int fd,
	bool (*needs)(void *context, const struct bc_chunk_info *info), void *context,
	const struct bc_chunk_work *work)
{
	r->ahead = bc_decode_ahead_open(fd, needs, context, work);
	if (r->ahead != NULL)
		r->in.at_once = HEADER_BYTES;
}

const uint8_t *bc_segment_reader_records(const struct bc_segment_reader *r, void **result)
{
	*result = r->result;
	return r->records;
}

int bc_segment_reader_range(struct bc_segment_reader *r, uint64_t offset, uint64_t end)
{
	struct read_buffer *b = &r->in;

	if (lseek(b->stream.fd, (off_t)offset, SEEK_SET) < 0)
		return -errno;
	b->at_end = false;
	b->start = 0;
	b->end = 0;
	b->offset = offset;
	b->read_end = end;
	r->is_damaged = true; /* only part of the segment is read */
	return 0;
}

void bc_segment_reader_skip_records(struct bc_segment_reader *r, int fd,
	bool (*needs)(void *context, const struct bc_chunk *chunk), void *context)
{
	r->skip_fd = fd;
	r->needs_records = needs;
	r->needs_context = context;
	r->in.at_once = HEADER_BYTES;
}

void bc_segment_reader_on_node(struct bc_segment_reader *r,
	void (*on_node)(void *context, uint32_t number, const uint8_t *node, size_t bytes),
	void *context)
{
	r->on_node = on_node;
	r->on_node_context = context;
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

bool bc_segment_reader_is_sealed(const struct bc_segment_reader *r)
{
	return r->is_sealed;
}

enum item { ITEM_NONE, ITEM_EMPTY_FRAME, ITEM_FILE, ITEM_CHUNK, ITEM_SUMMARY, ITEM_INDEX };

static const char torn_header[] = "torn: the file ends in a header";
static const char torn_summary[] = "torn: the file ends in the page summary";
static const char torn_index[] = "torn: the file ends in the index";
static const char damaged_summary[] = "the page summary is damaged";

/* Identifies an item by its first 8 bytes. Sets *bytes to its header's length, 0 if invalid. */
static enum item identify_item(const struct bc_segment_reader *r, size_t *bytes, const char **err)
{
	const uint8_t *here = buffer_data(&r->in);

	*err = "bytes outside any chunk";
	if (bc_is_empty_frame(here, BC_SKIPPABLE_BYTES)) {
		*bytes = BC_EMPTY_FRAME_BYTES;
		return ITEM_EMPTY_FRAME;
	}
	switch (bc_le32(here)) {
	case BC_MAGIC_SEGMENT_HEADER:
		*err = "the segment header is damaged";
		*bytes = bc_segment_header_bytes(here);
		return ITEM_FILE;
	case BC_MAGIC_CHUNK_HEADER:
		*err = "a chunk's header is damaged";
		*bytes = bc_chunk_header_bytes(here);
		return ITEM_CHUNK;
	case BC_MAGIC_PAGE_SUMMARY:
		*err = damaged_summary;
		*bytes = BC_SUMMARY_HEAD_BYTES;
		return ITEM_SUMMARY;
	case BC_MAGIC_INDEX:
		*err = "the index is damaged";
		*bytes = BC_INDEX_HEAD_BYTES;
		return ITEM_INDEX;
	default:
		return ITEM_NONE;
	}
}

/* True if the buffered header of the item is valid. Reads a chunk's into the caller's chunk. */
static bool check_item(
	const struct bc_segment_reader *r, enum item item, size_t bytes, const char **err)
{
	const uint8_t *here = buffer_data(&r->in);
	struct bc_segment_header header;
	struct bc_summary_head summary;
	struct bc_index_head head;

	switch (item) {
	case ITEM_EMPTY_FRAME:
		return bc_is_empty_frame(here, bytes);
	case ITEM_FILE:
		if (!bc_segment_header_read(&header, here, bytes))
			return false;
		*err = "unknown segment version";
		return header.version == BC_SEGMENT_VERSION;
	case ITEM_CHUNK:
		return bc_chunk_header_read(r->chunk, here, bytes);
	case ITEM_SUMMARY:
		return bc_summary_head_read(&summary, here);
	case ITEM_INDEX:
		return bc_index_head_read(&head, here);
	case ITEM_NONE:
		break;
	}
	return false;
}

/* Buffers and checks the header of the item here, and sets *bytes to its length. Returns the item,
 * ITEM_NONE with *err set if it is invalid, or a negative errno. */
static int parse_item(struct bc_segment_reader *r, size_t *bytes, const char **err)
{
	*err = torn_header;
	*bytes = 0;
	int rc = buffer_fill(&r->in, BC_SKIPPABLE_BYTES);
	if (rc <= 0)
		return rc;
	enum item item = identify_item(r, bytes, err);
	if (*bytes == 0)
		return ITEM_NONE;
	rc = buffer_fill(&r->in, *bytes);
	if (rc == 0)
		*err = torn_header;
	if (rc <= 0)
		return rc;
	errno = 0;
	if (check_item(r, item, *bytes, err))
		return (int)item;
	return item == ITEM_FILE && errno == ENOMEM ? -ENOMEM : ITEM_NONE;
}

/* Counts bytes that were examined in vain. Returns 0, or -ECANCELED. */
static int count_work(struct bc_segment_reader *r, size_t bytes)
{
	r->work += bytes;
	if (r->work < WORK_BYTES)
		return 0;
	r->work = 0;
	return bc_input_stream_poll(r->in.stream);
}

/* Skips to the next valid item, which may be at the current position, or to the end. Returns the
 * item, ITEM_NONE at the end, or a negative errno. */
static int resynchronise(struct bc_segment_reader *r)
{
	for (;;) {
		size_t bytes;
		const char *err;
		int rc = buffer_seek_magic(&r->in);
		if (rc <= 0)
			return rc;
		rc = parse_item(r, &bytes, &err);
		if (rc != ITEM_NONE)
			return rc;
		rc = count_work(r, bytes);
		if (rc < 0)
			return rc;
		buffer_consume(&r->in, 1);
	}
}

static int report_damage(struct bc_segment_reader *r, uint64_t offset, const char *what)
{
	r->damage = (struct bc_segment_damage){.offset = offset,
		.is_torn = what == torn_header || what == torn_summary || what == torn_index};
	snprintf(r->damage.what, sizeof(r->damage.what), "%s", what);
	r->is_damaged = true;
	r->is_sealed = false;
	int rc = resynchronise(r);
	r->damage.bytes = r->in.offset - offset;
	return rc < 0 ? rc : BC_FOUND_DAMAGE;
}

static void start_segment(struct bc_segment_reader *r, uint64_t offset)
{
	r->segment_at = offset;
	r->summary_at = 0;
	r->rows = 0;
	r->is_damaged = false;
	r->is_sealed = false;
	r->has_segment = true;
	XXH3_64bits_reset(r->rows_hash);
}

static int report_bad_frame(struct bc_segment_reader *r, uint64_t offset, size_t header_bytes,
	size_t frame_bytes, bool is_torn)
{
	char what[96];

	if (is_torn)
		snprintf(what, sizeof(what),
			"chunk %" PRIu32 ": torn: the file ends in its records",
			r->chunk->info.number);
	else
		snprintf(what, sizeof(what), "chunk %" PRIu32 " (%s record%s): wrong checksum",
			r->chunk->info.number, BC_GROUPED(r->chunk->info.records),
			bc_plural(r->chunk->info.records));
	/* The search for the next item overwrites the chunk. */
	uint32_t records = r->chunk->info.records;
	buffer_consume(&r->in, header_bytes);
	int rc = count_work(r, is_torn ? 0 : frame_bytes);
	rc = rc < 0 ? rc : report_damage(r, offset, what);
	r->damage.is_torn = is_torn;
	r->damage.records = records;
	return rc;
}

/* True if these bytes of a file, which are not buffered, are followed by its end or the magic of an
 * item that may follow a chunk. A segment header can't follow directly: an empty frame comes before
 * it. */
static bool has_next(const struct bc_segment_reader *r, size_t bytes)
{
	uint8_t last[1 + 4];
	const uint8_t *next = last + 1;
	ssize_t n = pread(r->skip_fd, last, sizeof(last), (off_t)(r->in.offset + bytes - 1));

	return n == 1 || (n == sizeof(last) && bc_le32(next) != BC_MAGIC_SEGMENT_HEADER &&
				 (bc_is_empty_frame(next, 4) ||
					 (bc_le32(next) & ~7u) == BC_MAGIC_SEGMENT_HEADER));
}

/* Buffers and decodes the frame of a chunk. A frame is skipped only if an item follows: before
 * another file, a torn one's frame is too long. Returns 0, BC_FOUND_DAMAGE or a negative errno. */
static int read_frame(struct bc_segment_reader *r, size_t header_bytes)
{
	size_t frame_bytes = r->chunk->info.frame_bytes;
	uint64_t offset = r->in.offset;

	if (r->skip_fd >= 0 &&
		(r->needs_records == NULL || !r->needs_records(r->needs_context, r->chunk)) &&
		has_next(r, header_bytes + frame_bytes))
		return 0;
	int rc = buffer_fill(&r->in, header_bytes + frame_bytes);
	if (rc < 0)
		return rc;
	if (rc == 0)
		return report_bad_frame(r, offset, header_bytes, frame_bytes, true);
	rc = bc_chunk_frame_read(r->chunk, buffer_data(&r->in) + header_bytes);
	if (rc == -ENOMEM)
		return rc;
	if (rc != 0)
		return report_bad_frame(r, offset, header_bytes, frame_bytes, false);
	r->encoded_at = r->in.start;
	r->encoded_header_bytes = header_bytes;
	return 0;
}

/* Reads the rest of a chunk whose header is buffered here and parsed. Its frame need not be read if
 * it was decoded ahead. */
static int read_chunk(struct bc_segment_reader *r, size_t header_bytes)
{
	struct bc_chunk *chunk = r->chunk;
	uint64_t offset = r->in.offset;
	uint8_t row[BC_INDEX_ROW_BYTES];

	bc_index_row_write(row, offset - r->segment_at, buffer_data(&r->in));
	r->result = NULL;
	r->records = r->ahead != NULL
			     ? bc_decode_ahead_pop(r->ahead, offset, &chunk->info, &r->result)
			     : NULL;
	int rc = r->records != NULL ? 0 : read_frame(r, header_bytes);
	if (r->records == NULL)
		r->records = chunk->records;
	if (rc == 0)
		rc = buffer_skip(&r->in, header_bytes + chunk->info.frame_bytes);
	if (rc != 0)
		return rc;
	r->is_sealed = false;
	r->rows++;
	XXH3_64bits_update(r->rows_hash, row, sizeof(row));
	return BC_FOUND_CHUNK;
}

/* Reads the lengths of a page summary whose head is consumed, and its nodes. Returns 1, 0 with *err
 * if it is damaged, or a negative errno. */
static int read_nodes(
	struct bc_segment_reader *r, const struct bc_summary_head *head, const char **err)
{
	size_t bytes = bc_summary_lengths_bytes(head);
	int rc = buffer_fill(&r->in, bytes);

	*err = torn_summary;
	if (rc <= 0)
		return rc;
	*err = damaged_summary;
	if (!bc_summary_lengths_are_valid(head, buffer_data(&r->in)))
		return 0;
	memcpy(r->lengths, buffer_data(&r->in), bytes);
	buffer_consume(&r->in, bytes);
	for (uint32_t i = 0; i < head->nodes; i++) {
		bytes = bc_le32(r->lengths + (size_t)i * 4);
		rc = buffer_fill(&r->in, bytes);
		*err = torn_summary;
		if (rc <= 0)
			return rc;
		const uint8_t *node = buffer_data(&r->in);
		*err = damaged_summary;
		if (bytes != 0 && !bc_summary_node_is_valid(node, bytes))
			return 0;
		if (r->on_node != NULL)
			r->on_node(r->on_node_context, i, node, bytes);
		buffer_consume(&r->in, bytes);
	}
	return 1;
}

/* Reads the page summary here. Returns BC_FOUND_END if there is nothing to report. */
static int read_summary(struct bc_segment_reader *r)
{
	struct bc_summary_head head;
	uint64_t offset = r->in.offset;
	uint64_t at = offset - r->segment_at;
	const char *err = damaged_summary;
	int rc = bc_summary_head_read(&head, buffer_data(&r->in));

	buffer_consume(&r->in, BC_SUMMARY_HEAD_BYTES);
	if (rc != 0)
		rc = read_nodes(r, &head, &err);
	if (rc <= 0)
		return rc < 0 ? rc : report_damage(r, offset, err);
	/* If it doesn't match the chunks, neither does the index, which is reported. */
	if (head.chunks == r->rows && head.offset == at)
		r->summary_at = at;
	return BC_FOUND_END;
}

/* Reads and hashes the rows of an index. Each row gives the offset of the next row's chunk; if that
 * does not match, the index is torn and something else follows. Stops at the last row that may be
 * part of the index, so that the search continues there. Returns 1, 0 with *err if the index is
 * damaged, or a negative errno. */
static int read_rows(
	struct bc_segment_reader *r, uint32_t rows, XXH3_state_t *hash, const char **err)
{
	XXH3_64bits_reset(hash);
	for (uint32_t row = 0; row < rows; row++) {
		bool is_last = row + 1 == rows;
		struct bc_chunk_info info;
		struct bc_chunk_info next;
		int rc = buffer_fill(&r->in, is_last ? BC_INDEX_ROW_BYTES : 2 * BC_INDEX_ROW_BYTES);
		*err = torn_index;
		if (rc <= 0)
			return rc;
		uint64_t offset = bc_index_row_read(&info, buffer_data(&r->in));
		*err = "the index is damaged";
		if (!is_last &&
			bc_index_row_read(&next, buffer_data(&r->in) + BC_INDEX_ROW_BYTES) !=
				offset + bc_chunk_encoded_bytes(&info))
			return 0;
		XXH3_64bits_update(hash, buffer_data(&r->in), BC_INDEX_ROW_BYTES);
		if (!is_last)
			buffer_consume(&r->in, BC_INDEX_ROW_BYTES);
	}
	return 1;
}

/* Checks the hash and trailer after the rows. Returns what is wrong, or NULL. */
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

static int read_index(struct bc_segment_reader *r)
{
	struct bc_index_head head;
	uint64_t offset = r->in.offset;
	uint64_t derived = XXH3_64bits_digest(r->rows_hash);
	XXH3_state_t *hash = r->rows_hash; /* digested above: can be reused */
	const char *err;

	bc_index_head_read(&head, buffer_data(&r->in));
	buffer_consume(&r->in, BC_INDEX_HEAD_BYTES);
	int rc = read_rows(r, head.rows, hash, &err);
	if (rc > 0) {
		size_t last_row = head.rows != 0 ? BC_INDEX_ROW_BYTES : 0;
		rc = buffer_fill(&r->in, last_row + BC_HASH_BYTES + BC_TRAILER_BYTES);
		err = rc > 0 ? check_index_tail(buffer_data(&r->in) + last_row, &head,
				       XXH3_64bits_digest(hash))
			     : torn_index;
		if (rc > 0 && err == NULL)
			buffer_consume(&r->in, last_row + BC_HASH_BYTES + BC_TRAILER_BYTES);
	}
	if (rc < 0)
		return rc;
	if (err != NULL)
		return report_damage(r, offset, err);
	bool matches = head.rows == r->rows && XXH3_64bits_digest(hash) == derived &&
		       head.offset == offset - r->segment_at && head.pages == r->summary_at;
	r->is_sealed = matches || r->is_damaged;
	if (r->is_sealed)
		return BC_FOUND_INDEX;
	r->damage = (struct bc_segment_damage){.offset = offset, .bytes = r->in.offset - offset};
	snprintf(r->damage.what, sizeof(r->damage.what), "the index doesn't match the chunks");
	return BC_FOUND_DAMAGE;
}

int bc_segment_read(struct bc_segment_reader *r, struct bc_chunk *chunk)
{
	r->chunk = chunk;
	for (;;) {
		size_t bytes = 0;
		const char *err;

		r->found_at = r->in.offset;
		int rc = buffer_fill(&r->in, 1);
		if (rc <= 0)
			return rc < 0 ? rc : BC_FOUND_END;
		int item = parse_item(r, &bytes, &err);
		if (item < 0)
			return item;
		switch ((enum item)item) {
		case ITEM_EMPTY_FRAME:
			start_segment(r, r->in.offset);
			r->has_header = false;
			buffer_consume(&r->in, bytes);
			continue;
		case ITEM_FILE:
			if (r->in.offset - r->segment_at != BC_EMPTY_FRAME_BYTES || !r->has_segment)
				start_segment(r, r->in.offset - BC_EMPTY_FRAME_BYTES);
			r->has_header = bc_segment_header_read(
				&r->header, buffer_data(&r->in), bytes);
			if (!r->has_header)
				return -errno; /* it was valid: out of memory */
			r->encoded_at = r->in.start;
			r->encoded_header_bytes = bytes;
			buffer_consume(&r->in, bytes);
			return BC_FOUND_SEGMENT;
		case ITEM_CHUNK:
			return read_chunk(r, bytes);
		case ITEM_SUMMARY:
			rc = read_summary(r);
			if (rc == BC_FOUND_END)
				continue;
			return rc;
		case ITEM_INDEX:
			return read_index(r);
		case ITEM_NONE:
			break;
		}
		buffer_consume(&r->in, 1);
		return report_damage(r, r->found_at, err);
	}
}
