/* Sends the frames of a simulated board. Paced (rate > 0): a timer sends what is due by the ticks
 * of the bus, as a board does, and at most half a second of what it has missed. Not paced: an idle
 * handle sends as long as the sink accepts.
 *
 * Invariant: a frame that the sink has not consumed completely is held and offered again before the
 * next is made. */
#include "capture/source/sim_source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "formats/bus/tick_time.h"

/* Interval at which a paced source sends the samples that are due. */
#define PACE_MS 5

/* A paced source catches up by at most half a second, and sends for at most TURN_NS before other
 * handles of the loop get their turn. */
#define BACKLOG_NS 500000000
#define TURN_NS    20000000

/* Frames that an unpaced source sends per turn of the loop. */
#define FRAMES_PER_TURN 64

struct sim_source {
	struct bc_source source;
	uv_timer_t timer; /* paced: ticks each PACE_MS */
	uv_idle_t idle;   /* not paced: active while the sink is not full */
	unsigned open_handles;
	struct bc_sim *sim;
	uint64_t rate;
	uint64_t start_ns;   /* uv_hrtime() of start_tick */
	uint64_t start_tick; /* of the first sample */
	bool is_over;
	bool is_sending; /* inside sink.data() */
	size_t held;     /* bytes of a frame that the sink has not consumed yet */
	uint8_t frame[BC_SIM_FRAME_MAX];
};

/* Sends the held frame or a new one of at most `samples_max` samples until a tick. Returns false if
 * the sink is full or the stream is over. */
static bool send_frame(struct sim_source *s, uint32_t samples_max, uint64_t until)
{
	const struct bc_source_sink *sink = &s->source.sink;

	if (s->held == 0)
		s->held = bc_sim_next(s->sim, samples_max, until, s->frame);
	if (s->held == 0) {
		s->is_over = true;
		uv_timer_stop(&s->timer);
		uv_idle_stop(&s->idle);
		sink->end(sink->context, 0, "");
		return false;
	}
	struct bc_source_data data = {
		.format = BC_FORMAT_BCP1,
		.bytes = s->frame,
		.count = s->held,
	};
	s->is_sending = true;
	bool is_consumed = sink->data(sink->context, &data);
	s->is_sending = false;
	if (!is_consumed)
		return false;
	s->held = 0;
	return !s->is_over;
}

static void on_timer(uv_timer_t *timer)
{
	struct sim_source *s = container_of(timer, struct sim_source, timer);
	uint64_t now_ns = uv_hrtime();
	uint64_t next = bc_sim_next_tick(s->sim);

	uint64_t due = s->start_tick + bc_ticks_of_ns(now_ns - s->start_ns, s->source.clock_hz);
	uint64_t most = bc_ticks_of_ns(BACKLOG_NS, s->source.clock_hz);

	/* On a machine too slow for the rate, the bus stands still, and the loop runs on. */
	if (next < due && due - next > most) {
		s->start_ns = now_ns - BACKLOG_NS;
		s->start_tick = next;
		due = next + most;
	}
	while (!s->is_over && (s->held != 0 || next <= due || next == UINT64_MAX) &&
		uv_hrtime() - now_ns < TURN_NS) {
		if (!send_frame(s, BC_SIM_FRAME_SAMPLES, due))
			return;
		next = bc_sim_next_tick(s->sim);
	}
}

static void on_idle(uv_idle_t *idle)
{
	struct sim_source *s = container_of(idle, struct sim_source, idle);

	for (int i = 0; i < FRAMES_PER_TURN; i++) {
		if (!send_frame(s, BC_SIM_FRAME_SAMPLES, UINT64_MAX)) {
			uv_idle_stop(&s->idle); /* until resumed */
			return;
		}
	}
}

static int sim_start(struct bc_source *source)
{
	struct sim_source *s = container_of(source, struct sim_source, source);

	s->start_ns = uv_hrtime();
	s->start_tick = bc_sim_next_tick(s->sim);
	if (s->rate != 0)
		return uv_timer_start(&s->timer, on_timer, PACE_MS, PACE_MS);
	return uv_idle_start(&s->idle, on_idle);
}

static void sim_resume(struct bc_source *source)
{
	struct sim_source *s = container_of(source, struct sim_source, source);

	if (s->rate == 0 && !s->is_over)
		uv_idle_start(&s->idle, on_idle);
}

/* Sends the last frame, as a board does when it is stopped. */
static void sim_stop(struct bc_source *source)
{
	struct sim_source *s = container_of(source, struct sim_source, source);

	if (s->is_over)
		return;
	bc_sim_stop(s->sim);
	/* If called by the sink during a frame, the last frame follows that one. */
	while (!s->is_sending && send_frame(s, 0, UINT64_MAX))
		continue;
}

static void on_closed(uv_handle_t *handle)
{
	struct sim_source *s = handle->data;

	if (--s->open_handles != 0)
		return;
	bc_sim_close(s->sim);
	free(s);
}

static void sim_close(struct bc_source *source)
{
	struct sim_source *s = container_of(source, struct sim_source, source);

	s->is_over = true;
	uv_close((uv_handle_t *)&s->timer, on_closed);
	uv_close((uv_handle_t *)&s->idle, on_closed);
}

static const struct bc_source_ops sim_ops = {
	.start = sim_start,
	.resume = sim_resume,
	.stop = sim_stop,
	.close = sim_close,
};

int bc_sim_source_open(struct bc_source **source, uv_loop_t *loop,
	const struct bc_sim_options *options, uint64_t rate)
{
	struct sim_source *s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	int rc = bc_sim_open(&s->sim, options);
	if (rc != 0) {
		free(s);
		return rc;
	}
	s->source.ops = &sim_ops;
	s->source.kind = "sim";
	s->source.is_live = rate != 0;
	s->source.may_stand_still = true;
	s->source.clock_hz = rate == 0 ? BC_SIM_CLOCK_HZ
				       : rate * BC_SIM_TICKS_PER_SAMPLE(options->agents);
	snprintf(s->source.name, sizeof(s->source.name), "simulated bus, seed %llu",
		(unsigned long long)options->seed);
	s->rate = rate;
	uv_timer_init(loop, &s->timer);
	uv_idle_init(loop, &s->idle);
	s->timer.data = s;
	s->idle.data = s;
	s->open_handles = 2;
	*source = &s->source;
	return 0;
}
