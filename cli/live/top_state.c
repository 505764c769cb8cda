#include "cli/live/top_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/live/status.h"
#include "cli/term/json_path.h"
#include "cli/term/text.h"
#include "formats/bus/record.h"

#define SECOND_NS UINT64_C(1000000000)

/* A status arrives about once per second. If it comes at most this much later than the previous
 * one, the seconds in between get its values. */
#define JITTER_MAX_S 3u

/* Stores a status for its second. A second status in the same second replaces the first, but losses
 * add up. */
static void store_second(
	struct bc_top_state *state, uint64_t second, const json_t *s, uint64_t lost)
{
	struct bc_top_second *at = &state->seconds[second % BC_TOP_SECONDS];
	double before = at->is_known && at->second == second ? at->values[BC_TOP_LOST] : 0;

	at->second = second;
	at->is_known = true;
	at->values[BC_TOP_SAMPLES] = bc_json_path_number(s, "rates.samples_per_second");
	at->values[BC_TOP_RECORDS] = bc_json_path_number(s, "rates.record_bytes_per_second") /
				     BC_RECORD_BYTES;
	at->values[BC_TOP_BYTES_OUT] = bc_json_path_number(s, "rates.written_bytes_per_second");
	at->values[BC_TOP_BUFFER] = bc_status_in_use(s);
	at->values[BC_TOP_LOST] = before + (double)lost;
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
		       bc_status_lost(s) >= bc_status_lost(last);
	if (is_same) {
		lost = bc_status_lost(s) - bc_status_lost(last);
	} else {
		memset(state->mixes, 0, sizeof(state->mixes));
		state->lost_ns = 0;
	}
	if (lost != 0)
		state->lost_ns = now->ns;
	uint64_t second = now->ns / SECOND_NS;
	uint64_t before = state->status_ns / SECOND_NS;
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

void bc_top_state_free(struct bc_top_state *state)
{
	if (state != NULL)
		json_decref(state->status);
	free(state);
}

static unsigned parse_counts(struct bc_top_count *table, json_t *object)
{
	const char *key;
	json_t *item;
	unsigned n = 0;

	json_object_foreach(object, key, item)
	{
		if (n == BC_TOP_KINDS || !json_is_number(item))
			continue;
		bc_safe_text(table[n].name, sizeof(table[n].name), key);
		table[n++].count = bc_json_path_count(object, key);
	}
	return n;
}

static void parse_pages(struct bc_top_mix *mix, const json_t *array)
{
	const json_t *item;
	size_t i;

	json_array_foreach(array, i, item)
	{
		struct bc_top_page_count *page = &mix->pages[mix->pages_count];
		const char *addr = bc_json_path_text(item, "addr");
		if (mix->pages_count == BC_TOP_PAGES || addr == NULL)
			continue;
		page->addr = strtoull(addr, NULL, 16);
		page->samples = bc_json_path_count(item, "requests");
		page->max_error = bc_json_path_count(item, "max_error");
		mix->pages_count++;
	}
}

void bc_top_state_add_mix(
	struct bc_top_state *state, const json_t *object, const struct bc_top_now *now)
{
	const struct bc_top_mix *before = bc_top_state_latest_mix(state);

	if (!json_is_object(object)) {
		memset(state->mixes, 0, sizeof(state->mixes));
		return;
	}
	uint64_t sampled = bc_json_path_count(object, "sampled_records");
	if (before->is_known && sampled < before->sampled)
		memset(state->mixes, 0, sizeof(state->mixes));
	state->latest_mix = (state->latest_mix + 1) % (BC_TOP_MIX_PERIOD + 1);
	struct bc_top_mix *mix = &state->mixes[state->latest_mix];
	*mix = (struct bc_top_mix){.is_known = true, .at_ns = now->ns, .sampled = sampled};
	mix->of = bc_json_path_count(object, "records");
	mix->types_count = parse_counts(mix->types, bc_json_path(object, "types"));
	mix->procs_count = parse_counts(mix->procs, bc_json_path(object, "procs"));
	mix->memory = bc_json_path_count(object, "memory_requests");
	parse_pages(mix, bc_json_path(object, "pages"));
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
		if (mix->is_known && latest->at_ns > mix->at_ns &&
			latest->at_ns - mix->at_ns <= BC_TOP_MIX_PERIOD * SECOND_NS + SECOND_NS / 2)
			return mix;
	}
	return NULL;
}

uint64_t bc_top_count_of(const struct bc_top_count *table, unsigned count, const char *name)
{
	for (unsigned i = 0; i < count; i++)
		if (strcmp(table[i].name, name) == 0)
			return table[i].count;
	return 0;
}

const struct bc_top_second *bc_top_state_second(const struct bc_top_state *state, uint64_t second)
{
	const struct bc_top_second *at = &state->seconds[second % BC_TOP_SECONDS];

	return at->is_known && at->second == second ? at : NULL;
}
