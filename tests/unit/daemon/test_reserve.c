#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/last_write.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

struct fixture {
	struct temp_dir dir;
};

static void set_up(struct fixture *f)
{
	signal(SIGXFSZ, SIG_IGN);
	temp_dir_make(&f->dir);
}

static void tear_down(struct fixture *f)
{
	set_file_limit(RLIM_INFINITY);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

/* Returns the size of the file, all of it allocated; -1 if there is none. */
static int64_t reserved(struct fixture *f)
{
	struct stat st;

	if (fstatat(f->dir.fd, BC_RESERVE_NAME, &st, 0) != 0)
		return -1;
	assert_true(st.st_blocks * 512 >= st.st_size);
	return st.st_size;
}

TEST_F(a_reserve_is_allocated_and_released)
{
	assert_int_equal(bc_reserve_fill(f->dir.fd), 0);
	assert_int_equal(reserved(f), BC_RESERVE_BYTES);
	assert_int_equal(bc_reserve_fill(f->dir.fd), 0);
	assert_int_equal(reserved(f), BC_RESERVE_BYTES);
	assert_true(bc_reserve_release(f->dir.fd));
	assert_int_equal(reserved(f), -1);
	assert_false(bc_reserve_release(f->dir.fd));
}

/* A limit on the size of files stands in for a full disk. */
TEST_F(a_reserve_takes_what_it_can_get_and_grows_later)
{
	set_file_limit(1000);
	assert_int_equal(bc_reserve_fill(f->dir.fd), -EFBIG);
	assert_int_equal(reserved(f), -1);
	set_file_limit(100000);
	assert_int_equal(bc_reserve_fill(f->dir.fd), -EFBIG);
	assert_int_equal(reserved(f), 65536);
	set_file_limit(70000);
	assert_int_equal(bc_reserve_fill(f->dir.fd), -EFBIG);
	assert_int_equal(reserved(f), 65536);
	set_file_limit(RLIM_INFINITY);
	assert_int_equal(bc_reserve_fill(f->dir.fd), 0);
	assert_int_equal(reserved(f), BC_RESERVE_BYTES);
}

TEST_F(a_link_in_place_of_the_reserve_is_not_followed)
{
	assert_int_equal(symlinkat("elsewhere", f->dir.fd, BC_RESERVE_NAME), 0);
	assert_int_equal(bc_reserve_fill(f->dir.fd), -ELOOP);
	assert_false(temp_exists(&f->dir, "elsewhere"));
}
