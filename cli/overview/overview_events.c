#include <errno.h>
#include <stdlib.h>

#include "cli/overview/overview_internal.h"
#include "formats/segment/segment_index.h"

/* The time of events in the middle of further chunks is estimated. */
#define DECODED_CHUNKS 512u

struct listing {
	struct bc_overview *overview;
	int64_t from_ns;
	int64_t to_ns;
	bc_overview_event_cb on_event;
	void *context;
	bool is_over;
	uint32_t decoded;
	uint64_t ticks[BC_CHUNK_RECORDS];
};

static bool is_listed(const struct bc_event *event)
{
	return event->kind == BC_EVENT_MARK || event->kind == BC_EVENT_TRIGGER ||
	       event->kind == BC_EVENT_GAP;
}

/* Whether the tick of some event is not in the chunk's header. */
static bool needs_records(const struct bc_chunk *chunk)
{
	for (uint32_t i = 0; i < chunk->info.events; i++)
		if (is_listed(&chunk->events[i]) && chunk->events[i].position != 0 &&
			chunk->events[i].position < chunk->info.records)
			return true;
	return false;
}

static uint64_t tick_of(
	const struct listing *l, const struct bc_chunk *chunk, uint32_t position, bool is_decoded)
{
	const struct bc_chunk_info *info = &chunk->info;
	uint64_t span = info->last_tick - info->first_tick;

	if (position == 0 || info->records == 0)
		return info->first_tick;
	if (position >= info->records)
		return info->last_tick;
	if (is_decoded)
		return l->ticks[position];
	return info->first_tick + (uint64_t)((unsigned __int128)span * position / info->records);
}

static void list_events(struct listing *l, const struct bc_overview_segment *s,
	const struct bc_chunk *chunk, bool is_decoded)
{
	for (uint32_t i = 0; i < chunk->info.events && !l->is_over; i++) {
		const struct bc_event *event = &chunk->events[i];
		bool is_gap = event->kind == BC_EVENT_GAP;
		if (!is_listed(event))
			continue;
		struct bc_overview_event out = {.kind = event->kind,
			.recording = s->recording,
			.time_ns = bc_chunk_wall(&chunk->info,
				tick_of(l, chunk, event->position, is_decoded), s->clock_hz),
			.record = chunk->info.first_record + event->position,
			.text = chunk->text + event->text,
			.text_bytes = event->text_bytes,
			.cause = event->cause,
			.lost = is_gap ? event->value : 0,
			.is_exact = is_gap && event->exact,
			.duration_ns = is_gap ? event->duration_ns : 0};
		if (out.time_ns >= l->from_ns && out.time_ns <= l->to_ns)
			l->is_over = !l->on_event(l->context, &out);
	}
}

static int list_row(
	struct listing *l, const struct bc_overview_segment *s, struct bc_chunk_row *row)
{
	struct bc_overview *o = l->overview;
	struct bc_chunk *chunk = o->chunk;
	bool is_decoded = false;

	if (!bc_overview_pace(o, bc_chunk_info_header_bytes(&row->info)))
		return -ECANCELED;
	if (!bc_overview_read_header(o, row, chunk))
		return 0;
	if (needs_records(chunk) && l->decoded < DECODED_CHUNKS) {
		l->decoded++;
		if (!bc_overview_pace(o, bc_chunk_encoded_bytes(&row->info)))
			return -ECANCELED;
		is_decoded = bc_overview_read_chunk(o, row, chunk);
		if (is_decoded)
			bc_chunk_ticks(chunk, l->ticks);
	}
	list_events(l, s, chunk, is_decoded);
	return 0;
}

static int list_segment(struct listing *l, const struct bc_overview_segment *s)
{
	struct bc_chunk_row *rows = bc_overview_load_rows(l->overview, s);
	int rc = 0;

	for (uint32_t i = 0; rows != NULL && rc == 0 && !l->is_over && i < s->rows; i++)
		if (rows[i].info.events != 0 && rows[i].info.wall_ns <= l->to_ns &&
			bc_overview_row_to(&rows[i].info, s->clock_hz) >= l->from_ns)
			rc = list_row(l, s, &rows[i]);
	return rc;
}

int bc_overview_events(struct bc_overview *o, int64_t from_ns, int64_t to_ns,
	bc_overview_event_cb on_event, void *context)
{
	struct listing *l = calloc(1, sizeof(*l));
	int rc = 0;

	if (l == NULL)
		return -ENOMEM;
	o->stop = 0;
	l->overview = o;
	l->from_ns = from_ns;
	l->to_ns = to_ns;
	l->on_event = on_event;
	l->context = context;
	for (uint32_t i = 0; rc == 0 && !l->is_over && i < o->segment_count; i++) {
		const struct bc_overview_segment *s = o->segments[i];
		if (!bc_overview_pace(o, 0))
			rc = -ECANCELED;
		else if (s->has_events && s->from_ns <= to_ns && s->to_ns >= from_ns)
			rc = list_segment(l, s);
	}
	free(l);
	return o->stop != 0 ? o->stop : rc;
}
