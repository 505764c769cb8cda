/* The last write of a recording: its end event, and the gaps for what could not be written. Turns
 * the last chunk into the form to be written (daemon/store/last_write.c); the rotator writes it.
 *
 * Also the reserve: a preallocated hidden file in the output directory. When the disk is full and a
 * loss must be recorded, the file is deleted, and the loss fits there. Writer thread only. */
#ifndef BC_DAEMON_STORE_LAST_WRITE_H
#define BC_DAEMON_STORE_LAST_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/store/encoded.h"
#include "formats/base/must_check.h"

#define BC_RESERVE_NAME  ".buscapd.reserve"
#define BC_RESERVE_BYTES UINT64_C(524288)

struct bc_last_write {
	struct bc_chunk_info last; /* of the last chunk written of the recording */
	struct bc_losses given_up; /* of the recording: the records, and the gaps between them */
	struct bc_chunk *note;     /* scratch space for a chunk without records */
};

/* Returns 0 or -ENOMEM. */
int bc_last_write_init(struct bc_last_write *last) BC_MUST_CHECK;
void bc_last_write_destroy(struct bc_last_write *last);

/* Forgets the previous recording. */
void bc_last_write_start(struct bc_last_write *last);

/* Adds the end to the recording's last chunk. Returns false if the chunk has no room for it. */
bool bc_last_write_add_end(struct bc_last_write *last, struct bc_encoded *encoded);

/* Replaces the last chunk, which is written or discarded, with one that has only the end. */
void bc_last_write_only_end(struct bc_last_write *last, struct bc_encoded *encoded);

/* Replaces the last chunk with the gaps for everything given up, and the end unless it is written.
 * `is_empty`: the recording has no chunk, so it needs no end unless something was lost. Returns
 * false if nothing needs to be written. */
bool bc_last_write_gaps(struct bc_last_write *last, struct bc_encoded *encoded, bool is_empty);

/* Creates the reserve, or extends it. On a disk that is almost full it takes what it can get.
 * Returns 0 if it has its full size, or a negative errno. */
int bc_reserve_fill(int dir_fd) BC_MUST_CHECK;

/* Deletes the reserve. Returns true if it existed. */
bool bc_reserve_release(int dir_fd);

#endif
