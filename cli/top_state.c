#include "cli/top_state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/safe_text.h"
#include "formats/json.h"
#include "formats/record.h"

#define SECOND_NS UINT64_C(1000000000)

/* Looks come about once a second: within this time of the one before, the seconds between them are
 * taken to be as the later says. */
#define HOLE_MAX 3u

static const cJSON *member(const cJSON *object, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* Texts come from devices and files, too; they are made safe to print here. */
static void read_text(const cJSON *object, const char *name, char *out, size_t room)
{
	bc_safe_text(out, room, cJSON_GetStringValue(member(object, name)));
}

#define READ_TEXT(object, name, out) read_text(object, name, out, sizeof(out))

/* A number that isn't negative; 0 if there is none. */
static double read_number(const cJSON *object, const char *name)
{
	const cJSON *item = member(object, name);

	return cJSON_IsNumber(item) && item->valuedouble > 0 ? fmin(item->valuedouble, 1e18) : 0;
}

/* "2026-11-20T19:43:02.123Z" as Unix time; 0 if it is none. */
static double read_time(const cJSON *object, const char *name)
{
	const char *text = cJSON_GetStringValue(member(object, name));
	struct tm tm = {0};

	if (text == NULL || strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) == NULL)
		return 0;
	time_t seconds = timegm(&tm);
	return seconds > 0 ? (double)seconds : 0;
}

static void read_source(struct bc_top_status *s, const cJSON *source)
{
	static const char *const troubles[] = {
		"stalls", "overflows", "errors", "timeouts", "silences", "restarts"};
	const cJSON *board = member(source, "board");

	READ_TEXT(source, "kind", s->source.kind);
	READ_TEXT(source, "name", s->source.name);
	s->source.clock_hz = bc_json_get_u64(source, "clock_hz");
	s->board.is_there = cJSON_IsObject(board);
	READ_TEXT(board, "state", s->board.state);
	READ_TEXT(board, "id", s->board.id);
	READ_TEXT(board, "serial", s->board.serial);
	READ_TEXT(board, "product", s->board.product);
	READ_TEXT(board, "speed", s->board.speed);
	READ_TEXT(member(board, "info"), "firmware", s->board.firmware);
	READ_TEXT(board, "last_error", s->board.last_error);
	s->board.plugs = bc_json_get_u64(board, "plugs");
	s->board.unplugs = bc_json_get_u64(board, "unplugs");
	for (size_t i = 0; i < sizeof(troubles) / sizeof(troubles[0]); i++)
		s->board.troubles += bc_json_get_u64(board, troubles[i]);
}

static void read_recording(struct bc_top_status *s, const cJSON *root)
{
	const cJSON *recording = member(root, "recording");
	const cJSON *flight = member(root, "flight");

	s->recording.is_there = cJSON_IsObject(recording);
	READ_TEXT(recording, "id", s->recording.id);
	READ_TEXT(recording, "label", s->recording.label);
	READ_TEXT(recording, "path", s->recording.path);
	s->recording.started_s = read_time(recording, "started");
	s->recording.segment = bc_json_get_u64(recording, "segment");
	s->recording.records = bc_json_get_u64(recording, "records");
	s->recording.bytes = bc_json_get_u64(recording, "bytes");
	s->flight.is_there = cJSON_IsObject(flight);
	s->flight.seconds = read_number(flight, "seconds");
	s->flight.limit_seconds = read_number(flight, "limit_seconds");
	s->flight.bytes = bc_json_get_u64(flight, "bytes");
	s->flight.limit_bytes = bc_json_get_u64(flight, "limit_bytes");
	READ_TEXT(member(root, "replay"), "path", s->replay);
}

static void read_counts(struct bc_top_status *s, const cJSON *counts)
{
	const cJSON *dropped = member(counts, "dropped");

	s->counts.received = bc_json_get_u64(counts, "received");
	s->counts.written = bc_json_get_u64(counts, "written");
	s->counts.buffer = bc_json_get_u64(dropped, "buffer");
	s->counts.disk = bc_json_get_u64(dropped, "disk");
	s->counts.filtered = bc_json_get_u64(dropped, "filtered");
	s->counts.invalid = bc_json_get_u64(dropped, "invalid");
	s->counts.idle = bc_json_get_u64(dropped, "idle");
	s->counts.board = bc_json_get_u64(counts, "board_lost");
	s->counts.skipped_bytes = bc_json_get_u64(counts, "skipped_bytes");
	s->counts.gaps = bc_json_get_u64(counts, "gaps");
}

static void read_room(struct bc_top_status *s, const cJSON *root)
{
	const cJSON *rates = member(root, "rates");
	const cJSON *buffer = member(root, "buffer");
	const cJSON *disk = member(root, "disk");

	s->rates.samples = read_number(rates, "samples_per_s");
	s->rates.records = read_number(rates, "bytes_in_per_s") / BC_RECORD_BYTES;
	s->rates.bytes_out = read_number(rates, "bytes_out_per_s");
	s->buffer.chunks = bc_json_get_u64(buffer, "chunks");
	s->buffer.free = bc_json_get_u64(buffer, "free");
	s->buffer.low_water = bc_json_get_u64(buffer, "low_water");
	s->disk.free_bytes = bc_json_get_u64(disk, "free_bytes");
	s->disk.hours_left = -1;
	if (cJSON_IsNumber(member(disk, "hours_left")))
		s->disk.hours_left = read_number(disk, "hours_left");
	READ_TEXT(disk, "last_error", s->disk.last_error);
}

static bool read_status(struct bc_top_status *s, const cJSON *root)
{
	const cJSON *sealed = member(root, "sealed");

	if (!cJSON_IsString(member(root, "state")) || !cJSON_IsObject(member(root, "counts")))
		return false;
	*s = (struct bc_top_status){0};
	READ_TEXT(root, "version", s->version);
	READ_TEXT(root, "state", s->state);
	READ_TEXT(root, "mode", s->mode);
	s->uptime_s = read_number(root, "uptime_s");
	s->clients = bc_json_get_u64(root, "clients");
	s->triggers = bc_json_get_u64(root, "triggers");
	s->sealed.segments = bc_json_get_u64(sealed, "segments");
	s->sealed.waiting = bc_json_get_u64(sealed, "commands_waiting");
	s->sealed.failed = bc_json_get_u64(sealed, "commands_failed");
	read_source(s, member(root, "source"));
	read_recording(s, root);
	read_counts(s, member(root, "counts"));
	read_room(s, root);
	return true;
}

/* Puts a look down for its second. Two in one second: the later, but what was lost adds up. */
static void note_second(
	struct bc_top_state *state, uint64_t second, const struct bc_top_status *s, uint64_t lost)
{
	struct bc_top_second *at = &state->seconds[second % BC_TOP_SECONDS];
	double before = at->is_known && at->second == second ? at->values[BC_TOP_LOST] : 0;

	at->second = second;
	at->is_known = true;
	at->values[BC_TOP_SAMPLES] = s->rates.samples;
	at->values[BC_TOP_RECORDS] = s->rates.records;
	at->values[BC_TOP_BYTES_OUT] = s->rates.bytes_out;
	at->values[BC_TOP_BUFFER] = bc_top_in_use(s);
	at->values[BC_TOP_LOST] = before + (double)lost;
}

bool bc_top_state_status(
	struct bc_top_state *state, const cJSON *object, const struct bc_top_now *now)
{
	struct bc_top_status *s = malloc(sizeof(*s));
	uint64_t lost = 0;

	if (s == NULL || !read_status(s, object)) {
		free(s);
		return false;
	}
	/* Whose counts begin anew is another daemon, or the same started again. */
	bool is_same = state->has_status && s->uptime_s >= state->status.uptime_s &&
		       s->counts.received >= state->status.counts.received &&
		       bc_top_lost(s) >= bc_top_lost(&state->status);
	if (is_same) {
		lost = bc_top_lost(s) - bc_top_lost(&state->status);
	} else {
		memset(state->mixes, 0, sizeof(state->mixes));
		state->lost_ns = 0;
	}
	if (lost != 0)
		state->lost_ns = now->ns;
	uint64_t second = now->ns / SECOND_NS;
	uint64_t before = state->looked_ns / SECOND_NS;
	if (state->has_status && !state->is_away && second > before && second - before <= HOLE_MAX)
		while (++before < second)
			note_second(state, before, s, 0);
	note_second(state, second, s, lost);
	state->status = *s;
	state->has_status = true;
	state->is_away = false;
	state->looked_ns = now->ns;
	state->looked_wall = now->wall;
	free(s);
	return true;
}

static unsigned read_table(struct bc_top_count *table, const cJSON *object)
{
	const cJSON *item;
	unsigned n = 0;

	cJSON_ArrayForEach(item, object)
	{
		if (n == BC_TOP_KINDS || item->string == NULL || !cJSON_IsNumber(item))
			continue;
		bc_safe_text(table[n].name, sizeof(table[n].name), item->string);
		table[n++].count = item->valuedouble > 0 ? (uint64_t)fmin(item->valuedouble, 1e18)
							 : 0;
	}
	return n;
}

static void read_pages(struct bc_top_mix *mix, const cJSON *array)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, array)
	{
		struct bc_top_page_count *page = &mix->pages[mix->pages_count];
		const char *addr = cJSON_GetStringValue(member(item, "addr"));
		if (mix->pages_count == BC_TOP_PAGES || addr == NULL)
			continue;
		page->addr = strtoull(addr, NULL, 16);
		page->samples = bc_json_get_u64(item, "samples");
		page->more = bc_json_get_u64(item, "more");
		mix->pages_count++;
	}
}

void bc_top_state_mix(struct bc_top_state *state, const cJSON *object, const struct bc_top_now *now)
{
	const struct bc_top_mix *before = bc_top_state_latest_mix(state);

	if (!cJSON_IsObject(object)) {
		memset(state->mixes, 0, sizeof(state->mixes));
		return;
	}
	uint64_t sampled = bc_json_get_u64(object, "sampled");
	if (before->is_known && sampled < before->sampled)
		memset(state->mixes, 0, sizeof(state->mixes));
	state->latest_mix = (state->latest_mix + 1) % (BC_TOP_MIX_PERIOD + 1);
	struct bc_top_mix *mix = &state->mixes[state->latest_mix];
	*mix = (struct bc_top_mix){.is_known = true, .at_ns = now->ns, .sampled = sampled};
	mix->of = bc_json_get_u64(object, "of");
	mix->types_count = read_table(mix->types, member(object, "types"));
	mix->procs_count = read_table(mix->procs, member(object, "procs"));
	mix->memory = bc_json_get_u64(object, "memory");
	read_pages(mix, member(object, "pages"));
}

void bc_top_state_away(struct bc_top_state *state, const char *why)
{
	state->is_away = true;
	snprintf(state->why, sizeof(state->why), "%s", why);
}

const struct bc_top_mix *bc_top_state_latest_mix(const struct bc_top_state *state)
{
	return &state->mixes[state->latest_mix];
}

const struct bc_top_mix *bc_top_state_earlier_mix(const struct bc_top_state *state)
{
	const struct bc_top_mix *latest = bc_top_state_latest_mix(state);

	/* From the oldest on. Half a second more, for looks come not quite on the second. */
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
