/* What the files of a recording say about it as a whole: its state, its size, and what its newest
 * segment says. Costs one open, the header and the head of the index of each file; of the newest
 * one, the chunks with events too. Blocks on the disk. */
#ifndef BC_FORMATS_RECORDING_RECORDING_SUMMARY_H
#define BC_FORMATS_RECORDING_RECORDING_SUMMARY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/recording/recording_list.h"
#include "formats/segment/segment_header.h"
#include "formats/segment/sequence_check.h"

struct bc_recording_summary {
	struct bc_segment_header header; /* of the newest segment whose header is intact, its
					    metadata updated by notes; all zero: none */
	bool has_start;
	int64_t started_ns; /* by its id, or the first header */
	bool has_end;       /* in the newest segment */
	struct bc_recording_end end;
	int64_t changed_ns;        /* when the newest file was */
	int64_t to_ns;             /* of its end, of its last record, or changed_ns */
	uint64_t segments;         /* that are there; of these: */
	uint64_t unread;           /* files that are too damaged to count, or can't be read */
	uint64_t foreign;          /* files with its name, but the header of another; not counted */
	uint64_t first_record;     /* not 0: its first segments were deleted */
	uint64_t missing_segments; /* that are not here, between those that are */
	uint64_t missing;          /* records in these, as far as known */
	uint64_t bytes;            /* of the files */
	uint64_t records;          /* by the indexes */
	/* By gaps, or by the counts in the last chunk if these are more. If it was killed and is
	 * not recovered yet, with the gap that its recovery adds. */
	struct bc_loss loss;
	bool has_loss;                    /* by those counts, even if not everything is counted */
	bool is_counted;                  /* `records` and the gaps are complete */
	bool is_open;                     /* a segment is not sealed */
	bool is_written;                  /* a process is writing its newest segment */
	char path[BC_RECORDING_PATH_MAX]; /* of the newest segment, relative to the directory */
};

struct bc_summary_io {
	void *context;

	/* A file is not summarized: -EXDEV: the header is another segment's; -EBADMSG: neither
	 * header nor index can be read; or another -errno. NULL: ignored. */
	void (*fault)(void *context, const char *path, int error);

	/* Segments are missing before this file. NULL: ignored. */
	void (*missing)(void *context, const char *path, const struct bc_missing_segments *missing);

	/* Returns false to stop. NULL: go on. */
	bool (*goes_on)(void *context);

	/* Also count the chunks of segments without an index. */
	bool counts_unsealed;

	/* The caller knows what is being recorded; otherwise, the directory's lock tells. */
	bool knows_current;

	/* Read only the first and the last file: records are numbered, and the last chunk has the
	 * losses of the whole recording. The sizes of the files between them are left out. */
	bool only_ends;
};

/* Summarizes a recording in a list of the directory `dir_fd`. Its copies and damaged files are left
 * out; files that were deleted since the list was made are too. segments - unread is 0 if nothing
 * says that there is such a recording. Returns 0, -ENOMEM, or -ECANCELED. */
int bc_recording_summarize(struct bc_recording_summary *summary, int dir_fd,
	const struct bc_recording_list *list, const struct bc_recording *recording,
	const struct bc_summary_io *io) BC_MUST_CHECK;

/* Its members in GET /v1/recordings (docs/api.md) and `buscap info --json`. `path` is the newest
 * segment's as readers see it. Returns NULL if out of memory. */
json_t *bc_recording_summary_json(
	const struct bc_recording_summary *summary, const char *id, const char *path) BC_MUST_CHECK;

#endif
