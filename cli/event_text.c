#include "cli/event_text.h"

#include <inttypes.h>
#include <string.h>

#include "cli/quantity.h"
#include "cli/safe_text.h"
#include "formats/json.h"

static const cJSON *get(const cJSON *object, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* Prints a member that is a text; "-" where there is none. */
static void text(struct bc_output *o, const cJSON *object, const char *name)
{
	const char *value = cJSON_GetStringValue(get(object, name));

	bc_output_safe(o, value != NULL && *value != '\0' ? value : "-");
}

/* "12,345 records". */
static void count(struct bc_output *o, const cJSON *object, const char *name, const char *what)
{
	char number[BC_QUANTITY_MAX];
	uint64_t n = bc_json_get_u64(object, name);

	bc_output_format(o, "%s %s%s", bc_quantity_count(number, n), what, bc_plural(n));
}

static void size(struct bc_output *o, const cJSON *object, const char *name)
{
	char bytes[BC_QUANTITY_MAX];

	bc_output_format(o, "%s", bc_quantity_bytes(bytes, (double)bc_json_get_u64(object, name)));
}

/* ", 12 samples lost", where some are. */
static void losses(struct bc_output *o, const cJSON *object)
{
	if (bc_json_get_u64(object, "lost") == 0)
		return;
	bc_output_format(o, ", ");
	count(o, object, "lost", "sample");
	bc_output_format(o, " lost");
}

static void print_status(struct bc_output *o, const cJSON *event)
{
	const cJSON *status = get(event, "status");
	const cJSON *counts = get(status, "counts");
	const cJSON *dropped = get(counts, "dropped");
	uint64_t lost = bc_json_get_u64(dropped, "buffer") + bc_json_get_u64(dropped, "disk") +
			bc_json_get_u64(counts, "board_lost");
	char rate[BC_QUANTITY_MAX];
	char number[BC_QUANTITY_MAX];

	text(o, status, "state");
	bc_output_format(o, ", %s samples/s, ",
		bc_quantity_rate(
			rate, (double)bc_json_get_u64(get(status, "rates"), "samples_per_s")));
	count(o, counts, "received", "sample");
	bc_output_format(o, " received, %s lost", bc_quantity_count(number, lost));
}

static void print_state(struct bc_output *o, const cJSON *event)
{
	text(o, event, "from");
	bc_output_format(o, " -> ");
	text(o, event, "to");
}

static void print_started(struct bc_output *o, const cJSON *event)
{
	const cJSON *recording = get(event, "recording");

	text(o, recording, "id");
	if (cJSON_IsString(get(recording, "label"))) {
		bc_output_format(o, ", label ");
		text(o, recording, "label");
	}
}

static void print_stopped(struct bc_output *o, const cJSON *event)
{
	const cJSON *recording = get(event, "recording");

	text(o, recording, "id");
	bc_output_format(o, ": ");
	count(o, recording, "records", "record");
	bc_output_format(o, " in ");
	count(o, recording, "segments", "segment");
	losses(o, recording);
	bc_output_format(o, "; ended by ");
	text(o, recording, "reason");
}

static void print_begun(struct bc_output *o, const cJSON *event)
{
	text(o, event, "path");
}

static void print_sealed(struct bc_output *o, const cJSON *event)
{
	text(o, event, "path");
	bc_output_format(o, ": ");
	count(o, event, "records", "record");
	bc_output_format(o, ", ");
	size(o, event, "bytes");
	losses(o, event);
	bc_output_format(o, ", hash ");
	text(o, event, "hash");
}

static void print_capture(struct bc_output *o, const cJSON *event)
{
	text(o, event, "path");
	bc_output_format(o, ": ");
	size(o, event, "bytes");
	bc_output_format(o, ", hash ");
	text(o, event, "hash");
}

static void print_mark(struct bc_output *o, const cJSON *event)
{
	const cJSON *mark = get(event, "mark");

	text(o, mark, "text");
	if (cJSON_IsNumber(get(mark, "record")))
		bc_output_format(o, ", before record %" PRIu64, bc_json_get_u64(mark, "record"));
	bc_output_format(o, ", tick %" PRIu64, bc_json_get_u64(mark, "tick"));
}

static void print_trigger(struct bc_output *o, const cJSON *event)
{
	text(o, event, "name");
	bc_output_format(o, ": ");
	text(o, event, "action");
	if (cJSON_IsNumber(get(event, "record")))
		bc_output_format(o, ", at record %" PRIu64, bc_json_get_u64(event, "record"));
	bc_output_format(o, ", tick %" PRIu64, bc_json_get_u64(event, "tick"));
}

static void print_armed(struct bc_output *o, const cJSON *event)
{
	const cJSON *trigger = get(event, "trigger");

	text(o, trigger, "name");
	bc_output_format(o, ": ");
	text(o, trigger, "action");
	bc_output_format(o, " at ");
	text(o, trigger, "when");
}

static void print_disarmed(struct bc_output *o, const cJSON *event)
{
	text(o, event, "name");
}

static void print_gap(struct bc_output *o, const cJSON *event)
{
	bool is_exact = cJSON_IsTrue(get(event, "exact"));

	if (!is_exact && bc_json_get_u64(event, "lost") == 0) {
		bc_output_format(o, "an unknown number of samples");
	} else {
		bc_output_format(o, "%s", is_exact ? "" : "at least ");
		count(o, event, "lost", "sample");
	}
	bc_output_format(o, " lost (");
	text(o, event, "cause");
	bc_output_format(o, ")");
	if (bc_json_get_u64(event, "gaps") > 1) {
		bc_output_format(o, " in ");
		count(o, event, "gaps", "gap");
	}
}

static void print_note(struct bc_output *o, const cJSON *event)
{
	const cJSON *note;

	text(o, event, "recording");
	cJSON_ArrayForEach(note, get(event, "metadata"))
	{
		bc_output_format(o, " ");
		bc_output_safe(o, note->string);
		bc_output_format(o, "=");
		bc_output_safe(o, cJSON_GetStringValue(note));
	}
}

static void print_disk(struct bc_output *o, const cJSON *event)
{
	bool is_stuck = cJSON_IsTrue(get(event, "stuck"));

	if (cJSON_IsString(get(event, "error"))) {
		bc_output_format(o, is_stuck ? "nothing can be written: " : "it failed: ");
		text(o, event, "error");
	}
	if (!is_stuck)
		bc_output_format(
			o, "%swriting goes on", cJSON_IsString(get(event, "error")) ? "; " : "");
}

static void print_board(struct bc_output *o, const cJSON *event)
{
	text(o, event, "state");
	if (cJSON_IsString(get(event, "error"))) {
		bc_output_format(o, ": ");
		text(o, event, "error");
	}
}

static void print_replay(struct bc_output *o, const cJSON *event)
{
	const cJSON *replay = get(event, "replay");

	text(o, replay, "id");
	bc_output_format(o, ": ");
	text(o, replay, "path");
	bc_output_format(o, ", ");
	text(o, replay, "state");
	if (cJSON_IsString(get(replay, "error"))) {
		bc_output_format(o, ": ");
		text(o, replay, "error");
	}
}

static void print_command(struct bc_output *o, const cJSON *event)
{
	const cJSON *status = get(event, "status");

	bc_output_format(o, "it failed for ");
	text(o, event, "path");
	if (cJSON_IsNumber(status) && status->valuedouble >= 0)
		bc_output_format(o, ", exit code %" PRIu64, bc_json_get_u64(event, "status"));
	if (cJSON_IsString(get(event, "error"))) {
		bc_output_format(o, ": ");
		text(o, event, "error");
	}
}

static void print_reload(struct bc_output *o, const cJSON *event)
{
	(void)event;
	bc_output_format(o, "the configuration was read again");
}

static void print_missed(struct bc_output *o, const cJSON *event)
{
	count(o, event, "count", "event");
	bc_output_format(o, " that this program was too slow for");
}

static void print_stopping(struct bc_output *o, const cJSON *event)
{
	bc_output_format(o, "the daemon ends");
	if (cJSON_IsString(get(event, "signal"))) {
		bc_output_format(o, ", by ");
		text(o, event, "signal");
	}
}

static void print_unknown(struct bc_output *o, const cJSON *event)
{
	char *json = cJSON_PrintUnformatted(event);

	if (json != NULL)
		bc_output_json(o, json, strlen(json));
	cJSON_free(json);
}

/* "2026-11-20T09:15:00.123Z": what lies below a millisecond is for programs. */
static void print_time(struct bc_output *o, const cJSON *event)
{
	char time[24];
	char safe[100];

	bc_json_get_text(event, "time", time, sizeof(time));
	bc_output_format(o, "%s%s ", bc_safe_text(safe, sizeof(safe), time),
		strlen(time) == 23 && time[22] != 'Z' ? "Z" : "");
}

bool bc_event_print(struct bc_output *o, const cJSON *event)
{
	static const struct {
		const char *event;
		const char *name;
		void (*print)(struct bc_output *o, const cJSON *event);
	} known[] = {
		{"status", "status", print_status},
		{"state", "state", print_state},
		{"recording-started", "recording started", print_started},
		{"recording-stopped", "recording stopped", print_stopped},
		{"segment-begun", "segment begun", print_begun},
		{"segment-sealed", "segment sealed", print_sealed},
		{"capture-sealed", "capture sealed", print_capture},
		{"mark", "mark", print_mark},
		{"trigger", "trigger", print_trigger},
		{"trigger-armed", "trigger armed", print_armed},
		{"trigger-disarmed", "trigger disarmed", print_disarmed},
		{"gap", "gap", print_gap},
		{"note", "note", print_note},
		{"disk", "disk", print_disk},
		{"board", "board", print_board},
		{"replay-started", "replay started", print_replay},
		{"replay-ended", "replay ended", print_replay},
		{"command", "command", print_command},
		{"reload", "reload", print_reload},
		{"missed", "missed", print_missed},
		{"stopping", "stopping", print_stopping},
	};
	const char *name = cJSON_GetStringValue(get(event, "event"));

	if (name == NULL)
		return false;
	print_time(o, event);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(name, known[i].event) != 0)
			continue;
		bc_output_format(o, "%-17s  ", known[i].name);
		known[i].print(o, event);
		bc_output_text(o, "\n", 1);
		return true;
	}
	print_unknown(o, event);
	return true;
}
