/* A disk that becomes full, fails, hangs and recovers, for the writing threads of a program with
 * tests/support/fibers.h. Its functions replace those of the C library; the files are real. Calls
 * of fiber 0 never fail. */
#ifndef BC_TESTS_SUPPORT_FAKE_DISK_H
#define BC_TESTS_SUPPORT_FAKE_DISK_H

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "tests/support/fibers.h"

enum disk_state {
	DISK_FINE,
	DISK_FULL,    /* no file may grow */
	DISK_FAILING, /* some calls fail with EIO */
	DISK_SLOW,    /* some calls take up to a second */
};

struct fake_disk {
	int dir_fd;
	enum disk_state state;
	uint64_t capacity; /* of all files, while full */
	uint64_t failed;   /* calls */
};

static struct fake_disk disk;

static uint64_t disk_used(void)
{
	int fd = (int)syscall(SYS_openat, disk.dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	DIR *dir = fdopendir(fd);
	uint64_t used = 0;

	fibers_check(dir != NULL);
	for (struct dirent *item; (item = readdir(dir)) != NULL;) {
		struct stat st;
		if (fstatat(disk.dir_fd, item->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISREG(st.st_mode))
			used += (uint64_t)st.st_size;
	}
	closedir(dir);
	return used;
}

static void disk_set(enum disk_state state)
{
	disk.state = state;
	disk.capacity = state == DISK_FULL ? disk_used() + dice_below(&fibers.dice, 1500) : 0;
}

/* Another thread's turn; then whether this call must fail with EIO. */
static bool disk_fails(const char *call)
{
	if (fibers.count == 0 || fibers.current == 0)
		return false;
	fibers_point(call, NULL);
	if (disk.state == DISK_SLOW && fibers_chance(4))
		fibers_wait(call, NULL, fibers.now_ns + dice_below(&fibers.dice, 1000000000));
	if (disk.state != DISK_FAILING || !fibers_chance(4))
		return false;
	disk.failed++;
	errno = EIO;
	return true;
}

/* Returns how much of `count` bytes the disk has space for. */
static size_t disk_admits(int fd, size_t count, off_t offset)
{
	struct stat st;

	if (fibers.count == 0 || fibers.current == 0 || disk.state != DISK_FULL ||
		fstat(fd, &st) != 0 || offset + (off_t)count <= st.st_size)
		return count;
	uint64_t used = disk_used();
	uint64_t left = used < disk.capacity ? disk.capacity - used : 0;
	uint64_t more = (uint64_t)(offset + (off_t)count - st.st_size);
	if (more <= left)
		return count;
	return more - left < count ? count - (size_t)(more - left) : 0;
}

ssize_t pwrite(int fd, const void *data, size_t count, off_t offset)
{
	if (disk_fails("pwrite"))
		return -1;
	size_t admitted = disk_admits(fd, count, offset);
	if (admitted == 0 && count != 0) {
		errno = ENOSPC;
		return -1;
	}
	return syscall(SYS_pwrite64, fd, data, admitted, offset);
}

static int disk_allocate(int fd, int mode, off_t offset, off_t count)
{
	if (disk_fails("fallocate"))
		return -1;
	if (disk_admits(fd, (size_t)count, offset) < (size_t)count) {
		errno = ENOSPC;
		return -1;
	}
	return (int)syscall(SYS_fallocate, fd, mode, offset, count);
}

int fallocate(int fd, int mode, off_t offset, off_t count)
{
	return disk_allocate(fd, mode, offset, count);
}

int posix_fallocate(int fd, off_t offset, off_t count)
{
	return disk_allocate(fd, 0, offset, count) != 0 ? errno : 0;
}

int fdatasync(int fd)
{
	return disk_fails("fdatasync") ? -1
	       : fibers.count != 0     ? 0
				       : (int)syscall(SYS_fdatasync, fd);
}

int fsync(int fd)
{
	return disk_fails("fsync") ? -1 : fibers.count != 0 ? 0 : (int)syscall(SYS_fsync, fd);
}

int ftruncate(int fd, off_t bytes)
{
	return disk_fails("ftruncate") ? -1 : (int)syscall(SYS_ftruncate, fd, bytes);
}

int openat(int dir_fd, const char *name, int flags, ...)
{
	va_list args;

	va_start(args, flags);
	mode_t mode = (flags & O_CREAT) != 0 ? va_arg(args, mode_t) : 0;
	va_end(args);
	return disk_fails("openat") ? -1 : (int)syscall(SYS_openat, dir_fd, name, flags, mode);
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	return disk_fails("rename") ? -1
				    : (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags);
}

int unlinkat(int dir_fd, const char *name, int flags)
{
	return disk_fails("unlink") ? -1 : (int)syscall(SYS_unlinkat, dir_fd, name, flags);
}

#endif
