/* Reads what a directory tells of the recordings in it. Any thread; it takes as long as the disk
 * does. */
#ifndef BC_DAEMON_API_CATALOG_READ_H
#define BC_DAEMON_API_CATALOG_READ_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Of a directory with more recordings these, the newest, are told. */
#define BC_CATALOG_ROWS_MAX 1000u

struct bc_catalog_scan {
	const char *dir;
	atomic_bool *is_cancelled; /* looked at between files */
	uint64_t left_out;         /* set: older recordings that are not among the rows */
	int status;                /* set: 0 or a negative errno */
};

/* An array of recordings as docs/api.md has them, oldest first, for the caller to delete:
 *
 *   id, label, path   of the newest segment
 *   started           from the id; null where that doesn't tell
 *   ended             when the newest segment was sealed; null while one is torn
 *   state             "complete", or "torn": a segment has not been sealed
 *   segments, bytes   of those that are there: the space rules may have deleted some
 *   records, lost     by their indexes; null where one has none, or is damaged
 *   metadata          of the newest segment, with what was noted in it
 *   reason            null
 *
 * Returns NULL with reading->status set: the directory can't be read, memory ran out, or it was
 * cancelled. */
json_t *bc_catalog_read(struct bc_catalog_scan *reading);

#endif
