/* The operations that the configuration can reserve for the owner ([socket] reserve). The owner is
 * root or the user that buscapd runs as. */
#ifndef BC_DAEMON_BASE_PERMISSIONS_H
#define BC_DAEMON_BASE_PERMISSIONS_H

#include "formats/base/must_check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bc_permission {
	BC_PERMISSION_RECORD,   /* start and stop recordings */
	BC_PERMISSION_ROTATE,   /* start a new segment */
	BC_PERMISSION_MARK,     /* set marks */
	BC_PERMISSION_NOTE,     /* add metadata */
	BC_PERMISSION_SNAPSHOT, /* write out the flight recorder */
	BC_PERMISSION_TRIGGER,  /* arm and disarm triggers */
	BC_PERMISSIONS,
};

static inline uint32_t bc_permission_bit(enum bc_permission permission)
{
	return UINT32_C(1) << permission;
}

/* "record", "rotate", ... */
const char *bc_permission_name(enum bc_permission permission);

/* Parses a list of names separated by commas or blanks, which may be empty, into a set of
 * bc_permission_bit(). Returns false with a message in `err` if a name is unknown. */
bool bc_permissions_parse(
	uint32_t *permissions, const char *text, char *err, size_t errlen) BC_MUST_CHECK;

#endif
