#include "daemon/recorder_parts.h"

#include <inttypes.h>
#include <stdio.h>

#include "daemon/log.h"

static void start_by_trigger(struct bc_recorder *r, const struct bc_hit *hit, uint32_t at)
{
	const struct bc_trigger *trigger = hit->trigger;
	struct bc_start start = {.pre = trigger->pre};
	bool is_snapshot = trigger->action == BC_ACTION_SNAPSHOT;
	uint32_t behind;
	char why[256];

	if (is_snapshot && start.pre.unit == BC_LENGTH_NONE)
		start.pre.unit = BC_LENGTH_ALL;
	if (bc_recorder_start_live(r, &start, &at, why, sizeof(why)) != BC_GRANTED) {
		bc_log_limited(&r->limits, BC_LOG_WARNING,
			"trigger %s has hit, and can't begin a recording: %s", trigger->name, why);
		return;
	}
	behind = at == BC_LANE_NOW ? at : at + 1;
	if (trigger->post.unit != BC_LENGTH_NONE)
		bc_session_set_rest(r->live.session, behind, &trigger->post);
	else if (is_snapshot)
		bc_recorder_finish(r, &r->live, BC_TAKE_TRIGGER, behind);
}

static void end_by_trigger(struct bc_part *part, uint32_t at)
{
	part->take->reason = BC_TAKE_TRIGGER;
	bc_session_end_at(part->session, at);
}

/* A toggle is one of the two. Marks may come by the hundred a second. */
static void log_hit(struct bc_recorder *r, const struct bc_trigger *trigger,
	enum bc_trigger_action does, uint64_t record)
{
	char place[40] = "outside of a recording";

	if (record != UINT64_MAX)
		snprintf(place, sizeof(place), "at record %" PRIu64, record);
	bc_log_limited(&r->limits, does == BC_ACTION_MARK ? BC_LOG_DEBUG : BC_LOG_INFO,
		"trigger %s has hit, %s: %s", trigger->name, place, bc_trigger_action_name(does));
}

/* A trigger of one of the parts has hit, at a position of its lane. */
static void act(struct bc_part *part, const struct bc_hit *hit, uint32_t at)
{
	struct bc_recorder *r = part->recorder;
	const struct bc_trigger *trigger = hit->trigger;
	uint64_t record = bc_lane_place(bc_session_lane(part->session), at).record;
	uint32_t behind = at == BC_LANE_NOW ? at : at + 1;
	enum bc_trigger_action does = trigger->action != BC_ACTION_TOGGLE ? trigger->action
				      : part->take == NULL                ? BC_ACTION_START
									  : BC_ACTION_STOP;

	bc_recorder_tell_hit(r, hit, record);
	log_hit(r, trigger, does, record);
	if (trigger->action == BC_ACTION_MARK)
		return;
	if (part->take == NULL)
		start_by_trigger(r, hit, at);
	else if (trigger->action == BC_ACTION_STOP && trigger->post.unit != BC_LENGTH_NONE)
		bc_session_set_rest(part->session, behind, &trigger->post);
	else if (bc_session_ends_with_recording(part->session))
		end_by_trigger(part, behind);
	else
		bc_recorder_finish(r, part, BC_TAKE_TRIGGER, behind);
}

void bc_recorder_on_hit(void *context, const struct bc_hit *hit)
{
	act(context, hit, hit->position);
}

/* Nothing comes on the bus, as some triggers want it. How long, is known up to the look before:
 * where the loop was held up since, what has come meanwhile may not be read yet. */
void bc_recorder_look_for_silence(struct bc_part *part)
{
	struct bc_lane *lane = part->session != NULL && !part->is_over
				       ? bc_session_lane(part->session)
				       : NULL;
	uint64_t now = uv_hrtime();
	uint64_t unknown_ns = now - part->looked_ns;
	struct bc_hit hit;

	part->looked_ns = now;
	if (lane == NULL || bc_watch_is_empty(&part->watch) ||
		bc_session_is_draining(part->session))
		return;
	for (;;) {
		part->watch.actions = bc_lane_actions(lane);
		uint64_t last_ns = bc_lane_last_ns(lane) + unknown_ns;
		if (!bc_watch_silence(&part->watch, now, last_ns, &hit))
			return;
		bc_watch_acted(&part->watch, &hit);
		struct bc_event event = bc_hit_event(&hit);
		/* What it begins has it at its beginning. */
		bool is_outside = bc_lane_state(lane) == BC_LANE_IDLE;
		if (is_outside)
			act(part, &hit, BC_LANE_NOW);
		if (bc_lane_state(lane) != BC_LANE_IDLE &&
			!bc_lane_mark(lane, &event, bc_trigger_text(hit.trigger), BC_LANE_NOW))
			hit.trigger->missed++;
		if (!is_outside)
			act(part, &hit, BC_LANE_NOW);
	}
}
