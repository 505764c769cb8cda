/* A search finds files under the names they have by then. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "formats/recording/search.h"
#include "tests/support/small_segment.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

enum change { NOTHING, SEALED, DELETED };

struct fixture {
	struct temp_dir dir;
	struct small_segment segment;
	char sealed[100];
	char partial[128];
	enum change change; /* happens to the file just before it is opened for the first time */
	bool opens_itself;  /* the search does */
	unsigned opened;
	unsigned faults;
};

static void set_up(struct fixture *f)
{
	*f = (struct fixture){.opened = 0};
	temp_dir_make(&f->dir);
	small_make(&f->segment, &f->dir, 0, 0);
	snprintf(f->sealed, sizeof(f->sealed), "%s/%s", f->dir.path, f->segment.name);
	snprintf(f->partial, sizeof(f->partial), "%s.partial", f->sealed);
}

static void tear_down(struct fixture *f)
{
	free(f->segment.bytes);
	temp_dir_remove(&f->dir);
}

static int on_open(void *context, const char *path)
{
	struct fixture *f = context;

	if (f->opened++ == 0 && f->change == SEALED)
		assert_int_equal(rename(f->partial, f->sealed), 0);
	if (f->opened == 1 && f->change == DELETED)
		assert_int_equal(unlink(f->partial), 0);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno != ENOENT)
		f->faults++;
	return fd;
}

static void on_fault(void *context, const struct bc_segment_fault *fault)
{
	struct fixture *f = context;

	(void)fault;
	f->faults++;
}

/* Returns the number of records found in the segment, which is listed as one being written. */
static uint64_t count(struct fixture *f)
{
	const struct bc_segment_io io = {
		.context = f, .open = f->opens_itself ? NULL : on_open, .fault = on_fault};
	struct bc_search_options options = {.is_count = true};
	char path[sizeof(f->partial)];
	char *paths[] = {strcpy(path, f->partial)};
	const char *missing;
	uint64_t matches;

	bc_filter_init(&options.filter);
	assert_int_equal(bc_search_run(&options, paths, 1, &io, NULL, &matches, &missing), 0);
	return matches;
}

TEST(a_segment_is_searched_whenever_it_is_sealed)
{
	struct fixture f;

	set_up(&f);
	assert_int_equal(count(&f), SMALL_RECORDS); /* after it was listed */
	assert_int_equal(rename(f.sealed, f.partial), 0);
	f.opened = 0;
	f.change = SEALED;
	assert_int_equal(count(&f), SMALL_RECORDS); /* after it was looked up */
	assert_int_equal(f.opened, 2);
	assert_int_equal(f.faults, 0);
	tear_down(&f);
}

TEST(a_file_that_is_deleted_or_unreadable_is_opened_once)
{
	struct fixture f;

	set_up(&f);
	assert_int_equal(rename(f.sealed, f.partial), 0);
	f.change = DELETED;
	assert_int_equal(count(&f), 0);
	assert_int_equal(f.opened, 2); /* it may have been sealed */
	assert_int_equal(f.faults, 0);
	assert_int_equal(symlink(f.partial, f.partial), 0);
	f.change = NOTHING;
	assert_int_equal(count(&f), 0);
	assert_int_equal(f.opened, 3);
	assert_int_equal(f.faults, 1);
	tear_down(&f);
}

TEST(only_regular_files_are_opened)
{
	struct fixture f;

	set_up(&f);
	f.opens_itself = true;
	assert_int_equal(count(&f), SMALL_RECORDS);
	assert_int_equal(symlink(f.sealed, f.partial), 0);
	assert_int_equal(count(&f), 0);
	assert_int_equal(f.faults, 1);
	assert_int_equal(unlink(f.partial), 0);
	assert_int_equal(mkdir(f.partial, 0777), 0);
	assert_int_equal(count(&f), 0);
	assert_int_equal(f.faults, 2);
	assert_int_equal(rmdir(f.partial), 0);
	assert_int_equal(unlink(f.sealed), 0);
	assert_int_equal(count(&f), 0);
	assert_int_equal(f.faults, 2);
	tear_down(&f);
}

/* What may be the matter with a segment between two others. */
enum middle { HERE, GONE, FOREIGN, TEXT, ONLY_HEADER, MIDDLES };

struct three {
	enum middle middle;
	unsigned opened;
	unsigned holes;
};

static int open_one_of_three(void *context, const char *path)
{
	struct three *t = context;

	if (t->opened++ == 1 && t->middle == FOREIGN) {
		errno = EXDEV;
		return -1;
	}
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void on_fault_of_three(void *context, const struct bc_segment_fault *fault)
{
	struct three *t = context;

	t->holes += fault->kind == BC_SEGMENT_MISSING;
}

TEST(only_a_foreign_file_between_two_segments_leaves_a_hole)
{
	for (enum middle middle = HERE; middle < MIDDLES; middle++) {
		struct three t = {.middle = middle};
		const struct bc_segment_io io = {
			.context = &t, .open = open_one_of_three, .fault = on_fault_of_three};
		struct bc_search_options options = {.is_count = true};
		struct small_segment segments[3];
		struct temp_dir dir;
		char *paths[3];
		const char *missing;
		uint64_t matches;

		temp_dir_make(&dir);
		for (unsigned i = 0; i < 3; i++) {
			small_make(&segments[i], &dir, i, i * SMALL_RECORDS);
			assert_true(asprintf(&paths[i], "%s/%s", dir.path, segments[i].name) > 0);
		}
		if (middle == GONE)
			assert_int_equal(unlink(paths[1]), 0);
		if (middle == TEXT)
			temp_write(&dir, segments[1].name, "text", 4);
		if (middle == ONLY_HEADER) /* its list of chunks is empty */
			temp_write(&dir, segments[1].name, segments[1].bytes,
				segments[1].chunks[0].begin);
		bc_filter_init(&options.filter);
		assert_int_equal(
			bc_search_run(&options, paths, 3, &io, NULL, &matches, &missing), 0);
		assert_int_equal(matches, (middle == HERE ? 3 : 2) * SMALL_RECORDS);
		assert_int_equal(t.holes, middle == FOREIGN);
		for (unsigned i = 0; i < 3; i++) {
			free(segments[i].bytes);
			free(paths[i]);
		}
		temp_dir_remove(&dir);
	}
}
