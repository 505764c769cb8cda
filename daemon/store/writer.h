/* The writer: one thread that writes encoded chunks to segment files, in order. A second one, the
 * sealer, syncs and seals the files and applies the space rules (daemon/store/sealer.h). What an
 * error left open, the catalogue's thread seals a copy of (daemon/store/catalogue_listing.c).
 *
 * A chunk that can't be written is retried every 0.5 s; later chunks wait. The loop reads the
 * writer's stats and pops its notices. Each chunk names its recording, so chunks of the next
 * recording may be queued while one is being sealed. */
#ifndef BC_DAEMON_STORE_WRITER_H
#define BC_DAEMON_STORE_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/thread_health.h"
#include "daemon/store/writer_options.h"
#include "daemon/store/writer_report.h"
#include "formats/base/must_check.h"

struct bc_writer;

/* Starts the thread. Returns 0 or a negative errno. */
int bc_writer_start(
	struct bc_writer **writer, const struct bc_writer_options *options) BC_MUST_CHECK;

/* Returns the notices since the last call, oldest first, or NULL. Free them with
 * bc_writer_notices_free(). *stats is from the same moment: it names only files that the notices
 * name, and with a recording's ENDED it counts everything written to it. Each bc_recording_info
 * must stay valid until its ENDED was popped. */
struct bc_writer_notice *bc_writer_pop_notices(
	struct bc_writer *writer, struct bc_writer_stats *stats);

/* Sets the rules that apply from now on. */
void bc_writer_set_rules(struct bc_writer *writer, const struct bc_writer_rules *rules);

/* Gives up a recording: its chunks that are not written, present and future, are counted and
 * discarded. The open segment ends with a gap for them if the disk accepts it, and stays .partial
 * if it can't be sealed. Later recordings are written normally. No-op after its ENDED. */
void bc_writer_abandon(struct bc_writer *writer, const struct bc_recording_info *recording);

/* Updates *longest if the current operation of the writer or the sealer has lasted longer. Waiting
 * for a full or failing disk does not count; a call that does not return does. */
void bc_writer_poll(struct bc_writer *writer, struct bc_thread_health_seen *longest);

/* Tells the thread to process the remaining chunks and end. Until it has ended, bc_writer_poll()
 * reports an activity; afterwards, bc_writer_stop() does not block. */
void bc_writer_finish(struct bc_writer *writer);

/* Writes what remains and frees the writer (may be NULL). Close and drain the encoder first. */
void bc_writer_stop(struct bc_writer *writer);

#endif
