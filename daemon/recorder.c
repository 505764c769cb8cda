#include "daemon/recorder_parts.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/log.h"

/* The sessions' calls */

void bc_recorder_forget_replay(struct bc_recorder *r)
{
	r->replay.session = NULL;
	r->replay.take = NULL;
	r->replay.is_over = false;
	bc_watch_init(&r->replay.watch);
	bc_recorder_allow_triggers(r);
}

static void on_defer(uv_timer_t *timer)
{
	struct bc_recorder *r = timer->data;

	if (r->replay.is_over) {
		bc_recorder_tell_gaps(r);
		bc_session_close(r->replay.session);
		bc_recorder_forget_replay(r);
		bc_recorder_tell_state(r);
	}
	bool is_all = r->live.is_over && r->replay.session == NULL;
	if (is_all && (r->is_ending || r->options.is_once) && !r->has_told_over) {
		r->has_told_over = true;
		r->options.on_over(r->options.context);
	}
}

static void defer(struct bc_recorder *r)
{
	uv_timer_start(&r->defer, on_defer, 0, 0);
}

void bc_recorder_on_session_done(void *context)
{
	struct bc_part *part = context;
	struct bc_recorder *r = part->recorder;

	part->is_over = true;
	if (part == &r->live) {
		const struct bc_session_outcome *outcome = bc_session_outcome(part->session);
		r->outcome.has_failed = outcome->has_failed;
		r->outcome.has_no_device = outcome->has_no_device;
		memcpy(r->outcome.why, outcome->why, sizeof(r->outcome.why));
		if (!r->is_ending && !r->options.is_once)
			bc_log(BC_LOG_NOTICE, "%s: it has ended; idle from now on, until a signal",
				bc_session_source(part->session)->name);
	}
	bc_recorder_tell_state(r);
	defer(r);
}

void bc_recorder_on_limit(void *context, uint32_t at)
{
	struct bc_part *part = context;

	bc_recorder_finish(part->recorder, part, BC_TAKE_LIMIT, at);
}

/* The pipeline's news */

static void on_room(void *context)
{
	struct bc_recorder *r = context;

	if (r->live.session != NULL && !r->live.is_over)
		bc_session_on_room(r->live.session);
	if (r->replay.session != NULL && !r->replay.is_over)
		bc_session_on_room(r->replay.session);
}

static void on_report(void *context)
{
	struct bc_recorder *r = context;
	const struct bc_writer_report *report = bc_pipeline_report(r->pipeline);

	/* Nobody watches a --once recording; a directory that is gone doesn't come back by itself.
	 */
	if (report->is_hopeless && r->options.is_once && r->live.take != NULL && !r->is_ending) {
		r->is_ending = true;
		bc_recorder_abandon(r);
		return;
	}
	if (r->live.take != NULL)
		bc_session_on_report(r->live.session);
	if (r->replay.take != NULL)
		bc_session_on_report(r->replay.session);
}

static struct bc_take *take_of(struct bc_recorder *r, const struct bc_recording *recording)
{
	struct bc_take *take = r->takes;

	while (take != NULL && &take->recording != recording)
		take = take->next;
	assert(take != NULL);
	return take;
}

static void on_news(void *context, const struct bc_writer_news *news)
{
	struct bc_recorder *r = context;

	switch (news->kind) {
	case BC_NEWS_SEALED:
		r->sealed++;
		__attribute__((fallthrough));
	case BC_NEWS_RAW_SEALED:
		r->options.on_sealed(r->options.context, news);
		__attribute__((fallthrough));
	case BC_NEWS_BEGUN:
		bc_recorder_tell_segment(r, news);
		return;
	case BC_NEWS_ENDED:
		bc_recorder_take_ended(r, take_of(r, news->recording), news);
		return;
	}
}

/* The exit code of it all: of the live source's recordings; replays say for themselves how they
 * went. */
enum bc_exit bc_recorder_exit(struct bc_recorder *r)
{
	bc_exit_log_files(bc_pipeline_report(r->pipeline));
	return bc_exit_status(bc_session_source(r->live.session)->is_replay, r->has_lost,
		bc_pipeline_report(r->pipeline), &r->outcome);
}

/* Life */

void bc_recorder_look(struct bc_recorder *r)
{
	bc_recorder_disarm_ended(r);
	bc_session_look(r->live.session);
	if (r->replay.session != NULL)
		bc_session_look(r->replay.session);
	bc_log_limits_look(&r->limits, uv_hrtime());
	bc_recorder_look_for_silence(&r->live);
	bc_recorder_look_for_silence(&r->replay);
	bc_recorder_tell_changes(r);
}

struct bc_stint_seen bc_recorder_longest_stint(struct bc_recorder *r)
{
	struct bc_stint_seen longest = {.what = ""};

	bc_pipeline_look(r->pipeline, &longest);
	return longest;
}

static bool has_same(const struct bc_watch *watch, const struct bc_trigger *trigger)
{
	for (unsigned i = 0; i < watch->count; i++)
		if (bc_trigger_equal(&watch->armed[i].trigger, trigger))
			return true;
	return false;
}

/* Takes the configuration's triggers, and tells of what that changes. */
static void configure_triggers(struct bc_recorder *r)
{
	const struct bc_config *config = bc_recorder_config(r);
	struct bc_watch *watch = &r->live.watch;
	const struct bc_watch before = *watch;

	bc_watch_configure(watch, config->triggers, config->triggers_count);
	for (unsigned i = 0; i < before.count; i++)
		if (!has_same(watch, &before.armed[i].trigger))
			bc_recorder_disarmed(r, before.armed[i].trigger.name);
	for (unsigned i = 0; i < watch->count; i++)
		if (!has_same(&before, &watch->armed[i].trigger))
			bc_recorder_tell_armed(r, &watch->armed[i].trigger);
}

void bc_recorder_reload(struct bc_recorder *r)
{
	const struct bc_config *config = bc_recorder_config(r);
	struct bc_writer_rules rules = {
		.rotation = config->rotation,
		.space = config->space,
		.sync_ns = config->sync_ns,
	};

	bc_pipeline_set_rules(r->pipeline, &rules);
	bc_lane_set_flush(bc_session_lane(r->live.session), config->flush_ns);
	if (r->replay.session != NULL && !r->replay.is_over)
		bc_lane_set_flush(bc_session_lane(r->replay.session), config->flush_ns);
	configure_triggers(r);
	if (r->live.take != NULL)
		bc_session_set_rotation(r->live.session, &config->rotation);
	if (r->replay.take != NULL)
		bc_session_set_rotation(r->replay.session, &config->rotation);
}

void bc_recorder_end(struct bc_recorder *r)
{
	r->is_ending = true;
	bc_recorder_allow_triggers(r);
	if (r->replay.session != NULL && !r->replay.is_over)
		bc_session_stop(r->replay.session);
	if (r->live.is_over)
		defer(r);
	else
		bc_session_stop(r->live.session);
	bc_recorder_tell_state(r);
}

void bc_recorder_abandon(struct bc_recorder *r)
{
	const struct bc_take *newest = r->takes;

	/* With the newest all that come before it are given up. */
	while (newest != NULL && newest->state == BC_TAKE_ENDED)
		newest = newest->next;
	if (newest != NULL)
		bc_pipeline_abandon(r->pipeline, &newest->recording);
	if (r->replay.session != NULL && !r->replay.is_over)
		bc_session_abandon(r->replay.session);
	if (!r->live.is_over)
		bc_session_abandon(r->live.session);
}

static int open_pipeline(struct bc_recorder *r)
{
	const struct bc_config *config = bc_recorder_config(r);
	struct bc_pipeline_options options = {
		.buffer_bytes = config->buffer_bytes,
		.workers = config->workers,
		.dir = config->dir,
		.dir_fd = r->options.dir_fd,
		.rules =
			{
				.rotation = config->rotation,
				.space = config->space,
				.sync_ns = config->sync_ns,
			},
		.keeps_raw = bc_config_keeps_raw(config),
		.context = r,
		.on_room = on_room,
		.on_report = on_report,
		.on_news = on_news,
	};

	if (config->keep_raw && !options.keeps_raw)
		bc_log(BC_LOG_NOTICE, "keep_raw: a file is its own capture: it isn't saved again");
	return bc_pipeline_open(&r->pipeline, r->options.loop, &options);
}

/* Of the pool, so many chunks are for what is on its way. */
#define CHUNKS_ON_THEIR_WAY 4u

static void settle_flight(struct bc_recorder *r)
{
	const struct bc_recording_settings *settings = &bc_recorder_config(r)->recording;
	unsigned chunks = bc_pipeline_buffer(r->pipeline).chunks;

	if (settings->mode != BC_RECORD_FLIGHT)
		return;
	r->flight = (struct bc_flight_limits){
		.ns = settings->flight_ns,
		.bytes = settings->flight_bytes,
		.chunks = chunks > 2 * CHUNKS_ON_THEIR_WAY ? chunks - CHUNKS_ON_THEIR_WAY
							   : chunks / 2,
	};
}

static int start_live_session(struct bc_recorder *r, struct bc_source *source)
{
	const struct bc_config *config = bc_recorder_config(r);
	struct bc_session_options options = {
		.loop = r->options.loop,
		.pipeline = r->pipeline,
		.source = source,
		.mapping = &r->mapping,
		.lane =
			{
				.keeps_raw = bc_config_keeps_raw(config),
				.flush_ns = config->flush_ns,
				.is_flight = bc_recorder_is_flight(r),
				.flight = r->flight,
				.sift = &config->sift,
				.viewer = r->options.viewer,
				.watch = &r->live.watch,
				.context = &r->live,
				.on_hit = bc_recorder_on_hit,
			},
		.speed = config->speed,
		.ends_with_recording = r->options.is_once || source->is_replay,
		.context = &r->live,
		.on_limit = bc_recorder_on_limit,
		.on_done = bc_recorder_on_session_done,
	};

	return bc_session_start(&r->live.session, &options);
}

static bool begin_always(struct bc_recorder *r)
{
	struct bc_start start = {.label = NULL};
	char why[256];

	return bc_recorder_start(r, &start, why, sizeof(why)) == BC_GRANTED;
}

int bc_recorder_open(struct bc_recorder **recorder, const struct bc_recorder_options *options,
	struct bc_source *source, const char **what)
{
	struct bc_recorder *r = calloc(1, sizeof(*r));

	*what = "the buffer and the threads";
	if (r == NULL) {
		bc_source_close(source);
		return -ENOMEM;
	}
	r->options = *options;
	r->live.recorder = r;
	r->replay.recorder = r;
	bc_watch_init(&r->live.watch);
	bc_watch_init(&r->replay.watch);
	bc_watch_configure(
		&r->live.watch, options->config->triggers, options->config->triggers_count);
	r->state = "idle";
	r->board_state = -1;
	r->is_first = true;
	bc_mapping_init(&r->mapping, &options->config->mapping);
	int rc = open_pipeline(r);
	if (rc != 0) {
		bc_source_close(source);
		free(r);
		return rc;
	}
	settle_flight(r);
	uv_timer_init(options->loop, &r->defer);
	r->defer.data = r;
	*what = options->config->source_text;
	rc = start_live_session(r, source);
	bool is_always = options->is_once || options->config->recording.mode == BC_RECORD_ALWAYS;
	bc_recorder_allow_triggers(r);
	if (rc == 0 && is_always && !begin_always(r))
		rc = -ENOMEM;
	if (rc != 0) {
		bc_recorder_close(r);
		return rc;
	}
	*recorder = r;
	return 0;
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void bc_recorder_close(struct bc_recorder *r)
{
	if (r == NULL)
		return;
	bc_log_limits_end(&r->limits);
	bc_session_close(r->live.session);
	bc_session_close(r->replay.session);
	bc_pipeline_close(r->pipeline);
	while (r->takes != NULL) {
		struct bc_take *take = r->takes;
		r->takes = take->next;
		bc_take_free(take);
	}
	uv_close((uv_handle_t *)&r->defer, on_closed);
}
