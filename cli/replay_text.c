#include "cli/replay_text.h"

#include <string.h>

#include "cli/column.h"
#include "cli/output.h"
#include "cli/quantity.h"
#include "cli/recording_text.h"
#include "cli/safe_text.h"

static const char *text_of(const cJSON *object, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

void bc_replay_error(const cJSON *replay, char *out, size_t room)
{
	bc_safe_text(out, room, text_of(replay, "error"));
}

static void print_one(struct bc_output *o, const cJSON *p)
{
	static const struct {
		const char *name;
		const char *key;
	} facts[] = {{"file", "path"}, {"error", "error"}};
	const cJSON *recording = cJSON_GetObjectItemCaseSensitive(p, "recording");
	uint64_t damages = bc_json_get_u64(p, "damages");
	char count[BC_QUANTITY_MAX];

	bc_output_format(o, "replay ");
	bc_output_safe(o, text_of(p, "id"));
	if (text_of(p, "state") != NULL) {
		bc_output_format(o, ": ");
		bc_output_safe(o, text_of(p, "state"));
	}
	bc_output_text(o, "\n", 1);
	for (unsigned i = 0; i < 2; i++)
		if (text_of(p, facts[i].key) != NULL)
			bc_status_line_safe(o, facts[i].name, text_of(p, facts[i].key));
	if (damages != 0)
		bc_status_line(o, "damaged", "at %s place%s", bc_quantity_count(count, damages),
			bc_plural(damages));
	if (cJSON_IsObject(recording))
		bc_recording_print(o, recording);
}

static void print_table(struct bc_output *o, const cJSON *replays)
{
	const cJSON *p;
	int width = bc_column_width(replays, "id", 2);

	if (cJSON_GetArraySize(replays) == 0) {
		bc_output_format(o, "no replays\n");
		return;
	}
	bc_output_format(o, "%-*s  %-9s  %-*s  %17s  FILE\n", width, "ID", "STATE", BC_COLUMN_TIME,
		"STARTED (UTC)", "RECORDS");
	cJSON_ArrayForEach(p, replays)
	{
		bc_column_text(o, width, p, "id");
		bc_column_text(o, 9, p, "state");
		bc_column_time(o, p, "started");
		bc_column_count(o, 17, cJSON_GetObjectItemCaseSensitive(p, "recording"), "records");
		bc_output_safe(o, text_of(p, "path"));
		bc_output_text(o, "\n", 1);
	}
}

enum bc_exit bc_replay_print_answer(
	const struct bc_console *console, const struct bc_answer *answer, bool is_json)
{
	const cJSON *one = cJSON_GetObjectItemCaseSensitive(answer->json, "replay");
	const cJSON *several = cJSON_GetObjectItemCaseSensitive(answer->json, "replays");
	struct bc_output o;

	if (is_json)
		return bc_ask_print_json(console, answer);
	if (!cJSON_IsObject(one) && !cJSON_IsArray(several))
		return bc_ask_complain_answer(console);
	if (!bc_output_open(&o, console))
		return BC_EXIT_FAILED;
	if (cJSON_IsObject(one))
		print_one(&o, one);
	else
		print_table(&o, several);
	return bc_output_close(&o, console);
}
