/* The response to one HTTP/1.1 request, taken apart as its bytes arrive: a head, and a body that is
 * chunked, has a length, or ends with the connection.
 *
 *     {.body = ...} -> bc_http_response_add()... -> is_complete
 *                      bc_http_response_end() if the connection ends before that
 *
 * Nothing is allocated, and how the bytes are divided makes no difference. A line is at most 1,023
 * bytes long, and a head 32 KiB. */
#ifndef BC_CLI_IO_HTTP_RESPONSE_H
#define BC_CLI_IO_HTTP_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"

enum bc_http_state {
	BC_HTTP_STATUS_LINE,
	BC_HTTP_HEADER,
	BC_HTTP_BODY,        /* of a known length */
	BC_HTTP_BODY_TO_END, /* of the connection */
	BC_HTTP_CHUNK_SIZE,
	BC_HTTP_CHUNK,
	BC_HTTP_CHUNK_END, /* the end of the line after it */
	BC_HTTP_TRAILER,
	BC_HTTP_COMPLETE,
};

struct bc_http_response {
	/* Receives the next bytes of the body. Returns false to stop. */
	bool (*body)(void *context, const char *bytes, size_t n);
	void *context;
	int status; /* 200 to 599; 0: the head is not complete */
	bool is_complete;
	/* Private. */
	enum bc_http_state state;
	int status_read; /* `status`, after the head */
	bool has_length;
	bool is_chunked;
	uint64_t left; /* bytes of the body or of the chunk */
	char line[1024];
	size_t line_bytes;
	size_t head_bytes; /* of lines, since the start or the last chunk */
};

/* Takes the next bytes; ignores those after the end. Returns 0; -ECANCELED if body() stops; or
 * -EPROTO if this is not HTTP. After an error, the response must not be used again. */
int bc_http_response_add(
	struct bc_http_response *response, const char *bytes, size_t n) BC_MUST_CHECK;

/* The connection has ended. Returns 0: all is there; -ECONNRESET: nothing; -EPIPE: no end. */
int bc_http_response_end(struct bc_http_response *response) BC_MUST_CHECK;

#endif
