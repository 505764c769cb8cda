#include "formats/segment/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/atomic_file.h"
#include "formats/segment/segment_name.h"

/* Hash, two blanks, name, newline. */
#define LINE_MAX_BYTES (BC_FILE_HASH_CHARS + 2 + BC_SEGMENT_NAME_MAX)

#define NAME_MAX_BYTES (BC_RECORDING_ID_MAX + 8)

/* A manifest that replaces another one has this suffix while it is written. */
#define NEW_SUFFIX ".new"

#define NEW_NAME_MAX_BYTES (NAME_MAX_BYTES + sizeof(NEW_SUFFIX))

static void write_name(char out[NAME_MAX_BYTES], const char *recording)
{
	snprintf(out, NAME_MAX_BYTES, "%s" BC_MANIFEST_SUFFIX, recording);
}

static void write_new_name(char out[NEW_NAME_MAX_BYTES], const char *recording)
{
	snprintf(out, NEW_NAME_MAX_BYTES, "%s" BC_MANIFEST_SUFFIX NEW_SUFFIX, recording);
}

static int open_manifest(int dir_fd, const char *recording, int flags)
{
	char name[NAME_MAX_BYTES];

	if (strchr(recording, '/') != NULL) {
		errno = EINVAL;
		return -1;
	}
	write_name(name, recording);
	return openat(dir_fd, name, flags | O_CLOEXEC | O_NOFOLLOW, 0640);
}

/* Returns the offset after the last whole line, or a negative errno. Reads only the tail: no line
 * of ours is longer than LINE_MAX_BYTES. */
static off_t end_of_lines(int fd, off_t bytes)
{
	char tail[LINE_MAX_BYTES];
	size_t n = bytes < (off_t)sizeof(tail) ? (size_t)bytes : sizeof(tail);
	ssize_t got = pread(fd, tail, n, bytes - (off_t)n);

	if (got < 0)
		return -errno;
	if ((size_t)got < n)
		return -EIO; /* another process is truncating it */
	while (n > 0 && tail[n - 1] != '\n')
		n--;
	if (n == 0 && bytes > (off_t)sizeof(tail))
		return -EBADMSG; /* not a manifest */
	return bytes - got + (off_t)n;
}

static int add_line(int dir_fd, int fd, const char *line, size_t bytes)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	off_t end = end_of_lines(fd, st.st_size);
	if (end < 0)
		return (int)end;
	if (end != st.st_size && ftruncate(fd, end) != 0)
		return -errno;
	int rc = bc_write_at(fd, line, bytes, (uint64_t)end);
	if (rc == 0 && fdatasync(fd) != 0)
		rc = -errno;
	/* A new file needs its directory entry on disk, too. */
	if (rc == 0 && end == 0)
		rc = bc_sync_dir(dir_fd);
	if (rc != 0) /* If this fails, too, the next call truncates a torn line. */
		(void)!ftruncate(fd, end);
	return rc;
}

int bc_manifest_add(
	int dir_fd, const char *recording, const char *file, const char hash[BC_FILE_HASH_CHARS])
{
	char line[LINE_MAX_BYTES];
	int n = snprintf(line, sizeof(line), "%s  %s\n", hash, file);

	if (n < 0 || (size_t)n >= sizeof(line))
		return -ENAMETOOLONG;
	/* A newline in the name would forge a line. */
	if (strchr(file, '\n') != NULL)
		return -EINVAL;
	int fd = open_manifest(dir_fd, recording, O_RDWR | O_CREAT | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	int rc = add_line(dir_fd, fd, line, (size_t)n);
	close(fd);
	return rc;
}

/* Reads the next line and sets *file to the name in it, which ends with the line's end, or to NULL
 * if it is not a line of ours. Returns false at the end. */
static bool read_line(FILE *in, char line[LINE_MAX_BYTES], const char **file)
{
	if (fgets(line, LINE_MAX_BYTES, in) == NULL)
		return false;
	size_t n = strlen(line);
	*file = NULL;
	if (n > BC_FILE_HASH_CHARS + 1 && line[n - 1] == '\n') {
		line[n - 1] = '\0';
		*file = line + BC_FILE_HASH_CHARS + 1;
	}
	return true;
}

static FILE *open_stream(int fd, const char *mode)
{
	FILE *stream = fd >= 0 ? fdopen(fd, mode) : NULL;

	if (stream == NULL && fd >= 0)
		close(fd);
	return stream;
}

int bc_manifest_find(
	int dir_fd, const char *recording, const char *file, char hash[BC_FILE_HASH_CHARS])
{
	char line[LINE_MAX_BYTES];
	const char *listed;
	int fd = open_manifest(dir_fd, recording, O_RDONLY | O_NONBLOCK);
	int rc = fd < 0 ? -errno : -ENOENT;
	FILE *in = open_stream(fd, "r");

	if (in == NULL)
		return fd < 0 ? rc : -ENOMEM;
	while (rc != 0 && read_line(in, line, &listed))
		rc = listed != NULL && strcmp(listed, file) == 0 ? 0 : -ENOENT;
	if (rc != 0 && ferror(in) != 0)
		rc = -EIO;
	if (rc == 0 && hash != NULL)
		snprintf(hash, BC_FILE_HASH_CHARS, "%.*s", BC_FILE_HASH_CHARS - 1, line);
	fclose(in);
	return rc;
}

/* Opens and locks the manifest, so that bc_manifest_forget() does not replace it meanwhile. Returns
 * a descriptor or a negative errno. */
static int lock_manifest(int dir_fd, const char *recording)
{
	char name[NAME_MAX_BYTES];

	write_name(name, recording);
	for (;;) {
		struct stat own = {.st_mode = 0};
		struct stat now;
		int fd = open_manifest(dir_fd, recording, O_RDWR | O_NONBLOCK);
		if (fd < 0)
			return -errno;
		int rc = flock(fd, LOCK_EX) != 0 || fstat(fd, &own) != 0 ? -errno : 0;
		if (rc == 0 && !S_ISREG(own.st_mode))
			rc = -EBADMSG;
		if (rc == 0 && fstatat(dir_fd, name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
			now.st_dev == own.st_dev && now.st_ino == own.st_ino)
			return fd;
		close(fd);
		if (rc != 0)
			return rc;
	}
}

int bc_manifest_change(int dir_fd, const char *recording, const char *file,
	const char hash[BC_FILE_HASH_CHARS], bool *is_touched)
{
	char line[LINE_MAX_BYTES];
	const char *listed;
	int fd = lock_manifest(dir_fd, recording);
	int rc = fd < 0 ? fd : -ENOENT;
	FILE *in = open_stream(fd, "r");

	*is_touched = false;
	if (in == NULL)
		return fd < 0 ? rc : -ENOMEM;
	for (off_t at = 0; read_line(in, line, &listed); at = ftello(in)) {
		if (listed == NULL || strcmp(listed, file) != 0)
			continue;
		*is_touched = true;
		rc = bc_write_at(fd, hash, BC_FILE_HASH_CHARS - 1, (uint64_t)at);
		if (rc != 0)
			break;
	}
	if (rc == -ENOENT && ferror(in) != 0)
		rc = -EIO;
	if (rc == 0 && fdatasync(fd) != 0)
		rc = -errno;
	fclose(in);
	return rc;
}

/* Returns whether this is a deleted file up to this number. */
static bool is_forgotten(int dir_fd, const char *file, uint32_t segment)
{
	struct bc_segment_name name;
	enum bc_format form;

	return (bc_segment_name_read(&name, file) || bc_raw_name_read(&name, &form, file)) &&
	       name.segment <= segment && faccessat(dir_fd, file, F_OK, AT_SYMLINK_NOFOLLOW) != 0 &&
	       errno == ENOENT;
}

/* Copies the lines that stay. Returns false if there is nothing to remove, or if it fails. */
static bool copy_lines(FILE *in, FILE *out, int dir_fd, uint32_t segment)
{
	char line[LINE_MAX_BYTES];
	const char *file;
	bool is_shorter = false;

	while (read_line(in, line, &file)) {
		if (file != NULL && is_forgotten(dir_fd, file, segment))
			is_shorter = true;
		else if (fprintf(out, "%s%s", line, file != NULL ? "\n" : "") < 0)
			return false;
	}
	return is_shorter && ferror(in) == 0 && fflush(out) == 0 && fdatasync(fileno(out)) == 0;
}

void bc_manifest_forget(int dir_fd, const char *recording, uint32_t segment)
{
	char name[NAME_MAX_BYTES];
	char new_name[NEW_NAME_MAX_BYTES];
	struct stat st;

	write_name(name, recording);
	write_new_name(new_name, recording);
	FILE *in = open_stream(open_manifest(dir_fd, recording, O_RDONLY | O_NONBLOCK), "r");
	if (in == NULL)
		return;
	FILE *out = NULL;
	if (flock(fileno(in), LOCK_EX | LOCK_NB) == 0 && fstat(fileno(in), &st) == 0 &&
		S_ISREG(st.st_mode))
		out = open_stream(
			openat(dir_fd, new_name,
				O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640),
			"w");
	bool is_copied = out != NULL && copy_lines(in, out, dir_fd, segment);
	if (out != NULL) {
		is_copied = fclose(out) == 0 && is_copied;
		if (!is_copied || renameat(dir_fd, new_name, dir_fd, name) != 0)
			unlinkat(dir_fd, new_name, 0);
	}
	fclose(in); /* unlocks it */
}

void bc_manifest_remove(int dir_fd, const char *recording)
{
	char name[NAME_MAX_BYTES];
	char new_name[NEW_NAME_MAX_BYTES];

	write_name(name, recording);
	write_new_name(new_name, recording);
	unlinkat(dir_fd, new_name, 0);
	unlinkat(dir_fd, name, 0);
}
