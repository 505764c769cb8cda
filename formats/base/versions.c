#include "formats/base/versions.h"

#include <jansson.h>
#include <lz4.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

void bc_versions_print(FILE *out, const char *program)
{
	fprintf(out, "%s " BC_VERSION "\n", program);
	fprintf(out, "jansson %s\n", jansson_version_str());
	fprintf(out, "liblzma %s\n", lzma_version_string());
	fprintf(out, "lz4 %s\n", LZ4_versionString());
	fprintf(out, "zlib %s\n", zlibVersion());
	fprintf(out, "zstd %s\n", ZSTD_versionString());
}
