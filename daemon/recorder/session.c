/* Owns the source, its decoder and its channel, and the limits of the recording in progress.
 *
 * States: RUNNING; STOPPING: the source is ending, and what it has delivered is being decoded;
 * FINISHING: everything is decoded, the last recording has ended and is being sealed; DONE. They
 * only advance: by the owner, by the end of the source, or by a limit that ends it, too.
 *
 * Each limit is applied where it is exact: records in the channel, the bus time of a replay in the
 * decoder, the host's time of a live source by timers, the size in the writer.
 *
 * Invariant: a callback of the source, the decoder or the channel never ends the session: it calls
 * defer_step(), and the loop's next iteration does. on_done() is called once, after all sealing. */
#include "daemon/recorder/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/source/source.h"
#include "capture/usb/board.h"
#include "daemon/base/log.h"
#include "daemon/base/log_limit.h"
#include "daemon/ingest/decoder.h"
#include "daemon/ingest/pipeline.h"
#include "daemon/store/recording_info.h"
#include "daemon/store/writer_report.h"
#include "formats/base/clock.h"
#include "formats/base/text.h"
#include "formats/bus/stamp.h"
#include "formats/segment/segment_header.h"

/* How often a paced replay continues. */
#define PACE_MS 5

/* How often a recording that is cut by the time of day looks at it. */
#define CLOCK_LOOK_NS UINT64_C(1000000000)

/* A cut at a time of day is made this much later: times are only this exact. */
#define EXACT_NS 1000000

/* A cut that is due waits at most this long for the next record. */
#define SILENT_MS 150

enum session_state {
	SESSION_RUNNING,
	SESSION_STOPPING,  /* the source is ending or has ended; the rest is being decoded */
	SESSION_FINISHING, /* the pipeline is writing and sealing */
	SESSION_DONE,
};

enum { TIMER_PACE, TIMER_STOP, TIMER_ROTATE, TIMER_DEFER, TIMERS };

/* The time of a replay: bus time, in ticks since the recording's first, continuous over its epochs.
 * Also the bus times at which to cut the segment, to end the recording, or to wait for the pace. */
struct bus_time {
	uint64_t clock_hz;
	bool has_epoch;
	uint64_t epoch_first; /* first tick of the current epoch */
	uint64_t epoch_base;  /* bus time at that tick */
	/* Bus times; UINT64_MAX: none. */
	uint64_t cut_at;
	uint64_t stop_at;
	uint64_t paced_until;
};

struct bc_session {
	struct bc_session_options options;
	struct bc_session_outcome outcome;
	enum session_state state;
	struct bc_channel *channel;
	struct bc_decoder *decoder;
	bool is_paced;
	bool has_source_ended;
	bool has_data;         /* the first piece has arrived, */
	enum bc_format format; /* in this format */
	uint64_t clock_hz;     /* in use; the source's may have changed */
	bool is_waiting;       /* a piece was refused; the source waits for bc_source_resume() */
	uv_timer_t timers[TIMERS];
	unsigned open_handles;
	struct bus_time time; /* a replay's */
	uint64_t pace_start_ns;

	unsigned unsealed; /* ended recordings that are still being written */

	/* The recording in progress, if `recording` is not NULL. */
	struct bc_recording_info *recording;
	struct bc_rotation rotation;
	struct bc_stop_rules stop;
	bool is_stop_timed;    /* the duration of `stop` runs */
	uint64_t untimed_from; /* the timer is not set for segments from this record on */
	uint64_t cut_ns;     /* the next cut of a live recording, in uv_hrtime(), or UINT64_MAX, */
	int64_t cut_wall_ns; /* or in bc_wall_ns(), or INT64_MAX, if that is earlier */
	bool has_hit_limit;
};

/* Bus time */

static void bus_time_init(struct bus_time *t)
{
	*t = (struct bus_time){
		.clock_hz = BC_DEFAULT_CLOCK_HZ,
		.cut_at = UINT64_MAX,
		.stop_at = UINT64_MAX,
		.paced_until = UINT64_MAX,
	};
}

/* Converts nanoseconds to ticks, at least one; UINT64_MAX: out of range. */
static uint64_t bus_time_ticks(const struct bus_time *t, uint64_t ns)
{
	double ticks = (double)ns * 1e-9 * (double)t->clock_hz;

	return ticks < 1 ? 1 : ticks > 9e18 ? UINT64_MAX : (uint64_t)(ticks + 0.5);
}

/* Adds times; UINT64_MAX is infinity. */
static uint64_t add_times(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Returns the bus time of a tick of the current epoch. */
static uint64_t bus_time_at(const struct bus_time *t, uint64_t tick)
{
	return t->epoch_base + (tick > t->epoch_first ? tick - t->epoch_first : 0);
}

/* Starts an epoch with this tick; the previous one ended with `last`. */
static void bus_time_start_epoch(struct bus_time *t, uint64_t tick, uint64_t last)
{
	if (t->has_epoch)
		t->epoch_base = bus_time_at(t, last);
	t->has_epoch = true;
	t->epoch_first = tick;
}

/* Sets the next cut, counted from a tick of the current epoch. */
static void bus_time_set_cut(struct bus_time *t, const struct bc_rotation *rotation, uint64_t tick)
{
	uint64_t now = bus_time_at(t, tick);

	t->cut_at = UINT64_MAX;
	if (rotation->duration_ns != 0)
		t->cut_at = add_times(now, bus_time_ticks(t, rotation->duration_ns));
	if (rotation->interval_ns != 0) {
		uint64_t interval = bus_time_ticks(t, rotation->interval_ns);
		uint64_t at = add_times(now, interval - tick % interval);
		t->cut_at = at < t->cut_at ? at : t->cut_at;
	}
}

/* Returns the epoch's tick of the earliest of the three times; BC_NO_TICK_LIMIT: none. */
static uint64_t bus_time_limit(const struct bus_time *t)
{
	uint64_t at = t->cut_at < t->stop_at ? t->cut_at : t->stop_at;

	at = at < t->paced_until ? at : t->paced_until;
	if (at == UINT64_MAX)
		return BC_NO_TICK_LIMIT;
	return add_times(t->epoch_first, at > t->epoch_base ? at - t->epoch_base : 0);
}

/* Sets the clock for time limits in a replay; assumes a default if it is unknown. */
static void set_clock(struct bc_session *s, uint64_t clock_hz)
{
	bool is_needed = s->is_paced || s->rotation.duration_ns != 0 ||
			 s->rotation.interval_ns != 0 || s->stop.duration_ns != 0;

	s->time.clock_hz = clock_hz != 0 ? clock_hz : BC_DEFAULT_CLOCK_HZ;
	if (clock_hz == 0 && s->options.source->is_replay && is_needed)
		bc_log(BC_LOG_WARNING,
			"%s: unknown bus clock: time limits assume %u Hz; set clock_hz=",
			s->options.source->name, BC_DEFAULT_CLOCK_HZ);
}

/* Sets the decoder's limit to the next cut, end or pace limit. */
static void set_limit(struct bc_session *s)
{
	bc_decoder_set_tick_limit(s->decoder, bus_time_limit(&s->time));
}

static void on_epoch(void *context, uint64_t tick)
{
	struct bc_session *s = context;
	bool is_first = !s->time.has_epoch;

	bus_time_start_epoch(&s->time, tick, bc_decoder_tick(s->decoder));
	if (is_first && s->options.source->is_replay) {
		s->pace_start_ns = uv_hrtime();
		bus_time_set_cut(&s->time, &s->rotation, tick);
		if (s->stop.duration_ns != 0)
			s->time.stop_at = bus_time_ticks(&s->time, s->stop.duration_ns);
		if (s->is_paced)
			s->time.paced_until = 1;
	}
	set_limit(s);
}

/* A live recording's timer is set again by the first record of the next segment. */
static void cut_segment(struct bc_session *s)
{
	uv_timer_stop(&s->timers[TIMER_ROTATE]);
	s->time.cut_at = UINT64_MAX;
	set_limit(s);
	bc_channel_cut(s->channel);
}

static enum bc_limit_answer on_limit(void *context, uint64_t tick)
{
	struct bc_session *s = context;
	uint64_t now = bus_time_at(&s->time, tick);

	if (now >= s->time.stop_at) {
		s->has_hit_limit = true;
		return BC_LIMIT_END;
	}
	if (now >= s->time.paced_until)
		return BC_LIMIT_WAIT;
	cut_segment(s);
	if (s->options.source->is_replay) {
		bus_time_set_cut(&s->time, &s->rotation, tick);
		set_limit(s);
	}
	return BC_LIMIT_CONTINUE;
}

/* The end of a recording, and of the session */

static void on_defer(uv_timer_t *timer);

/* Continues in the loop's next iteration, outside any callback of the source, channel or owner. */
static void defer_step(struct bc_session *s)
{
	uv_timer_start(&s->timers[TIMER_DEFER], on_defer, 0, 0);
}

/* Ends the session from within a callback of the source. */
static void stop_soon(struct bc_session *s)
{
	if (s->state == SESSION_RUNNING)
		defer_step(s);
}

/* Nothing is recorded. What the flight recorder holds comes from one board, as a recording does. */
static void release_source(struct bc_session *s)
{
	bc_source_bind(s->options.source, s->options.channel.has_flight);
}

/* Of a live recording. */
static void forget_cut(struct bc_session *s)
{
	if (s->options.source->is_replay || s->time.cut_at == UINT64_MAX)
		return;
	s->time.cut_at = UINT64_MAX;
	set_limit(s);
}

/* Ends the recording before position `at`. */
static void end_recording(struct bc_session *s, uint32_t at)
{
	s->options.on_ending(s->options.context);
	s->recording = NULL;
	s->unsealed++;
	uv_timer_stop(&s->timers[TIMER_STOP]);
	uv_timer_stop(&s->timers[TIMER_ROTATE]);
	forget_cut(s);
	bc_channel_finish_recording(s->channel, at);
	release_source(s);
}

void bc_session_finish_recording(struct bc_session *s, uint32_t at)
{
	if (s->recording != NULL)
		end_recording(s, at);
}

static void start_finishing(struct bc_session *s)
{
	if (s->state >= SESSION_FINISHING)
		return;
	s->state = SESSION_FINISHING;
	bc_log_limits_end(s->options.limits); /* before the summary */
	for (int i = 0; i < TIMERS; i++)
		uv_timer_stop(&s->timers[i]);
	if (s->recording != NULL)
		end_recording(s, BC_CHANNEL_NOW);
	if (s->unsealed == 0)
		defer_step(s);
}

/* After the source's end: finishes the decoder, which may have to wait for a free chunk. */
static void finish_decoder(struct bc_session *s)
{
	if (!s->has_source_ended || s->state >= SESSION_FINISHING)
		return;
	if (bc_decoder_finish(s->decoder))
		start_finishing(s);
}

void bc_session_stop(struct bc_session *s)
{
	if (s->state != SESSION_RUNNING)
		return;
	s->state = SESSION_STOPPING;
	bc_decoder_stop(s->decoder);
	bc_source_stop(s->options.source);
}

static void finish_session(struct bc_session *s)
{
	s->state = SESSION_DONE;
	s->options.on_done(s->options.context);
}

static void on_defer(uv_timer_t *timer)
{
	struct bc_session *s = timer->data;

	if (s->state == SESSION_RUNNING)
		bc_session_stop(s);
	else if (s->state == SESSION_FINISHING)
		finish_session(s);
}

void bc_session_end_at(struct bc_session *s, uint32_t at)
{
	if (s->recording != NULL)
		end_recording(s, at);
	bc_decoder_end(s->decoder);
	stop_soon(s);
}

bool bc_session_is_draining(const struct bc_session *s)
{
	return s->state != SESSION_RUNNING;
}

void bc_session_abandon(struct bc_session *s)
{
	bool is_loss = s->recording != NULL || s->unsealed != 0;

	if (is_loss && !s->outcome.has_failed)
		snprintf(s->outcome.err, sizeof(s->outcome.err),
			"the end of the recording could not be written");
	s->outcome.has_failed = s->outcome.has_failed || is_loss;
	bc_session_stop(s);
	start_finishing(s);
}

/* The recording has reached a limit at position `at`. */
static void reach_limit(void *context, uint32_t at)
{
	struct bc_session *s = context;

	if (s->recording == NULL)
		return;
	s->has_hit_limit = true;
	if (!s->options.ends_with_recording) {
		s->options.on_limit(s->options.context, at);
	} else if (at == BC_CHANNEL_NOW) {
		stop_soon(s);
	} else {
		bc_session_end_at(s, at);
	}
}

/* Rotation by time */

static void on_rotate(uv_timer_t *timer);

static int64_t next_multiple(int64_t wall_ns, uint64_t interval_ns)
{
	uint64_t left_ns = interval_ns - (uint64_t)wall_ns % interval_ns;

	return left_ns < (uint64_t)(INT64_MAX - wall_ns) ? wall_ns + (int64_t)left_ns : INT64_MAX;
}

/* Waits for the next cut. Looks at the time of day each second: it may jump (set, suspended). */
static void wait_for_cut(struct bc_session *s)
{
	uint64_t interval_ns = s->rotation.interval_ns;
	int64_t wall_ns = bc_wall_ns();
	uint64_t now = uv_hrtime();
	uint64_t ns = s->cut_ns > now ? s->cut_ns - now : 0;

	forget_cut(s);
	if (interval_ns != 0) {
		/* It was set back. A record may have a time a little later than its arrival. */
		if (s->cut_wall_ns - wall_ns > (int64_t)(interval_ns + CLOCK_LOOK_NS))
			s->cut_wall_ns = next_multiple(wall_ns, interval_ns);
		int64_t left_ns = s->cut_wall_ns - wall_ns;
		ns = left_ns <= 0 ? 0 : (uint64_t)left_ns < ns ? (uint64_t)left_ns : ns;
		ns = ns < CLOCK_LOOK_NS ? ns : CLOCK_LOOK_NS;
	}
	/* The loop's time is in whole milliseconds and may be stale. */
	uv_update_time(s->options.loop);
	uv_timer_start(&s->timers[TIMER_ROTATE], on_rotate, ns / 1000000 + 2, 0);
}

/* Sets the timer for the cut of a segment that starts now, if live: by the host's clocks. */
static void start_rotate_timer(struct bc_session *s, uint64_t since_ns, int64_t wall_ns)
{
	const struct bc_rotation *rotation = &s->rotation;

	if (s->options.source->is_replay)
		return;
	s->cut_ns = UINT64_MAX;
	s->cut_wall_ns = INT64_MAX;
	if (rotation->duration_ns != 0)
		s->cut_ns = since_ns + rotation->duration_ns;
	if (rotation->interval_ns != 0)
		s->cut_wall_ns = next_multiple(wall_ns, rotation->interval_ns);
	if (rotation->duration_ns != 0 || rotation->interval_ns != 0)
		wait_for_cut(s);
	else
		uv_timer_stop(&s->timers[TIMER_ROTATE]);
}

/* Records from before the cut may still be on their way: it is made at the first one from after it,
 * and if the bus is silent, a little later. */
static void on_rotate(uv_timer_t *timer)
{
	struct bc_session *s = timer->data;
	uint64_t now = uv_hrtime();
	int64_t wall_ns = bc_wall_ns();
	uint64_t tick;

	/* A cut too early would be followed by another at the right time. */
	if (now < s->cut_ns && wall_ns < s->cut_wall_ns) {
		wait_for_cut(s);
		return;
	}
	uint64_t due_ns = now >= s->cut_ns ? s->cut_ns
					   : now - (uint64_t)(wall_ns - s->cut_wall_ns - EXACT_NS);
	if (s->time.cut_at != UINT64_MAX || !bc_channel_tick_at(s->channel, &tick, due_ns)) {
		cut_segment(s);
		return;
	}
	s->time.cut_at = bus_time_at(&s->time, tick);
	set_limit(s);
	uv_timer_start(timer, on_rotate, SILENT_MS, 0);
}

/* A segment starts with its first record. */
static bool has_segment(const struct bc_session *s)
{
	uint64_t first_record = bc_channel_segment(s->channel)->first_record;

	return s->recording != NULL && bc_channel_records(s->channel) != first_record;
}

/* Sets the timer for a segment that has started. */
static void time_new_segment(struct bc_session *s)
{
	const struct bc_channel_segment *segment = bc_channel_segment(s->channel);

	if (!has_segment(s) || segment->first_record < s->untimed_from)
		return;
	s->untimed_from = segment->first_record + 1;
	start_rotate_timer(s, segment->since_ns, segment->wall_ns);
}

/* Starts the duration again, from now, if the writer has cut the segment by size. The report may be
 * late: a segment cut here since has its own timer. Multiples of the interval stay the same. */
static void time_cut_by_size(struct bc_session *s, uint64_t first_record)
{
	if (first_record < s->untimed_from ||
		first_record <= bc_channel_segment(s->channel)->first_record)
		return;
	s->untimed_from = first_record + 1;
	if (s->options.source->is_replay || s->rotation.duration_ns == 0)
		return;
	s->cut_ns = uv_hrtime() + s->rotation.duration_ns;
	wait_for_cut(s);
}

void bc_session_set_rotation(struct bc_session *s, const struct bc_rotation *rotation)
{
	bool is_same = rotation->duration_ns == s->rotation.duration_ns &&
		       rotation->interval_ns == s->rotation.interval_ns;

	s->rotation = *rotation;
	if (is_same || s->state != SESSION_RUNNING || s->recording == NULL)
		return;
	if (has_segment(s))
		start_rotate_timer(s, uv_hrtime(), bc_wall_ns());
	if (s->time.has_epoch && s->options.source->is_replay) {
		bus_time_set_cut(&s->time, rotation, bc_decoder_tick(s->decoder));
		set_limit(s);
	}
}

/* Time limits of a recording */

static void on_stop_time(uv_timer_t *timer)
{
	struct bc_session *s = timer->data;

	bc_channel_check_full(s->channel);
	reach_limit(s, BC_CHANNEL_NOW);
}

/* Ends a live recording this long from now by the host's clock, unless it ends earlier. */
static void end_after_host_time(struct bc_session *s, uint64_t ns)
{
	uv_timer_t *timer = &s->timers[TIMER_STOP];
	uint64_t ms = (ns + 999999) / 1000000;

	/* The loop's time may be stale: before the first iteration, it is from before the start. */
	uv_update_time(s->options.loop);
	if (!uv_is_active((uv_handle_t *)timer) || uv_timer_get_due_in(timer) > ms)
		uv_timer_start(timer, on_stop_time, ms, 0);
}

/* A live recording's duration runs from its start; with a board, from the first data. */
static void start_stop_timer(struct bc_session *s)
{
	if (s->recording == NULL || s->is_stop_timed)
		return;
	s->is_stop_timed = true;
	if (!s->options.source->is_replay && s->stop.duration_ns != 0)
		end_after_host_time(s, s->stop.duration_ns);
}

/* Ends a replay by bus time, which records already decoded may have passed. */
static void end_after_bus_time(struct bc_session *s, uint32_t at, uint64_t ns)
{
	uint64_t tick =
		bc_channel_place(s->channel, at != 0 && at != BC_CHANNEL_NOW ? at - 1 : at).tick;
	uint64_t ticks = bus_time_ticks(&s->time, ns);
	uint64_t end = ticks < BC_TICK_END - tick ? tick + ticks : BC_TICK_END;
	uint64_t stop_at = bus_time_at(&s->time, end);

	bc_channel_limit_tick(s->channel, at, end);
	if (stop_at < s->time.stop_at)
		s->time.stop_at = stop_at;
	set_limit(s);
}

void bc_session_end_after(struct bc_session *s, uint32_t at, const struct bc_time_or_size *rest)
{
	uint64_t records = rest->value / BC_RECORD_BYTES;

	switch (rest->unit) {
	case BC_TIME_OR_SIZE_NONE:
	case BC_TIME_OR_SIZE_ALL:
		break;
	case BC_TIME_OR_SIZE_TIME:
		if (s->options.source->is_replay)
			end_after_bus_time(s, at, rest->value);
		else
			end_after_host_time(s, rest->value);
		break;
	case BC_TIME_OR_SIZE_BYTES:
		bc_channel_limit_records(s->channel, at, records != 0 ? records : 1);
		break;
	}
}

/* The start of a recording */

/* Describes the board, which is known once it is connected. */
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

/* Adds the replayed recording's metadata; the new recording's take precedence. */
static void carry_metadata(struct bc_segment_header *header, const struct bc_segment_header *from)
{
	char all[BC_METADATA_MAX];
	char err[160];

	memcpy(all, from->metadata, sizeof(all));
	if (bc_metadata_merge(all, header->metadata, err, sizeof(err)))
		memcpy(header->metadata, all, sizeof(all));
	else
		bc_log(BC_LOG_WARNING, "metadata of the replayed recording left out: %s", err);
}

/* Completes the recording's description from the first data. A replay of a segment keeps the
 * segment's mapping (`from`). */
static void complete_recording(struct bc_session *s, const struct bc_segment_header *from)
{
	struct bc_segment_header *header = &s->recording->header;

	if (s->options.source->board != NULL)
		describe_board(s);
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

void bc_session_start_recording(struct bc_session *s, struct bc_recording_info *recording,
	const struct bc_rotation *rotation, const struct bc_stop_rules *stop)
{
	bc_source_bind(s->options.source, true);
	s->recording = recording;
	s->rotation = *rotation;
	s->stop = *stop;
	s->is_stop_timed = false;
	s->untimed_from = 0;
	s->has_hit_limit = false;
	/* Must precede the first chunk, because the writer's thread reads the description. */
	if (s->has_data)
		complete_recording(s, NULL);
	bc_channel_start_recording(s->channel, recording, stop->records);
	time_new_segment(s); /* it may start with what the flight recorder holds */
	if (s->options.source->board == NULL)
		start_stop_timer(s);
	/* The flight recorder's contents may have reached the limit. */
	if (bc_channel_records_left(s->channel) == 0)
		end_after_host_time(s, 0);
}

/* The source's callbacks */

/* Uses the source's clock, which may have changed if no recording was in progress. */
static void apply_clock(struct bc_session *s)
{
	uint64_t clock_hz = s->options.source->clock_hz;

	s->clock_hz = clock_hz;
	set_clock(s, clock_hz);
	bc_decoder_set_clock(s->decoder, clock_hz);
	bc_channel_set_clock(s->channel, clock_hz);
}

/* The first piece shows the format and clock of the source. */
static void process_first_piece(struct bc_session *s, const struct bc_source_data *data)
{
	struct bc_source *source = s->options.source;

	s->has_data = true;
	s->format = data->format;
	if (source->clock_hz == 0 && data->header != NULL)
		source->clock_hz = data->header->clock_hz;
	if (s->recording != NULL)
		complete_recording(s, data->header);
	if (data->format == BC_FORMAT_RAW6 && data->has_times && source->clock_hz == 0)
		bc_log(BC_LOG_WARNING,
			"%s: unknown bus clock: arrival times ignored, samples are one tick apart; "
			"set clock_hz=",
			source->name);
	apply_clock(s);
}

static bool on_data(void *context, const struct bc_source_data *data)
{
	struct bc_session *s = context;

	if (s->state >= SESSION_FINISHING)
		return true;
	if (!s->has_data)
		process_first_piece(s, data);
	else if (s->clock_hz != s->options.source->clock_hz)
		apply_clock(s);
	if (data->broken != NULL && data->broken->cause != BC_GAP_BOARD && !s->is_waiting &&
		!bc_decoder_is_over(s->decoder))
		s->outcome.breaks++;
	bool is_taken = bc_decoder_push(s->decoder, data);
	s->is_waiting = !is_taken;
	time_new_segment(s);
	if (data->broken == NULL)
		start_stop_timer(s);
	if (bc_decoder_is_over(s->decoder)) {
		bc_source_last_frame(s->options.source); /* the rest is ignored */
		stop_soon(s);
	}
	return is_taken;
}

static void on_damage(void *context, const char *what)
{
	struct bc_session *s = context;

	if (bc_decoder_is_over(s->decoder))
		return; /* it is after the end of the recording */
	s->outcome.damages++;
	bc_log_limited(s->options.limits, BC_LOG_WARNING | BC_LOG_DAMAGED, "%s: %s",
		s->options.source->name, what);
}

static void on_source_notice(
	void *context, enum bc_source_level level, const char *kind, const char *what)
{
	struct bc_session *s = context;
	static const enum bc_log_level levels[] = {
		[BC_SOURCE_INFO] = BC_LOG_INFO,
		[BC_SOURCE_NOTICE] = BC_LOG_NOTICE,
		[BC_SOURCE_WARNING] = BC_LOG_WARNING,
		[BC_SOURCE_BOARD_GONE] = BC_LOG_WARNING | BC_LOG_BOARD_GONE,
		[BC_SOURCE_BOARD_BACK] = BC_LOG_NOTICE | BC_LOG_BOARD_BACK,
	};

	bc_log_limited_text(s->options.limits, levels[level], kind, what);
}

static void on_last(void *context)
{
	struct bc_session *s = context;

	bc_source_last_frame(s->options.source);
}

static void on_source_end(void *context, int status, const char *what)
{
	struct bc_session *s = context;

	if (status == -EBADMSG) {
		on_damage(s, what);
	} else if (status != 0) {
		s->outcome.has_failed = true;
		s->outcome.has_no_device = status == -ENODEV;
		bc_message(s->outcome.err, sizeof(s->outcome.err), "%s: %s",
			s->options.source->name, what);
	}
	s->has_source_ended = true;
	if (s->state == SESSION_RUNNING)
		s->state = SESSION_STOPPING;
	finish_decoder(s);
}

/* The pipeline's callbacks */

void bc_session_on_slot_free(struct bc_session *s)
{
	bc_channel_on_slot_free(s->channel);
	if (s->state >= SESSION_FINISHING)
		return;
	if (s->has_source_ended)
		finish_decoder(s);
	else if (s->is_waiting)
		bc_source_resume(s->options.source);
}

void bc_session_on_stats(struct bc_session *s)
{
	const struct bc_writer_stats *stats = bc_pipeline_stats(s->options.pipeline);

	if (s->recording == NULL || stats->recording_tag != s->recording->tag)
		return;
	if (stats->is_full) {
		reach_limit(s, BC_CHANNEL_NOW);
		return;
	}
	if (s->state == SESSION_RUNNING)
		time_cut_by_size(s, stats->first_record);
}

void bc_session_on_ended(struct bc_session *s)
{
	s->unsealed--;
	if (s->state == SESSION_FINISHING && s->unsealed == 0)
		finish_session(s);
}

/* Pace */

/* What a pipe still delivers after a stop is not paced. */
static void on_pace(uv_timer_t *timer)
{
	struct bc_session *s = timer->data;
	double elapsed = (double)(uv_hrtime() - s->pace_start_ns) * 1e-9;
	double ticks = elapsed * s->options.speed * (double)s->time.clock_hz;

	if (!s->time.has_epoch)
		return;
	bool is_free = s->state != SESSION_RUNNING || ticks > 9e18;
	s->time.paced_until = is_free ? UINT64_MAX : (uint64_t)ticks + 1;
	set_limit(s);
	if (s->has_source_ended)
		finish_decoder(s);
	else if (s->is_waiting)
		bc_source_resume(s->options.source);
}

/* Open and close */

static void on_timer_closed(uv_handle_t *handle)
{
	struct bc_session *s = handle->data;

	if (--s->open_handles != 0)
		return;
	bc_decoder_close(s->decoder);
	free(s);
}

void bc_session_close(struct bc_session *s)
{
	if (s == NULL)
		return;
	bc_source_close(s->options.source);
	bc_channel_close(s->channel);
	for (int i = 0; i < TIMERS; i++)
		uv_close((uv_handle_t *)&s->timers[i], on_timer_closed);
}

static int open_channel(struct bc_session *s)
{
	struct bc_channel_options channel = s->options.channel;

	channel.loop = s->options.loop;
	channel.pipeline = s->options.pipeline;
	channel.is_live = s->options.source->is_live;
	channel.can_wait = !s->options.source->is_live && !s->is_paced;
	channel.session = s;
	channel.on_full = reach_limit;
	return bc_channel_open(&s->channel, &channel);
}

static int open_decoder(struct bc_session *s)
{
	struct bc_source *source = s->options.source;
	struct bc_decoder_options decoder = {
		.channel = s->channel,
		.mapping = s->options.mapping,
		.is_live = source->is_live || s->is_paced,
		.clock_hz = source->clock_hz,
		.context = s,
		.on_epoch = on_epoch,
		.on_limit = on_limit,
		.on_last = on_last,
		.on_damage = on_damage,
	};

	return bc_decoder_open(&s->decoder, &decoder);
}

int bc_session_start(struct bc_session **session, const struct bc_session_options *options)
{
	struct bc_session *s = calloc(1, sizeof(*s));
	struct bc_source *source = options->source;

	if (s == NULL) {
		bc_source_close(source);
		return -ENOMEM;
	}
	s->options = *options;
	s->is_paced = source->is_replay && options->speed != 0;
	bus_time_init(&s->time);
	int rc = open_channel(s);
	if (rc == 0)
		rc = open_decoder(s);
	if (rc != 0) {
		bc_source_close(source);
		bc_channel_close(s->channel);
		free(s);
		return rc;
	}
	for (int i = 0; i < TIMERS; i++) {
		uv_timer_init(options->loop, &s->timers[i]);
		s->timers[i].data = s;
	}
	s->open_handles = TIMERS;
	release_source(s);
	struct bc_source_sink sink = {
		.context = s,
		.data = on_data,
		.damage = on_damage,
		.log = on_source_notice,
		.end = on_source_end,
	};
	rc = bc_source_start(source, &sink);
	if (rc != 0) {
		bc_session_close(s);
		return rc;
	}
	if (s->is_paced)
		uv_timer_start(&s->timers[TIMER_PACE], on_pace, PACE_MS, PACE_MS);
	*session = s;
	return 0;
}

bool bc_session_hit_limit(const struct bc_session *s)
{
	return s->has_hit_limit;
}

struct bc_channel *bc_session_channel(const struct bc_session *s)
{
	return s->channel;
}

const struct bc_session_outcome *bc_session_outcome(const struct bc_session *s)
{
	return &s->outcome;
}
