/* A temporary directory for a test, and functions for files. On errors, the test fails. */
#ifndef BC_TESTS_SUPPORT_TEMP_DIR_H
#define BC_TESTS_SUPPORT_TEMP_DIR_H

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/test.h"

struct temp_dir {
	char path[64];
	int fd;
};

static inline void temp_dir_make(struct temp_dir *dir)
{
	snprintf(dir->path, sizeof(dir->path), "/tmp/buscap-test-XXXXXX");
	assert_non_null(mkdtemp(dir->path));
	dir->fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir->fd >= 0);
}

/* Removes the files. Returns their number. */
static inline unsigned temp_dir_empty(struct temp_dir *dir)
{
	DIR *list = opendir(dir->path);
	unsigned n = 0;

	assert_non_null(list);
	for (struct dirent *entry; (entry = readdir(list)) != NULL;)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			n += unlinkat(dir->fd, entry->d_name, 0) == 0;
	closedir(list);
	return n;
}

static inline void temp_dir_remove(struct temp_dir *dir)
{
	temp_dir_empty(dir);
	close(dir->fd);
	assert_int_equal(rmdir(dir->path), 0);
}

/* Buffer size for the path of a file in the directory. */
#define TEMP_PATH_BYTES 400

static inline const char *temp_path(
	const struct temp_dir *dir, const char *name, char out[TEMP_PATH_BYTES])
{
	snprintf(out, TEMP_PATH_BYTES, "%s/%s", dir->path, name);
	return out;
}

/* Returns the first free descriptor. It is unchanged if no descriptor leaked. */
static inline int first_free_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd;
}

/* Limits the size of files. Writes beyond it fail with EFBIG if SIGXFSZ is ignored. RLIM_INFINITY
 * removes the limit. */
static inline void set_file_limit(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static inline void temp_write(
	const struct temp_dir *dir, const char *name, const void *bytes, size_t n)
{
	int fd = openat(dir->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	for (size_t done = 0; done < n;) {
		ssize_t now = write(fd, (const uint8_t *)bytes + done, n - done);
		assert_true(now > 0);
		done += (size_t)now;
	}
	close(fd);
}

/* Reads a file into allocated memory. */
static inline uint8_t *temp_read(const struct temp_dir *dir, const char *name, size_t *n)
{
	int fd = openat(dir->fd, name, O_RDONLY | O_CLOEXEC);
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	uint8_t *bytes = malloc((size_t)st.st_size + 1);
	assert_non_null(bytes);
	for (*n = 0; *n < (size_t)st.st_size;) {
		ssize_t now = read(fd, bytes + *n, (size_t)st.st_size - *n);
		assert_true(now > 0);
		*n += (size_t)now;
	}
	close(fd);
	return bytes;
}

static inline int temp_compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

#define TEMP_NAMES 256

/* Lists the files whose names start and end like this, in order and without hidden ones. Returns
 * their number. The caller frees each name. */
static inline size_t temp_list(
	const struct temp_dir *dir, const char *prefix, const char *suffix, char *names[TEMP_NAMES])
{
	DIR *list = opendir(dir->path);
	size_t count = 0;

	assert_non_null(list);
	for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
		const char *name = entry->d_name;
		size_t n = strlen(name);
		if (name[0] == '.' || strncmp(name, prefix, strlen(prefix)) != 0 ||
			n < strlen(suffix) || strcmp(name + n - strlen(suffix), suffix) != 0)
			continue;
		assert_true(count < TEMP_NAMES);
		names[count++] = strdup(name);
	}
	closedir(list);
	qsort(names, count, sizeof(names[0]), temp_compare_names);
	return count;
}

static inline int temp_exists(const struct temp_dir *dir, const char *name)
{
	return faccessat(dir->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

#endif
