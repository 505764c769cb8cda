#include "daemon/http/mhd.h"

struct bc_mhd bc_mhd;
static struct bc_late_library library = {
	.names = {"libmicrohttpd.so.12"},
	.package = "libmicrohttpd12",
	.functions = (const char *const[]){BC_MHD_FUNCTIONS(BC_LATE_NAME) NULL},
	.pointers = &bc_mhd,
};

bool bc_mhd_load(char *err, size_t errlen)
{
	return bc_late_library_load(&library, err, errlen);
}
