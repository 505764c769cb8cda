/* Compresses each chunk into one independent frame. So workers share no state, and throughput
 * grows with their number. The ratio is slightly lower than with one long frame, because matches
 * cannot reach back into the previous chunk.
 *
 * Chunks are popped in order but finished in any order; the writer restores it by sequence number.
 * It holds finished outputs until the next chunk in order arrives. A worker pops an output before
 * it pops a chunk, so the chunk that the writer waits for always has an output. In the other order,
 * later chunks could use up all outputs: a deadlock. */
#include "daemon/ingest/encoder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/segment/segment.h"

struct worker {
	struct bc_encoder *encoder;
	pthread_t thread;
	struct bc_thread_health health;
	struct bc_compressor compressor;
};

struct bc_encoder {
	struct bc_encoder_queues queues;
	unsigned count;
	unsigned started;
	struct worker workers[];
};

static void encode_slot(
	struct bc_encoded *out, struct bc_slot *slot, const struct bc_compressor *compressor)
{
	out->sequence = slot->sequence;
	out->recording = slot->recording;
	out->cut_after = slot->cut_after;
	out->is_last = slot->is_last;
	out->state = BC_ENCODED_CHUNK;
	out->bytes = 0;
	out->data = out->room;
	out->pages.counts.count = 0;
	out->loss = bc_chunk_loss(&slot->chunk);
	memset(&out->losses, 0, sizeof(out->losses));
	bc_losses_add_chunk(&out->losses, &slot->chunk);
	if (!bc_chunk_is_empty(&slot->chunk))
		out->bytes = bc_chunk_encode(
			out->data, &slot->chunk, compressor, &out->pages, &out->header_bytes);
	out->info = slot->chunk.info;
}

static void *encoder_thread(void *context)
{
	struct worker *worker = context;
	const struct bc_encoder_queues *q = &worker->encoder->queues;
	struct bc_encoded *out;
	struct bc_slot *slot;

	while ((out = bc_queue_pop(q->outputs)) != NULL) {
		slot = bc_queue_pop(q->chunks);
		if (slot == NULL) {
			bc_queue_push(q->outputs, out);
			break;
		}
		bc_thread_health_start(&worker->health, "encoding a chunk", "");
		encode_slot(out, slot, &worker->compressor);
		q->on_encoded(q->context, out, slot);
		bc_thread_health_idle(&worker->health);
	}
	return NULL;
}

static void join_workers(struct bc_encoder *encoder)
{
	bc_queue_close(encoder->queues.chunks);
	while (encoder->started > 0)
		pthread_join(encoder->workers[--encoder->started].thread, NULL);
}

static void free_encoder(struct bc_encoder *encoder)
{
	for (unsigned i = 0; i < encoder->count; i++) {
		bc_thread_health_destroy(&encoder->workers[i].health);
		bc_compressor_close(&encoder->workers[i].compressor);
	}
	free(encoder);
}

int bc_encoder_start(struct bc_encoder **encoder, unsigned workers, enum bc_level level,
	const struct bc_encoder_queues *queues)
{
	struct bc_encoder *e = malloc(sizeof(*e) + workers * sizeof(e->workers[0]));
	char who[32];

	if (e == NULL)
		return -ENOMEM;
	e->queues = *queues;
	e->count = workers;
	e->started = 0;
	for (unsigned i = 0; i < workers; i++) {
		e->workers[i].encoder = e;
		snprintf(who, sizeof(who), "worker %u of %u", i + 1, workers);
		bc_thread_health_init(&e->workers[i].health, who);
		e->workers[i].compressor.zstd = NULL;
	}
	for (; e->started < workers; e->started++) {
		struct worker *worker = &e->workers[e->started];
		int rc = bc_compressor_open(&worker->compressor, level);
		if (rc == 0)
			rc = -pthread_create(&worker->thread, NULL, encoder_thread, worker);
		if (rc != 0) {
			join_workers(e);
			free_encoder(e);
			return rc;
		}
	}
	*encoder = e;
	return 0;
}

void bc_encoder_stop(struct bc_encoder *encoder)
{
	if (encoder == NULL)
		return;
	join_workers(encoder);
	free_encoder(encoder);
}

void bc_encoder_poll(struct bc_encoder *encoder, struct bc_thread_health_seen *longest)
{
	for (unsigned i = 0; i < encoder->count; i++)
		bc_thread_health_poll(&encoder->workers[i].health, longest);
}
