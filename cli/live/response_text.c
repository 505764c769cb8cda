/* The daemon's responses and events (docs/api.md) as text: one function for each kind of response,
 * one row of known[] for each event. Most are templates over the JSON (cli/term/json_path.h). What
 * is missing or of another type is omitted, and an unknown event is printed as JSON, because the
 * daemon may be of another version. All text from the daemon is escaped. */
#include "cli/live/response_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/io/trace.h"
#include "cli/live/status.h"
#include "cli/term/json_path.h"
#include "cli/term/text.h"
#include "formats/base/json.h"

bool bc_response_print_mark(struct bc_output *o, const json_t *response)
{
	if (!json_is_object(bc_json_path(response, "mark")))
		return false;
	bc_template_print(o,
		json_is_number(bc_json_path(response, "mark.record"))
			? "mark before record {mark.record}, "
			: "mark in the flight recorder, ",
		response);
	bc_template_print(o, "after tick {mark.tick} of epoch {mark.epoch}\n", response);
	return true;
}

/* Prints no details: the new segment has none before its first chunk. */
bool bc_response_print_rotated(struct bc_output *o, const json_t *response)
{
	if (bc_json_path_text(response, "recording.id") == NULL)
		return false;
	bc_template_print(
		o, "recording {recording.id}: the next record starts a new segment\n", response);
	return true;
}

/* ---- recordings */

/* Returns why a recording ended; an unknown reason as it is. */
static const char *reason_text(const char *reason)
{
	static const struct {
		const char *reason;
		const char *text;
	} reasons[] = {{"request", "stopped on request"}, {"limit", "limit reached"},
		{"trigger", "stopped by a trigger"}, {"source", "end of the source"},
		{"signal", "buscapd stopped"}, {"failed", "failed"},
		{"crash", "buscapd was killed; recovered"}, {"power", "power failed; recovered"}};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (strcmp(reason, reasons[i].reason) == 0)
			return reasons[i].text;
	return reason;
}

static void print_limits(struct bc_output *o, const json_t *limits)
{
	const json_t *duration = bc_json_path(limits, "duration");
	char text[BC_HUMANIZE_MAX];

	if (json_is_number(duration))
		bc_status_line(
			o, "limit", "%s", bc_humanize_time(text, json_number_value(duration)));
	bc_template_print(o,
		"[  limit       {records record}\n]"
		"[  limit       {filesize B}\n]",
		limits);
}

bool bc_response_print_recording(struct bc_output *o, const json_t *response)
{
	const json_t *r = bc_json_path(response, "recording");
	const char *reason = bc_json_path_text(r, "reason");
	const char *state = bc_json_path_text(r, "state");
	bool is_running = state != NULL && strcmp(state, "recording") == 0;
	char cell[BC_HUMANIZE_MAX];
	bool is_empty = json_is_null(bc_json_path(r, "ended")) &&
			(bc_json_path_count(r, "segments") | bc_json_path_count(r, "records") |
				bc_json_path_count(r, "lost")) == 0;

	if (!json_is_object(r))
		return false;
	bc_template_print(
		o, is_running ? "recording {id}: in progress\n" : "recording {id}[: {state}]\n", r);
	bc_template_print(o,
		"[  label       {label}\n]"
		"[  started     {started}\n]"
		"[  ended       {ended}\n]",
		r);
	if (reason != NULL)
		bc_status_line_safe(o, "reason", reason_text(reason));
	print_limits(o, bc_json_path(r, "limits"));
	if (!is_empty)
		bc_template_print(o,
			"[  segments    {segments #}\n]"
			"[  records     {records #}\n]"
			"[  on disk     {bytes B}\n]",
			r);
	if (!is_empty)
		bc_status_line(o, "lost", "%s", bc_lost_cell(cell, r));
	bc_template_print(o,
		"[  missing     {missing_segments segment}\n]"
		"[              {missing record}\n]"
		"[  newest file {path}\n]",
		r);
	bc_notes_print(o, bc_json_path(r, "metadata"), "  note        ", "\n");
	return true;
}

/* Prints how much the recordings of a list need, and when the oldest are deleted. */
static void print_space(struct bc_output *o, const json_t *response, uint64_t bytes)
{
	const json_t *ring = bc_json_path(response, "disk.ring");
	const json_t *free = bc_json_path(response, "disk.free_bytes");
	char text[BC_HUMANIZE_MAX];

	bc_output_format(o, "# %s on disk", bc_humanize_bytes(text, (double)bytes));
	if (json_is_number(free))
		bc_output_format(o, ", %s free", bc_humanize_bytes(text, json_number_value(free)));
	bc_template_print(o,
		json_is_number(bc_json_path(ring, "limit_bytes"))
			? "[; the oldest segments are deleted above {limit_bytes B}]"
			: "[; the oldest segments are deleted above {limit_segments segment}]",
		ring);
	bc_output_text(o, "\n", 1);
}

bool bc_response_print_recordings(struct bc_output *o, const json_t *response)
{
	uint64_t bytes = 0;
	const json_t *recordings = bc_json_path(response, "recordings");
	const json_t *r;
	size_t i;
	int width = bc_column_width(recordings, "id", 2);

	if (!json_is_array(recordings))
		return false;
	if (json_array_size(recordings) == 0) {
		bc_output_format(o, "no recordings\n");
		return true;
	}
	bc_template_print(o, "[# {omitted older recording} not shown\n]", response);
	bc_output_format(o, "%-*s  %-9s  %-*s  %8s  %17s  %12s  %8s  LABEL\n", width, "ID", "STATE",
		BC_COLUMN_TIME, "STARTED (UTC)", "SEGMENTS", "RECORDS", "LOST", "ON DISK");
	json_array_foreach(recordings, i, r)
	{
		char size[BC_HUMANIZE_MAX] = "-";
		char lost[BC_HUMANIZE_MAX];
		bc_column_text(o, width, r, "id");
		bc_column_text(o, 9, r, "state");
		bc_column_time(o, r, "started");
		bc_column_count(o, 8, r, "segments");
		bc_column_count(o, 17, r, "records");
		bc_output_format(o, "%12s  ", bc_lost_cell(lost, r));
		if (json_is_number(bc_json_path(r, "bytes")))
			bc_humanize_bytes(size, (double)bc_json_path_count(r, "bytes"));
		bytes += bc_json_path_count(r, "bytes");
		bc_output_format(o, "%8s  ", size);
		bc_template_print(o, "{label}[  {missing_segments segment} missing]\n", r);
	}
	print_space(o, response, bytes);
	return true;
}

/* ---- triggers */

/* Prints a row: columns, condition, then the options that were given. The daemon sets the text to
 * the name if none was given. */
static void print_trigger(struct bc_output *o, int width, const json_t *t)
{
	const char *name = bc_json_path_text(t, "name");
	static const char *const options[] = {"pre", "post", "holdoff", "text"};
	char time[BC_HUMANIZE_MAX];

	bc_column_text(o, width, t, "name");
	bc_column_text(o, 8, t, "action");
	bc_column_count(o, 10, t, "fired");
	bc_column_count(o, 10, t, "missed");
	bc_column_text(o, 13, t, "from");
	bc_template_print(o, "[{when}]", t);
	for (unsigned i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		const json_t *item = bc_json_path(t, options[i]);
		const char *text = bc_json_path_text(t, options[i]);
		if (json_is_number(item)) {
			bc_output_format(o, ", %s %s", options[i],
				bc_humanize_time(time, json_number_value(item)));
		} else if (text != NULL && (name == NULL || strcmp(text, name) != 0)) {
			bc_output_format(o, ", %s ", options[i]);
			bc_output_safe(o, text);
		}
	}
	bc_output_text(o, "\n", 1);
}

bool bc_response_print_triggers(struct bc_output *o, const json_t *response)
{
	json_t *one = bc_json_path(response, "trigger");
	json_t *triggers = json_is_object(one) ? json_pack("[O]", one)
					       : json_incref(bc_json_path(response, "triggers"));
	bool is_list = json_is_array(triggers);
	const json_t *t;
	size_t i;
	int width = bc_column_width(triggers, "name", 16);

	if (json_array_size(triggers) != 0)
		bc_output_format(o, "%-*s  %-8s  %10s  %10s  %-13s  WHEN\n", width, "NAME",
			"ACTION", "FIRED", "MISSED", "FROM");
	else if (is_list)
		bc_output_format(o, "no triggers\n");
	json_array_foreach(triggers, i, t)
	{
		print_trigger(o, width, t);
	}
	json_decref(triggers);
	return is_list;
}

/* ---- events */

static void print_status_event(struct bc_output *o, const json_t *event)
{
	const json_t *status = bc_json_path(event, "status");
	const json_t *rate = bc_json_path(status, "rates.samples_per_second");
	char lost[BC_LOSS_TEXT_MAX];
	char text[BC_HUMANIZE_MAX];

	bc_template_print(o, "{status.state}, ", event);
	if (json_is_number(rate))
		bc_output_format(
			o, "%s samples/s, ", bc_humanize_rate(text, json_number_value(rate)));
	bc_template_print(o, "{status.counts.received sample} received", event);
	bc_output_format(o, ", %s", bc_loss_text(lost, bc_status_loss(status)));
	if (bc_status_is_stuck(status)) {
		bc_output_format(o, ", disk stuck: ");
		bc_output_safe(o, bc_json_path_text(status, "disk.last_error"));
	}
}

void bc_gap_print(struct bc_output *o, const json_t *event)
{
	const struct bc_loss loss = {.lost = bc_json_path_count(event, "lost"),
		.inexact = !json_is_true(bc_json_path(event, "exact"))};
	char text[BC_LOSS_TEXT_MAX];

	bc_output_format(o, "%s", bc_loss_text(text, loss));
	bc_template_print(o, " ({cause})", event);
	if (bc_json_path_count(event, "gaps") > 1)
		bc_template_print(o, " in {gaps gap}", event);
	bc_template_print(o, "[; {activity}]", event);
}

static void print_note(struct bc_output *o, const json_t *event)
{
	bc_template_print(o, "{recording}", event);
	bc_notes_print(o, bc_json_path(event, "metadata"), " ", "");
}

static void print_disk(struct bc_output *o, const json_t *event)
{
	bool is_stuck = json_is_true(bc_json_path(event, "stuck"));

	bc_template_print(o,
		is_stuck ? "stuck[: {error}]" : "[write failed: {error}; ]writing resumed", event);
}

static void print_disk_low(struct bc_output *o, const json_t *event)
{
	char left[BC_HUMANIZE_MAX];

	if (json_is_true(bc_json_path(event, "low")))
		bc_output_format(o, "full in %s at the current rate",
			bc_humanize_time(
				left, (double)bc_json_path_count(event, "time_left_seconds")));
	else
		bc_output_format(o, "no longer nearly full");
}

static void print_clock(struct bc_output *o, const json_t *event)
{
	bc_output_format(o, "times of day move by %+.3f s",
		json_number_value(bc_json_path(event, "moved_seconds")));
	bc_template_print(o, " ({reason})", event);
}

static void print_hang(struct bc_output *o, const json_t *event)
{
	bool hangs = bc_json_path_text(event, "error") != NULL;

	bc_template_print(o, hangs ? "{error}" : "the thread continues", event);
}

static void print_recording_ended(struct bc_output *o, const json_t *event)
{
	const char *reason = bc_json_path_text(event, "recording.reason");
	char text[BC_HUMANIZE_MAX];

	bc_template_print(o,
		"{recording.id}: {recording.records record} in {recording.segments segment}"
		"[, {recording.lost sample} lost]",
		event);
	double started = bc_status_time(event, "recording.started");
	double ended = bc_status_time(event, "recording.ended");
	if (started != 0 && ended >= started)
		bc_output_format(o, ", %s", bc_humanize_time(text, ended - started));
	if (reason != NULL) {
		bc_output_format(o, "; ended: ");
		bc_output_safe(o, reason_text(reason));
	}
}

static const struct {
	const char *event;
	const char *template; /* NULL: use print() */
	void (*print)(struct bc_output *o, const json_t *event);
} known[] = {
	{"status", NULL, print_status_event},
	{"state", "{from} -> {to}", NULL},
	{"recording-started", "{recording.id}[, label {recording.label}]", NULL},
	{"recording-ended", NULL, print_recording_ended},
	{"segment-started", "{path}", NULL},
	{"segment-sealed", "{path}: {records record}, {bytes B}[, {lost sample} lost], hash {hash}",
		NULL},
	{"mark", "{mark.text}[, before record {mark.record}], tick {mark.tick}", NULL},
	{"trigger", "{name}: {action}[, at record {record}], tick {tick}", NULL},
	{"trigger-armed", "{trigger.name}: {trigger.action} on {trigger.when}", NULL},
	{"trigger-disarmed", "{name}", NULL},
	{"gap", NULL, bc_gap_print},
	{"note", NULL, print_note},
	{"disk", NULL, print_disk},
	{"disk-low", NULL, print_disk_low},
	{"hang", NULL, print_hang},
	{"board", "{state}[: {error}]", NULL},
	{"clock", NULL, print_clock},
	{"command-failed", "{path}[, exit code {exit_code}][: {error}]", NULL},
	{"reload", "configuration reloaded", NULL},
	{"missed", "{count event} (this program was too slow)", NULL},
	{"stopping", "buscapd is stopping[: {signal}]", NULL},
};

/* Shortens "2026-11-20T09:15:00.123456789Z" to milliseconds. */
static void print_time(struct bc_output *o, const json_t *event)
{
	const char *text = bc_json_path_text(event, "time");
	char time[24];
	char safe[100];

	snprintf(time, sizeof(time), "%s", text != NULL ? text : "");
	bc_output_format(o, "%s%s ", bc_safe_text(safe, sizeof(safe), time),
		strlen(time) == 23 && time[22] != 'Z' ? "Z" : "");
}

/* True if something is wrong after the event: of the nth kind that ends. */
static bool is_wrong(const json_t *event, const char *name, size_t *n)
{
	static const char *const names[] = {"board", "disk", "disk-low", "hang"};
	const char *state = bc_json_path_text(event, "state");

	for (*n = 0; *n < 4 && strcmp(name, names[*n]) != 0; ++*n)
		;
	return (*n == 0 && state != NULL && strcmp(state, "streaming") != 0) ||
	       (*n == 1 && json_is_true(bc_json_path(event, "stuck"))) ||
	       (*n == 2 && json_is_true(bc_json_path(event, "low"))) ||
	       (*n == 3 && bc_json_path_text(event, "error") != NULL);
}

/* At the end of something wrong, prints how long it lasted. */
static void print_duration(
	struct bc_output *o, const json_t *event, const char *name, struct bc_event_times *times)
{
	double now = bc_status_time(event, "time");
	char text[BC_HUMANIZE_MAX];
	size_t n;
	bool is = is_wrong(event, name, &n);

	if (n == sizeof(times->began) / sizeof(times->began[0]))
		return;
	double *began = &times->began[n];
	if (!is && *began != 0 && now >= *began)
		bc_output_format(o, ", after %s", bc_humanize_time(text, now - *began));
	*began = !is ? 0 : *began != 0 ? *began : now;
}

bool bc_event_print(struct bc_output *o, const json_t *event, struct bc_event_times *times)
{
	const char *name = json_string_value(bc_json_path(event, "event"));
	size_t i = 0;

	if (name == NULL)
		return false;
	print_time(o, event);
	while (i < sizeof(known) / sizeof(known[0]) && strcmp(name, known[i].event) != 0)
		i++;
	if (i == sizeof(known) / sizeof(known[0])) {
		char *json = bc_json_print(event);
		if (json != NULL)
			bc_output_json(o, json, strlen(json));
		free(json);
		return true;
	}
	char title[32];
	snprintf(title, sizeof(title), "%s", name);
	for (char *dash = title; (dash = strchr(dash, '-')) != NULL;)
		*dash = ' ';
	bc_output_format(o, "%-17s  ", title);
	if (known[i].template != NULL)
		bc_template_print(o, known[i].template, event);
	else
		known[i].print(o, event);
	print_duration(o, event, name, times);
	bc_output_text(o, "\n", 1);
	return true;
}
