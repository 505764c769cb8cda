/* Files that an earlier run left open: what can be read is sealed, and nothing that holds more than
 * a header is deleted unless the sealed copy has everything in it. */
#include "daemon/main/startup_recovery.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "formats/base/bytes.h"
#include "formats/segment/segment_header.h"
#include "tests/support/header_file.h"
#include "tests/support/log_capture.h"
#include "tests/support/segments.h"
#include "tests/support/small_segment.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

#define BOOT    "0123456789abcdef0123456789abcdef"
#define SEALED  SMALL_RECORDING "-00000.byu.lz4"
#define PARTIAL SEALED ".partial"
#define DAMAGED SEALED ".damaged"

struct fixture {
	struct temp_dir dir;
	struct small_segment segment;
	struct bc_startup_found found;
	struct log_capture log;
};

/* A file server has a lease on this file: its header can't be read for the moment. */
static const char *leased = "none";

int openat(int dir_fd, const char *name, int flags, ...)
{
	va_list args;

	va_start(args, flags);
	mode_t mode = (flags & O_CREAT) != 0 ? va_arg(args, mode_t) : 0;
	va_end(args);
	if (strcmp(name, leased) != 0 || (flags & O_NONBLOCK) == 0)
		return (int)syscall(SYS_openat, dir_fd, name, flags, mode);
	errno = EWOULDBLOCK;
	return -1;
}

static void set_up(struct fixture *f)
{
	temp_dir_make(&f->dir);
	small_make(&f->segment, &f->dir, 0, 0);
	temp_dir_empty(&f->dir);
	bc_log_set_level(BC_LOG_INFO);
}

static void tear_down(struct fixture *f)
{
	free(f->segment.bytes);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

static void on_progress(void *context, const char *file)
{
	(void)context;
	(void)file;
}

/* Starts a run. Returns its log. */
static const char *start(struct fixture *f, unsigned recovered)
{
	log_capture_start(&f->log);
	int rc = bc_startup_recover(&f->found, f->dir.path, f->dir.fd, BOOT, on_progress, f);
	const char *log = log_capture_stop(&f->log);

	assert_int_equal(rc, 0);
	assert_int_equal(f->found.recovered, recovered);
	return log;
}

static void assert_same(struct fixture *f, const char *name, const uint8_t *bytes, size_t n)
{
	size_t size;
	uint8_t *found = temp_read(&f->dir, name, &size);

	assert_int_equal(size, n);
	assert_memory_equal(found, bytes, n);
	free(found);
}

/* Reads a segment, which must have no damage. Returns its chunks that have records. */
static unsigned count_chunks(struct fixture *f, const char *name)
{
	struct bc_chunk *chunk = malloc(sizeof(*chunk));
	int fd = openat(f->dir.fd, name, O_RDONLY | O_CLOEXEC);
	unsigned chunks = 0;
	int found;

	assert_true(fd >= 0);
	struct bc_segment_reader *reader = segment_reader_of(fd);
	while ((found = bc_segment_read(reader, chunk)) != BC_FOUND_END) {
		assert_true(found > 0 && found != BC_FOUND_DAMAGE);
		chunks += found == BC_FOUND_CHUNK && chunk->info.records != 0;
	}
	bc_segment_reader_close(reader);
	close(fd);
	free(chunk);
	return chunks;
}

/* Chunks of the small segment that have records. */
#define CHUNKS_WITH_RECORDS (SMALL_CHUNKS - 1)

/* Changes the version in each chunk header, as a later program would write it. */
static void set_version(struct small_segment *s, uint32_t version)
{
	for (unsigned i = 0; i < SMALL_CHUNKS; i++) {
		uint8_t *header = s->bytes + s->chunks[i].begin;
		size_t bytes = bc_chunk_header_bytes(header);
		bc_write_le32(header + 8, version);
		bc_checksum_write(header + bytes - BC_HASH_BYTES, header);
	}
}

/* Makes a sealed segment of our recording with one chunk of ten records, which ends with `reason`,
 * or without an end if that is NULL. */
static void make_segment_of(struct fixture *f, const char *recording, uint32_t number,
	const char *boot_id, const char *reason)
{
	struct bc_segment_header header = {
		.sequence = 7,
		.segment = number,
		.clock_hz = 1000000,
		.first_record = number * 10,
	};
	struct bc_recording_end end = {.ended_ns = 1};
	struct bc_chunk *chunk = malloc(sizeof(*chunk));
	struct bc_segment_writer writer;
	char name[BC_SEGMENT_NAME_MAX];

	snprintf(name, sizeof(name), "%s-%05" PRIu32 ".byu.lz4", recording, number);
	strcpy(header.recording, recording);
	strcpy(header.boot_id, boot_id);
	bc_chunk_reset(chunk, 1000, 0);
	memset(chunk->records, 1, 10 * BC_RECORD_BYTES);
	chunk->info.records = 10;
	chunk->info.first_record = number * 10;
	chunk->info.last_tick = 3000; /* 2 ms */
	chunk->info.wall_ns = INT64_C(1795166100000000000);
	chunk->info.recording_tag = bc_recording_tag(recording);
	if (reason != NULL) {
		strcpy(end.reason, reason);
		assert_true(bc_recording_end_add(chunk, &end));
	}
	assert_int_equal(bc_segment_create(&writer, f->dir.fd, name, ".partial", &header), 0);
	segment_append(&writer, chunk, 0, 0);
	assert_int_equal(bc_segment_seal(&writer), 0);
	free(chunk);
}

static void make_segment(
	struct fixture *f, uint32_t number, const char *boot_id, const char *reason)
{
	make_segment_of(f, SMALL_RECORDING, number, boot_id, reason);
}

TEST_F(a_file_of_a_later_version_is_kept)
{
	set_version(&f->segment, 99);
	temp_write(&f->dir, PARTIAL, f->segment.bytes, f->segment.index_at);
	const char *log = start(f, 0);
	assert_same(f, DAMAGED, f->segment.bytes, f->segment.index_at);
	assert_false(temp_exists(&f->dir, PARTIAL));
	assert_false(temp_exists(&f->dir, SEALED));
	assert_non_null(strstr(log, "warning"));
	assert_non_null(strstr(log, "buscap recover "));
	assert_non_null(strstr(log, "/" DAMAGED " -o "));
	assert_string_equal(f->found.newest, "");
	assert_string_equal(start(f, 0), "");
	assert_true(temp_exists(&f->dir, DAMAGED));
}

TEST_F(after_damage_in_the_middle_the_original_is_kept)
{
	size_t size = f->segment.index_at;

	f->segment.bytes[f->segment.chunks[2].end - 20] ^= 1;
	temp_write(&f->dir, PARTIAL, f->segment.bytes, size);
	const char *log = start(f, 1);
	assert_same(f, DAMAGED, f->segment.bytes, size);
	assert_false(temp_exists(&f->dir, PARTIAL));
	assert_int_equal(count_chunks(f, SEALED), CHUNKS_WITH_RECORDS - 1);
	assert_null(strstr(log, "after the last whole chunk"));
	assert_non_null(strstr(log, "recovered 34 records; damaged: lost"));
	assert_non_null(strstr(log, DAMAGED));
	assert_string_equal(f->found.newest, SMALL_RECORDING);
	assert_string_equal(start(f, 0), "");
}

/* After a power cut, a file that was never synced can have old data of another one. */
TEST_F(a_file_with_the_contents_of_another_is_kept)
{
	temp_write(&f->dir, SEALED, f->segment.bytes, f->segment.size);
	temp_write(&f->dir, SMALL_RECORDING "-00001.byu.lz4.partial", f->segment.bytes,
		f->segment.index_at);
	assert_non_null(strstr(start(f, 0), "the contents of another file"));
	assert_same(
		f, SMALL_RECORDING "-00001.byu.lz4.damaged", f->segment.bytes, f->segment.index_at);
}

/* Nothing proves that they are ours. */
TEST_F(an_open_file_of_a_recording_that_no_header_names_is_left_alone)
{
	static const char *const names[] = {"todo-20261.byu.lz4", SMALL_RECORDING "-00001.byu.lz4",
		"20260120T091500Z-000000-00000.byu.lz4", SMALL_RECORDING "-00000.bcp1.lz4",
		"._" SEALED};
	const size_t sizes[] = {0, 1, f->segment.chunks[0].begin, f->segment.index_at};

	for (size_t i = 0; i < COUNT_OF(names) * COUNT_OF(sizes); i++) {
		char name[BC_SEGMENT_NAME_MAX];
		size_t size = sizes[i % COUNT_OF(sizes)];
		const char *of = names[i / COUNT_OF(sizes)];
		if (size == 0 && strncmp(of, "202", 3) == 0)
			continue; /* empty, and the name is a recording's */
		snprintf(name, sizeof(name), "%s.partial", of);
		temp_write(&f->dir, name, f->segment.bytes, size);
		assert_string_equal(start(f, 0), "");
		assert_same(f, name, f->segment.bytes, size);
		assert_int_equal(temp_dir_empty(&f->dir), 1);
	}
	temp_write(&f->dir, PARTIAL, "some text that was never a segment", 34);
	assert_string_equal(start(f, 0), "");
	assert_same(f, PARTIAL, (const uint8_t *)"some text that was never a segment", 34);
	assert_string_equal(f->found.newest, "");
}

TEST_F(an_open_file_of_zeros_is_deleted_if_it_has_a_recordings_name)
{
	static const size_t sizes[] = {0, 1, 511, 65536, 200000};
	uint8_t *bytes = calloc(1, 200001);

	assert_non_null(bytes);
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		for (int has_other = 0; has_other < 2; has_other++) {
			if (has_other)
				make_segment(f, 1, BOOT, "signal");
			temp_write(&f->dir, PARTIAL, bytes, sizes[i]);
			assert_non_null(strstr(start(f, 0), PARTIAL ": left open by an earlier "
								    "run; empty, deleted"));
			assert_int_equal(temp_dir_empty(&f->dir), has_other);
		}
		temp_write(&f->dir, "todo-20261.byu.lz4.partial", bytes, sizes[i]);
		assert_string_equal(start(f, 0), "");
		assert_int_equal(temp_dir_empty(&f->dir), 1);
		/* One byte that is not zero, at the end. */
		bytes[sizes[i]] = 1;
		temp_write(&f->dir, PARTIAL, bytes, sizes[i] + 1);
		assert_string_equal(start(f, 0), "");
		assert_int_equal(temp_dir_empty(&f->dir), 1);
		bytes[sizes[i]] = 0;
	}
	free(bytes);
}

TEST_F(a_chunk_proves_whose_a_file_without_its_header_is)
{
	memset(f->segment.bytes, 0, f->segment.chunks[0].begin);
	temp_write(&f->dir, PARTIAL, f->segment.bytes, f->segment.index_at);
	assert_non_null(strstr(start(f, 1), "recovered 46 records"));
	assert_int_equal(count_chunks(f, SEALED), CHUNKS_WITH_RECORDS);
	assert_false(temp_exists(&f->dir, PARTIAL));
	temp_dir_empty(&f->dir);
	/* A run was killed while it copied it. */
	temp_write(&f->dir, PARTIAL, f->segment.bytes, f->segment.index_at);
	temp_write(&f->dir, SEALED ".recovering", f->segment.bytes, 5);
	assert_non_null(strstr(start(f, 1), "recovered 46 records"));
	assert_false(temp_exists(&f->dir, PARTIAL) || temp_exists(&f->dir, SEALED ".recovering"));
	temp_dir_empty(&f->dir);
	/* One of another segment does not. */
	temp_write(&f->dir, SMALL_RECORDING "-00001.byu.lz4.partial", f->segment.bytes,
		f->segment.index_at);
	assert_string_equal(start(f, 0), "");
	assert_int_equal(temp_dir_empty(&f->dir), 1);
}

TEST_F(a_torn_end_needs_no_original)
{
	size_t last = f->segment.chunks[SMALL_CHUNKS - 1].end;

	temp_write(&f->dir, PARTIAL, f->segment.bytes, last - 1);
	assert_non_null(
		strstr(start(f, 1), "recovered 37 records; torn: lost 9 in the last chunk"));
	assert_int_equal(count_chunks(f, SEALED), CHUNKS_WITH_RECORDS - 1);
	assert_false(temp_exists(&f->dir, PARTIAL) || temp_exists(&f->dir, DAMAGED));

	/* A power cut can leave zeros. */
	temp_dir_empty(&f->dir);
	memset(f->segment.bytes + last, 0, f->segment.size - last);
	temp_write(&f->dir, PARTIAL, f->segment.bytes, f->segment.size);
	assert_non_null(strstr(start(f, 1), "recovered 46 records; torn: lost "));
	assert_false(temp_exists(&f->dir, PARTIAL) || temp_exists(&f->dir, DAMAGED));
}

TEST_F(only_a_file_without_more_than_a_header_is_deleted)
{
	size_t header = f->segment.chunks[0].begin;

	temp_write(&f->dir, PARTIAL, f->segment.bytes, header);
	assert_non_null(strstr(start(f, 0), "empty, deleted"));
	assert_int_equal(temp_dir_empty(&f->dir), 0);
	/* Another file of the recording is ours. */
	for (size_t n = 0; n <= header; n += n + 7 < header ? 7 : 1) {
		make_segment(f, 1, BOOT, "signal");
		temp_write(&f->dir, PARTIAL, f->segment.bytes, n);
		assert_non_null(strstr(start(f, 0), "empty, deleted"));
		assert_int_equal(temp_dir_empty(&f->dir), 1);
	}
	make_segment(f, 1, BOOT, "signal");
	temp_write(&f->dir, PARTIAL, "some text that was never a segment", 34);
	assert_non_null(strstr(start(f, 0), "kept as " DAMAGED));
	assert_same(f, DAMAGED, (const uint8_t *)"some text that was never a segment", 34);
}

TEST_F(an_open_file_next_to_a_sealed_one_is_handled_once)
{
	size_t size = f->segment.index_at;

	/* The sealed file has everything: a run was killed before it deleted the original. */
	temp_write(&f->dir, SEALED, f->segment.bytes, f->segment.size);
	temp_write(&f->dir, PARTIAL, f->segment.bytes, size);
	assert_non_null(strstr(start(f, 0), "already recovered by an earlier run; deleted"));
	assert_false(temp_exists(&f->dir, PARTIAL) || temp_exists(&f->dir, DAMAGED));
	assert_same(f, SEALED, f->segment.bytes, f->segment.size);

	/* It has more records, but not these. Twice, so that .damaged exists already. */
	struct small_segment later;
	small_make(&later, &f->dir, 1, 100);
	for (unsigned i = 0; i < 2; i++) {
		temp_write(&f->dir, PARTIAL, later.bytes, later.index_at);
		assert_non_null(strstr(start(f, 0), "kept as " DAMAGED));
	}
	assert_same(f, SEALED, f->segment.bytes, f->segment.size);
	assert_same(f, DAMAGED, later.bytes, later.index_at);
	assert_same(f, DAMAGED ".2", later.bytes, later.index_at);
	assert_string_equal(start(f, 0), "");
	free(later.bytes);
}

TEST_F(a_file_that_another_program_writes_is_left_alone)
{
	static const char *const names[] = {PARTIAL, SEALED ".recovering"};
	size_t size = f->segment.index_at;

	for (unsigned i = 0; i < 2; i++) {
		temp_write(&f->dir, PARTIAL, f->segment.bytes, size);
		temp_write(&f->dir, names[i], f->segment.bytes, size);
		int fd = openat(f->dir.fd, names[i], O_RDWR | O_CLOEXEC);
		assert_int_equal(flock(fd, LOCK_EX), 0);
		const char *log = start(f, 0);
		assert_true((strstr(log, "another program is writing it") != NULL) == (i == 0));
		assert_same(f, names[i], f->segment.bytes, size);
		close(fd);
		start(f, 1);
		assert_false(temp_exists(&f->dir, names[i]));
		temp_dir_empty(&f->dir);
	}
}

/* The end of a recording */

#define OTHER_BOOT "fedcba9876543210fedcba9876543210"

/* Makes the sealed segment a torn one: without what follows its chunk, and `cut` more bytes. */
static void tear(struct fixture *f, uint32_t number, size_t cut)
{
	char sealed[BC_SEGMENT_NAME_MAX];
	char partial[BC_SEGMENT_NAME_MAX + 16];
	size_t n;

	snprintf(sealed, sizeof(sealed), SMALL_RECORDING "-%05" PRIu32 ".byu.lz4", number);
	snprintf(partial, sizeof(partial), "%s.partial", sealed);
	uint8_t *bytes = temp_read(&f->dir, sealed, &n);
	struct bc_index_head head;
	assert_true(bc_index_head_read(&head, bytes + n - bc_index_bytes(1)));
	temp_write(&f->dir, partial, bytes, head.pages - cut);
	assert_int_equal(unlinkat(f->dir.fd, sealed, 0), 0);
	free(bytes);
}

/* Checks the last chunk of a sealed segment. `reason` NULL: it has no end. `lost` is that of its
 * gap of cause "crash"; UINT64_MAX: it has none. */
static void assert_end(struct fixture *f, uint32_t number, const char *reason, uint64_t lost)
{
	struct bc_recording_end end;
	struct bc_chunk *chunk = malloc(sizeof(*chunk));
	char name[BC_SEGMENT_NAME_MAX];
	bool has_end = false;
	uint64_t gap = UINT64_MAX;
	int found;

	snprintf(name, sizeof(name), SMALL_RECORDING "-%05" PRIu32 ".byu.lz4", number);
	int fd = openat(f->dir.fd, name, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	struct bc_segment_reader *reader = segment_reader_of(fd);
	while ((found = bc_segment_read(reader, chunk)) != BC_FOUND_END) {
		assert_true(found > 0 && found != BC_FOUND_DAMAGE);
		if (found != BC_FOUND_CHUNK)
			continue;
		assert_false(has_end);
		has_end = bc_recording_end_find(&end, chunk);
		for (uint32_t i = 0; i < chunk->info.events; i++) {
			if (chunk->events[i].kind != BC_EVENT_GAP)
				continue;
			assert_int_equal(chunk->events[i].cause, BC_GAP_CRASH);
			assert_false(chunk->events[i].exact);
			gap = chunk->events[i].value;
		}
	}
	assert_true(bc_segment_reader_is_sealed(reader));
	assert_int_equal(has_end, reason != NULL);
	assert_int_equal(gap, lost);
	if (reason != NULL)
		assert_string_equal(end.reason, reason);
	if (gap != UINT64_MAX && chunk->info.first_record != 0) {
		assert_int_equal(end.ended_ns, INT64_C(1795166100002000000));
		assert_string_equal(end.boot_id, BOOT);
	}
	bc_segment_reader_close(reader);
	close(fd);
	free(chunk);
}

TEST_F(a_killed_recording_ends_with_a_gap_of_unknown_size)
{
	make_segment(f, 0, BOOT, NULL);
	make_segment(f, 1, BOOT, NULL);
	tear(f, 1, 0);
	start(f, 1);
	assert_end(f, 0, NULL, UINT64_MAX);
	assert_end(f, 1, "crash", 0);
	assert_string_equal(start(f, 0), "");
}

TEST_F(after_a_power_cut_the_boot_is_another_one)
{
	make_segment(f, 0, OTHER_BOOT, NULL);
	tear(f, 0, 0);
	start(f, 1);
	assert_end(f, 0, "power", 0);
}

TEST_F(a_torn_chunk_counts_in_the_gap)
{
	make_segment(f, 0, BOOT, NULL);
	tear(f, 0, 1);
	assert_non_null(
		strstr(start(f, 1), "recovered 0 records; torn: lost 10 in the last chunk"));
	assert_end(f, 0, "crash", 10);
	assert_false(temp_exists(&f->dir, PARTIAL) || temp_exists(&f->dir, DAMAGED));
}

TEST_F(an_end_that_was_written_stays)
{
	make_segment(f, 0, BOOT, "limit");
	tear(f, 0, 0);
	start(f, 1);
	assert_end(f, 0, "limit", UINT64_MAX);
	assert_string_equal(start(f, 0), "");
}

TEST_F(a_torn_segment_that_another_one_follows_is_not_the_end)
{
	make_segment(f, 0, BOOT, NULL);
	make_segment(f, 1, BOOT, "signal");
	tear(f, 0, 0);
	start(f, 1);
	assert_end(f, 0, NULL, UINT64_MAX);
	assert_end(f, 1, "signal", UINT64_MAX);
}

TEST_F(a_segment_that_cannot_be_read_for_a_moment_follows_the_others_all_the_same)
{
	make_segment(f, 0, BOOT, NULL);
	make_segment(f, 1, BOOT, "signal");
	leased = SMALL_RECORDING "-00001.byu.lz4";
	start(f, 0);
	tear(f, 0, 0);
	start(f, 1);
	leased = "none";
	assert_end(f, 0, NULL, UINT64_MAX);
	assert_end(f, 1, "signal", UINT64_MAX);
	assert_int_equal(temp_dir_empty(&f->dir), 2);
}

TEST_F(a_recording_killed_between_two_segments_gets_another_one)
{
	make_segment(f, 0, BOOT, NULL);
	make_segment(f, 1, OTHER_BOOT, NULL);
	temp_write(&f->dir, SMALL_RECORDING "-00002.byu.lz4.partial", "", 0);
	assert_non_null(strstr(start(f, 1), "recording that was killed"));
	assert_end(f, 1, NULL, UINT64_MAX);
	assert_end(f, 2, "power", 0);
	assert_string_equal(start(f, 0), "");
}

/* The sequence number in the header of one of our segments. */
static uint64_t sequence_of(struct fixture *f, const char *name)
{
	struct bc_segment_header header;
	int fd = openat(f->dir.fd, name, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(bc_segment_header_load(&header, fd), 0);
	close(fd);
	return header.sequence;
}

#define EARLIER_RECORDING "20261119T091500Z-000001"
#define EARLIER           EARLIER_RECORDING "-00000.byu.lz4"
#define LATER_RECORDING   "20261121T091500Z-000003"
#define LATER             LATER_RECORDING "-00000.byu.lz4"

TEST_F(a_recording_recovered_without_its_header_gets_a_sequence)
{
	f->segment.bytes[20] ^= 1;
	/* That of its other segment. */
	make_segment(f, 1, BOOT, "signal");
	temp_write(&f->dir, PARTIAL, f->segment.bytes, f->segment.index_at);
	start(f, 1);
	assert_int_equal(sequence_of(f, SEALED), 7);
	assert_int_equal(f->found.sequence, 7);

	/* Otherwise that of the one before it. The next recording's is above all, even those
	 * without a number. */
	temp_dir_empty(&f->dir);
	make_segment_of(f, EARLIER_RECORDING, 0, BOOT, "signal");
	header_file_make(&f->dir, LATER, 0);
	temp_write(&f->dir, PARTIAL, f->segment.bytes, f->segment.index_at);
	start(f, 1);
	assert_int_equal(sequence_of(f, SEALED), 7);
	assert_int_equal(f->found.sequence, 9);
	assert_string_equal(f->found.newest, SMALL_RECORDING);
}

TEST_F(an_old_recording_recovered_without_its_header_is_not_the_newest)
{
	/* The newest has no end. */
	make_segment_of(f, LATER_RECORDING, 0, BOOT, NULL);
	f->segment.bytes[20] ^= 1;
	temp_write(&f->dir, PARTIAL, f->segment.bytes, f->segment.index_at);
	assert_non_null(strstr(start(f, 2), LATER ": the last segment of a recording that was"));
	assert_int_equal(sequence_of(f, SEALED), 1);
	assert_string_equal(f->found.newest, LATER_RECORDING);
}

TEST_F(a_foreign_file_named_like_a_copy_is_left_alone)
{
	temp_write(&f->dir, "notes-20260.byu.lz4.recovering", "text", 4);
	assert_string_equal(start(f, 0), "");
	assert_true(temp_exists(&f->dir, "notes-20260.byu.lz4.recovering"));
}

TEST_F(a_start_that_was_killed_while_it_ended_a_recording_does_not_block_the_next)
{
	make_segment(f, 0, BOOT, NULL);
	temp_write(&f->dir, SMALL_RECORDING "-00001.byu.lz4.recovering", "x", 1);
	start(f, 1);
	assert_end(f, 1, "crash", 0);
	assert_false(temp_exists(&f->dir, SMALL_RECORDING "-00001.byu.lz4.recovering"));
}

/* More recordings than those whose headers are read: a file has the number to begin above. */
TEST_F(the_number_in_the_file_is_used_only_if_it_is_one)
{
	static const struct {
		const char *text;
		uint64_t sequence;
	} cases[] = {{"5000000000\n", UINT64_C(5000000000)}, {"-5\n", 9}, {"", 9},
		{"18446744073709551615\n", 9}, {"999999999999999999999\n", 9}};
	char name[64];

	for (unsigned i = 0; i < 101; i++) {
		snprintf(name, sizeof(name), "20261101T000000Z-%06u-00000.byu.lz4", i);
		header_file_make(&f->dir, name, 9);
	}
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		temp_write(&f->dir, ".buscapd.sequence", cases[i].text, strlen(cases[i].text));
		start(f, 0);
		assert_int_equal(f->found.sequence, cases[i].sequence + (UINT64_C(1) << 30));
	}
}
