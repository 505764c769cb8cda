#include "cli/io/http_response.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/types.h>

#include "formats/base/text.h"

/* A machine of states that takes bytes: whole lines in the states of the head and of chunk sizes,
 * any number of bytes in those of the body. A line is collected in `line` until its end is there,
 * so a response may be cut anywhere. It owns nothing but that line.
 *
 * Invariant: once `is_complete`, nothing more is read. After an error nothing may be added. A
 * length that could be read in two ways is an error. */

#define HEAD_MAX 32768u

static void set_state(struct bc_http_response *r, enum bc_http_state state)
{
	r->state = state;
	r->is_complete = state == BC_HTTP_COMPLETE;
}

/* Reads "HTTP/1.1 200 OK". Responses before the final one (1xx) are only for clients that ask. */
static int read_status(struct bc_http_response *r)
{
	const char *line = r->line;

	if (strncmp(line, "HTTP/1.", 7) != 0 || (line[7] != '0' && line[7] != '1') ||
		line[8] != ' ' || line[9] < '2' || line[9] > '5' ||
		strspn(line + 9, "0123456789") != 3 || (line[12] != ' ' && line[12] != '\0'))
		return -EPROTO;
	r->status_read = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
	set_state(r, BC_HTTP_HEADER);
	return 0;
}

static void end_head(struct bc_http_response *r)
{
	r->status = r->status_read;
	if (r->status == 204 || r->status == 304)
		set_state(r, BC_HTTP_COMPLETE);
	else if (r->is_chunked)
		set_state(r, BC_HTTP_CHUNK_SIZE);
	else if (!r->has_length)
		set_state(r, BC_HTTP_BODY_TO_END);
	else
		set_state(r, r->left != 0 ? BC_HTTP_BODY : BC_HTTP_COMPLETE);
}

/* Returns the value of the line's header if it has this name, or NULL. */
static const char *header_value(const struct bc_http_response *r, const char *name)
{
	size_t bytes = strlen(name);

	if (strncasecmp(r->line, name, bytes) != 0 || r->line[bytes] != ':')
		return NULL;
	return r->line + bytes + 1 + strspn(r->line + bytes + 1, " \t");
}

static int read_header(struct bc_http_response *r)
{
	const char *length = header_value(r, "Content-Length");
	const char *coding = header_value(r, "Transfer-Encoding");

	if (length != NULL)
		r->has_length = true;
	if (coding != NULL)
		r->is_chunked = true;
	return (length == NULL || bc_number_read(&r->left, length)) &&
			       (coding == NULL || strcasecmp(coding, "chunked") == 0)
		       ? 0
		       : -EPROTO;
}

static int read_chunk_size(struct bc_http_response *r)
{
	const char *end = r->line + strcspn(r->line, ";");

	if (bc_hex_read(r->line, end, &r->left) != end)
		return -EPROTO;
	r->head_bytes = 0;
	set_state(r, r->left != 0 ? BC_HTTP_CHUNK : BC_HTTP_TRAILER);
	return 0;
}

static int read_line(struct bc_http_response *r)
{
	switch (r->state) {
	case BC_HTTP_STATUS_LINE:
		return read_status(r);
	case BC_HTTP_HEADER:
		if (r->line_bytes != 0)
			return read_header(r);
		end_head(r);
		return 0;
	case BC_HTTP_CHUNK_SIZE:
		return read_chunk_size(r);
	case BC_HTTP_CHUNK_END:
		set_state(r, BC_HTTP_CHUNK_SIZE);
		return r->line_bytes == 0 ? 0 : -EPROTO;
	case BC_HTTP_TRAILER:
		if (r->line_bytes == 0)
			set_state(r, BC_HTTP_COMPLETE);
		return 0;
	case BC_HTTP_BODY:
	case BC_HTTP_BODY_TO_END:
	case BC_HTTP_CHUNK:
	case BC_HTTP_COMPLETE:
		break;
	}
	assert(false && "this state has no lines");
	return -EPROTO;
}

/* Takes bytes up to the end of a line. Returns how many, or a negative errno. */
static ssize_t add_line(struct bc_http_response *r, const char *bytes, size_t n)
{
	const char *newline = memchr(bytes, '\n', n);
	size_t part = newline != NULL ? (size_t)(newline - bytes) : n;
	size_t taken = part + (newline != NULL);

	if (part >= sizeof(r->line) - r->line_bytes || taken > HEAD_MAX - r->head_bytes)
		return -EPROTO;
	memcpy(r->line + r->line_bytes, bytes, part);
	r->line_bytes += part;
	r->head_bytes += taken;
	if (newline == NULL)
		return (ssize_t)taken;
	if (r->line_bytes != 0 && r->line[r->line_bytes - 1] == '\r')
		r->line_bytes--;
	r->line[r->line_bytes] = '\0';
	int rc = read_line(r);
	r->line_bytes = 0;
	return rc == 0 ? (ssize_t)taken : rc;
}

/* Takes bytes of the body. The same results. */
static ssize_t add_body(struct bc_http_response *r, const char *bytes, size_t n)
{
	bool has_end = r->state != BC_HTTP_BODY_TO_END;

	if (has_end && n > r->left)
		n = (size_t)r->left;
	if (!r->body(r->context, bytes, n))
		return -ECANCELED;
	r->left -= has_end ? n : 0;
	if (has_end && r->left == 0)
		set_state(r, r->state == BC_HTTP_CHUNK ? BC_HTTP_CHUNK_END : BC_HTTP_COMPLETE);
	return (ssize_t)n;
}

int bc_http_response_add(struct bc_http_response *r, const char *bytes, size_t n)
{
	while (n != 0 && !r->is_complete) {
		bool is_body = r->state == BC_HTTP_BODY || r->state == BC_HTTP_BODY_TO_END ||
			       r->state == BC_HTTP_CHUNK;
		ssize_t taken = is_body ? add_body(r, bytes, n) : add_line(r, bytes, n);
		if (taken < 0)
			return (int)taken;
		bytes += taken;
		n -= (size_t)taken;
	}
	return 0;
}

int bc_http_response_end(struct bc_http_response *r)
{
	if (r->state == BC_HTTP_BODY_TO_END)
		set_state(r, BC_HTTP_COMPLETE);
	if (r->is_complete)
		return 0;
	return r->state == BC_HTTP_STATUS_LINE && r->line_bytes == 0 ? -ECONNRESET : -EPIPE;
}
