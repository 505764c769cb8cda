/* Recovers a torn or damaged segment: copies every whole chunk once, in the order of the recording,
 * to a new sealed file. The input is not changed.
 *
 * Chunks keep their record numbers. If chunks are missing, the next one gets a gap (cause
 * "damaged"), exact if the record numbers show how many records are missing.
 *
 * The frames of records are copied without recompression. The header is copied, including the
 * user's metadata. A damaged header is replaced by one with the data of the chunks and the file
 * name. */
#ifndef BC_FORMATS_SEGMENT_RECOVER_H
#define BC_FORMATS_SEGMENT_RECOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/input_stream.h"
#include "formats/base/must_check.h"
#include "formats/segment/segment_name.h"
#include "formats/segment/segment_reader.h"
#include "formats/segment/segment_writer.h"

struct bc_recovered {
	bool has_content;       /* the input has more than a header */
	bool is_only_torn;      /* the only damage is at the end of the file, which is torn or ends
				 * in zeros: what can be read are the whole chunks */
	uint64_t chunks;        /* written */
	uint64_t records;       /* written */
	uint64_t missing;       /* records missing between those written */
	uint64_t torn_records;  /* in a chunk that is torn at the end but has its header */
	uint64_t damages;       /* places where bytes are unreadable, or where chunks are missing,
				 * duplicate, out of order, or from another file */
	uint64_t damaged_bytes; /* at these places */
	struct bc_segment_damage first; /* the first place */
	bool has_end;                   /* a chunk of the input has BC_EVENT_END */
	bool is_written;                /* false: no whole chunk, so no file was made */
};

/* The copy is named `name` + BC_RECOVER_SUFFIX while it is written. If the process is killed, this
 * file remains, and recovery returns -EEXIST until it is deleted. */
#define BC_RECOVER_SUFFIX ".recovering"

struct bc_recover_options {
	/* Supplies a damaged header's recording id, if it matches the chunks. May be NULL. */
	const struct bc_segment_name *fallback;
	uint64_t sequence; /* of the recording, if the header is damaged; 0: unknown */
	/* The input must be that file: after a power cut, a file that was never synced can have
	 * another file's old data. If it is a different file, nothing is copied. */
	bool must_be_fallback;
	const struct bc_progress_cb *progress; /* called after each read; may be NULL */
	/* Not NULL: the input is the last segment of its recording, which was killed if it has no
	 * BC_EVENT_END. The copy then ends with a gap of unknown size (cause "crash") and that
	 * event, unless it has as many chunks as a segment can have. This is the id of the current
	 * boot; if the recording has another, the reason is "power". */
	const char *boot_id;
};

/* Reads the segment in the seekable file `in` twice, and writes the sealed copy `name` in dir_fd.
 *
 * Returns 0 (`damages` shows whether anything was wrong); -EEXIST: a name exists; -EIO: the input
 * changed while it was read; or another negative errno. After a failure no file is left behind.
 * *recovered is valid in any case. */
int bc_recover(struct bc_recovered *recovered, int in, int dir_fd, const char *name,
	const struct bc_recover_options *options) BC_MUST_CHECK;

/* Ends a recording that was killed when none of its segments was open: if the last one, the sealed
 * segment in `last`, has no BC_EVENT_END, writes a segment `name` with the next number that has
 * only the gap and the event described above. Returns 0 or a negative errno;
 * recovered->is_written shows whether anything was written. */
int bc_recover_end(struct bc_recovered *recovered, int last, int dir_fd, const char *name,
	const char *boot_id) BC_MUST_CHECK;

/* Sets *has_all to whether the file `sealed` has every whole chunk of `in`, and describes `in` in
 * *recovered, as bc_recover() does without writing anything. Returns 0 or a negative errno. */
int bc_recover_compare(struct bc_recovered *recovered, bool *has_all, int in, int sealed,
	const struct bc_progress_cb *progress) BC_MUST_CHECK;

#endif
