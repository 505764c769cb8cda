/* Damages a small segment in every way. The reader, `buscap dump`, `marks` and `verify` must
 * terminate, never report a wrong record as good, and deliver every undamaged chunk. */
#include "tests/support/segments.h"
#include "tests/support/small_segment.h"

#include <xxhash.h>

#include "formats/base/bytes.h"
#include "tests/support/test.h"

#define FILE_MAX 32768
#define NAMED    SMALL_RECORDING "-00007.byu.lz4"

struct fixture {
	struct temp_dir dir;
	struct small_segment segment;
	struct small_segment next; /* the next segment of the recording */
	struct bc_chunk *chunk;
	char path[128];  /* damaged copies, under an arbitrary name */
	char named[192]; /* or under that of a segment */
	uint8_t copy[FILE_MAX];
	char expected[4 * FILE_MAX];
};

static void set_up(struct fixture *f)
{
	temp_dir_make(&f->dir);
	small_make(&f->segment, &f->dir, 0, 0);
	small_make(&f->next, &f->dir, 1, SMALL_RECORDS);
	f->chunk = malloc(sizeof(*f->chunk));
	snprintf(f->path, sizeof(f->path), "%s/copy", f->dir.path);
	snprintf(f->named, sizeof(f->named), "%s/" NAMED, f->dir.path);
}

static void tear_down(struct fixture *f)
{
	temp_dir_remove(&f->dir);
	free(f->segment.bytes);
	free(f->next.bytes);
	free(f->chunk);
}

TEST_FIXTURE(fixture, set_up, tear_down)

/* What the reader found. */
struct findings {
	unsigned chunks;
	bool has[2 *
		 SMALL_CHUNKS]; /* of both segments: chunk i of segment s is s * SMALL_CHUNKS + i */
	unsigned damages;
	unsigned indexes;
	bool is_sealed;
};

/* An intact chunk must be identical to one of those written. */
static void check_chunk(struct fixture *f, struct findings *found)
{
	const struct bc_chunk_info *info = &f->chunk->info;
	const struct small_segment *segments[] = {&f->segment, &f->next};

	assert_true(info->segment < 2 && info->number < SMALL_CHUNKS);
	const struct small_chunk *expected = &segments[info->segment]->chunks[info->number];
	assert_int_equal(info->records, expected->records);
	assert_int_equal(info->first_record, expected->first_record);
	assert_int_equal(info->epoch, expected->epoch);
	assert_memory_equal(
		f->chunk->records, expected->bytes, (size_t)info->records * BC_RECORD_BYTES);
	const struct bc_event *last = &f->chunk->events[info->events - 1];
	assert_int_equal(last->kind, small_plan[info->number].event.kind);
	assert_int_equal(last->position, small_plan[info->number].event.position);
	assert_int_equal(last->value, small_plan[info->number].event.value);
	found->has[info->segment * SMALL_CHUNKS + info->number] = true;
	found->chunks++;
}

static struct findings read_stream(struct fixture *f, int fd)
{
	struct findings found = {0};
	uint64_t before = 0;

	struct bc_segment_reader *reader = segment_reader_of(fd);
	for (;;) {
		int rc = bc_segment_read(reader, f->chunk);
		assert_true(rc >= 0);
		if (rc == BC_FOUND_END)
			break;
		assert_true(bc_segment_reader_offset(reader) >= before);
		before = bc_segment_reader_offset(reader);
		if (rc == BC_FOUND_CHUNK)
			check_chunk(f, &found);
		found.damages += rc == BC_FOUND_DAMAGE;
		found.indexes += rc == BC_FOUND_INDEX;
	}
	found.is_sealed = bc_segment_reader_is_sealed(reader);
	bc_segment_reader_close(reader);
	return found;
}

static struct findings read_bytes(struct fixture *f, const uint8_t *bytes, size_t size)
{
	int fd = memfd_create("bytes", MFD_CLOEXEC);

	assert_int_equal(write(fd, bytes, size), size);
	lseek(fd, 0, SEEK_SET);
	struct findings found = read_stream(f, fd);
	close(fd);
	return found;
}

/* Sets `keep` for the chunks that damage at [begin, end) does not touch. */
static void find_kept(
	const struct small_segment *s, size_t begin, size_t end, bool keep[SMALL_CHUNKS])
{
	for (unsigned i = 0; i < SMALL_CHUNKS; i++)
		keep[i] = end <= s->chunks[i].begin || begin >= s->chunks[i].end;
}

TEST_F(every_prefix_gives_its_intact_chunks)
{
	for (size_t n = 0; n < f->segment.size; n = test_next(n, 25, &f->segment.edges)) {
		struct findings found = read_bytes(f, f->segment.bytes, n);
		for (unsigned i = 0; i < SMALL_CHUNKS; i++)
			assert_int_equal(found.has[i], n >= f->segment.chunks[i].end);
		assert_false(found.is_sealed);
	}
}

TEST_F(every_flipped_bit_costs_only_its_chunk)
{
	bool keep[SMALL_CHUNKS];

	memcpy(f->copy, f->segment.bytes, f->segment.size);
	for (size_t bit = 0; bit < f->segment.size * 8;
		bit = test_next_bit(bit, 75, &f->segment.edges)) {
		f->copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
		struct findings found = read_bytes(f, f->copy, f->segment.size);
		find_kept(&f->segment, bit / 8, bit / 8 + 1, keep);
		for (unsigned i = 0; i < SMALL_CHUNKS; i++)
			assert_int_equal(found.has[i], keep[i]);
		assert_true(found.damages != 0);
		f->copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

static void check_commands(const char *path, const char *expected, int code)
{
	struct command_run dump = command_runf("dump %s", path);
	assert_string_equal(dump.out, expected);
	assert_int_equal(dump.code, code);
	assert_int_equal(dump.err[0] != '\0', code != 0);
	command_run_free(&dump);

	struct command_run verify = command_runf("verify %s", path);
	assert_int_equal(verify.code, code);
	assert_int_equal(strstr(verify.out, ": ok: ") != NULL, code == 0);
	assert_string_equal(verify.err, "");
	command_run_free(&verify);
}

TEST_F(dump_and_verify_every_prefix)
{
	bool keep[SMALL_CHUNKS];

	for (size_t n = 0; n <= f->segment.size; n = test_next(n, 85, &f->segment.edges)) {
		find_kept(&f->segment, n, f->segment.size, keep);
		small_expect(f->expected, &f->segment, keep);
		temp_write(&f->dir, NAMED, f->segment.bytes, n);
		check_commands(f->named, f->expected, n < f->segment.size ? 3 : 0);
	}
}

TEST_F(dump_and_verify_every_flipped_bit)
{
	bool keep[SMALL_CHUNKS];

	temp_write(&f->dir, "copy", f->segment.bytes, f->segment.size);
	int fd = open(f->path, O_WRONLY | O_CLOEXEC);
	for (size_t bit = 0; bit < f->segment.size * 8;
		bit = test_next_bit(bit, 905, &f->segment.edges)) {
		uint8_t flipped = (uint8_t)(f->segment.bytes[bit / 8] ^ 1u << bit % 8);
		find_kept(&f->segment, bit / 8, bit / 8 + 1, keep);
		small_expect(f->expected, &f->segment, keep);
		assert_int_equal(pwrite(fd, &flipped, 1, (off_t)(bit / 8)), 1);
		check_commands(f->path, f->expected, 3);
		assert_int_equal(pwrite(fd, &f->segment.bytes[bit / 8], 1, (off_t)(bit / 8)), 1);
	}
	close(fd);
}

TEST_F(every_hole_costs_only_its_chunks)
{
	bool keep[SMALL_CHUNKS];
	static const size_t sizes[] = {1, 2, 7, 8, 64, 160, 161, 400, 1000};

	for (size_t k = 0; k < COUNT_OF(sizes); k++) {
		for (size_t at = 0; at + sizes[k] <= f->segment.size;
			at = test_next(at, 125, &f->segment.edges)) {
			memcpy(f->copy, f->segment.bytes, at);
			memcpy(f->copy + at, f->segment.bytes + at + sizes[k],
				f->segment.size - at - sizes[k]);
			memcpy(f->copy + f->segment.size - sizes[k], f->next.bytes, f->next.size);
			struct findings found = read_bytes(
				f, f->copy, f->segment.size - sizes[k] + f->next.size);
			find_kept(&f->segment, at, at + sizes[k], keep);
			for (unsigned i = 0; i < SMALL_CHUNKS; i++) {
				/* A chunk may survive a hole if equal bytes move up. */
				assert_true(found.has[i] || !keep[i]);
				assert_true(found.has[SMALL_CHUNKS + i]);
			}
		}
	}
}

TEST_F(a_segment_after_every_prefix_of_another_is_read_whole)
{
	for (size_t n = 0; n <= f->segment.size; n = test_next(n, 35, &f->segment.edges)) {
		memcpy(f->copy, f->segment.bytes, n);
		memcpy(f->copy + n, f->next.bytes, f->next.size);
		struct findings found = read_bytes(f, f->copy, n + f->next.size);
		for (unsigned i = 0; i < SMALL_CHUNKS; i++) {
			assert_int_equal(found.has[i], n >= f->segment.chunks[i].end);
			assert_true(found.has[SMALL_CHUNKS + i]);
		}
		assert_int_equal(found.indexes, n == f->segment.size ? 2 : 1);
		assert_true(found.is_sealed);
	}
}

TEST_F(concatenated_segments_are_dumped_as_one)
{
	bool all[SMALL_CHUNKS];

	memset(all, 1, sizeof(all));
	size_t n = small_expect(f->expected, &f->segment, all);
	n += (size_t)sprintf(f->expected + n, "# epoch 0\n");
	small_expect(f->expected + n, &f->next, all);
	memcpy(f->copy, f->segment.bytes, f->segment.size);
	memcpy(f->copy + f->segment.size, f->next.bytes, f->next.size);
	temp_write(&f->dir, "copy", f->copy, f->segment.size + f->next.size);
	check_commands(f->path, f->expected, 0);

	/* Without the first index nothing is lost, but an error is reported. */
	memcpy(f->copy + f->segment.index_at, f->next.bytes, f->next.size);
	temp_write(&f->dir, "copy", f->copy, f->segment.index_at + f->next.size);
	check_commands(f->path, f->expected, 3);
}

static void copy_chunk(uint8_t *out, size_t *at, const struct small_segment *s, unsigned chunk)
{
	size_t bytes = s->chunks[chunk].end - s->chunks[chunk].begin;

	memcpy(out + *at, s->bytes + s->chunks[chunk].begin, bytes);
	*at += bytes;
}

TEST_F(a_repeated_chunk_is_shown_once)
{
	bool all[SMALL_CHUNKS];

	memset(all, 1, sizeof(all));
	small_expect(f->expected, &f->segment, all);
	for (unsigned twice = 0; twice < SMALL_CHUNKS; twice++) {
		size_t n = f->segment.chunks[0].begin;
		memcpy(f->copy, f->segment.bytes, n);
		for (unsigned i = 0; i < SMALL_CHUNKS; i++) {
			copy_chunk(f->copy, &n, &f->segment, i);
			if (i == twice)
				copy_chunk(f->copy, &n, &f->segment, i);
		}
		memcpy(f->copy + n, f->segment.bytes + f->segment.index_at,
			f->segment.size - f->segment.index_at);
		temp_write(&f->dir, "copy", f->copy, n + f->segment.size - f->segment.index_at);
		check_commands(f->path, f->expected, 3);
	}
}

TEST_F(swapped_chunks_are_shown_and_reported)
{
	for (unsigned swapped = 0; swapped + 1 < SMALL_CHUNKS - 2; swapped++) {
		size_t n = f->segment.chunks[0].begin;
		memcpy(f->copy, f->segment.bytes, n);
		for (unsigned i = 0; i < SMALL_CHUNKS; i++) {
			unsigned chunk = i == swapped ? i + 1 : i == swapped + 1 ? i - 1 : i;
			copy_chunk(f->copy, &n, &f->segment, chunk);
		}
		temp_write(&f->dir, "copy", f->copy, n);
		struct command_run dump = command_runf("dump --plain %s", f->path);
		assert_int_equal(dump.code, 3);
		assert_non_null(strstr(dump.err, "is out of order"));
		size_t lines = 0;
		for (const char *p = dump.out; *p != '\0'; p++)
			lines += *p == '\n';
		assert_int_equal(lines, SMALL_RECORDS);
		command_run_free(&dump);
		struct command_run verify = command_runf("verify %s", f->path);
		assert_int_equal(verify.code, 3);
		assert_non_null(strstr(verify.out, "is out of order"));
		command_run_free(&verify);
	}
}

TEST_F(a_removed_chunk_is_reported)
{
	bool keep[SMALL_CHUNKS];

	for (unsigned cut = 0; cut < SMALL_CHUNKS; cut++) {
		size_t begin = f->segment.chunks[cut].begin;
		size_t end = f->segment.chunks[cut].end;
		memcpy(f->copy, f->segment.bytes, begin);
		memcpy(f->copy + begin, f->segment.bytes + end, f->segment.size - end);
		temp_write(&f->dir, "copy", f->copy, f->segment.size - (end - begin));
		find_kept(&f->segment, begin, end, keep);
		small_expect(f->expected, &f->segment, keep);
		check_commands(f->path, f->expected, 3);
	}
}

TEST_F(marks_and_gaps_of_chunks_with_damaged_records_are_listed)
{
	static const char *const words[] = {"mark", "123 samples", "at least 5 samples",
		"an unknown number", "1 sample lost", "trigger"};

	temp_write(&f->dir, "copy", f->segment.bytes, f->segment.size);
	struct command_run whole = command_runf("marks %s", f->path);
	assert_int_equal(whole.code, 0);
	memcpy(f->copy, f->segment.bytes, f->segment.size);
	for (unsigned i = 0; i < SMALL_CHUNKS; i++) {
		uint8_t *header = f->copy + f->segment.chunks[i].begin;
		header[bc_chunk_header_bytes(header)] ^= 1; /* the frame's magic */
	}
	temp_write(&f->dir, "copy", f->copy, f->segment.size);
	struct command_run damaged = command_runf("marks %s", f->path);
	assert_int_equal(damaged.code, 3);
	assert_non_null(strstr(damaged.err, "chunk 5 (9 records) is damaged"));
	const char *before = whole.out;
	const char *after = damaged.out;
	for (unsigned i = 0; i < SMALL_CHUNKS; i++) {
		const struct bc_event *event = &small_plan[i].event;
		bool has_time = event->position == 0 || event->position == small_plan[i].records;
		size_t bytes = strcspn(before, "\n") + 1;
		size_t n = strcspn(after, "\n") + 1;
		assert_non_null(memmem(after, n, words[i], strlen(words[i])));
		if (has_time) {
			assert_int_equal(n, bytes);
			assert_memory_equal(after, before, n);
		} else {
			assert_memory_equal(after, before, 12); /* the number */
			assert_memory_equal(after + 12, "-  /", 4);
		}
		before += bytes;
		after += n;
	}
	assert_string_equal(after, "");
	command_run_free(&damaged);
	damaged = command_runf("marks --json %s", f->path);
	size_t unknown = 0;
	for (const char *p = damaged.out; (p = strstr(p, "\"tick\":null")) != NULL; p++)
		unknown++;
	assert_int_equal(unknown, 3);
	command_run_free(&damaged);
	command_run_free(&whole);
}

/* Changes the last tick of a chunk in its header and in the index, as a wrong writer would. */
static void set_last_tick(struct fixture *f, unsigned chunk, uint64_t tick)
{
	uint8_t *header = f->copy + f->segment.chunks[chunk].begin;
	uint8_t *rows = f->copy + f->segment.index_at + BC_INDEX_HEAD_BYTES;
	size_t rows_bytes = SMALL_CHUNKS * BC_INDEX_ROW_BYTES;
	size_t hashed = bc_chunk_header_bytes(header) - BC_HASH_BYTES;

	memcpy(f->copy, f->segment.bytes, f->segment.size);
	bc_write_le64(header + 56, tick);
	bc_checksum_write(header + hashed, header);
	memcpy(rows + (size_t)chunk * BC_INDEX_ROW_BYTES + 8, header + 8, BC_INDEX_ROW_BYTES - 8);
	bc_write_le64(rows + rows_bytes, XXH3_64bits(rows, rows_bytes));
	temp_write(&f->dir, "copy", f->copy, f->segment.size);
}

TEST_F(wrong_ticks_of_a_chunk_hide_no_records_and_are_reported)
{
	bool all[SMALL_CHUNKS];

	memset(all, 1, sizeof(all));
	small_expect(f->expected, &f->segment, all);
	memcpy(f->copy, f->segment.bytes, f->segment.size);
	for (unsigned i = 0; i < 2 * SMALL_CHUNKS; i++) {
		const struct small_chunk *chunk = &f->segment.chunks[i / 2];
		uint64_t first = bc_le64(f->segment.bytes + chunk->begin + 48);
		set_last_tick(f, i / 2, i % 2 == 0 ? first + 1 : first - 1);
		struct command_run run = command_runf("verify %s", f->path);
		assert_int_equal(run.code, 3);
		char *what = strstr(run.out, "has wrong ticks\n");
		assert_non_null(what);
		assert_null(strstr(what, ": offset")); /* nothing else */
		command_run_free(&run);
		run = command_runf("dump %s", f->path);
		assert_int_equal(run.code, 0);
		assert_string_equal(run.out, f->expected);
		command_run_free(&run);
		run = command_runf("dump --plain --time tick %s", f->path);
		size_t lines = 0;
		for (const char *p = run.out; *p != '\0'; p++)
			lines += *p == '\n';
		assert_int_equal(lines, SMALL_RECORDS);
		command_run_free(&run);
		run = command_runf("cut --records 0- -O byu %s", f->path);
		assert_int_equal(run.code, 0);
		assert_int_equal(run.out_bytes, SMALL_RECORDS * BC_RECORD_BYTES);
		command_run_free(&run);
	}
}

TEST_F(a_file_with_a_damaged_header_is_recognised)
{
	bool all[SMALL_CHUNKS];

	memset(all, 1, sizeof(all));
	small_expect(f->expected, &f->segment, all);
	for (size_t n = 1; n <= f->segment.chunks[0].begin; n += test_stride(15)) {
		memcpy(f->copy, f->segment.bytes, f->segment.size);
		memset(f->copy, 0xA5, n);
		temp_write(&f->dir, "copy", f->copy, f->segment.size);
		check_commands(f->path, f->expected, 3);
	}
}
