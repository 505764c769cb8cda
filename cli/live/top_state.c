/* The state of `buscap top`: what its page shows.
 *
 * Values by second are in a ring, each with its second, so that an old one is recognized and
 * nothing has to be shifted or cleared. They come from the statuses, and those before the first or
 * during a pause from the daemon's history. The mixes of the last seconds are a ring of the
 * daemon's responses: the difference between the latest and the oldest is the recent traffic. Both
 * rings start again when a count has decreased, because the daemon was restarted. */
#include "cli/live/top_state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/live/status.h"
#include "cli/term/json_path.h"
#include "formats/base/clock.h"
#include "formats/bus/record.h"

/* A status arrives about once per second. If it comes at most this much later than the previous
 * one, the seconds in between get its values. */
#define JITTER_MAX_S 3u

/* Returns the share of the buffer that is in use, 0 to 1. */
static double buffer_in_use(const json_t *s)
{
	uint64_t chunks = bc_json_path_count(s, "buffer.chunks");
	uint64_t free = bc_json_path_count(s, "buffer.free_chunks");

	return free < chunks ? (double)(chunks - free) / (double)chunks : 0;
}

/* Stores a status for its second, unless the daemon has no rates yet. A second status in the same
 * second replaces the first, but losses add up. */
static void store_second(
	struct bc_top_state *state, uint64_t second, const json_t *s, uint64_t lost)
{
	struct bc_top_second *at = &state->seconds[second % BC_TOP_SECONDS];
	double before = at->is_known && at->second == second ? at->values[BC_TOP_LOST] : 0;

	at->second = second;
	at->is_known = !json_is_null(bc_json_path(s, "rates.samples_per_second"));
	at->values[BC_TOP_SAMPLES] = bc_json_path_number(s, "rates.samples_per_second");
	at->values[BC_TOP_RECORDS] = bc_json_path_number(s, "rates.record_bytes_per_second") /
				     BC_RECORD_BYTES;
	at->values[BC_TOP_BYTES_OUT] = bc_json_path_number(s, "rates.written_bytes_per_second");
	at->values[BC_TOP_BUFFER] = buffer_in_use(s);
	at->values[BC_TOP_LOST] = before + (double)lost;
}

static void clear_mixes(struct bc_top_state *state)
{
	for (unsigned i = 0; i <= BC_TOP_MIX_PERIOD; i++)
		json_decref(state->mixes[i].json);
	memset(state->mixes, 0, sizeof(state->mixes));
}

bool bc_top_state_add_status(struct bc_top_state *state, json_t *s, const struct bc_top_now *now)
{
	const json_t *last = state->status;
	uint64_t lost = 0;

	if (!bc_is_status(s))
		return false;
	/* If counts have decreased, the daemon was restarted. */
	bool is_same = last != NULL &&
		       bc_json_path_number(s, "uptime_seconds") >=
			       bc_json_path_number(last, "uptime_seconds") &&
		       bc_json_path_count(s, "counts.received") >=
			       bc_json_path_count(last, "counts.received") &&
		       bc_status_loss(s).lost >= bc_status_loss(last).lost;
	if (is_same) {
		lost = bc_status_loss(s).lost - bc_status_loss(last).lost;
	} else {
		clear_mixes(state);
		state->lost_ns = 0;
	}
	if (lost != 0)
		state->lost_ns = now->ns;
	uint64_t second = now->ns / BC_NS_PER_S;
	uint64_t before = state->status_ns / BC_NS_PER_S;
	if (last != NULL && !state->is_unreachable && second > before &&
		second - before <= JITTER_MAX_S)
		while (++before < second)
			store_second(state, before, s, 0);
	store_second(state, second, s, lost);
	json_decref(state->status);
	state->status = json_incref(s);
	state->is_unreachable = false;
	state->status_ns = now->ns;
	state->status_wall = now->wall;
	return true;
}

void bc_top_state_add_history(
	struct bc_top_state *state, const json_t *history, const struct bc_top_now *now)
{
	static const struct {
		const char *name;
		enum bc_top_series series;
	} figures[] = {{"received_samples", BC_TOP_SAMPLES}, {"record_bytes", BC_TOP_RECORDS},
		{"written_bytes", BC_TOP_BYTES_OUT}, {"used_chunks", BC_TOP_BUFFER},
		{"lost_samples", BC_TOP_LOST}};
	const json_t *intervals = bc_json_path(history, "seconds");
	size_t n = json_array_size(bc_json_path(intervals, figures[0].name));
	double chunks = fmax(1, (double)bc_json_path_count(state->status, "buffer.chunks"));
	uint64_t second = now->ns / BC_NS_PER_S;

	for (unsigned age = 1; age < BC_TOP_SECONDS && n-- != 0 && second-- != 0; age++) {
		struct bc_top_second *at = &state->seconds[second % BC_TOP_SECONDS];
		if (bc_top_state_second(state, second) != NULL)
			continue;
		*at = (struct bc_top_second){.second = second, .is_known = true};
		for (unsigned i = 0; i < BC_TOP_SERIES; i++) {
			const json_t *value = json_array_get(
				bc_json_path(intervals, figures[i].name), n);
			at->values[figures[i].series] = json_number_value(value);
			at->is_known = at->is_known && json_is_number(value);
		}
		at->values[BC_TOP_RECORDS] /= BC_RECORD_BYTES;
		at->values[BC_TOP_BUFFER] /= chunks;
		if (at->is_known && at->values[BC_TOP_LOST] > 0 &&
			state->lost_ns < second * BC_NS_PER_S)
			state->lost_ns = second * BC_NS_PER_S;
	}
}

struct bc_top_state *bc_top_state_copy(const struct bc_top_state *state)
{
	struct bc_top_state *copy = malloc(sizeof(*copy));

	if (copy == NULL)
		return NULL;
	*copy = *state;
	json_incref(copy->status);
	for (unsigned i = 0; i <= BC_TOP_MIX_PERIOD; i++)
		json_incref(copy->mixes[i].json);
	return copy;
}

void bc_top_state_free(struct bc_top_state *state)
{
	if (state == NULL)
		return;
	json_decref(state->status);
	clear_mixes(state);
	free(state);
}

void bc_top_state_add_mix(struct bc_top_state *state, json_t *object, const struct bc_top_now *now)
{
	uint64_t sampled = bc_json_path_count(object, "sampled_records");

	if (!json_is_object(object) || sampled < bc_top_state_latest_mix(state)->sampled)
		clear_mixes(state);
	if (!json_is_object(object))
		return;
	state->latest_mix = (state->latest_mix + 1) % (BC_TOP_MIX_PERIOD + 1);
	struct bc_top_mix *mix = &state->mixes[state->latest_mix];
	json_decref(mix->json);
	*mix = (struct bc_top_mix){.json = json_incref(object),
		.at_ns = now->ns,
		.sampled = sampled,
		.of = bc_json_path_count(object, "records")};
}

void bc_top_state_set_unreachable(struct bc_top_state *state, const char *err)
{
	state->is_unreachable = true;
	snprintf(state->err, sizeof(state->err), "%s", err);
}

const struct bc_top_mix *bc_top_state_latest_mix(const struct bc_top_state *state)
{
	return &state->mixes[state->latest_mix];
}

const struct bc_top_mix *bc_top_state_earlier_mix(const struct bc_top_state *state)
{
	const struct bc_top_mix *latest = bc_top_state_latest_mix(state);

	/* Oldest first. Allow half a second more, as requests are not exactly a second apart. */
	for (unsigned i = 1; i <= BC_TOP_MIX_PERIOD; i++) {
		const struct bc_top_mix *mix =
			&state->mixes[(state->latest_mix + i) % (BC_TOP_MIX_PERIOD + 1)];
		if (mix->json != NULL && latest->at_ns > mix->at_ns &&
			latest->at_ns - mix->at_ns <=
				BC_TOP_MIX_PERIOD * BC_NS_PER_S + BC_NS_PER_S / 2)
			return mix;
	}
	return NULL;
}

const struct bc_top_second *bc_top_state_second(const struct bc_top_state *state, uint64_t second)
{
	const struct bc_top_second *at = &state->seconds[second % BC_TOP_SECONDS];

	return at->is_known && at->second == second ? at : NULL;
}
