#include "formats/bus/chunk.h"

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

void bc_chunk_gaps(const struct bc_chunk *chunk, uint64_t *gaps, uint64_t *lost)
{
	*gaps = 0;
	*lost = 0;
	for (uint32_t i = 0; i < chunk->info.events; i++) {
		if (chunk->events[i].kind != BC_EVENT_GAP)
			continue;
		*gaps += 1;
		*lost += chunk->events[i].value;
	}
}

void bc_chunk_add_lost(const struct bc_chunk *chunk, uint64_t lost[BC_GAP_CAUSES])
{
	for (uint32_t i = 0; i < chunk->info.events; i++) {
		const struct bc_event *event = &chunk->events[i];
		if (event->kind == BC_EVENT_GAP)
			lost[event->cause < BC_GAP_CAUSES ? event->cause : 0] += event->value;
	}
}

uint64_t bc_chunk_unreported(const struct bc_chunk *chunk, const uint64_t before[BC_GAP_CAUSES],
	uint64_t unreported[BC_GAP_CAUSES])
{
	uint64_t known[BC_GAP_CAUSES];
	uint64_t sum = 0;

	memcpy(known, before, sizeof(known));
	bc_chunk_add_lost(chunk, known);
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++) {
		uint64_t lost = chunk->info.lost[cause];
		unreported[cause] = lost > known[cause] ? lost - known[cause] : 0;
		sum += unreported[cause];
	}
	return sum;
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
	for (size_t i = 0; i < n; i++) {
		uint32_t time = bc_le32(records + i * BC_RECORD_BYTES + 8);
		tick += time != BC_TIME_NONE ? time : 0;
	}
	return tick;
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

int64_t bc_wall_after(int64_t wall_ns, uint64_t since_tick, uint64_t tick, uint64_t clock_hz)
{
	__int128 ticks = (__int128)tick - since_tick;
	__int128 ns = wall_ns + (clock_hz != 0 ? ticks * 1000000000 / clock_hz : 0);

	return ns > INT64_MAX ? INT64_MAX : ns < INT64_MIN ? INT64_MIN : (int64_t)ns;
}

int64_t bc_chunk_wall(const struct bc_chunk_info *info, uint64_t tick, uint64_t clock_hz)
{
	return bc_wall_after(info->wall_ns, info->first_tick, tick, clock_hz);
}
