#include "cli/io/recording_dir.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "formats/segment/segment_name.h"

/* Appends a path to the text. */
static bool append(struct bc_path_list *list, const char *path)
{
	size_t bytes = strlen(path) + 1;
	char *text = realloc(list->text, list->bytes + bytes);

	if (text == NULL)
		return false;
	list->text = text;
	memcpy(text + list->bytes, path, bytes);
	list->bytes += bytes;
	list->count++;
	return true;
}

/* Makes the list of the paths in the text. */
static bool set_paths(struct bc_path_list *list)
{
	char *at = list->text;

	list->paths = calloc((size_t)list->count + 1, sizeof(*list->paths));
	for (int i = 0; list->paths != NULL && i < list->count; i++, at += strlen(at) + 1)
		list->paths[i] = at;
	return list->paths != NULL;
}

static bool is_listed(const struct bc_path_list *list, size_t at, const char *path, size_t length)
{
	for (; at < list->bytes; at += strlen(list->text + at) + 1)
		if (strlen(list->text + at) == length && memcmp(list->text + at, path, length) == 0)
			return true;
	return false;
}

/* Drops torn segments that have a sealed copy, as after a recovery, from the paths after `start`.
 * The directory is not asked again: a segment that was sealed meanwhile is listed under its old
 * name, or under both. */
static void drop_copied(struct bc_path_list *list, size_t start)
{
	size_t kept = start;
	size_t bytes;

	for (size_t at = start; at < list->bytes; at += bytes) {
		char *path = list->text + at;
		struct bc_segment_name name;
		bytes = strlen(path) + 1;
		if (bc_segment_name_read(&name, basename(path)) && name.is_partial &&
			is_listed(list, start, path, bytes - sizeof(BC_PARTIAL_SUFFIX))) {
			list->count--;
			continue;
		}
		memmove(list->text + kept, path, bytes);
		kept += bytes;
	}
	list->bytes = kept;
}

/* Appends the segments in a directory. Returns 0 or a negative errno. */
static int append_segments(struct bc_path_list *list, const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *file;
	size_t start = list->bytes;
	bool ok = true;

	if (dir == NULL)
		return -errno;
	while (ok && (file = readdir(dir)) != NULL) {
		struct bc_segment_name name;
		char full[PATH_MAX];
		int n = snprintf(full, sizeof(full), "%s/%s", path, file->d_name);
		if (n < (int)sizeof(full) && bc_segment_name_read(&name, file->d_name) &&
			name.damaged == 0)
			ok = append(list, full);
	}
	closedir(dir);
	drop_copied(list, start);
	return ok ? 0 : -ENOMEM;
}

static enum bc_exit list_directory(
	struct bc_path_list *list, const struct bc_console *console, const char *path)
{
	int before = list->count;
	int rc = append_segments(list, path);

	if (rc == -ENOMEM)
		return bc_print_no_memory(console);
	if (rc != 0) {
		bc_print_error(console, path, "can't open: %s", strerror(-rc));
		return BC_EXIT_FAILED;
	}
	if (list->count == before) {
		bc_print_error(console, path,
			"no segments in this directory; name the files if they have other names");
		return BC_EXIT_FAILED;
	}
	return BC_EXIT_OK;
}

static int compare_names(const void *a, const void *b)
{
	struct bc_segment_name x = {.segment = 0};
	struct bc_segment_name y = {.segment = 0};

	(void)bc_segment_name_read(&x, basename(*(char *const *)a));
	(void)bc_segment_name_read(&y, basename(*(char *const *)b));
	return bc_segment_name_compare(&x, &y);
}

int bc_path_list_fill_dir(struct bc_path_list *list, const char *dir)
{
	*list = (struct bc_path_list){.text = NULL};
	int rc = append_segments(list, dir);

	if (rc == 0 && !set_paths(list))
		rc = -ENOMEM;
	if (rc == 0 && list->count > 1)
		qsort(list->paths, (size_t)list->count, sizeof(*list->paths), compare_names);
	return rc;
}

enum bc_exit bc_path_list_fill(
	struct bc_path_list *list, const struct bc_console *console, char *const *paths, int count)
{
	enum bc_exit code = BC_EXIT_OK;

	*list = (struct bc_path_list){.text = NULL};
	for (int i = 0; i < count && code == BC_EXIT_OK; i++) {
		struct stat st = {0};
		if (strcmp(paths[i], "-") != 0 && stat(paths[i], &st) != 0) {
			bc_print_error(console, paths[i], "can't open: %s", strerror(errno));
			code = BC_EXIT_FAILED;
		} else if (S_ISDIR(st.st_mode)) {
			code = list_directory(list, console, paths[i]);
		} else if (!append(list, paths[i])) {
			code = bc_print_no_memory(console);
		}
	}
	return code == BC_EXIT_OK && !set_paths(list) ? bc_print_no_memory(console) : code;
}

void bc_path_list_free(struct bc_path_list *list)
{
	free(list->paths);
	free(list->text);
	*list = (struct bc_path_list){.text = NULL};
}
