#include "cli/live/response_text.h"

#include <string.h>

#include "cli/term/json_path.h"
#include "cli/term/template.h"
#include "cli/term/text.h"

bool bc_response_print_mark(struct bc_output *o, const json_t *response)
{
	if (!json_is_object(bc_json_path(response, "mark")))
		return false;
	bc_template_print(o,
		json_is_number(bc_json_path(response, "mark.record"))
			? "mark before record {mark.record}, "
			: "mark in the flight recorder, ",
		response);
	bc_template_print(o, "tick {mark.tick} of epoch {mark.epoch}\n", response);
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

const char *bc_recording_reason_text(const char *reason)
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

bool bc_response_print_recording(struct bc_output *o, const json_t *response)
{
	const json_t *r = bc_json_path(response, "recording");
	const char *reason = bc_json_path_text(r, "reason");
	const char *state = bc_json_path_text(r, "state");
	bool is_running = state != NULL && strcmp(state, "recording") == 0;
	bool is_recovered = state != NULL && strcmp(state, "recovered") == 0;
	bool is_empty = json_is_null(bc_json_path(r, "ended")) &&
			(bc_json_path_count(r, "segments") | bc_json_path_count(r, "records") |
				bc_json_path_count(r, "lost")) == 0;
	const char *key;
	json_t *value;

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
		bc_status_line_safe(o, "reason", bc_recording_reason_text(reason));
	if (!is_empty)
		bc_template_print(o,
			"[  segments    {segments #}\n]"
			"[  records     {records #}\n]"
			"[  on disk     {bytes B}\n]",
			r);
	if (!is_empty)
		bc_template_print(o,
			is_recovered ? "[  lost        {lost #} or more\n]"
				     : "[  lost        {lost #}\n]",
			r);
	bc_template_print(o, "[  newest file {path}\n]", r);
	json_object_foreach(bc_json_path(r, "metadata"), key, value)
	{
		if (!json_is_string(value))
			continue;
		bc_output_format(o, "  %-11s ", "note");
		bc_output_safe(o, key);
		bc_output_text(o, "=", 1);
		bc_output_safe(o, json_string_value(value));
		bc_output_text(o, "\n", 1);
	}
	return true;
}

bool bc_response_print_recordings(struct bc_output *o, const json_t *response)
{
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
	bc_output_format(o, "%-*s  %-9s  %-*s  %8s  %17s  %8s  LABEL\n", width, "ID", "STATE",
		BC_COLUMN_TIME, "STARTED (UTC)", "SEGMENTS", "RECORDS", "ON DISK");
	json_array_foreach(recordings, i, r)
	{
		char size[BC_HUMANIZE_MAX] = "-";
		bc_column_text(o, width, r, "id");
		bc_column_text(o, 9, r, "state");
		bc_column_time(o, r, "started");
		bc_column_count(o, 8, r, "segments");
		bc_column_count(o, 17, r, "records");
		if (json_is_number(bc_json_path(r, "bytes")))
			bc_humanize_bytes(size, (double)bc_json_path_count(r, "bytes"));
		bc_output_format(o, "%8s  ", size);
		bc_template_print(o, "{label}[  {missing_segments segment} missing]\n", r);
	}
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
	json_t *triggers = bc_json_path(response, "triggers");
	const json_t *one = bc_json_path(response, "trigger");
	const json_t *t;
	size_t i;
	int width = bc_column_width(triggers, "name", 16);

	if (!json_is_array(triggers) && !json_is_object(one))
		return false;
	if (json_is_array(triggers) && json_array_size(triggers) == 0) {
		bc_output_format(o, "no triggers\n");
		return true;
	}
	if (one != NULL && bc_json_path_text(one, "name") != NULL) {
		int n = (int)strnlen(bc_json_path_text(one, "name"), 128);
		width = n > width ? n : width;
	}
	bc_output_format(o, "%-*s  %-8s  %10s  %10s  %-13s  WHEN\n", width, "NAME", "ACTION",
		"FIRED", "MISSED", "FROM");
	if (one != NULL)
		print_trigger(o, width, one);
	json_array_foreach(triggers, i, t)
	{
		print_trigger(o, width, t);
	}
	return true;
}
