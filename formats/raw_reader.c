#include "formats/raw_reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/bytes.h"
#include "formats/window.h"

/* The largest thing that is looked at whole is a block; a header of JSON is smaller. */
#define WINDOW_BYTES (2 * BC_RAW_ENCODED_MAX + BC_SEGMENT_HEADER_MAX)
#define HEAD_MAX     (1u << 20)

struct bc_raw_reader {
	struct bc_window w;
	bool has_header;
	struct bc_segment_header header;
	struct bc_segment_damage damage;
	bool has_last;
	uint64_t tag; /* of the block found last */
	uint64_t end; /* place in the stream behind it */
	enum bc_raw_follows follows;
	uint8_t bytes[WINDOW_BYTES];
};

int bc_raw_reader_open(struct bc_raw_reader **reader, struct bc_stream stream, const uint8_t *head,
	size_t head_bytes)
{
	if (head_bytes > HEAD_MAX)
		return -EINVAL;
	struct bc_raw_reader *r = malloc(sizeof(*r));
	if (r == NULL)
		return -ENOMEM;
	memset(r, 0, offsetof(struct bc_raw_reader, bytes));
	bc_window_open(&r->w, stream, r->bytes, WINDOW_BYTES, head, head_bytes);
	*reader = r;
	return 0;
}

void bc_raw_reader_close(struct bc_raw_reader *reader)
{
	free(reader);
}

const struct bc_segment_header *bc_raw_reader_header(const struct bc_raw_reader *r)
{
	return r->has_header ? &r->header : NULL;
}

const struct bc_segment_damage *bc_raw_reader_damage(const struct bc_raw_reader *r)
{
	return &r->damage;
}

uint64_t bc_raw_reader_offset(const struct bc_raw_reader *r)
{
	return r->w.offset;
}

enum bc_raw_follows bc_raw_reader_follows(const struct bc_raw_reader *r)
{
	return r->follows;
}

/* What stands here, by its first bytes. */
enum item { ITEM_NONE, ITEM_EMPTY_FRAME, ITEM_HEADER, ITEM_BLOCK };

/* Recognises an item, reads far enough to tell its header from chance, and sets that header's
 * length. Returns the item, ITEM_NONE with *why set, or a negative errno. */
static int recognise(
	struct bc_raw_reader *r, struct bc_raw_block *block, size_t *bytes, const char **why)
{
	enum item item = ITEM_NONE;

	*why = "torn: the bytes end in a block's table";
	int rc = bc_window_fill(&r->w, BC_SKIPPABLE_BYTES);
	if (rc <= 0)
		return rc;
	const uint8_t *here = bc_window_here(&r->w);
	*why = "bytes that belong to no block";
	*bytes = 0;
	if (memcmp(here, bc_empty_frame, BC_SKIPPABLE_BYTES) == 0) {
		item = ITEM_EMPTY_FRAME;
		*bytes = BC_EMPTY_FRAME_BYTES;
	} else if (bc_le32(here) == BC_MAGIC_RAW_HEADER) {
		item = ITEM_HEADER;
		*bytes = bc_raw_header_bytes(here);
		*why = "the header is damaged";
	} else if (bc_le32(here) == BC_MAGIC_RAW_TABLE) {
		item = ITEM_BLOCK;
		*bytes = bc_raw_table_bytes(here);
		*why = "a block's table is damaged";
	}
	if (*bytes == 0)
		return ITEM_NONE;
	rc = bc_window_fill(&r->w, *bytes);
	if (rc == 0)
		*why = "torn: the bytes end in a block's table";
	if (rc <= 0)
		return rc;
	here = bc_window_here(&r->w);
	struct bc_segment_header header;
	enum bc_format form;
	bool is_whole = false;
	if (item == ITEM_EMPTY_FRAME)
		is_whole = memcmp(here, bc_empty_frame, *bytes) == 0;
	else if (item == ITEM_HEADER)
		is_whole = bc_raw_header_read(&header, &form, here, *bytes);
	else
		is_whole = bc_raw_table_read(block, here, *bytes);
	if (is_whole && item == ITEM_HEADER && header.version != BC_RAW_VERSION) {
		*why = "a raw capture of a version that this program doesn't know";
		is_whole = false;
	}
	return is_whole ? (int)item : ITEM_NONE;
}

/* Damage from `offset` on: finds the next place, from here, where something whole begins. */
static int report_damage(
	struct bc_raw_reader *r, struct bc_raw_block *block, uint64_t offset, const char *what)
{
	r->damage.offset = offset;
	snprintf(r->damage.what, sizeof(r->damage.what), "%s", what);
	for (;;) {
		size_t bytes;
		const char *why;
		int rc = bc_window_seek_magic(&r->w);
		if (rc > 0) {
			rc = recognise(r, block, &bytes, &why);
			if (rc == ITEM_NONE) {
				bc_window_take(&r->w, 1);
				continue;
			}
		}
		r->damage.bytes = r->w.offset - offset;
		return rc < 0 ? rc : BC_RAW_FOUND_DAMAGE;
	}
}

static int read_block(struct bc_raw_reader *r, struct bc_raw_block *block, size_t table_bytes)
{
	uint64_t offset = r->w.offset;
	int rc = bc_window_fill(&r->w, table_bytes + block->frame_bytes);

	if (rc < 0)
		return rc;
	if (rc == 0) {
		bc_window_take(&r->w, table_bytes);
		return report_damage(r, block, offset, "torn: the bytes end in a block");
	}
	rc = bc_raw_frame_read(block, bc_window_here(&r->w) + table_bytes);
	if (rc == -ENOMEM)
		return rc;
	if (rc != 0) {
		bc_window_take(&r->w, table_bytes);
		return report_damage(r, block, offset, "a block's checksum is wrong");
	}
	bc_window_take(&r->w, table_bytes + block->frame_bytes);
	r->follows = !r->has_last                     ? BC_RAW_FIRST
		     : r->tag != block->recording_tag ? BC_RAW_BEHIND_OTHER
		     : r->end == block->offset        ? BC_RAW_AT_ONCE
						      : BC_RAW_BEHIND_HOLE;
	r->has_last = true;
	r->tag = block->recording_tag;
	r->end = block->offset + bc_raw_block_span(block);
	return BC_RAW_FOUND_BLOCK;
}

int bc_raw_read(struct bc_raw_reader *r, struct bc_raw_block *block)
{
	for (;;) {
		size_t bytes = 0;
		const char *why;
		enum bc_format form;
		uint64_t offset = r->w.offset;
		int rc = bc_window_fill(&r->w, 1);
		if (rc < 0)
			return rc;
		if (rc == 0)
			return BC_RAW_FOUND_END;
		int item = recognise(r, block, &bytes, &why);
		if (item < 0)
			return item;
		switch ((enum item)item) {
		case ITEM_EMPTY_FRAME:
			r->has_header = false;
			bc_window_take(&r->w, bytes);
			continue;
		case ITEM_HEADER:
			r->has_header = bc_raw_header_read(
				&r->header, &form, bc_window_here(&r->w), bytes);
			bc_window_take(&r->w, bytes);
			return BC_RAW_FOUND_FILE;
		case ITEM_BLOCK:
			return read_block(r, block, bytes);
		case ITEM_NONE:
			break;
		}
		bc_window_take(&r->w, 1);
		return report_damage(r, block, offset, why);
	}
}
