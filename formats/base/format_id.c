#include "formats/base/format_id.h"

#include <string.h>

static const char *const names[] = {
	[BC_FORMAT_UNKNOWN] = "unknown",
	[BC_FORMAT_SEGMENT] = "segment",
	[BC_FORMAT_BCP1] = "bcp1",
	[BC_FORMAT_RAW6] = "raw6",
	[BC_FORMAT_BYU] = "byu",
	[BC_FORMAT_BYU16] = "byu16",
	[BC_FORMAT_BYU24] = "byu24",
	[BC_FORMAT_BYU_BE] = "byu-be",
	[BC_FORMAT_LAPLACE] = "laplace",
	[BC_FORMAT_LAPLACE_TEXT] = "laplace-text",
	[BC_FORMAT_LAPLACE_EVENTS] = "laplace-events",
	[BC_FORMAT_CIS501] = "cis501",
	[BC_FORMAT_TARMAC] = "tarmac",
	[BC_FORMAT_DIN] = "din",
	[BC_FORMAT_XDIN] = "xdin",
	[BC_FORMAT_LACKEY] = "lackey",
	[BC_FORMAT_VCD] = "vcd",
	[BC_FORMAT_ROWBINARY] = "rowbinary",
	[BC_FORMAT_CSV] = "csv",
	[BC_FORMAT_NDJSON] = "ndjson",
};
_Static_assert(sizeof(names) / sizeof(names[0]) == BC_FORMATS, "each format has a name");

const char *bc_format_name(enum bc_format format)
{
	return names[format];
}

enum bc_format bc_format_by_name(const char *name)
{
	for (unsigned format = 1; format < BC_FORMATS; format++)
		if (strcmp(names[format], name) == 0)
			return (enum bc_format)format;
	return BC_FORMAT_UNKNOWN;
}
