#include "daemon/pipeline.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/clock.h"
#include "daemon/encoder.h"
#include "daemon/pool.h"
#include "daemon/raw_keep.h"

struct bc_pipeline {
	struct bc_pipeline_options options;
	uv_async_t wake; /* from the threads: a chunk is free, or the writer has news */
	uv_timer_t flush;
	unsigned open_handles;

	struct bc_pool pool;
	struct bc_encoder *encoder;
	struct bc_writer *writer;
	struct bc_writer_report report; /* as last seen */

	struct bc_counts counts;
	unsigned low_water;
	uint64_t next_sequence;

	const struct bc_recording *recording; /* NULL: none runs */
	struct bc_slot *filling;
	uint64_t records; /* taken into the recording */
	uint64_t tick;    /* of the latest record; where a chunk without records goes on */
	uint32_t epoch;
	bool wants_room;   /* somebody was told that no chunk is free */
	bool is_finishing; /* the last chunk is to come, or on its way */
	bool has_cut;      /* a cut waits for a chunk to carry it */
	bool is_last_sent;
	/* Gaps that wait for a chunk, one of each cause; kind 0: none. */
	struct bc_event pending[BC_GAP_CAUSES];
	uint64_t pending_since_ns[BC_GAP_CAUSES];
	struct bc_raw_keep raw;
	size_t raw_kept; /* bytes of the piece in hand that are in blocks */
};

/* Pool */

uint64_t bc_pipeline_least_buffer(unsigned workers, bool keeps_raw)
{
	return bc_pool_least_bytes(workers, keeps_raw);
}

struct bc_buffer_state bc_pipeline_buffer(struct bc_pipeline *p)
{
	return (struct bc_buffer_state){
		.chunks = p->pool.slots_count,
		.free = bc_queue_count(&p->pool.free_slots),
		.low_water = p->low_water,
	};
}

/* Chunks */

static struct bc_slot *take_slot(struct bc_pipeline *p)
{
	struct bc_slot *slot = bc_queue_pop_newest(&p->pool.free_slots);

	if (slot == NULL) {
		p->wants_room = true;
		p->low_water = 0;
		return NULL;
	}
	unsigned free = bc_queue_count(&p->pool.free_slots);
	if (free < p->low_water)
		p->low_water = free;
	slot->cut_after = false;
	slot->is_last = false;
	slot->recording = p->recording;
	bc_chunk_reset(&slot->chunk, p->tick, p->epoch);
	slot->chunk.info.recording_tag = p->recording->tag;
	slot->chunk.info.first_record = p->records;
	slot->chunk.info.wall_ns = bc_wall_ns();
	if (slot->raw != NULL)
		bc_raw_keep_begin(&p->raw, slot->raw, p->recording->tag);
	return slot;
}

static void send_slot(struct bc_pipeline *p, struct bc_slot *slot)
{
	slot->sequence = p->next_sequence++;
	bc_queue_push(&p->pool.chunks, slot);
}

static uint32_t count_pending(const struct bc_pipeline *p)
{
	uint32_t count = 0;

	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++)
		count += p->pending[cause].kind != 0;
	return count;
}

static void note_pending(struct bc_pipeline *p, struct bc_chunk *chunk)
{
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++) {
		struct bc_event *gap = &p->pending[cause];
		if (gap->kind == 0)
			continue;
		gap->position = chunk->info.records;
		if (!bc_chunk_add_event(chunk, gap, NULL))
			assert(!"the caller saw to the room");
		gap->kind = 0;
	}
}

static bool send_marked(struct bc_pipeline *p);

/* The chunk being filled, with room for the gaps that wait and one event more; NULL when none is
 * free. */
static struct bc_chunk *filling_chunk(struct bc_pipeline *p, uint32_t epoch)
{
	uint32_t events = count_pending(p) + 1;

	if (p->has_cut && !send_marked(p))
		return NULL;
	if (p->filling != NULL && !bc_chunk_is_empty(&p->filling->chunk) &&
		(p->filling->chunk.info.epoch != epoch ||
			!bc_chunk_has_room(&p->filling->chunk, events)))
		bc_pipeline_submit(p);
	p->epoch = epoch;
	if (p->filling != NULL && p->filling->chunk.info.epoch != epoch) {
		/* Taken for samples that were all dropped, or raw bytes: it is empty still. */
		p->filling->chunk.info.epoch = epoch;
		p->filling->chunk.info.first_tick = p->tick;
		p->filling->chunk.info.last_tick = p->tick;
	}
	if (p->filling == NULL)
		p->filling = take_slot(p);
	if (p->filling == NULL)
		return NULL;
	if (p->filling->raw != NULL && bc_chunk_is_empty(&p->filling->chunk))
		p->filling->chunk.info.wall_ns = bc_wall_ns(); /* the bytes came earlier */
	note_pending(p, &p->filling->chunk);
	return &p->filling->chunk;
}

struct bc_chunk *bc_pipeline_chunk(struct bc_pipeline *p, const struct bc_stamper *stamper)
{
	if (p->epoch != stamper->epoch)
		p->tick = stamper->tick;
	return filling_chunk(p, stamper->epoch);
}

void bc_pipeline_set_wall(struct bc_pipeline *p, int64_t wall_ns)
{
	if (p->filling != NULL && p->filling->chunk.info.records == 0)
		p->filling->chunk.info.wall_ns = wall_ns;
}

static void on_flush(uv_timer_t *timer);

/* Something is in the chunk being filled: it waits no longer than so. */
static void time_flush(struct bc_pipeline *p)
{
	if (!uv_is_active((uv_handle_t *)&p->flush))
		uv_timer_start(&p->flush, on_flush, p->options.flush_ns / 1000000, 0);
}

void bc_pipeline_took(struct bc_pipeline *p, const struct bc_stamped *stamped)
{
	struct bc_chunk_info *info = &p->filling->chunk.info;

	if (stamped->kept != 0 && info->records == stamped->kept)
		time_flush(p);
	p->counts.received += stamped->taken;
	p->counts.in_flight += stamped->kept;
	p->counts.dropped_invalid += stamped->invalid;
	p->counts.unknown_special += stamped->unknown;
	p->records += stamped->kept;
	p->tick = info->last_tick;
}

static struct bc_event *placed_gap(struct bc_pipeline *p, enum bc_gap_cause cause)
{
	struct bc_chunk *chunk = p->filling != NULL ? &p->filling->chunk : NULL;

	for (uint32_t i = chunk != NULL ? chunk->info.events : 0; i-- > 0;) {
		struct bc_event *event = &chunk->events[i];
		if (event->position != chunk->info.records)
			break;
		if (event->kind == BC_EVENT_GAP && event->cause == cause)
			return event;
	}
	return NULL;
}

static struct bc_event *pending_gap(struct bc_pipeline *p, enum bc_gap_cause cause)
{
	struct bc_event *gap = placed_gap(p, cause);

	if (gap != NULL)
		return gap;
	gap = &p->pending[cause];

	if (gap->kind == 0) {
		*gap = (struct bc_event){
			.kind = BC_EVENT_GAP,
			.cause = (uint8_t)cause,
			.exact = true,
		};
		p->pending_since_ns[cause] = uv_hrtime();
		p->counts.gaps++;
	}
	return gap;
}

void bc_pipeline_gap(struct bc_pipeline *p, enum bc_gap_cause cause, uint64_t lost, bool exact)
{
	bc_pipeline_gap_lasting(p, cause, lost, exact, 0);
}

void bc_pipeline_gap_lasting(struct bc_pipeline *p, enum bc_gap_cause cause, uint64_t lost,
	bool exact, uint64_t duration_ns)
{
	struct bc_event *gap = pending_gap(p, cause);

	gap->value += lost;
	gap->exact = gap->exact && exact;
	gap->duration_ns += duration_ns;
}

void bc_pipeline_dropped(struct bc_pipeline *p, const struct bc_stamped *stamped)
{
	enum bc_gap_cause cause = p->report.is_stuck ? BC_GAP_DISK : BC_GAP_BUFFER;

	p->counts.received += stamped->taken;
	p->counts.dropped_invalid += stamped->invalid;
	if (stamped->kept == 0)
		return;
	if (cause == BC_GAP_DISK)
		p->counts.dropped_disk += stamped->kept;
	else
		p->counts.dropped_buffer += stamped->kept;
	struct bc_event *gap = pending_gap(p, cause);
	gap->value += stamped->kept;
	gap->duration_ns = uv_hrtime() - p->pending_since_ns[cause];
}

bool bc_pipeline_event(struct bc_pipeline *p, const struct bc_stamper *stamper,
	const struct bc_event *event, const char *text)
{
	struct bc_event copy = *event;
	struct bc_chunk *chunk = bc_pipeline_chunk(p, stamper);

	if (chunk == NULL)
		return false;
	copy.position = chunk->info.records;
	if (!bc_chunk_add_event(chunk, &copy, text)) {
		bc_pipeline_submit(p); /* its texts are full */
		chunk = bc_pipeline_chunk(p, stamper);
		if (chunk == NULL)
			return false;
		copy.position = 0;
		if (!bc_chunk_add_event(chunk, &copy, text))
			return true; /* longer than any chunk can hold: it came from no segment */
	}
	p->counts.gaps += event->kind == BC_EVENT_GAP;
	return true;
}

void bc_pipeline_submit(struct bc_pipeline *p)
{
	if (p->filling == NULL || bc_slot_is_empty(p->filling))
		return;
	uv_timer_stop(&p->flush);
	send_slot(p, p->filling);
	p->filling = NULL;
}

/* While chunks wait for the encoder, a flush would only make them smaller and more: nothing reaches
 * the disk sooner. */
static void on_flush(uv_timer_t *timer)
{
	struct bc_pipeline *p = timer->data;

	if (bc_queue_count(&p->pool.chunks) == 0)
		bc_pipeline_submit(p);
	else
		time_flush(p);
}

/* Sends the chunk being filled, or an empty one, to carry a cut or the end. Returns false when
 * there is none to send. */
static bool send_marked(struct bc_pipeline *p)
{
	if (p->filling == NULL)
		p->filling = take_slot(p);
	if (p->filling == NULL)
		return false;
	if (p->is_finishing) {
		struct bc_raw_block *raw = p->filling->raw;
		if (!bc_chunk_has_room(&p->filling->chunk, count_pending(p)) ||
			(raw != NULL && !bc_raw_block_has_room(raw, p->raw.waiting_count, 0)))
			bc_pipeline_submit(p);
		if (p->filling == NULL)
			return send_marked(p);
		note_pending(p, &p->filling->chunk);
		if (raw != NULL)
			bc_raw_keep_settle(&p->raw, raw);
	}
	p->filling->cut_after = true;
	p->filling->is_last = p->is_finishing;
	p->is_last_sent = p->is_finishing;
	p->has_cut = false;
	uv_timer_stop(&p->flush);
	send_slot(p, p->filling);
	p->filling = NULL;
	return true;
}

void bc_pipeline_cut(struct bc_pipeline *p)
{
	if (p->records != 0)
		p->has_cut = !send_marked(p);
}

/* Raw bytes */

/* The block for so many entries and bytes more; NULL when none is free. */
static struct bc_raw_block *filling_block(struct bc_pipeline *p, uint32_t entries, size_t bytes)
{
	if (p->has_cut && !send_marked(p))
		return NULL;
	if (p->filling != NULL && !bc_raw_block_has_room(p->filling->raw, entries, bytes))
		bc_pipeline_submit(p);
	if (p->filling == NULL)
		p->filling = take_slot(p);
	return p->filling != NULL ? p->filling->raw : NULL;
}

/* What is left of a piece finds no block. */
static void drop_raw(struct bc_pipeline *p, const struct bc_source_data *data, size_t left)
{
	enum bc_gap_cause cause = p->report.is_stuck ? BC_GAP_DISK : BC_GAP_BUFFER;

	bc_raw_keep_drop(&p->raw, data, p->raw_kept, cause, uv_hrtime());
	p->counts.raw_dropped_bytes += left;
}

bool bc_pipeline_keep_raw(struct bc_pipeline *p, const struct bc_source_data *data, bool is_live)
{
	if (!p->options.keeps_raw || !bc_raw_is_form(data->format))
		return true;
	size_t count = data->broken == NULL ? data->count : 0;
	do {
		size_t left = count - p->raw_kept;
		size_t n = left < BC_RAW_BLOCK_BYTES ? left : BC_RAW_BLOCK_BYTES;
		struct bc_raw_block *block = filling_block(p, bc_raw_keep_entries(&p->raw), n);
		if (block == NULL && !is_live)
			return false;
		if (block == NULL) {
			drop_raw(p, data, left);
			break;
		}
		p->counts.raw_dropped_bytes += bc_raw_keep_add(
			&p->raw, block, data, p->raw_kept, n);
		p->raw_kept += n;
		time_flush(p);
	} while (p->raw_kept < count);
	p->raw_kept = 0;
	return true;
}

/* Recordings */

void bc_pipeline_begin(struct bc_pipeline *p, const struct bc_recording *recording)
{
	assert(p->recording == NULL);
	p->recording = recording;
	p->records = 0;
	p->tick = 0;
	p->epoch = 0;
	p->is_finishing = false;
	p->is_last_sent = false;
	p->has_cut = false;
	p->raw = (struct bc_raw_keep){.form = BC_FORMAT_UNKNOWN};
	p->raw_kept = 0;
}

void bc_pipeline_finish(struct bc_pipeline *p)
{
	p->is_finishing = true;
	send_marked(p);
}

void bc_pipeline_abandon(struct bc_pipeline *p)
{
	bc_writer_abandon(p->writer);
}

/* Takes over what the writer has done. */
static void take_report(struct bc_pipeline *p)
{
	struct bc_writer_report now;
	struct bc_counts *c = &p->counts;

	bc_writer_report(p->writer, &now);
	uint64_t written = now.written - p->report.written;
	uint64_t unrecorded = now.unrecorded - p->report.unrecorded;
	uint64_t abandoned = now.abandoned - p->report.abandoned;
	bool has_ended = now.recordings_ended != p->report.recordings_ended;
	c->written += written;
	c->durable = now.durable;
	c->dropped_idle += unrecorded;
	c->dropped_disk += abandoned;
	c->raw_dropped_bytes += now.raw_abandoned - p->report.raw_abandoned;
	c->in_flight -= written + unrecorded + abandoned;
	p->report = now;
	p->options.on_report(p->options.context);
	if (has_ended) {
		p->recording = NULL;
		p->options.on_ended(p->options.context);
	}
}

static void on_wake(uv_async_t *async)
{
	struct bc_pipeline *p = async->data;

	take_report(p);
	if (!p->wants_room || bc_queue_count(&p->pool.free_slots) == 0 || p->recording == NULL)
		return;
	p->wants_room = false;
	if (p->is_finishing) {
		if (!p->is_last_sent)
			send_marked(p);
		return;
	}
	p->options.on_room(p->options.context);
}

static void wake_loop(void *context)
{
	struct bc_pipeline *p = context;

	uv_async_send(&p->wake);
}

/* Life */

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
		.rules = p->options.rules,
		.encoded = &p->pool.encoded,
		.outputs = &p->pool.free_outputs,
		.outputs_count = p->pool.outputs_count,
		.reported = wake_loop,
		.context = p,
	};
	int rc = bc_encoder_start(&p->encoder, p->options.workers, &queues);

	if (rc == 0)
		rc = bc_writer_start(&p->writer, &writer);
	return rc;
}

static void on_closed(uv_handle_t *handle)
{
	struct bc_pipeline *p = handle->data;

	if (--p->open_handles != 0)
		return;
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
	int rc = bc_pool_take(
		&p->pool, options->buffer_bytes, options->workers, options->keeps_raw);
	p->low_water = p->pool.slots_count;
	if (rc == 0)
		rc = uv_async_init(loop, &p->wake, on_wake);
	if (rc != 0) {
		bc_pool_free(&p->pool);
		free(p);
		return rc;
	}
	uv_timer_init(loop, &p->flush);
	p->wake.data = p;
	p->flush.data = p;
	p->open_handles = 2;
	rc = start_threads(p);
	if (rc != 0) {
		bc_pipeline_close(p);
		return rc;
	}
	*pipeline = p;
	return 0;
}

void bc_pipeline_close(struct bc_pipeline *p)
{
	bc_encoder_stop(p->encoder);
	bc_writer_stop(p->writer);
	uv_close((uv_handle_t *)&p->wake, on_closed);
	uv_close((uv_handle_t *)&p->flush, on_closed);
}

void bc_pipeline_set_rules(
	struct bc_pipeline *p, uint64_t flush_ns, const struct bc_writer_rules *rules)
{
	p->options.flush_ns = flush_ns;
	bc_writer_set_rules(p->writer, rules);
}

struct bc_counts *bc_pipeline_counts(struct bc_pipeline *p)
{
	return &p->counts;
}

const struct bc_writer_report *bc_pipeline_report(const struct bc_pipeline *p)
{
	return &p->report;
}

uint64_t bc_pipeline_records(const struct bc_pipeline *p)
{
	return p->records;
}
