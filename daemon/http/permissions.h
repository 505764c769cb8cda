/* What of the socket the configuration may reserve for the owner ([socket] reserve): root, and the
 * user that buscapd runs as. */
#ifndef BC_DAEMON_HTTP_PERMISSIONS_H
#define BC_DAEMON_HTTP_PERMISSIONS_H

#include "formats/base/must_check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bc_permission {
	BC_PERMISSION_RECORD,   /* start and stop recordings */
	BC_PERMISSION_ROTATE,   /* begin a new segment */
	BC_PERMISSION_MARK,     /* set marks */
	BC_PERMISSION_NOTE,     /* note metadata */
	BC_PERMISSION_SNAPSHOT, /* write out the flight recorder */
	BC_PERMISSION_TRIGGER,  /* arm and disarm triggers */
	BC_PERMISSION_REPLAY,   /* start and cancel replays */
	BC_PERMISSIONS,
};

static inline uint32_t bc_right_bit(enum bc_permission right)
{
	return UINT32_C(1) << right;
}

/* "record", "rotate", ... */
const char *bc_permission_name(enum bc_permission right);

/* Reads names with commas or blanks between them; none is no right. On failure returns false with a
 * sentence in `err`. */
bool bc_permissions_parse(
	uint32_t *rights, const char *text, char *err, size_t errlen) BC_MUST_CHECK;

#endif
