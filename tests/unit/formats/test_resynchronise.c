/* The search for the next frame after damage is linear even where every place looks like the start
 * of a frame, and it can be cancelled. */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "formats/base/bytes.h"
#include "formats/segment/segment_reader.h"
#include "tests/support/compressor.h"
#include "tests/support/test.h"

static struct bc_chunk_pages chunk_pages;

#define JUNK_BYTES (4u << 20)

/* A search examines each byte a few times. Before it was linear, it computed the hash of a whole
 * header at every eighth byte: 1,500 to 8,200 times the work of hashing the junk once. */
#define WORK_MAX 500

struct fixture {
	uint8_t *bytes; /* junk, then a chunk */
	size_t size;
	size_t at; /* read so far */
	unsigned steps;
	int wake; /* set on the second step */
	struct bc_chunk chunk;
};

static void set_up(struct fixture *f)
{
	f->bytes = malloc(JUNK_BYTES + BC_CHUNK_ENCODED_MAX);
	assert_non_null(f->bytes);
	f->wake = eventfd(0, EFD_CLOEXEC);
	assert_true(f->wake >= 0);
}

static void tear_down(struct fixture *f)
{
	close(f->wake);
	free(f->bytes);
}

TEST_FIXTURE(fixture, set_up, tear_down)

static ssize_t read_bytes(void *context, void *out, size_t size)
{
	struct fixture *f = context;
	size_t n = f->size - f->at < size ? f->size - f->at : size;

	memcpy(out, f->bytes + f->at, n);
	f->at += n;
	return (ssize_t)n;
}

static struct bc_segment_reader *open_reader(struct fixture *f, struct bc_input_stream stream)
{
	struct bc_segment_reader *reader;

	f->at = 0;
	stream.fd = -1;
	stream.read = read_bytes;
	stream.context = f;
	assert_int_equal(bc_segment_reader_open(&reader, stream, NULL, 0), 0);
	return reader;
}

static double cpu_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Seconds to hash the junk once. */
static double hash_s(const struct fixture *f)
{
	enum { ROUNDS = 64 };
	double start = cpu_s();
	volatile XXH64_hash_t sum = 0;

	for (int i = 0; i < ROUNDS; i++)
		sum = sum + XXH3_64bits(f->bytes, JUNK_BYTES);
	return (cpu_s() - start) / ROUNDS;
}

static void append_chunk(struct fixture *f)
{
	size_t header_bytes;

	bc_chunk_reset(&f->chunk, 0, 0);
	f->size = JUNK_BYTES + bc_chunk_encode(f->bytes + JUNK_BYTES, &f->chunk, &test_compressor,
				       &chunk_pages, &header_bytes);
}

/* A magic and a length, everywhere. */
static const struct {
	uint32_t magic;
	uint32_t length;
} partial[] = {
	{BC_MAGIC_SEGMENT_HEADER, BC_SEGMENT_HEADER_MAX - BC_SKIPPABLE_BYTES},
	{BC_MAGIC_CHUNK_HEADER, BC_CHUNK_HEADER_MAX - BC_SKIPPABLE_BYTES},
	{BC_MAGIC_INDEX, 0},
};

/* Searches the junk once. Returns how many times a hash of it the search costs. */
static double search_cost(struct fixture *f)
{
	struct bc_segment_reader *reader = open_reader(f, (struct bc_input_stream){.wake_fd = -1});
	double start = cpu_s();
	int found = bc_segment_read(reader, &f->chunk);
	double searched = cpu_s() - start;

	assert_int_equal(found, BC_FOUND_DAMAGE);
	assert_int_equal(bc_segment_reader_damage(reader)->bytes, JUNK_BYTES);
	assert_int_equal(bc_segment_read(reader, &f->chunk), BC_FOUND_CHUNK);
	bc_segment_reader_close(reader);
	return searched / hash_s(f);
}

TEST_F(partial_magic_is_searched_in_linear_time)
{
	for (size_t i = 0; i < COUNT_OF(partial); i++) {
		for (size_t at = 0; at < JUNK_BYTES; at += 8) {
			bc_write_le32(f->bytes + at, partial[i].magic);
			bc_write_le32(f->bytes + at + 4, partial[i].length);
		}
		append_chunk(f);
		/* A busy machine makes a search slower now and then, but not each time. */
		double cost = search_cost(f);
		for (int more = 0; more < 20 && cost > WORK_MAX; more++)
			cost = search_cost(f);
		if (cost > WORK_MAX)
			fail_msg("magic %08x: the search costs %.0f times a hash of the input",
				partial[i].magic, cost);
	}
}

static void on_step(void *context)
{
	struct fixture *f = context;

	if (++f->steps == 2)
		assert_int_equal(eventfd_write(f->wake, 1), 0);
}

/* Headers that look valid up to their hash, one every 64 bytes. */
static void write_overlapping(struct fixture *f)
{
	uint8_t *header = malloc(BC_CHUNK_HEADER_MAX);
	struct bc_event event = {.kind = BC_EVENT_MARK};

	assert_non_null(header);
	bc_chunk_reset(&f->chunk, 0, 0);
	while (bc_chunk_add_event(&f->chunk, &event, NULL))
		continue;
	f->chunk.info.event_bytes = f->chunk.info.events * BC_EVENT_BYTES;
	bc_chunk_header_write(header, &f->chunk);
	for (size_t at = 0; at < JUNK_BYTES; at += 64)
		memcpy(f->bytes + at, header, 64);
	free(header);
	f->size = JUNK_BYTES;
}

TEST_F(a_long_search_reports_progress_and_can_be_cancelled)
{
	const struct bc_progress_cb progress = {.on_progress = on_step, .context = f};

	write_overlapping(f);
	struct bc_segment_reader *reader = open_reader(
		f, (struct bc_input_stream){.wake_fd = f->wake, .progress = &progress});
	assert_int_equal(bc_segment_read(reader, &f->chunk), -ECANCELED);
	assert_int_equal(f->steps, 2);
	bc_segment_reader_close(reader);
}
