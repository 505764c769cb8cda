/* The summary is built once more from the records, as the writer does, and its nodes are compared,
 * each pair as coarse as the coarser one. */
#include "formats/segment/page_check.h"

#include <stdlib.h>

#include "formats/bus/describe.h"
#include "formats/segment/page_summary.h"

/* The most regions that counts of this many bytes can have. */
#define REGIONS_OF(bytes) ((bytes) / 2 + 1)

struct bc_page_check {
	struct bc_page_summary summary;
	bool is_damaged;
	struct bc_chunk_pages pages;
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

bool bc_page_check_chunk(struct bc_page_check *check, struct bc_chunk *chunk)
{
	const struct bc_chunk_info *info = &chunk->info;

	bc_chunk_count(chunk, &check->pages);
	if (info->number != check->summary.chunks)
		check->is_damaged = true;
	bc_page_summary_add(&check->summary, &check->pages.counts,
		bc_chunk_info_header_bytes(info) + info->frame_bytes);
	return info->page_bytes == 0 ||
	       (bc_page_counts_read(
			&check->counts, chunk->pages, info->page_bytes, info->records) &&
		       bc_page_counts_agree(&check->counts, &check->pages.counts));
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
