#include "daemon/session_parts.h"

#include <stdio.h>
#include <string.h>

#include "capture/board.h"
#include "daemon/clock.h"
#include "daemon/log.h"
#include "formats/metadata.h"

/* Rotation by time */

static void on_rotate(uv_timer_t *timer);

/* A live recording's segments are cut by the host's time. */
void bc_session_time_rotation(struct bc_session *s)
{
	const struct bc_rotation *rotation = &s->rotation;
	uint64_t ns = UINT64_MAX;

	if (s->options.source->is_replay || s->recording == NULL)
		return;
	if (rotation->duration_ns != 0)
		ns = rotation->duration_ns;
	if (rotation->interval_ns != 0) {
		uint64_t until = rotation->interval_ns -
				 (uint64_t)bc_wall_ns() % rotation->interval_ns;
		ns = until < ns ? until : ns;
	}
	s->is_rotation_timed = true;
	if (ns == UINT64_MAX) {
		uv_timer_stop(&s->timers[TIMER_ROTATE]);
		return;
	}
	/* The loop's time is that of its turn, in whole milliseconds: a cut that came before its
	 * moment would be followed by another at it. */
	uv_update_time(s->options.loop);
	uv_timer_start(&s->timers[TIMER_ROTATE], on_rotate, ns / 1000000 + 2, 0);
}

static void on_rotate(uv_timer_t *timer)
{
	struct bc_session *s = timer->data;

	bc_lane_cut(s->lane);
	s->has_cut = true;
	s->records_at_cut = bc_lane_records(s->lane);
	s->is_rotation_timed = false;
}

/* A segment begins with its first record: from then on its time runs. */
void bc_session_time_segment(struct bc_session *s)
{
	if (s->recording != NULL && !s->is_rotation_timed &&
		bc_lane_records(s->lane) != s->records_at_cut)
		bc_session_time_rotation(s);
}

/* A board tells who it is when it is there. */
static void describe_board(struct bc_session *s)
{
	struct bc_segment_header *header = &s->recording->header;
	const struct bc_source *source = s->options.source;
	const struct bc_board *board = source->board;
	const char *serial = board->has_info && board->own_serial[0] != '\0'
				     ? board->own_serial
				     : board->identity.serial;

	snprintf(header->source_name, sizeof(header->source_name), "%s", source->name);
	snprintf(header->board_serial, sizeof(header->board_serial), "%.*s",
		(int)sizeof(header->board_serial) - 1, serial);
	if (board->has_info)
		memcpy(header->board_firmware, board->firmware, sizeof(header->board_firmware));
}

static void on_stop_time(uv_timer_t *timer)
{
	struct bc_session *s = timer->data;

	bc_lane_check_full(s->lane);
	bc_session_reach_limit(s, BC_LANE_NOW);
}

/* A live recording ends so long from now by the host's clock, unless it does so earlier already. */
static void set_host_rest(struct bc_session *s, uint64_t ns)
{
	uv_timer_t *timer = &s->timers[TIMER_STOP];
	uint64_t ms = (ns + 999999) / 1000000;

	if (!uv_is_active((uv_handle_t *)timer) || uv_timer_get_due_in(timer) > ms)
		uv_timer_start(timer, on_stop_time, ms, 0);
}

/* The time of a live recording runs from its start; from a board's first data, for nobody knows
 * when that comes. */
static void start_stop_timer(struct bc_session *s)
{
	if (!s->options.source->is_replay && s->stop.duration_ns != 0)
		set_host_rest(s, s->stop.duration_ns);
}

/* What was noted before stays, below what is noted now. */
static void carry_metadata(struct bc_segment_header *header, const struct bc_segment_header *from)
{
	char all[BC_METADATA_MAX];
	char why[160];

	memcpy(all, from->metadata, sizeof(all));
	if (bc_metadata_merge(all, header->metadata, why, sizeof(why)))
		memcpy(header->metadata, all, sizeof(all));
	else
		bc_log(BC_LOG_WARNING, "the metadata of what is replayed are left out: %s", why);
}

/* What only the data tell of the recording. A replay of a segment is as its segment was (`from`);
 * one of a raw capture is mapped anew. */
void bc_session_complete_recording(struct bc_session *s, const struct bc_segment_header *from)
{
	struct bc_segment_header *header = &s->recording->header;

	if (s->options.source->board != NULL) {
		describe_board(s);
		start_stop_timer(s);
	}
	if (s->format == BC_FORMAT_BCP1 || s->format == BC_FORMAT_RAW6) {
		header->has_mapping = true;
		header->mapping = s->options.mapping->options;
	} else if (from != NULL) {
		header->has_mapping = from->has_mapping;
		header->mapping = from->mapping;
	}
	if (from != NULL) {
		memcpy(header->board_serial, from->board_serial, sizeof(header->board_serial));
		memcpy(header->board_firmware, from->board_firmware,
			sizeof(header->board_firmware));
		carry_metadata(header, from);
	}
	header->clock_hz = s->options.source->clock_hz;
}

/* Beginning */

uint32_t bc_session_record(struct bc_session *s, const struct bc_session_recording *what)
{
	s->recording = what->recording;
	s->rotation = what->rotation;
	s->stop = what->stop;
	s->is_rotation_timed = false;
	s->records_at_cut = 0;
	s->has_cut = false;
	s->segment = 0;
	s->has_hit_limit = false;
	/* Before its first chunk is sent: the writer's thread reads it then. */
	if (s->has_data)
		bc_session_complete_recording(s, NULL);
	uint32_t at = bc_lane_record(
		s->lane, what->recording, &what->before, what->at, what->stop.records);
	if (s->options.source->board == NULL)
		start_stop_timer(s);
	if (bc_lane_room(s->lane) == 0)
		set_host_rest(s, 0); /* what was held is all that it may have */
	return at;
}

/* A replay ends by the bus's time, which what it has taken already may have passed. */
static void set_bus_rest(struct bc_session *s, uint32_t at, uint64_t ns)
{
	uint64_t tick = bc_lane_place(s->lane, at != 0 && at != BC_LANE_NOW ? at - 1 : at).tick;
	uint64_t ticks = bc_bus_ticks(&s->time, ns);
	uint64_t end = ticks < BC_TICK_END - tick ? tick + ticks : BC_TICK_END;
	uint64_t stop_at = bc_bus_time(&s->time, end);

	bc_lane_set_room_until(s->lane, at, end);
	if (stop_at < s->time.stop_at)
		s->time.stop_at = stop_at;
	bc_session_set_limit(s);
}

void bc_session_set_rest(struct bc_session *s, uint32_t at, const struct bc_length *rest)
{
	uint64_t records = rest->value / BC_RECORD_BYTES;

	switch (rest->unit) {
	case BC_LENGTH_NONE:
	case BC_LENGTH_ALL:
		break;
	case BC_LENGTH_TIME:
		if (s->options.source->is_replay)
			set_bus_rest(s, at, rest->value);
		else
			set_host_rest(s, rest->value);
		break;
	case BC_LENGTH_BYTES:
		bc_lane_set_room(s->lane, at, records != 0 ? records : 1);
		break;
	}
}

/* The end */

/* The recording gets nothing more. */
void bc_session_end_recording(struct bc_session *s, uint32_t at)
{
	s->recording = NULL;
	s->unsealed++;
	uv_timer_stop(&s->timers[TIMER_STOP]);
	uv_timer_stop(&s->timers[TIMER_ROTATE]);
	bc_lane_finish(s->lane, at);
}

void bc_session_finish(struct bc_session *s, uint32_t at)
{
	if (s->recording != NULL)
		bc_session_end_recording(s, at);
}

/* The recording is as long as it may be, up to `at`. */
void bc_session_reach_limit(struct bc_session *s, uint32_t at)
{
	if (s->recording == NULL)
		return;
	s->has_hit_limit = true;
	if (!s->options.ends_with_recording) {
		s->options.on_limit(s->options.context, at);
	} else if (at == BC_LANE_NOW) {
		bc_session_stop_soon(s);
	} else {
		bc_session_end_at(s, at);
	}
}

void bc_session_set_rotation(struct bc_session *s, const struct bc_rotation *rotation)
{
	s->rotation = *rotation;
	if (s->state != SESSION_RUNNING || s->recording == NULL)
		return;
	s->is_rotation_timed = false;
	bc_session_time_segment(s);
	if (s->time.has_epoch && s->options.source->is_replay) {
		bc_bus_time_set_cut(&s->time, rotation, bc_decoder_tick(s->decoder));
		bc_session_set_limit(s);
	}
}
