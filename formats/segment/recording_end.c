#include "formats/segment/recording_end.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/json.h"

bool bc_recording_end_add(struct bc_chunk *chunk, const struct bc_recording_end *end)
{
	char text[BC_RECORDING_END_MAX];
	int n = snprintf(text, sizeof(text),
		"{\"reason\":\"%s\",\"ended\":%" PRId64 ",\"boot_id\":\"%s\"}", end->reason,
		end->ended_ns, end->boot_id);
	struct bc_event event = {
		.kind = BC_EVENT_END,
		.position = chunk->info.records,
		.text_bytes = (uint16_t)n,
	};

	return bc_chunk_add_event(chunk, &event, text);
}

bool bc_recording_end_find(struct bc_recording_end *end, const struct bc_chunk *chunk)
{
	const struct bc_event *event = &chunk->events[chunk->info.events];

	do {
		if (event == chunk->events)
			return false;
		event--;
	} while (event->kind != BC_EVENT_END);
	json_t *object = bc_json_parse(chunk->text + event->text, event->text_bytes, 0, NULL);
	bc_json_member_text(object, "reason", end->reason, sizeof(end->reason));
	end->ended_ns = json_integer_value(json_object_get(object, "ended"));
	bc_json_member_text(object, "boot_id", end->boot_id, sizeof(end->boot_id));
	json_decref(object);
	return end->reason[0] != '\0';
}

bool bc_recording_end_is_recovered(const struct bc_recording_end *end)
{
	return strcmp(end->reason, "crash") == 0 || strcmp(end->reason, "power") == 0;
}
