#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xxhash.h>

#include "formats/base/atomic_file.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

#define NAME "f"

static const uint8_t bytes[4096] = {1, 2, 3, 4, 5, 0xFF, 7};

/* What the file system lacks: errors of a rename with flags, of a hard link, and of the sync of a
 * directory. 0: nothing. */
static int rename_error;
static int link_error;
static int sync_error;

int fsync(int fd)
{
	if (sync_error == 0)
		return (int)syscall(SYS_fsync, fd);
	errno = sync_error;
	return -1;
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	if (rename_error == 0)
		return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags);
	errno = rename_error;
	return -1;
}

int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
	if (link_error == 0)
		return (int)syscall(SYS_linkat, from_fd, from, to_fd, to, flags);
	errno = link_error;
	return -1;
}

/* The file system counts no links, and the inodes of its files change. */
static bool has_odd_inodes;

int fstat(int fd, struct stat *st)
{
	int rc = (int)syscall(SYS_newfstatat, fd, "", st, AT_EMPTY_PATH);

	if (has_odd_inodes) {
		st->st_nlink = 0;
		st->st_ino += UINT64_C(1) << 40; /* no file has it */
	}
	return rc;
}

static void set_up(struct temp_dir *dir)
{
	signal(SIGXFSZ, SIG_IGN);
	temp_dir_make(dir);
}

TEST_FIXTURE(temp_dir, set_up, temp_dir_remove)

/* The hash of the whole file, computed in one go. */
static void assert_hashed(const struct temp_dir *dir, const char *hash)
{
	char expected[BC_FILE_HASH_CHARS];
	size_t n;
	uint8_t *all = temp_read(dir, NAME, &n);
	XXH128_hash_t h = XXH3_128bits(all, n);

	snprintf(expected, sizeof(expected), "%016llx%016llx", (unsigned long long)h.high64,
		(unsigned long long)h.low64);
	assert_string_equal(hash, expected);
	free(all);
}

static void create_file(struct bc_atomic_file *f, const struct temp_dir *dir, size_t head)
{
	assert_int_equal(bc_atomic_file_create(f, dir->fd, NAME, ".partial", bytes, head), 0);
}

TEST_WITH(temp_dir, dir, sealed_hash_is_the_hash_of_the_file)
{
	struct bc_atomic_file f;

	/* XXH3 has different code for up to 16, 128 and 240 bytes, and above. */
	for (size_t head = 0; head < 300; head += 7) {
		create_file(&f, dir, head);
		for (size_t piece = 0; piece < 600; piece += 97)
			assert_int_equal(bc_atomic_file_append(&f, bytes + piece, piece), 0);
		assert_int_equal(bc_atomic_file_seal(&f), 0);
		assert_int_equal(f.fd, -1);
		assert_hashed(dir, f.sealed_hash);
		assert_int_equal(unlinkat(dir->fd, NAME, 0), 0);
	}
}

TEST_WITH(temp_dir, dir, a_failed_append_is_not_in_the_hash)
{
	struct bc_atomic_file f;

	create_file(&f, dir, 100);
	for (size_t room = 0; room < 300; room += 3) {
		set_file_limit(f.bytes + room);
		assert_int_equal(bc_atomic_file_append(&f, bytes + 1, 300), -EFBIG);
		set_file_limit(RLIM_INFINITY);
	}
	assert_int_equal(bc_atomic_file_append(&f, bytes, 200), 0);
	assert_int_equal(bc_atomic_file_seal(&f), 0);
	assert_hashed(dir, f.sealed_hash);
}

TEST_WITH(temp_dir, dir, an_end_is_in_the_hash_unless_truncated)
{
	struct bc_atomic_file f;

	create_file(&f, dir, 100);
	for (int again = 0; again < 3; again++) {
		assert_int_equal(bc_atomic_file_append_end(&f, bytes, 50), 0);
		assert_int_equal(bc_atomic_file_append_end(&f, bytes + 3, 70), 0);
		bc_atomic_file_truncate(&f);
		assert_int_equal(f.bytes, 100 + again * 10);
		assert_int_equal(bc_atomic_file_append(&f, bytes, 10), 0);
	}
	assert_int_equal(bc_atomic_file_append_end(&f, bytes + 5, 33), 0);
	set_file_limit(f.bytes + 50);
	assert_int_equal(bc_atomic_file_append_end(&f, bytes, 33), -EFBIG);
	set_file_limit(RLIM_INFINITY);
	bc_atomic_file_truncate(&f);
	assert_int_equal(bc_atomic_file_append_end(&f, bytes + 1, 20), 0);
	temp_write(dir, NAME, "mine", 4);
	assert_int_equal(bc_atomic_file_seal(&f), -EEXIST); /* truncates the end, too */
	assert_int_equal(unlinkat(dir->fd, NAME, 0), 0);
	assert_int_equal(bc_atomic_file_append_end(&f, bytes + 2, 21), 0);
	assert_int_equal(bc_atomic_file_append_end(&f, bytes + 9, 4), 0);
	assert_int_equal(bc_atomic_file_seal(&f), 0);
	assert_hashed(dir, f.sealed_hash);
}

TEST_WITH(temp_dir, dir, a_stale_tail_is_removed_when_sealing)
{
	struct bc_atomic_file f;
	size_t n;

	create_file(&f, dir, 100);
	/* As after a failed write and a failed truncation. */
	assert_int_equal(pwrite(f.fd, bytes, 500, 100), 500);
	f.has_stale_tail = true;
	assert_int_equal(bc_atomic_file_append(&f, bytes, 10), 0);
	assert_int_equal(bc_atomic_file_append_end(&f, bytes, 20), 0);
	assert_int_equal(bc_atomic_file_seal(&f), 0);
	assert_hashed(dir, f.sealed_hash);
	free(temp_read(dir, NAME, &n));
	assert_int_equal(n, 130);
}

/* Renames "from" to "to". The outcome must not depend on what the file system lacks. */
static void assert_renames(struct temp_dir *dir)
{
	temp_write(dir, "from", "new", 3);
	temp_write(dir, "to", "old", 3);
	assert_int_equal(bc_rename_new(dir->fd, "from", "to"), -EEXIST);
	assert_true(temp_exists(dir, "from") && temp_exists(dir, "to"));
	assert_int_equal(unlinkat(dir->fd, "to", 0), 0);
	assert_int_equal(symlinkat("nowhere", dir->fd, "to"), 0);
	assert_int_equal(bc_rename_new(dir->fd, "from", "to"), -EEXIST);
	assert_int_equal(unlinkat(dir->fd, "to", 0), 0);
	assert_int_equal(bc_rename_new(dir->fd, "from", "to"), 0);
	assert_true(!temp_exists(dir, "from") && temp_exists(dir, "to"));
	assert_int_equal(bc_rename_new(dir->fd, "from", "elsewhere"), -ENOENT);
	assert_int_equal(temp_dir_empty(dir), 1);
}

TEST_WITH(temp_dir, dir, a_rename_never_replaces_whatever_the_file_system_lacks)
{
	static const int lacking[] = {EINVAL, ENOSYS, EOPNOTSUPP, EPERM};
	static const int links[] = {EPERM, EOPNOTSUPP, EMLINK, EACCES, EIO, 524 /* ENOTSUPP */};

	assert_renames(dir);
	for (unsigned i = 0; i < COUNT_OF(lacking); i++) {
		rename_error = lacking[i];
		link_error = 0;
		assert_renames(dir);
		for (unsigned k = 0; k < COUNT_OF(links); k++) {
			link_error = links[k];
			assert_renames(dir);
		}
	}
	rename_error = link_error = 0;
}

TEST_WITH(temp_dir, dir, a_rename_that_fails_is_not_tried_in_another_way)
{
	static const int failures[] = {EIO, EROFS, EACCES, ENOSPC, EDQUOT};

	temp_write(dir, "from", "new", 3);
	for (unsigned i = 0; i < 5; i++) {
		rename_error = failures[i];
		assert_int_equal(bc_rename_new(dir->fd, "from", "to"), -failures[i]);
	}
	rename_error = 0;
	assert_true(temp_exists(dir, "from") && !temp_exists(dir, "to"));
}

TEST_WITH(temp_dir, dir, a_directory_that_cannot_be_synced_is_no_failure_of_the_disk)
{
	static const int lacking[] = {EINVAL, EBADF, ENOSYS, EOPNOTSUPP, EPERM};
	struct bc_atomic_file f;

	for (unsigned i = 0; i < COUNT_OF(lacking); i++) {
		create_file(&f, dir, 100);
		sync_error = lacking[i];
		assert_int_equal(bc_atomic_file_sync(&f), 0);
		sync_error = 0;
		assert_int_equal(bc_atomic_file_seal(&f), 0);
		assert_int_equal(unlinkat(dir->fd, NAME, 0), 0);
	}
	create_file(&f, dir, 100);
	sync_error = EIO;
	assert_int_equal(bc_atomic_file_sync(&f), -EIO);
	sync_error = 0;
	bc_atomic_file_abandon(&f);
}

TEST_WITH(temp_dir, dir, a_file_is_deleted_if_its_name_is_gone_or_another_files)
{
	struct bc_atomic_file f;

	for (int odd = 0; odd < 2; odd++) {
		has_odd_inodes = odd != 0;
		create_file(&f, dir, 100);
		assert_false(bc_atomic_file_is_deleted(&f));
		assert_int_equal(unlinkat(dir->fd, NAME ".partial", 0), 0);
		assert_true(bc_atomic_file_is_deleted(&f));
		temp_write(dir, NAME ".partial", "other", 5);
		assert_true(bc_atomic_file_is_deleted(&f));
		assert_int_equal(unlinkat(dir->fd, NAME ".partial", 0), 0);
		bc_atomic_file_abandon(&f);
	}
	has_odd_inodes = false;
}

TEST_WITH(temp_dir, dir, an_open_file_shows_whether_its_writer_is_alive)
{
	struct bc_atomic_file f;

	create_file(&f, dir, 100);
	int fd = openat(dir->fd, NAME ".partial", O_RDONLY | O_CLOEXEC);
	assert_true(bc_is_being_written(fd));
	bc_atomic_file_abandon(&f);
	assert_false(bc_is_being_written(fd));
	close(fd);
}
