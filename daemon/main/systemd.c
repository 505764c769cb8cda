#include "daemon/main/systemd.h"

static struct bc_systemd functions;
static struct bc_late_library library = {
	.name = "libsystemd.so.0",
	.package = "libsystemd0",
	.functions = (const char *const[]){BC_SYSTEMD_FUNCTIONS(BC_LATE_NAME) NULL},
	.pointers = &functions,
};

const struct bc_systemd *bc_systemd_load(char *err, size_t errlen)
{
	return bc_late_library_load(&library, err, errlen) ? &functions : NULL;
}
