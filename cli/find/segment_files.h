/* Segment files, one of which is open at a time, with a list of its chunks. */
#ifndef BC_CLI_FIND_SEGMENT_FILES_H
#define BC_CLI_FIND_SEGMENT_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/io/file.h"
#include "cli/term/console.h"
#include "formats/base/must_check.h"
#include "formats/pages/page_counts.h"
#include "formats/segment/chunk_table.h"

/* Opens a file that starts with an intact segment header. Detecting its format would read much
 * more. There is no file->input. Returns false, without a message, if it is another file or can't
 * be opened. Close it with bc_file_close(). */
bool bc_segment_file_open(struct bc_file *file, const char *path);

struct bc_segment_file;

struct bc_segment_files {
	const struct bc_console *console;
	struct bc_segment_file *files;
	int count;
	int at; /* the open one; -1: none */
	struct bc_file file;
	struct bc_chunk_table table;
	enum bc_exit exit; /* of what was reported */
};

/* The paths are the caller's; ".partial" is removed from one that was sealed meanwhile. Returns
 * false if out of memory. */
bool bc_segment_files_init(struct bc_segment_files *files, const struct bc_console *console,
	char *const *paths, int count) BC_MUST_CHECK;
void bc_segment_files_free(struct bc_segment_files *files);

/* Opens a file and closes the previous one; nothing if it is open already. Returns false if it
 * can't be read or is a copy of its neighbour, which has been reported, or if it has been deleted.
 * Damage is reported when the file is opened for the first time. */
bool bc_segment_files_open(struct bc_segment_files *files, int at);
void bc_segment_files_close(struct bc_segment_files *files);

/* Whether a file may have what is looked for, by the page counts of the whole segment, if it has
 * any. */
bool bc_segment_files_may_have(
	struct bc_segment_files *files, int at, const struct bc_page_query *query);

/* Reads a chunk of the open file. Returns false if that failed, which is reported once. */
bool bc_segment_files_read(struct bc_segment_files *files, uint32_t row, struct bc_chunk *chunk);

/* The clock rate of a row's segment; 0: unknown. */
uint64_t bc_segment_files_clock_hz(const struct bc_segment_files *files, uint32_t row);

#endif
