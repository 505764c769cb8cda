#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/lock.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

TEST_THREADS;

struct fixture {
	struct temp_dir dir;
	char path[128];
	char err[512];
};

static void set_up(struct fixture *f)
{
	temp_dir_make(&f->dir);
	snprintf(f->path, sizeof(f->path), "%s/lock", f->dir.path);
}

static void tear_down(struct fixture *f)
{
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

TEST_F(a_lock_names_its_holder_and_leaves_no_file)
{
	long holder;
	int fd = bc_lock_file(f->path, &holder, f->err, sizeof(f->err));

	assert_true(fd >= 0);
	assert_int_equal(bc_lock_file(f->path, &holder, f->err, sizeof(f->err)), -EBUSY);
	assert_int_equal(holder, getpid());
	assert_string_equal(f->err, "");
	bc_unlock_file(fd, f->path);
	assert_false(exists(f->path));
}

/* "1" was the whole file once; the pid of another container is not one of ours. */
TEST_F(a_pid_of_another_namespace_is_unknown)
{
	static const char *const texts[] = {
		"1\n", "1 pid:[1]\n", "1 ?\n", "", "-1 pid:[1]\n", "pid:[1]\n", "1pid:[1]\n"};
	long holder;
	int fd = bc_lock_file(f->path, &holder, f->err, sizeof(f->err));

	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		write_file(f->path, texts[i]);
		holder = -1;
		assert_int_equal(bc_lock_file(f->path, &holder, f->err, sizeof(f->err)), -EBUSY);
		assert_int_equal(holder, 0);
	}
	bc_unlock_file(fd, f->path);
}

/* Another process may have made its own file there. */
TEST_F(only_the_own_file_is_deleted)
{
	long holder;
	int fd = bc_lock_file(f->path, &holder, f->err, sizeof(f->err));

	assert_int_equal(unlink(f->path), 0);
	write_file(f->path, "");
	bc_unlock_file(fd, f->path);
	assert_true(exists(f->path));
}

struct rivals {
	const char *path;
	atomic_int holders;
	atomic_uint turns;
	atomic_uint wrong;
};

static void *take_turns(void *context)
{
	struct rivals *r = context;
	char err[256];
	long holder;

	while (atomic_load(&r->turns) < 600) {
		int fd = bc_lock_file(r->path, &holder, err, sizeof(err));
		if (fd < 0) {
			atomic_fetch_add(&r->wrong, fd != -EBUSY);
			continue;
		}
		atomic_fetch_add(&r->wrong, atomic_fetch_add(&r->holders, 1) != 0);
		atomic_fetch_add(&r->turns, 1);
		sched_yield();
		atomic_fetch_sub(&r->holders, 1);
		bc_unlock_file(fd, r->path);
	}
	return NULL;
}

/* One may open the file just before another deletes it. */
TEST_F(a_deleted_lock_file_never_admits_two)
{
	struct rivals r = {.path = f->path};
	pthread_t threads[3];

	for (size_t i = 0; i < COUNT_OF(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_turns, &r), 0);
	for (size_t i = 0; i < COUNT_OF(threads); i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&r.wrong), 0);
}

TEST_F(an_abandoned_directory_is_removed_if_it_was_new_and_is_empty)
{
	char file[300];
	bool is_new;

	snprintf(file, sizeof(file), "%s/file", f->path);
	for (unsigned i = 0; i < 3; i++) {
		int fd = bc_dir_claim(f->path, &is_new, f->err, sizeof(f->err));
		assert_true(fd >= 0);
		assert_int_equal(is_new, i != 2);
		if (i == 1)
			write_file(file, "");
		bc_dir_abandon(fd, f->path, is_new);
		close(fd);
		assert_int_equal(exists(f->path), i != 0);
	}
	assert_true(exists(file));
	assert_int_equal(unlink(file), 0);
	assert_int_equal(rmdir(f->path), 0); /* the pid file is gone */
}

TEST_F(a_held_directory_names_its_holder_if_it_can)
{
	char pid_file[300];
	char wanted[64];
	bool is_new;
	int fd = bc_dir_claim(f->path, &is_new, f->err, sizeof(f->err));

	assert_true(fd >= 0);
	assert_int_equal(bc_dir_claim(f->path, &is_new, f->err, sizeof(f->err)), -EBUSY);
	snprintf(wanted, sizeof(wanted), ": in use by buscapd with pid %ld; ", (long)getpid());
	assert_non_null(strstr(f->err, wanted));
	snprintf(pid_file, sizeof(pid_file), "%s/.buscapd.lock", f->path);
	write_file(pid_file, "1\n");
	assert_int_equal(bc_dir_claim(f->path, &is_new, f->err, sizeof(f->err)), -EBUSY);
	assert_non_null(strstr(f->err, ": in use by another buscapd, "));
	bc_dir_abandon(fd, f->path, true);
	close(fd);
}

static void *share_for_a_moment(void *context)
{
	const struct timespec moment = {.tv_nsec = 3000000};

	nanosleep(&moment, NULL);
	close(*(int *)context);
	return NULL;
}

/* A command that asks whether a daemon is running holds a shared lock for a moment. */
TEST_F(a_shared_lock_is_waited_for)
{
	bool is_new;
	pthread_t thread;

	assert_int_equal(mkdir(f->path, 0777), 0);
	int shared = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(shared, LOCK_SH), 0);
	assert_int_equal(pthread_create(&thread, NULL, share_for_a_moment, &shared), 0);
	int fd = bc_dir_claim(f->path, &is_new, f->err, sizeof(f->err));
	assert_true(fd >= 0);
	pthread_join(thread, NULL);
	bc_dir_abandon(fd, f->path, true);
	close(fd);
}
