/* A segment as the target of a command: entries become records with their deltas, in chunks, in one
 * sealed file (docs/segment-format.md).
 *
 *     bc_segment_target_open()
 *     bc_segment_target_add() ...
 *     bc_segment_target_seal() or bc_segment_target_abandon()
 *
 * What is made is a recording of its own: its id is new, its records are numbered from 0 and follow
 * one another. Ticks, epochs, times of day, gaps, marks and triggers are those of the entries; the
 * header is the source's, where it has one, and its metadata says what the recording was made from.
 */
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

/* What the metadata say of where a segment comes from. */
struct bc_origin {
	const char *key;  /* the member that names the source: "cut_from" */
	const char *from; /* NULL: the source's recording or, without one, its file */
	bool is_merged;   /* of several traces: nothing of the header is one source's */
	const char *how;  /* what was asked for, as member "cut"; NULL: none */
};

/* Will make `path`, which is not there yet, as PATH.partial. `path` and what `origin` points to
 * stay the caller's and must outlive it. `clock_hz` 0: the source's. Returns BC_EXIT_OK, or another
 * code after a complaint, with nothing to close. */
enum bc_exit bc_segment_target_open(struct bc_segment_target **target,
	const struct bc_console *console, const char *path, uint64_t clock_hz,
	const struct bc_origin *origin) BC_MUST_CHECK;

/* Takes entries, references and events alone. `source` is the trace that they come from, `moment`
 * what ties their ticks to the time of day. Returns how many were taken; fewer than `count`, with
 * `err` a clause that says what is wrong with the next one, or empty after a complaint about the
 * file. */
size_t bc_segment_target_add(struct bc_segment_target *target, const struct bc_entry *entries,
	size_t count, const struct bc_trace *source, const struct bc_moment *moment, char err[160]);

/* Completes the file and gives it its name; frees the target. `source` gives the header when
 * nothing was put. Returns how it went, after a complaint if badly. */
enum bc_exit bc_segment_target_seal(
	struct bc_segment_target *target, const struct bc_trace *source);

/* Frees the target and leaves PATH.partial as far as it got, with a word on it. */
void bc_segment_target_abandon(struct bc_segment_target *target);

#endif
