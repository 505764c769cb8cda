/* Retention goes by the sequence of the recordings. The clock may be wrong. */
#include "daemon/store/retention.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/log.h"
#include "formats/segment/segment_header.h"
#include "tests/support/log_capture.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

#define DAY_NS INT64_C(86400000000000)
#define YEAR   365

/* 2026-11-20 */
#define NOW_NS (INT64_C(1795166100) * 1000000000)

struct fixture {
	struct temp_dir dir;
	struct bc_retention retention;
	struct bc_retention_state state;
	struct bc_retention_rules rules;
	struct bc_retention_check check;
	struct log_capture log;
};

static void set_up(struct fixture *f)
{
	temp_dir_make(&f->dir);
	bc_log_set_level(BC_LOG_NOTICE);
	f->check = (struct bc_retention_check){
		.dir_fd = f->dir.fd, .rules = &f->rules, .wall_ns = NOW_NS, .boot_ns = 1000};
}

static void tear_down(struct fixture *f)
{
	free(f->retention.sequences.known);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

/* Makes a file with only a header, last changed this many days before NOW_NS. */
static void make(
	struct fixture *f, const char *name, const char *recording, uint64_t sequence, int days)
{
	struct bc_segment_header header = {.sequence = sequence};
	int64_t changed_ns = NOW_NS - days * DAY_NS;
	struct timespec times[2] = {{.tv_sec = changed_ns / 1000000000}};
	uint8_t *bytes;
	size_t n;

	times[1] = times[0];
	snprintf(header.recording, sizeof(header.recording), "%s", recording);
	assert_int_equal(bc_segment_header_write(&bytes, &n, &header), 0);
	temp_write(&f->dir, name, bytes, n);
	free(bytes);
	assert_int_equal(utimensat(f->dir.fd, name, times, 0), 0);
}

/* Four recordings in the order of their sequence: the clock was six years back for the last two. */
#define FIRST              "20261101T000000Z-000001"
#define SECOND             "20261102T000000Z-000002"
#define THIRD              "20200101T000000Z-000003"
#define FOURTH             "20200101T000000Z-000004"
#define FILE_OF(recording) recording "-00000.byu.lz4"

static void make_four(struct fixture *f)
{
	make(f, FILE_OF(FIRST), FIRST, 9, 19);
	make(f, FILE_OF(SECOND), SECOND, 10, 18);
	make(f, FILE_OF(THIRD), THIRD, 11, 6 * YEAR);
	make(f, FILE_OF(FOURTH), FOURTH, 12, 6 * YEAR);
}

/* Applies the rules. Returns what was logged. */
static const char *enforce(struct fixture *f, unsigned deleted)
{
	log_capture_start(&f->log);
	int rc = bc_retention_enforce(&f->retention, &f->state, &f->check);
	const char *log = log_capture_stop(&f->log);

	assert_int_equal(rc, 0);
	assert_int_equal(f->state.deleted, deleted);
	return log;
}

TEST_F(the_lowest_sequence_is_deleted_first)
{
	make_four(f);
	f->check.files = 3;
	enforce(f, 1);
	assert_false(temp_exists(&f->dir, FILE_OF(FIRST)));
	f->check.files = 2;
	enforce(f, 1);
	assert_false(temp_exists(&f->dir, FILE_OF(SECOND)));
	assert_true(temp_exists(&f->dir, FILE_OF(THIRD)) && temp_exists(&f->dir, FILE_OF(FOURTH)));
}

TEST_F(a_listing_reads_each_header_once)
{
	struct bc_sequences sequences = {.known = NULL};
	struct bc_segment_list list;

	make_four(f);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(bc_segments_list(&list, f->dir.fd, &sequences), 0);
		assert_int_equal(list.count, 4);
		assert_string_equal(list.entries[0].name.recording, FIRST);
		assert_string_equal(list.entries[3].name.recording, FOURTH);
		assert_int_equal(list.entries[3].sequence, 12);
		assert_int_equal(sequences.count, 4);
		free(list.entries);
		/* Already known. */
		temp_write(&f->dir, FILE_OF(FOURTH), "x", 1);
	}
	free(sequences.known);
}

TEST_F(a_recording_is_read_again_only_if_none_of_its_headers_could_be_read)
{
	struct bc_sequences sequences = {.known = NULL};
	struct bc_segment_list list;

	temp_write(&f->dir, FIRST "-00000.byu.lz4", "x", 1);
	make(f, FIRST "-00001.byu.lz4", FIRST, 0, 0);
	temp_write(&f->dir, SECOND "-00000.byu.lz4", "x", 1);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(bc_segments_list(&list, f->dir.fd, &sequences), 0);
		assert_int_equal(list.count, 3);
		assert_string_equal(list.entries[0].name.recording, FIRST);
		assert_int_equal(list.entries[0].sequence, 0);
		assert_int_equal(list.entries[2].sequence, i == 0 ? 0 : 9);
		assert_int_equal(sequences.count, i + 1);
		free(list.entries);
		make(f, FIRST "-00000.byu.lz4", FIRST, 9, 0);
		make(f, SECOND "-00000.byu.lz4", SECOND, 9, 0);
	}
	free(sequences.known);
}

/* Checks the order of the four recordings, each of which has one file. */
static void assert_order(struct fixture *f, const char *const recordings[4])
{
	struct bc_segment_list list;

	assert_int_equal(bc_segments_list(&list, f->dir.fd, NULL), 0);
	assert_int_equal(list.count, 4);
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(list.entries[i].name.recording, recordings[i]);
	free(list.entries);
}

TEST_F(a_recording_without_a_readable_sequence_follows_those_with_lower_ids)
{
	static const struct {
		const char *unreadable;
		const char *order[4];
	} cases[] = {
		{FILE_OF(FIRST), {SECOND, THIRD, FOURTH, FIRST}},
		{FILE_OF(SECOND), {FIRST, THIRD, FOURTH, SECOND}},
		{FILE_OF(THIRD), {THIRD, FIRST, SECOND, FOURTH}},
		{FILE_OF(FOURTH), {FIRST, SECOND, THIRD, FOURTH}},
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		make_four(f);
		temp_write(&f->dir, cases[i].unreadable, "x", 1);
		assert_order(f, cases[i].order);
	}
}

TEST_F(recordings_without_a_readable_sequence_are_deleted_in_their_order)
{
	/* As root-owned files, left by a run as root. */
	make(f, FILE_OF(FIRST), FIRST, 1, 4);
	temp_write(&f->dir, FILE_OF(SECOND), "x", 1);
	f->check.files = 1;
	enforce(f, 1);
	assert_false(temp_exists(&f->dir, FILE_OF(FIRST)));
	make(f, "20261103T000000Z-000003-00000.byu.lz4", "20261103T000000Z-000003", 3, 0);
	enforce(f, 1);
	assert_false(temp_exists(&f->dir, FILE_OF(SECOND)));
}

TEST_F(the_sequence_is_in_any_file_of_the_recording)
{
	struct bc_segment_list list;

	temp_write(&f->dir, FILE_OF(FIRST), "x", 1);
	make(f, FIRST "-00001.byu.lz4", FIRST, 0, 0);
	make(f, FIRST "-00002.byu.lz4", FIRST, 9, 0);
	assert_int_equal(bc_segments_list(&list, f->dir.fd, NULL), 0);
	assert_int_equal(list.count, 3);
	for (size_t i = 0; i < list.count; i++)
		assert_int_equal(list.entries[i].sequence, 9);
	free(list.entries);
}

/* The directory in which readdir() below seals what it returns; -1: none. */
static int sealing_fd = -1;

struct dirent *readdir(DIR *dir)
{
	struct dirent *(*next)(DIR *);
	char sealed[256];

	*(void **)&next = dlsym(RTLD_NEXT, "readdir");
	struct dirent *entry = next(dir);
	const char *suffix = entry != NULL ? strstr(entry->d_name, ".partial") : NULL;
	if (sealing_fd >= 0 && suffix != NULL) {
		snprintf(sealed, sizeof(sealed), "%.*s", (int)(suffix - entry->d_name),
			entry->d_name);
		assert_int_equal(renameat(sealing_fd, entry->d_name, sealing_fd, sealed), 0);
	}
	return entry;
}

TEST_F(a_segment_that_is_sealed_while_listed_is_listed_once)
{
	struct bc_segment_list list;

	make(f, FILE_OF(FIRST) ".partial", FIRST, 9, 19);
	make(f, FILE_OF(SECOND), SECOND, 10, 18);
	sealing_fd = f->dir.fd;
	int rc = bc_segments_list(&list, f->dir.fd, NULL);
	sealing_fd = -1;
	assert_int_equal(rc, 0);
	assert_int_equal(list.count, 2);
	assert_string_equal(list.entries[0].name.recording, FIRST);
	assert_false(list.entries[0].name.is_partial);
	assert_int_equal(list.entries[0].sequence, 9);
	free(list.entries);
}

TEST_F(max_age_is_suspended_while_the_clock_is_behind)
{
	make(f, FILE_OF(FIRST), FIRST, 1, 40);
	make(f, FILE_OF(SECOND), SECOND, 2, 0);
	f->rules.max_age_ns = 30 * DAY_NS;
	f->check.wall_ns = NOW_NS - 6 * YEAR * DAY_NS;
	const char *log = enforce(f, 0);
	assert_non_null(strstr(log, "max_age is suspended: the clock is 2190 days behind"));
	assert_non_null(strstr(log, FILE_OF(SECOND)));
	assert_string_equal(enforce(f, 0), "");
	temp_dir_empty(&f->dir);
	assert_string_equal(enforce(f, 0), "");
}

TEST_F(max_age_does_not_count_a_clock_that_is_years_ahead)
{
	make(f, FILE_OF(FIRST), FIRST, 1, 40);
	make(f, FILE_OF(SECOND), SECOND, 2, 1);
	f->rules.max_age_ns = 60 * DAY_NS;
	f->check.wall_ns = NOW_NS + 10 * YEAR * DAY_NS;
	const char *log = enforce(f, 0);
	assert_non_null(strstr(log, "max_age does not count the 3651 days since " FILE_OF(SECOND)));
	assert_string_equal(enforce(f, 0), "");
	/* The run records with this clock, and a later one starts with it. */
	make(f, FILE_OF(THIRD), THIRD, 3, -10 * YEAR);
	f->retention.has_offset = false;
	assert_string_equal(enforce(f, 0), "");
	/* What is recorded from then on counts: the first file is now 39 + 22 days old. */
	make(f, FILE_OF(FOURTH), FOURTH, 4, -10 * YEAR - 22);
	f->check.wall_ns += 22 * DAY_NS;
	f->retention.has_offset = false;
	enforce(f, 1);
	assert_false(temp_exists(&f->dir, FILE_OF(FIRST)));
}

TEST_F(max_age_is_suspended_after_the_clock_has_jumped)
{
	make(f, FILE_OF(FIRST), FIRST, 1, 40);
	make(f, FILE_OF(SECOND), SECOND, 2, 0);
	f->rules.max_age_ns = 60 * DAY_NS;
	enforce(f, 0);
	/* The machine was suspended for a day: the boot clock agrees. */
	f->check.wall_ns += DAY_NS;
	f->check.boot_ns += DAY_NS;
	assert_string_equal(enforce(f, 0), "");
	f->check.wall_ns += 25 * DAY_NS;
	assert_non_null(strstr(enforce(f, 0), "the clock has jumped ahead by 25 days"));
	assert_string_equal(enforce(f, 0), "");
}

TEST_F(old_files_are_deleted)
{
	make(f, FILE_OF(FIRST), FIRST, 1, 40);
	make(f, FILE_OF(SECOND), SECOND, 2, 20);
	/* Copied from elsewhere today: it counts as old as the next. */
	make(f, FILE_OF(THIRD), THIRD, 3, 0);
	make(f, FILE_OF(FOURTH), FOURTH, 4, 2);
	f->rules.max_age_ns = 30 * DAY_NS;
	enforce(f, 1);
	assert_false(temp_exists(&f->dir, FILE_OF(FIRST)));
}

TEST_F(damaged_files_count_but_are_not_deleted)
{
	make(f, FILE_OF(FIRST) ".damaged", FIRST, 1, 0);
	make(f, FILE_OF(FIRST) ".damaged.2", FIRST, 1, 0);
	make(f, FILE_OF(SECOND), SECOND, 2, 0);
	f->rules.max_use_bytes = 1;
	enforce(f, 1);
	assert_false(temp_exists(&f->dir, FILE_OF(SECOND)));
	assert_true(temp_exists(&f->dir, FILE_OF(FIRST) ".damaged.2"));
	assert_true(f->state.used_bytes > 0);
	assert_true(f->state.is_over);
	assert_non_null(strstr(f->state.err, "delete damaged files (1 MB)"));
	f->rules.max_use_bytes = 0;
	f->check.files = 1;
	make(f, FILE_OF(SECOND), SECOND, 2, 0);
	enforce(f, 0);
}
