/* Writes one raw capture: header, then blocks. It has no end of its own: sealed, it has its name.
 *
 *     bc_raw_create()                      NAME.partial appears
 *     bc_raw_append() ...                  whole blocks, each all or nothing
 *     bc_new_file_sync(&writer.file) ...   what was appended is durable
 *     bc_raw_seal() or bc_raw_abandon()
 *
 * A torn one is made whole by bc_raw_recover(). One thread at a time. */
#ifndef BC_FORMATS_RAW_WRITER_H
#define BC_FORMATS_RAW_WRITER_H

#include <stdint.h>

#include "formats/new_file.h"
#include "formats/raw_capture.h"
#include "formats/segment_header.h"
#include "formats/segment_name.h"
#include "formats/steps.h"

struct bc_raw_writer {
	struct bc_new_file file; /* closed: none is open */
	uint32_t segment;        /* of which it is the raw capture */
	uint32_t blocks;
};

/* Creates a raw capture in the directory, with BC_PARTIAL_SUFFIX behind its name. Returns 0, or a
 * negative errno as bc_new_file_create() does. */
int bc_raw_create(struct bc_raw_writer *writer, int dir_fd, const char *name,
	const struct bc_segment_header *header, enum bc_format form)
	__attribute__((warn_unused_result));

/* Appends a block as bc_raw_encode() left it. Returns 0, or a negative errno with the file cut back
 * to the block before. */
int bc_raw_append(struct bc_raw_writer *writer, const uint8_t *encoded, size_t bytes)
	__attribute__((warn_unused_result));

/* Makes it durable and gives it its final name, as bc_new_file_seal() does. */
int bc_raw_seal(struct bc_raw_writer *writer) __attribute__((warn_unused_result));

/* Closes the file as it is, a .partial that can be read and recovered. */
void bc_raw_abandon(struct bc_raw_writer *writer);

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
	const struct bc_steps *steps) __attribute__((warn_unused_result));

#endif
