/* The files of recordings in a directory: which recording each belongs to, and what it is, by its
 * name. There is one such listing, for the daemon and for all commands.
 *
 * Only names are read. A name proves nothing: whose a file is, its header says
 * (formats/segment/segment_header.h). A list is a snapshot: files may be sealed, renamed or deleted
 * at any time after it was made.
 *
 * Recordings are sorted by id, so usually by time; the files of one by number. Of files with the
 * same number, sealed ones come first, then open ones, then damaged ones, and those in the
 * directory itself before those in subdirectories. */
#ifndef BC_FORMATS_RECORDING_RECORDING_LIST_H
#define BC_FORMATS_RECORDING_RECORDING_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/segment/segment_name.h"

enum bc_file_state {
	BC_FILE_SEALED,
	BC_FILE_UNSEALED, /* ".partial": being written, or torn */
	BC_FILE_COPY,     /* another file of this number comes before it; readers skip it */
	BC_FILE_DAMAGED,  /* ".damaged": kept by recovery, read only by its name */
};

struct bc_recording_file {
	uint32_t number; /* of the segment */
	uint16_t dir;    /* index */
	uint16_t damaged : 14;
	uint16_t is_partial : 1;
	uint16_t frames : 1; /* enum bc_frame_format */
	enum bc_file_state state;
};

/* True if readers of the recording read this file. */
static inline bool bc_recording_file_is_read(const struct bc_recording_file *file)
{
	return file->state == BC_FILE_SEALED || file->state == BC_FILE_UNSEALED;
}

struct bc_recording {
	char id[BC_RECORDING_ID_MAX];
	uint32_t first; /* its files are list->files[first] to list->files[first + count - 1] */
	uint32_t count;
};

/* Where files are. */
struct bc_recording_dir {
	char *name; /* "" for the directory itself; else the subdirectory's name */
	int error;  /* a negative errno: it can't be listed */
};

struct bc_recording_list {
	struct bc_recording *recordings;
	uint32_t count;
	struct bc_recording_file *files;
	uint32_t file_count;
	struct bc_recording_dir *dirs;
	uint16_t dir_count;
};

/* Lists a directory, and with `has_below` its subdirectories, except hidden ones and lost+found.
 * Returns 0; or a negative errno, with an empty list. Blocks on the disk. */
int bc_recording_list_read(
	struct bc_recording_list *list, int dir_fd, bool has_below) BC_MUST_CHECK;
void bc_recording_list_free(struct bc_recording_list *list);

/* Finds a recording by its id. Returns NULL if it has no files. */
const struct bc_recording *bc_recording_find(const struct bc_recording_list *list, const char *id);

/* Finds the recordings whose ids begin with a text; or only the one with exactly that id, if there
 * is one. Returns how many there are. *first is the first of them, which the others follow. */
uint32_t bc_recording_find_all(
	const struct bc_recording_list *list, const char *text, const struct bc_recording **first);

/* The name of a file, in its directory. */
struct bc_segment_name bc_recording_file_name(
	const struct bc_recording *recording, const struct bc_recording_file *file);

/* Writes the path of a file, relative to the directory. */
#define BC_RECORDING_PATH_MAX (256 + BC_SEGMENT_NAME_MAX)
void bc_recording_file_path(char out[BC_RECORDING_PATH_MAX], const struct bc_recording_list *list,
	const struct bc_recording *recording, const struct bc_recording_file *file);

#endif
