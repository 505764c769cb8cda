/* Fuzz target: the body of a request, parsed as every kind of request. Error messages are UTF-8;
 * accepted values are within their limits; accepted metadata is JSON that is accepted again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/api/api_body.h"
#include "daemon/api/api_params.h"
#include "formats/base/utf8.h"
#include "formats/segment/segment_header.h"

static const char *const names[] = {"text", "label", "metadata", "limits", "pre", "triggers",
	"speed", "until_stopped", "clock_hz", NULL};
static const char *const inner_names[] = {"duration", "records", "filesize", "when", NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool parse_inner(const struct bc_body *inner)
{
	uint64_t n = 1;
	char when[64];

	if (!bc_body_time(inner, "duration", &n) || !bc_body_file_size(inner, "filesize", &n) ||
		!bc_body_integer(inner, "records", 1, BC_BODY_INTEGER_MAX, &n) ||
		!bc_body_text(inner, "when", when, sizeof(when)))
		return false;
	if (n == 0)
		abort();
	return true;
}

static bool parse_body(const struct bc_body *body, char *metadata)
{
	char text[64];
	unsigned count;
	uint64_t n;
	bool flag;
	struct bc_body inner;

	if (!bc_body_text(body, "text", text, sizeof(text)) ||
		!bc_body_text(body, "label", text, sizeof(text)) ||
		!bc_body_metadata(body, "metadata", metadata) ||
		!bc_body_seconds_or_text(body, "pre", text, sizeof(text)) ||
		!bc_body_seconds_or_text(body, "speed", text, sizeof(text)) ||
		!bc_body_flag(body, "until_stopped", &flag) ||
		!bc_body_integer(body, "clock_hz", 1, BC_BODY_INTEGER_MAX, &n) ||
		!bc_body_object(body, "limits", inner_names, &inner) || !parse_inner(&inner) ||
		!bc_body_list_size(body, "triggers", 16, &count))
		return false;
	for (unsigned i = 0; i < count; i++)
		if (!bc_body_element(body, "triggers", i, inner_names, &inner) ||
			!parse_inner(&inner))
			return false;
	return true;
}

static void check_metadata(const char *metadata)
{
	char body_text[BC_METADATA_MAX + 16];
	char again[BC_METADATA_MAX];
	char err[512];
	struct bc_body body;
	int n = snprintf(body_text, sizeof(body_text), "{\"metadata\":%s}", metadata);

	if (!bc_body_parse(&body, body_text, (size_t)n, names, err, sizeof(err)) ||
		!bc_body_metadata(&body, "metadata", again) || strcmp(again, metadata) != 0)
		abort();
	bc_body_free(&body);
}

static void check_error(const char *err)
{
	if (err[0] == '\0' || !bc_utf8_is_valid(err, strlen(err)))
		abort();
}

/* Parses the body as every kind of request. */
static void parse_params(const char *text, size_t bytes)
{
	struct bc_api_params *params = malloc(sizeof(*params));
	char err[512];

	if (params == NULL)
		abort();
	for (unsigned kind = BC_PARAMS_START; kind < BC_PARAMS_KINDS; kind++) {
		err[0] = '\0';
		memset(params, 0, sizeof(*params));
		if (!bc_api_params_parse(params, kind, text, bytes, err, sizeof(err)))
			check_error(err);
	}
	free(params);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bc_body body;
	char metadata[BC_METADATA_MAX] = "";
	char err[512] = "";
	bool is_ok = bc_body_parse(&body, (const char *)data, size, names, err, sizeof(err));

	if (is_ok) {
		is_ok = parse_body(&body, metadata);
		bc_body_free(&body);
	}
	if (!is_ok)
		check_error(err);
	if (is_ok && metadata[0] != '\0')
		check_metadata(metadata);
	parse_params((const char *)data, size);
	return 0;
}
