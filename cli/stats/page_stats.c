#include "cli/stats/page_stats.h"

#include <errno.h>
#include <stdlib.h>

#include "formats/bus/describe.h"

static const uint8_t ways[BC_PAGE_CLASSES] = {BC_TOUCH_FETCH, BC_TOUCH_READ, BC_TOUCH_WRITE, 0};

int bc_page_stats_open(struct bc_page_stats *s)
{
	s->pages = calloc(BC_STATS_PAGES, sizeof(*s->pages));
	return s->pages != NULL ? bc_page_counts_init(&s->counts, BC_CHUNK_REGIONS) : -ENOMEM;
}

void bc_page_stats_close(struct bc_page_stats *s)
{
	free(s->pages);
	bc_page_counts_free(&s->counts);
}

bool bc_page_stats_need_records(struct bc_page_stats *s, const struct bc_chunk *chunk)
{
	return !bc_page_counts_read(
		       &s->counts, chunk->pages, chunk->info.page_bytes, chunk->info.records) ||
	       s->counts.page_shift != 0 || s->counts.is_crossed;
}

static void add_references(
	struct bc_page_stats *s, uint64_t page, bool is_port, unsigned class, uint64_t n)
{
	s->classes[is_port][class] += n;
	if (!is_port && ways[class] != 0)
		s->pages[page] = (s->pages[page] + (n << BC_STATS_WAY_BITS)) | ways[class];
}

static void add_record(struct bc_page_stats *s, const uint8_t *record)
{
	bool is_port = bc_is_port_access(record[4]);
	unsigned class = bc_page_class(record[4]);
	uint64_t first = bc_burst_start(bc_le32(record), record[5]);
	uint64_t last = first + record[5] - (record[5] != 0);

	add_references(s, first / BC_PAGE_BYTES, is_port, class, 1);
	add_references(s, last / BC_PAGE_BYTES, is_port, class, 0);
}

void bc_page_stats_add(struct bc_page_stats *s, const struct bc_record_run *run)
{
	for (size_t i = 0; run->records != NULL && i < run->count; i++)
		add_record(s, run->records + i * BC_RECORD_BYTES);
	for (uint32_t i = 0; run->records == NULL && i < s->counts.count; i++) {
		const struct bc_region *region = &s->counts.regions[i];
		for (unsigned class = 0; class < BC_PAGE_CLASSES; class ++)
			if (region->counts[class] != 0)
				add_references(s, region->first, region->first >= BC_PORT_0, class,
					region->counts[class]);
	}
}

void bc_page_stats_finish(const struct bc_page_stats *s, struct bc_footprint *footprint)
{
	for (uint32_t page = 0; page < BC_STATS_PAGES; page++) {
		footprint->references += s->pages[page] >> BC_STATS_WAY_BITS;
		footprint->pages.count += s->pages[page] != 0;
		footprint->pages.touched[s->pages[page] & BC_TOUCH_ALL]++;
	}
}
