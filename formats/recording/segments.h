/* Recordings as one ordered thing: their segments, what is missing between them, the open file.
 *
 *     file     bc_segment_file_open()        one segment file; its chunks are listed and read when
 *                                            they are asked for
 *     order    bc_missing_before()           segments one after another: copies and holes
 *     both     bc_segments_init()            a list of files; opens one at a time, any of them
 *
 * What a file is, is decided here and nowhere else:
 *
 *     listed    only its name is known. It counts as here, even if it is deleted meanwhile
 *     read      its header or its chunks say where it belongs
 *     unread    it is here, but nothing of it can be read: its name says where it belongs
 *     copy      another file of the list has the same segment; one of them is read
 *     foreign   its header is another segment's than its name; it is not here
 *
 * A torn end is damage, except of a segment that is being written or was a recording's last. A hole
 * is known when both of its neighbours are: a hole costs no reading that its user does not do
 * anyway. Each fault is reported once. Costs: the list, no reading; a file, one open, and its
 * index, or the headers of its chunks if it is not sealed. */
#ifndef BC_FORMATS_RECORDING_SEGMENTS_H
#define BC_FORMATS_RECORDING_SEGMENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "formats/base/must_check.h"
#include "formats/bus/page_counts.h"
#include "formats/segment/chunk_table.h"
#include "formats/segment/sequence_check.h"

/* ---- faults */

enum bc_segment_fault_kind {
	BC_SEGMENT_DAMAGED,    /* `bytes` at `offset`: `what` */
	BC_SEGMENT_UNREADABLE, /* `error`, a negative errno */
	BC_SEGMENT_MISSING,    /* segments are missing before this one: `what`, `missing` */
	BC_SEGMENT_REPEATED,   /* the same segment as its neighbour; it is skipped */
	BC_SEGMENT_NO_CLOCK,   /* clock rate unknown: whole chunks are selected by time of day */
};

/* What is wrong with a file. Each is reported once. */
struct bc_segment_fault {
	enum bc_segment_fault_kind kind;
	const char *file;
	uint64_t offset;
	uint64_t bytes;
	const char *what;
	const struct bc_missing_segments *missing;
	int error;
};

/* What the user of recordings provides. */
struct bc_segment_io {
	void *context;

	/* Opens a file that has segments and can be read at any offset. Returns a descriptor that
	 * the caller closes; or -1, which has been reported unless the file was deleted. NULL:
	 * open regular files, without following links. */
	int (*open)(void *context, const char *path);

	void (*fault)(void *context, const struct bc_segment_fault *fault);

	/* Times are positions on the axis, also if they are no times of day: see
	 * bc_segment_header_axis_hz(). */
	bool by_axis;

	/* About to read this many bytes, or has read them. Returns false to stop. NULL: go on. */
	bool (*pace)(void *context, uint64_t bytes);
};

/* ---- names of files, which may be sealed, and so renamed, or deleted at any time */

/* True if the file has the name of a segment being written. */
bool bc_segment_path_is_partial(const char *path);

/* True if an open segment (`fd`) was abandoned: it still has that name, nobody is writing it, and
 * its directory has no later one. Unless it has the end, an unknown number of records was lost. */
bool bc_segment_path_is_killed(const char *path, int fd);

/* True if an open file (`fd`) is not sealed; sets *is_written if somebody is writing it. If it has
 * been sealed since it was opened, removes ".partial" from its path. */
bool bc_segment_path_is_unsealed(int dir_fd, char *path, int fd, bool *is_written);

/* True if a daemon has locked the directory of this file, with no newer recording: this one may be
 * between two segments, with none being written. `path` is relative to `dir_fd`. */
bool bc_segment_path_is_in_use(int dir_fd, const char *path);

/* Finds a file that was sealed or deleted since it was listed: removes ".partial" from its path if
 * need be. Returns false if it is gone. */
bool bc_segment_path_find(char *path);

/* Opens a regular file, as an io without open() does. Returns as open() does. */
int bc_segment_open_regular(const struct bc_segment_io *io, const char *path);

/* ---- a file */

struct bc_segment_file {
	const struct bc_segment_io *io;
	const char *path; /* NULL: none is open */
	bool is_quiet;    /* damage that listing the chunks finds has been reported before */
	bool has_later;   /* it is followed by another segment of its recording */
	bool has_table;
	struct bc_chunk_table table; /* its fd is the file's */
	int stop;                    /* -ECANCELED: by io->pace(); -ENOMEM; or 0 */
};

/* Opens a file, even if it is sealed in between; `path` then changes. Returns false, with errno
 * ENOENT if it is gone; otherwise reported, by io->open() or as a fault. Close the previous one. */
bool bc_segment_file_open(struct bc_segment_file *file, char *path);
void bc_segment_file_close(struct bc_segment_file *file);

/* Lists the chunks, once. Returns 0, or a negative errno: -ENOMEM and -ECANCELED also stop the
 * file, any other is reported. Damage is reported; a torn end of a segment being written is not. */
int bc_segment_file_load(struct bc_segment_file *file) BC_MUST_CHECK;

/* Reads a chunk. Returns false if that failed, which is reported once, or the file is stopped. */
bool bc_segment_file_read(struct bc_segment_file *file, uint32_t row, struct bc_chunk *chunk);

/* Reads the header of a chunk, which has the events. Returns false if it is damaged, which reading
 * the chunk reports, or the file is stopped. */
bool bc_segment_file_read_header(
	struct bc_segment_file *file, uint32_t row, struct bc_chunk *chunk);

/* Asks whether to go on. */
bool bc_segment_file_pace(struct bc_segment_file *file, uint64_t bytes);

/* The clock rate of a row's segment; 0: unknown. */
uint64_t bc_segment_file_clock_hz(const struct bc_segment_file *file, uint32_t row);

/* ---- order */

/* Where the rows `first` to `last` of a listed file belong. */
struct bc_segment_span bc_segment_file_span(
	const struct bc_segment_file *file, uint32_t first, uint32_t last);

/* True if a file is of the same recording as the one before it, and not a copy, by their names. */
bool bc_segment_path_follows(const char *path, const char *before);

/* Where a file belongs by its name. Returns false if it does not have the name of a segment. */
bool bc_segment_path_span(struct bc_segment_span *span, const char *path);

/* ---- a list of files */

struct bc_segments_item;

struct bc_segments {
	struct bc_segment_file file; /* the open one */
	struct bc_segments_item *items;
	int count;
	int at; /* the open one; -1: none */
	/* Missing segments are reported if they may have had such records; all inclusive. */
	int64_t from_ns;
	int64_t to_ns;
	uint64_t first_record;
	uint64_t last_record;
};

/* Makes a list of files in the order of recordings and segments. Opens none. The paths are the
 * caller's; ".partial" is removed from a sealed one. Returns false if out of memory. */
bool bc_segments_init(struct bc_segments *segments, const struct bc_segment_io *io,
	char *const *paths, int count) BC_MUST_CHECK;
void bc_segments_free(struct bc_segments *segments);

/* Opens a file, lists its chunks, and closes the previous one; nothing if it is open already.
 * Returns false if it can't be read or is a copy, which has been reported; if it has been deleted;
 * if the page counts of the whole segment say that it does not have what `query` looks for (NULL:
 * anything); or if the file is stopped. Reports the holes on either side of it, as soon as the
 * other neighbour is known too. */
bool bc_segments_open(struct bc_segments *segments, int at, const struct bc_page_query *query);

/* An open file that has been set aside for another one. */
struct bc_segments_place {
	struct bc_segment_file file;
	int at; /* -1: none */
};

/* Sets the open file aside and opens that of `place` again. */
void bc_segments_exchange(struct bc_segments *segments, struct bc_segments_place *place);

/* True if a file and the one before it are of the same recording, by their names. */
bool bc_segments_follows(const struct bc_segments *segments, int at);

/* The start of a file's recording, by its name. Returns false if its name does not have it. */
bool bc_segments_start(const struct bc_segments *segments, int at, int64_t *ns);

/* stat() of a file, without opening it. */
int bc_segments_stat(const struct bc_segments *segments, int at, struct stat *st) BC_MUST_CHECK;

#endif
