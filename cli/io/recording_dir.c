#include "cli/io/recording_dir.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "formats/segment/segment_name.h"

/* Appends a path, which the list then owns. */
static bool append(struct bc_path_list *list, char *path)
{
	char **paths = path != NULL
			       ? reallocarray(list->paths, (size_t)list->count + 1, sizeof(*paths))
			       : NULL;

	if (paths == NULL) {
		free(path);
		return false;
	}
	list->paths = paths;
	paths[list->count++] = path;
	return true;
}

/* Whether a file of this name is a segment that can be searched. A torn one has a sealed copy once
 * it has been recovered; the copy counts. */
static bool is_segment(const char *dir, const char *file)
{
	struct bc_segment_name name;
	char sealed[4096];

	if (!bc_segment_name_read(&name, file) || name.damaged != 0)
		return false;
	if (!name.is_partial)
		return true;
	int n = snprintf(sealed, sizeof(sealed), "%s/%.*s", dir,
		(int)(strlen(file) - strlen(BC_PARTIAL_SUFFIX)), file);
	struct stat st;
	return n < (int)sizeof(sealed) && stat(sealed, &st) != 0;
}

static enum bc_exit list_directory(
	struct bc_path_list *list, const struct bc_console *console, const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *file;
	int before = list->count;
	bool ok = true;

	if (dir == NULL) {
		bc_print_error(console, path, "can't open: %s", strerror(errno));
		return BC_EXIT_FAILED;
	}
	while (ok && (file = readdir(dir)) != NULL) {
		char *full = NULL;
		if (!is_segment(path, file->d_name))
			continue;
		ok = asprintf(&full, "%s/%s", path, file->d_name) >= 0 && append(list, full);
	}
	closedir(dir);
	if (!ok)
		return bc_print_no_memory(console);
	if (list->count == before) {
		bc_print_error(console, path, "no segments in this directory");
		return BC_EXIT_FAILED;
	}
	return BC_EXIT_OK;
}

enum bc_exit bc_path_list_fill(
	struct bc_path_list *list, const struct bc_console *console, char *const *paths, int count)
{
	enum bc_exit code = BC_EXIT_OK;

	*list = (struct bc_path_list){.paths = NULL};
	for (int i = 0; i < count && code == BC_EXIT_OK; i++) {
		struct stat st;
		if (stat(paths[i], &st) == 0 && S_ISDIR(st.st_mode))
			code = list_directory(list, console, paths[i]);
		else if (!append(list, strdup(paths[i])))
			code = bc_print_no_memory(console);
	}
	return code;
}

void bc_path_list_free(struct bc_path_list *list)
{
	for (int i = 0; i < list->count; i++)
		free(list->paths[i]);
	free(list->paths);
	*list = (struct bc_path_list){.paths = NULL};
}
