#include "formats/base/versions.h"

#include <jansson.h>
#include <lz4.h>
#include <lzma.h>
#include <stdbool.h>
#include <zlib.h>
#include <zstd.h>

/* A program has it, a test does not: see the Makefile. */
extern const char bc_commit[] __attribute__((weak));

void bc_versions_print(FILE *out, const char *program)
{
	bool has_commit = bc_commit != NULL && bc_commit[0] != '\0';

	fprintf(out, "%s " BC_VERSION "%s%s%s\n", program, has_commit ? " (" : "",
		has_commit ? bc_commit : "", has_commit ? ")" : "");
	fprintf(out, "jansson %s\n", jansson_version_str());
	fprintf(out, "liblzma %s\n", lzma_version_string());
	fprintf(out, "lz4 %s\n", LZ4_versionString());
	fprintf(out, "zlib %s\n", zlibVersion());
	fprintf(out, "zstd %s\n", ZSTD_versionString());
}
