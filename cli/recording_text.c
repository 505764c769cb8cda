#include "cli/recording_text.h"

#include <string.h>

#include "cli/column.h"
#include "cli/output.h"
#include "cli/quantity.h"

static const cJSON *get(const cJSON *object, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(object, name);
}

static const char *text_of(const cJSON *object, const char *name)
{
	return cJSON_GetStringValue(get(object, name));
}

static void fact_text(struct bc_output *o, const char *name, const cJSON *object, const char *key)
{
	const char *text = text_of(object, key);

	if (text != NULL)
		bc_status_line_safe(o, name, text);
}

static void fact_count(struct bc_output *o, const char *name, const cJSON *object, const char *key)
{
	char count[BC_QUANTITY_MAX];

	if (cJSON_IsNumber(get(object, key)))
		bc_status_line(
			o, name, "%s", bc_quantity_count(count, bc_json_get_u64(object, key)));
}

static const char *reason_text(const char *reason)
{
	static const struct {
		const char *reason;
		const char *text;
	} reasons[] = {{"request", "it was told to stop"},
		{"limit", "it has as much as was wanted"}, {"trigger", "a trigger stopped it"},
		{"source", "the source ended"}, {"signal", "the daemon ended"},
		{"failed", "it failed"}};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (strcmp(reason, reasons[i].reason) == 0)
			return reasons[i].text;
	return reason;
}

void bc_recording_print_notes(struct bc_output *o, const cJSON *recording)
{
	const cJSON *metadata = get(recording, "metadata");
	const cJSON *note;

	cJSON_ArrayForEach(note, metadata)
	{
		if (note->string == NULL || !cJSON_IsString(note))
			continue;
		bc_output_format(o, "  %-11s ", "note");
		bc_output_safe(o, note->string);
		bc_output_text(o, "=", 1);
		bc_output_safe(o, note->valuestring);
		bc_output_text(o, "\n", 1);
	}
}

/* It has begun, and nothing of it is on the disk. */
static bool is_nothing_yet(const cJSON *r)
{
	return cJSON_IsNull(get(r, "ended")) &&
	       (bc_json_get_u64(r, "segments") | bc_json_get_u64(r, "records") |
		       bc_json_get_u64(r, "lost")) == 0;
}

static void print_amounts(struct bc_output *o, const cJSON *r)
{
	char size[BC_QUANTITY_MAX];

	fact_count(o, "segments", r, "segments");
	fact_count(o, "records", r, "records");
	if (cJSON_IsNumber(get(r, "bytes")))
		bc_status_line(o, "on disk", "%s",
			bc_quantity_bytes(size, (double)bc_json_get_u64(r, "bytes")));
	if (cJSON_IsNumber(get(r, "lost")) && bc_json_get_u64(r, "lost") == 0)
		bc_status_line(o, "lost", "nothing");
	else
		fact_count(o, "lost", r, "lost");
}

void bc_recording_print(struct bc_output *o, const cJSON *r)
{
	const char *state = text_of(r, "state");
	const char *reason = text_of(r, "reason");

	bc_output_format(o, "recording ");
	bc_output_safe(o, text_of(r, "id"));
	if (state != NULL) {
		bc_output_format(o, ": ");
		bc_output_safe(o, state);
	}
	bc_output_text(o, "\n", 1);
	fact_text(o, "label", r, "label");
	fact_text(o, "started", r, "started");
	fact_text(o, "ended", r, "ended");
	if (reason != NULL)
		bc_status_line_safe(o, "because", reason_text(reason));
	if (!is_nothing_yet(r))
		print_amounts(o, r);
	fact_text(o, "newest file", r, "path");
	bc_recording_print_notes(o, r);
}

void bc_recordings_print(struct bc_output *o, const cJSON *recordings, uint64_t left_out)
{
	const cJSON *r;
	int width = bc_column_width(recordings, "id", 2);
	char count[BC_QUANTITY_MAX];

	if (cJSON_GetArraySize(recordings) == 0) {
		bc_output_format(o, "no recordings\n");
		return;
	}
	if (left_out != 0)
		bc_output_format(o, "# %s older recording%s left out\n",
			bc_quantity_count(count, left_out), left_out == 1 ? " is" : "s are");
	bc_output_format(o, "%-*s  %-9s  %-*s  %8s  %17s  %8s  LABEL\n", width, "ID", "STATE",
		BC_COLUMN_TIME, "STARTED (UTC)", "SEGMENTS", "RECORDS", "ON DISK");
	cJSON_ArrayForEach(r, recordings)
	{
		char size[BC_QUANTITY_MAX] = "-";
		bc_column_text(o, width, r, "id");
		bc_column_text(o, 9, r, "state");
		bc_column_time(o, r, "started");
		bc_column_count(o, 8, r, "segments");
		bc_column_count(o, 17, r, "records");
		if (cJSON_IsNumber(get(r, "bytes")))
			bc_quantity_bytes(size, (double)bc_json_get_u64(r, "bytes"));
		const char *label = text_of(r, "label");
		bc_output_format(o, "%8s  ", size);
		bc_output_safe(o, label != NULL ? label : "-");
		bc_output_text(o, "\n", 1);
	}
}

enum bc_exit bc_recording_print_answer(
	const struct bc_console *console, const struct bc_answer *answer, bool is_json)
{
	const cJSON *recording = get(answer->json, "recording");
	struct bc_output output;

	if (is_json)
		return bc_ask_print_json(console, answer);
	if (!cJSON_IsObject(recording))
		return bc_ask_complain_answer(console);
	if (!bc_output_open(&output, console))
		return BC_EXIT_FAILED;
	bc_recording_print(&output, recording);
	return bc_output_close(&output, console);
}
