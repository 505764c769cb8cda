#include "daemon/base/permissions.h"

#include <string.h>

#include "formats/base/text.h"

static const char *const names[BC_PERMISSIONS] = {
	[BC_PERMISSION_RECORD] = "record",
	[BC_PERMISSION_ROTATE] = "rotate",
	[BC_PERMISSION_MARK] = "mark",
	[BC_PERMISSION_NOTE] = "note",
	[BC_PERMISSION_SNAPSHOT] = "snapshot",
	[BC_PERMISSION_TRIGGER] = "trigger",
};

const char *bc_permission_name(enum bc_permission permission)
{
	return names[permission];
}

bool bc_permissions_parse(uint32_t *permissions, const char *text, char *err, size_t errlen)
{
	uint32_t set = 0;

	for (text += strspn(text, ", \t"); *text != '\0'; text += strspn(text, ", \t")) {
		size_t n = strcspn(text, ", \t");
		enum bc_permission p = 0;
		while (p < BC_PERMISSIONS &&
			(strncmp(text, names[p], n) != 0 || names[p][n] != '\0'))
			p++;
		if (p == BC_PERMISSIONS)
			return bc_fail(err, errlen,
				"%.*s: unknown operation; use record, rotate, mark, note, snapshot "
				"or trigger",
				(int)n, text);
		set |= bc_permission_bit(p);
		text += n;
	}
	*permissions = set;
	return true;
}
