#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xxhash.h>

#include "daemon/base/log.h"
#include "daemon/store/catalogue_listing.h"
#include "daemon/store/last_write.h"
#include "daemon/store/rotator.h"
#include "daemon/store/writer.h"
#include "formats/segment/recover.h"
#include "formats/segment/segment_reader.h"
#include "tests/support/compressor.h"
#include "tests/support/log_capture.h"
#include "tests/support/segments.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

static struct bc_chunk_pages chunk_pages;

TEST_THREADS;

#define OUTPUTS    16u
#define RECORDS    100u
#define RECORDINGS 3u

struct fixture {
	struct temp_dir dir;
	struct bc_queue encoded;
	struct bc_queue outputs;
	struct bc_encoded *all;
	struct bc_catalogue *catalogue;
	struct bc_writer *writer;
	struct bc_recording_info recordings[RECORDINGS];
	uint64_t next_sequence;
	uint64_t next_record[RECORDINGS];
	struct bc_chunk *chunk;
	unsigned marks;                   /* in the next chunk */
	struct bc_writer_notice *notices; /* popped so far */
};

static void on_notices(void *context)
{
	(void)context;
}

static void on_written(void *context, struct bc_encoded *encoded)
{
	bc_queue_push(&((struct fixture *)context)->outputs, encoded);
}

static void set_up(struct fixture *f)
{
	signal(SIGXFSZ, SIG_IGN);
	bc_log_set_level(BC_LOG_ERROR);
	temp_dir_make(&f->dir);
	f->all = malloc(OUTPUTS * sizeof(*f->all));
	f->chunk = malloc(sizeof(*f->chunk));
	assert_non_null(f->all);
	assert_non_null(f->chunk);
	assert_int_equal(bc_catalogue_open(&f->catalogue, f->dir.fd), 0);
	assert_int_equal(bc_catalogue_start(f->catalogue, f->dir.path), 0);
	assert_int_equal(bc_queue_init(&f->encoded, OUTPUTS), 0);
	assert_int_equal(bc_queue_init(&f->outputs, OUTPUTS), 0);
	for (unsigned i = 0; i < OUTPUTS; i++)
		bc_queue_push(&f->outputs, &f->all[i]);
	for (unsigned i = 0; i < RECORDINGS; i++) {
		struct bc_recording_info *r = &f->recordings[i];
		bc_recording_info_init(r);
		snprintf(r->header.recording, sizeof(r->header.recording),
			"20261120T09150%uZ-3f9a2c", i);
		r->tag = bc_recording_tag(r->header.recording);
	}
	struct bc_writer_options options = {
		.dir = f->dir.path,
		.dir_fd = f->dir.fd,
		.catalogue = f->catalogue,
		.rules = {.sync_ns = 1000000},
		.lag_bytes = 1 << 20,
		.encoded = &f->encoded,
		.encoded_max = OUTPUTS,
		.on_written = on_written,
		.on_notices = on_notices,
		.context = f,
	};
	assert_int_equal(bc_writer_start(&f->writer, &options), 0);
}

static void tear_down(struct fixture *f)
{
	bc_writer_stop(f->writer);
	bc_catalogue_stop(f->catalogue);
	bc_writer_notices_free(f->notices);
	for (unsigned i = 0; i < RECORDINGS; i++)
		bc_recording_info_destroy(&f->recordings[i]);
	bc_queue_destroy(&f->encoded);
	bc_queue_destroy(&f->outputs);
	free(f->all);
	free(f->chunk);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

enum { CUT = 1, LAST = 2, EMPTY = 4, NO_RECORDS = 8 };

/* Encodes a chunk of RECORDS records, or of NO_RECORDS, with a gap of `gap` samples if not 0, or an
 * EMPTY one. */
static struct bc_encoded *encode_chunk(
	struct fixture *f, unsigned recording, unsigned flags, uint64_t gap)
{
	struct bc_encoded *e = bc_queue_pop(&f->outputs);
	struct bc_chunk *chunk = f->chunk;
	uint32_t records = (flags & NO_RECORDS) != 0 ? 0 : RECORDS;

	bc_chunk_reset(chunk, 0, 0);
	memset(chunk->records, (int)recording + 1, records * BC_RECORD_BYTES);
	chunk->info.records = records;
	chunk->info.recording_tag = f->recordings[recording].tag;
	chunk->info.first_record = f->next_record[recording];
	chunk->info.wall_ns = 1000 + (int64_t)f->next_record[recording];
	f->next_record[recording] += records;
	struct bc_event event = {
		.kind = BC_EVENT_GAP, .cause = BC_GAP_BOARD, .exact = true, .value = gap};
	if (gap != 0)
		assert_true(bc_chunk_add_event(chunk, &event, NULL));
	event = (struct bc_event){.kind = BC_EVENT_MARK, .position = records};
	for (; f->marks != 0; f->marks--)
		assert_true(bc_chunk_add_event(chunk, &event, NULL));
	memset(e, 0, offsetof(struct bc_encoded, room));
	e->data = e->room;
	e->loss = bc_chunk_loss(chunk);
	bc_losses_add_chunk(&e->losses, chunk);
	e->bytes = bc_chunk_encode(
		e->data, chunk, &test_compressor, &chunk_pages, &e->header_bytes);
	if ((flags & EMPTY) != 0)
		e->bytes = 0;
	e->info = chunk->info;
	e->recording = &f->recordings[recording];
	e->cut_after = (flags & (CUT | LAST | EMPTY)) != 0;
	e->is_last = (flags & LAST) != 0;
	return e;
}

/* Queues such a chunk. */
static void write_chunk(struct fixture *f, unsigned recording, unsigned flags, uint64_t gap)
{
	struct bc_encoded *e = encode_chunk(f, recording, flags, gap);

	e->sequence = f->next_sequence++;
	bc_queue_push(&f->encoded, e);
}

static struct bc_writer_stats read_stats(struct fixture *f)
{
	struct bc_writer_stats stats;

	bc_writer_notices_append(&f->notices, bc_writer_pop_notices(f->writer, &stats));
	return stats;
}

/* Waits for the given total number of notices without WRITTEN. Returns the first. */
static const struct bc_writer_notice *wait_notices(struct fixture *f, unsigned wanted)
{
	for (;;) {
		unsigned count = 0;
		(void)read_stats(f);
		for (struct bc_writer_notice **n = &f->notices; *n != NULL;) {
			struct bc_writer_notice *written = *n;
			if (written->kind != BC_NOTICE_WRITTEN) {
				count++;
				n = &written->next;
				continue;
			}
			*n = written->next;
			free(written);
		}
		assert_true(count <= wanted);
		if (count == wanted)
			return f->notices;
		usleep(1000);
	}
}

static void assert_kinds(const struct bc_writer_notice *n,
	const struct bc_recording_info *recording, const enum bc_writer_notice_kind *kinds,
	size_t count)
{
	for (size_t i = 0; i < count; i++, n = n->next) {
		assert_non_null(n);
		assert_int_equal(n->kind, kinds[i]);
		assert_ptr_equal(n->recording, recording);
	}
}

static void assert_sealed(struct fixture *f, const struct bc_writer_notice *n)
{
	char expected[BC_FILE_HASH_CHARS];
	size_t bytes;
	uint8_t *all = temp_read(&f->dir, n->file, &bytes);
	XXH128_hash_t hash = XXH3_128bits(all, bytes);

	free(all);
	snprintf(expected, sizeof(expected), "%016llx%016llx", (unsigned long long)hash.high64,
		(unsigned long long)hash.low64);
	assert_string_equal(n->hash, expected);
	assert_int_equal(n->bytes, bytes);
}

TEST_F(notices_report_each_segment_and_the_recording)
{
	static const enum bc_writer_notice_kind kinds[] = {BC_NOTICE_OPENED, BC_NOTICE_SEALED,
		BC_NOTICE_OPENED, BC_NOTICE_SEALED, BC_NOTICE_ENDED};

	write_chunk(f, 0, 0, 7);
	write_chunk(f, 0, CUT, 0);
	write_chunk(f, 0, LAST, 5);
	const struct bc_writer_notice *n = wait_notices(f, 5);
	assert_kinds(n, &f->recordings[0], kinds, 5);
	assert_int_equal(n->segment, 0);
	assert_int_equal(n->first_record, 0);
	assert_int_equal(n->wall_ns, 1000);
	assert_string_equal(n->file, "20261120T091500Z-3f9a2c-00000.byu.lz4");
	const struct bc_writer_notice *first = n = n->next;
	assert_sealed(f, n);
	assert_int_equal(n->records, 2 * RECORDS);
	assert_int_equal(n->chunks, 2);
	assert_int_equal(n->loss.gaps, 1);
	assert_int_equal(n->loss.lost, 7);
	n = n->next;
	assert_int_equal(n->segment, 1);
	assert_int_equal(n->first_record, 2 * RECORDS);
	assert_int_equal(n->wall_ns, 1000 + 2 * RECORDS);
	const struct bc_writer_notice *second = n = n->next;
	assert_sealed(f, n);
	assert_int_equal(n->loss.lost, 5);
	n = n->next;
	assert_int_equal(n->segments, 2);
	assert_int_equal(n->left_open, 0);
	assert_int_equal(n->records, 3 * RECORDS);
	assert_int_equal(n->chunks, 3);
	assert_int_equal(n->loss.gaps, 2);
	assert_int_equal(n->loss.lost, 12);
	assert_int_equal(n->bytes, first->bytes + second->bytes);
	assert_string_equal(n->file, second->file);
	assert_null(n->next);
}

TEST_F(a_segment_deleted_by_a_rule_is_no_longer_named)
{
	struct bc_writer_rules rules = {.sync_ns = 1000000};
	struct bc_writer_stats stats;

	write_chunk(f, 0, CUT, 0);
	const struct bc_writer_notice *sealed = wait_notices(f, 2)->next;
	stats = read_stats(f);
	assert_string_equal(stats.file, sealed->file);
	rules.space.max_age_ns = 1;
	bc_writer_set_rules(f->writer, &rules);
	for (int i = 0; i < 10000 && stats.file[0] != '\0'; i++) {
		usleep(1000);
		stats = read_stats(f);
	}
	assert_string_equal(stats.file, "");
	assert_int_equal(faccessat(f->dir.fd, sealed->file, F_OK, 0), -1);
	/* The recording still counts its records. */
	assert_int_equal(stats.recording_records, RECORDS);
	write_chunk(f, 0, LAST | EMPTY, 0);
	/* The recording's end needs another segment. */
	const struct bc_writer_notice *end = wait_notices(f, 5)->next->next->next;
	assert_int_equal(end->kind, BC_NOTICE_SEALED);
	assert_int_equal(end->records, 0);
	const struct bc_writer_notice *ended = end->next;
	assert_int_equal(ended->kind, BC_NOTICE_ENDED);
	assert_int_equal(ended->records, RECORDS);
	assert_true(ended->file[0] == '\0' || strcmp(ended->file, end->file) == 0);
}

TEST_F(consecutive_recordings_are_kept_apart)
{
	static const enum bc_writer_notice_kind kinds[] = {
		BC_NOTICE_OPENED, BC_NOTICE_SEALED, BC_NOTICE_ENDED};
	struct bc_writer_stats stats;

	for (unsigned i = 0; i < RECORDINGS; i++) {
		for (unsigned chunk = 0; chunk <= i; chunk++)
			write_chunk(f, i, chunk == i ? LAST : 0, 0);
	}
	const struct bc_writer_notice *n = wait_notices(f, 3 * RECORDINGS);
	for (unsigned i = 0; i < RECORDINGS; i++) {
		assert_kinds(n, &f->recordings[i], kinds, 3);
		assert_int_equal(n->segment, 0);
		assert_sealed(f, n->next);
		n = n->next->next;
		assert_int_equal(n->records, (i + 1) * RECORDS);
		assert_int_equal(n->segments, 1);
		n = n->next;
	}
	stats = read_stats(f);
	assert_int_equal(stats.recording_tag, f->recordings[RECORDINGS - 1].tag);
	assert_int_equal(stats.recording_records, RECORDINGS * RECORDS);
	assert_int_equal(stats.written, 6 * RECORDS);
	assert_int_equal(stats.durable, 6 * RECORDS);
	assert_int_equal(stats.sealed, RECORDINGS);
}

TEST_F(each_recording_has_its_own_limit)
{
	struct bc_writer_stats stats;

	f->recordings[0].stop_bytes = 1;
	write_chunk(f, 0, 0, 0);
	write_chunk(f, 0, 0, 3); /* after stop_bytes */
	write_chunk(f, 0, LAST, 4);
	write_chunk(f, 1, 0, 5);
	write_chunk(f, 1, LAST, 0);
	const struct bc_writer_notice *n = wait_notices(f, 6);
	n = n->next->next;
	assert_int_equal(n->kind, BC_NOTICE_ENDED);
	assert_true(n->is_full);
	assert_int_equal(n->records, RECORDS);
	assert_int_equal(bc_losses_sum(&n->discarded).gaps, 2);
	assert_int_equal(bc_losses_sum(&n->discarded).lost, 7);
	n = n->next->next->next;
	assert_int_equal(n->kind, BC_NOTICE_ENDED);
	assert_false(n->is_full);
	assert_int_equal(n->records, 2 * RECORDS);
	assert_int_equal(bc_losses_sum(&n->discarded).gaps, 0);
	stats = read_stats(f);
	assert_int_equal(stats.unrecorded, 2 * RECORDS);
	assert_false(stats.is_full);
}

/* Returns the reason of the end in a sealed segment, or "" if it has none. */
static const char *end_of(struct fixture *f, const char *file)
{
	static struct bc_recording_end end;
	int fd = openat(f->dir.fd, file, O_RDONLY | O_CLOEXEC);
	bool has_end = false;
	int found;

	struct bc_segment_reader *reader = segment_reader_of(fd);
	while ((found = bc_segment_read(reader, f->chunk)) > BC_FOUND_END) {
		assert_int_not_equal(found, BC_FOUND_DAMAGE);
		if (found != BC_FOUND_CHUNK)
			continue;
		assert_false(has_end); /* nothing follows it */
		has_end = bc_recording_end_find(&end, f->chunk);
	}
	bc_segment_reader_close(reader);
	close(fd);
	return has_end ? end.reason : "";
}

static void set_end(struct fixture *f, unsigned recording, const char *reason)
{
	strcpy(f->recordings[recording].end.reason, reason);
}

TEST_F(only_the_last_chunk_of_a_recording_has_its_end)
{
	set_end(f, 0, "request");
	write_chunk(f, 0, CUT, 0);
	write_chunk(f, 0, 0, 0);
	write_chunk(f, 0, LAST, 5);
	const struct bc_writer_notice *n = wait_notices(f, 5);
	assert_string_equal(end_of(f, n->file), "");
	n = n->next->next->next;
	assert_string_equal(end_of(f, n->file), "request");
	assert_int_equal(n->chunks, 2);
	assert_int_equal(n->loss.gaps, 1);
}

TEST_F(a_recording_without_a_chunk_has_no_file)
{
	set_end(f, 0, "request");
	write_chunk(f, 0, LAST | EMPTY, 0);
	assert_int_equal(wait_notices(f, 1)->kind, BC_NOTICE_ENDED);
	char *names[TEMP_NAMES];
	assert_int_equal(temp_list(&f->dir, "", "", names), 0);
}

TEST_F(a_recording_that_reached_its_limit_has_its_end)
{
	set_end(f, 0, "limit");
	f->recordings[0].stop_bytes = 1;
	write_chunk(f, 0, 0, 0);
	write_chunk(f, 0, LAST, 0); /* discarded, except for the end */
	const struct bc_writer_notice *n = wait_notices(f, 3)->next;
	assert_int_equal(n->records, RECORDS);
	assert_int_equal(n->chunks, 2);
	assert_string_equal(end_of(f, n->file), "limit");
}

TEST_F(a_full_event_table_does_not_hide_the_end)
{
	set_end(f, 0, "signal");
	f->marks = BC_CHUNK_EVENTS;
	write_chunk(f, 0, LAST, 0);
	const struct bc_writer_notice *n = wait_notices(f, 3)->next;
	assert_int_equal(n->chunks, 2);
	assert_string_equal(end_of(f, n->file), "signal");
}

static void wait_stuck(struct fixture *f)
{
	struct bc_writer_stats stats = {.is_stuck = false};

	while (!stats.is_stuck) {
		usleep(1000);
		stats = read_stats(f);
	}
}

TEST_F(abandon_affects_only_its_recording)
{
	struct bc_writer_stats stats;

	set_file_limit(10);
	write_chunk(f, 0, 0, 0);
	write_chunk(f, 0, LAST, 0);
	write_chunk(f, 1, LAST, 0);
	wait_stuck(f);
	bc_writer_abandon(f->writer, &f->recordings[0]);
	const struct bc_writer_notice *n = wait_notices(f, 1);
	set_file_limit(RLIM_INFINITY);
	assert_int_equal(n->kind, BC_NOTICE_ENDED);
	assert_ptr_equal(n->recording, &f->recordings[0]);
	assert_int_equal(n->abandoned, 2 * RECORDS);
	assert_int_equal(n->records, 0);
	assert_string_equal(n->file, "");
	n = wait_notices(f, 4)->next;
	assert_ptr_equal(n->recording, &f->recordings[1]);
	assert_sealed(f, n->next);
	assert_int_equal(n->next->next->abandoned, 0);
	stats = read_stats(f);
	assert_int_equal(stats.abandoned, 2 * RECORDS);
	assert_int_equal(stats.written, RECORDS);
}

TEST_F(abandon_after_the_end_has_no_effect)
{
	struct bc_segment_name name = {.segment = 0};
	char file[BC_SEGMENT_NAME_MAX];

	strcpy(name.recording, f->recordings[0].header.recording);
	write_chunk(f, 0, LAST, 0);
	bc_segment_name_write(file, &name);
	while (faccessat(f->dir.fd, file, F_OK, 0) != 0)
		usleep(100);
	/* ENDED is queued or about to be, but not popped. */
	bc_writer_abandon(f->writer, &f->recordings[0]);
	write_chunk(f, 1, LAST, 0);
	const struct bc_writer_notice *n = wait_notices(f, 6);
	assert_int_equal(n->next->next->abandoned, 0);
	assert_int_equal(n->next->next->next->next->next->records, RECORDS);
}

TEST_F(a_note_is_in_later_segments)
{
	struct bc_segment_header header;
	char note[BC_METADATA_MAX];
	char err[128];

	write_chunk(f, 0, CUT, 0);
	wait_notices(f, 2);
	assert_true(bc_recording_info_note(
		&f->recordings[0], "{\"run\":\"7\"}", note, err, sizeof(err)));
	write_chunk(f, 0, LAST, 0);
	const struct bc_writer_notice *n = wait_notices(f, 5);
	for (int i = 0; i < 2; i++, n = n->next->next) {
		size_t size;
		uint8_t *bytes = temp_read(&f->dir, n->next->file, &size);
		const uint8_t *frame = bytes + BC_EMPTY_FRAME_BYTES;
		assert_true(bc_segment_header_read(&header, frame, bc_segment_header_bytes(frame)));
		assert_string_equal(header.metadata, i == 0 ? "" : "{\"run\":\"7\"}");
		free(bytes);
	}
}

TEST_F(an_unsealed_segment_is_counted)
{
	temp_write(&f->dir, "20261120T091500Z-3f9a2c-00001.byu.lz4", "mine", 4);
	write_chunk(f, 0, 0, 3);
	wait_notices(f, 1);
	/* It can't be sealed if its name exists. */
	temp_write(&f->dir, "20261120T091500Z-3f9a2c-00000.byu.lz4", "mine", 4);
	write_chunk(f, 0, LAST, 4);
	const struct bc_writer_notice *n = wait_notices(f, 2)->next;
	assert_int_equal(n->kind, BC_NOTICE_ENDED);
	assert_int_equal(n->segments, 0);
	assert_int_equal(n->left_open, 1);
	assert_int_equal(n->records, 2 * RECORDS);
	assert_int_equal(n->loss.lost, 7);
	assert_true(temp_exists(&f->dir, "20261120T091500Z-3f9a2c-00000.byu.lz4.partial"));
}

TEST_F(a_number_whose_name_exists_is_skipped)
{
	/* As a failing disk leaves it, on which a new file could not be deleted either. */
	temp_write(&f->dir, "20261120T091500Z-3f9a2c-00000.byu.lz4.partial", "mine", 4);
	write_chunk(f, 0, LAST, 0);
	const struct bc_writer_notice *n = wait_notices(f, 3);
	assert_int_equal(n->kind, BC_NOTICE_OPENED);
	assert_int_equal(n->segment, 1);
	assert_int_equal(n->next->kind, BC_NOTICE_SEALED);
	assert_int_equal(n->next->records, RECORDS);
	assert_int_equal(n->next->next->kind, BC_NOTICE_ENDED);
	assert_true(temp_exists(&f->dir, "20261120T091500Z-3f9a2c-00001.byu.lz4"));
}

/* The rotator, without the writer's thread */

static void start_rotator(struct fixture *f, struct bc_rotator *r)
{
	const struct bc_writer_options options = {
		.dir = f->dir.path,
		.dir_fd = f->dir.fd,
		.catalogue = f->catalogue,
		.rules = {.sync_ns = UINT64_MAX / 2},
		.lag_bytes = 1 << 20,
		.encoded = &f->encoded,
	};

	assert_true(bc_catalogue_wait(f->catalogue, UINT64_C(60000000000)));
	assert_int_equal(bc_rotator_init(r, &options), 0);
	assert_true(bc_rotator_start(r, &f->recordings[0]));
	bc_rotator_maintain(r, false);
}

/* Waits until the sealer has done everything. */
static void wait_for_sealer(struct bc_rotator *r)
{
	while (r->sealing != 0 || r->is_syncing || r->is_checking) {
		usleep(100);
		bc_rotator_take(r);
	}
}

static void end_rotator(struct bc_rotator *r)
{
	bc_rotator_close(r);
	bc_rotator_destroy(r);
}

TEST_F(new_segments_do_not_delay_the_maintenance)
{
	struct bc_rotator r;

	start_rotator(f, &r);
	uint64_t due_ns = bc_rotator_due_ns(&r);
	for (int i = 0; i < 3; i++) {
		assert_true(bc_rotator_write(&r, encode_chunk(f, 0, 0, 0)));
		assert_true(bc_rotator_cut(&r));
		assert_int_equal(bc_rotator_due_ns(&r), due_ns);
	}
	end_rotator(&r);
}

TEST_F(a_lower_number_of_files_applies_at_the_next_check)
{
	struct bc_rotator r;

	start_rotator(f, &r);
	r.rules.rotation.files = 3;
	for (int i = 0; i < 3; i++) {
		assert_true(bc_rotator_write(&r, encode_chunk(f, 0, 0, 0)));
		if (i != 2)
			assert_true(bc_rotator_cut(&r));
	}
	r.check_at_ns = 0;
	bc_rotator_maintain(&r, false);
	wait_for_sealer(&r);
	assert_int_equal(r.stats.segments, 3);
	r.rules.rotation.files = 2;
	r.check_at_ns = 0;
	bc_rotator_maintain(&r, false);
	wait_for_sealer(&r);
	assert_int_equal(r.stats.segments, 2);
	assert_false(temp_exists(&f->dir, "20261120T091500Z-3f9a2c-00000.byu.lz4"));
	end_rotator(&r);
}

TEST_F(chunks_without_records_are_synced)
{
	struct bc_rotator r;

	start_rotator(f, &r);
	for (int i = 0; i < 2; i++) {
		unsigned flags = i == 0 ? 0 : NO_RECORDS;
		assert_true(bc_rotator_write(&r, encode_chunk(f, 0, flags, 7)));
		assert_int_not_equal(r.segment.file.durable, r.segment.file.bytes);
		r.sync_at_ns = 0;
		assert_int_equal(bc_rotator_due_ns(&r), 0);
		bc_rotator_maintain(&r, false);
		wait_for_sealer(&r);
		assert_int_equal(r.segment.file.durable, r.segment.file.bytes);
		assert_int_equal(r.stats.durable, RECORDS);
		assert_int_not_equal(bc_rotator_due_ns(&r), 0);
	}
	end_rotator(&r);
}

TEST_F(written_gaps_are_not_given_up_with_the_end)
{
	struct bc_rotator r;

	start_rotator(f, &r);
	assert_true(bc_rotator_write(&r, encode_chunk(f, 0, 0, 0)));
	f->marks = BC_CHUNK_EVENTS - 1;
	struct bc_encoded *e = encode_chunk(f, 0, LAST, 7);
	/* Its events leave no room for the end, and the disk none for a chunk after it. */
	r.rules.space.keep_free_bytes = UINT64_MAX / 2;
	r.space_checked_at = r.stats.bytes;
	r.space_left = e->bytes + bc_segment_end_bytes(&r.segment, 1);
	assert_false(bc_rotator_write(&r, e));
	assert_int_equal(e->state, BC_ENCODED_END);
	bc_rotator_give_up(&r, e);
	wait_for_sealer(&r);
	assert_int_equal(r.total->loss.gaps, 1);
	assert_int_equal(r.total->loss.lost, 7);
	assert_int_equal(r.total->records, 2 * RECORDS);
	assert_int_equal(r.total->segments, 2);
	end_rotator(&r);
}

TEST_F(an_empty_segment_is_not_written_to_below_keep_free)
{
	struct bc_segment_header header;
	struct bc_rotator r;

	start_rotator(f, &r);
	bc_recording_info_header(&f->recordings[0], &header);
	header.segment = 0;
	r.complete = calloc(1, sizeof(*r.complete));
	assert_non_null(r.complete);
	r.complete->notice = calloc(1, sizeof(*r.complete->notice));
	assert_non_null(r.complete->notice);
	assert_int_equal(
		bc_segment_create(&r.segment, f->dir.fd, "20261120T091500Z-3f9a2c-00000.byu.lz4",
			BC_PARTIAL_SUFFIX, &header),
		0);
	r.rules.space.keep_free_bytes = UINT64_MAX / 2;
	r.check_at_ns = 0;
	bc_rotator_maintain(&r, true);
	struct bc_encoded *e = encode_chunk(f, 0, 0, 0);
	assert_false(bc_rotator_write(&r, e));
	r.rules.space.keep_free_bytes = 0;
	assert_true(bc_rotator_write(&r, e));
	end_rotator(&r);
}

static atomic_int sync_error;

int fdatasync(int fd)
{
	if (sync_error == 0)
		return (int)syscall(SYS_fdatasync, fd);
	errno = sync_error;
	return -1;
}

/* The file system of this directory was lost. */
static atomic_int lost_fd = -1;
static atomic_int lost_error;

int openat(int dir_fd, const char *name, int flags, ...)
{
	va_list args;

	va_start(args, flags);
	mode_t mode = (flags & O_CREAT) != 0 ? va_arg(args, mode_t) : 0;
	va_end(args);
	if (dir_fd != lost_fd)
		return (int)syscall(SYS_openat, dir_fd, name, flags, mode);
	errno = lost_error;
	return -1;
}

int faccessat(int dir_fd, const char *name, int mode, int flags)
{
	(void)flags;
	if (dir_fd != lost_fd)
		return (int)syscall(SYS_faccessat, dir_fd, name, mode);
	errno = lost_error;
	return -1;
}

TEST_F(a_lost_directory_is_opened_again_by_its_path)
{
	static const int errors[] = {ENOTCONN, ESTALE, EIO, EROFS, ENXIO, EACCES};
	struct bc_writer_options options = {
		.catalogue = f->catalogue,
		.rules = {.sync_ns = UINT64_MAX / 2},
		.lag_bytes = 1 << 20,
		.encoded = &f->encoded,
	};

	for (unsigned i = 0; i < 2 * COUNT_OF(errors); i++) {
		bool is_idle = i % 2 == 1; /* nothing is created in it */
		struct temp_dir lost;
		struct temp_dir back;
		struct bc_rotator r;
		temp_dir_make(&lost);
		temp_dir_make(&back);
		options.dir = lost.path;
		options.dir_fd = lost.fd;
		assert_int_equal(bc_rotator_init(&r, &options), 0);
		assert_true(bc_rotator_start(&r, &f->recordings[0]));
		bc_rotator_maintain(&r, false);
		wait_for_sealer(&r);
		f->next_record[0] = 0;
		struct bc_encoded *e = encode_chunk(f, 0, 0, 0);
		lost_error = errors[i / 2];
		lost_fd = lost.fd;
		assert_false(bc_rotator_write(&r, e)); /* it still has its path */
		assert_int_equal(
			renameat2(AT_FDCWD, lost.path, AT_FDCWD, back.path, RENAME_EXCHANGE), 0);
		r.check_at_ns = 0;
		if (is_idle)
			bc_rotator_maintain(&r, false);
		assert_true(is_idle == (r.dir_fd != lost.fd));
		assert_true(bc_rotator_write(&r, e));
		assert_false(r.stats.is_stuck);
		assert_true(bc_is_being_written(back.fd)); /* it is locked, too */
		lost_fd = -1;
		bc_queue_push(&f->outputs, e);
		end_rotator(&r);
		assert_int_equal(bc_catalogue_set_dir(f->catalogue, f->dir.fd), 0);
		assert_int_equal(
			renameat2(AT_FDCWD, lost.path, AT_FDCWD, back.path, RENAME_EXCHANGE), 0);
		assert_true(temp_dir_empty(&back) >= 1);
		temp_dir_remove(&lost);
		temp_dir_remove(&back);
	}
}

TEST_F(what_an_error_left_open_is_sealed_when_the_disk_works_again)
{
	static const char first[] = "20261120T091500Z-3f9a2c-00000.byu.lz4";
	struct bc_rotator r;

	start_rotator(f, &r);
	r.rules.sync_ns = 1;
	sync_error = EIO;
	assert_true(bc_rotator_write(&r, encode_chunk(f, 0, 0, 3)));
	r.sync_at_ns = 0;
	bc_rotator_maintain(&r, false);
	wait_for_sealer(&r);
	assert_int_equal(r.stats.unsealed, 1);
	assert_false(temp_exists(&f->dir, first));
	sync_error = 0;
	assert_true(bc_rotator_write(&r, encode_chunk(f, 0, 0, 0)));
	while (temp_exists(&f->dir, "20261120T091500Z-3f9a2c-00000.byu.lz4.partial"))
		usleep(1000);
	assert_true(temp_exists(&f->dir, first));
	assert_true(temp_exists(&f->dir, "20261120T091500Z-3f9a2c-00001.byu.lz4.partial"));
	end_rotator(&r);
}

TEST_F(only_what_was_written_ends_being_stuck)
{
	struct log_capture log;
	struct bc_rotator r;

	start_rotator(f, &r);
	bc_log_set_level(BC_LOG_NOTICE);
	set_file_limit(10);
	struct bc_encoded *e = encode_chunk(f, 0, 0, 0);
	assert_false(bc_rotator_write(&r, e));
	log_capture_start(&log);
	bc_rotator_give_up(&r, e);
	/* Nothing waits, no rule is broken, and the disk still accepts nothing. */
	r.check_at_ns = 0;
	bc_rotator_maintain(&r, false);
	assert_null(strstr(log_capture_stop(&log), "writing again"));
	assert_true(r.stats.is_stuck);
	log_capture_start(&log);
	set_file_limit(RLIM_INFINITY);
	r.check_at_ns = 0;
	bc_rotator_maintain(&r, false);
	assert_non_null(strstr(log_capture_stop(&log), "writing again after "));
	assert_false(r.stats.is_stuck);
	end_rotator(&r);
}

#define FILE_LIMIT 48000u

static void write_plain(struct fixture *f, struct bc_rotator *r)
{
	struct bc_encoded *e = encode_chunk(f, 0, 0, 0);

	assert_true(bc_rotator_write(r, e));
	bc_queue_push(&f->outputs, e);
}

TEST_F(segments_are_sealed_below_a_limit_of_their_size)
{
	struct bc_rotator r;

	set_file_limit(FILE_LIMIT);
	start_rotator(f, &r);
	for (int i = 0; i < 200; i++)
		write_plain(f, &r);
	assert_true(bc_rotator_cut(&r));
	wait_for_sealer(&r);
	assert_true(r.total->segments > 2);
	assert_int_equal(r.total->records, 200 * RECORDS);
	assert_int_equal(r.total->left_open, 0);
	assert_int_equal(r.stats.unsealed, 0);
	end_rotator(&r);
	set_file_limit(RLIM_INFINITY);
}

TEST_F(a_killed_segment_is_recovered_below_the_limit_of_its_size)
{
	const struct bc_recover_options options = {.boot_id = ""};
	struct bc_recovered recovered;
	struct bc_rotator r;

	set_file_limit(FILE_LIMIT);
	start_rotator(f, &r);
	while (r.next_number < 2)
		write_plain(f, &r);
	wait_for_sealer(&r);
	uint64_t chunks = r.total->chunks;
	end_rotator(&r);
	temp_dir_empty(&f->dir);
	/* Write as many as fit, then stop without sealing. */
	start_rotator(f, &r);
	for (uint64_t i = 0; i < chunks; i++)
		write_plain(f, &r);
	assert_int_equal(r.segment.chunks, chunks);
	end_rotator(&r);
	int fd = openat(
		f->dir.fd, "20261120T091500Z-3f9a2c-00000.byu.lz4.partial", O_RDONLY | O_CLOEXEC);
	assert_int_equal(bc_recover(&recovered, fd, f->dir.fd,
				 "20261120T091500Z-3f9a2c-00000.byu.lz4", &options),
		0);
	assert_int_equal(recovered.chunks, chunks + 1); /* and the end */
	close(fd);
	set_file_limit(RLIM_INFINITY);
}

TEST_F(a_chunk_above_the_limit_of_a_file_is_an_error)
{
	struct bc_encoded *e = encode_chunk(f, 0, 0, 0);
	struct bc_rotator r;

	set_file_limit(2000);
	start_rotator(f, &r);
	assert_false(bc_rotator_write(&r, e));
	assert_true(r.stats.is_stuck);
	assert_non_null(strstr(r.stats.error, "File too large"));
	set_file_limit(RLIM_INFINITY);
	assert_true(bc_rotator_write(&r, e));
	end_rotator(&r);
}
