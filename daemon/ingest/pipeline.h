/* The pipeline takes chunks to disk, as seen by the loop thread: the pool of slots, the encoder,
 * the writer, and their counts. Their own threads compress and write, so the loop never blocks.
 *
 * A channel (daemon/ingest/channel.h) gets a slot with bc_pipeline_pop(), and either sends it or
 * gives it back. The chunks of a recording are sent in order; the last one is marked as such, and
 * BC_NOTICE_ENDED follows when all are on disk. The next recording's chunks may follow immediately.
 *
 *     bc_pipeline_open()
 *     bc_pipeline_pop(), then bc_pipeline_send() or bc_pipeline_give_back()
 *     bc_pipeline_close()      no recording may be in progress
 *
 * All functions are called on the loop thread. */
#ifndef BC_DAEMON_INGEST_PIPELINE_H
#define BC_DAEMON_INGEST_PIPELINE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/base/rules.h"
#include "daemon/ingest/counts.h"
#include "daemon/store/writer_report.h"
#include "formats/base/compression.h"
#include "formats/base/must_check.h"

struct bc_catalogue;
struct bc_pipeline;
struct bc_slot;
struct bc_thread_health_seen;

struct bc_pipeline_options {
	uint64_t buffer_bytes; /* for all slots and outputs; at least bc_pipeline_min_bytes() */
	unsigned workers;
	enum bc_level compression;
	const char *dir;
	int dir_fd;                     /* the caller's; remains open */
	struct bc_catalogue *catalogue; /* the caller's */
	struct bc_writer_rules rules;
	void *context;
	/* A slot is free after bc_pipeline_pop() failed or bc_pipeline_is_ahead() was true. */
	void (*on_slot_free)(void *context);
	void (*on_stats)(void *context); /* bc_pipeline_stats() has changed */

	/* A file was started or sealed, or a recording has ended. After BC_NOTICE_ENDED the
	 * pipeline no longer refers to the recording. Called after on_stats(). */
	void (*on_notice)(void *context, const struct bc_writer_notice *notice);
};

/* Returns the least memory for this many workers. */
uint64_t bc_pipeline_min_bytes(unsigned workers);

/* Allocates the memory and starts the threads. Returns 0 or a negative errno: -ENOMEM also if
 * hardly any memory is left. */
int bc_pipeline_open(struct bc_pipeline **pipeline, uv_loop_t *loop,
	const struct bc_pipeline_options *options) BC_MUST_CHECK;

/* Tells the writer's threads to end: all is written, and nothing may be sent afterwards. Until they
 * have ended, which a hanging disk may prevent, bc_pipeline_poll() sets *longest. */
void bc_pipeline_finish(struct bc_pipeline *pipeline);

/* Ends the threads. The memory is freed when the loop has closed the handles. */
void bc_pipeline_close(struct bc_pipeline *pipeline);

void bc_pipeline_set_rules(struct bc_pipeline *pipeline, const struct bc_writer_rules *rules);

/* Returns a free slot with its previous contents, to send or to give back. NULL: none is free;
 * on_slot_free() will be called when one is. */
struct bc_slot *bc_pipeline_pop(struct bc_pipeline *pipeline);
void bc_pipeline_give_back(struct bc_pipeline *pipeline, struct bc_slot *slot);

/* Sends a slot, with recording, cut_after, is_last and the chunk's info set, to the encoder. */
void bc_pipeline_send(struct bc_pipeline *pipeline, struct bc_slot *slot);

/* True if chunks are queued for the encoder: one sent now would not be written sooner. */
bool bc_pipeline_is_busy(struct bc_pipeline *pipeline);

/* Returns whether enough chunks are queued to keep all workers busy. Then a source that can wait
 * should, until on_slot_free(): the same few slots are reused while in the cache. */
bool bc_pipeline_is_ahead(struct bc_pipeline *pipeline);

/* Gives up the chunks of a recording that are not written yet. No-op if it has ended. */
void bc_pipeline_abandon(struct bc_pipeline *pipeline, const struct bc_recording_info *recording);

/* Updates *longest if a thread has been busy with its current work for longer. */
void bc_pipeline_poll(struct bc_pipeline *pipeline, struct bc_thread_health_seen *longest);

struct bc_counts *bc_pipeline_counts(struct bc_pipeline *pipeline);
const struct bc_writer_stats *bc_pipeline_stats(const struct bc_pipeline *pipeline);

struct bc_buffer_state {
	unsigned chunks; /* places for one: all slots */
	unsigned free;
	unsigned min_free;     /* the lowest `free` so far */
	uint64_t records_left; /* that the free slots will hold, packed like the latest */
};
struct bc_buffer_state bc_pipeline_buffer(struct bc_pipeline *pipeline);

#endif
