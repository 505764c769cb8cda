#include "cli/client/answer_text.h"

#include <string.h>

#include "cli/term/column.h"
#include "cli/term/humanize.h"
#include "cli/term/json_path.h"
#include "cli/term/template.h"

bool bc_answer_print_mark(struct bc_output *o, const json_t *answer)
{
	if (!json_is_object(bc_json_path(answer, "mark")))
		return false;
	bc_template_print(o,
		json_is_number(bc_json_path(answer, "mark.record"))
			? "mark before record {mark.record}, "
			: "mark in what the flight recorder holds, at ",
		answer);
	bc_template_print(o, "tick {mark.tick} of epoch {mark.epoch}\n", answer);
	return true;
}

/* Not what is known of the recording: of the new segment nothing is, before its first chunk. */
bool bc_answer_print_rotated(struct bc_output *o, const json_t *answer)
{
	if (bc_json_path_text(answer, "recording.id") == NULL)
		return false;
	bc_template_print(
		o, "recording {recording.id}: the next record is in a new segment\n", answer);
	return true;
}

/* ---- recordings */

static const char *reason_text(const char *reason)
{
	static const struct {
		const char *reason;
		const char *text;
	} reasons[] = {{"request", "stopped on request"}, {"limit", "limit reached"},
		{"trigger", "a trigger stopped it"}, {"source", "the source ended"},
		{"signal", "the daemon stopped"}, {"failed", "it failed"}};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (strcmp(reason, reasons[i].reason) == 0)
			return reasons[i].text;
	return reason;
}

static void print_recording(struct bc_output *o, const json_t *r)
{
	const char *reason = bc_json_path_text(r, "reason");
	bool is_empty = json_is_null(bc_json_path(r, "ended")) &&
			(bc_json_path_count(r, "segments") | bc_json_path_count(r, "records") |
				bc_json_path_count(r, "lost")) == 0;
	const char *key;
	json_t *value;

	bc_template_print(o,
		"recording {id}[: {state}]\n"
		"[  label       {label}\n]"
		"[  started     {started}\n]"
		"[  ended       {ended}\n]",
		r);
	if (reason != NULL)
		bc_status_line_safe(o, "because", reason_text(reason));
	if (!is_empty) {
		bc_template_print(o,
			"[  segments    {segments #}\n]"
			"[  records     {records #}\n]"
			"[  on disk     {bytes B}\n]",
			r);
		if (bc_json_path_count(r, "lost") != 0)
			bc_template_print(o, "  lost        {lost #}\n", r);
		else if (json_is_number(bc_json_path(r, "lost")))
			bc_status_line(o, "lost", "nothing");
	}
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
}

bool bc_answer_print_recording(struct bc_output *o, const json_t *answer)
{
	const json_t *recording = bc_json_path(answer, "recording");

	if (!json_is_object(recording))
		return false;
	print_recording(o, recording);
	return true;
}

bool bc_answer_print_recordings(struct bc_output *o, const json_t *answer)
{
	const json_t *recordings = bc_json_path(answer, "recordings");
	uint64_t left_out = bc_json_path_count(answer, "omitted");
	const json_t *r;
	size_t i;
	int width = bc_column_width(recordings, "id", 2);

	if (!json_is_array(recordings))
		return false;
	if (json_array_size(recordings) == 0) {
		bc_output_format(o, "no recordings\n");
		return true;
	}
	if (left_out != 0) {
		bc_template_print(o, "# {omitted older recording}", answer);
		bc_output_format(o, " %s left out\n", left_out == 1 ? "is" : "are");
	}
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
		bc_template_print(o, "{label}\n", r);
	}
	return true;
}

/* ---- triggers */

/* What was said beyond the condition; the text is the name where none was given. */
static void print_trigger(struct bc_output *o, int width, const json_t *t)
{
	const char *name = bc_json_path_text(t, "name");
	static const char *const more[] = {"pre", "post", "holdoff", "text"};
	char time[BC_HUMANIZE_MAX];

	bc_column_text(o, width, t, "name");
	bc_column_text(o, 8, t, "action");
	bc_column_count(o, 10, t, "fired");
	bc_column_count(o, 10, t, "missed");
	bc_column_text(o, 13, t, "from");
	bc_template_print(o, "[{when}]", t);
	for (unsigned i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
		const json_t *item = bc_json_path(t, more[i]);
		const char *text = bc_json_path_text(t, more[i]);
		if (json_is_number(item)) {
			bc_output_format(o, ", %s %s", more[i],
				bc_humanize_time(time, json_number_value(item)));
		} else if (text != NULL && (name == NULL || strcmp(text, name) != 0)) {
			bc_output_format(o, ", %s ", more[i]);
			bc_output_safe(o, text);
		}
	}
	bc_output_text(o, "\n", 1);
}

bool bc_answer_print_triggers(struct bc_output *o, const json_t *answer)
{
	json_t *triggers = bc_json_path(answer, "triggers");
	const json_t *one = bc_json_path(answer, "trigger");
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
	json_array_foreach(triggers, i, t) print_trigger(o, width, t);
	return true;
}

/* ---- replays */

static void print_replay(struct bc_output *o, const json_t *p)
{
	const json_t *recording = bc_json_path(p, "recording");

	bc_template_print(o,
		"replay {id}[: {state}]\n"
		"[  file        {path}\n]"
		"[  error       {error}\n]"
		"[  damaged     at {damaged_places place}\n]",
		p);
	if (json_is_object(recording))
		print_recording(o, recording);
}

bool bc_answer_print_replays(struct bc_output *o, const json_t *answer)
{
	const json_t *replays = bc_json_path(answer, "replays");
	const json_t *one = bc_json_path(answer, "replay");
	const json_t *p;
	size_t i;
	int width = bc_column_width(replays, "id", 2);

	if (json_is_object(one))
		print_replay(o, one);
	else if (!json_is_array(replays))
		return false;
	else if (json_array_size(replays) == 0)
		bc_output_format(o, "no replays\n");
	else
		bc_output_format(o, "%-*s  %-9s  %-*s  %17s  FILE\n", width, "ID", "STATE",
			BC_COLUMN_TIME, "STARTED (UTC)", "RECORDS");
	json_array_foreach(replays, i, p)
	{
		bc_column_text(o, width, p, "id");
		bc_column_text(o, 9, p, "state");
		bc_column_time(o, p, "started");
		bc_column_count(o, 17, bc_json_path(p, "recording"), "records");
		bc_template_print(o, "{path}\n", p);
	}
	return true;
}
