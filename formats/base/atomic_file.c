/* A file written under a temporary name, and renamed when complete and durable. States: closed (fd
 * is -1); open, with `bytes` of whole pieces; open with an end of `end_bytes` after them.
 *
 * Invariant: after each call, the file has whole pieces only, or a stale tail that the next write
 * or the seal removes; and `hash` covers exactly the pieces. The end has a separate hash, so that
 * it can be truncated and written again when the disk was full. */
#include "formats/base/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <xxhash.h>

static void atomic_file_reset(struct bc_atomic_file *f)
{
	memset(f, 0, sizeof(*f));
	f->fd = -1;
}

/* Writes all bytes at `offset`. Returns 0 or a negative errno. */
static int write_at(int fd, const void *data, size_t bytes, uint64_t offset)
{
	const char *p = data;

	while (bytes != 0) {
		ssize_t n = pwrite(fd, p, bytes, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ENOSPC;
		p += n;
		bytes -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}

/* If ftruncate() fails, the next write overwrites the bytes. Until then a torn piece is last. */
void bc_atomic_file_truncate(struct bc_atomic_file *f)
{
	f->end_bytes = 0;
	f->has_stale_tail = ftruncate(f->fd, (off_t)f->bytes) != 0;
}

static int init_hashes(struct bc_atomic_file *f)
{
	f->hash = XXH3_createState();
	f->end_hash = XXH3_createState();
	if (f->hash == NULL || f->end_hash == NULL)
		return -ENOMEM;
	XXH3_128bits_reset(f->hash);
	return 0;
}

/* The length that no file can exceed, by the limits of the process and the file system. */
static uint64_t max_bytes_of(int fd)
{
	uint64_t max = UINT64_MAX;
	struct rlimit limit;
	struct statfs fs;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		max = limit.rlim_cur;
	if (fstatfs(fd, &fs) == 0 && fs.f_type == MSDOS_SUPER_MAGIC && max > UINT32_MAX)
		max = UINT32_MAX; /* FAT */
	return max;
}

int bc_atomic_file_create(struct bc_atomic_file *f, int dir_fd, const char *name,
	const char *suffix, const uint8_t *head, size_t head_bytes)
{
	struct stat st;

	atomic_file_reset(f);
	f->dir_fd = dir_fd;
	if (strlen(name) + strlen(suffix) >= BC_ATOMIC_FILE_NAME_MAX)
		return -ENAMETOOLONG;
	snprintf(f->name, sizeof(f->name), "%s", name);
	snprintf(f->open_name, sizeof(f->open_name), "%s%s", name, suffix);
	if (fstatat(dir_fd, f->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	int rc = init_hashes(f);
	if (rc == 0) {
		f->fd = openat(dir_fd, f->open_name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
		rc = f->fd < 0 ? -errno : 0;
	}
	if (rc != 0) {
		bc_atomic_file_abandon(f);
		return rc;
	}
	/* A process that recovers an open file holds the lock of the other kind. */
	if (flock(f->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
		rc = -EBUSY;
	if (rc == 0)
		rc = write_at(f->fd, head, head_bytes, 0);
	if (rc != 0) {
		unlinkat(dir_fd, f->open_name, 0);
		bc_atomic_file_abandon(f);
		return rc;
	}
	XXH3_128bits_update(f->hash, head, head_bytes);
	f->bytes = head_bytes;
	f->max_bytes = max_bytes_of(f->fd);
	return 0;
}

int bc_atomic_file_append(struct bc_atomic_file *f, const uint8_t *piece, size_t bytes)
{
	int rc = write_at(f->fd, piece, bytes, f->bytes);

	if (rc != 0) {
		bc_atomic_file_truncate(f);
		return rc;
	}
	XXH3_128bits_update(f->hash, piece, bytes);
	f->bytes += bytes;
	return 0;
}

int bc_atomic_file_append_end(struct bc_atomic_file *f, const uint8_t *piece, size_t bytes)
{
	int rc = write_at(f->fd, piece, bytes, f->bytes + f->end_bytes);

	if (rc != 0)
		return rc;
	if (f->end_bytes == 0)
		XXH3_copyState(f->end_hash, f->hash);
	XXH3_128bits_update(f->end_hash, piece, bytes);
	f->end_bytes += bytes;
	return 0;
}

/* True if a file system, kernel or sandbox may refuse one call with this error, but not another. */
static bool is_unsupported(int error)
{
	return error == EINVAL || error == ENOSYS || error == EOPNOTSUPP || error == EPERM;
}

int bc_fd_sync(int fd, int dir_fd)
{
	if (fdatasync(fd) != 0)
		return -errno;
	/* Some file systems, such as CIFS, can't make names durable, and have nothing better. */
	if (dir_fd < 0 || fsync(dir_fd) == 0 || errno == EBADF || is_unsupported(errno))
		return 0;
	return -errno;
}

int bc_atomic_file_sync(struct bc_atomic_file *f)
{
	int rc = bc_fd_sync(f->fd, f->is_name_durable ? -1 : f->dir_fd);
	if (rc != 0)
		return rc;
	f->is_name_durable = true;
	f->durable = f->bytes;
	return 0;
}

/* Some file systems support neither RENAME_NOREPLACE nor hard links, and refuse the latter with any
 * error. The last step checks before it renames, and its error is the one to report. Two writers of
 * the same name cannot meet there: each has created the open name or holds the directory's lock. */
int bc_rename_new(int dir_fd, const char *from, const char *to)
{
	struct stat st;

	if (renameat2(dir_fd, from, dir_fd, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (!is_unsupported(errno))
		return -errno;
	if (linkat(dir_fd, from, dir_fd, to, 0) == 0) {
		unlinkat(dir_fd, from, 0);
		return 0;
	}
	if (errno == EEXIST)
		return -EEXIST;
	if (fstatat(dir_fd, to, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	return errno == ENOENT && renameat(dir_fd, from, dir_fd, to) == 0 ? 0 : -errno;
}

/* A shared lock needs no write access, not even on network file systems. */
bool bc_is_being_written(int fd)
{
	return flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

/* Old bytes at the end would not be in the hash, and a reader looks for the trailer there. */
static int remove_stale_tail(struct bc_atomic_file *f)
{
	if (!f->has_stale_tail)
		return 0;
	if (ftruncate(f->fd, (off_t)(f->bytes + f->end_bytes)) != 0)
		return -errno;
	f->has_stale_tail = false;
	return 0;
}

static void format_hash(char out[BC_FILE_HASH_CHARS], const struct XXH3_state_s *state)
{
	const XXH128_hash_t hash = XXH3_128bits_digest(state);

	snprintf(out, BC_FILE_HASH_CHARS, "%016" PRIx64 "%016" PRIx64, hash.high64, hash.low64);
}

int bc_atomic_file_seal(struct bc_atomic_file *f)
{
	char hash[BC_FILE_HASH_CHARS];
	int rc = remove_stale_tail(f);

	if (rc == 0)
		rc = bc_atomic_file_sync(f);
	if (rc == 0)
		rc = bc_rename_new(f->dir_fd, f->open_name, f->name);
	if (rc != 0) {
		bc_atomic_file_truncate(f);
		return rc;
	}
	/* The data is durable. If this fsync fails and the machine crashes, the file may have its
	 * old name again; recovery then seals it. */
	fsync(f->dir_fd);
	format_hash(hash, f->end_bytes != 0 ? f->end_hash : f->hash);
	uint64_t bytes = f->bytes + f->end_bytes;
	bc_atomic_file_abandon(f);
	memcpy(f->sealed_hash, hash, sizeof(hash));
	f->sealed_bytes = bytes;
	return 0;
}

void bc_atomic_file_abandon(struct bc_atomic_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	XXH3_freeState(f->hash);
	XXH3_freeState(f->end_hash);
	atomic_file_reset(f);
}

bool bc_atomic_file_is_deleted(const struct bc_atomic_file *f)
{
	struct stat open;
	struct stat named;

	if (fstatat(f->dir_fd, f->open_name, &named, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT;
	if (fstat(f->fd, &open) != 0 ||
		(named.st_dev == open.st_dev && named.st_ino == open.st_ino))
		return false;
	/* Some file systems change the inodes of files. */
	int fd = openat(f->dir_fd, f->open_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool is_other = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) == 0;
	if (fd >= 0)
		close(fd);
	return is_other;
}
