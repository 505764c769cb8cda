/* The page summary of a segment of any length has the counts of its chunks; a search by it finds
 * every chunk; and nothing wrong in it is trusted. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/base/bytes.h"
#include "formats/segment/chunk_table.h"
#include "formats/segment/page_summary.h"
#include "formats/segment/segment_index.h"
#include "formats/segment/segment_writer.h"
#include "tests/support/dice.h"
#include "tests/support/segments.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

#define NAME    "20261120T091500Z-3f9a2c-00000.byu.lz4"
#define RECORDS 300u

struct fixture {
	struct temp_dir dir;
	struct bc_chunk *chunk;
};

static void set_up(struct fixture *f)
{
	temp_dir_make(&f->dir);
	f->chunk = malloc(sizeof(*f->chunk));
	assert_non_null(f->chunk);
}

static void tear_down(struct fixture *f)
{
	free(f->chunk);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

/* Chunk i touches page 1,000 + i, which no other does, and some that all do. The records are
 * random, so that there is room for page counts. */
static void write_segment(struct fixture *f, uint32_t chunks)
{
	struct bc_segment_header header = {.recording = "20261120T091500Z-3f9a2c"};
	struct bc_segment_writer writer;
	struct dice dice = {.state = 9};

	assert_int_equal(bc_segment_create(&writer, f->dir.fd, NAME, ".partial", &header), 0);
	for (uint32_t i = 0; i < chunks; i++) {
		bc_chunk_reset(f->chunk, 0, 0);
		f->chunk->info.recording_tag = bc_recording_tag(header.recording);
		f->chunk->info.first_record = i * RECORDS;
		f->chunk->info.records = RECORDS;
		for (uint32_t at = 0; at < RECORDS; at++)
			bc_record_store(f->chunk->records + (size_t)at * BC_RECORD_BYTES,
				&(struct bc_record){.addr = (at == 7 ? 1000 + i : at % 3) << 12 |
							    dice_below(&dice, 4000),
					.reqtype = (uint8_t)dice_below(&dice, 4),
					.size = 8,
					.time = (uint32_t)dice_roll(&dice) >> 1});
		segment_append(&writer, f->chunk, 0, 0);
	}
	assert_int_equal(bc_segment_seal(&writer), 0);
}

static int open_segment(struct fixture *f)
{
	int fd = openat(f->dir.fd, NAME, O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void no_damage(void *context, const struct bc_segment_damage *damage)
{
	(void)context;
	fail_msg("%s", damage->what);
}

static bool go_on(void *context, uint64_t bytes)
{
	(void)context;
	(void)bytes;
	return true;
}

static void load_table(struct bc_chunk_table *table, int fd)
{
	const struct bc_chunk_table_io io = {NULL, no_damage, go_on};

	assert_int_equal(bc_chunk_table_load(table, fd, &io), 0);
	for (uint32_t row = 0; row < table->count; row++)
		table->rows[row].is_ruled_out = false;
}

static struct bc_page_query page_query(uint32_t page)
{
	return (struct bc_page_query){.memory_classes = 0xF,
		.count = 1,
		.ranges = {{.first = page << 12, .last = page << 12 | 0xFFF, .in_memory = true}}};
}

static const struct length {
	const char *name;
	uint32_t chunks;
	uint32_t nodes;
} lengths[] = {
	{"1 chunk", 1, 1},
	{"16 chunks", 16, 1},
	{"17 chunks", 17, 3},
	{"256 chunks", 256, 17},
	{"257 chunks", 257, 20},
	{"600 chunks", 600, 42},
};

TEST_CASES(a_page_of_one_chunk_is_found_there, lengths)
{
	struct fixture f;
	struct bc_chunk_table table;
	struct bc_page_search search;
	uint64_t bytes;

	set_up(&f);
	write_segment(&f, c->chunks);
	int fd = open_segment(&f);
	assert_int_equal(bc_page_search_open(&search, fd), 0);
	assert_int_equal(search.head.nodes, c->nodes);
	bc_page_search_close(&search);
	load_table(&table, fd);
	for (uint32_t i = 0; i < c->chunks; i += c->chunks / 7 + 1) {
		struct bc_page_query query = page_query(1000 + i);
		uint32_t headers = 0;
		uint32_t candidates = 0;
		assert_true(bc_page_search_segment(fd, &query, &bytes));
		assert_true(bytes >= BC_INDEX_HEAD_BYTES + bc_summary_lengths_bytes(&search.head));
		for (uint32_t row = 0; row < c->chunks; row++)
			table.rows[row].is_ruled_out = false;
		bc_page_search_rows(&table, &query, &bytes);
		for (uint32_t row = 0; row < c->chunks; row++) {
			if (table.rows[row].is_ruled_out)
				continue;
			headers++;
			if (bc_page_search_chunk(&table, row, &query, f.chunk))
				candidates++;
			else
				assert_int_not_equal(row, i);
		}
		assert_false(table.rows[i].is_ruled_out);
		assert_int_equal(candidates, 1);
		/* Those of one node, and of a last one that has no room for counts. */
		assert_true(headers <= BC_SUMMARY_FANOUT + 1);
	}
	struct bc_page_query nowhere = page_query(900000);
	if (c->chunks >= 16) /* a smaller one has no room for a node that says it */
		assert_false(bc_page_search_segment(fd, &nowhere, &bytes));
	bc_chunk_table_free(&table);
	close(fd);
	tear_down(&f);
}

#define PAGES 700u

/* Adds a chunk that touches PAGES pages, different ones from chunk to chunk. */
static void add_to_summary(struct bc_page_summary *s)
{
	static struct bc_region regions[PAGES];
	const struct bc_page_counts counts = {
		.count = PAGES, .capacity = PAGES, .regions = regions};

	for (uint32_t i = 0; i < PAGES; i++)
		regions[i] = (struct bc_region){
			.first = i * 1000 + s->chunks * 37 % 1000, .counts = {s->chunks + 1000}};
	bc_page_summary_add(s, &counts, BC_CHUNK_BYTES);
}

/* The length of a frame with these nodes. */
static uint64_t summary_bytes(struct bc_page_summary *s)
{
	uint32_t nodes = bc_summary_nodes(s->chunks);
	uint64_t sum = BC_SUMMARY_HEAD_BYTES + (uint64_t)nodes * 4 + BC_HASH_BYTES;
	size_t bytes;

	for (uint32_t i = 0; i < nodes; i++) {
		assert_non_null(bc_page_summary_node(s, i, &bytes));
		sum += bytes;
	}
	return sum;
}

TEST(a_summary_is_not_longer_than_announced)
{
	static const uint32_t counts[] = {
		1, 2, 15, 16, 17, 31, 32, 33, 240, 255, 256, 257, 271, 272, 273, 529, 4097};
	static const uint32_t mores[] = {0, 1, 2, 16, 17, 273};

	for (size_t i = 0; i < COUNT_OF(counts); i += test_stride(2))
		for (size_t k = i / 2 % test_stride(6); k < COUNT_OF(mores); k += test_stride(6)) {
			struct bc_page_summary *s = calloc(1, sizeof(*s));
			uint32_t more = mores[k];
			assert_non_null(s);
			if (more > counts[i])
				more = counts[i];
			while (s->chunks < counts[i] - more)
				add_to_summary(s);
			uint64_t announced = bc_page_summary_bytes(s, more);
			while (s->chunks < counts[i])
				add_to_summary(s);
			uint64_t bytes = summary_bytes(s);
			assert_in_range(bytes, 1, announced);
			assert_int_equal(bc_page_summary_bytes(s, 0), bytes);
			bc_page_summary_free(s);
			free(s);
		}
}

static void check_node(void *context, uint32_t number, const uint8_t *node, size_t bytes)
{
	assert_true(bc_page_check_node(context, number, node, bytes));
}

static bool check_chunk(const struct fixture *f, struct bc_page_check *check)
{
	static struct bc_chunk_pages pages;

	bc_chunk_count(&f->chunk->info, f->chunk->records, &pages);
	return bc_page_check_chunk(check, f->chunk, &pages.counts);
}

/* Reads the segment. Returns the number of chunks whose counts are wrong. */
static unsigned check_all(struct fixture *f, int fd,
	void (*on_node)(void *context, uint32_t number, const uint8_t *node, size_t bytes),
	void *context, struct bc_page_check *check)
{
	struct bc_input_stream stream = {.fd = fd, .wake_fd = -1};
	struct bc_segment_reader *reader;
	unsigned wrong = 0;
	int found;

	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(bc_segment_reader_open(&reader, stream, NULL, 0), 0);
	bc_segment_reader_on_node(reader, on_node, context);
	bc_page_check_start(check);
	while ((found = bc_segment_read(reader, f->chunk)) != BC_FOUND_END) {
		assert_true(found >= 0);
		if (found == BC_FOUND_CHUNK)
			wrong += !check_chunk(f, check);
		if (found == BC_FOUND_DAMAGE)
			bc_page_check_damage(check);
	}
	assert_true(bc_segment_reader_is_sealed(reader));
	bc_segment_reader_close(reader);
	return wrong;
}

TEST_CASES(what_is_written_passes_the_check, lengths)
{
	struct bc_page_check *check = bc_page_check_open();
	struct fixture f;

	assert_non_null(check);
	set_up(&f);
	write_segment(&f, c->chunks);
	int fd = open_segment(&f);
	assert_int_equal(check_all(&f, fd, check_node, check, check), 0);
	close(fd);
	tear_down(&f);
	bc_page_check_close(check);
}

struct lie {
	struct bc_page_check *check;
	unsigned wrong;
};

static void count_wrong_nodes(void *context, uint32_t number, const uint8_t *node, size_t bytes)
{
	struct lie *lie = context;

	lie->wrong += !bc_page_check_node(lie->check, number, node, bytes);
}

/* Moves a count from one page to the next, with a correct hash: only the records tell. */
TEST_F(a_lie_with_a_correct_hash_is_noticed)
{
	struct lie lie = {.check = bc_page_check_open()};
	struct bc_page_search search;

	assert_non_null(lie.check);
	write_segment(f, 20);
	int fd = open_segment(f);
	assert_int_equal(bc_page_search_open(&search, fd), 0);
	assert_int_equal(bc_page_search_node(&search, 0, 0, 16 * RECORDS), 0);
	size_t bytes = bc_le32(search.lengths);
	uint64_t offset = search.head.offset + BC_SUMMARY_HEAD_BYTES +
			  bc_summary_lengths_bytes(&search.head);
	search.counts.regions[0].counts[BC_PAGE_READ]--;
	search.counts.regions[1].counts[BC_PAGE_READ]++;
	assert_int_equal(bc_page_counts_write(search.node, bytes - BC_HASH_BYTES, &search.counts),
		bytes - BC_HASH_BYTES);
	bc_checksum_write(search.node + bytes - BC_HASH_BYTES, search.node);
	assert_int_equal(pwrite(fd, search.node, bytes, (off_t)offset), bytes);
	bc_page_search_close(&search);
	assert_int_equal(check_all(f, fd, count_wrong_nodes, &lie, lie.check), 0);
	assert_int_equal(lie.wrong, 1);
	close(fd);
	bc_page_check_close(lie.check);
}

/* Without a correct hash, the search looks at all chunks below. */
TEST_F(no_flipped_bit_rules_a_chunk_out)
{
	struct bc_segment_index index;
	struct bc_chunk_table table;
	struct bc_page_query query = page_query(1000 + 3);
	uint64_t bytes;

	write_segment(f, 20);
	int fd = open_segment(f);
	assert_int_equal(bc_segment_index_load(&index, fd), 0);
	load_table(&table, fd);
	for (uint64_t at = index.head.pages; at < index.head.offset; at += test_stride(35)) {
		uint8_t byte;
		assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
		uint8_t flipped = byte ^ (uint8_t)(1u << at % 8);
		assert_int_equal(pwrite(fd, &flipped, 1, (off_t)at), 1);
		assert_true(bc_page_search_segment(fd, &query, &bytes));
		table.rows[3].is_ruled_out = false;
		bc_page_search_rows(&table, &query, &bytes);
		assert_false(table.rows[3].is_ruled_out);
		assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
	}
	bc_chunk_table_free(&table);
	bc_segment_index_free(&index);
	close(fd);
}

/* A damaged file may have more chunks than a segment can. */
TEST(more_chunks_than_a_segment_has_are_not_summarised)
{
	struct bc_region regions[2] = {{.first = 5, .counts = {1}}};
	const struct bc_page_counts counts = {.count = 1, .capacity = 2, .regions = regions};
	struct bc_page_summary *summary = test_alloc(sizeof(*summary));
	size_t bytes;

	for (uint32_t i = 0; i < BC_SEGMENT_CHUNKS; i++)
		bc_page_summary_add(summary, &counts, 1 << 20);
	assert_false(summary->has_failed);
	for (uint32_t i = 0; i < 2 * BC_SEGMENT_CHUNKS; i++)
		bc_page_summary_add(summary, &counts, 1 << 20);
	assert_true(summary->has_failed);
	assert_null(bc_page_summary_node(summary, 0, &bytes));
	bc_page_summary_free(summary);
	free(summary);
}
