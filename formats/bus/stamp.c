/* Stamps samples and records onto the timeline of a recording, and appends them to chunks.
 *
 * Invariant: `tick` is the tick of the last sample consumed, kept or not; a record's time is the
 * ticks since the last record, so skipped samples add to the next one. A record whose delta is
 * unknown or too large gets an anchor with its tick. A run is advanced only past what was consumed,
 * so the call can be repeated.
 *
 * Each sample is looked up in the mapping's table, which gives everything but processor and time.
 * stamp_samples() handles every case: dropped cycles, anchors, limits, skipping. Nearly all samples
 * need none of this, so stamp_stretch() handles runs of plain samples in a loop with one
 * predictable branch per sample (with AVX2, per four samples); it stops at the first sample that
 * needs more. stretch_max() computes in advance how many samples fit the chunk and stay below the
 * tick limit, so the loop checks neither. */
#include "formats/bus/stamp.h"

#include <assert.h>
#include <string.h>
#if defined(__x86_64__) && defined(__GNUC__) && !defined(BC_NO_SIMD)
#define HAS_AVX2 __builtin_cpu_supports("avx2")
#include <immintrin.h>
#endif

void bc_stamper_init(struct bc_stamper *stamper, const struct bc_mapping *mapping)
{
	stamper->mapping = mapping;
	bc_stamper_begin(stamper, 0, 0);
}

void bc_stamper_begin(struct bc_stamper *stamper, uint32_t epoch, uint64_t tick)
{
	*stamper = (struct bc_stamper){
		.mapping = stamper->mapping,
		.tick = tick,
		.record_tick = tick,
		.epoch = epoch,
		.is_first = true,
	};
}

struct bc_samples bc_samples_of_frame(const struct bc_bcp1_frame *frame)
{
	const uint8_t *at = frame->samples;
	uint32_t count = frame->header.samples;

	return (struct bc_samples){
		.at = at,
		.count = count,
		/* The header has the first sample's tick, even if its own ticks are not 0. */
		.tick = frame->header.tick - (count != 0 ? bc_le16(at + BC_SAMPLE_BYTES) : 0),
		.proc = frame->header.proc,
		.has_ticks = true,
		.has_agent = (frame->header.flags & BC_BCP1_AGENT) != 0,
	};
}

struct bc_samples bc_samples_of_raw6(
	const uint8_t *samples, uint32_t count, uint64_t tick, struct bc_pace pace)
{
	return (struct bc_samples){.at = samples, .count = count, .tick = tick, .pace = pace};
}

struct bc_pace bc_pace_of(uint64_t ticks, uint32_t samples)
{
	return (struct bc_pace){
		.step = ticks / samples,
		.rest = (uint32_t)(ticks % samples),
		.samples = samples,
	};
}

/* True if the next sample gets one more tick. */
static inline bool has_rest(const struct bc_pace *pace)
{
	return pace->rest != 0 && pace->phase >= pace->samples - pace->rest;
}

/* The ticks of the next sample. */
static inline uint64_t pace_ticks(const struct bc_pace *pace)
{
	return pace->step + has_rest(pace);
}

static inline void pace_advance(struct bc_pace *pace)
{
	pace->phase = has_rest(pace) ? pace->phase - (pace->samples - pace->rest)
				     : pace->phase + pace->rest;
}

/* Where the next record goes. Not part of chunk or stamper, so that a loop has it in registers. */
struct cursor {
	uint8_t *out;         /* the next record */
	uint32_t position;    /* its number in the chunk */
	uint64_t record_tick; /* of the previous record */
	bool is_first;
};

static struct cursor cursor_init(const struct bc_stamper *s, struct bc_chunk *chunk)
{
	return (struct cursor){
		.out = chunk != NULL ? bc_chunk_record(chunk, chunk->info.records) : NULL,
		.position = chunk != NULL ? chunk->info.records : 0,
		.record_tick = s->record_tick,
		.is_first = s->is_first,
	};
}

static void cursor_commit(struct bc_stamper *s, struct bc_chunk *chunk, const struct cursor *c)
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

/* Completes the record at the cursor, of which the first eight bytes are written, with its time.
 * Returns false if it needs an anchor and the chunk has no room for one. */
static inline __attribute__((always_inline)) bool append_record(
	struct bc_chunk *chunk, struct cursor *c, uint64_t tick, bool has_delta, bool is_exact)
{
	uint64_t delta = tick - c->record_tick;

	if (__builtin_expect(!has_delta || delta >= BC_TIME_NONE, 0)) {
		if (!add_anchor(chunk, c->position, tick, is_exact))
			return false;
		delta = BC_TIME_NONE;
	}
	bc_write_le32(c->out + 8, (uint32_t)delta);
	if (c->position == 0)
		chunk->info.first_tick = tick;
	c->out += BC_RECORD_BYTES;
	c->position++;
	c->record_tick = tick;
	c->is_first = false;
	return true;
}

#ifdef HAS_AVX2
/* Stamps plain samples by four, while another follows: each record is written with four bytes of
 * the next. Adds their ticks to *tick. Returns their number. */
static __attribute__((target("avx2"))) uint32_t stamp_fours(const struct bc_mapping *mapping,
	const uint8_t *at, uint32_t n, uint8_t *out, uint64_t *tick, uint8_t proc, bool has_agent)
{
	/* Of each sample, the address, and its control byte where the record has the processor. */
	const __m256i order = _mm256_broadcastsi128_si256(
		_mm_set_epi8(13, -1, -1, -1, 8, 9, 10, 11, 5, -1, -1, -1, 0, 1, 2, 3));
	const __m256i kept = _mm256_set1_epi64x(INT64_MAX >> (has_agent ? 3 : 7));
	const __m256i procs = _mm256_slli_epi64(_mm256_set1_epi64x(has_agent ? 0 : proc), 56);
	__m256i sum = _mm256_setzero_si256();
	uint32_t done = 0;

	for (; done + 4 < n; done += 4) {
		__m256i entries = _mm256_setr_epi64x((int64_t)bc_map_entry(mapping, at),
			(int64_t)bc_map_entry(mapping, at + 8),
			(int64_t)bc_map_entry(mapping, at + 16),
			(int64_t)bc_map_entry(mapping, at + 24));
		if (__builtin_expect(_mm256_movemask_pd(_mm256_castsi256_pd(entries)) != 0, 0))
			break;
		__m256i samples = _mm256_loadu_si256((const __m256i *)at);
		__m256i ticks = _mm256_srli_epi64(samples, 48);
		__m256i records = _mm256_or_si256(
			_mm256_shuffle_epi8(samples, order), _mm256_srli_epi64(entries, 60));
		records = _mm256_and_si256(_mm256_xor_si256(records, entries), kept);
		records = _mm256_or_si256(records, procs);
		sum = _mm256_add_epi64(sum, ticks);
		__m256i even = _mm256_unpacklo_epi64(records, ticks);
		__m256i odd = _mm256_unpackhi_epi64(records, ticks);
		_mm_storeu_si128((__m128i *)out, _mm256_castsi256_si128(even));
		_mm_storeu_si128((__m128i *)(out + 12), _mm256_castsi256_si128(odd));
		_mm_storeu_si128((__m128i *)(out + 24), _mm256_extracti128_si256(even, 1));
		_mm_storeu_si128((__m128i *)(out + 36), _mm256_extracti128_si256(odd, 1));
		at += (size_t)4 * BC_BCP1_SAMPLE_BYTES;
		out += (size_t)4 * BC_RECORD_BYTES;
	}
	__m128i pair = _mm_add_epi64(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
	*tick += (uint64_t)_mm_cvtsi128_si64(pair) + (uint64_t)_mm_extract_epi64(pair, 1);
	return done;
}
#endif

/* Stamps up to n plain samples: each is kept, and so was the one before it, so its own ticks are
 * its delta. Stops at the first other sample. Returns the number of samples stamped. */
static inline __attribute__((always_inline)) uint32_t stamp_stretch(
	const struct bc_mapping *mapping, const uint8_t *at, uint32_t n, struct cursor *cursor,
	uint8_t proc, const bool has_agent)
{
	uint8_t *out = cursor->out;
	uint64_t tick = cursor->record_tick;
	uint32_t done = 0;

#ifdef HAS_AVX2
	if (HAS_AVX2)
		done = stamp_fours(mapping, at, n, out, &tick, proc, has_agent);
	at += (size_t)done * BC_BCP1_SAMPLE_BYTES;
	out += (size_t)done * BC_RECORD_BYTES;
#endif
	for (; done < n; done++, at += BC_BCP1_SAMPLE_BYTES, out += BC_RECORD_BYTES) {
		uint64_t entry = bc_map_entry(mapping, at);
		uint32_t ticks = bc_le16(at + BC_SAMPLE_BYTES);
		if (__builtin_expect((entry & BC_MAP_RARE) != 0, 0))
			break;
		bc_map_plain_sample(out, entry, at, has_agent ? at[5] & 15 : proc);
		bc_write_le32(out + 8, ticks);
		tick += ticks;
	}
	cursor->out = out;
	cursor->position += done;
	cursor->record_tick = tick;
	return done;
}

/* The number of samples that stamp_stretch() may process: limited by the run, by the room in the
 * chunk, and by the largest number that stays below the tick limit regardless of their ticks. */
static uint32_t stretch_max(
	size_t samples, const struct cursor *cursor, uint64_t tick, uint64_t tick_limit)
{
	uint64_t max = (tick_limit - 1 - tick) / UINT16_MAX;

	if (cursor->is_first || cursor->position == 0 || cursor->record_tick != tick ||
		tick >= tick_limit)
		return 0;
	max = samples < max ? samples : max;
	return BC_CHUNK_RECORDS - cursor->position < max ? BC_CHUNK_RECORDS - cursor->position
							 : (uint32_t)max;
}

/* Stamps samples, or skips them if chunk is NULL. Inlined with constant has_ticks and has_agent. */
static inline __attribute__((always_inline)) enum bc_stamp_result stamp_samples(
	struct bc_stamper *s, struct bc_samples *run, uint64_t tick_limit, struct bc_chunk *chunk,
	struct bc_stamped *stamped, const bool has_ticks, const bool has_agent)
{
	const struct bc_mapping *mapping = s->mapping;
	const size_t stride = has_ticks ? BC_BCP1_SAMPLE_BYTES : BC_SAMPLE_BYTES;
	const uint8_t run_proc = run->proc;
	struct bc_pace pace = run->pace;
	const uint8_t *at = run->at;
	const uint8_t *run_end = run->count != 0 ? at + run->count * stride : at;
	struct cursor cursor = cursor_init(s, chunk);
	cursor.is_first = cursor.is_first || s->is_delta_lost;
	uint64_t tick = run->tick;
	uint32_t kept = 0;
	uint32_t invalid = 0;
	uint32_t unknown = 0;
	enum bc_stamp_result result = BC_STAMP_DONE;

	for (; at < run_end; at += stride) {
		if (chunk != NULL && has_ticks) {
			uint32_t n = stretch_max(
				(size_t)(run_end - at) / stride, &cursor, tick, tick_limit);
			n = stamp_stretch(mapping, at, n, &cursor, run_proc, has_agent);
			at += n * stride;
			kept += n;
			tick = n != 0 ? cursor.record_tick : tick;
			if (at == run_end)
				break;
		}
		uint64_t next = tick +
				(has_ticks ? bc_le16(at + BC_SAMPLE_BYTES) : pace_ticks(&pace));
		if (next >= tick_limit) {
			result = BC_STAMP_LIMIT;
			break;
		}
		uint64_t entry = bc_map_entry(mapping, at);
		if (__builtin_expect((entry & BC_MAP_DROP) != 0, 0)) {
			invalid++;
			tick = next;
			if (!has_ticks)
				pace_advance(&pace);
			continue;
		}
		if (chunk != NULL) {
			if (cursor.position == BC_CHUNK_RECORDS) {
				result = BC_STAMP_FULL;
				break;
			}
			bc_map_sample(cursor.out, entry, at, has_agent ? at[5] & 15 : run_proc);
			if (!append_record(chunk, &cursor, next, !cursor.is_first, true)) {
				result = BC_STAMP_FULL;
				break;
			}
		}
		tick = next;
		if (!has_ticks)
			pace_advance(&pace);
		kept++;
		unknown += (entry & BC_MAP_UNKNOWN) != 0;
	}
	cursor_commit(s, chunk, &cursor);
	s->is_delta_lost = s->is_delta_lost && (chunk == NULL || kept == 0);
	*stamped = (struct bc_stamped){kept + invalid, kept, invalid, unknown};
	run->count -= kept + invalid;
	run->at = at;
	run->tick = tick;
	run->pace = pace;
	if (kept + invalid != 0)
		s->tick = tick;
	return result;
}

enum bc_stamp_result bc_stamp_samples(struct bc_stamper *stamper, struct bc_samples *run,
	uint64_t tick_limit, struct bc_chunk *chunk, struct bc_stamped *stamped)
{
	assert(chunk == NULL || chunk->info.epoch == stamper->epoch);
	if (chunk == NULL && run->has_ticks)
		return stamp_samples(stamper, run, tick_limit, NULL, stamped, true, false);
	if (chunk == NULL)
		return stamp_samples(stamper, run, tick_limit, NULL, stamped, false, false);
	if (!run->has_ticks)
		return stamp_samples(stamper, run, tick_limit, chunk, stamped, false, false);
	if (run->has_agent)
		return stamp_samples(stamper, run, tick_limit, chunk, stamped, true, true);
	return stamp_samples(stamper, run, tick_limit, chunk, stamped, true, false);
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

/* The time of a record that is being copied. */
struct moment {
	uint64_t tick;
	bool has_delta;  /* the ticks since the previous record are known */
	bool is_inexact; /* this tick and all that follow are lower bounds */
};

static struct moment moment_of(
	const struct bc_stamper *s, const struct bc_records *run, uint32_t n, bool is_first)
{
	uint32_t time = bc_le32(run->at + (size_t)n * BC_RECORD_BYTES + 8);

	if (time != BC_TIME_NONE)
		return (struct moment){s->tick + time, !s->is_delta_lost, s->is_inexact};
	const struct bc_event *anchor = find_anchor(run, run->position + n);
	if (anchor != NULL)
		return (struct moment){anchor->value, false, !anchor->exact};
	return (struct moment){s->tick, false, s->is_inexact || !is_first};
}

/* Copies up to n plain records: each has a time, and stays below the tick limit. Stops at the first
 * other record. Returns the number of records copied. */
static uint32_t copy_stretch(
	const uint8_t *at, uint32_t n, struct cursor *cursor, uint64_t tick_limit)
{
	uint8_t *out = cursor->out;
	uint64_t tick = cursor->record_tick;
	uint32_t done = 0;

	for (; done < n; done++, at += BC_RECORD_BYTES, out += BC_RECORD_BYTES) {
		uint32_t time = bc_le32(at + 8);
		if (time == BC_TIME_NONE || tick + time >= tick_limit)
			break;
		memcpy(out, at, BC_RECORD_BYTES);
		tick += time;
	}
	cursor->out = out;
	cursor->position += done;
	cursor->record_tick = tick;
	return done;
}

enum bc_stamp_result bc_stamp_records(struct bc_stamper *s, struct bc_records *run,
	uint64_t tick_limit, struct bc_chunk *chunk, struct bc_stamped *stamped)
{
	struct cursor cursor = cursor_init(s, chunk);
	uint32_t consumed = 0;
	enum bc_stamp_result result = BC_STAMP_DONE;

	assert(chunk == NULL || chunk->info.epoch == s->epoch);
	for (;; consumed++) {
		if (chunk != NULL && !s->is_delta_lost && !cursor.is_first &&
			cursor.position != 0 && cursor.record_tick == s->tick) {
			uint32_t room = BC_CHUNK_RECORDS - cursor.position;
			uint32_t left = run->count - consumed;
			consumed += copy_stretch(run->at + (size_t)consumed * BC_RECORD_BYTES,
				left < room ? left : room, &cursor, tick_limit);
			s->tick = cursor.record_tick;
		}
		if (consumed == run->count)
			break;
		struct moment moment = moment_of(s, run, consumed, cursor.is_first);
		/* An anchor can have any tick, even the value of BC_NO_TICK_LIMIT. */
		if (moment.tick >= tick_limit && tick_limit != BC_NO_TICK_LIMIT) {
			result = BC_STAMP_LIMIT;
			break;
		}
		if (chunk != NULL) {
			if (cursor.position == BC_CHUNK_RECORDS) {
				result = BC_STAMP_FULL;
				break;
			}
			memcpy(cursor.out, run->at + (size_t)consumed * BC_RECORD_BYTES,
				BC_RECORD_BYTES);
			if (!append_record(chunk, &cursor, moment.tick, moment.has_delta,
				    !moment.is_inexact)) {
				result = BC_STAMP_FULL;
				break;
			}
		}
		/* After a skipped record with an unknown delta, the next delta is unknown, too. */
		s->is_delta_lost = chunk == NULL && !moment.has_delta &&
				   (moment.is_inexact || s->is_delta_lost);
		s->is_inexact = moment.is_inexact;
		s->tick = moment.tick;
	}
	cursor_commit(s, chunk, &cursor);
	*stamped = (struct bc_stamped){.consumed = consumed, .kept = consumed};
	run->at += (size_t)consumed * BC_RECORD_BYTES;
	run->count -= consumed;
	run->position += consumed;
	return result;
}

uint64_t bc_samples_next_tick(const struct bc_samples *run)
{
	return run->tick +
	       (run->has_ticks ? bc_le16(run->at + BC_SAMPLE_BYTES) : pace_ticks(&run->pace));
}

uint64_t bc_records_next_tick(const struct bc_stamper *stamper, const struct bc_records *run)
{
	return moment_of(stamper, run, 0, stamper->is_first).tick;
}

void bc_stamp_skip_time(struct bc_stamper *s, uint64_t time)
{
	if (time != BC_TIME_NONE && time < BC_TICK_END - s->tick) {
		s->tick += time;
		return;
	}
	s->is_inexact = s->is_inexact || !s->is_first;
	s->is_delta_lost = s->is_delta_lost || s->is_inexact;
}
