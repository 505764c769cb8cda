/* Chunks in memory: their events, ticks and losses, and cutting them in two.
 *
 * Invariant: events are sorted by position; the tick of each record follows from the chunk alone,
 * by adding times from first_tick on, or from the last anchor before the record. Cutting keeps
 * both: the part that loses its first records gets the tick of its new first record, and events
 * keep their distance to their record. */
#include "formats/bus/chunk.h"

#include <assert.h>
#include <string.h>

void bc_chunk_reset(struct bc_chunk *chunk, uint64_t tick, uint32_t epoch)
{
	memset(&chunk->info, 0, sizeof(chunk->info));
	chunk->info.first_tick = tick;
	chunk->info.last_tick = tick;
	chunk->info.epoch = epoch;
	chunk->text_bytes = 0;
}

bool bc_chunk_add_event(struct bc_chunk *chunk, const struct bc_event *event, const char *text)
{
	if (chunk->info.events == BC_CHUNK_EVENTS ||
		event->text_bytes > BC_CHUNK_TEXT_BYTES - chunk->text_bytes)
		return false;
	struct bc_event *added = &chunk->events[chunk->info.events++];
	*added = *event;
	added->text = (uint16_t)chunk->text_bytes;
	if (event->text_bytes != 0)
		memcpy(chunk->text + chunk->text_bytes, text, event->text_bytes);
	chunk->text_bytes += event->text_bytes;
	return true;
}

uint64_t bc_chunk_missing(const struct bc_chunk *chunk, uint64_t expected)
{
	const struct bc_chunk_info *info = &chunk->info;

	if (info->first_record <= expected)
		return 0;
	uint64_t missing = info->first_record - expected;
	for (uint32_t i = 0; i < info->events && chunk->events[i].position == 0; i++) {
		const struct bc_event *event = &chunk->events[i];
		if (event->kind != BC_EVENT_GAP || event->cause != BC_GAP_DAMAGED)
			continue;
		if (!event->exact || event->value >= missing)
			return 0;
		missing -= event->value;
	}
	return missing;
}

void bc_totals_add(struct bc_totals *totals, const struct bc_chunk *chunk)
{
	for (uint32_t i = 0; i < chunk->info.events; i++) {
		const struct bc_event *event = &chunk->events[i];
		if (event->kind != BC_EVENT_GAP)
			continue;
		totals->lost[event->cause < BC_GAP_CAUSES ? event->cause : 0] += event->value;
		totals->gaps++;
		totals->inexact += !event->exact;
		totals->away_ns += event->duration_ns;
	}
}

uint64_t bc_chunk_unreported(const struct bc_chunk *chunk, const struct bc_totals *before,
	uint64_t unreported[BC_GAP_CAUSES])
{
	struct bc_totals known = *before;
	uint64_t sum = 0;

	bc_totals_add(&known, chunk);
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++) {
		uint64_t lost = chunk->info.totals.lost[cause];
		unreported[cause] = lost > known.lost[cause] ? lost - known.lost[cause] : 0;
		sum += unreported[cause];
	}
	return sum;
}

const char *bc_event_kind_name(unsigned kind)
{
	return kind == BC_EVENT_GAP       ? "gap"
	       : kind == BC_EVENT_MARK    ? "mark"
	       : kind == BC_EVENT_TRIGGER ? "trigger"
	       : kind == BC_EVENT_NOTE    ? "note"
					  : "epoch";
}

const char *bc_gap_cause_name(unsigned cause)
{
	static const char *const names[BC_GAP_CAUSES] = {
		"unknown",
		[BC_GAP_BUFFER] = "buffer",
		[BC_GAP_DISK] = "disk",
		[BC_GAP_BOARD] = "board",
		[BC_GAP_SEQUENCE] = "sequence",
		[BC_GAP_CRC] = "crc",
		[BC_GAP_UNPLUGGED] = "unplugged",
		[BC_GAP_TRANSFER] = "transfer",
		[BC_GAP_DAMAGED] = "damaged",
		[BC_GAP_CRASH] = "crash",
	};

	return names[cause < BC_GAP_CAUSES ? cause : 0];
}

uint64_t bc_records_ticks(const uint8_t *records, size_t n, uint64_t tick)
{
	const uint8_t *end = records + n * BC_RECORD_BYTES;
	uint64_t other = 0; /* two sums, because each waits for its last addition */

	if (n % 2 != 0) {
		tick += bc_record_ticks(records);
		records += BC_RECORD_BYTES;
	}
	for (; records != end; records += 2 * BC_RECORD_BYTES) {
		tick += bc_record_ticks(records);
		other += bc_record_ticks(records + BC_RECORD_BYTES);
	}
	return tick + other;
}

void bc_chunk_ticks(const struct bc_chunk *chunk, uint64_t ticks[BC_CHUNK_RECORDS])
{
	const struct bc_event *event = chunk->events;
	const struct bc_event *end = event + chunk->info.events;
	uint64_t tick = chunk->info.first_tick;

	for (uint32_t i = 0; i < chunk->info.records; i++) {
		uint32_t time = bc_le32(chunk->records + (size_t)i * BC_RECORD_BYTES + 8);
		tick += i != 0 && time != BC_TIME_NONE ? time : 0;
		for (; event != end && event->position <= i; event++)
			if (event->kind == BC_EVENT_ANCHOR && event->position == i && i != 0 &&
				time == BC_TIME_NONE)
				tick = event->value;
		ticks[i] = tick;
	}
}

/* ---- chunk split */

/* The sum of the `time` of records first .. end - 1. */
static uint64_t ticks_between(const struct bc_chunk *chunk, uint32_t first, uint32_t end)
{
	return bc_records_ticks(chunk->records + (size_t)first * BC_RECORD_BYTES, end - first, 0);
}

uint64_t bc_chunk_tick(const struct bc_chunk *chunk, uint32_t n)
{
	const struct bc_chunk_info *info = &chunk->info;
	uint32_t known = 0;
	uint64_t tick = info->first_tick;
	bool is_last = true; /* no anchor after n */

	assert(n < info->records);
	for (uint32_t i = 0; i < info->events; i++) {
		const struct bc_event *event = &chunk->events[i];
		if (event->kind != BC_EVENT_ANCHOR)
			continue;
		if (event->position > n) {
			is_last = false;
			break;
		}
		known = event->position;
		tick = event->value;
	}
	if (is_last && info->records - n < n - known)
		return info->last_tick - ticks_between(chunk, n + 1, info->records);
	return tick + ticks_between(chunk, known + 1, n + 1);
}

uint32_t bc_chunk_find_tick(const struct bc_chunk *chunk, uint32_t from, uint64_t tick)
{
	const struct bc_event *event = chunk->events;
	const struct bc_event *end = event + chunk->info.events;
	uint64_t at = bc_chunk_tick(chunk, from);

	if (chunk->info.last_tick < tick)
		return chunk->info.records;
	while (at < tick && ++from < chunk->info.records) {
		at += bc_record_ticks(chunk->records + (size_t)from * BC_RECORD_BYTES);
		for (; event < end && event->position <= from; event++)
			if (event->kind == BC_EVENT_ANCHOR && event->position == from)
				at = event->value;
	}
	return from;
}

uint64_t bc_chunk_tick_before(const struct bc_chunk_info *info, const uint8_t *records)
{
	return info->first_tick - (info->records != 0 ? bc_record_ticks(records) : 0);
}

/* The index of the first event at or after a position. */
static uint32_t event_at(const struct bc_chunk *chunk, uint32_t position)
{
	uint32_t i = 0;

	while (i < chunk->info.events && chunk->events[i].position < position)
		i++;
	return i;
}

/* Adds events, which fit, with text in `text`, and subtracts `shift` from their positions. */
static void add_events(struct bc_chunk *chunk, const struct bc_event *events, uint32_t count,
	const char *text, uint32_t shift)
{
	for (uint32_t i = 0; i < count; i++) {
		struct bc_event event = events[i];
		event.position -= shift;
		if (!bc_chunk_add_event(chunk, &event, text + event.text))
			assert(false && "there is room: the events were in one chunk before");
	}
}

/* Keeps only the events first .. end - 1 and their text; subtracts `shift` from the positions. */
static void keep_events(struct bc_chunk *chunk, uint32_t first, uint32_t end, uint32_t shift)
{
	char text[BC_CHUNK_TEXT_BYTES];

	memcpy(text, chunk->text, chunk->text_bytes);
	chunk->info.events = 0;
	chunk->text_bytes = 0;
	add_events(chunk, chunk->events + first, end - first, text, shift);
}

void bc_chunk_drop_front(struct bc_chunk *chunk, uint32_t n)
{
	struct bc_chunk_info *info = &chunk->info;

	assert(n <= info->records);
	if (n == 0)
		return;
	info->first_tick = n < info->records ? bc_chunk_tick(chunk, n) : info->last_tick;
	keep_events(chunk, event_at(chunk, n), info->events, n);
	info->records -= n;
	info->first_record += n;
	memmove(chunk->records, bc_chunk_record(chunk, n), (size_t)info->records * BC_RECORD_BYTES);
}

void bc_chunk_drop_back(struct bc_chunk *chunk, uint32_t keep)
{
	struct bc_chunk_info *info = &chunk->info;

	assert(keep <= info->records);
	if (keep == 0)
		info->first_tick = info->last_tick = bc_chunk_tick_before(info, chunk->records);
	else
		info->last_tick = bc_chunk_tick(chunk, keep - 1);
	keep_events(chunk, 0, event_at(chunk, keep), 0);
	info->records = keep;
}

void bc_chunk_split(struct bc_chunk *chunk, uint32_t at, struct bc_chunk *rest)
{
	const struct bc_chunk_info *info = &chunk->info;

	assert(at <= info->records);
	uint64_t tick = at < info->records ? bc_chunk_tick(chunk, at) : info->last_tick;
	bc_chunk_reset(rest, tick, info->epoch);
	rest->info.last_tick = info->last_tick;
	rest->info.recording_tag = info->recording_tag;
	rest->info.first_record = info->first_record + at;
	rest->info.wall_ns = info->wall_ns;
	rest->info.records = info->records - at;
	memcpy(rest->records, bc_chunk_record(chunk, at),
		(size_t)rest->info.records * BC_RECORD_BYTES);
	uint32_t first = event_at(chunk, at);
	add_events(rest, chunk->events + first, info->events - first, chunk->text, at);
	bc_chunk_drop_back(chunk, at);
}

bool bc_chunk_insert_event(struct bc_chunk *chunk, const struct bc_event *event, const char *text)
{
	uint32_t count = chunk->info.events;
	uint32_t at = event_at(chunk, event->position + 1);

	assert(event->position <= chunk->info.records);
	if (!bc_chunk_add_event(chunk, event, text))
		return false;
	struct bc_event added = chunk->events[count];
	memmove(&chunk->events[at + 1], &chunk->events[at], (count - at) * sizeof(added));
	chunk->events[at] = added;
	return true;
}

bool bc_chunk_detach(struct bc_chunk *chunk, bool is_exact)
{
	struct bc_event anchor = {
		.kind = BC_EVENT_ANCHOR,
		.exact = is_exact,
		.value = chunk->info.first_tick,
	};
	bool has_anchor = false;

	if (chunk->info.records == 0)
		return true;
	for (uint32_t i = 0; i < event_at(chunk, 1); i++)
		has_anchor = has_anchor || chunk->events[i].kind == BC_EVENT_ANCHOR;
	if (!has_anchor && !bc_chunk_insert_event(chunk, &anchor, NULL))
		return false;
	bc_write_le32(bc_chunk_record(chunk, 0) + 8, BC_TIME_NONE);
	return true;
}
