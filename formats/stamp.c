#include "formats/stamp.h"

#include <assert.h>
#include <string.h>

void bc_stamper_init(struct bc_stamper *stamper, const struct bc_mapping *mapping)
{
	memset(stamper, 0, sizeof(*stamper));
	stamper->mapping = mapping;
	stamper->is_first = true;
}

void bc_stamper_next_epoch(struct bc_stamper *stamper, uint32_t epoch)
{
	stamper->tick = 0;
	stamper->record_tick = 0;
	stamper->epoch = epoch;
	stamper->is_first = true;
}

struct bc_samples bc_samples_of_frame(const struct bc_bcp1_frame *frame)
{
	const uint8_t *at = frame->samples;
	uint32_t count = frame->header.samples;

	return (struct bc_samples){
		.at = at,
		.count = count,
		/* The header has the first sample's tick, whatever ticks that sample itself claims.
		 */
		.tick = frame->header.tick - (count != 0 ? bc_le16(at + BC_SAMPLE_BYTES) : 0),
		.proc = frame->header.proc,
		.has_ticks = true,
		.has_agent = (frame->header.flags & BC_BCP1_AGENT) != 0,
	};
}

struct bc_samples bc_samples_of_raw6(const uint8_t *samples, uint32_t count, uint64_t tick)
{
	return (struct bc_samples){.at = samples, .count = count, .tick = tick, .step = 1};
}

static uint8_t *record_at(struct bc_chunk *chunk, uint32_t n)
{
	return chunk->records + (size_t)n * BC_RECORD_BYTES;
}

/* Where the records of a call go. Kept apart from chunk and stamper while a loop runs, so that the
 * compiler can hold it in registers. */
struct cursor {
	uint8_t *out;         /* of the next record */
	uint32_t position;    /* its number in the chunk */
	uint64_t record_tick; /* of the record before */
	bool is_first;
};

static struct cursor begin(const struct bc_stamper *s, struct bc_chunk *chunk)
{
	return (struct cursor){
		.out = chunk != NULL ? record_at(chunk, chunk->info.records) : NULL,
		.position = chunk != NULL ? chunk->info.records : 0,
		.record_tick = s->record_tick,
		.is_first = s->is_first,
	};
}

static void end(struct bc_stamper *s, struct bc_chunk *chunk, const struct cursor *c)
{
	if (chunk == NULL || c->position == chunk->info.records)
		return;
	chunk->info.records = c->position;
	chunk->info.last_tick = c->record_tick;
	s->record_tick = c->record_tick;
	s->is_first = false;
}

static bool add_anchor(struct bc_chunk *chunk, uint32_t position, uint64_t tick, bool is_exact)
{
	struct bc_event anchor = {
		.position = position,
		.kind = BC_EVENT_ANCHOR,
		.exact = is_exact,
		.value = tick,
	};

	return bc_chunk_add_event(chunk, &anchor, NULL);
}

/* Stamps the record whose other eight bytes stand at the cursor already. Returns false when it
 * wants an anchor that the chunk has no room for. */
static inline __attribute__((always_inline)) bool append(
	struct bc_chunk *chunk, struct cursor *c, uint64_t tick, bool has_delta, bool is_exact)
{
	uint64_t delta = tick - c->record_tick;

	if (__builtin_expect(!has_delta || delta >= BC_TIME_NONE, 0)) {
		if (!add_anchor(chunk, c->position, tick, is_exact))
			return false;
		delta = BC_TIME_NONE;
	}
	bc_put_le32(c->out + 8, (uint32_t)delta);
	if (c->position == 0)
		chunk->info.first_tick = tick;
	c->out += BC_RECORD_BYTES;
	c->position++;
	c->record_tick = tick;
	c->is_first = false;
	return true;
}

/* The loop behind all that stamps samples; chunk is NULL to skip them. Inlined into each, so that
 * the constant arguments cost nothing. */
static inline __attribute__((always_inline)) enum bc_stamp_end stamp_samples(struct bc_stamper *s,
	struct bc_samples *run, uint64_t tick_limit, struct bc_chunk *chunk,
	struct bc_stamped *stamped, const bool has_ticks, const bool has_agent)
{
	const struct bc_mapping *mapping = s->mapping;
	const size_t stride = has_ticks ? BC_BCP1_SAMPLE_BYTES : BC_SAMPLE_BYTES;
	const uint8_t run_proc = run->proc;
	const uint32_t step = run->step;
	const uint8_t *at = run->at;
	const uint8_t *run_end = at + run->count * stride;
	struct cursor cursor = begin(s, chunk);
	uint64_t tick = run->tick;
	uint32_t kept = 0;
	uint32_t invalid = 0;
	uint32_t unknown = 0;
	enum bc_stamp_end why = BC_STAMP_DONE;

	for (; at < run_end; at += stride) {
		uint64_t next = tick + (has_ticks ? bc_le16(at + BC_SAMPLE_BYTES) : step);
		if (next >= tick_limit) {
			why = BC_STAMP_LIMIT;
			break;
		}
		uint32_t entry = bc_map_entry(mapping, at);
		if (__builtin_expect((entry & BC_MAP_DROP) != 0, 0)) {
			invalid++;
			tick = next;
			continue;
		}
		if (chunk != NULL) {
			if (cursor.position == BC_CHUNK_RECORDS) {
				why = BC_STAMP_FULL;
				break;
			}
			bc_map_sample(cursor.out, entry, at, has_agent ? at[5] & 15 : run_proc);
			if (!append(chunk, &cursor, next, !cursor.is_first, true)) {
				why = BC_STAMP_FULL;
				break;
			}
		}
		tick = next;
		kept++;
		unknown += (entry & BC_MAP_UNKNOWN) != 0;
	}
	end(s, chunk, &cursor);
	*stamped = (struct bc_stamped){kept + invalid, kept, invalid, unknown};
	run->count -= kept + invalid;
	run->at = at;
	run->tick = tick;
	if (kept + invalid != 0)
		s->tick = tick;
	return why;
}

enum bc_stamp_end bc_stamp_samples(struct bc_stamper *stamper, struct bc_samples *run,
	uint64_t tick_limit, struct bc_chunk *chunk, struct bc_stamped *stamped)
{
	assert(chunk->info.epoch == stamper->epoch);
	if (!run->has_ticks)
		return stamp_samples(stamper, run, tick_limit, chunk, stamped, false, false);
	if (run->has_agent)
		return stamp_samples(stamper, run, tick_limit, chunk, stamped, true, true);
	return stamp_samples(stamper, run, tick_limit, chunk, stamped, true, false);
}

enum bc_stamp_end bc_stamp_skip_samples(struct bc_stamper *stamper, struct bc_samples *run,
	uint64_t tick_limit, struct bc_stamped *stamped)
{
	if (run->has_ticks)
		return stamp_samples(stamper, run, tick_limit, NULL, stamped, true, false);
	return stamp_samples(stamper, run, tick_limit, NULL, stamped, false, false);
}

static const struct bc_event *find_anchor(const struct bc_records *run, uint32_t position)
{
	for (uint32_t i = 0; run->source != NULL && i < run->source->info.events; i++) {
		const struct bc_event *event = &run->source->events[i];
		if (event->kind == BC_EVENT_ANCHOR && event->position == position)
			return event;
	}
	return NULL;
}

static enum bc_stamp_end stamp_records(struct bc_stamper *s, struct bc_records *run,
	uint64_t tick_limit, struct bc_chunk *chunk, struct bc_stamped *stamped)
{
	struct cursor cursor = begin(s, chunk);
	uint32_t taken = 0;
	enum bc_stamp_end why = BC_STAMP_DONE;

	for (; taken < run->count; taken++) {
		const uint8_t *at = run->at + (size_t)taken * BC_RECORD_BYTES;
		uint32_t time = bc_le32(at + 8);
		bool has_delta = time != BC_TIME_NONE;
		bool is_exact = true;
		uint64_t tick = s->tick + (has_delta ? time : 0);
		if (!has_delta) {
			const struct bc_event *anchor = find_anchor(run, run->position + taken);
			is_exact = anchor != NULL ? anchor->exact : cursor.is_first;
			tick = anchor != NULL ? anchor->value : tick;
		}
		if (tick >= tick_limit) {
			why = BC_STAMP_LIMIT;
			break;
		}
		if (chunk != NULL) {
			if (cursor.position == BC_CHUNK_RECORDS) {
				why = BC_STAMP_FULL;
				break;
			}
			memcpy(cursor.out, at, BC_RECORD_BYTES);
			if (!append(chunk, &cursor, tick, has_delta, is_exact)) {
				why = BC_STAMP_FULL;
				break;
			}
		}
		s->tick = tick;
	}
	end(s, chunk, &cursor);
	*stamped = (struct bc_stamped){.taken = taken, .kept = taken};
	run->at += (size_t)taken * BC_RECORD_BYTES;
	run->count -= taken;
	run->position += taken;
	return why;
}

enum bc_stamp_end bc_stamp_records(struct bc_stamper *stamper, struct bc_records *run,
	uint64_t tick_limit, struct bc_chunk *chunk, struct bc_stamped *stamped)
{
	assert(chunk->info.epoch == stamper->epoch);
	return stamp_records(stamper, run, tick_limit, chunk, stamped);
}

enum bc_stamp_end bc_stamp_skip_records(struct bc_stamper *stamper, struct bc_records *run,
	uint64_t tick_limit, struct bc_stamped *stamped)
{
	return stamp_records(stamper, run, tick_limit, NULL, stamped);
}
