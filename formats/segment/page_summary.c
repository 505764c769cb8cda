/* The page summary of a segment: writing, reading and checking it.
 *
 * Writing builds all levels of the tree at once. Each level has the counts of the node that is
 * being filled; when that has its 16 items, it is encoded, and its counts, as fine as they were
 * counted, become an item of the level above. So a chunk's counts are added at most once per level,
 * to lists of a few thousand regions: some microseconds per chunk.
 *
 * At the end, unfinished nodes are finished, bottom up. The level that then has one is the top. */

#include "formats/segment/page_summary.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/bus/describe.h"

/* Offsets in the frame. */
enum {
	AT_SIZE = 4,
	AT_VERSION = 8,
	AT_CHUNKS = 12,
	AT_OFFSET = 16,
	AT_NODES_BYTES = 24,
	AT_HASH = 32,
};

_Static_assert(AT_HASH + BC_HASH_BYTES == BC_SUMMARY_HEAD_BYTES, "the head's length");

/* Regions that are counted in a node of the lowest level; four times as many in the next. */
#define NODE_REGIONS 2048u

uint32_t bc_summary_level_nodes(uint32_t chunks, unsigned level)
{
	uint64_t each = (uint64_t)BC_SUMMARY_FANOUT << 4 * level;

	return (uint32_t)((chunks + each - 1) / each);
}

uint32_t bc_summary_nodes(uint32_t chunks)
{
	uint32_t nodes = 0;
	uint32_t here = chunks;

	for (unsigned level = 0; level < BC_SUMMARY_LEVELS && (level == 0 || here > 1); level++) {
		here = bc_summary_level_nodes(chunks, level);
		nodes += here;
	}
	return nodes;
}

/* ---- writing */

static size_t node_bytes_max(unsigned level)
{
	return (size_t)BC_SUMMARY_NODE_BYTES << 2 * level;
}

/* The length of the first node of a level. */
static uint32_t *lengths_of(struct bc_page_summary *s, unsigned level)
{
	static const uint32_t before[BC_SUMMARY_LEVELS] = {0, 4096, 4096 + 256, 4096 + 256 + 16};

	return s->lengths + before[level];
}

/* Encodes the node that is being filled. Returns false if there is no memory. */
static bool encode_node(struct bc_page_summary *s, unsigned number)
{
	struct bc_summary_level *level = &s->levels[number];
	size_t room = bc_page_counts_room(level->chunk_bytes, BC_SUMMARY_SHARE,
		BC_SUMMARY_SHARE_SMALL, BC_SUMMARY_BYTES_SMALL);
	size_t max = node_bytes_max(number);
	size_t bytes = 0;

	room = room < max ? room : max;
	if (!level->is_unknown && room > BC_HASH_BYTES) {
		uint8_t *encoded = realloc(level->encoded, level->encoded_bytes + room);
		if (encoded == NULL)
			return false;
		level->encoded = encoded;
		uint8_t *node = encoded + level->encoded_bytes;
		bytes = bc_page_counts_write(node, room - BC_HASH_BYTES, &level->counts);
		if (bytes != 0) {
			bc_checksum_write(node + bytes, node);
			bytes += BC_HASH_BYTES;
		}
	}
	lengths_of(s, number)[level->nodes++] = (uint32_t)bytes;
	level->encoded_bytes += bytes;
	return true;
}

static void clear_node(struct bc_summary_level *level)
{
	bc_page_counts_clear(&level->counts);
	level->is_unknown = false;
	level->items = 0;
	level->chunk_bytes = 0;
}

/* Adds an item to the node that is being filled. */
static void add_item(struct bc_page_summary *s, unsigned number,
	const struct bc_page_counts *counts, uint64_t chunk_bytes)
{
	struct bc_summary_level *level = &s->levels[number];

	if (level->counts.regions == NULL &&
		bc_page_counts_init(&level->counts, NODE_REGIONS << 2 * number) != 0) {
		s->has_failed = true;
		return;
	}
	if (counts != NULL)
		bc_page_counts_add(&level->counts, counts);
	else
		level->is_unknown = true;
	level->items++;
	level->chunk_bytes += chunk_bytes;
}

/* Finishes the node that is being filled, and adds it to the level above. */
static void finish_node(struct bc_page_summary *s, unsigned number)
{
	struct bc_summary_level *level = &s->levels[number];

	if (!encode_node(s, number)) {
		s->has_failed = true;
		return;
	}
	if (number + 1 < BC_SUMMARY_LEVELS)
		add_item(s, number + 1, level->is_unknown ? NULL : &level->counts,
			level->chunk_bytes);
	clear_node(level);
}

void bc_page_summary_add(
	struct bc_page_summary *s, const struct bc_page_counts *counts, uint64_t chunk_bytes)
{
	s->chunks++;
	s->has_failed = s->has_failed || s->is_finished || s->chunks > BC_SEGMENT_CHUNKS;
	if (s->has_failed)
		return;
	add_item(s, 0, counts, chunk_bytes);
	for (unsigned number = 0; number < BC_SUMMARY_LEVELS && !s->has_failed &&
				  s->levels[number].items == BC_SUMMARY_FANOUT;
		number++)
		finish_node(s, number);
}

/* Finishes all nodes up to the top. Does nothing if they are finished. */
static void finish_summary(struct bc_page_summary *s)
{
	s->is_finished = true;
	for (unsigned number = 0; number < BC_SUMMARY_LEVELS && !s->has_failed; number++) {
		if (s->levels[number].items != 0)
			finish_node(s, number);
		if (s->levels[number].nodes == 1) {
			/* The top. What was added to a level above is not needed. */
			if (number + 1 < BC_SUMMARY_LEVELS)
				clear_node(&s->levels[number + 1]);
			break;
		}
	}
}

uint64_t bc_page_summary_bytes(const struct bc_page_summary *s, uint32_t more)
{
	uint32_t chunks = s->chunks + more;
	uint64_t bytes = BC_SUMMARY_HEAD_BYTES + bc_summary_nodes(chunks) * 4 + BC_HASH_BYTES;
	uint32_t nodes = chunks;

	for (unsigned number = 0; number < BC_SUMMARY_LEVELS && (number == 0 || nodes > 1);
		number++) {
		const struct bc_summary_level *level = &s->levels[number];
		nodes = bc_summary_level_nodes(chunks, number);
		bytes += level->encoded_bytes + (nodes - level->nodes) * node_bytes_max(number);
	}
	return chunks == 0 || s->has_failed ? 0 : bytes;
}

int bc_page_summary_write(struct bc_page_summary *s, struct bc_atomic_file *file)
{
	uint8_t head[BC_SUMMARY_HEAD_BYTES];
	uint8_t lengths[BC_SUMMARY_NODES_MAX * 4 + BC_HASH_BYTES];
	uint8_t *p = lengths;
	uint64_t nodes_bytes = 0;
	unsigned levels = 0;

	finish_summary(s);
	if (s->chunks == 0 || s->has_failed)
		return 0;
	do {
		const struct bc_summary_level *level = &s->levels[levels];
		nodes_bytes += level->encoded_bytes;
		for (uint32_t i = 0; i < level->nodes; i++, p += 4)
			bc_write_le32(p, lengths_of(s, levels)[i]);
	} while (s->levels[levels++].nodes > 1);
	bc_checksum_write(p, lengths);
	p += BC_HASH_BYTES;

	size_t bytes = sizeof(head) + (size_t)(p - lengths) + nodes_bytes;
	bc_write_le32(head, BC_MAGIC_PAGE_SUMMARY);
	bc_write_le32(head + AT_SIZE, (uint32_t)(bytes - BC_SKIPPABLE_BYTES));
	bc_write_le32(head + AT_VERSION, BC_SEGMENT_VERSION);
	bc_write_le32(head + AT_CHUNKS, s->chunks);
	bc_write_le64(head + AT_OFFSET, file->bytes);
	bc_write_le64(head + AT_NODES_BYTES, nodes_bytes);
	bc_checksum_write(head + AT_HASH, head);

	int rc = bc_atomic_file_append_end(file, head, sizeof(head));
	if (rc == 0)
		rc = bc_atomic_file_append_end(file, lengths, (size_t)(p - lengths));
	for (unsigned number = 0; rc == 0 && number < levels; number++)
		if (s->levels[number].encoded_bytes != 0)
			rc = bc_atomic_file_append_end(
				file, s->levels[number].encoded, s->levels[number].encoded_bytes);
	return rc;
}

const uint8_t *bc_page_summary_node(struct bc_page_summary *s, uint32_t number, size_t *bytes)
{
	static const uint8_t nothing[1];
	unsigned at = 0;
	size_t offset = 0;

	finish_summary(s);
	*bytes = 0;
	while (at + 1 < BC_SUMMARY_LEVELS && number >= s->levels[at].nodes)
		number -= s->levels[at++].nodes;
	const struct bc_summary_level *level = &s->levels[at];
	if (s->has_failed || number >= level->nodes)
		return NULL;
	for (uint32_t i = 0; i < number; i++)
		offset += lengths_of(s, at)[i];
	*bytes = lengths_of(s, at)[number];
	return *bytes != 0 ? level->encoded + offset : nothing;
}

void bc_page_summary_free(struct bc_page_summary *s)
{
	for (unsigned number = 0; number < BC_SUMMARY_LEVELS; number++) {
		bc_page_counts_free(&s->levels[number].counts);
		free(s->levels[number].encoded);
	}
	memset(s, 0, sizeof(*s));
}

/* ---- reading */

bool bc_summary_head_read(struct bc_summary_head *head, const uint8_t in[BC_SUMMARY_HEAD_BYTES])
{
	if (bc_le32(in) != BC_MAGIC_PAGE_SUMMARY ||
		bc_le32(in + AT_VERSION) != BC_SEGMENT_VERSION ||
		!bc_checksum_is_valid(in + AT_HASH, in))
		return false;
	head->chunks = bc_le32(in + AT_CHUNKS);
	head->offset = bc_le64(in + AT_OFFSET);
	head->nodes_bytes = bc_le64(in + AT_NODES_BYTES);
	if (head->chunks > BC_SEGMENT_CHUNKS || head->nodes_bytes > UINT32_MAX)
		return false;
	head->nodes = bc_summary_nodes(head->chunks);
	return bc_le32(in + AT_SIZE) == BC_SUMMARY_HEAD_BYTES - BC_SKIPPABLE_BYTES +
						bc_summary_lengths_bytes(head) + head->nodes_bytes;
}

bool bc_summary_lengths_are_valid(const struct bc_summary_head *head, const uint8_t *lengths)
{
	const uint8_t *p = lengths;
	uint64_t sum = 0;

	for (unsigned level = 0; p != lengths + (size_t)head->nodes * 4; level++)
		for (uint32_t i = bc_summary_level_nodes(head->chunks, level); i != 0;
			i--, p += 4) {
			if (bc_le32(p) > node_bytes_max(level))
				return false;
			sum += bc_le32(p);
		}
	return sum == head->nodes_bytes && bc_checksum_is_valid(p, lengths);
}

bool bc_summary_node_is_valid(const uint8_t *node, size_t bytes)
{
	return bytes > BC_HASH_BYTES && bc_checksum_is_valid(node + bytes - BC_HASH_BYTES, node);
}

bool bc_summary_node_read(
	struct bc_page_counts *counts, const uint8_t *node, size_t bytes, uint64_t records)
{
	return bc_summary_node_is_valid(node, bytes) &&
	       bc_page_counts_read(counts, node, bytes - BC_HASH_BYTES, records);
}

/* ---- checking
 *
 * The summary is built once more from the records, as the writer does, and its nodes are compared,
 * each pair as coarse as the coarser one. */

/* The most regions that counts of this many bytes can have. */
#define REGIONS_OF(bytes) ((bytes) / 2 + 1)

struct bc_page_check {
	struct bc_page_summary summary;
	bool is_damaged;
	struct bc_page_counts counts; /* in the file; room for any node */
	struct bc_page_counts own;
};

struct bc_page_check *bc_page_check_open(void)
{
	struct bc_page_check *check = calloc(1, sizeof(*check));
	uint32_t regions = REGIONS_OF(BC_SUMMARY_NODE_BYTES << 2 * (BC_SUMMARY_LEVELS - 1));

	if (check != NULL && bc_page_counts_init(&check->counts, regions) == 0 &&
		bc_page_counts_init(&check->own, regions) == 0)
		return check;
	bc_page_check_close(check);
	return NULL;
}

void bc_page_check_close(struct bc_page_check *check)
{
	if (check == NULL)
		return;
	bc_page_summary_free(&check->summary);
	bc_page_counts_free(&check->counts);
	bc_page_counts_free(&check->own);
	free(check);
}

void bc_page_check_start(struct bc_page_check *check)
{
	bc_page_summary_free(&check->summary);
	check->is_damaged = false;
}

void bc_page_check_damage(struct bc_page_check *check)
{
	check->is_damaged = true;
}

bool bc_page_check_chunk(
	struct bc_page_check *check, const struct bc_chunk *chunk, struct bc_page_counts *counts)
{
	const struct bc_chunk_info *info = &chunk->info;

	if (info->number != check->summary.chunks)
		check->is_damaged = true;
	bc_page_summary_add(
		&check->summary, counts, bc_chunk_info_header_bytes(info) + info->frame_bytes);
	return info->page_bytes == 0 || (bc_page_counts_read(&check->counts, chunk->pages,
						 info->page_bytes, info->records) &&
						bc_page_counts_agree(&check->counts, counts));
}

bool bc_page_check_node(
	struct bc_page_check *check, uint32_t number, const uint8_t *node, size_t bytes)
{
	size_t own_bytes;
	const uint8_t *own = bc_page_summary_node(&check->summary, number, &own_bytes);

	if (check->is_damaged || own_bytes == 0 || bytes == 0)
		return true;
	return bc_summary_node_read(&check->own, own, own_bytes, BC_ANY_RECORDS) &&
	       bc_summary_node_read(&check->counts, node, bytes, BC_ANY_RECORDS) &&
	       bc_page_counts_agree(&check->counts, &check->own);
}
