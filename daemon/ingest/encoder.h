/* The encoder: worker threads that compress chunks into frames. Each chunk becomes one
 * independent frame. Chunks are finished in any order: the writer must sort them by sequence
 * number, and return each after writing it. */
#ifndef BC_DAEMON_INGEST_ENCODER_H
#define BC_DAEMON_INGEST_ENCODER_H

#include "daemon/base/queue.h"
#include "daemon/base/thread_health.h"
#include "daemon/ingest/slot.h"
#include "daemon/store/encoded.h"
#include "formats/base/compression.h"
#include "formats/base/must_check.h"

struct bc_encoder;

/* The queues belong to the caller and must outlive the encoder. */
struct bc_encoder_queues {
	struct bc_queue *chunks;  /* struct bc_slot to encode, in order */
	struct bc_queue *outputs; /* struct bc_encoded, free */
	/* Called on the worker's thread: takes both, and returns them to these queues in time. */
	void (*on_encoded)(void *context, struct bc_encoded *out, struct bc_slot *slot);
	void *context;
};

/* Starts `workers` threads. Returns 0 or a negative errno. */
int bc_encoder_start(struct bc_encoder **encoder, unsigned workers, enum bc_level level,
	const struct bc_encoder_queues *queues) BC_MUST_CHECK;

/* Closes the queue of chunks, waits until the workers have encoded its contents, and frees the
 * encoder. The writer must still be returning outputs. NULL is allowed. */
void bc_encoder_stop(struct bc_encoder *encoder);

/* Updates *longest if a worker has been busy with its current chunk for longer. */
void bc_encoder_poll(struct bc_encoder *encoder, struct bc_thread_health_seen *longest);

#endif
