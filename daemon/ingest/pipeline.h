/* The way from chunks to files, as the loop sees it: the pool of slots, the encoder and the writer
 * behind it, and the counts of all that.
 *
 * Whoever fills chunks (daemon/ingest/channel.h) takes a slot with bc_pipeline_pop(), and hands it
 * on with bc_pipeline_send() or back with bc_pipeline_give_back(). A recording's chunks are sent in
 * their order; the last one says that it is, and BC_NOTICE_ENDED follows when all of it is on the
 * disk. The next recording's may be sent meanwhile.
 *
 *     bc_pipeline_open()
 *     ... take, send, give back
 *     bc_pipeline_close()      no recording may be under way
 *
 * All calls are of the loop's thread. */
#ifndef BC_DAEMON_INGEST_PIPELINE_H
#define BC_DAEMON_INGEST_PIPELINE_H

#include <uv.h>

#include "daemon/base/rules.h"
#include "daemon/ingest/counts.h"
#include "daemon/store/writer_notices.h"
#include "daemon/store/writer_stats.h"
#include "formats/base/must_check.h"

struct bc_pipeline;
struct bc_slot;
struct bc_thread_health_seen;

struct bc_pipeline_options {
	uint64_t buffer_bytes; /* all chunks and output slots together; at least
				bc_pool_min_bytes() */
	unsigned workers;
	bool keeps_raw; /* slots have room for the stream's bytes */
	const char *dir;
	int dir_fd; /* the caller's, stays open */
	struct bc_writer_rules rules;
	void *context;
	void (*on_slot_free)(void *context); /* a slot is free again, after there was none */
	void (*on_stats)(void *context);     /* the writer has written: bc_pipeline_stats() */

	/* And what it has begun, sealed and ended. With BC_NOTICE_ENDED nobody here looks at the
	 * recording any more. Follows on_stats(). */
	void (*on_notice)(void *context, const struct bc_writer_notice *news);
};

/* Takes the memory and starts the threads. Returns 0 or a negative errno. */
int bc_pipeline_open(struct bc_pipeline **pipeline, uv_loop_t *loop,
	const struct bc_pipeline_options *options) BC_MUST_CHECK;

/* Ends the threads. Memory goes when the loop has closed the handles. */
void bc_pipeline_close(struct bc_pipeline *pipeline);

/* Changes the rules from here on. */
void bc_pipeline_set_rules(struct bc_pipeline *pipeline, const struct bc_writer_rules *rules);

/* A free slot, as its last user left it, for the caller to send or give back; NULL when there is
 * none: on_slot_free() then says when there is. */
struct bc_slot *bc_pipeline_pop(struct bc_pipeline *pipeline);
void bc_pipeline_give_back(struct bc_pipeline *pipeline, struct bc_slot *slot);

/* Hands on a slot: recording, cut_after, is_last and the chunk's info are the caller's to set. */
void bc_pipeline_send(struct bc_pipeline *pipeline, struct bc_slot *slot);

/* Whether chunks wait for the encoder: one more would reach the disk no sooner. */
bool bc_pipeline_is_busy(struct bc_pipeline *pipeline);

/* Gives up what the disk doesn't take of a recording that has not ended yet. */
void bc_pipeline_abandon(struct bc_pipeline *pipeline, const struct bc_recording_info *recording);

/* Puts in *longest the thread that has been at one piece of work for longer than what is there. */
void bc_pipeline_poll(struct bc_pipeline *pipeline, struct bc_thread_health_seen *longest);

struct bc_counts *bc_pipeline_counts(struct bc_pipeline *pipeline);
const struct bc_writer_stats *bc_pipeline_stats(const struct bc_pipeline *pipeline);

struct bc_buffer_state {
	unsigned chunks; /* in the pool */
	unsigned free;
	unsigned low_water; /* the fewest that were ever free */
};
struct bc_buffer_state bc_pipeline_buffer(struct bc_pipeline *pipeline);

#endif
