/* Segment files, one of which is open at a time, with a list of its chunks. */
#ifndef BC_FORMATS_RECORDING_SEGMENT_FILES_H
#define BC_FORMATS_RECORDING_SEGMENT_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/bus/page_counts.h"
#include "formats/segment/chunk_table.h"
#include "formats/segment/sequence_check.h"

enum bc_search_fault_kind {
	BC_SEARCH_DAMAGED,    /* `bytes` at `offset`: `what` */
	BC_SEARCH_UNREADABLE, /* `error`, a negative errno */
	BC_SEARCH_MISSING,    /* segments are missing before this one: `what` */
	BC_SEARCH_REPEATED,   /* the same segment as its neighbour; it is skipped */
	BC_SEARCH_NO_CLOCK,   /* clock rate unknown: whole chunks are selected by time of day */
};

/* What is wrong with a file. Each is reported once. */
struct bc_search_fault {
	enum bc_search_fault_kind kind;
	const char *file;
	uint64_t offset;
	uint64_t bytes;
	const char *what;
	int error;
};

/* What the owner of a search provides. */
struct bc_search_io {
	void *context;

	/* Opens a file that has segments and can be read at any offset. Returns a descriptor that
	 * the caller closes; or -1, which has been reported unless the file was deleted. NULL:
	 * open regular files, without following links. */
	int (*open)(void *context, const char *path);

	void (*fault)(void *context, const struct bc_search_fault *fault);

	/* About to read this many bytes, or has just read them. Returns false to stop the search.
	 * NULL: go on. */
	bool (*pace)(void *context, uint64_t bytes);
};

/* Writes what is wrong with a damaged chunk. */
#define BC_BAD_CHUNK_BYTES 96u
void bc_bad_chunk_write(char what[BC_BAD_CHUNK_BYTES], const struct bc_chunk_info *info);

/* True if the file has the name of a segment being written. */
bool bc_segment_path_is_partial(const char *path);

/* Finds a file that was sealed, and so renamed, or deleted since it was listed: removes ".partial"
 * from its path if need be. Returns false if it is gone. */
bool bc_segment_path_find(char *path);

/* Calls bc_segment_path_find() and opens the file, even if it is sealed in between. Returns what
 * io->open() does; or -1, with errno ENOENT if the file is gone. */
int bc_segment_path_open(char *path, const struct bc_search_io *io);

struct bc_segment_file;

struct bc_segment_files {
	const struct bc_search_io *io;
	struct bc_segment_file *files;
	int count;
	/* Segments that are missing are reported if they may have had such records; all inclusive.
	 */
	int64_t from_ns;
	int64_t to_ns;
	uint64_t first_record;
	uint64_t last_record;
	int at;           /* the open one; -1: none */
	const char *path; /* of the open one */
	struct bc_chunk_table table;
	bool is_stopped; /* by io->pace() */
};

/* The paths are the caller's; ".partial" is removed from one that was sealed meanwhile. Returns
 * false if out of memory. */
bool bc_segment_files_init(struct bc_segment_files *files, const struct bc_search_io *io,
	char *const *paths, int count) BC_MUST_CHECK;
void bc_segment_files_free(struct bc_segment_files *files);

/* Opens a file and closes the previous one; nothing if it is open already. Returns false if it
 * can't be read or is a copy of its neighbour, which has been reported; if it has been deleted;
 * if the page counts of the whole segment say that it does not have what `query` looks for (NULL:
 * anything); or if the search is stopped. Damage is reported when the file is opened for the first
 * time. */
bool bc_segment_files_open(
	struct bc_segment_files *files, int at, const struct bc_page_query *query);

/* Reads a chunk of the open file. Returns false if that failed, which is reported once, or the
 * search is stopped. */
bool bc_segment_files_read(struct bc_segment_files *files, uint32_t row, struct bc_chunk *chunk);

/* Reads the header of a chunk, which has the events. Returns false if it is damaged, which reading
 * the chunk reports, or the search is stopped. */
bool bc_segment_files_read_header(
	struct bc_segment_files *files, uint32_t row, struct bc_chunk *chunk);

/* Asks whether to go on. */
bool bc_segment_files_pace(struct bc_segment_files *files, uint64_t bytes);

/* The clock rate of a row's segment; 0: unknown. */
uint64_t bc_segment_files_clock_hz(const struct bc_segment_files *files, uint32_t row);

#endif
