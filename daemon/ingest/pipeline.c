/* Owns all memory on the sample path, and the queues in which it circulates:
 *
 *     slots      free_slots, the channel, chunks, a worker of the encoder, free_slots
 *     outputs    free_outputs, a worker, encoded, the writer, free_outputs
 *
 * While the writer is behind, encoded chunks wait for it packed: several in the memory of one slot,
 * that of a chunk that has just been encoded. Such a slot is free when the last of them is written.
 * So the buffer bridges three to ten times as much, and needs no other memory; a writer that keeps
 * up costs no copy. Of the outputs, each worker keeps one, the others may go to the writer as they
 * are. So do, in any case, a chunk that compresses too little to fit into a slot, and a last one,
 * which the writer may change.
 *
 * Everything is allocated at startup: that bounds the memory, and a recording cannot fail later for
 * lack of it. Untouched pages cost nothing, and free slots are reused newest first, so an idle or
 * fast system touches few of them, and these stay in the cache. Each chunk of 87,381 records costs
 * a few locks and wake-ups.
 *
 * The threads only report: the loop, when woken, updates its counts from the writer's stats. */
#include "daemon/ingest/pipeline.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/ingest/encoder.h"
#include "daemon/store/writer.h"
#include "formats/base/host.h"

/* One being filled, one being encoded, and one to continue with. */
#define SLOTS_MIN 3u

/* One that it keeps, and one that the writer may have. */
#define OUTPUTS_PER_WORKER 2u

/* The memory of a slot for packed chunks, and how many the queues have places for. */
#define ROOM         sizeof(((struct bc_slot *)NULL)->chunk)
#define PER_SLOT_MAX 32u

#define HEADROOM_BYTES (16u << 20)

struct bc_pipeline {
	struct bc_pipeline_options options;
	uv_async_t wake; /* from the threads: a slot is free, or the writer has notices */

	unsigned slots_count;
	unsigned outputs_count;
	struct bc_slot *slots;
	struct bc_encoded *outputs;
	struct bc_queue free_slots;
	struct bc_queue chunks; /* for the encoder */
	struct bc_queue free_outputs;
	struct bc_queue encoded; /* for the writer */

	pthread_mutex_t lock;       /* for the next two, and the slots' packed and packed_bytes */
	struct bc_slot *packing;    /* has room for more, if not NULL */
	unsigned outputs_sent;      /* the writer has them */
	atomic_ullong slot_records; /* of chunks like the latest, packed in a slot */

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
	unsigned free = bc_queue_count(&p->free_slots);
	uint64_t records = p->slot_records;

	return (struct bc_buffer_state){
		.chunks = p->slots_count,
		.free = free,
		.min_free = p->min_free,
		.records_left = free * (records > BC_CHUNK_RECORDS ? records : BC_CHUNK_RECORDS),
	};
}

struct bc_slot *bc_pipeline_pop(struct bc_pipeline *p)
{
	struct bc_slot *slot = bc_queue_pop_newest(&p->free_slots);

	if (slot == NULL) {
		p->needs_slot = true;
		p->min_free = 0;
		return NULL;
	}
	unsigned free = bc_queue_count(&p->free_slots);
	if (free < p->min_free)
		p->min_free = free;
	return slot;
}

void bc_pipeline_give_back(struct bc_pipeline *p, struct bc_slot *slot)
{
	bc_queue_push(&p->free_slots, slot);
	if (p->needs_slot)
		uv_async_send(&p->wake);
}

void bc_pipeline_send(struct bc_pipeline *p, struct bc_slot *slot)
{
	slot->sequence = p->next_sequence++;
	bc_queue_push(&p->chunks, slot);
}

bool bc_pipeline_is_busy(struct bc_pipeline *p)
{
	return bc_queue_count(&p->chunks) != 0;
}

bool bc_pipeline_is_ahead(struct bc_pipeline *p)
{
	bool is_ahead = bc_queue_count(&p->chunks) > p->options.workers;

	p->needs_slot = p->needs_slot || is_ahead;
	return is_ahead;
}

void bc_pipeline_abandon(struct bc_pipeline *p, const struct bc_recording_info *recording)
{
	bc_writer_abandon(p->writer, recording);
}

/* Packing: on the threads of the workers and the writer */

/* Returns the place for a packed chunk of `bytes`, and sets out->packed_in to its slot; NULL: it is
 * not packed. */
static struct bc_encoded *reserve_place(
	struct bc_pipeline *p, struct bc_encoded *out, size_t bytes, struct bc_slot *slot)
{
	bytes = bytes > ROOM / PER_SLOT_MAX ? bytes : ROOM / PER_SLOT_MAX;
	bytes = (bytes + 7) / 8 * 8; /* aligned */
	if (out->info.records != 0)
		p->slot_records = ROOM / bytes * out->info.records;
	out->packed_in = NULL;
	if (p->outputs_sent < p->options.workers || bytes > ROOM || out->is_last) {
		p->outputs_sent++;
		return NULL;
	}
	if (p->packing == NULL || p->packing->packed_bytes + bytes > ROOM) {
		p->packing = slot;
		slot->packed = 0;
		slot->packed_bytes = 0;
	}
	void *place = (uint8_t *)&p->packing->chunk + p->packing->packed_bytes;
	p->packing->packed++;
	p->packing->packed_bytes += bytes;
	out->packed_in = p->packing;
	return place;
}

static void on_encoded(void *context, struct bc_encoded *out, struct bc_slot *slot)
{
	struct bc_pipeline *p = context;
	/* Without the regions that it does not have. */
	size_t head = offsetof(struct bc_encoded, pages.regions) +
		      out->pages.counts.count * sizeof(struct bc_region);

	pthread_mutex_lock(&p->lock);
	struct bc_encoded *packed = reserve_place(p, out, head + out->bytes, slot);
	pthread_mutex_unlock(&p->lock);
	if (out->packed_in != slot)
		bc_queue_push(&p->free_slots, slot);
	if (packed != NULL) {
		memcpy(packed, out, head);
		packed->pages.counts.regions = packed->pages.regions;
		packed->data = memcpy((uint8_t *)packed + head, out->data, out->bytes);
		bc_queue_push(&p->free_outputs, out);
	}
	bc_queue_push(&p->encoded, packed != NULL ? packed : out);
	uv_async_send(&p->wake);
}

static void on_written(void *context, struct bc_encoded *e)
{
	struct bc_pipeline *p = context;
	struct bc_slot *slot = e->packed_in;

	pthread_mutex_lock(&p->lock);
	p->outputs_sent -= slot == NULL;
	bool is_empty = slot != NULL && --slot->packed == 0;
	if (is_empty && p->packing == slot)
		p->packing = NULL;
	pthread_mutex_unlock(&p->lock);
	if (slot == NULL)
		bc_queue_push(&p->free_outputs, e);
	else if (is_empty)
		bc_queue_push(&p->free_slots, slot);
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

static void on_pipeline_wake(uv_async_t *async)
{
	struct bc_pipeline *p = async->data;

	update_stats(p);
	if (!p->needs_slot || bc_queue_count(&p->free_slots) == 0)
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
		.chunks = &p->chunks,
		.outputs = &p->free_outputs,
		.on_encoded = on_encoded,
		.context = p,
	};
	struct bc_writer_options writer = {
		.dir = p->options.dir,
		.dir_fd = p->options.dir_fd,
		.catalogue = p->options.catalogue,
		.rules = p->options.rules,
		.lag_bytes = p->options.buffer_bytes,
		.encoded = &p->encoded,
		.encoded_max = p->encoded.capacity,
		.on_written = on_written,
		.on_notices = wake_loop,
		.context = p,
	};
	int rc = bc_encoder_start(&p->encoder, p->options.workers, p->options.compression, &queues);

	if (rc == 0)
		rc = bc_writer_start(&p->writer, &writer);
	return rc;
}

/* Returns whether memory is left for what is allocated while recording: a segment needs some. */
static bool has_headroom(void)
{
	void *block = mmap(NULL, HEADROOM_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return block != MAP_FAILED && munmap(block, HEADROOM_BYTES) == 0;
}

uint64_t bc_pipeline_min_bytes(unsigned workers)
{
	return workers * OUTPUTS_PER_WORKER * sizeof(struct bc_encoded) +
	       SLOTS_MIN * sizeof(struct bc_slot);
}

static int allocate_pool(struct bc_pipeline *p)
{
	p->outputs_count = p->options.workers * OUTPUTS_PER_WORKER;
	uint64_t left = p->options.buffer_bytes - p->outputs_count * sizeof(*p->outputs);
	p->slots_count = (unsigned)(left / sizeof(*p->slots));
	p->min_free = p->slots_count;
	pthread_mutex_init(&p->lock, NULL);
	p->slots = bc_huge_alloc(p->slots_count * sizeof(*p->slots));
	p->outputs = malloc(p->outputs_count * sizeof(*p->outputs)); /* each is used in part */
	if (p->slots == NULL || p->outputs == NULL ||
		bc_queue_init(&p->free_slots, p->slots_count) != 0 ||
		bc_queue_init(&p->chunks, p->slots_count) != 0 ||
		bc_queue_init(&p->free_outputs, p->outputs_count) != 0 ||
		bc_queue_init(&p->encoded, p->outputs_count + p->slots_count * PER_SLOT_MAX) != 0)
		return -ENOMEM;
	for (unsigned i = 0; i < p->slots_count; i++)
		bc_queue_push(&p->free_slots, &p->slots[i]);
	for (unsigned i = 0; i < p->outputs_count; i++)
		bc_queue_push(&p->free_outputs, &p->outputs[i]);
	return 0;
}

static void free_pipeline(struct bc_pipeline *p)
{
	free(p->slots);
	free(p->outputs);
	bc_queue_destroy(&p->free_slots);
	bc_queue_destroy(&p->chunks);
	bc_queue_destroy(&p->free_outputs);
	bc_queue_destroy(&p->encoded);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static void on_pipeline_closed(uv_handle_t *handle)
{
	free_pipeline(handle->data);
}

int bc_pipeline_open(
	struct bc_pipeline **pipeline, uv_loop_t *loop, const struct bc_pipeline_options *options)
{
	struct bc_pipeline *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return -ENOMEM;
	p->options = *options;
	int rc = allocate_pool(p);
	if (rc == 0)
		rc = uv_async_init(loop, &p->wake, on_pipeline_wake);
	if (rc != 0) {
		free_pipeline(p);
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
	uv_close((uv_handle_t *)&p->wake, on_pipeline_closed);
}

void bc_pipeline_set_rules(struct bc_pipeline *p, const struct bc_writer_rules *rules)
{
	bc_writer_set_rules(p->writer, rules);
}
