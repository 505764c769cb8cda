/* Recovers a small segment, damaged in every way. The copy must verify and contain the records of
 * all intact chunks in order, with gaps for what is missing. */
#include "tests/support/compressor.h"
#include "tests/support/segments.h"
#include "tests/support/small_segment.h"

#include <errno.h>

#include "formats/base/bytes.h"
#include "formats/segment/recover.h"
#include "formats/segment/segment_header.h"
#include "formats/segment/sequence_check.h"
#include "tests/support/test.h"

static struct bc_chunk_pages chunk_pages;

struct fixture {
	struct temp_dir dir;
	struct small_segment segment;
	struct small_segment next;
	struct bc_segment_name name;
	struct bc_chunk *chunk;
	uint8_t copy[32768];
};

#define OUT "out.byu.lz4"

static void set_up(struct fixture *f)
{
	temp_dir_make(&f->dir);
	small_make(&f->segment, &f->dir, 0, 0);
	small_make(&f->next, &f->dir, 1, SMALL_RECORDS);
	assert_true(bc_segment_name_read(&f->name, f->segment.name));
	f->chunk = malloc(sizeof(*f->chunk));
	memcpy(f->copy, f->segment.bytes, f->segment.size);
}

static void tear_down(struct fixture *f)
{
	assert_int_equal(temp_dir_empty(&f->dir), 2); /* the segments: no other files are left */
	temp_dir_remove(&f->dir);
	free(f->segment.bytes);
	free(f->next.bytes);
	free(f->chunk);
}

TEST_FIXTURE(fixture, set_up, tear_down)

/* Contents of a copy. */
struct copy {
	bool has[SMALL_CHUNKS];
	unsigned chunks; /* of the original */
	uint64_t records;
	uint64_t gap_records;  /* sum of the gaps of cause "damaged" */
	unsigned unknown_gaps; /* gaps of that cause with an unknown number of records */
	struct bc_segment_header header;
};

/* Returns the index of the original chunk, ignoring an added gap, or SMALL_CHUNKS if the chunk was
 * added for a gap. */
static unsigned find_original(const struct small_segment *s, const struct bc_chunk *chunk)
{
	const struct bc_event *last = &chunk->events[chunk->info.events - 1];

	for (unsigned i = 0; i < SMALL_CHUNKS; i++)
		if (s->chunks[i].first_record == chunk->info.first_record &&
			s->chunks[i].records == chunk->info.records &&
			last->cause == small_plan[i].event.cause &&
			last->kind == small_plan[i].event.kind)
			return i;
	assert_int_equal(chunk->info.records, 0);
	return SMALL_CHUNKS;
}

static void check_chunk(struct fixture *f, const struct small_segment *s, struct copy *copy)
{
	const struct bc_chunk *chunk = f->chunk;
	unsigned original = find_original(s, chunk);

	for (uint32_t i = 0; i < chunk->info.events; i++) {
		const struct bc_event *event = &chunk->events[i];
		if (event->kind != BC_EVENT_GAP || event->cause != BC_GAP_DAMAGED)
			continue;
		assert_int_equal(event->position, 0);
		assert_int_equal(i, 0);
		copy->gap_records += event->value;
		copy->unknown_gaps += !event->exact;
	}
	if (original == SMALL_CHUNKS)
		return;
	for (unsigned i = original; i < SMALL_CHUNKS; i++)
		assert_false(copy->has[i]); /* in order, without repetition */
	copy->has[original] = true;
	copy->chunks++;
	copy->records += chunk->info.records;
	assert_memory_equal(chunk->records, s->chunks[original].bytes,
		(size_t)chunk->info.records * BC_RECORD_BYTES);
	const struct bc_event *last = &chunk->events[chunk->info.events - 1];
	assert_int_equal(last->position, small_plan[original].event.position);
	assert_int_equal(last->value, small_plan[original].event.value);
}

/* Asserts that no record is missing before a chunk without a gap. */
static void assert_follows(struct bc_sequence_check *sequence, const struct bc_chunk *chunk)
{
	struct bc_missing missing;

	assert_int_equal(bc_sequence_check_chunk(sequence, chunk, &missing), BC_SEQUENCE_NEXT);
	assert_int_equal(missing.records, 0);
}

/* Reads the copy, which must be intact and sealed, and deletes it. */
static struct copy read_copy(struct fixture *f, const struct small_segment *s)
{
	struct copy copy = {0};
	struct bc_sequence_check sequence = {0};
	struct bc_segment_index index;
	int fd = openat(f->dir.fd, OUT, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(bc_segment_index_load(&index, fd), 0);
	struct bc_segment_reader *reader = segment_reader_of(fd);
	uint32_t number = 0;
	int found;
	while ((found = bc_segment_read(reader, f->chunk)) != BC_FOUND_END) {
		assert_true(found == BC_FOUND_SEGMENT || found == BC_FOUND_CHUNK ||
			    found == BC_FOUND_INDEX);
		if (found == BC_FOUND_SEGMENT) {
			copy.header = *bc_segment_reader_header(reader);
			bc_sequence_check_expect(&sequence, &copy.header);
		}
		if (found == BC_FOUND_CHUNK) {
			assert_int_equal(f->chunk->info.number, number++);
			assert_follows(&sequence, f->chunk);
			assert_int_equal(f->chunk->info.recording_tag,
				bc_recording_tag(copy.header.recording));
			check_chunk(f, s, &copy);
		}
	}
	bc_sequence_check_reset(&sequence);
	assert_true(bc_segment_reader_is_sealed(reader));
	assert_int_equal(index.head.rows, number);
	assert_int_equal(index.head.records, copy.records);
	bc_segment_index_free(&index);
	bc_segment_reader_close(reader);
	close(fd);
	unlinkat(f->dir.fd, OUT, 0);
	return copy;
}

static int recover_bytes(
	struct fixture *f, const uint8_t *bytes, size_t size, struct bc_recovered *recovered)
{
	int fd = memfd_create("bytes", MFD_CLOEXEC);

	assert_int_equal(write(fd, bytes, size), size);
	int rc = bc_recover(
		recovered, fd, f->dir.fd, OUT, &(struct bc_recover_options){.fallback = &f->name});
	uint8_t *after = malloc(size + 1);
	assert_int_equal(pread(fd, after, size + 1, 0), size);
	assert_memory_equal(after, bytes, size); /* unchanged */
	free(after);
	close(fd);
	return rc;
}

/* Recovers, and checks the chunks of the copy: those in `keep`. */
static void check_recovery(struct fixture *f, const uint8_t *bytes, size_t size,
	const bool keep[SMALL_CHUNKS], bool is_damaged)
{
	struct bc_recovered r;
	unsigned kept = 0;
	uint64_t missing = 0;
	uint64_t missing_now = 0;

	for (unsigned i = 0; i < SMALL_CHUNKS; i++)
		kept += keep[i];
	assert_int_equal(recover_bytes(f, bytes, size, &r), 0);
	assert_int_equal(r.damages != 0, is_damaged);
	assert_int_equal(r.is_written, kept != 0);
	if (!r.is_written)
		return;
	struct copy copy = read_copy(f, &f->segment);
	assert_int_equal(copy.chunks, kept);
	assert_int_equal(copy.records, r.records);
	assert_string_equal(copy.header.recording, SMALL_RECORDING);
	for (unsigned i = 0; i < SMALL_CHUNKS; i++) {
		assert_int_equal(copy.has[i], keep[i]);
		missing_now += keep[i] ? 0 : f->segment.chunks[i].records;
		missing = keep[i] ? missing_now : missing;
	}
	assert_int_equal(copy.gap_records, missing);
	assert_int_equal(r.missing, missing);
}

TEST_F(a_whole_segment_is_copied_whole)
{
	struct bc_recovered r;
	bool all[SMALL_CHUNKS];

	memset(all, 1, sizeof(all));
	check_recovery(f, f->segment.bytes, f->segment.size, all, false);
	assert_int_equal(recover_bytes(f, f->segment.bytes, f->segment.size, &r), 0);
	size_t size;
	uint8_t *copy = temp_read(&f->dir, OUT, &size);
	/* All chunks are identical; numbers in the header may be formatted differently. */
	assert_int_equal(size, f->segment.size);
	size_t from = f->segment.chunks[0].begin;
	assert_memory_equal(copy + from, f->segment.bytes + from, size - from);
	free(copy);
	struct copy read = read_copy(f, &f->segment);
	assert_string_equal(read.header.label, "boot");
	assert_string_equal(read.header.metadata, "{\"who\":\"me\",\"n\":[1,2]}");
	assert_int_equal(read.header.clock_hz, 66000000);
}

/* Gives the segment a header with a member that this version doesn't know and a rounded time. */
static void change_header(struct fixture *f, const char *added)
{
	uint8_t *frame = f->copy + BC_EMPTY_FRAME_BYTES;
	size_t hashed = bc_segment_header_bytes(frame) - BC_HASH_BYTES;
	char *text = (char *)frame + BC_SKIPPABLE_BYTES;
	static const char removed[] = "\"metadata\":{\"who\":\"me\",\"n\":[1,2]}";
	char *metadata = memmem(text, hashed, removed, strlen(removed));
	char *wall = memmem(text, hashed, "1795166100000000000", 19);

	assert_non_null(metadata);
	assert_non_null(wall);
	assert_true(strlen(added) <= strlen(removed));
	memset(metadata, ' ', strlen(removed));
	memcpy(metadata, added, strlen(added));
	memcpy(wall, "1795166100000000512", 19);
	bc_checksum_write(frame + hashed, frame);
}

TEST_F(members_of_the_header_that_a_later_version_adds_are_kept)
{
	static const char added[] = "\"x\":{\"y\":[0.1,1e300]}";
	struct bc_recovered r;
	size_t size;

	change_header(f, added);
	assert_int_equal(recover_bytes(f, f->copy, f->segment.size, &r), 0);
	uint8_t *bytes = temp_read(&f->dir, OUT, &size);
	assert_non_null(memmem(bytes, size, added, strlen(added)));
	free(bytes);
	struct copy copy = read_copy(f, &f->segment);
	assert_true(copy.header.wall_ns == INT64_C(1795166100000000000));
	assert_string_equal(copy.header.label, "boot");
}

TEST_F(every_prefix_is_recovered)
{
	bool keep[SMALL_CHUNKS];

	for (size_t n = 0; n < f->segment.size; n = test_next(n, 85, &f->segment.edges)) {
		size_t last_end = n < f->segment.chunks[0].begin ? 0 : f->segment.chunks[0].begin;
		for (unsigned i = 0; i < SMALL_CHUNKS; i++) {
			keep[i] = n >= f->segment.chunks[i].end;
			last_end = keep[i] ? f->segment.chunks[i].end : last_end;
		}
		/* A cut between two chunks, before the index, or after the empty LZ4 frame at the
		 * start, is not damage: the segment is just not sealed. */
		bool is_whole = n == last_end || n == BC_EMPTY_FRAME_BYTES ||
				n == f->segment.index_at;
		check_recovery(f, f->segment.bytes, n, keep, !is_whole);
	}
}

TEST_F(every_flipped_bit_is_recovered)
{
	bool keep[SMALL_CHUNKS];

	for (size_t bit = 0; bit < f->segment.size * 8;
		bit = test_next_bit(bit, 605, &f->segment.edges)) {
		size_t at = bit / 8;
		f->copy[at] ^= (uint8_t)(1u << bit % 8);
		for (unsigned i = 0; i < SMALL_CHUNKS; i++)
			keep[i] = at < f->segment.chunks[i].begin || at >= f->segment.chunks[i].end;
		check_recovery(f, f->copy, f->segment.size, keep, true);
		f->copy[at] ^= (uint8_t)(1u << bit % 8);
	}
}

TEST_F(a_lost_gap_leaves_an_unknown_one)
{
	struct bc_recovered r;

	/* Chunk 4 has no records: only the chunk numbers show that it is missing. */
	f->copy[f->segment.chunks[4].begin + 30] ^= 1;
	assert_int_equal(recover_bytes(f, f->copy, f->segment.size, &r), 0);
	struct copy copy = read_copy(f, &f->segment);
	assert_int_equal(copy.unknown_gaps, 1);
	assert_int_equal(copy.chunks, SMALL_CHUNKS - 1);
	f->copy[f->segment.chunks[4].begin + 30] ^= 1;
}

TEST_F(swapped_and_repeated_chunks_are_put_in_order)
{
	struct bc_recovered r;
	static const unsigned order[] = {1, 0, 1, 3, 2, 5, 4, 0, 5};
	size_t n = f->segment.chunks[0].begin;
	uint8_t bytes[32768];

	memcpy(bytes, f->segment.bytes, n);
	for (size_t i = 0; i < COUNT_OF(order); i++) {
		const struct small_chunk *chunk = &f->segment.chunks[order[i]];
		memcpy(bytes + n, f->segment.bytes + chunk->begin, chunk->end - chunk->begin);
		n += chunk->end - chunk->begin;
	}
	assert_int_equal(recover_bytes(f, bytes, n, &r), 0);
	struct copy copy = read_copy(f, &f->segment);
	assert_int_equal(copy.chunks, SMALL_CHUNKS);
	assert_int_equal(copy.gap_records, 0);
	assert_int_equal(r.missing, 0);
}

TEST_F(chunks_of_another_segment_are_dropped)
{
	struct bc_recovered r;
	uint8_t bytes[32768];

	memcpy(bytes, f->segment.bytes, f->segment.size);
	memcpy(bytes + f->segment.size, f->next.bytes, f->next.size);
	size_t n = f->segment.size + f->next.size;
	assert_int_equal(recover_bytes(f, bytes, n, &r), 0);
	assert_int_equal(r.damages, SMALL_CHUNKS);
	struct copy copy = read_copy(f, &f->segment);
	assert_int_equal(copy.chunks, SMALL_CHUNKS);
}

/* Damages the header's JSON. */
static void hurt_header(uint8_t *bytes)
{
	bytes[BC_EMPTY_FRAME_BYTES + 40] ^= 0x10;
}

TEST_F(a_later_segment_without_header_keeps_its_place)
{
	struct bc_recovered r;
	uint8_t bytes[32768];
	const struct small_segment *s = &f->next;

	memcpy(bytes, s->bytes, s->size);
	hurt_header(bytes);
	assert_int_equal(recover_bytes(f, bytes, s->size, &r), 0);
	struct copy copy = read_copy(f, s);
	assert_int_equal(copy.chunks, SMALL_CHUNKS);
	assert_int_equal(copy.header.segment, 1);
	assert_int_equal(copy.header.first_record, SMALL_RECORDS);
	assert_int_equal(copy.gap_records + copy.unknown_gaps, 0);

	/* Without the first chunk, the number of missing records is unknown. */
	bytes[s->chunks[0].begin + 20] ^= 1;
	assert_int_equal(recover_bytes(f, bytes, s->size, &r), 0);
	copy = read_copy(f, s);
	assert_int_equal(copy.chunks, SMALL_CHUNKS - 1);
	assert_int_equal(copy.unknown_gaps, 1);
}

static void count_step(void *context)
{
	unsigned *steps = context;

	(*steps)++;
}

TEST_F(progress_is_called_for_each_piece)
{
	struct bc_recovered r;
	unsigned steps = 0;
	struct bc_progress_cb listener = {.on_progress = count_step, .context = &steps};
	int fd = memfd_create("bytes", MFD_CLOEXEC);

	assert_int_equal(write(fd, f->copy, f->segment.size), f->segment.size);
	struct bc_recover_options options = {.progress = &listener};
	assert_int_equal(bc_recover(&r, fd, f->dir.fd, OUT, &options), 0);
	/* Once for the scan, and once for each chunk. */
	assert_true(steps >= 1 + SMALL_CHUNKS);
	assert_int_equal(read_copy(f, &f->segment).chunks, SMALL_CHUNKS);
	close(fd);
}

TEST_F(a_contradicting_file_name_is_not_used)
{
	struct bc_recovered r;
	struct bc_segment_name other = f->name;

	strcpy(other.recording, "20250101T000000Z-000000");
	hurt_header(f->copy);
	int fd = memfd_create("bytes", MFD_CLOEXEC);
	assert_int_equal(write(fd, f->copy, f->segment.size), f->segment.size);
	for (int i = 0; i < 2; i++) {
		struct bc_recover_options options = {.fallback = i == 0 ? &other : NULL};
		assert_int_equal(bc_recover(&r, fd, f->dir.fd, OUT, &options), 0);
		struct copy copy = read_copy(f, &f->segment);
		assert_int_equal(copy.chunks, SMALL_CHUNKS);
		assert_memory_equal(copy.header.recording, "unknown-", 8);
	}
	close(fd);
	hurt_header(f->copy);
}

/* Writes a segment of three chunks: the second is damaged, and the event table of the third is
 * full. Returns its size. */
static size_t make_full_table(struct fixture *f, uint8_t *out)
{
	struct bc_segment_header header = {.recording = SMALL_RECORDING};
	struct bc_segment_writer writer;
	size_t hurt = 0;

	assert_int_equal(bc_segment_create(&writer, f->dir.fd, "full", ".partial", &header), 0);
	for (uint32_t i = 0; i < 3; i++) {
		struct bc_event mark = {.kind = BC_EVENT_MARK, .position = 1};
		bc_chunk_reset(f->chunk, 7 * i, 0);
		f->chunk->info.recording_tag = bc_recording_tag(SMALL_RECORDING);
		f->chunk->info.first_record = i;
		f->chunk->info.records = 1;
		memset(f->chunk->records, (int)i, BC_RECORD_BYTES);
		while (i == 2 && bc_chunk_add_event(f->chunk, &mark, NULL))
			;
		hurt = i == 1 ? writer.file.bytes : hurt;
		segment_append(&writer, f->chunk, 0, 0);
	}
	bc_segment_abandon(&writer);
	size_t size;
	uint8_t *bytes = temp_read(&f->dir, "full.partial", &size);
	memcpy(out, bytes, size);
	out[hurt + 50] ^= 1;
	unlinkat(f->dir.fd, "full.partial", 0);
	free(bytes);
	return size;
}

TEST_F(a_full_event_table_moves_the_gap_to_a_separate_chunk)
{
	struct bc_recovered r;
	uint8_t bytes[32768];
	size_t size = make_full_table(f, bytes);
	struct bc_sequence_check sequence = {0};
	uint32_t records[4] = {0};
	uint32_t events[4] = {0};
	unsigned n = 0;

	assert_int_equal(recover_bytes(f, bytes, size, &r), 0);
	assert_int_equal(r.chunks, 3);
	int fd = openat(f->dir.fd, OUT, O_RDONLY | O_CLOEXEC);
	struct bc_segment_reader *reader = segment_reader_of(fd);
	int found;
	while ((found = bc_segment_read(reader, f->chunk)) != BC_FOUND_END) {
		assert_int_not_equal(found, BC_FOUND_DAMAGE);
		if (found == BC_FOUND_SEGMENT)
			bc_sequence_check_expect(&sequence, bc_segment_reader_header(reader));
		if (found != BC_FOUND_CHUNK)
			continue;
		assert_follows(&sequence, f->chunk);
		records[n] = f->chunk->info.records;
		events[n++] = f->chunk->info.events;
		if (records[n - 1] == 0)
			assert_int_equal(f->chunk->events[0].value, 1);
	}
	bc_sequence_check_reset(&sequence);
	assert_int_equal(n, 3);
	assert_int_equal(records[1], 0);
	assert_int_equal(events[1], 1);
	assert_int_equal(events[2], BC_CHUNK_EVENTS);
	bc_segment_reader_close(reader);
	close(fd);
	unlinkat(f->dir.fd, OUT, 0);
}

TEST_F(a_copy_damaged_again_counts_all_missing_records)
{
	struct bc_recovered r;
	size_t size;

	f->copy[f->segment.chunks[2].begin + 60] ^= 1; /* 12 records */
	assert_int_equal(recover_bytes(f, f->copy, f->segment.size, &r), 0);
	f->copy[f->segment.chunks[2].begin + 60] ^= 1;
	uint8_t *bytes = temp_read(&f->dir, OUT, &size);
	unlinkat(f->dir.fd, OUT, 0);
	/* The header and the first two chunks have the same size in the copy. */
	bytes[f->segment.chunks[1].begin + 60] ^= 1; /* 7 more */
	assert_int_equal(recover_bytes(f, bytes, size, &r), 0);
	assert_int_equal(r.missing, 7);
	uint64_t lost = 0;
	int fd = openat(f->dir.fd, OUT, O_RDONLY | O_CLOEXEC);
	struct bc_segment_reader *reader = segment_reader_of(fd);
	int found;
	while ((found = bc_segment_read(reader, f->chunk)) != BC_FOUND_END)
		for (uint32_t i = 0; found == BC_FOUND_CHUNK && i < f->chunk->info.events; i++)
			if (f->chunk->events[i].kind == BC_EVENT_GAP &&
				f->chunk->events[i].cause == BC_GAP_DAMAGED)
				lost += f->chunk->events[i].value;
	assert_int_equal(lost, 12 + 7);
	bc_segment_reader_close(reader);
	close(fd);
	unlinkat(f->dir.fd, OUT, 0);
	free(bytes);
}

/* Writes a segment of chunks without records, which are all the same, as a killed recorder leaves
 * it. Recovers it, and returns what its end says. */
static struct bc_recording_end recover_killed(struct fixture *f, const struct bc_chunk_info *info,
	uint32_t chunks, uint64_t clock_hz, struct bc_recovered *r)
{
	struct bc_segment_header header = {.recording = SMALL_RECORDING, .clock_hz = clock_hz};
	const struct bc_recover_options options = {.boot_id = ""};
	struct bc_recording_end end = {.ended_ns = 0};
	struct bc_segment_writer writer;
	struct bc_segment_reader *reader;
	uint8_t *encoded = malloc(BC_CHUNK_ENCODED_MAX);
	size_t header_bytes;
	int found;

	assert_int_equal(bc_segment_create(&writer, f->dir.fd, "killed", ".partial", &header), 0);
	bc_chunk_reset(f->chunk, 0, 0);
	f->chunk->info = *info;
	f->chunk->info.recording_tag = bc_recording_tag(SMALL_RECORDING);
	bc_chunk_encode(encoded, f->chunk, &test_compressor, &chunk_pages, &header_bytes);
	size_t bytes = header_bytes + f->chunk->info.frame_bytes;
	uint8_t *all = malloc(chunks * bytes);
	for (uint32_t i = 0; i < chunks; i++) {
		bc_chunk_header_place(encoded, header_bytes, header.segment, i);
		memcpy(all + i * bytes, encoded, bytes);
	}
	assert_int_equal(bc_atomic_file_append(&writer.file, all, chunks * bytes), 0);
	bc_segment_abandon(&writer);
	free(encoded);
	free(all);
	int fd = openat(f->dir.fd, "killed.partial", O_RDONLY | O_CLOEXEC);
	assert_int_equal(bc_recover(r, fd, f->dir.fd, OUT, &options), 0);
	close(fd);
	unlinkat(f->dir.fd, "killed.partial", 0);
	fd = openat(f->dir.fd, OUT, O_RDONLY | O_CLOEXEC);
	reader = segment_reader_of(fd);
	while ((found = bc_segment_read(reader, f->chunk)) != BC_FOUND_END) {
		assert_int_not_equal(found, BC_FOUND_DAMAGE);
		if (found == BC_FOUND_CHUNK)
			bc_recording_end_find(&end, f->chunk);
	}
	assert_true(bc_segment_reader_is_sealed(reader));
	bc_segment_reader_close(reader);
	close(fd);
	return end;
}

TEST_F(a_killed_recording_ended_with_its_last_chunk)
{
	const int64_t day_ns = INT64_C(86400000000000);
	const struct {
		struct bc_chunk_info info;
		uint64_t clock_hz;
		int64_t ended_ns;
	} cases[] = {
		{{.wall_ns = 5}, 0, 5},
		{{.wall_ns = 5, .first_tick = 10, .last_tick = 40}, 10, 5 + INT64_C(3000000000)},
		{{.wall_ns = 5, .last_tick = 86399}, 1, 5 + day_ns - 1000000000},
		{{.wall_ns = 5, .last_tick = 86400}, 1, 5}, /* the clock is wrong */
		{{.wall_ns = 5, .last_tick = BC_TICK_END - 1}, 1, 5},
		{{.wall_ns = 5, .first_tick = 40, .last_tick = 10}, 10, 5},
		{{.wall_ns = INT64_MAX - 7, .last_tick = 1}, 1, INT64_MAX},
		{{.wall_ns = INT64_MIN, .last_tick = 1}, 1, INT64_MIN + 1000000000},
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct bc_recovered r;
		struct bc_recording_end end = recover_killed(
			f, &cases[i].info, 1, cases[i].clock_hz, &r);
		assert_string_equal(end.reason, "crash");
		assert_true(end.ended_ns == cases[i].ended_ns);
		assert_int_equal(r.chunks, 2);
		unlinkat(f->dir.fd, OUT, 0);
	}
}

TEST_F(a_segment_that_has_no_room_for_the_end_is_recovered_without)
{
	const struct bc_chunk_info info = {.wall_ns = 5};
	struct bc_recovered r;

	for (uint32_t room = 0; room < 2; room++) {
		struct bc_recording_end end = recover_killed(
			f, &info, BC_SEGMENT_CHUNKS - room, 0, &r);
		assert_true(r.is_written);
		assert_int_equal(r.chunks, BC_SEGMENT_CHUNKS);
		assert_string_equal(end.reason, room != 0 ? "crash" : "");
		/* Where there was no room, the end is in another segment. */
		int fd = openat(f->dir.fd, OUT, O_RDONLY | O_CLOEXEC);
		assert_int_equal(bc_recover_end(&r, fd, f->dir.fd, "next", ""), 0);
		assert_int_equal(r.is_written, room == 0);
		assert_int_equal(unlinkat(f->dir.fd, "next", 0) == 0, room == 0);
		close(fd);
		unlinkat(f->dir.fd, OUT, 0);
	}
}

TEST_F(existing_files_are_not_touched)
{
	struct bc_recovered r;
	static const char *const taken[] = {OUT, OUT BC_RECOVER_SUFFIX};

	for (int i = 0; i < 2; i++) {
		int fd = openat(f->dir.fd, taken[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_int_equal(write(fd, "mine", 4), 4);
		close(fd);
		assert_int_equal(recover_bytes(f, f->segment.bytes, f->segment.size, &r), -EEXIST);
		size_t size;
		uint8_t *bytes = temp_read(&f->dir, taken[i], &size);
		assert_int_equal(size, 4);
		assert_memory_equal(bytes, "mine", 4);
		free(bytes);
		unlinkat(f->dir.fd, taken[i], 0);
	}
}

TEST_F(the_command_reports_what_was_kept)
{
	char in[512];
	char out[128];

	snprintf(in, sizeof(in), "%s/%s.partial", f->dir.path, f->segment.name);
	snprintf(out, sizeof(out), "%s/" OUT, f->dir.path);
	f->copy[f->segment.chunks[2].begin + 60] ^= 1;
	int fd = open(in, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, f->copy, f->segment.size), f->segment.size);
	close(fd);
	f->copy[f->segment.chunks[2].begin + 60] ^= 1;

	struct command_run run = command_runf("recover %s -o %s", in, out);
	assert_int_equal(run.code, 3);
	assert_non_null(strstr(run.err, "12 records missing, marked by gaps"));
	command_run_free(&run);
	run = command_runf("verify %s", out);
	assert_int_equal(run.code, 0);
	command_run_free(&run);
	unlink(out);
	unlink(in);
}
