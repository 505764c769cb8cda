#include "daemon/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "capture/board.h"
#include "daemon/clock.h"
#include "daemon/decoder.h"
#include "daemon/log.h"

/* A paced replay takes what is due this often. */
#define PACE_MS 5

/* A bus of the time; docs/configuration.md. */
#define CLOCK_HZ 66000000u

/* After so many, damage is counted but not logged one by one. */
#define DAMAGES_LOGGED 10

enum session_state {
	SESSION_RUNNING,
	SESSION_STOPPING,  /* the source was told to end, or has ended: its rest is being taken */
	SESSION_FINISHING, /* the pipeline writes and seals what it has */
	SESSION_DONE,
};

enum { TIMER_PACE, TIMER_STOP, TIMER_ROTATE, TIMER_DEFER, TIMERS };

struct bc_session {
	struct bc_session_options options;
	struct bc_session_outcome outcome;
	enum session_state state;
	struct bc_decoder *decoder;
	bool is_paced;
	bool has_source_ended;
	bool is_cut_short; /* a replay was stopped before its end */
	bool has_data;     /* the first piece has come */
	bool is_waiting;   /* the source was refused, and waits to be resumed */
	bool is_kept;      /* the piece that it was refused is in the raw capture already */
	uv_timer_t timers[TIMERS];
	unsigned open_handles;
	bool is_rotation_timed;  /* the timer runs for the present segment */
	uint64_t records_at_cut; /* the segment has begun when there are more */
	bool has_cut;            /* the next segment's number is our doing */
	uint32_t segment;        /* the writer's latest */

	/* A replay's time is its bus's: ticks since the recording's first, over all epochs. */
	uint64_t clock_hz;
	uint64_t epoch_first; /* tick with which the present epoch begins */
	uint64_t epoch_base;  /* bus time at that tick */
	bool has_epoch;
	uint64_t cut_at; /* bus time of the next cut; UINT64_MAX: none */
	uint64_t stop_at;
	uint64_t paced_until;
	uint64_t pace_start_ns;
};

/* Bus time */

static uint64_t ticks_of(const struct bc_session *s, uint64_t ns)
{
	double ticks = (double)ns * 1e-9 * (double)s->clock_hz;

	return ticks < 1 ? 1 : ticks > 9e18 ? UINT64_MAX : (uint64_t)(ticks + 0.5);
}

/* Limits of time in a replay need a clock; where nobody tells it, it is taken for a usual one. */
static void set_clock(struct bc_session *s, uint64_t clock_hz)
{
	const struct bc_session_options *o = &s->options;
	bool is_needed = s->is_paced || o->rotation.duration_ns != 0 ||
			 o->rotation.interval_ns != 0 || o->stop.duration_ns != 0;

	s->clock_hz = clock_hz != 0 ? clock_hz : CLOCK_HZ;
	if (clock_hz == 0 && o->source->is_replay && is_needed)
		bc_log(BC_LOG_WARNING,
			"%s: its clock is not known; taken for %u Hz: name it with ,clock_hz=",
			o->source->name, CLOCK_HZ);
}

/* Sums of times that may be for ever. */
static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t bus_time(const struct bc_session *s, uint64_t tick)
{
	return s->epoch_base + (tick > s->epoch_first ? tick - s->epoch_first : 0);
}

/* Gives the decoder the nearest of what ends a segment, the recording or the pace. */
static void set_limit(struct bc_session *s)
{
	uint64_t at = s->cut_at < s->stop_at ? s->cut_at : s->stop_at;

	at = at < s->paced_until ? at : s->paced_until;
	uint64_t limit = BC_NO_TICK_LIMIT;
	if (at != UINT64_MAX)
		limit = add(s->epoch_first, at > s->epoch_base ? at - s->epoch_base : 0);
	bc_decoder_set_tick_limit(s->decoder, limit);
}

static void set_cut(struct bc_session *s, uint64_t now, uint64_t tick)
{
	const struct bc_rotation *rotation = &s->options.rotation;

	s->cut_at = UINT64_MAX;
	if (!s->options.source->is_replay)
		return;
	if (rotation->duration_ns != 0)
		s->cut_at = add(now, ticks_of(s, rotation->duration_ns));
	if (rotation->interval_ns != 0) {
		uint64_t interval = ticks_of(s, rotation->interval_ns);
		uint64_t at = add(now, interval - tick % interval);
		s->cut_at = at < s->cut_at ? at : s->cut_at;
	}
}

static void on_epoch(void *context, uint64_t tick)
{
	struct bc_session *s = context;

	if (!s->has_epoch) {
		s->has_epoch = true;
		s->epoch_first = tick;
		s->pace_start_ns = uv_hrtime();
		set_cut(s, 0, tick);
		if (s->options.source->is_replay && s->options.stop.duration_ns != 0)
			s->stop_at = ticks_of(s, s->options.stop.duration_ns);
		if (s->is_paced)
			s->paced_until = 1;
	} else {
		s->epoch_base = bus_time(s, bc_decoder_tick(s->decoder));
		s->epoch_first = tick;
	}
	set_limit(s);
}

static enum bc_limit_answer on_limit(void *context, uint64_t tick)
{
	struct bc_session *s = context;
	uint64_t now = bus_time(s, tick);

	if (now >= s->stop_at)
		return BC_LIMIT_END;
	if (now >= s->paced_until)
		return BC_LIMIT_WAIT;
	bc_pipeline_cut(s->options.pipeline);
	set_cut(s, now, tick);
	set_limit(s);
	return BC_LIMIT_GO_ON;
}

/* The end */

static void finish(struct bc_session *s)
{
	if (s->state >= SESSION_FINISHING)
		return;
	s->state = SESSION_FINISHING;
	for (int i = 0; i < TIMERS; i++)
		uv_timer_stop(&s->timers[i]);
	bc_pipeline_finish(s->options.pipeline);
}

/* After the source's end: what the decoder still holds may have to wait for room, too. */
static void finish_decoder(struct bc_session *s)
{
	if (!s->has_source_ended || s->state >= SESSION_FINISHING)
		return;
	/* Where a replay was cut short, nothing is torn. */
	if (s->is_cut_short || bc_decoder_finish(s->decoder))
		finish(s);
}

static void on_defer(uv_timer_t *timer)
{
	bc_session_stop(timer->data);
}

/* Ends the session, from within a call of the source: on the loop's next turn. */
static void stop_soon(struct bc_session *s)
{
	if (s->state == SESSION_RUNNING)
		uv_timer_start(&s->timers[TIMER_DEFER], on_defer, 0, 0);
}

void bc_session_stop(struct bc_session *s)
{
	if (s->state != SESSION_RUNNING)
		return;
	s->state = SESSION_STOPPING;
	s->is_cut_short = s->options.source->is_replay;
	bc_source_stop(s->options.source);
}

bool bc_session_is_draining(const struct bc_session *s)
{
	return s->state != SESSION_RUNNING;
}

void bc_session_abandon(struct bc_session *s)
{
	if (!s->outcome.has_failed)
		snprintf(s->outcome.why, sizeof(s->outcome.why),
			"what was in memory could not be written and is given up");
	s->outcome.has_failed = true;
	bc_session_stop(s);
	bc_pipeline_abandon(s->options.pipeline);
	finish(s);
}

/* The source's calls */

/* Rotation by time */

static void on_rotate(uv_timer_t *timer);

/* A live recording's segments are cut by the host's time. */
static void set_rotation_timer(struct bc_session *s)
{
	const struct bc_rotation *rotation = &s->options.rotation;
	uint64_t ns = UINT64_MAX;

	if (s->options.source->is_replay)
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

	bc_pipeline_cut(s->options.pipeline);
	s->has_cut = true;
	s->records_at_cut = bc_pipeline_records(s->options.pipeline);
	s->is_rotation_timed = false;
}

/* A segment begins with its first record: from then on its time runs. */
static void time_segment(struct bc_session *s)
{
	if (!s->is_rotation_timed && bc_pipeline_records(s->options.pipeline) != s->records_at_cut)
		set_rotation_timer(s);
}

/* A board tells who it is when it is there. */
static void describe_board(struct bc_session *s)
{
	struct bc_segment_header *header = &s->options.recording->header;
	const struct bc_source *source = s->options.source;
	const struct bc_board *board = source->board;
	const char *serial = board->has_info && board->own_serial[0] != '\0'
				     ? board->own_serial
				     : board->identity.serial;

	header->clock_hz = source->clock_hz;
	snprintf(header->source_name, sizeof(header->source_name), "%s", source->name);
	snprintf(header->board_serial, sizeof(header->board_serial), "%.*s",
		(int)sizeof(header->board_serial) - 1, serial);
	if (board->has_info)
		memcpy(header->board_firmware, board->firmware, sizeof(header->board_firmware));
}

static void on_stop_time(uv_timer_t *timer);

/* The time of a live recording runs from its start; from a board's first data, for nobody knows
 * when that comes. */
static void start_stop_timer(struct bc_session *s)
{
	uint64_t ns = s->options.stop.duration_ns;

	if (!s->options.source->is_replay && ns != 0)
		uv_timer_start(&s->timers[TIMER_STOP], on_stop_time, (ns + 999999) / 1000000, 0);
}

/* What only the data tell of the recording. A replay of a segment is as its segment was; one of a
 * raw capture is mapped anew. */
static void complete_recording(struct bc_session *s, const struct bc_source_data *data)
{
	struct bc_segment_header *header = &s->options.recording->header;

	s->has_data = true;
	if (s->options.source->board != NULL) {
		describe_board(s);
		start_stop_timer(s);
	}
	if (data->format == BC_FORMAT_BCP1 || data->format == BC_FORMAT_RAW6) {
		header->has_mapping = true;
		header->mapping = s->options.mapping->options;
	} else if (data->header != NULL) {
		header->has_mapping = data->header->has_mapping;
		header->mapping = data->header->mapping;
	}
	if (data->header != NULL) {
		memcpy(header->board_serial, data->header->board_serial,
			sizeof(header->board_serial));
		memcpy(header->board_firmware, data->header->board_firmware,
			sizeof(header->board_firmware));
		memcpy(header->metadata, data->header->metadata, sizeof(header->metadata));
		if (header->clock_hz == 0)
			header->clock_hz = data->header->clock_hz;
	}
	s->options.source->clock_hz = header->clock_hz;
	if (data->format == BC_FORMAT_RAW6 && data->has_times && header->clock_hz == 0)
		bc_log(BC_LOG_WARNING,
			"%s: its samples have times, but their clock is not known: a tick each; "
			"name "
			"it with ,clock_hz=",
			s->options.source->name);
	set_clock(s, header->clock_hz);
	bc_decoder_set_clock(s->decoder, header->clock_hz);
}

/* Keeps a piece as it came, once: not when it is offered again. Returns false when it must wait. */
static bool keep_raw(struct bc_session *s, const struct bc_source_data *data)
{
	if (!s->is_kept && !bc_decoder_is_over(s->decoder))
		s->is_kept = bc_pipeline_keep_raw(
			s->options.pipeline, data, s->options.source->is_live);
	return s->is_kept || bc_decoder_is_over(s->decoder);
}

static bool on_data(void *context, const struct bc_source_data *data)
{
	struct bc_session *s = context;

	if (s->state >= SESSION_FINISHING)
		return true;
	if (!s->has_data)
		complete_recording(s, data);
	if (data->broken != NULL && data->broken->cause != BC_GAP_BOARD && !s->is_waiting)
		s->outcome.breaks++;
	bool is_taken = keep_raw(s, data) && bc_decoder_push(s->decoder, data);
	s->is_waiting = !is_taken;
	s->is_kept = s->is_kept && !is_taken;
	time_segment(s);
	if (bc_decoder_is_over(s->decoder)) {
		bc_source_last(s->options.source); /* nothing more is wanted of it */
		stop_soon(s);
	}
	return is_taken;
}

static void on_damage(void *context, const char *what)
{
	struct bc_session *s = context;

	if (++s->outcome.damages <= DAMAGES_LOGGED)
		bc_log(BC_LOG_WARNING, "%s: %s", s->options.source->name, what);
	if (s->outcome.damages == DAMAGES_LOGGED)
		bc_log(BC_LOG_WARNING, "%s: further damage is counted, and not logged one by one",
			s->options.source->name);
}

static void on_news(void *context, enum bc_news news, const char *what)
{
	static const enum bc_log_level levels[] = {
		[BC_NEWS_INFO] = BC_LOG_INFO,
		[BC_NEWS_NOTICE] = BC_LOG_NOTICE,
		[BC_NEWS_WARNING] = BC_LOG_WARNING,
	};

	(void)context;
	bc_log(levels[news], "%s", what);
}

static void on_last(void *context)
{
	struct bc_session *s = context;

	bc_source_last(s->options.source);
}

static void on_source_end(void *context, int status, const char *what)
{
	struct bc_session *s = context;

	if (status == -EBADMSG) {
		on_damage(s, what);
	} else if (status != 0) {
		s->outcome.has_failed = true;
		s->outcome.has_no_device = status == -ENODEV;
		snprintf(s->outcome.why, sizeof(s->outcome.why), "%s: %s", s->options.source->name,
			what);
	}
	s->has_source_ended = true;
	if (s->state == SESSION_RUNNING)
		s->state = SESSION_STOPPING;
	finish_decoder(s);
}

/* The pipeline's news */

void bc_session_on_room(struct bc_session *s)
{
	if (s->has_source_ended)
		finish_decoder(s);
	else if (s->is_waiting)
		bc_source_resume(s->options.source);
}

void bc_session_on_report(struct bc_session *s)
{
	const struct bc_writer_report *report = bc_pipeline_report(s->options.pipeline);

	if (report->is_full)
		stop_soon(s);
	if (s->state != SESSION_RUNNING || report->file[0] == '\0')
		return;
	bool is_new = report->segment != s->segment;
	s->segment = report->segment;
	if (is_new && !s->has_cut)
		set_rotation_timer(s); /* the writer has cut, by size */
	s->has_cut = s->has_cut && !is_new;
}

void bc_session_set_rotation(struct bc_session *s, const struct bc_rotation *rotation)
{
	s->options.rotation = *rotation;
	if (s->state != SESSION_RUNNING)
		return;
	s->is_rotation_timed = false;
	time_segment(s);
	if (s->has_epoch) {
		uint64_t tick = bc_decoder_tick(s->decoder);
		set_cut(s, bus_time(s, tick), tick);
		set_limit(s);
	}
}

void bc_session_on_ended(struct bc_session *s)
{
	s->state = SESSION_DONE;
	s->options.on_done(s->options.context);
}

/* Pace */

static void on_pace(uv_timer_t *timer)
{
	struct bc_session *s = timer->data;
	double elapsed = (double)(uv_hrtime() - s->pace_start_ns) * 1e-9;
	double ticks = elapsed * s->options.speed * (double)s->clock_hz;

	if (!s->has_epoch)
		return;
	s->paced_until = ticks > 9e18 ? UINT64_MAX : (uint64_t)ticks + 1;
	set_limit(s);
	if (s->has_source_ended)
		finish_decoder(s);
	else if (s->is_waiting)
		bc_source_resume(s->options.source);
}

static void on_stop_time(uv_timer_t *timer)
{
	bc_session_stop(timer->data);
}

/* Life */

static void on_closed(uv_handle_t *handle)
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
	for (int i = 0; i < TIMERS; i++)
		uv_close((uv_handle_t *)&s->timers[i], on_closed);
}

static void start_timers(struct bc_session *s)
{
	if (s->is_paced)
		uv_timer_start(&s->timers[TIMER_PACE], on_pace, PACE_MS, PACE_MS);
	if (s->options.source->board == NULL)
		start_stop_timer(s);
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
	s->clock_hz = source->clock_hz != 0 ? source->clock_hz : CLOCK_HZ;
	s->is_paced = source->is_replay && options->speed != 0;
	s->cut_at = UINT64_MAX;
	s->stop_at = UINT64_MAX;
	s->paced_until = UINT64_MAX;
	struct bc_decoder_options decoder = {
		.pipeline = options->pipeline,
		.mapping = options->mapping,
		.is_live = source->is_live || s->is_paced,
		.clock_hz = source->clock_hz,
		.records_max = options->stop.records,
		.context = s,
		.on_epoch = on_epoch,
		.on_limit = on_limit,
		.on_last = on_last,
		.on_damage = on_damage,
	};
	int rc = bc_decoder_open(&s->decoder, &decoder);
	if (rc != 0) {
		bc_source_close(source);
		free(s);
		return rc;
	}
	for (int i = 0; i < TIMERS; i++) {
		uv_timer_init(options->loop, &s->timers[i]);
		s->timers[i].data = s;
	}
	s->open_handles = TIMERS;
	struct bc_source_sink sink = {
		.context = s,
		.data = on_data,
		.damage = on_damage,
		.news = on_news,
		.end = on_source_end,
	};
	rc = bc_source_start(source, &sink);
	if (rc != 0) {
		bc_session_close(s);
		return rc;
	}
	bc_pipeline_begin(options->pipeline, options->recording);
	start_timers(s);
	*session = s;
	return 0;
}

const struct bc_session_outcome *bc_session_outcome(const struct bc_session *s)
{
	return &s->outcome;
}
