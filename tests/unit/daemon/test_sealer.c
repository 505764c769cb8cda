/* The sealer, driven by the rotator: what the writer does while the disk is slow, fails or is full.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/store/catalogue_listing.h"
#include "daemon/store/rotator.h"
#include "tests/support/compressor.h"
#include "tests/support/log_capture.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

TEST_THREADS;

#define RECORDS 100u
#define ID      "20261120T091500Z-3f9a2c"

/* The disk */

static atomic_bool is_held; /* syncs do not return */
static atomic_uint syncs;   /* begun */
static atomic_uint failing; /* this many of the next syncs fail */
static atomic_bool is_full;
static atomic_bool is_unlink_held; /* deletions do not return */

int unlinkat(int dir_fd, const char *name, int flags)
{
	while (atomic_load(&is_unlink_held))
		usleep(100);
	return (int)syscall(SYS_unlinkat, dir_fd, name, flags);
}

int fdatasync(int fd)
{
	atomic_fetch_add(&syncs, 1);
	while (atomic_load(&is_held))
		usleep(100);
	if (atomic_load(&failing) == 0)
		return (int)syscall(SYS_fdatasync, fd);
	atomic_fetch_sub(&failing, 1);
	errno = EIO;
	return -1;
}

ssize_t pwrite(int fd, const void *data, size_t count, off_t offset)
{
	if (!atomic_load(&is_full))
		return syscall(SYS_pwrite64, fd, data, count, offset);
	errno = ENOSPC;
	return -1;
}

struct fixture {
	struct temp_dir dir;
	struct bc_catalogue *catalogue;
	struct bc_recording_info recording;
	struct bc_queue encoded;
	struct bc_rotator r;
	struct bc_encoded *e;
	struct log_capture log;
};

static void set_up(struct fixture *f)
{
	struct bc_chunk *chunk = calloc(1, sizeof(*chunk));

	atomic_store(&is_held, false);
	atomic_store(&failing, 0);
	atomic_store(&is_full, false);
	atomic_store(&is_unlink_held, false);
	temp_dir_make(&f->dir);
	assert_int_equal(bc_queue_init(&f->encoded, 1), 0);
	assert_int_equal(bc_catalogue_open(&f->catalogue, f->dir.fd), 0);
	assert_int_equal(bc_catalogue_refresh(f->catalogue), 0);
	const struct bc_writer_options options = {
		.dir = f->dir.path,
		.dir_fd = f->dir.fd,
		.catalogue = f->catalogue,
		.rules = {.sync_ns = 1},
		.lag_bytes = 1,
		.encoded = &f->encoded,
	};
	assert_int_equal(bc_rotator_init(&f->r, &options), 0);
	bc_recording_info_init(&f->recording);
	strcpy(f->recording.header.recording, ID);
	f->recording.tag = bc_recording_tag(ID);
	assert_true(bc_rotator_start(&f->r, &f->recording));
	f->e = calloc(1, sizeof(*f->e));
	assert_non_null(chunk);
	assert_non_null(f->e);
	bc_chunk_reset(chunk, 0, 0);
	chunk->info.recording_tag = f->recording.tag;
	chunk->info.records = RECORDS;
	f->e->recording = &f->recording;
	f->e->data = f->e->room;
	f->e->bytes = bc_chunk_encode(
		f->e->data, chunk, &test_compressor, &f->e->pages, &f->e->header_bytes);
	f->e->info = chunk->info;
	free(chunk);
}

static void tear_down(struct fixture *f)
{
	atomic_store(&is_held, false);
	atomic_store(&is_full, false);
	bc_rotator_close(&f->r);
	bc_rotator_destroy(&f->r);
	bc_queue_destroy(&f->encoded);
	bc_catalogue_stop(f->catalogue);
	bc_recording_info_destroy(&f->recording);
	free(f->e);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

static bool write_chunk(struct fixture *f)
{
	f->e->state = BC_ENCODED_CHUNK;
	return bc_rotator_write(&f->r, f->e);
}

static void write_segments(struct fixture *f, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		assert_true(i == 0 || bc_rotator_cut(&f->r));
		assert_true(write_chunk(f));
	}
}

/* Has the open segment synced. Returns when that has begun. */
static void begin_sync(struct fixture *f)
{
	unsigned before = atomic_load(&syncs);

	bc_rotator_maintain(&f->r, true);
	while (atomic_load(&syncs) == before)
		usleep(100);
}

static void wait_until_idle(struct fixture *f)
{
	while (f->r.sealing != 0 || f->r.is_syncing || f->r.is_checking) {
		usleep(100);
		bc_rotator_take(&f->r);
	}
}

static bool has_file(struct fixture *f, unsigned segment, const char *suffix)
{
	char name[128];

	snprintf(name, sizeof(name), ID "-%05u.byu.lz4%s", segment, suffix);
	return temp_exists(&f->dir, name);
}

/* Checks that the SEALED notices are those of segments 0 to `count` - 1, in order. */
static void assert_sealed(struct fixture *f, unsigned count)
{
	unsigned next = 0;

	for (const struct bc_writer_notice *n = f->r.notices; n != NULL; n = n->next) {
		if (n->kind != BC_NOTICE_SEALED)
			continue;
		assert_int_equal(n->segment, next++);
		assert_true(temp_exists(&f->dir, n->file));
	}
	assert_int_equal(next, count);
}

TEST_F(writing_goes_on_while_a_sync_does_not_return)
{
	atomic_store(&is_held, true);
	write_segments(f, 1);
	begin_sync(f);
	write_segments(f, 1);
	for (int i = 0; i < 3; i++) {
		assert_true(bc_rotator_cut(&f->r));
		write_segments(f, 1);
	}
	bc_rotator_take(&f->r);
	assert_int_equal(f->r.stats.written, 5 * RECORDS);
	assert_int_equal(f->r.stats.durable, 0);
	assert_sealed(f, 0);
	/* Four that are not synced are enough. */
	assert_true(bc_rotator_cut(&f->r));
	assert_false(write_chunk(f));
	assert_true(f->r.stats.is_stuck);
	assert_true(f->r.stats.is_behind);
	assert_non_null(strstr(f->r.stats.error, "the ones before are not synced"));
	atomic_store(&is_held, false);
	assert_true(write_chunk(f));
	assert_false(f->r.stats.is_stuck || f->r.stats.is_behind);
	wait_until_idle(f);
	assert_int_equal(f->r.stats.durable, 5 * RECORDS);
	assert_sealed(f, 4);
}

TEST_F(small_segments_may_wait_until_they_fill_the_buffer)
{
	f->r.lag_bytes = 1 << 30;
	atomic_store(&is_held, true);
	write_segments(f, 24);
	assert_true(bc_rotator_cut(&f->r));
	assert_false(write_chunk(f));
	atomic_store(&is_held, false);
	wait_until_idle(f);
	assert_sealed(f, 24);
}

TEST_F(what_is_durable_is_what_was_written_when_the_sync_began)
{
	write_segments(f, 1);
	atomic_store(&is_held, true);
	begin_sync(f);
	assert_true(write_chunk(f));
	atomic_store(&is_held, false);
	wait_until_idle(f);
	assert_int_equal(f->r.stats.durable, RECORDS);
	assert_true(f->r.segment.file.durable < f->r.segment.file.bytes);
	begin_sync(f);
	wait_until_idle(f);
	assert_int_equal(f->r.stats.durable, 2 * RECORDS);
	assert_int_equal(f->r.segment.file.durable, f->r.segment.file.bytes);
}

TEST_F(a_failed_sync_names_all_records_since_the_last_one)
{
	write_segments(f, 1);
	begin_sync(f);
	wait_until_idle(f);
	assert_true(write_chunk(f));
	atomic_store(&failing, 1);
	atomic_store(&is_held, true);
	begin_sync(f);
	assert_true(write_chunk(f)); /* meanwhile */
	atomic_store(&is_held, false);
	log_capture_start(&f->log);
	wait_until_idle(f);
	assert_non_null(strstr(log_capture_stop(&f->log), "its last 200 records may be lost"));
	assert_int_equal(f->r.stats.durable, RECORDS);
	wait_until_idle(f);
	assert_int_equal(f->r.total->left_open, 1);
	assert_int_equal(f->r.total->records, 3 * RECORDS);
	assert_true(has_file(f, 0, ".partial"));
	assert_true(write_chunk(f));
	assert_true(has_file(f, 1, ".partial"));
	/* They are never durable, what comes later is. */
	begin_sync(f);
	wait_until_idle(f);
	assert_int_equal(f->r.stats.durable, 2 * RECORDS);
	assert_int_equal(f->r.stats.written, 4 * RECORDS);
}

TEST_F(a_segment_whose_sync_has_failed_is_not_sealed)
{
	write_segments(f, 1);
	atomic_store(&failing, 1);
	atomic_store(&is_held, true);
	begin_sync(f);
	assert_true(bc_rotator_cut(&f->r));
	write_segments(f, 2);
	assert_true(bc_rotator_cut(&f->r));
	atomic_store(&is_held, false);
	log_capture_start(&f->log);
	wait_until_idle(f);
	assert_non_null(strstr(log_capture_stop(&f->log), "its last 100 records may be lost"));
	assert_true(has_file(f, 0, ".partial"));
	assert_false(has_file(f, 0, ""));
	assert_true(has_file(f, 1, ""));
	assert_true(has_file(f, 2, ""));
	assert_int_equal(f->r.stats.durable, 2 * RECORDS);
	assert_int_equal(f->r.stats.unsealed, 1);
}

TEST_F(a_last_segment_that_stays_open_is_not_named_as_sealed)
{
	write_segments(f, 1);
	atomic_store(&failing, 1);
	assert_true(bc_rotator_cut(&f->r));
	assert_string_equal(f->r.stats.file, ID "-00000.byu.lz4");
	wait_until_idle(f);
	assert_true(has_file(f, 0, ".partial"));
	assert_string_equal(f->r.stats.file, "");
}

TEST_F(without_space_for_its_index_a_segment_waits_to_be_sealed)
{
	write_segments(f, 1);
	atomic_store(&is_full, true);
	assert_false(bc_rotator_cut(&f->r));
	assert_non_null(strstr(f->r.stats.error, "can't seal"));
	atomic_store(&is_full, false);
	assert_true(bc_rotator_cut(&f->r));
	wait_until_idle(f);
	assert_sealed(f, 1);
}

TEST_F(a_recording_ends_when_its_segments_are_sealed)
{
	atomic_store(&is_held, true);
	write_segments(f, 2);
	assert_true(bc_rotator_cut(&f->r));
	bc_rotator_end(&f->r);
	bc_rotator_take(&f->r);
	/* What it has is known before. */
	const struct bc_writer_notice *written = f->r.notices;
	for (; written->next != NULL; written = written->next)
		assert_int_equal(written->kind, BC_NOTICE_OPENED);
	assert_int_equal(written->kind, BC_NOTICE_WRITTEN);
	assert_int_equal(written->records, 2 * RECORDS);
	assert_int_equal(written->bytes, f->r.stats.recording_bytes);
	assert_int_equal(written->segments, 2);
	assert_string_equal(written->file, ID "-00001.byu.lz4");
	atomic_store(&is_held, false);
	wait_until_idle(f);
	assert_sealed(f, 2);
	const struct bc_writer_notice *last = f->r.notices;
	while (last->next != NULL)
		last = last->next;
	assert_int_equal(last->kind, BC_NOTICE_ENDED);
	assert_int_equal(last->segments, 2);
	assert_string_equal(last->file, ID "-00001.byu.lz4");
}

TEST_F(a_limit_that_the_open_segment_reaches_does_not_wait_for_its_sealing)
{
	f->r.lag_bytes = 1 << 20;
	write_segments(f, 1);
	f->r.rules.space.max_use_bytes = f->r.segment.file.bytes + 1;
	bc_rotator_maintain(&f->r, true);
	atomic_store(&is_held, true);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(write_chunk(f));
		assert_false(f->r.stats.is_stuck);
		assert_string_equal(f->r.stats.error, "");
	}
	assert_int_not_equal(f->r.sealing, 0);
	assert_int_equal(f->r.stats.written, 4 * RECORDS);
	atomic_store(&is_held, false);
	wait_until_idle(f);
	/* Now the limit holds again. */
	f->r.check_at_ns = 0;
	bc_rotator_maintain(&f->r, true);
	wait_until_idle(f);
	assert_false(has_file(f, 0, ""));
}

TEST_F(a_file_that_is_being_sealed_is_named_although_a_rule_deletes_another)
{
	write_segments(f, 2);
	wait_until_idle(f);
	f->r.rules.rotation.files = 1;
	atomic_store(&is_unlink_held, true);
	f->r.check_at_ns = 0;
	bc_rotator_maintain(&f->r, true);
	assert_true(f->r.is_checking);
	assert_true(bc_rotator_cut(&f->r));
	atomic_store(&is_held, true);
	atomic_store(&is_unlink_held, false);
	while (f->r.is_checking)
		bc_rotator_take(&f->r);
	assert_int_equal(f->r.check.state.deleted, 1);
	assert_int_equal(f->r.sealing, 1);
	assert_string_equal(f->r.stats.file, ID "-00001.byu.lz4");
	atomic_store(&is_held, false);
	wait_until_idle(f);
	assert_string_equal(f->r.stats.file, ID "-00001.byu.lz4");
}

static void *close_rotator(void *context)
{
	bc_rotator_close(context);
	return NULL;
}

TEST_F(a_stop_waits_for_the_sync_and_says_so)
{
	struct bc_thread_health_seen seen = {.what = ""};
	pthread_t thread;

	atomic_store(&is_held, true);
	write_segments(f, 1);
	assert_int_equal(pthread_create(&thread, NULL, close_rotator, &f->r), 0);
	while (strcmp(seen.what, "syncing") != 0) {
		usleep(100);
		seen = (struct bc_thread_health_seen){.what = ""};
		bc_sealer_poll(f->r.sealer, &seen);
	}
	assert_string_equal(seen.who, "the sealer");
	assert_string_equal(seen.file, ID "-00000.byu.lz4.partial");
	atomic_store(&is_held, false);
	pthread_join(thread, NULL);
	assert_int_equal(f->r.stats.durable, RECORDS);
	assert_true(has_file(f, 0, ".partial"));
	bc_rotator_destroy(&f->r);
	/* For tear_down() */
	const struct bc_writer_options options = {.dir = f->dir.path,
		.dir_fd = f->dir.fd,
		.catalogue = f->catalogue,
		.encoded = &f->encoded};
	assert_int_equal(bc_rotator_init(&f->r, &options), 0);
}
