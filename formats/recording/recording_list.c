/* Reads the names of a directory, and of its subdirectories if asked to, into a table with a row
 * for each file, sorts it, and groups it by recording.
 *
 * Only names are kept, in as few bytes as possible, because a directory may have 100,000
 * recordings. Invariant: the files of a recording are one range of `files`; the first of each
 * number that is not damaged is the one to read, the others of that number are copies. */
#include "formats/recording/recording_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/grow.h"

struct row {
	struct bc_segment_name name;
	uint16_t dir;
};

struct rows {
	struct row *rows;
	size_t count;
	size_t capacity;
};

static int add_row(struct rows *rows, const struct bc_segment_name *name, uint16_t dir)
{
	struct row *grown = bc_grow(rows->rows, &rows->capacity, rows->count, sizeof(*grown));

	if (grown == NULL)
		return -ENOMEM;
	rows->rows = grown;
	rows->rows[rows->count++] = (struct row){*name, dir};
	return 0;
}

static int add_dir(struct bc_recording_list *list, const char *name)
{
	struct bc_recording_dir *dirs = list->dir_count < UINT16_MAX
						? reallocarray(list->dirs, list->dir_count + 1u,
							  sizeof(*dirs))
						: NULL;

	if (dirs == NULL)
		return -ENOMEM;
	list->dirs = dirs;
	struct bc_recording_dir *dir = &dirs[list->dir_count++];
	*dir = (struct bc_recording_dir){.name = strdup(name)};
	return dir->name != NULL ? 0 : -ENOMEM;
}

static bool is_subdirectory(int dir_fd, const struct dirent *item)
{
	struct stat st;

	if (item->d_name[0] == '.' || strcmp(item->d_name, "lost+found") == 0)
		return false;
	if (item->d_type != DT_UNKNOWN)
		return item->d_type == DT_DIR;
	return fstatat(dir_fd, item->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Adds the files in directory `at` to the rows, and its subdirectories to `below` if not NULL. */
static int read_dir(struct rows *rows, int dir_fd, const char *path, uint16_t at,
	struct bc_recording_list *below)
{
	int fd = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	int rc = 0;

	if (dir == NULL) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	while (rc == 0) {
		struct bc_segment_name name;
		errno = 0;
		const struct dirent *item = readdir(dir);
		if (item == NULL) {
			rc = -errno;
			break;
		}
		if (bc_segment_name_read(&name, item->d_name))
			rc = add_row(rows, &name, at);
		else if (below != NULL && is_subdirectory(fd, item))
			rc = add_dir(below, item->d_name);
	}
	closedir(dir);
	return rc;
}

static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a;
	const struct row *y = b;
	int order = bc_segment_name_compare(&x->name, &y->name);

	return order != 0 ? order : (x->dir > y->dir) - (x->dir < y->dir);
}

/* `is_first`: of its number. Damaged ones come last. */
static enum bc_file_state state_of(const struct bc_segment_name *name, bool is_first)
{
	if (name->damaged != 0)
		return BC_FILE_DAMAGED;
	if (!is_first)
		return BC_FILE_COPY;
	return name->is_partial ? BC_FILE_UNSEALED : BC_FILE_SEALED;
}

static void write_path(
	char out[BC_RECORDING_PATH_MAX], const char *dir, const struct bc_segment_name *name)
{
	size_t bytes = strlen(dir);

	memcpy(out, dir, bytes);
	if (bytes != 0)
		out[bytes++] = '/';
	bc_segment_name_write(out + bytes, name);
}

static void sort_rows(struct rows *rows)
{
	if (rows->count != 0)
		qsort(rows->rows, rows->count, sizeof(*rows->rows), compare_rows);
}

/* More segments than are sealed while a directory is read. */
#define OVERLOOKED_MAX 8u

/* A segment that is sealed, and so renamed, while its directory is read may be found under neither
 * name. It would look as if it were missing, so it is looked for. */
static int add_overlooked(struct rows *rows, const struct bc_recording_list *list, int dir_fd)
{
	size_t count = rows->count;
	int rc = 0;

	for (size_t i = 1; rc == 0 && i < count; i++) {
		const struct bc_segment_name *before = &rows->rows[i - 1].name;
		struct row row = rows->rows[i];
		char path[BC_RECORDING_PATH_MAX];
		if (strcmp(before->recording, row.name.recording) != 0 ||
			row.name.segment - before->segment > OVERLOOKED_MAX + 1)
			continue;
		row.name.is_partial = false;
		row.name.damaged = 0;
		uint32_t end = row.name.segment;
		row.name.segment = before->segment;
		while (rc == 0 && ++row.name.segment < end) {
			write_path(path, list->dirs[row.dir].name, &row.name);
			if (faccessat(dir_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
				rc = add_row(rows, &row.name, row.dir);
		}
	}
	if (rows->count != count)
		sort_rows(rows);
	return rc;
}

/* Makes the list of the rows, which are sorted. */
static int group_rows(struct bc_recording_list *list, const struct rows *rows)
{
	size_t capacity = 0;

	list->files = malloc((rows->count + 1) * sizeof(*list->files));
	if (list->files == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < rows->count; i++) {
		const struct bc_segment_name *name = &rows->rows[i].name;
		bool is_first = i == 0 ||
				strcmp(rows->rows[i - 1].name.recording, name->recording) != 0;
		if (is_first) {
			struct bc_recording *grown = bc_grow(
				list->recordings, &capacity, list->count, sizeof(*grown));
			if (grown == NULL)
				return -ENOMEM;
			list->recordings = grown;
			grown += list->count++;
			memcpy(grown->id, name->recording, sizeof(grown->id));
			grown->first = list->file_count;
			grown->count = 0;
		}
		bool is_new = is_first || rows->rows[i - 1].name.segment != name->segment;
		list->files[list->file_count++] = (struct bc_recording_file){
			.number = name->segment,
			.dir = rows->rows[i].dir,
			.damaged = (uint16_t)(name->damaged & 0x3FFF),
			.is_partial = name->is_partial,
			.frames = name->frames & 1,
			.state = state_of(name, is_new),
		};
		list->recordings[list->count - 1].count++;
	}
	return 0;
}

int bc_recording_list_read(struct bc_recording_list *list, int dir_fd, bool has_below)
{
	struct rows rows = {.rows = NULL};

	memset(list, 0, sizeof(*list));
	int rc = add_dir(list, "");
	if (rc == 0)
		rc = read_dir(&rows, dir_fd, ".", 0, has_below ? list : NULL);
	for (uint16_t i = 1; rc == 0 && i < list->dir_count; i++) {
		struct bc_recording_dir *dir = &list->dirs[i];
		dir->error = read_dir(&rows, dir_fd, dir->name, i, NULL);
		rc = dir->error == -ENOMEM ? -ENOMEM : 0;
	}
	sort_rows(&rows);
	if (rc == 0)
		rc = add_overlooked(&rows, list, dir_fd);
	if (rc == 0)
		rc = group_rows(list, &rows);
	free(rows.rows);
	if (rc != 0)
		bc_recording_list_free(list);
	return rc;
}

void bc_recording_list_free(struct bc_recording_list *list)
{
	for (uint16_t i = 0; i < list->dir_count; i++)
		free(list->dirs[i].name);
	free(list->dirs);
	free(list->files);
	free(list->recordings);
	memset(list, 0, sizeof(*list));
}

const struct bc_recording *bc_recording_find(const struct bc_recording_list *list, const char *id)
{
	const struct bc_recording *first;

	return bc_recording_find_all(list, id, &first) != 0 && strcmp(first->id, id) == 0 ? first
											  : NULL;
}

uint32_t bc_recording_find_all(
	const struct bc_recording_list *list, const char *text, const struct bc_recording **first)
{
	size_t bytes = strlen(text);
	uint32_t low = 0;
	uint32_t high = list->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (strcmp(list->recordings[middle].id, text) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*first = list->count != 0 ? &list->recordings[low] : NULL;
	if (low < list->count && strcmp(list->recordings[low].id, text) == 0)
		return 1;
	while (high < list->count && strncmp(list->recordings[high].id, text, bytes) == 0)
		high++;
	return high - low;
}

struct bc_segment_name bc_recording_file_name(
	const struct bc_recording *recording, const struct bc_recording_file *file)
{
	struct bc_segment_name name = {.segment = file->number,
		.is_partial = file->is_partial,
		.frames = file->frames,
		.damaged = file->damaged};

	memcpy(name.recording, recording->id, sizeof(name.recording));
	return name;
}

void bc_recording_file_path(char out[BC_RECORDING_PATH_MAX], const struct bc_recording_list *list,
	const struct bc_recording *recording, const struct bc_recording_file *file)
{
	const struct bc_segment_name name = bc_recording_file_name(recording, file);

	write_path(out, list->dirs[file->dir].name, &name);
}
