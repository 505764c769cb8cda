#include "daemon/store/reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* The record of a loss takes a few kilobytes: one segment with a chunk without records. */
#define LEAST_BYTES 16384u

/* Allocates as much as possible beyond the first `have` bytes. Returns 0 or a negative errno. */
static int extend(int fd, uint64_t have)
{
	int error = 0;

	for (uint64_t bytes = BC_RESERVE_BYTES; bytes >= LEAST_BYTES && bytes > have; bytes /= 2) {
		int rc = posix_fallocate(fd, 0, (off_t)bytes);
		if (rc == 0)
			break;
		error = error != 0 ? error : rc;
		/* A failed attempt may have allocated some. */
		if (ftruncate(fd, (off_t)have) != 0)
			break;
	}
	return -error;
}

int bc_reserve_fill(int dir_fd)
{
	struct stat st;
	int rc = -ENOSPC;

	if (fstatat(dir_fd, BC_RESERVE_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		(uint64_t)st.st_size >= BC_RESERVE_BYTES)
		return 0;
	int fd = openat(dir_fd, BC_RESERVE_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0)
		rc = extend(fd, (uint64_t)st.st_size);
	bool is_empty = fstat(fd, &st) == 0 && st.st_size == 0;
	close(fd);
	if (is_empty)
		unlinkat(dir_fd, BC_RESERVE_NAME, 0);
	return rc;
}

bool bc_reserve_release(int dir_fd)
{
	return unlinkat(dir_fd, BC_RESERVE_NAME, 0) == 0;
}
