/* What of the socket the configuration may reserve for the owner ([socket] reserve): root, and the
 * user that buscapd runs as. */
#ifndef BC_DAEMON_HTTP_PERMISSIONS_H
#define BC_DAEMON_HTTP_PERMISSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bc_right {
	BC_RIGHT_RECORD,   /* start and stop recordings */
	BC_RIGHT_ROTATE,   /* begin a new segment */
	BC_RIGHT_MARK,     /* set marks */
	BC_RIGHT_NOTE,     /* note metadata */
	BC_RIGHT_SNAPSHOT, /* write out the flight recorder */
	BC_RIGHT_TRIGGER,  /* arm and disarm triggers */
	BC_RIGHT_REPLAY,   /* start and cancel replays */
	BC_RIGHTS,
};

static inline uint32_t bc_right_bit(enum bc_right right)
{
	return UINT32_C(1) << right;
}

/* "record", "rotate", ... */
const char *bc_right_name(enum bc_right right);

/* Reads names with commas or blanks between them; none is no right. On failure returns false with a
 * sentence in `why`. */
bool bc_rights_read(uint32_t *rights, const char *text, char *why, size_t room)
	__attribute__((warn_unused_result));

#endif
