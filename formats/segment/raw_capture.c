#include "formats/segment/raw_capture.h"

#include <assert.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/base/hash.h"
#include "formats/bus/sample.h"

/* Offsets in a table. The fixed part follows the skippable header. */
enum {
	AT_SIZE = 4,
	AT_VERSION = 8,
	AT_FORM = 12,
	AT_BYTES = 16,
	AT_FRAME_BYTES = 20,
	AT_ENTRIES = 24,
	AT_LEAD = 28,
	AT_OFFSET = 32,
	AT_HASH = 40,
	AT_RECORDING_TAG = 48,
	AT_ZERO = 56,
	AT_VARIABLE = 64,
};

_Static_assert(AT_VARIABLE == BC_SKIPPABLE_BYTES + BC_RAW_FIXED_BYTES, "the fixed part's length");

/* Offsets in an entry. */
enum {
	ENTRY_KIND = 0,
	ENTRY_FLAGS = 1,
	ENTRY_CAUSE = 2,
	ENTRY_BYTES = 4,
	ENTRY_SINCE_NS = 8,
	ENTRY_DURATION_NS = 8,
	ENTRY_UNTIL_NS = 16,
	ENTRY_LOST_BYTES = 16,
	ENTRY_LOST = 24,
};

/* Offsets in the end. */
enum { END_BLOCKS = 12, END_OFFSET = 16, END_HASH = 24 };

_Static_assert(END_HASH + BC_HASH_BYTES == BC_RAW_END_BYTES, "the end's length");

enum { FLAG_TIMES = 1, FLAG_RESTART = 2, FLAG_CONTINUED = 4, FLAG_CUT = 8 };

enum { FORM_BCP1 = 1, FORM_RAW6 = 2 };

void bc_raw_block_reset(struct bc_raw_block *b)
{
	memset(b, 0, offsetof(struct bc_raw_block, table));
}

void bc_raw_block_add(
	struct bc_raw_block *b, const struct bc_raw_entry *entry, const uint8_t *bytes)
{
	struct bc_raw_entry *last = b->entries != 0 ? &b->table[b->entries - 1] : NULL;
	bool is_bytes = entry->kind == BC_RAW_TRANSFER;
	bool is_merged = is_bytes && !entry->has_times && last != NULL &&
			 last->kind == BC_RAW_TRANSFER && !last->has_times;

	assert(bc_raw_block_has_room(b, is_merged ? 0 : 1, is_bytes ? entry->bytes : 0));
	if (is_merged)
		last->bytes += entry->bytes;
	else
		b->table[b->entries++] = *entry;
	if (!is_bytes)
		return;
	memcpy(b->data + b->bytes, bytes, entry->bytes);
	b->bytes += entry->bytes;
}

uint64_t bc_raw_block_span(const struct bc_raw_block *b)
{
	uint64_t span = b->bytes;

	for (uint32_t i = 0; i < b->entries; i++)
		span += b->table[i].kind == BC_RAW_BREAK ? b->table[i].lost_bytes : 0;
	return span;
}

static uint8_t *write_entry(uint8_t *p, const struct bc_raw_entry *entry)
{
	memset(p, 0, BC_RAW_ENTRY_BYTES);
	p[ENTRY_KIND] = entry->kind;
	if (entry->kind == BC_RAW_BREAK) {
		p[ENTRY_FLAGS] = (uint8_t)((entry->is_restart ? FLAG_RESTART : 0) |
					   (entry->is_cut ? FLAG_CUT : 0));
		p[ENTRY_CAUSE] = entry->cause;
		bc_write_le64(p + ENTRY_DURATION_NS, entry->duration_ns);
		bc_write_le64(p + ENTRY_LOST_BYTES, entry->lost_bytes);
		bc_write_le64(p + ENTRY_LOST, entry->lost);
		return p + BC_RAW_ENTRY_BYTES;
	}
	p[ENTRY_FLAGS] = (uint8_t)((entry->has_times ? FLAG_TIMES : 0) |
				   (entry->is_continued ? FLAG_CONTINUED : 0));
	bc_write_le32(p + ENTRY_BYTES, entry->bytes);
	bc_write_le64(p + ENTRY_SINCE_NS, entry->has_times ? entry->since_ns : 0);
	bc_write_le64(p + ENTRY_UNTIL_NS, entry->has_times ? entry->until_ns : 0);
	return p + BC_RAW_ENTRY_BYTES;
}

size_t bc_raw_encode(uint8_t *out, struct bc_raw_block *b)
{
	size_t table_bytes = BC_RAW_TABLE_MIN + (size_t)b->entries * BC_RAW_ENTRY_BYTES;
	uint8_t *p = out + AT_VARIABLE;

	b->hash = bc_hash(b->data, b->bytes);
	b->frame_bytes = (uint32_t)bc_frame_write(
		out + table_bytes, b->data, b->bytes, BC_LEVEL_LZ4);
	bc_write_le32(out, BC_MAGIC_RAW_TABLE);
	bc_write_le32(out + AT_SIZE, (uint32_t)(table_bytes - BC_SKIPPABLE_BYTES));
	bc_write_le32(out + AT_VERSION, BC_RAW_VERSION);
	bc_write_le32(out + AT_FORM, b->form == BC_FORMAT_RAW6 ? FORM_RAW6 : FORM_BCP1);
	bc_write_le32(out + AT_BYTES, b->bytes);
	bc_write_le32(out + AT_FRAME_BYTES, b->frame_bytes);
	bc_write_le32(out + AT_ENTRIES, b->entries);
	bc_write_le32(out + AT_LEAD, b->lead);
	bc_write_le64(out + AT_OFFSET, b->offset);
	bc_write_le64(out + AT_HASH, b->hash);
	bc_write_le64(out + AT_RECORDING_TAG, b->recording_tag);
	bc_write_le64(out + AT_ZERO, 0);
	for (uint32_t i = 0; i < b->entries; i++)
		p = write_entry(p, &b->table[i]);
	bc_checksum_write(p, out);
	return table_bytes + b->frame_bytes;
}

size_t bc_raw_table_bytes(const uint8_t in[BC_SKIPPABLE_BYTES])
{
	size_t bytes = bc_skippable_bytes(
		in, BC_MAGIC_RAW_TABLE, BC_RAW_TABLE_MIN, BC_RAW_TABLE_MAX);

	return bytes != 0 && (bytes - BC_RAW_TABLE_MIN) % BC_RAW_ENTRY_BYTES == 0 ? bytes : 0;
}

static bool read_entry(struct bc_raw_entry *entry, const uint8_t *p)
{
	memset(entry, 0, sizeof(*entry));
	entry->kind = p[ENTRY_KIND];
	switch (p[ENTRY_KIND]) {
	case BC_RAW_TRANSFER:
		entry->has_times = (p[ENTRY_FLAGS] & FLAG_TIMES) != 0;
		entry->is_continued = (p[ENTRY_FLAGS] & FLAG_CONTINUED) != 0;
		entry->bytes = bc_le32(p + ENTRY_BYTES);
		entry->since_ns = bc_le64(p + ENTRY_SINCE_NS);
		entry->until_ns = bc_le64(p + ENTRY_UNTIL_NS);
		return entry->since_ns <= entry->until_ns;
	case BC_RAW_BREAK:
		entry->is_restart = (p[ENTRY_FLAGS] & FLAG_RESTART) != 0;
		entry->is_cut = (p[ENTRY_FLAGS] & (FLAG_CUT | FLAG_RESTART)) != 0;
		entry->cause = p[ENTRY_CAUSE];
		entry->duration_ns = bc_le64(p + ENTRY_DURATION_NS);
		entry->lost_bytes = bc_le64(p + ENTRY_LOST_BYTES);
		entry->lost = bc_le64(p + ENTRY_LOST);
		return entry->cause != 0;
	default:
		return false;
	}
}

bool bc_raw_table_read(struct bc_raw_block *b, const uint8_t *table, size_t table_bytes)
{
	uint32_t form = bc_le32(table + AT_FORM);
	uint64_t bytes = 0;

	/* The cheap checks are first: a search tries many places that are not tables. */
	if (bc_le32(table + AT_VERSION) != BC_RAW_VERSION)
		return false;
	bc_raw_block_reset(b);
	b->form = form == FORM_RAW6 ? BC_FORMAT_RAW6 : BC_FORMAT_BCP1;
	b->bytes = bc_le32(table + AT_BYTES);
	b->frame_bytes = bc_le32(table + AT_FRAME_BYTES);
	b->entries = bc_le32(table + AT_ENTRIES);
	b->lead = bc_le32(table + AT_LEAD);
	b->offset = bc_le64(table + AT_OFFSET);
	b->hash = bc_le64(table + AT_HASH);
	b->recording_tag = bc_le64(table + AT_RECORDING_TAG);
	if ((form != FORM_BCP1 && form != FORM_RAW6) || b->bytes > BC_RAW_BLOCK_BYTES ||
		b->frame_bytes > BC_FRAME_MAX || b->lead >= BC_SAMPLE_BYTES ||
		b->entries > BC_RAW_BLOCK_ENTRIES ||
		table_bytes != BC_RAW_TABLE_MIN + (size_t)b->entries * BC_RAW_ENTRY_BYTES ||
		!bc_checksum_is_valid(table + table_bytes - BC_HASH_BYTES, table))
		return false;
	for (uint32_t i = 0; i < b->entries; i++) {
		const uint8_t *p = table + AT_VARIABLE + (size_t)i * BC_RAW_ENTRY_BYTES;
		if (!read_entry(&b->table[i], p))
			return false;
		bytes += b->table[i].bytes;
	}
	return bytes == b->bytes;
}

int bc_raw_frame_read(struct bc_raw_block *b, const uint8_t *frame)
{
	return bc_frame_read_checked(b->data, b->bytes, frame, b->frame_bytes, b->hash);
}

void bc_raw_end_write(uint8_t out[BC_RAW_END_BYTES], uint32_t blocks, uint64_t offset)
{
	bc_write_le32(out, BC_MAGIC_RAW_END);
	bc_write_le32(out + AT_SIZE, BC_RAW_END_BYTES - BC_SKIPPABLE_BYTES);
	bc_write_le32(out + AT_VERSION, BC_RAW_VERSION);
	bc_write_le32(out + END_BLOCKS, blocks);
	bc_write_le64(out + END_OFFSET, offset);
	bc_checksum_write(out + END_HASH, out);
}

bool bc_raw_end_read(uint32_t *blocks, uint64_t *offset, const uint8_t in[BC_RAW_END_BYTES])
{
	*blocks = bc_le32(in + END_BLOCKS);
	*offset = bc_le64(in + END_OFFSET);
	return bc_le32(in) == BC_MAGIC_RAW_END &&
	       bc_le32(in + AT_SIZE) == BC_RAW_END_BYTES - BC_SKIPPABLE_BYTES &&
	       bc_le32(in + AT_VERSION) == BC_RAW_VERSION &&
	       bc_checksum_is_valid(in + END_HASH, in);
}
