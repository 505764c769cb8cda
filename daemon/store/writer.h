/* The writer: one thread that puts encoded chunks into segment files, in order, makes them durable
 * on its own schedule, seals, and keeps to the space rules (daemon/store/rotator.h). Nobody else
 * touches the output directory.
 *
 * A chunk that can't be written stays and is tried again twice a second; the chunks behind it wait.
 * The loop learns of everything by bc_writer_pop_notices(): what has happened in its order, and a
 * copy of the writer's counts of that moment. Several recordings may follow one another closely: a
 * chunk names its recording, and while one is being sealed the next one's may be on their way. */
#ifndef BC_DAEMON_STORE_WRITER_H
#define BC_DAEMON_STORE_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/queue.h"
#include "daemon/base/rules.h"
#include "daemon/base/thread_health.h"
#include "daemon/store/recording_info.h"
#include "daemon/store/writer_notices.h"
#include "daemon/store/writer_stats.h"
#include "formats/base/must_check.h"

struct bc_writer;

struct bc_writer_options {
	const char *dir; /* for messages, and to open it again when it was replaced */
	int dir_fd;      /* the caller's, stays open */
	struct bc_writer_rules rules;
	struct bc_queue *encoded;        /* struct bc_encoded, from the encoder */
	struct bc_queue *outputs;        /* given back to */
	unsigned outputs_count;          /* how many there are in all */
	void (*reported)(void *context); /* called on the writer's thread when there is news */
	void *context;
};

/* Starts the thread. Returns 0 or a negative errno. */
int bc_writer_start(
	struct bc_writer **writer, const struct bc_writer_options *options) BC_MUST_CHECK;

void bc_writer_stats(struct bc_writer *writer, struct bc_writer_stats *report);

/* Takes what has happened since the last call, oldest first; NULL: nothing. The caller frees it by
 * bc_writer_notices_free(). The report, which may be NULL, is of the same moment: it knows of no
 * file that the news don't tell of, and with a recording's ENDED all that was written of it is in
 * the counts. Until its ENDED is taken a recording must stay where it is; news that were never
 * taken are freed with the writer. */
struct bc_writer_notice *bc_writer_pop_notices(
	struct bc_writer *writer, struct bc_writer_stats *report);

/* Changes the rules from here on. */
void bc_writer_set_rules(struct bc_writer *writer, const struct bc_writer_rules *rules);

/* Gives up what can't be written, up to the end of this recording, whose ENDED has not been taken
 * yet: chunks in hand and to come are counted and dropped. The open segment ends with a gap for
 * them where the disk takes that much, and is left as .partial where it can't be sealed. What
 * follows is written again. */
void bc_writer_abandon(struct bc_writer *writer, const struct bc_recording_info *recording);

/* Puts the writer in *longest, with what it is at, if it has been at that for longer than what is
 * there. A chunk that waits for a disk that is full or refuses it is no work; a call that doesn't
 * return is. */
void bc_writer_poll(struct bc_writer *writer, struct bc_thread_health_seen *longest);

/* Ends the thread, when every chunk encoded is dealt with (close and drain the encoder before), and
 * frees the writer. NULL is none. */
void bc_writer_stop(struct bc_writer *writer);

#endif
