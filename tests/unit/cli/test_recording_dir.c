/* A directory as an operand stands for its segments, each listed once. */
#include <dlfcn.h>

#include "cli/io/recording_dir.h"
#include "formats/search/segment_files.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

#define SEGMENT "20261120T091500Z-3f9a2c-0000"
#define SEALED  SEGMENT "1.byu.lz4"
#define PARTIAL SEALED ".partial"

/* The directory in which PARTIAL is sealed right after it was listed, or -1. */
static int sealing_fd = -1;

struct dirent *readdir(DIR *dir)
{
	static struct dirent *(*next)(DIR *);

	if (next == NULL)
		*(void **)&next = dlsym(RTLD_NEXT, "readdir");
	struct dirent *file = next(dir);
	if (file != NULL && sealing_fd >= 0 && strcmp(file->d_name, PARTIAL) == 0)
		assert_int_equal(renameat(sealing_fd, PARTIAL, sealing_fd, SEALED), 0);
	return file;
}

struct fixture {
	struct temp_dir dir;
	struct bc_path_list list;
};

static void set_up(struct fixture *f)
{
	temp_dir_make(&f->dir);
}

static void tear_down(struct fixture *f)
{
	sealing_fd = -1;
	bc_path_list_free(&f->list);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

static void add(struct fixture *f, const char *name)
{
	int fd = openat(f->dir.fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static void check_list(struct fixture *f, const char *const *names, int count)
{
	char path[TEMP_PATH_BYTES];

	assert_int_equal(bc_path_list_fill_dir(&f->list, f->dir.path), 0);
	assert_int_equal(f->list.count, count);
	for (int i = 0; i < count; i++) {
		assert_true(bc_segment_path_find(f->list.paths[i]));
		assert_string_equal(f->list.paths[i], temp_path(&f->dir, names[i], path));
	}
}

TEST_F(segments_are_listed_by_their_numbers_beyond_99999)
{
	static const char *const names[] = {"20261120T091500Z-3f9a2c-99999.byu.lz4",
		"20261120T091500Z-3f9a2c-a100000.byu.lz4",
		"20261120T091500Z-3f9a2c-a100001.byu.lz4.partial",
		"20261120T091500Z-3f9a2c-b1000000.byu.lz4"};

	for (size_t i = COUNT_OF(names); i-- > 0;)
		add(f, names[i]);
	check_list(f, names, COUNT_OF(names));
}

TEST_F(a_torn_segment_is_listed_unless_it_has_a_sealed_copy)
{
	static const char *const names[] = {
		SEGMENT "0.byu.lz4", SEALED, SEGMENT "2.byu.lz4.partial"};

	add(f, PARTIAL);
	for (size_t i = 0; i < COUNT_OF(names); i++)
		add(f, names[i]);
	add(f, "notes");
	check_list(f, names, COUNT_OF(names));
}

TEST_F(a_segment_that_is_sealed_while_the_directory_is_read_is_listed)
{
	static const char *const names[] = {SEGMENT "0.byu.lz4", SEALED};

	add(f, names[0]);
	add(f, PARTIAL);
	sealing_fd = f->dir.fd;
	check_list(f, names, COUNT_OF(names));
}
