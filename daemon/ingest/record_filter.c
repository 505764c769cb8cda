/* One pass compacts the new records in place: records and events move from `in` to `out`, which is
 * never ahead. Records without events between them are handled in blocks of BC_FILTER_RECORDS: the
 * rules yield a bit mask per block, and the kept records are moved without branches.
 *
 * Invariant: the ticks of kept records stay exact. A removed record's delta is added to the next
 * kept one; if the sum does not fit into a delta, that record gets an anchor.
 *
 * Costs one evaluation of each rule per record and one copy of each kept record. Filtering the
 * chunk itself needs no second buffer and lets triggers see exactly what is recorded. */
#include "daemon/ingest/record_filter.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/text.h"
#include "formats/bus/tick_time.h"
#include "formats/trace/filter_parse.h"

/* A pass over the new records. */
struct filter_pass {
	const struct bc_record_filter *filter;
	struct bc_chunk *chunk;
	uint32_t in;
	uint32_t out;
	uint32_t end;
	uint32_t event_in;
	uint32_t event_out;
	uint32_t events_end;
	uint64_t tick;      /* of the record before `in` */
	uint64_t kept_tick; /* of the record before `out` */
	bool is_first;      /* the record at `in` is the first of its epoch */
	bool is_inexact;    /* ticks are lower bounds at `in` */
	bool needs_anchor;  /* the ticks from `out` - 1 to `in` - 1 are unknown */

	/* Sampling, in ticks; period 0: none. */
	uint64_t width;
	uint64_t period;
	uint64_t window; /* start of a period; at or before `tick` unless ticks ran backward */
};

static uint8_t *filter_record_at(struct bc_chunk *chunk, uint32_t n)
{
	return chunk->records + (size_t)n * BC_RECORD_BYTES;
}

static uint64_t all_of(uint32_t n)
{
	return n < BC_FILTER_RECORDS ? (UINT64_C(1) << n) - 1 : UINT64_MAX;
}

/* Returns a tick's offset in its sampling period, after moving the window there. */
static uint64_t phase_of(struct filter_pass *p, uint64_t tick)
{
	if (tick - p->window >= p->period)
		p->window = tick - tick % p->period;
	return tick - p->window;
}

/* Returns which of n records are in the sampled part of a period. `anchor` is the first record's
 * tick if it has no delta, else NULL. */
static uint64_t select_sampled(struct filter_pass *p, const uint8_t *at, uint32_t n, uint64_t ticks,
	const uint64_t *anchor)
{
	uint64_t tick = anchor != NULL ? *anchor : p->tick;
	uint64_t phase = phase_of(p, tick);
	uint64_t bits = 0;

	if (phase + ticks < p->width)
		return all_of(n);
	if (phase >= p->width && phase + ticks < p->period)
		return 0;
	for (uint32_t i = 0; i < n; i++, at += BC_RECORD_BYTES) {
		uint32_t time = bc_le32(at + 8);
		tick += time != BC_TIME_NONE ? time : 0;
		bits |= (uint64_t)(phase_of(p, tick) < p->width) << i;
	}
	return bits;
}

/* Which of the n <= BC_FILTER_RECORDS records at `in` to keep, and the sum of all deltas. */
static uint64_t select_records(
	struct filter_pass *p, uint32_t n, uint64_t *ticks, const uint64_t *anchor)
{
	const uint8_t *at = filter_record_at(p->chunk, p->in);
	const struct bc_record_filter_rules *keep = &p->filter->keep;
	const struct bc_record_filter_rules *leave_out = &p->filter->leave_out;
	uint64_t bits = all_of(n);

	if (p->period != 0 || (keep->count == 0 && leave_out->count == 0)) {
		*ticks = bc_records_ticks(at, n, 0);
		if (p->period != 0)
			bits = select_sampled(p, at, n, *ticks, anchor);
		if (bits == 0)
			return 0;
	}
	uint64_t kept = keep->count == 0 ? bits : 0;
	for (unsigned i = 0; i < keep->count && kept != bits; i++)
		kept |= bits & bc_filter_records(&keep->rules[i].filter, at, n, ticks);
	for (unsigned i = 0; i < leave_out->count && kept != 0; i++)
		kept &= ~bc_filter_records(&leave_out->rules[i].filter, at, n, ticks);
	return kept;
}

static bool has_event_room(const struct filter_pass *p)
{
	return p->event_out + (p->events_end - p->event_in) < BC_CHUNK_EVENTS;
}

static void write_anchor(struct filter_pass *p, uint32_t position)
{
	struct bc_event *events = p->chunk->events;

	assert(has_event_room(p));
	if (p->event_out == p->event_in) {
		memmove(&events[p->event_in + 1], &events[p->event_in],
			(p->events_end - p->event_in) * sizeof(*events));
		p->event_in++;
		p->events_end++;
	}
	events[p->event_out++] = (struct bc_event){
		.position = position,
		.kind = BC_EVENT_ANCHOR,
		.exact = !p->is_inexact,
		.value = p->tick,
	};
}

/* Moves the record whose first eight bytes are at `head` to `out`; its tick is p->tick. */
static void keep_record(struct filter_pass *p, const uint8_t *head, bool has_own_anchor)
{
	uint8_t *to = filter_record_at(p->chunk, p->out);
	uint64_t delta = p->tick - p->kept_tick;

	memmove(to, head, 8);
	if (has_own_anchor) {
		delta = BC_TIME_NONE;
	} else if (p->needs_anchor || delta >= BC_TIME_NONE) {
		write_anchor(p, p->out);
		delta = BC_TIME_NONE;
	}
	bc_write_le32(to + 8, (uint32_t)delta);
	if (p->out == 0)
		p->chunk->info.first_tick = p->tick;
	p->kept_tick = p->tick;
	p->needs_anchor = false;
	p->out++;
}

/* Moves or removes one record that has a delta. */
static void move_one(struct filter_pass *p, bool keep)
{
	const uint8_t *at = filter_record_at(p->chunk, p->in);
	uint32_t time = bc_le32(at + 8);
	uint64_t pending = p->tick - p->kept_tick;

	/* The ticks no longer fit into a delta, and there is no room for an anchor: keep the
	 * previous record after all. */
	if (pending < BC_TIME_NONE && pending + time >= BC_TIME_NONE && !p->needs_anchor &&
		!has_event_room(p))
		keep_record(p, at - BC_RECORD_BYTES, false);
	p->tick += time;
	if (keep)
		keep_record(p, at, false);
	p->in++;
}

/* Moves the events before the record at `in`; its anchor only if the record is kept. */
static void move_events(struct filter_pass *p, bool keeps_anchor)
{
	struct bc_event *events = p->chunk->events;

	for (; p->event_in < p->events_end && events[p->event_in].position == p->in;
		p->event_in++) {
		if (events[p->event_in].kind == BC_EVENT_ANCHOR && !keeps_anchor)
			continue;
		events[p->event_out] = events[p->event_in];
		events[p->event_out++].position = p->out;
	}
}

/* Returns the anchor of the record at `in`, or NULL. */
static const struct bc_event *find_anchor(const struct filter_pass *p)
{
	const struct bc_event *event = &p->chunk->events[p->event_in];
	const struct bc_event *end = &p->chunk->events[p->events_end];

	for (; event < end && event->position == p->in; event++)
		if (event->kind == BC_EVENT_ANCHOR)
			return event;
	return NULL;
}

/* Moves or removes a record that has an anchor instead of a delta. */
static void move_anchored(struct filter_pass *p, const struct bc_event *anchor)
{
	uint64_t tick = anchor->value;
	bool is_exact = anchor->exact;
	uint64_t ticks;
	bool keep = select_records(p, 1, &ticks, &tick) != 0;

	move_events(p, keep);
	if (!keep && (p->is_first || p->is_inexact || !is_exact))
		p->needs_anchor = true;
	p->tick = tick;
	p->is_inexact = !is_exact;
	p->is_first = false;
	if (keep)
		keep_record(p, filter_record_at(p->chunk, p->in), true);
	p->in++;
}

/* Moves the records selected by `bits` out of n. p->tick is the tick of the last one, and `pending`
 * the ticks of removed records before the first. All these ticks fit into a delta. */
static void compact(struct filter_pass *p, uint32_t n, uint64_t bits, uint32_t pending)
{
	const uint8_t *at = filter_record_at(p->chunk, p->in);
	uint8_t *to = filter_record_at(p->chunk, p->out);
	uint8_t *first = to;

	/* Removed records are written too, then overwritten: cheaper than an unpredictable branch.
	 * `to` is never ahead of `at`. */
	for (uint32_t i = 0; i < n; i++, at += BC_RECORD_BYTES, bits >>= 1) {
		uint64_t head = bc_le64(at);
		uint32_t time = bc_le32(at + 8) + pending;
		uint32_t keep = bits & 1;
		bc_write_le64(to, head);
		bc_write_le32(to + 8, time);
		to += (size_t)keep * BC_RECORD_BYTES;
		pending = time & (keep - 1);
	}
	p->out += (uint32_t)((to - first) / BC_RECORD_BYTES);
	p->kept_tick = p->tick - pending;
}

/* Moves the kept records of a block without events. */
static void move_block(struct filter_pass *p, uint32_t n)
{
	uint64_t ticks = 0;
	uint64_t bits = select_records(p, n, &ticks, NULL);
	uint64_t pending = p->tick - p->kept_tick;

	p->is_first = false;
	if (p->needs_anchor || pending >= BC_TIME_NONE || pending + ticks >= BC_TIME_NONE ||
		(p->out == 0 && bits != 0)) {
		for (uint32_t i = 0; i < n; i++)
			move_one(p, (bits >> i & 1) != 0);
		return;
	}
	p->tick += ticks;
	if (bits == all_of(n)) {
		uint8_t *to = filter_record_at(p->chunk, p->out);
		if (p->in != p->out)
			memmove(to, filter_record_at(p->chunk, p->in), (size_t)n * BC_RECORD_BYTES);
		bc_write_le32(to + 8, bc_le32(to + 8) + (uint32_t)pending);
		p->out += n;
		p->kept_tick = p->tick;
	} else if (bits != 0) {
		compact(p, n, bits, (uint32_t)pending);
	}
	p->in += n;
}

static void run_pass(struct filter_pass *p)
{
	const struct bc_event *events = p->chunk->events;

	while (p->in < p->end) {
		const struct bc_event *anchor = find_anchor(p);
		if (anchor != NULL) {
			move_anchored(p, anchor);
			continue;
		}
		move_events(p, false);
		uint32_t until = p->event_in < p->events_end ? events[p->event_in].position
							     : p->end;
		uint32_t n = until - p->in;
		move_block(p, n < BC_FILTER_RECORDS ? n : BC_FILTER_RECORDS);
	}
	move_events(p, false);
}

/* Returns a time in ticks, at least one. */
static uint64_t ticks_of(uint64_t ns, uint64_t clock_hz)
{
	uint64_t ticks = bc_ticks_of_ns(ns, clock_hz);

	return ticks != 0 ? ticks : 1;
}

static struct filter_pass start_pass(const struct bc_record_filter *filter,
	const struct bc_record_filter_state *state, struct bc_chunk *chunk, uint64_t clock_hz)
{
	struct filter_pass p = {
		.filter = filter,
		.chunk = chunk,
		.in = state->from,
		.out = state->from,
		.end = chunk->info.records,
		.events_end = chunk->info.events,
		.tick = state->stamper.record_tick,
		.kept_tick = state->stamper.record_tick,
		.is_first = state->stamper.is_first,
		.is_inexact = state->stamper.is_inexact,
		.needs_anchor = state->stamper.is_delta_lost,
	};

	while (p.event_in < p.events_end && chunk->events[p.event_in].position < state->from)
		p.event_in++;
	p.event_out = p.event_in;
	if (filter->sampling.period_ns != 0) {
		clock_hz = clock_hz != 0 ? clock_hz : BC_DEFAULT_CLOCK_HZ;
		p.width = ticks_of(filter->sampling.width_ns, clock_hz);
		p.period = ticks_of(filter->sampling.period_ns, clock_hz);
		p.window = p.tick - p.tick % p.period;
	}
	return p;
}

uint32_t bc_record_filter_records(const struct bc_record_filter *filter,
	const struct bc_record_filter_state *state, struct bc_stamper *stamper,
	struct bc_chunk *chunk, uint64_t clock_hz)
{
	if (filter == NULL || chunk->info.records == state->from ||
		bc_record_filter_keeps_all(filter))
		return 0;
	struct filter_pass p = start_pass(filter, state, chunk, clock_hz);
	run_pass(&p);
	uint32_t removed = p.end - p.out;
	chunk->info.records = p.out;
	chunk->info.events = p.event_out;
	chunk->info.last_tick = p.out != state->from ? p.kept_tick : state->last_tick;
	if (p.out == 0)
		chunk->info.first_tick = state->first_tick;
	stamper->record_tick = p.kept_tick;
	stamper->is_delta_lost = p.needs_anchor;
	return removed;
}

/* Settings */

static bool set_rule(struct bc_record_filter_rules *rules, const char *name, const char *value,
	char *err, size_t errlen)
{
	struct bc_record_filter_rule rule = {.name = ""};
	unsigned i = 0;

	snprintf(rule.name, sizeof(rule.name), "%s", name);
	while (i < rules->count && strcmp(rules->rules[i].name, name) != 0)
		i++;
	if (value[0] == '\0') {
		if (i < rules->count)
			memmove(&rules->rules[i], &rules->rules[i + 1],
				(--rules->count - i) * sizeof(rule));
		return true;
	}
	if (!bc_filter_parse(&rule.filter, NULL, value, err, errlen))
		return false;
	if ((size_t)snprintf(rule.where, sizeof(rule.where), "%s", value) >= sizeof(rule.where))
		return bc_fail(err, errlen, "too long; the limit is 199 bytes");
	if (i == BC_RECORD_FILTER_RULES)
		return bc_fail(err, errlen, "too many rules; the limit is 8");
	rules->rules[i] = rule;
	rules->count += i == rules->count;
	return true;
}

bool bc_record_filter_set(struct bc_record_filter *filter, const char *key, const char *value,
	char *err, size_t errlen)
{
	static const char *const words[] = {"keep", "leave_out"};
	struct bc_record_filter_rules *const rules[] = {&filter->keep, &filter->leave_out};

	for (unsigned i = 0; i < 2; i++) {
		size_t n = strlen(words[i]);
		if (strncmp(key, words[i], n) != 0 || (key[n] != '\0' && key[n] != '.'))
			continue;
		if (key[n] == '.' && !bc_setting_name_is_valid(key + n + 1))
			return bc_fail(err, errlen,
				"the name must have up to 32 letters, digits, '_' and '-'");
		return set_rule(rules[i], key[n] == '.' ? key + n + 1 : "", value, err, errlen);
	}
	return bc_fail(err, errlen, "no such key in [filter]; use keep or leave_out");
}

bool bc_sampling_parse(struct bc_sampling *sampling, const char *text, char *err, size_t errlen)
{
	char width[40];
	const char *slash = strchr(text, '/');
	struct bc_sampling read;

	if (text[0] == '\0' || strcmp(text, "all") == 0) {
		*sampling = (struct bc_sampling){0};
		return true;
	}
	if (slash == NULL || (size_t)(slash - text) >= sizeof(width))
		return bc_fail(err, errlen, "must be all, or WIDTH/PERIOD such as 10ms/1s");
	snprintf(width, sizeof(width), "%.*s", (int)(slash - text), text);
	if (!bc_quantity_read(&read.width_ns, BC_QUANTITY_TIME, width, err, errlen) ||
		!bc_quantity_read(&read.period_ns, BC_QUANTITY_TIME, slash + 1, err, errlen))
		return false;
	if (read.width_ns == 0 || read.width_ns > read.period_ns)
		return bc_fail(err, errlen,
			"must be all, or WIDTH/PERIOD such as 10ms/1s, with WIDTH above 0 and at "
			"most PERIOD");
	*sampling = read;
	return true;
}

static bool find_regions(struct bc_record_filter_rules *rules, const char *key,
	const struct bc_name_map *names, char *err, size_t errlen)
{
	char what[256];

	for (unsigned i = 0; i < rules->count; i++) {
		struct bc_record_filter_rule *rule = &rules->rules[i];
		if (!bc_filter_parse(&rule->filter, names, rule->where, what, sizeof(what)))
			return bc_fail(err, errlen, "%s%s%s: %s", key,
				rule->name[0] != '\0' ? "." : "", rule->name, what);
	}
	return true;
}

bool bc_record_filter_find_regions(
	struct bc_record_filter *filter, const struct bc_name_map *names, char *err, size_t errlen)
{
	return find_regions(&filter->keep, "keep", names, err, errlen) &&
	       find_regions(&filter->leave_out, "leave_out", names, err, errlen);
}
