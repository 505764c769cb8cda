/* Fuzz target: the client's reader of responses. The first byte selects the size of the pieces in
 * which the rest of the input arrives. The result is the same as that of single bytes; what was
 * read is not longer than the input; and nothing follows the end. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/io/http_response.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct reader {
	struct bc_http_response response;
	char *body;
	size_t used;
	size_t size;
	int rc;
};

static bool on_body(void *context, const char *bytes, size_t n)
{
	struct reader *r = context;

	if (n == 0 || r->response.status == 0 || r->response.is_complete || n > r->size - r->used)
		abort();
	memcpy(r->body + r->used, bytes, n);
	r->used += n;
	return true;
}

static void read_in_pieces(struct reader *r, const char *bytes, size_t size, size_t piece)
{
	*r = (struct reader){.response = {.body = on_body, .context = r},
		.body = malloc(size + 1),
		.size = size};
	if (r->body == NULL)
		abort();
	for (size_t at = 0; at < size && r->rc == 0; at += piece) {
		/* In memory of its own, so that reading beyond a piece is found. */
		size_t n = size - at < piece ? size - at : piece;
		char *copy = malloc(n);
		if (copy == NULL)
			abort();
		memcpy(copy, bytes + at, n);
		r->rc = bc_http_response_add(&r->response, copy, n);
		free(copy);
	}
	if (r->rc == 0)
		r->rc = bc_http_response_end(&r->response);
	if ((r->rc == 0) != (r->response.is_complete && r->response.status >= 200))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reader whole;
	struct reader single;

	if (size < 2)
		return 0;
	read_in_pieces(&whole, (const char *)data + 1, size - 1, data[0] != 0 ? data[0] : size);
	read_in_pieces(&single, (const char *)data + 1, size - 1, 1);
	if (whole.rc != single.rc || whole.response.status != single.response.status ||
		whole.used != single.used || memcmp(whole.body, single.body, whole.used) != 0)
		abort();
	free(whole.body);
	free(single.body);
	return 0;
}
