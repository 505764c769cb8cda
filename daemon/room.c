#include "daemon/room.h"

#include <string.h>

static uint64_t room_in(const struct bc_space_rules *rules, const struct bc_space_state *state)
{
	uint64_t room = UINT64_MAX;

	if (rules->max_use_bytes != 0)
		room = rules->max_use_bytes - state->used_bytes;
	if (rules->keep_free_bytes != 0 && state->free_bytes - rules->keep_free_bytes < room)
		room = state->free_bytes - rules->keep_free_bytes;
	return room;
}

int bc_room_look(struct bc_room *room, struct bc_log_limits *limits, struct bc_space_state *state,
	const char *dir, int dir_fd, const struct bc_space_rules *rules, uint64_t files,
	uint64_t coming_bytes, uint64_t coming_files, uint64_t written, struct bc_stint *stint)
{
	room->written_then = written;
	room->bytes = UINT64_MAX;
	int rc = bc_space_enforce(state, dir_fd, rules, files, coming_bytes, coming_files, stint);
	if (rc != 0)
		return rc;
	if (strcmp(state->error, room->error) != 0 && state->error[0] != '\0')
		bc_log_limited(limits, BC_LOG_ERROR, "%s/%s; it is tried again once a second", dir,
			state->error);
	memcpy(room->error, state->error, sizeof(state->error));
	if (!state->is_over)
		room->bytes = room_in(rules, state);
	return 0;
}

bool bc_room_is_there(const struct bc_room *room, uint64_t written, uint64_t coming_bytes)
{
	return room->bytes == UINT64_MAX ||
	       written - room->written_then + coming_bytes <= room->bytes;
}
