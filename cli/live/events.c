#include "cli/live/events.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/io/client.h"
#include "cli/live/live.h"
#include "cli/live/response_text.h"
#include "cli/live/status_lines.h"
#include "cli/term/commands.h"
#include "cli/term/json_path.h"
#include "cli/term/options.h"
#include "cli/term/template.h"
#include "cli/term/text.h"
#include "formats/base/json.h"

static void print_status(struct bc_output *o, const json_t *event)
{
	const json_t *status = bc_json_path(event, "status");
	bool is_inexact = bc_json_path_count(status, "counts.inexact_gaps") != 0;
	uint64_t lost = bc_status_lost(status);
	char text[BC_HUMANIZE_MAX];

	bc_template_print(o, "{status.state}, ", event);
	bc_output_format(o, "%s samples/s, ",
		bc_humanize_rate(text, bc_json_path_number(status, "rates.samples_per_second")));
	bc_template_print(o, "{status.counts.received sample} received", event);
	if (lost == 0 && is_inexact)
		bc_output_format(o, ", an unknown number lost");
	else
		bc_output_format(o, ", %s%s lost", is_inexact ? "at least " : "",
			bc_humanize_count(text, lost));
	if (bc_status_is_stuck(status)) {
		bc_output_format(o, ", disk stuck: ");
		bc_output_safe(o, bc_json_path_text(status, "disk.last_error"));
	}
}

static void print_gap(struct bc_output *o, const json_t *event)
{
	bool is_exact = json_is_true(bc_json_path(event, "exact"));

	if (!is_exact && bc_json_path_count(event, "lost") == 0)
		bc_output_format(o, "an unknown number of samples");
	else
		bc_template_print(o, is_exact ? "{lost sample}" : "at least {lost sample}", event);
	bc_template_print(o, " lost ({cause})", event);
	if (bc_json_path_count(event, "gaps") > 1)
		bc_template_print(o, " in {gaps gap}", event);
}

static void print_note(struct bc_output *o, const json_t *event)
{
	const char *key;
	json_t *value;

	bc_template_print(o, "{recording}", event);
	json_object_foreach(bc_json_path(event, "metadata"), key, value)
	{
		bc_output_text(o, " ", 1);
		bc_output_safe(o, key);
		bc_output_text(o, "=", 1);
		bc_output_safe(o, json_string_value(value));
	}
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

static void print_hang(struct bc_output *o, const json_t *event)
{
	bool hangs = bc_json_path_text(event, "error") != NULL;

	bc_template_print(o, hangs ? "{error}" : "the thread continues", event);
}

static void print_recording_ended(struct bc_output *o, const json_t *event)
{
	const char *reason = bc_json_path_text(event, "recording.reason");

	bc_template_print(o,
		"{recording.id}: {recording.records record} in {recording.segments segment}"
		"[, {recording.lost sample} lost]",
		event);
	if (reason != NULL) {
		bc_output_format(o, "; ended: ");
		bc_output_safe(o, bc_recording_reason_text(reason));
	}
}

static const struct {
	const char *event;
	const char *template; /* NULL: use print() */
	void (*print)(struct bc_output *o, const json_t *event);
} known[] = {
	{"status", NULL, print_status},
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
	{"gap", NULL, print_gap},
	{"note", NULL, print_note},
	{"disk", NULL, print_disk},
	{"disk-low", NULL, print_disk_low},
	{"hang", NULL, print_hang},
	{"board", "{state}[: {error}]", NULL},
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

bool bc_event_print(struct bc_output *o, const json_t *event)
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
	bc_output_text(o, "\n", 1);
	return true;
}

/* ---- the command */

/* The daemon sends a status every second. */
#define SILENCE_MS 30000

enum { OPTION_CHANGES = BC_CLIENT_OPT_MORE };

static const struct bc_usage_option options[] = {
	{OPTION_CHANGES, "changes", NULL, NULL, "print the status only once, at the beginning"},
	{BC_CLIENT_OPT_JSON, "json", NULL, NULL, "print JSON, one object per line"},
	BC_CLIENT_OPTION_SOCKET,
	{0},
};

const struct bc_usage bc_events_usage = {
	.name = "events",
	.summary = "print the daemon's events as they happen",
	.text = "Prints the daemon's events as they happen, one per line, until Ctrl-C: "
		"recordings, segments, marks, triggers, gaps, the board and the disk. The status "
		"is printed first and then every second.",
	.options = options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap events --changes",
};

static bool print_event(void *context, struct bc_output *output, const json_t *event)
{
	(void)context;
	return bc_event_print(output, event);
}

/* The first status says what later changes refer to: that the disk is stuck, for instance. */
static bool is_change(void *context, const json_t *event)
{
	bool *has_status = context;
	const char *name = bc_json_path_text(event, "event");

	if (name == NULL || strcmp(name, "status") != 0)
		return true;
	bool is_first = !*has_status;
	*has_status = true;
	return is_first;
}

int bc_cmd_events(const struct bc_console *console, int argc, char **argv)
{
	bool has_status = false;
	struct bc_live live = {.console = console,
		.context = &has_status,
		.path = "/v1/events",
		.silence_ms = SILENCE_MS,
		.print = print_event};
	struct bc_options o;
	int letter;

	bc_options_start(&o, console, &bc_events_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1) {
		switch (letter) {
		case OPTION_CHANGES:
			live.filter = is_change;
			break;
		case BC_CLIENT_OPT_JSON:
			live.is_json = true;
			break;
		case BC_CLIENT_OPT_SOCKET:
			live.socket = optarg;
			break;
		default:
			return o.exit;
		}
	}
	if (optind < argc)
		return bc_print_usage_error(console, "events takes no operands");
	return bc_live_run(&live);
}
