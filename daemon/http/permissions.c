#include "daemon/http/permissions.h"

#include <stdio.h>
#include <string.h>

static const char *const names[BC_RIGHTS] = {
	[BC_RIGHT_RECORD] = "record",
	[BC_RIGHT_ROTATE] = "rotate",
	[BC_RIGHT_MARK] = "mark",
	[BC_RIGHT_NOTE] = "note",
	[BC_RIGHT_SNAPSHOT] = "snapshot",
	[BC_RIGHT_TRIGGER] = "trigger",
	[BC_RIGHT_REPLAY] = "replay",
};

const char *bc_right_name(enum bc_right right)
{
	return names[right];
}

bool bc_rights_read(uint32_t *rights, const char *text, char *why, size_t room)
{
	uint32_t read = 0;

	for (text += strspn(text, ", \t"); *text != '\0'; text += strspn(text, ", \t")) {
		size_t n = strcspn(text, ", \t");
		enum bc_right right = 0;
		while (right < BC_RIGHTS &&
			(strncmp(text, names[right], n) != 0 || names[right][n] != '\0'))
			right++;
		if (right == BC_RIGHTS) {
			snprintf(why, room,
				"what can be reserved is record, rotate, mark, note, snapshot, "
				"trigger and replay");
			return false;
		}
		read |= bc_right_bit(right);
		text += n;
	}
	*rights = read;
	return true;
}
