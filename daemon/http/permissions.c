#include "daemon/http/permissions.h"

#include <stdio.h>
#include <string.h>

static const char *const names[BC_PERMISSIONS] = {
	[BC_PERMISSION_RECORD] = "record",
	[BC_PERMISSION_ROTATE] = "rotate",
	[BC_PERMISSION_MARK] = "mark",
	[BC_PERMISSION_NOTE] = "note",
	[BC_PERMISSION_SNAPSHOT] = "snapshot",
	[BC_PERMISSION_TRIGGER] = "trigger",
	[BC_PERMISSION_REPLAY] = "replay",
};

const char *bc_permission_name(enum bc_permission right)
{
	return names[right];
}

bool bc_permissions_parse(uint32_t *rights, const char *text, char *err, size_t errlen)
{
	uint32_t read = 0;

	for (text += strspn(text, ", \t"); *text != '\0'; text += strspn(text, ", \t")) {
		size_t n = strcspn(text, ", \t");
		enum bc_permission right = 0;
		while (right < BC_PERMISSIONS &&
			(strncmp(text, names[right], n) != 0 || names[right][n] != '\0'))
			right++;
		if (right == BC_PERMISSIONS) {
			snprintf(err, errlen,
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
