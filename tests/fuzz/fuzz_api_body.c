/* Fuzz target: the body of a request, parsed as every kind of request. Error messages are UTF-8;
 * accepted values are within their limits; accepted metadata is JSON that is accepted again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/api/api_params.h"
#include "formats/base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool parse(struct bc_api_params *params, enum bc_api_params_kind kind, const void *text,
	size_t bytes, char err[512])
{
	memset(params, 0, sizeof(*params));
	return bc_api_params_parse(params, kind, text, bytes, err, 512);
}

static void check_params(struct bc_api_params *params)
{
	char body[BC_METADATA_MAX + 16];
	char metadata[BC_METADATA_MAX];
	char err[512];

	if (params->start.triggers_count > BC_TRIGGERS_REQUESTED ||
		strlen(params->label) > BC_LABEL_MAX)
		abort();
	if (params->metadata[0] == '\0')
		return;
	memcpy(metadata, params->metadata, sizeof(metadata));
	int n = snprintf(body, sizeof(body), "{\"metadata\":%s}", metadata);
	if (!parse(params, BC_PARAMS_NOTE, body, (size_t)n, err) ||
		strcmp(params->metadata, metadata) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bc_api_params *params = malloc(sizeof(*params));
	char err[512];

	if (params == NULL)
		abort();
	for (unsigned kind = BC_PARAMS_START; kind < BC_PARAMS_KINDS; kind++) {
		err[0] = '\0';
		if (parse(params, kind, data, size, err))
			check_params(params);
		else if (err[0] == '\0' || !bc_utf8_is_valid(err, strlen(err)))
			abort();
	}
	free(params);
	return 0;
}
