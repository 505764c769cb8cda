/* The encoder's workers: threads that turn chunks, and the raw blocks beside them, into LZ4 frames.
 * One chunk in, one frame of each out; no state is kept between.
 *
 * Chunks come out in any order. A worker takes its output slot before it takes a chunk, so that the
 * chunk which the writer waits for always has a slot. */
#ifndef BC_DAEMON_INGEST_ENCODER_H
#define BC_DAEMON_INGEST_ENCODER_H

#include "daemon/base/queue.h"
#include "daemon/base/thread_health.h"
#include "daemon/store/recording_info.h"
#include "formats/base/must_check.h"

struct bc_encoder;

/* The queues belong to the caller and live longer than the encoder. */
struct bc_encoder_queues {
	struct bc_queue *chunks;           /* struct bc_slot to encode, in order */
	struct bc_queue *free_slots;       /* struct bc_slot, given back when encoded */
	struct bc_queue *outputs;          /* struct bc_encoded, free */
	struct bc_queue *encoded;          /* struct bc_encoded, for the writer */
	void (*slot_freed)(void *context); /* called on a worker's thread after each */
	void *context;
};

/* Starts `workers` threads. Returns 0 or a negative errno. */
int bc_encoder_start(struct bc_encoder **encoder, unsigned workers,
	const struct bc_encoder_queues *queues) BC_MUST_CHECK;

/* Closes the queue of chunks, waits for the workers to encode what is in it, frees the encoder. The
 * writer must be giving outputs back meanwhile. NULL is none. */
void bc_encoder_stop(struct bc_encoder *encoder);

/* Puts in *longest the worker that has been at one chunk for longer than what is there, if one has.
 */
void bc_encoder_poll(struct bc_encoder *encoder, struct bc_thread_health_seen *longest);

#endif
