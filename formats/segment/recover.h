/* Makes a sealed segment out of what is whole in a torn or damaged one. The input is only read.
 *
 * Chunks keep their record numbers. Where some are missing, the next chunk kept says so with a gap
 * (cause "damaged"): its number is exact where the chunks around it tell.
 *
 *   strict   nothing may be damaged; only the index may be missing. Else nothing is written.
 *   tail     every chunk up to the first damage behind, or instead of, the first chunk
 *   salvage  every whole chunk, in the order of their records, none twice
 *
 * The records' frames are copied as they stand. The header is kept, the user's metadata included;
 * where it is damaged, what the chunks and the file's name tell is put in its place. */
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
	uint64_t chunks; /* written */
	uint64_t records;
	uint64_t lost_chunks;   /* whole chunks behind the first damage that `tail` left out */
	uint64_t lost_records;  /* theirs */
	uint64_t missing;       /* records that should stand between those written, and don't */
	uint64_t damages;       /* places that could not be read, or where chunks are missing, stand
				 * twice,       in the wrong order, or are another segment's */
	uint64_t damaged_bytes; /* theirs; 0 bytes where something is missing */
	struct bc_segment_damage first; /* the first of them */
	bool was_sealed;                /* the input had its index */
	char hash[BC_FILE_HASH_CHARS];  /* of the file written; or empty */
	bool is_written;                /* false: there was no whole chunk, and no file was made */
};

/* The name of the copy while it is being written: `name` with this behind it. Killed, it leaves
 * that file behind, and -EEXIST is returned till it is removed. */
#define BC_RECOVER_SUFFIX ".recovering"

/* Reads the one segment in `in`, a seekable file, from its beginning, twice, and writes the sealed
 * copy as `name` into dir_fd. Where the segment's header is damaged, `fallback` (may be NULL) gives
 * the recording's id, if it is that of the chunks. Returns 0 (look at `damages` for how whole it
 * was); -EBADMSG: strict, and damaged; -EEXIST: a name is taken; -EIO when the input changes
 * meanwhile; or another negative errno. Nothing is left behind on a failure. *recovered tells what
 * was found either way. Each piece read of `in` is one of the `steps`, which may be NULL. */
int bc_recover(struct bc_recovered *recovered, int in, int dir_fd, const char *name,
	const struct bc_segment_name *fallback, enum bc_recover_mode mode,
	const struct bc_progress_cb *progress) BC_MUST_CHECK;

struct bc_raw_recovered {
	uint64_t blocks;
	uint64_t bytes;     /* of the stream, in them */
	uint64_t cut_bytes; /* of the file, behind the last whole block: cut off */
	uint64_t damages;   /* places before that which can't be read: left as they are */
	char hash[BC_FILE_HASH_CHARS]; /* of the file then; empty: it could not be read for that */
};

/* Makes a raw capture whole that was left open: `from` is cut to its last whole block, made durable
 * and renamed to `to`; without a whole block it is removed. Returns 0, -EEXIST when `to` is taken,
 * or another negative errno; `from` is then there still. Each piece read of it is one of the
 * `steps`, which may be NULL. */
int bc_raw_recover(struct bc_raw_recovered *recovered, int dir_fd, const char *from, const char *to,
	const struct bc_progress_cb *progress) BC_MUST_CHECK;

#endif
