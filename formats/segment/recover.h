/* Recovers a torn or damaged segment: copies its whole chunks to a new sealed segment. The input is
 * not changed.
 *
 * Chunks keep their record numbers. If chunks are missing, the next one gets a gap (cause
 * "damaged"), exact if the record numbers show how many records are missing.
 *
 *   strict   copies nothing if anything but the index is missing or damaged
 *   tail     copies the chunks before the first damage or missing chunk; a damaged header is
 * ignored salvage  copies every whole chunk once, in the order of their records
 *
 * The records' LZ4 frames are copied without recompression. The header is copied, including the
 * user's metadata. A damaged header is replaced by one with the data of the chunks and the file
 * name. */
#ifndef BC_FORMATS_SEGMENT_RECOVER_H
#define BC_FORMATS_SEGMENT_RECOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/base/progress_cb.h"
#include "formats/segment/segment_name.h"
#include "formats/segment/segment_reader.h"
#include "formats/segment/segment_writer.h"

enum bc_recover_mode { BC_RECOVER_STRICT, BC_RECOVER_TAIL, BC_RECOVER_SALVAGE };

struct bc_recovered {
	uint64_t chunks;        /* written */
	uint64_t records;       /* written */
	uint64_t lost_chunks;   /* tail: whole chunks after the first damage, not copied */
	uint64_t lost_records;  /* in lost_chunks */
	uint64_t missing;       /* records missing between those written */
	uint64_t damages;       /* places where bytes are unreadable, or where chunks are missing,
				 * duplicate, out of order, or from another segment */
	uint64_t damaged_bytes; /* at these places */
	struct bc_segment_damage first; /* the first place */
	bool was_sealed;                /* the input had a valid index */
	char hash[BC_FILE_HASH_CHARS];  /* of the file written; or empty */
	bool is_written;                /* false: no whole chunk, so no file was made */
};

/* The copy is named `name` + BC_RECOVER_SUFFIX while it is written. If the process is killed, this
 * file remains, and recovery returns -EEXIST until it is deleted. */
#define BC_RECOVER_SUFFIX ".recovering"

/* Reads the segment in `in`, a seekable file with one segment, twice from its start, and writes the
 * sealed copy as `name` in dir_fd. If the header is damaged, `fallback` (may be NULL) supplies the
 * recording's id, provided that it matches the chunks. Calls `progress` (may be NULL) after each
 * read.
 *
 * Returns 0 (`damages` shows whether anything was wrong); -EBADMSG: damaged, in strict mode;
 * -EEXIST: a name exists; -EIO: the input changed while it was read; or another negative errno.
 * After a failure no file is left behind. *recovered is valid in any case. */
int bc_recover(struct bc_recovered *recovered, int in, int dir_fd, const char *name,
	const struct bc_segment_name *fallback, enum bc_recover_mode mode,
	const struct bc_progress_cb *progress) BC_MUST_CHECK;

struct bc_raw_recovered {
	uint64_t blocks;               /* whole ones */
	uint64_t bytes;                /* of the stream, in these blocks */
	uint64_t cut_bytes;            /* removed after the last whole block */
	uint64_t damages;              /* unreadable places before it; they remain */
	char hash[BC_FILE_HASH_CHARS]; /* of the result; empty if reading it failed */
};

/* Recovers a raw capture that was left open: truncates `from` after its last whole block, appends
 * its end, makes it durable and renames it to `to`. Without a whole block, deletes it. Returns 0,
 * -EEXIST if `to` exists, or another negative errno; then `from` still exists. Calls `progress`
 * (may be NULL) after each read. */
int bc_raw_recover(struct bc_raw_recovered *recovered, int dir_fd, const char *from, const char *to,
	const struct bc_progress_cb *progress) BC_MUST_CHECK;

#endif
