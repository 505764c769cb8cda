/* Operands: what the words after a command's options stand for, and the files to read, in order.
 *
 * A word is a file; a directory, which stands for the segments in it and in its subdirectories; or
 * the id of a recording in the daemon's directory, or the beginning of one. A file or directory of
 * that name wins. The files of a directory are known by their names, without opening them, so a
 * search from the end opens only the newest ones. Files that are named one by one may have any
 * name; their order comes from their headers.
 *
 *     bc_operands_read() -> bc_files_free(), bc_operands_close()
 *
 * Listing a directory gives way to a daemon that is recording there (bc_give_way()).
 *
 * A list is a snapshot: its files may be sealed or deleted before they are read. */
#ifndef BC_CLI_IO_OPERANDS_H
#define BC_CLI_IO_OPERANDS_H

#include <stdbool.h>

#include "cli/term/console.h"
#include "formats/base/must_check.h"
#include "formats/recording/recording_list.h"

struct bc_operand {
	char *path; /* a file, "-", or a directory */
	bool is_dir;
	char *id; /* only this recording of the directory; NULL: all */
	int fd;   /* a trace as a segment: bc_picture_open(); 0: none */
};

struct bc_operands {
	const struct bc_console *console;
	struct bc_operand *all;
	int count;
	enum bc_exit exit; /* for the files that do not exist */
};

/* Classifies the words. Without words, the only operand is the daemon's directory, unless standard
 * input is a pipe or a file; `socket` is the daemon's, or NULL. A file that does not exist is
 * reported and left out. Returns BC_EXIT_OK; the exit code if no operand is left or after another
 * error. Close the operands in either case. */
enum bc_exit bc_operands_open(struct bc_operands *operands, const struct bc_console *console,
	const char *const *words, int count, const char *socket) BC_MUST_CHECK;
void bc_operands_close(struct bc_operands *operands);

/* True if the user has named this file: then it is read whatever it is. */
bool bc_operands_have_file(const struct bc_operands *operands, const char *path);

/* Opens the segment that a trace among the operands has become: bc_picture_open(). Returns a
 * descriptor that is read only at given offsets, or -1. */
int bc_operands_open_picture(const struct bc_operands *operands, const char *path);

/* Opens one of the files, if it is a regular file. Sets *has_header if its header is intact.
 * Returns a descriptor; or -1 with errno set, EINVAL if it is not a regular file; EXDEV if it is a
 * directory's and has the name of another segment, which has been reported. Pipes don't block. */
int bc_operands_open_segment(
	const struct bc_operands *operands, const char *path, bool *has_header);

/* Lists an operand's directory, and gives way to a recorder there. *begin to *end are its
 * recordings. Reports unreadable subdirectories, and a directory without recordings. Returns
 * BC_EXIT_OK, or the code of what was reported: even then, free the list. */
enum bc_exit bc_operand_list(const struct bc_operands *operands, const struct bc_operand *operand,
	struct bc_recording_list *list, const struct bc_recording **begin,
	const struct bc_recording **end);

enum {
	/* Segments by recording and number, whichever operand they are from. Other files keep their
	 * places. Without this, all are in the order of the operands. */
	BC_FILES_SORTED = 1,
	/* The segments of a recording together, at the place of the first of them. */
	BC_FILES_GROUPED = 2,
	/* Open the files of directories: those whose header is another's are reported and left out,
	 * and those deleted since are left out. For commands that read all of them. */
	BC_FILES_CHECKED = 4,
	/* Without an operand, standard input. */
	BC_FILES_STDIN = 8,
	/* Not the files of directories; there may be none then. */
	BC_FILES_NAMED = 16,
};

struct bc_files {
	char **paths;
	int count;
	int *groups;           /* with BC_FILES_GROUPED: of each file, from 0 on */
	bool is_one_recording; /* with BC_FILES_SORTED, if there are several */
	enum bc_exit exit;     /* of what was reported and left out */
};

/* Lists the files that the words stand for, as bc_operands_open() reads them. Returns BC_EXIT_OK if
 * there are any; or the code to exit with, after printing errors. Close and free both. */
enum bc_exit bc_operands_read(struct bc_operands *operands, struct bc_files *files,
	const struct bc_console *console, const char *const *words, int count,
	unsigned how) BC_MUST_CHECK;

/* Lists the files again, for a command that keeps running. Prints nothing; there may be no files.
 * Returns 0 or a negative errno. */
int bc_operands_list_again(
	const struct bc_operands *operands, struct bc_files *files) BC_MUST_CHECK;
void bc_files_free(struct bc_files *files);

#endif
