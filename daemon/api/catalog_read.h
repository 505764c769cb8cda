/* Describes the recordings in a directory by reading its files. Any thread; blocks on the disk. */
#ifndef BC_DAEMON_API_CATALOG_READ_H
#define BC_DAEMON_API_CATALOG_READ_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Only this many recordings, the newest, are listed. */
#define BC_CATALOG_ROWS_MAX 1000u

struct bc_catalog_scan {
	const char *dir;
	atomic_bool *is_cancelled; /* checked between files */
	uint64_t omitted;          /* output: number of older recordings that are not listed */
	int status;                /* output: 0 or a negative errno */
};

/* Returns an array of recordings as in docs/api.md, oldest first, owned by the caller:
 *
 *   id, label, path   of the newest segment
 *   started           from the ID; null if it does not contain the time
 *   ended             from the end in the newest segment; null if the state is open
 *   state             "sealed"; "recovered": after a kill or a power cut, recovery has added the
 *                     end; or "open": a segment is not sealed, or the end is missing
 *   segments, bytes   of the segments that exist; retention may have deleted some
 *   records           from the segments' indexes; null if an index is missing or damaged
 *   lost              likewise, or from the newest segment's last chunk if that counts more
 *   metadata          of the newest segment, including notes in it
 *   reason            of the end; null if there is none
 *
 * Returns NULL with scan->status set if the directory cannot be read, out of memory, or
 * cancelled. */
json_t *bc_catalog_read(struct bc_catalog_scan *scan);

#endif
