/* Retention goes by the sequence of the recordings. The clock may be wrong. */
#include "daemon/store/catalogue_listing.h"
#include "daemon/store/retention.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "formats/segment/segment_header.h"
#include "tests/support/dice.h"
#include "tests/support/header_file.h"
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
	struct bc_log_limits limits;
	struct log_capture log;
};

static void set_up(struct fixture *f)
{
	temp_dir_make(&f->dir);
	bc_log_set_level(BC_LOG_NOTICE);
	assert_int_equal(bc_catalogue_open(&f->check.catalogue, f->dir.fd), 0);
	f->check = (struct bc_retention_check){.catalogue = f->check.catalogue,
		.dir_fd = f->dir.fd,
		.rules = &f->rules,
		.limits = &f->limits,
		.wall_ns = NOW_NS,
		.boot_ns = 1000};
}

static void tear_down(struct fixture *f)
{
	bc_catalogue_stop(f->check.catalogue);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

/* Makes a file with only a header, last changed this many days before NOW_NS. */
static void make(struct fixture *f, const char *name, uint64_t sequence, int days)
{
	int64_t changed_ns = NOW_NS - days * DAY_NS;
	struct timespec times[2] = {{.tv_sec = changed_ns / 1000000000}};

	times[1] = times[0];
	header_file_make(&f->dir, name, sequence);
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
	make(f, FILE_OF(FIRST), 9, 19);
	make(f, FILE_OF(SECOND), 10, 18);
	make(f, FILE_OF(THIRD), 11, 6 * YEAR);
	make(f, FILE_OF(FOURTH), 12, 6 * YEAR);
}

static const char *apply(struct fixture *f, bool is_listed, unsigned deleted)
{
	log_capture_start(&f->log);
	f->retention.aged_at_ns = 0;
	if (is_listed)
		assert_int_equal(bc_catalogue_refresh(f->check.catalogue), 0);
	bc_retention_enforce(&f->retention, &f->state, &f->check);
	const char *log = log_capture_stop(&f->log);

	assert_int_equal(f->state.deleted, deleted);
	return log;
}

/* Applies the rules. Returns what was logged. */
static const char *enforce(struct fixture *f, unsigned deleted)
{
	return apply(f, true, deleted);
}

/* The same, but without another listing. */
static void enforce_unlisted(struct fixture *f, unsigned deleted)
{
	(void)apply(f, false, deleted);
}

TEST_F(segments_are_deleted_by_their_numbers_beyond_99999)
{
	static const char *const names[] = {FIRST "-99998.byu.lz4", FIRST "-99999.byu.lz4",
		FIRST "-a100000.byu.lz4", FIRST "-a100001.byu.lz4", FIRST "-b1000000.byu.lz4",
		FIRST "-b2000000.byu.lz4"};

	for (size_t i = 0; i < COUNT_OF(names); i++)
		make(f, names[COUNT_OF(names) - 1 - i], 1, 0);
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		for (size_t j = 0; j < COUNT_OF(names); j++)
			assert_int_equal(temp_exists(&f->dir, names[j]), j >= i);
		f->check.files = COUNT_OF(names) - 1 - i;
		if (f->check.files != 0)
			enforce(f, 1);
		else
			break;
	}
}

/* Changes by others, between two listings */

TEST_F(what_others_delete_is_not_deleted_again)
{
	make_four(f);
	enforce(f, 0);
	uint64_t bytes = f->state.used_bytes;
	assert_int_equal(unlinkat(f->dir.fd, FILE_OF(SECOND), 0), 0);
	assert_int_equal(renameat(f->dir.fd, FILE_OF(THIRD), f->dir.fd, "elsewhere"), 0);
	f->check.files = 2;
	enforce_unlisted(f, 0);
	f->check.files = 0;
	f->rules.max_use_bytes = bytes / 2 + 100;
	enforce_unlisted(f, 0);
	assert_true(temp_exists(&f->dir, FILE_OF(FIRST)));
	assert_int_equal(renameat(f->dir.fd, "elsewhere", f->dir.fd, FILE_OF(THIRD)), 0);
	make(f, FILE_OF(SECOND), 10, 18);
	enforce_unlisted(f, 2);
	assert_true(temp_exists(&f->dir, FILE_OF(THIRD)) && temp_exists(&f->dir, FILE_OF(FOURTH)));
}

TEST_F(recording_continues_once_damaged_files_are_deleted)
{
	make(f, FILE_OF(FIRST) ".damaged", 9, 1);
	f->rules.max_use_bytes = 1;
	enforce(f, 0);
	assert_true(f->state.is_over);
	assert_int_equal(unlinkat(f->dir.fd, FILE_OF(FIRST) ".damaged", 0), 0);
	enforce_unlisted(f, 0);
	assert_false(f->state.is_over);
}

/* More than the kernel remembers. */
static void overflow(struct fixture *f)
{
	unsigned count = 0;
	FILE *file = fopen("/proc/sys/fs/inotify/max_queued_events", "re");

	assert_true(file != NULL && fscanf(file, "%u", &count) == 1);
	fclose(file);
	for (unsigned i = 0; i <= count / 4; i++) {
		assert_int_equal(renameat(f->dir.fd, "a", f->dir.fd, "b"), 0);
		assert_int_equal(renameat(f->dir.fd, "b", f->dir.fd, "a"), 0);
	}
}

TEST_F(the_rules_wait_a_minute_for_a_catalogue_that_cannot_follow)
{
	make_four(f);
	enforce(f, 0);
	temp_write(&f->dir, "a", "", 0);
	overflow(f);
	assert_int_equal(unlinkat(f->dir.fd, FILE_OF(SECOND), 0), 0);
	f->check.files = 3;
	enforce_unlisted(f, 0);
	f->check.boot_ns += UINT64_C(59000000000);
	enforce_unlisted(f, 0);
	enforce(f, 0);
	f->check.files = 2;
	enforce_unlisted(f, 1);
	overflow(f);
	f->check.files = 1;
	enforce_unlisted(f, 0);
	f->check.boot_ns += UINT64_C(61000000000);
	enforce_unlisted(f, 1);
}

/* Foreign files */

/* Makes a file of a recording with the header of something else. */
static void make_other(
	struct fixture *f, const char *file, const char *recording, const char *program)
{
	struct bc_segment_header header = {.sequence = 1, .segment = 0};
	uint8_t *bytes;
	size_t n;

	snprintf(header.recording, sizeof(header.recording), "%s", recording);
	snprintf(header.program, sizeof(header.program), "%s", program);
	assert_int_equal(bc_segment_header_write(&bytes, &n, &header), 0);
	temp_write(&f->dir, file, bytes, n);
	free(bytes);
}

/* Their names sort first and last, and some are old. */
static const char *const foreign[] = {
	"notes-20260.byu.lz4",
	"._" FILE_OF(FIRST),
	"KEEP-" FILE_OF(FIRST),
	FIRST "-00007.byu.lz4",
	"zzz-00000.byu.lz4",
	"20260101T000000Z-00000c-00000.byu.lz4",
	"20260101T000000Z-00000d-00000.byu.lz4.damaged",
	"20990101T000000Z-00000f-00000.byu.lz4",
};

static void make_foreign(struct fixture *f)
{
	const struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};

	temp_write(&f->dir, foreign[0], "shopping list", 13);
	temp_write(&f->dir, foreign[1], "\0\5\26\7\0\2\0\0Mac OS X        ", 24);
	make_other(f, foreign[2], FIRST, "buscapd 0.0.0");                  /* a copy */
	make_other(f, foreign[3], FIRST, "buscapd 0.0.0");                  /* of segment 0 */
	temp_write(&f->dir, foreign[4], "\x04\x22\x4d\x18\x64\x40\xa7", 7); /* plain lz4 */
	make_other(f, foreign[5], "20260101T000000Z-00000c", "buscap 0.0.0");
	temp_write(&f->dir, foreign[6], "", 0);
	make_other(f, foreign[7], "20990101T000000Z-00000f", "buscapdump 1");
	for (size_t i = 0; i < COUNT_OF(foreign); i++)
		assert_int_equal(utimensat(f->dir.fd, foreign[i], times, 0), 0);
}

static void assert_foreign_untouched(struct fixture *f)
{
	for (size_t i = 0; i < COUNT_OF(foreign); i++)
		if (!temp_exists(&f->dir, foreign[i]))
			fail_msg("%s is gone", foreign[i]);
}

TEST_F(foreign_files_are_neither_deleted_nor_counted)
{
	make_four(f);
	enforce(f, 0);
	uint64_t used = f->state.used_bytes;
	make_foreign(f);
	f->check.files = 4;
	enforce(f, 0);
	assert_int_equal(f->state.used_bytes, used);
	assert_int_equal(f->state.segments, 4);
	f->check.files = 2;
	enforce(f, 2);
	assert_true(temp_exists(&f->dir, FILE_OF(THIRD)) && temp_exists(&f->dir, FILE_OF(FOURTH)));
	f->rules.max_use_bytes = 1;
	enforce(f, 2);
	assert_true(f->state.is_over == false && f->state.used_bytes == 0);
	assert_foreign_untouched(f);
}

/* A recording of 200 segments, of which the oldest ten are copies of another one. */
static void make_many(struct fixture *f)
{
	char file[BC_SEGMENT_NAME_MAX];

	for (unsigned i = 0; i < 200; i++) {
		snprintf(file, sizeof(file), FIRST "-%05u.byu.lz4", i);
		if (i < 10)
			make_other(f, file, SECOND, "buscapd 0.0.0");
		else
			make(f, file, 1, 0);
	}
}

TEST_F(nothing_is_deleted_or_missed_for_a_header_that_was_not_read)
{
	char file[BC_SEGMENT_NAME_MAX];

	make_many(f);
	f->check.files = 100;
	enforce(f, 90);
	assert_int_equal(f->state.segments, 100);
	for (unsigned i = 0; i < 200; i++) {
		snprintf(file, sizeof(file), FIRST "-%05u.byu.lz4", i);
		assert_true(temp_exists(&f->dir, file) == (i < 10 || i >= 100));
	}
	/* In the end, all are known. */
	enforce(f, 0);
	enforce(f, 0);
	assert_int_equal(f->state.segments, 100);
}

TEST_F(old_foreign_files_make_no_segment_old)
{
	make(f, FILE_OF(FIRST), 1, 29);
	make(f, FILE_OF(SECOND), 2, 0);
	make_foreign(f);
	f->rules.max_age_ns = 30 * DAY_NS;
	const char *log = enforce(f, 0);
	assert_null(strstr(log, "clock"));
	assert_foreign_untouched(f);
}

TEST_F(each_foreign_file_is_logged_once)
{
	make_foreign(f);
	const char *log = enforce(f, 0);
	for (size_t i = 0; i < COUNT_OF(foreign); i++)
		if (strstr(log, foreign[i]) == NULL)
			fail_msg("%s is not in %s", foreign[i], log);
	assert_non_null(strstr(log, "notes-20260.byu.lz4: ignored: no "
				    "intact header of buscapd"));
	assert_non_null(strstr(log, "zzz-00000.byu.lz4: ignored: "));
	assert_string_equal(enforce(f, 0), "");
}

TEST_F(max_age_is_suspended_while_the_clock_is_behind)
{
	make(f, FILE_OF(FIRST), 1, 40);
	make(f, FILE_OF(SECOND), 2, 0);
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
	make(f, FILE_OF(FIRST), 1, 40);
	make(f, FILE_OF(SECOND), 2, 1);
	f->rules.max_age_ns = 60 * DAY_NS;
	f->check.wall_ns = NOW_NS + 10 * YEAR * DAY_NS;
	const char *log = enforce(f, 0);
	assert_non_null(strstr(log, "max_age does not count the 3651 days since " FILE_OF(SECOND)));
	assert_string_equal(enforce(f, 0), "");
	/* The run records with this clock, and a later one starts with it. */
	make(f, FILE_OF(THIRD), 3, -10 * YEAR);
	f->retention.has_offset = false;
	assert_string_equal(enforce(f, 0), "");
	/* What is recorded from then on counts: the first file is now 39 + 22 days old. */
	make(f, FILE_OF(FOURTH), 4, -10 * YEAR - 22);
	f->check.wall_ns += 22 * DAY_NS;
	f->retention.has_offset = false;
	enforce(f, 1);
	assert_false(temp_exists(&f->dir, FILE_OF(FIRST)));
}

TEST_F(max_age_is_suspended_after_the_clock_has_jumped)
{
	make(f, FILE_OF(FIRST), 1, 40);
	make(f, FILE_OF(SECOND), 2, 0);
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

TEST_F(damaged_files_count_but_are_not_deleted)
{
	make(f, FILE_OF(FIRST) ".damaged", 1, 0);
	make(f, FILE_OF(FIRST) ".damaged.2", 1, 0);
	make(f, FILE_OF(SECOND), 2, 0);
	f->rules.max_use_bytes = 1;
	enforce(f, 1);
	assert_false(temp_exists(&f->dir, FILE_OF(SECOND)));
	assert_true(temp_exists(&f->dir, FILE_OF(FIRST) ".damaged.2"));
	assert_true(f->state.used_bytes > 0);
	assert_true(f->state.is_over);
	assert_non_null(strstr(f->state.err, "delete damaged files (1 MB)"));
	f->rules.max_use_bytes = 0;
	f->check.files = 1;
	make(f, FILE_OF(SECOND), 2, 0);
	enforce(f, 0);
}

/* The file system's figures */

/* When deleted files show in what the file system says is free. */
enum shows { AT_ONCE, LATER };

static struct {
	bool is_on;
	enum shows shows;
	struct statvfs says;
	int error;
	uint64_t hidden; /* freed, but does not show yet */
} fs;

#define UNIT UINT64_C(4096)

int fstatvfs(int fd, struct statvfs *out)
{
	int (*next)(int, struct statvfs *);

	*(void **)&next = dlsym(RTLD_NEXT, "fstatvfs");
	if (!fs.is_on)
		return next(fd, out);
	*out = fs.says;
	errno = fs.error;
	return fs.error != 0 ? -1 : 0;
}

/* The headers of these files can't be read now. */
static const char *unreadable = "none";
static int unreadable_error;

#define OLD "20261101T000000Z-000001"

static const char *old_segment(char name[BC_SEGMENT_NAME_MAX], unsigned number)
{
	snprintf(name, BC_SEGMENT_NAME_MAX, OLD "-%05u.byu.lz4", number);
	return name;
}

/* Nor can those of these segments. */
#define UNREADABLES 8u
static bool unreadables[UNREADABLES];

static bool is_unreadable(const char *name)
{
	char old[BC_SEGMENT_NAME_MAX];

	for (unsigned i = 0; i < UNREADABLES; i++)
		if (unreadables[i] && strcmp(name, old_segment(old, i)) == 0)
			return true;
	return strncmp(name, unreadable, strlen(unreadable)) == 0;
}

int openat(int dir_fd, const char *name, int flags, ...)
{
	va_list args;

	va_start(args, flags);
	mode_t mode = (flags & O_CREAT) != 0 ? va_arg(args, mode_t) : 0;
	va_end(args);
	if (is_unreadable(name)) {
		errno = unreadable_error;
		return -1;
	}
	return (int)syscall(SYS_openat, dir_fd, name, flags, mode);
}

/* These files can't be deleted. */
static const char *undeletable = "none";
static int undeletable_error;

/* Each file has a unit. */
int unlinkat(int dir_fd, const char *name, int flags)
{
	struct stat st;

	if (strncmp(name, undeletable, strlen(undeletable)) == 0) {
		errno = undeletable_error;
		return -1;
	}
	if (fs.is_on && fstatat(dir_fd, name, &st, 0) == 0 && st.st_nlink == 1) {
		*(fs.shows == AT_ONCE ? &fs.says.f_bavail : &fs.hidden) += 1;
		fs.says.f_favail += fs.shows == AT_ONCE;
	}
	return (int)syscall(SYS_unlinkat, dir_fd, name, flags);
}

/* What was deleted shows. */
static void commit(void)
{
	fs.says.f_bavail += fs.hidden;
	fs.hidden = 0;
}

/* Makes twenty segments, of which the rule needs `units` deleted. */
static void make_short(struct fixture *f, enum shows shows, unsigned units)
{
	char name[BC_SEGMENT_NAME_MAX];

	for (unsigned i = 0; i < 20; i++) {
		make(f, old_segment(name, i), 1, 0);
		int fd = openat(f->dir.fd, name, O_WRONLY | O_CLOEXEC);
		assert_int_equal(posix_fallocate(fd, 0, UNIT), 0);
		close(fd);
	}
	fs.is_on = true;
	fs.shows = shows;
	fs.error = 0;
	fs.hidden = 0;
	fs.says = (struct statvfs){
		.f_frsize = UNIT, .f_bsize = UNIT, .f_blocks = 100000, .f_bavail = 1000};
	f->rules.keep_free_bytes = (1000 + units) * UNIT;
}

/* One check a second. Returns the files deleted in them. */
static unsigned check_for(struct fixture *f, unsigned seconds)
{
	unsigned deleted = 0;

	for (unsigned i = 0; i < seconds; i++) {
		f->check.boot_ns += 1000000000;
		f->check.wall_ns += 1000000000;
		assert_int_equal(bc_catalogue_refresh(f->check.catalogue), 0);
		bc_retention_enforce(&f->retention, &f->state, &f->check);
		assert_false(f->state.is_over);
		deleted += f->state.deleted;
	}
	return deleted;
}

TEST_F(what_was_deleted_counts_until_it_shows)
{
	make_short(f, LATER, 3);
	assert_int_equal(check_for(f, 1), 3);
	assert_int_equal(check_for(f, 28), 0);
	commit();
	assert_int_equal(check_for(f, 100), 0);
	/* Another program writes, with and without something that does not show yet. */
	fs.says.f_bavail -= 2;
	assert_int_equal(check_for(f, 10), 2);
	fs.says.f_bavail -= 4;
	assert_int_equal(check_for(f, 10), 4);
	commit();
	assert_int_equal(check_for(f, 100), 0);
	fs.is_on = false;
}

TEST_F(what_this_process_writes_hides_no_space_that_shows)
{
	make_short(f, LATER, 0);
	check_for(f, 1);
	/* Each second a unit is written, and shows; the deleted ones show every ten seconds. */
	for (unsigned i = 1; i <= 15; i++) {
		fs.says.f_bavail--;
		f->check.written_bytes += UNIT;
		assert_int_equal(check_for(f, 1), 1);
		if (i % 10 == 0)
			commit();
	}
	fs.is_on = false;
}

/* As on btrfs, with a snapshot that has the files: no commit shows more than what was written. */
TEST_F(what_is_written_and_does_not_show_yet_is_not_taken_for_freed_space)
{
	unsigned deleted;

	make_short(f, LATER, 2);
	deleted = check_for(f, 1);
	for (unsigned i = 1; i <= 5; i++) {
		f->check.written_bytes += UNIT;
		if (i % 3 == 0)
			fs.says.f_bavail -= 3;
		deleted += check_for(f, 10);
	}
	assert_int_equal(deleted, 2 + 3);
	log_capture_start(&f->log);
	deleted = check_for(f, 10);
	assert_non_null(strstr(log_capture_stop(&f->log), "are not free yet: "));
	assert_int_equal(deleted, 1);
	/* Nor is a commit that shows only a part of what was written. */
	f->check.written_bytes += 4 * UNIT;
	fs.says.f_bavail -= 1;
	assert_int_equal(check_for(f, 59), 0);
	assert_int_equal(check_for(f, 1), 1);
	fs.is_on = false;
}

TEST_F(where_it_shows_at_once_other_programs_hide_nothing)
{
	make_short(f, AT_ONCE, 3);
	assert_int_equal(check_for(f, 1), 3);
	for (unsigned i = 0; i < 5; i++) {
		fs.says.f_bavail--;
		assert_int_equal(check_for(f, 1), 1);
		assert_int_equal(check_for(f, 1), 0);
	}
	fs.is_on = false;
}

TEST_F(what_never_shows_costs_one_segment_a_minute_and_the_recording_goes_on)
{
	make_short(f, LATER, 2);
	assert_int_equal(check_for(f, 1), 2);
	log_capture_start(&f->log);
	unsigned deleted = check_for(f, 59);
	assert_string_equal(log_capture_stop(&f->log), "");
	assert_int_equal(deleted, 0);
	log_capture_start(&f->log);
	deleted = check_for(f, 1);
	const char *log = log_capture_stop(&f->log);
	assert_int_equal(deleted, 1);
	assert_non_null(strstr(log, "rule keep_free: 1 MB deleted a minute ago are not free yet: a "
				    "program has the files open, a snapshot has them, or"));
	assert_null(strchr(strchr(log, '\n') + 1, '\n'));
	assert_true(f->state.left_bytes == UINT64_MAX);
	for (unsigned minute = 0; minute < 3; minute++) {
		assert_int_equal(check_for(f, 59), 0);
		assert_int_equal(check_for(f, 1), 1);
	}
	/* The reader ends. */
	commit();
	log_capture_start(&f->log);
	deleted = check_for(f, 100);
	assert_non_null(
		strstr(log_capture_stop(&f->log), "shows the space of deleted segments again"));
	assert_int_equal(deleted, 0);
	fs.says.f_bavail -= 7; /* four more were deleted than needed */
	assert_int_equal(check_for(f, 1), 3);
	fs.is_on = false;
}

TEST_F(what_never_shows_costs_nothing_of_the_recording_in_progress)
{
	make_short(f, LATER, 2);
	make(f, FILE_OF(SECOND), 2, 0);
	f->check.recording = OLD;
	/* A shortage like any other: the ring of a long recording. */
	assert_int_equal(check_for(f, 1), 2);
	assert_int_equal(check_for(f, 300), 0);
	assert_true(f->state.left_bytes == UINT64_MAX);
	/* Another recording is in progress now. */
	f->check.recording = SECOND;
	assert_int_equal(check_for(f, 60), 1);
	assert_true(temp_exists(&f->dir, FILE_OF(SECOND)));
	commit();
	f->check.recording = OLD;
	assert_int_equal(check_for(f, 100), 0);
	fs.says.f_bavail -= 3;
	assert_int_equal(check_for(f, 30), 2);
	fs.is_on = false;
}

TEST_F(if_nothing_is_left_that_could_free_space_the_rule_is_broken)
{
	make_short(f, LATER, 21);
	enforce(f, 20);
	assert_true(f->state.is_over);
	fs.is_on = false;
}

TEST_F(files_with_other_links_are_passed_over_for_free_space_only)
{
	char name[BC_SEGMENT_NAME_MAX];
	char link[BC_SEGMENT_NAME_MAX + 8];

	make_short(f, AT_ONCE, 2);
	for (unsigned i = 0; i < 15; i++) {
		snprintf(link, sizeof(link), "copy-%s", old_segment(name, i));
		assert_int_equal(linkat(f->dir.fd, name, f->dir.fd, link, 0), 0);
	}
	assert_int_equal(check_for(f, 1), 2);
	assert_true(temp_exists(&f->dir, old_segment(name, 0)));
	assert_true(temp_exists(&f->dir, old_segment(name, 14)));
	assert_false(temp_exists(&f->dir, old_segment(name, 15)));
	assert_false(temp_exists(&f->dir, old_segment(name, 16)));
	fs.says.f_bavail -= 4;
	enforce(f, 3);
	assert_true(f->state.is_over);
	assert_non_null(strstr(f->state.err, "; other hard links keep the space of 15 files"));
	/* The directory has one file fewer, whatever its links. */
	f->rules.keep_free_bytes = 0;
	f->check.files = 10;
	enforce(f, 5);
	assert_false(temp_exists(&f->dir, old_segment(name, 4)));
	assert_true(temp_exists(&f->dir, old_segment(name, 5)));
	f->check.files = 1;
	f->rules.keep_free_bytes = 10000 * UNIT;
	enforce(f, 9);
	assert_non_null(strstr(f->state.err, " of 1 file"));
	assert_null(strstr(f->state.err, " files"));
	fs.is_on = false;
}

TEST_F(a_file_that_cannot_be_deleted_is_passed_over_with_one_warning)
{
	static const int errors[] = {EPERM, EBUSY, EACCES, EIO, ETIMEDOUT};

	for (unsigned i = 0; i < COUNT_OF(errors); i++) {
		f->retention = (struct bc_retention){0};
		make_four(f);
		undeletable = FIRST;
		undeletable_error = errors[i];
		f->check.files = 3;
		const char *log = enforce(f, 1);
		assert_non_null(strstr(log, FILE_OF(FIRST) ": can't delete (rule files): "));
		assert_null(strstr(strstr(log, "passing over it") + 1, "passing over it"));
		assert_false(temp_exists(&f->dir, FILE_OF(SECOND)));
		/* It is tried again every minute, and not logged again. */
		for (unsigned seconds = 30; seconds <= 90; seconds += 60) {
			f->check.boot_ns = 1000 + seconds * UINT64_C(1000000000);
			f->check.files = 2;
			assert_null(strstr(enforce(f, seconds == 30), "can't delete"));
		}
		f->check.files = 1;
		f->check.boot_ns += UINT64_C(30000000000);
		enforce(f, 1);
		undeletable = "none";
		f->check.files = 0;
		f->rules.max_use_bytes = 1;
		enforce(f, 0);
		assert_true(f->state.is_over);
		assert_non_null(strstr(f->state.err, "; 1 file can't be deleted"));
		f->check.boot_ns += UINT64_C(60000000000);
		enforce(f, 1);
		assert_false(f->state.is_over);
		f->rules.max_use_bytes = 0;
		f->check.boot_ns = 1000;
	}
}

#define LATER_THIRD  "20261103T000000Z-000003"
#define LATER_FOURTH "20261104T000000Z-000004"

TEST_F(no_newer_segment_is_deleted_for_one_that_cannot_be_read_for_a_moment)
{
	static const int errors[] = {EWOULDBLOCK, ETIMEDOUT, EIO, ESTALE, EMFILE};

	for (unsigned i = 0; i < COUNT_OF(errors); i++) {
		f->retention = (struct bc_retention){0};
		f->check.boot_ns = 1000;
		make(f, FILE_OF(FIRST), 1, 9);
		make(f, FILE_OF(SECOND), 2, 8);
		make(f, FILE_OF(LATER_THIRD), 3, 7);
		make(f, FILE_OF(LATER_FOURTH), 4, 6);
		unreadable = FIRST;
		unreadable_error = errors[i];
		f->check.files = 3;
		f->rules.max_use_bytes = 1;
		assert_string_equal(enforce(f, 0), "");
		assert_int_equal(f->state.segments, 4);
		assert_false(f->state.is_over);
		/* It can be read again. */
		f->rules.max_use_bytes = 0;
		unreadable = "none";
		enforce(f, 1);
		assert_false(temp_exists(&f->dir, FILE_OF(FIRST)));
		/* What can't be read for a minute is passed over. */
		unreadable = SECOND;
		f->check.files = 2;
		enforce(f, 0);
		f->check.boot_ns += UINT64_C(59000000000);
		enforce(f, 0);
		f->check.boot_ns += UINT64_C(1000000000);
		assert_non_null(strstr(enforce(f, 1), ": can't read (rule files): "));
		assert_true(temp_exists(&f->dir, FILE_OF(SECOND)));
		assert_false(temp_exists(&f->dir, FILE_OF(LATER_THIRD)));
		f->check.boot_ns += UINT64_C(60000000000);
		f->check.files = 1;
		assert_string_equal(enforce(f, 1), "");
		assert_false(temp_exists(&f->dir, FILE_OF(LATER_FOURTH)));
		unreadable = "none";
		f->check.files = 0;
		assert_int_equal(unlinkat(f->dir.fd, FILE_OF(SECOND), 0), 0);
		enforce(f, 0);
	}
}

#define STEP_NS UINT64_C(1000000000)

static void make_old(struct fixture *f)
{
	char name[BC_SEGMENT_NAME_MAX];

	f->retention = (struct bc_retention){0};
	f->check.boot_ns = STEP_NS;
	f->check.files = 1;
	unreadable_error = ETIMEDOUT;
	for (unsigned i = 0; i <= UNREADABLES; i++)
		make(f, old_segment(name, i), 1, 9);
	assert_int_equal(bc_catalogue_refresh(f->check.catalogue), 0);
}

TEST_F(files_that_cannot_be_read_are_waited_for_together)
{
	make_old(f);
	for (unsigned i = 1; i < UNREADABLES; i++)
		unreadables[i] = true;
	enforce_unlisted(f, 1);
	for (unsigned s = 0; s < 59; s++) {
		f->check.boot_ns += STEP_NS;
		enforce_unlisted(f, 0);
	}
	f->check.boot_ns += STEP_NS;
	enforce_unlisted(f, 1);
	memset(unreadables, 0, sizeof(unreadables));
}

/* At random times, headers can't be read for random times. */
TEST_F(each_file_that_cannot_be_read_has_its_own_minute)
{
	char name[BC_SEGMENT_NAME_MAX];

	for (uint64_t seed = 0; seed < 40; seed++) {
		struct dice dice = {seed};
		unsigned begins[UNREADABLES];
		unsigned ends[UNREADABLES];
		bool is_passed[UNREADABLES + 1] = {false};
		bool was_there[UNREADABLES + 1];
		make_old(f);
		for (unsigned i = 0; i < UNREADABLES; i++) {
			begins[i] = dice_below(&dice, 3) == 0 ? 0 : dice_below(&dice, 70);
			ends[i] = begins[i] + dice_below(&dice, 100);
		}
		for (unsigned s = 0; s < 200; s++) {
			for (unsigned i = 0; i < UNREADABLES; i++) {
				unreadables[i] = s >= begins[i] && s < ends[i];
				is_passed[i] = is_passed[i] ||
					       (unreadables[i] && s - begins[i] >= 60);
			}
			for (unsigned i = 0; i <= UNREADABLES; i++)
				was_there[i] = temp_exists(&f->dir, old_segment(name, i));
			log_capture_start(&f->log);
			bc_retention_enforce(&f->retention, &f->state, &f->check);
			(void)log_capture_stop(&f->log);
			f->check.boot_ns += STEP_NS;
			bool may_delete = true;
			for (unsigned i = 0; i <= UNREADABLES; i++) {
				bool is_there = temp_exists(&f->dir, old_segment(name, i));
				if (was_there[i] && !is_there && !may_delete)
					fail_msg("seed %" PRIu64 ", %u s: segment %u is deleted",
						seed, s, i);
				may_delete = may_delete && (!is_there || is_passed[i]);
			}
		}
		assert_int_equal(f->state.segments, 1);
		for (unsigned i = 0; i <= UNREADABLES; i++)
			(void)!unlinkat(f->dir.fd, old_segment(name, i), 0);
		assert_int_equal(bc_catalogue_refresh(f->check.catalogue), 0);
	}
	memset(unreadables, 0, sizeof(unreadables));
}

TEST_F(what_this_run_left_open_is_deleted_in_its_turn)
{
	struct bc_segment_name left;

	make(f, FILE_OF(FIRST), 1, 9);
	make(f, FILE_OF(SECOND) ".partial", 2, 8);
	make(f, FILE_OF(LATER_THIRD), 3, 7);
	f->check.files = 1;
	enforce(f, 2); /* not the open one */
	assert_true(temp_exists(&f->dir, FILE_OF(SECOND) ".partial"));
	make(f, FILE_OF(LATER_THIRD), 3, 7);
	assert_true(bc_segment_name_read(&left, FILE_OF(SECOND) ".partial"));
	bc_catalogue_leave(f->check.catalogue, &left);
	enforce(f, 1);
	assert_false(temp_exists(&f->dir, FILE_OF(SECOND) ".partial"));
	assert_true(temp_exists(&f->dir, FILE_OF(LATER_THIRD)));
}

TEST_F(a_check_tries_a_few_files_and_the_next_one_others)
{
	char file[BC_SEGMENT_NAME_MAX];

	for (unsigned i = 0; i < 50; i++) {
		snprintf(file, sizeof(file), FIRST "-%05u.byu.lz4", i);
		make(f, file, 1, 2);
	}
	make(f, FILE_OF(SECOND), 2, 1);
	undeletable = FIRST;
	undeletable_error = EPERM;
	f->check.files = 50;
	for (unsigned i = 0; i < 3; i++)
		enforce(f, 0);
	enforce(f, 1);
	undeletable = "none";
	assert_false(temp_exists(&f->dir, FILE_OF(SECOND)));
}

/* Makes the next check log a warning once, delete nothing, and not stop the recording. */
static void assert_suspended(struct fixture *f)
{
	f->retention.is_free_unknown = false;
	const char *log = enforce(f, 0);
	assert_non_null(
		strstr(log, "rule keep_free is suspended: the file system does not report"));
	assert_true(f->state.is_free_unknown && !f->state.is_over);
	assert_true(f->state.left_bytes == UINT64_MAX);
	assert_string_equal(enforce(f, 0), "");
}

TEST_F(a_file_system_that_does_not_tell_its_size_suspends_keep_free)
{
	make_short(f, AT_ONCE, 2);
	f->rules.keep_free_bytes = UINT64_C(1) << 40;
	fs.says = (struct statvfs){.f_frsize = UNIT, .f_bsize = UNIT};
	assert_suspended(f);
	fs.says = (struct statvfs){.f_blocks = 1000, .f_bavail = 0};
	assert_suspended(f);
	fs.error = EIO;
	assert_suspended(f);
	/* The other rules apply. */
	f->check.files = 19;
	enforce(f, 1);
	fs.error = 0;
	fs.says = (struct statvfs){.f_bsize = UNIT, .f_blocks = 1 << 30, .f_bavail = 1 << 29};
	assert_non_null(strstr(enforce(f, 0), "rule keep_free applies again"));
	assert_int_equal(f->state.free_bytes, UNIT << 29);
	fs.says.f_bavail = UINT64_MAX / 2;
	enforce(f, 0);
	assert_true(f->state.free_bytes == UINT64_MAX);
	fs.is_on = false;
}

TEST_F(a_file_system_without_free_inodes_is_full_for_a_new_file)
{
	make_short(f, AT_ONCE, 0);
	fs.says.f_files = 1000;
	assert_int_equal(check_for(f, 3), 0); /* no file is to be created */
	f->check.coming_files = 1;            /* it needs an inode */
	assert_int_equal(check_for(f, 1), 1);
	assert_int_equal(check_for(f, 3), 0);
	fs.says.f_favail = 0;
	fs.shows = LATER; /* a reader has them open */
	assert_int_equal(check_for(f, 1), 1);
	assert_int_equal(check_for(f, 59), 0);
	assert_int_equal(check_for(f, 1), 1);
	f->rules.keep_free_bytes = 0;
	assert_int_equal(check_for(f, 200), 0);
	fs.is_on = false;
}
