/* How much may still be written before a space rule breaks, so that the directory need not be
 * looked through before each chunk. The writer's thread's own. */
#ifndef BC_DAEMON_ROOM_H
#define BC_DAEMON_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/log_limit.h"
#include "daemon/space.h"
#include "daemon/stint.h"

struct bc_room {
	uint64_t written_then; /* when it was looked at last */
	uint64_t bytes;        /* that might be written then */
	char error[256];       /* as logged last */
};

/* Looks at the space and keeps to the rules, as bc_space_enforce() does; `written` are the bytes
 * written so far, `dir` and `limits` are for the log, `stint` as there. Returns 0 with *state, or a
 * negative errno. */
int bc_room_look(struct bc_room *room, struct bc_log_limits *limits, struct bc_space_state *state,
	const char *dir, int dir_fd, const struct bc_space_rules *rules, uint64_t files,
	uint64_t coming_bytes, uint64_t coming_files, uint64_t written, struct bc_stint *stint)
	__attribute__((warn_unused_result));

/* Whether so much may be written without another look. */
bool bc_room_is_there(const struct bc_room *room, uint64_t written, uint64_t coming_bytes);

#endif
