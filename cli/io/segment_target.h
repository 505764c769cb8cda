/* Writes entries as a sealed segment (docs/segment-format.md): records with deltas, in chunks.
 *
 *     bc_segment_target_open()
 *     bc_segment_target_add() ...
 *     bc_segment_target_seal() or bc_segment_target_abandon()
 *
 * The segment is a new recording: it has a new id, and its records are numbered from 0 without
 * holes. Ticks, epochs, times of day, gaps, marks and triggers are taken from the entries. The
 * header is copied from the source's, if any; its metadata names the source (struct bc_origin). */
#ifndef BC_CLI_IO_SEGMENT_TARGET_H
#define BC_CLI_IO_SEGMENT_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/io/trace.h"
#include "cli/term/console.h"
#include "formats/base/must_check.h"
#include "formats/trace/entry.h"

struct bc_segment_target;

/* The source of a segment, for its metadata. */
struct bc_origin {
	const char *key;  /* the member that names the source: "cut_from" */
	const char *from; /* its value; NULL: the source's recording or, without one, its file */
	bool is_merged;   /* several sources: the header is not copied from one */
	const char *how;  /* the selection, for the member "cut"; NULL or empty: none */
	bool is_numbered; /* ticks are record numbers, whatever times the source has */
	int *fd;          /* gets the sealed segment, in a file without a name; NULL: it has one */
};

/* Prepares to write `path`, which must not exist, as PATH.partial. The file is created with the
 * first chunk. `path` and the strings of `origin` stay the caller's and must outlive the target.
 * With origin->fd, `path` is NULL, and the file is in $TMPDIR or /tmp.
 * `clock_hz` 0: the source's. Returns BC_EXIT_OK, or prints an error and returns another code with
 * nothing to close. */
enum bc_exit bc_segment_target_open(struct bc_segment_target **target,
	const struct bc_console *console, const char *path, uint64_t clock_hz, enum bc_level level,
	const struct bc_origin *origin) BC_MUST_CHECK;

/* Adds entries, which must be references or events. `source` is their trace; `moment` relates their
 * ticks to the time of day. Returns the number of entries added. If it is less than `count`, `err`
 * describes the problem with the next entry, or is empty if writing failed, reported at the end. */
size_t bc_segment_target_add(struct bc_segment_target *target, const struct bc_entry *entries,
	size_t count, const struct bc_trace *source, const struct bc_moment *moment, char err[160]);

/* Completes the file, renames it to its final name, and frees the target. Without an entry, the
 * header is from `source`. Returns BC_EXIT_OK, or BC_EXIT_FAILED, having printed why. */
enum bc_exit bc_segment_target_seal(
	struct bc_segment_target *target, const struct bc_trace *source);

/* Frees the target. Leaves PATH.partial, if it was created, and prints a message that says why. */
void bc_segment_target_abandon(struct bc_segment_target *target);

#endif
