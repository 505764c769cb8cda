/* Fuzz target: the JSON body of a request, read by every kind of request. An invalid body must give
 * an error message in valid UTF-8. Values that are accepted must be within their limits, and
 * accepted metadata must be JSON that is accepted again unchanged. */
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

static bool read_inner(const struct bc_body *inner)
{
	uint64_t n = 1;
	char when[64];

	if (!bc_body_time(inner, "duration", &n) || !bc_body_size(inner, "filesize", &n) ||
		!bc_body_integer(inner, "records", 1, BC_BODY_INTEGER_MAX, &n) ||
		!bc_body_text(inner, "when", when, sizeof(when)))
		return false;
	if (n == 0)
		abort();
	return true;
}

static bool read_body(const struct bc_body *body, char *metadata)
{
	char words[64];
	unsigned count;
	uint64_t n;
	bool flag;
	struct bc_body inner;

	if (!bc_body_text(body, "text", words, sizeof(words)) ||
		!bc_body_text(body, "label", words, sizeof(words)) ||
		!bc_body_metadata(body, "metadata", metadata) ||
		!bc_body_seconds_or_text(body, "pre", words, sizeof(words)) ||
		!bc_body_seconds_or_text(body, "speed", words, sizeof(words)) ||
		!bc_body_flag(body, "until_stopped", &flag) ||
		!bc_body_integer(body, "clock_hz", 1, BC_BODY_INTEGER_MAX, &n) ||
		!bc_body_object(body, "limits", inner_names, &inner) || !read_inner(&inner) ||
		!bc_body_list_size(body, "triggers", 16, &count))
		return false;
	for (unsigned i = 0; i < count; i++)
		if (!bc_body_element(body, "triggers", i, inner_names, &inner) ||
			!read_inner(&inner))
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

/* Reads the body as the parameters of each request. */
static void read_params(const char *text, size_t bytes)
{
	static bool (*const readers[])(struct bc_api_params * params, const char *body,
		size_t body_bytes, char *err, size_t errlen) = {bc_api_params_start,
		bc_api_params_snapshot, bc_api_params_replay, bc_api_params_trigger,
		bc_api_params_mark, bc_api_params_note};
	struct bc_api_params *params = malloc(sizeof(*params));
	char err[512];

	if (params == NULL)
		abort();
	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++) {
		err[0] = '\0';
		memset(params, 0, sizeof(*params));
		if (!readers[i](params, text, bytes, err, sizeof(err)))
			check_error(err);
	}
	free(params);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bc_body body;
	char metadata[BC_METADATA_MAX] = "";
	char err[512] = "";
	bool is_good = bc_body_parse(&body, (const char *)data, size, names, err, sizeof(err));

	if (is_good) {
		is_good = read_body(&body, metadata);
		bc_body_free(&body);
	}
	if (!is_good)
		check_error(err);
	if (is_good && metadata[0] != '\0')
		check_metadata(metadata);
	read_params((const char *)data, size);
	return 0;
}
