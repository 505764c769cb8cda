#include "daemon/encoder.h"

#include <errno.h>
#include <stdlib.h>

struct bc_encoder {
	struct bc_encoder_queues queues;
	unsigned workers;
	pthread_t threads[];
};

static void encode(struct bc_encoded *out, struct bc_slot *slot)
{
	out->sequence = slot->sequence;
	out->recording = slot->recording;
	out->cut_after = slot->cut_after;
	out->is_last = slot->is_last;
	out->is_written = false;
	out->bytes = 0;
	bc_chunk_gaps(&slot->chunk, &out->gaps, &out->lost);
	if (!bc_chunk_is_empty(&slot->chunk))
		out->bytes = bc_chunk_encode(out->data, &slot->chunk, &out->header_bytes);
	out->info = slot->chunk.info;
	out->is_raw_written = false;
	out->raw_bytes = 0;
	if (slot->raw == NULL || bc_raw_block_is_empty(slot->raw))
		return;
	out->raw_form = slot->raw->form;
	out->raw_plain_bytes = slot->raw->bytes;
	out->raw_bytes = bc_raw_encode(out->raw, slot->raw);
}

static void *work(void *context)
{
	struct bc_encoder *encoder = context;
	const struct bc_encoder_queues *q = &encoder->queues;
	struct bc_encoded *out;
	struct bc_slot *slot;

	while ((out = bc_queue_pop(q->outputs)) != NULL) {
		slot = bc_queue_pop(q->chunks);
		if (slot == NULL) {
			bc_queue_push(q->outputs, out);
			break;
		}
		encode(out, slot);
		bc_queue_push(q->free_slots, slot);
		bc_queue_push(q->encoded, out);
		q->slot_freed(q->context);
	}
	return NULL;
}

static void join(struct bc_encoder *encoder)
{
	bc_queue_close(encoder->queues.chunks);
	while (encoder->workers > 0)
		pthread_join(encoder->threads[--encoder->workers], NULL);
}

int bc_encoder_start(
	struct bc_encoder **encoder, unsigned workers, const struct bc_encoder_queues *queues)
{
	struct bc_encoder *e = malloc(sizeof(*e) + workers * sizeof(e->threads[0]));

	if (e == NULL)
		return -ENOMEM;
	e->queues = *queues;
	for (e->workers = 0; e->workers < workers; e->workers++) {
		int rc = pthread_create(&e->threads[e->workers], NULL, work, e);
		if (rc != 0) {
			join(e);
			free(e);
			return -rc;
		}
	}
	*encoder = e;
	return 0;
}

void bc_encoder_stop(struct bc_encoder *encoder)
{
	if (encoder == NULL)
		return;
	join(encoder);
	free(encoder);
}
