/* The catalogue knows what is in the directory, whoever puts it there, and reads little. */
#include "daemon/store/catalogue_listing.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "formats/recording/recording_list.h"
#include "formats/segment/segment_header.h"
#include "tests/support/header_file.h"
#include "tests/support/log_capture.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

TEST_THREADS;

#define FIRST              "20261101T000000Z-000001"
#define SECOND             "20261102T000000Z-000002"
#define THIRD              "20200101T000000Z-000003"
#define FOURTH             "20200101T000000Z-000004"
#define FILE_OF(recording) recording "-00000.byu.lz4"

struct fixture {
	struct temp_dir dir;
	struct bc_catalogue *catalogue;
	struct bc_log_limits limits;
};

static void set_up(struct fixture *f)
{
	temp_dir_make(&f->dir);
	bc_log_set_level(BC_LOG_ERROR);
	assert_int_equal(bc_catalogue_open(&f->catalogue, f->dir.fd), 0);
}

static void tear_down(struct fixture *f)
{
	bc_catalogue_stop(f->catalogue);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

static void refresh(struct fixture *f)
{
	assert_int_equal(bc_catalogue_refresh(f->catalogue), 0);
}

static int look(struct fixture *f, const char *file)
{
	struct bc_segment_name name;

	assert_true(bc_segment_name_read(&name, file));
	return bc_catalogue_look(f->catalogue, f->dir.fd, &name, BC_LOOK, NULL, &f->limits);
}

/* Files opened below a directory: headers, while nothing else is opened. */
static atomic_uint headers_read;

int openat(int dir_fd, const char *name, int flags, ...)
{
	va_list args;

	va_start(args, flags);
	mode_t mode = (flags & O_CREAT) != 0 ? va_arg(args, mode_t) : 0;
	va_end(args);
	headers_read += strstr(name, ".lz4") != NULL;
	return (int)syscall(SYS_openat, dir_fd, name, flags, mode);
}

static atomic_bool has_no_links;

int fstatat(int dir_fd, const char *name, struct stat *st, int flags)
{
	int rc = (int)syscall(SYS_newfstatat, dir_fd, name, st, flags);

	if (has_no_links)
		st->st_nlink = 0;
	return rc;
}

/* The headers that a listing reads. */
static unsigned reads_of(struct fixture *f)
{
	headers_read = 0;
	refresh(f);
	return headers_read;
}

static void append(struct fixture *f, const char *name, const char *text)
{
	int fd = openat(f->dir.fd, name, O_WRONLY | O_APPEND | O_CLOEXEC);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* Makes a file of a recording with the header of something else. */
static void make_other(struct fixture *f, const char *file, const char *recording)
{
	struct bc_segment_header header = {.sequence = 1, .program = "buscapd 0.0.0"};
	uint8_t *bytes;
	size_t n;

	snprintf(header.recording, sizeof(header.recording), "%s", recording);
	assert_int_equal(bc_segment_header_write(&bytes, &n, &header), 0);
	temp_write(&f->dir, file, bytes, n);
	free(bytes);
}

TEST_F(each_header_is_read_once)
{
	header_file_make(&f->dir, FILE_OF(FIRST), 9);
	header_file_make(&f->dir, FILE_OF(THIRD), 11);
	header_file_make(&f->dir, FILE_OF(SECOND) ".partial", 10);
	temp_write(&f->dir, "notes-20260.byu.lz4", "x", 1);
	assert_false(bc_catalogue_sums(f->catalogue).is_complete);
	assert_int_equal(reads_of(f), 4);
	assert_true(bc_catalogue_sums(f->catalogue).is_complete);
	uint64_t bytes = bc_catalogue_sums(f->catalogue).bytes;
	/* A segment that is being recorded grows. */
	append(f, FILE_OF(SECOND) ".partial", "x");
	assert_int_equal(reads_of(f), 1);
	assert_int_equal(reads_of(f), 0);
	assert_int_equal(bc_catalogue_sums(f->catalogue).segments, 3);
	assert_int_equal(bc_catalogue_sums(f->catalogue).bytes, bytes + 1);
	assert_int_equal(bc_catalogue_sums(f->catalogue).highest, 11);
	header_file_make(&f->dir, FILE_OF("20261103T000000Z-000005"), UINT64_MAX);
	refresh(f);
	assert_int_equal(bc_catalogue_sums(f->catalogue).highest, 11);
}

TEST_F(files_count_where_the_file_system_counts_no_links)
{
	header_file_make(&f->dir, FILE_OF(FIRST), 1);
	has_no_links = true;
	refresh(f);
	assert_int_equal(bc_catalogue_sums(f->catalogue).segments, 1);
	assert_int_equal(unlinkat(f->dir.fd, FILE_OF(FIRST), 0), 0);
	refresh(f);
	assert_int_equal(bc_catalogue_sums(f->catalogue).segments, 0);
	has_no_links = false;
}

TEST_F(a_file_that_has_changed_is_looked_at_again)
{
	header_file_make(&f->dir, FILE_OF(FIRST), 1);
	temp_write(&f->dir, FILE_OF(SECOND), "x", 1);
	refresh(f);
	assert_int_equal(bc_catalogue_sums(f->catalogue).segments, 1);
	/* Both in place. */
	temp_write(&f->dir, FILE_OF(FIRST), "someone else's", 14);
	header_file_make(&f->dir, FILE_OF(SECOND), 2);
	refresh(f);
	assert_int_equal(bc_catalogue_sums(f->catalogue).segments, 1);
	assert_int_equal(look(f, FILE_OF(FIRST)), -EBADMSG);
	assert_int_equal(look(f, FILE_OF(SECOND)), 0);
	assert_int_equal(look(f, FILE_OF(THIRD)), -ENOENT);
}

/* The files in their order. */
static unsigned walk(struct fixture *f, struct bc_segment_name *names, unsigned max)
{
	struct bc_catalogue_place place = {.order = 0};
	struct bc_catalogue_traits traits;
	unsigned count = 0;

	while (bc_catalogue_next(f->catalogue, &place, &traits)) {
		assert_true(count < max);
		names[count++] = place.name;
	}
	return count;
}

TEST_F(a_recording_without_a_sequence_follows_those_with_lower_ids)
{
	static const struct {
		const char *unknown;
		const char *order[4];
	} cases[] = {
		{FILE_OF(FIRST), {SECOND, THIRD, FOURTH, FIRST}},
		{FILE_OF(SECOND), {FIRST, THIRD, FOURTH, SECOND}},
		{FILE_OF(THIRD), {THIRD, FIRST, SECOND, FOURTH}},
		{FILE_OF(FOURTH), {FIRST, SECOND, THIRD, FOURTH}},
	};
	struct bc_segment_name names[4];

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		temp_dir_empty(&f->dir);
		refresh(f);
		header_file_make(&f->dir, FILE_OF(FIRST), 9);
		header_file_make(&f->dir, FILE_OF(SECOND), 10);
		header_file_make(&f->dir, FILE_OF(THIRD), 11);
		header_file_make(&f->dir, FILE_OF(FOURTH), 12);
		header_file_make(&f->dir, cases[i].unknown, 0);
		refresh(f);
		assert_int_equal(walk(f, names, 4), 4);
		for (size_t j = 0; j < 4; j++)
			assert_string_equal(names[j].recording, cases[i].order[j]);
	}
}

TEST_F(the_sequence_is_in_any_file_of_the_recording)
{
	struct bc_segment_name names[3];

	header_file_make(&f->dir, THIRD "-00000.byu.lz4", 0);
	header_file_make(&f->dir, THIRD "-00001.byu.lz4", 10);
	header_file_make(&f->dir, FILE_OF(FIRST), 9);
	refresh(f);
	assert_int_equal(walk(f, names, 3), 3);
	assert_string_equal(names[0].recording, FIRST);
	assert_int_equal(names[2].segment, 1);
}

TEST_F(a_listing_reads_few_headers_but_each_is_read_in_the_end)
{
	char file[BC_SEGMENT_NAME_MAX];
	unsigned listings = 1;

	/* The last ten are copies of another recording. */
	for (unsigned i = 0; i < 300; i++) {
		snprintf(file, sizeof(file), FIRST "-%05u.byu.lz4", i);
		if (i >= 290)
			make_other(f, file, SECOND);
		else
			header_file_make(&f->dir, file, 1);
	}
	assert_int_equal(reads_of(f), 64);
	assert_int_equal(bc_catalogue_sums(f->catalogue).segments, 300);
	/* A file that is new later is read at once. */
	make_other(f, FIRST "-00300.byu.lz4", SECOND);
	header_file_make(&f->dir, FIRST "-00301.byu.lz4", 1);
	assert_int_equal(reads_of(f), 64 + 300 / 64 + 2);
	for (; reads_of(f) != 0; listings++)
		assert_in_range(headers_read, 1, 68);
	assert_int_equal(listings, 4);
	assert_int_equal(bc_catalogue_sums(f->catalogue).segments, 291);
}

/* Else a rule would delete other files for their bytes. */
TEST_F(in_a_small_directory_no_foreign_file_is_counted)
{
	header_file_make(&f->dir, FIRST "-00000.byu.lz4", 1);
	make_other(f, FIRST "-00001.byu.lz4", SECOND);
	refresh(f);
	assert_int_equal(bc_catalogue_sums(f->catalogue).segments, 1);
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
	header_file_make(&f->dir, FILE_OF(FIRST) ".partial", 9);
	header_file_make(&f->dir, FILE_OF(SECOND), 10);
	refresh(f);
	sealing_fd = f->dir.fd;
	refresh(f);
	sealing_fd = -1;
	refresh(f);
	struct bc_segment_name names[2];
	assert_int_equal(walk(f, names, 2), 2);
	assert_int_equal(bc_catalogue_sums(f->catalogue).segments, 2);
}

/* Pages */

TEST_F(a_page_has_one_file_of_each_number)
{
	struct bc_recording_list list;
	uint64_t omitted;

	header_file_make(&f->dir, FILE_OF(FIRST), 9);
	header_file_make(&f->dir, FILE_OF(FIRST) ".partial", 9);
	refresh(f);
	assert_int_equal(bc_catalogue_page(f->catalogue, NULL, 1, &list, &omitted), 0);
	assert_int_equal(list.recordings[0].count, 1);
	assert_int_equal(list.files[0].state, BC_FILE_SEALED);
	bc_recording_list_free(&list);
}

/* The truth */

static int compare_names(const void *a, const void *b)
{
	return bc_segment_name_compare(a, b);
}

/* Compares the catalogue with what is in the directory. */
static void assert_true_sums(struct fixture *f)
{
	struct bc_recording_list list;
	struct bc_catalogue_sums truth = {.segments = 0};
	struct bc_segment_name ours[512];
	struct bc_segment_name known[512];
	unsigned count = 0;

	assert_int_equal(bc_recording_list_read(&list, f->dir.fd, false), 0);
	for (uint32_t i = 0; i < list.count; i++) {
		bool has_open = false;
		for (uint32_t j = list.recordings[i].count; j-- != 0;) {
			const struct bc_recording_file *file =
				&list.files[list.recordings[i].first + j];
			struct bc_segment_name name = bc_recording_file_name(
				&list.recordings[i], file);
			struct bc_segment_header header;
			char text[BC_SEGMENT_NAME_MAX];
			struct stat status;
			bc_segment_name_write(text, &name);
			if (j + 1 == list.recordings[i].count || file[1].number != file->number)
				has_open = false;
			if (bc_segment_owner_check(&header, f->dir.fd, text, &name) != 0)
				continue;
			assert_int_equal(fstatat(f->dir.fd, text, &status, 0), 0);
			truth.segments += name.damaged == 0;
			truth.bytes += (uint64_t)status.st_size;
			truth.damaged_bytes += name.damaged != 0 ? (uint64_t)status.st_size : 0;
			has_open = has_open || name.is_partial;
			if (!name.is_partial && name.damaged == 0 && !has_open)
				ours[count++] = name;
		}
	}
	bc_recording_list_free(&list);
	struct bc_catalogue_sums sums = bc_catalogue_sums(f->catalogue);
	assert_int_equal(sums.segments, truth.segments);
	assert_int_equal(sums.bytes, truth.bytes);
	assert_int_equal(sums.damaged_bytes, truth.damaged_bytes);
	assert_int_equal(walk(f, known, 512), count);
	qsort(known, count, sizeof(known[0]), compare_names);
	qsort(ours, count, sizeof(ours[0]), compare_names);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(compare_names(&known[i], &ours[i]), 0);
}

static const char *const suffixes[] = {"", "", "", ".partial", ".damaged", ".damaged.2"};

/* Gives a file a time of its own. Those of the kernel are coarse: two changes may have the same. */
static void set_time(struct fixture *f, const char *file)
{
	static atomic_long seconds;
	struct timespec times[2] = {{.tv_sec = ++seconds}};

	times[1] = times[0];
	(void)!utimensat(f->dir.fd, file, times, AT_SYMLINK_NOFOLLOW);
}

/* Does one thing to a file of a few names: whatever a user, or recovery, may do. */
static void change(struct fixture *f, unsigned *seed, unsigned recordings)
{
	char file[BC_SEGMENT_NAME_MAX];
	char other[BC_SEGMENT_NAME_MAX];
	unsigned recording = (unsigned)rand_r(seed) % recordings;
	unsigned number = (unsigned)rand_r(seed) % 4;

	snprintf(file, sizeof(file), "20261101T00%04uZ-000000-%05u.byu.lz4%s", recording, number,
		suffixes[(unsigned)rand_r(seed) % COUNT_OF(suffixes)]);
	snprintf(other, sizeof(other), "20261101T00%04uZ-000000-%05u.byu.lz4%s", recording, number,
		suffixes[(unsigned)rand_r(seed) % COUNT_OF(suffixes)]);
	switch (rand_r(seed) % 7) {
	case 0:
	case 1:
	case 2:
		header_file_make(&f->dir, file, recording * 7 % 11);
		set_time(f, file);
		break;
	case 3:
		make_other(f, file, SECOND);
		set_time(f, file);
		break;
	case 4:
		temp_write(&f->dir, file, "text", (size_t)rand_r(seed) % 5);
		set_time(f, file);
		break;
	case 5:
		(void)!renameat(f->dir.fd, file, f->dir.fd, other);
		break;
	default:
		(void)!unlinkat(f->dir.fd, file, 0);
	}
}

TEST_F(after_a_listing_the_catalogue_is_right)
{
	for (unsigned seed = 1; seed <= 1000; seed += (unsigned)test_stride(20)) {
		unsigned state = seed;
		unsigned recordings = 1 + seed % 12;
		for (unsigned i = 0; i < 4; i++) {
			for (unsigned changes = seed % 40; changes != 0; changes--)
				change(f, &state, recordings);
			refresh(f);
			assert_true_sums(f);
		}
	}
}

/* As the writer: it makes, seals and deletes segments of its own, and looks at each. */
struct writer {
	struct fixture *f;
	const char *recording;
	struct bc_log_limits limits;
};

static void *write_segments(void *context)
{
	struct writer *w = context;
	char file[BC_SEGMENT_NAME_MAX];
	char open[BC_SEGMENT_NAME_MAX + 16];

	for (unsigned i = 0; i < 400; i++) {
		snprintf(file, sizeof(file), "%s-%05u.byu.lz4", w->recording, i);
		snprintf(open, sizeof(open), "%s.partial", file);
		header_file_make(&w->f->dir, open, 20);
		assert_int_equal(look(w->f, open), 0);
		assert_int_equal(renameat(w->f->dir.fd, open, w->f->dir.fd, file), 0);
		assert_int_equal(look(w->f, open), -ENOENT);
		assert_int_equal(look(w->f, file), 0);
		if (i < 8)
			continue;
		snprintf(file, sizeof(file), "%s-%05u.byu.lz4", w->recording, i - 8);
		assert_int_equal(unlinkat(w->f->dir.fd, file, 0), 0);
		assert_int_equal(look(w->f, file), -ENOENT);
	}
	return NULL;
}

TEST_F(the_writer_and_the_listing_agree)
{
	struct writer writer = {.f = f, .recording = "20261102T000000Z-000002"};
	unsigned seed = 5;
	pthread_t thread;

	assert_int_equal(bc_catalogue_start(f->catalogue, f->dir.path), 0);
	assert_true(bc_catalogue_wait(f->catalogue, UINT64_C(60000000000)));
	assert_int_equal(pthread_create(&thread, NULL, write_segments, &writer), 0);
	for (unsigned i = 0; i < 100; i++) {
		change(f, &seed, 5);
		refresh(f);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	refresh(f);
	assert_true_sums(f);
}

TEST_F(another_directory_may_take_its_place)
{
	struct temp_dir other;

	temp_dir_make(&other);
	header_file_make(&f->dir, FILE_OF(FIRST), 9);
	header_file_make(&other, FILE_OF(SECOND), 10);
	header_file_make(&other, FILE_OF(THIRD), 10);
	refresh(f);
	assert_int_equal(bc_catalogue_set_dir(f->catalogue, other.fd), 0);
	assert_false(bc_catalogue_sums(f->catalogue).is_complete);
	refresh(f);
	assert_true(bc_catalogue_sums(f->catalogue).is_complete);
	assert_int_equal(bc_catalogue_sums(f->catalogue).segments, 2);
	assert_int_equal(unlinkat(other.fd, FILE_OF(THIRD), 0), 0);
	assert_true(bc_catalogue_notice(f->catalogue, other.fd, &f->limits));
	assert_int_equal(bc_catalogue_sums(f->catalogue).segments, 1);
	temp_dir_remove(&other);
}

TEST_F(it_stays_at_the_old_directory_if_it_cannot_take_the_new_one)
{
	refresh(f);
	assert_int_equal(bc_catalogue_set_dir(f->catalogue, -1), -EBADF);
	assert_true(bc_catalogue_sums(f->catalogue).is_complete);
}
