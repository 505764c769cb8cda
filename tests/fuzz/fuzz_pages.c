/* Page counts and page summaries. What is read adds up, and is written and read again as it was; a
 * search of any bytes stays within them. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/base/bytes.h"
#include "formats/bus/page_counts.h"
#include "formats/segment/chunk_table.h"
#include "tests/fuzz/repair.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_counts(const uint8_t *data, size_t size)
{
	static uint8_t again[1 << 20];
	static struct bc_region regions[5000];
	static struct bc_region regions_again[5000];
	struct bc_page_counts a = {.capacity = 5000, .regions = regions};
	struct bc_page_counts b = {.capacity = 5000, .regions = regions_again};
	struct bc_page_query query = {.memory_classes = 15,
		.count = 1,
		.ranges = {{.first = 0x5000, .last = 0xFFFF0000, .in_memory = true}}};
	uint64_t records = 0;

	if (!bc_page_counts_read(&a, data, size, BC_ANY_RECORDS))
		return;
	for (uint32_t i = 0; i < a.count; i++)
		for (unsigned class = 0; class < BC_PAGE_CLASSES; class ++)
			records += a.regions[i].counts[class];
	if (!bc_page_counts_read(&b, data, size, records))
		return; /* the sum exceeds 64 bits */
	size_t bytes = bc_page_counts_write(again, sizeof(again), &a);
	if (bytes > size || !bc_page_counts_read(&b, again, bytes, records) ||
		!bc_page_counts_agree(&a, &b))
		abort();
	(void)!bc_page_counts_may_have(&a, &query);
	bytes = bc_page_counts_write(again, size / 2, &a);
	if (bytes != 0 &&
		(!bc_page_counts_read(&b, again, bytes, records) || !bc_page_counts_agree(&a, &b)))
		abort();
}

static void no_damage(void *context, const struct bc_segment_damage *damage)
{
	(void)context;
	(void)damage;
}

static bool go_on(void *context, uint64_t bytes)
{
	(void)context;
	(void)bytes;
	return true;
}

static void fuzz_search(const uint8_t *data, size_t size)
{
	static struct bc_chunk chunk;
	const struct bc_chunk_table_io io = {NULL, no_damage, go_on};
	struct bc_page_query query = {.port_classes = 15,
		.count = 1,
		.ranges = {{.first = 0x5000, .last = 0x5FFF, .at_ports = true}}};
	struct bc_chunk_table table;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();

	uint64_t bytes;
	(void)!bc_page_search_segment(fd, &query, &bytes);
	if (bc_chunk_table_load(&table, fd, &io) == 0) {
		bc_page_search_rows(&table, &query, &bytes);
		for (uint32_t row = 0; row < table.count; row++)
			if (!table.rows[row].is_ruled_out)
				(void)!bc_page_search_chunk(&table, row, &query, &chunk);
	}
	bc_chunk_table_free(&table);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_counts(data, size);
	uint8_t *bytes = malloc(size + 1);
	if (bytes == NULL)
		abort();
	memcpy(bytes, data, size);
	repair_hashes(bytes, size);
	fuzz_search(bytes, size);
	free(bytes);
	return 0;
}
