#include "daemon/ingest/pipeline.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "daemon/ingest/encoder.h"
#include "daemon/ingest/pool.h"
#include "daemon/store/writer.h"

#define HEADROOM_BYTES (16u << 20)

struct bc_pipeline {
	struct bc_pipeline_options options;
	uv_async_t wake; /* from the threads: a slot is free, or the writer has notices */

	struct bc_pool pool;
	struct bc_encoder *encoder;
	struct bc_writer *writer;
	struct bc_writer_stats stats; /* as of the last wake-up */

	struct bc_counts counts;
	unsigned min_free;
	uint64_t next_sequence;
	bool needs_slot; /* on_slot_free() is to be called */
};

/* Slots */

struct bc_buffer_state bc_pipeline_buffer(struct bc_pipeline *p)
{
	return (struct bc_buffer_state){
		.chunks = p->pool.slots_count,
		.free = bc_queue_count(&p->pool.free_slots),
		.min_free = p->min_free,
	};
}

struct bc_slot *bc_pipeline_pop(struct bc_pipeline *p)
{
	struct bc_slot *slot = bc_queue_pop_newest(&p->pool.free_slots);

	if (slot == NULL) {
		p->needs_slot = true;
		p->min_free = 0;
		return NULL;
	}
	unsigned free = bc_queue_count(&p->pool.free_slots);
	if (free < p->min_free)
		p->min_free = free;
	return slot;
}

void bc_pipeline_give_back(struct bc_pipeline *p, struct bc_slot *slot)
{
	bc_queue_push(&p->pool.free_slots, slot);
	if (p->needs_slot)
		uv_async_send(&p->wake);
}

void bc_pipeline_send(struct bc_pipeline *p, struct bc_slot *slot)
{
	slot->sequence = p->next_sequence++;
	bc_queue_push(&p->pool.chunks, slot);
}

bool bc_pipeline_is_busy(struct bc_pipeline *p)
{
	return bc_queue_count(&p->pool.chunks) != 0;
}

bool bc_pipeline_is_ahead(struct bc_pipeline *p)
{
	bool is_ahead = bc_queue_count(&p->pool.chunks) > p->options.workers;

	p->needs_slot = p->needs_slot || is_ahead;
	return is_ahead;
}

void bc_pipeline_abandon(struct bc_pipeline *p, const struct bc_recording_info *recording)
{
	bc_writer_abandon(p->writer, recording);
}

/* The writer's statistics and notices */

/* Moves what the writer has finished from in_flight to its count, then passes on its notices. */
static void update_stats(struct bc_pipeline *p)
{
	struct bc_writer_stats now;
	struct bc_counts *c = &p->counts;
	struct bc_writer_notice *notices = bc_writer_pop_notices(p->writer, &now);
	uint64_t written = now.written - p->stats.written;
	uint64_t unrecorded = now.unrecorded - p->stats.unrecorded;
	uint64_t abandoned = now.abandoned - p->stats.abandoned;
	c->written += written;
	c->durable = now.durable;
	c->deleted_records = now.deleted_records;
	c->dropped_idle += unrecorded;
	c->dropped_disk += abandoned;
	c->losses.lost[BC_GAP_DISK] += abandoned;
	c->in_flight -= written + unrecorded + abandoned;
	p->stats = now;
	p->options.on_stats(p->options.context);
	for (const struct bc_writer_notice *n = notices; n != NULL; n = n->next) {
		/* The file has one gap for all. */
		c->losses.gaps[BC_GAP_DISK] += n->abandoned != 0;
		p->options.on_notice(p->options.context, n);
	}
	bc_writer_notices_free(notices);
}

static void on_wake(uv_async_t *async)
{
	struct bc_pipeline *p = async->data;

	update_stats(p);
	if (!p->needs_slot || bc_queue_count(&p->pool.free_slots) == 0)
		return;
	p->needs_slot = false;
	p->options.on_slot_free(p->options.context);
}

static void wake_loop(void *context)
{
	struct bc_pipeline *p = context;

	uv_async_send(&p->wake);
}

struct bc_counts *bc_pipeline_counts(struct bc_pipeline *p)
{
	return &p->counts;
}

const struct bc_writer_stats *bc_pipeline_stats(const struct bc_pipeline *p)
{
	return &p->stats;
}

void bc_pipeline_poll(struct bc_pipeline *p, struct bc_thread_health_seen *longest)
{
	bc_encoder_poll(p->encoder, longest);
	bc_writer_poll(p->writer, longest);
}

/* Open and close */

static int start_threads(struct bc_pipeline *p)
{
	struct bc_encoder_queues queues = {
		.chunks = &p->pool.chunks,
		.free_slots = &p->pool.free_slots,
		.outputs = &p->pool.free_outputs,
		.encoded = &p->pool.encoded,
		.slot_freed = wake_loop,
		.context = p,
	};
	struct bc_writer_options writer = {
		.dir = p->options.dir,
		.dir_fd = p->options.dir_fd,
		.catalogue = p->options.catalogue,
		.rules = p->options.rules,
		.encoded = &p->pool.encoded,
		.outputs = &p->pool.free_outputs,
		.outputs_count = p->pool.outputs_count,
		.on_notices = wake_loop,
		.context = p,
	};
	int rc = bc_encoder_start(&p->encoder, p->options.workers, p->options.compression, &queues);

	if (rc == 0)
		rc = bc_writer_start(&p->writer, &writer);
	return rc;
}

/* Whether there is memory for what is allocated while recording: small objects, but without any a
 * segment can't be created. */
static bool has_headroom(void)
{
	void *block = mmap(NULL, HEADROOM_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return block != MAP_FAILED && munmap(block, HEADROOM_BYTES) == 0;
}

static void on_closed(uv_handle_t *handle)
{
	struct bc_pipeline *p = handle->data;

	bc_pool_free(&p->pool);
	free(p);
}

int bc_pipeline_open(
	struct bc_pipeline **pipeline, uv_loop_t *loop, const struct bc_pipeline_options *options)
{
	struct bc_pipeline *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return -ENOMEM;
	p->options = *options;
	int rc = bc_pool_init(&p->pool, options->buffer_bytes, options->workers);
	p->min_free = p->pool.slots_count;
	if (rc == 0)
		rc = uv_async_init(loop, &p->wake, on_wake);
	if (rc != 0) {
		bc_pool_free(&p->pool);
		free(p);
		return rc;
	}
	p->wake.data = p;
	rc = start_threads(p);
	if (rc == 0 && !has_headroom())
		rc = -ENOMEM;
	if (rc != 0) {
		bc_pipeline_close(p);
		return rc;
	}
	*pipeline = p;
	return 0;
}

void bc_pipeline_finish(struct bc_pipeline *p)
{
	bc_writer_finish(p->writer);
}

void bc_pipeline_close(struct bc_pipeline *p)
{
	bc_encoder_stop(p->encoder);
	bc_writer_stop(p->writer);
	uv_close((uv_handle_t *)&p->wake, on_closed);
}

void bc_pipeline_set_rules(struct bc_pipeline *p, const struct bc_writer_rules *rules)
{
	bc_writer_set_rules(p->writer, rules);
}
