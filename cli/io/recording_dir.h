/* Directories as operands: a directory stands for the segments in it. */
#ifndef BC_CLI_IO_RECORDING_DIR_H
#define BC_CLI_IO_RECORDING_DIR_H

#include <stddef.h>

#include "cli/term/console.h"
#include "formats/base/must_check.h"

struct bc_path_list {
	char **paths; /* into the text */
	int count;
	char *text;
	size_t bytes; /* of the text */
};

/* Lists `paths`, with each directory replaced by its segments: sealed ones, and those that are
 * still being written or torn. Returns BC_EXIT_OK, or prints an error and returns another code.
 * Free the list in either case. */
enum bc_exit bc_path_list_fill(
	struct bc_path_list *list, const struct bc_console *console, char *const *paths, int count);
void bc_path_list_free(struct bc_path_list *list);

/* Lists the segments in one directory, which may have none, in the order of their names: by
 * recording and segment. Returns 0 or a negative errno. Free the list in either case. */
int bc_path_list_fill_dir(struct bc_path_list *list, const char *dir) BC_MUST_CHECK;

#endif
