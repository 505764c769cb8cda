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

/* Stamps the record whose other eight bytes stand at the chunk's end already. Returns false when it
 * wants an anchor that the chunk has no room for. */
static inline bool append(
	struct bc_stamper *s, struct bc_chunk *chunk, uint64_t tick, bool has_delta, bool is_exact)
{
	struct bc_chunk_info *info = &chunk->info;
	uint64_t delta = tick - s->record_tick;

	if (!has_delta || delta >= BC_TIME_NONE) {
		struct bc_event anchor = {
			.position = info->records,
			.kind = BC_EVENT_ANCHOR,
			.exact = is_exact,
			.value = tick,
		};
		if (!bc_chunk_add_event(chunk, &anchor, NULL))
			return false;
		delta = BC_TIME_NONE;
	}
	bc_put_le32(record_at(chunk, info->records) + 8, (uint32_t)delta);
	if (info->records++ == 0)
		info->first_tick = tick;
	info->last_tick = tick;
	s->record_tick = tick;
	s->is_first = false;
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
	const uint8_t *at = run->at;
	const uint8_t *end = at + run->count * stride;
	uint64_t tick = run->tick;
	uint32_t kept = 0;
	uint32_t invalid = 0;
	uint32_t unknown = 0;
	enum bc_stamp_end why = BC_STAMP_DONE;

	for (; at < end; at += stride) {
		uint64_t next = tick + (has_ticks ? bc_le16(at + BC_SAMPLE_BYTES) : run->step);
		if (next >= tick_limit) {
			why = BC_STAMP_LIMIT;
			break;
		}
		uint32_t entry = bc_map_entry(mapping, at);
		if ((entry & BC_MAP_DROP) != 0) {
			invalid++;
			tick = next;
			continue;
		}
		if (chunk != NULL) {
			if (chunk->info.records == BC_CHUNK_RECORDS) {
				why = BC_STAMP_FULL;
				break;
			}
			uint8_t proc = has_agent ? at[5] & 15 : run->proc;
			bc_map_sample(record_at(chunk, chunk->info.records), entry, at, proc);
			if (!append(s, chunk, next, !s->is_first, true)) {
				why = BC_STAMP_FULL;
				break;
			}
		}
		tick = next;
		kept++;
		unknown += (entry & BC_MAP_UNKNOWN) != 0;
	}
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
			is_exact = anchor != NULL ? anchor->exact : s->is_first;
			tick = anchor != NULL ? anchor->value : tick;
		}
		if (tick >= tick_limit) {
			why = BC_STAMP_LIMIT;
			break;
		}
		if (chunk != NULL) {
			if (chunk->info.records == BC_CHUNK_RECORDS) {
				why = BC_STAMP_FULL;
				break;
			}
			memcpy(record_at(chunk, chunk->info.records), at, BC_RECORD_BYTES);
			if (!append(s, chunk, tick, has_delta, is_exact)) {
				why = BC_STAMP_FULL;
				break;
			}
		}
		s->tick = tick;
	}
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
