/* Text is collected in one buffer and written when that is full, so that a command makes few system
 * calls. The first failed write is kept and all later text is discarded: commands check it where
 * they can stop early, and bc_output_end() returns it. A reader of a pipe that has exited (EPIPE)
 * is not a failure. Everything that isn't ours goes through an escaping writer. */
#include "cli/term/output.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/term/text.h"
#include "formats/base/json.h"
#include "formats/base/utf8.h"

bool bc_output_open_fd(struct bc_output *o, int fd)
{
	*o = (struct bc_output){.fd = fd, .buffer = malloc(BC_OUTPUT_BYTES)};
	return o->buffer != NULL;
}

bool bc_output_open(struct bc_output *o, const struct bc_console *console)
{
	if (bc_output_open_fd(o, console->out))
		return true;
	bc_print_no_memory(console);
	return false;
}

/* Standard output may be non-blocking: the flag is shared with the process that started us. */
static bool wait_writable(int fd)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLOUT};

	return poll(&pollfd, 1, -1) >= 0 || errno == EINTR;
}

static void write_all(struct bc_output *o, const char *p, size_t bytes)
{
	o->has_written = o->has_written || bytes != 0;
	while (bytes != 0 && o->error == 0) {
		ssize_t n = write(o->fd, p, bytes);
		if (n < 0 && (errno == EINTR || (errno == EAGAIN && wait_writable(o->fd))))
			continue;
		if (n < 0) {
			o->error = -errno;
			return;
		}
		p += n;
		bytes -= (size_t)n;
	}
}

void bc_output_flush(struct bc_output *o)
{
	write_all(o, o->buffer, o->used);
	o->used = 0;
}

char *bc_output_reserve(struct bc_output *o, size_t bytes)
{
	assert(bytes <= BC_OUTPUT_BYTES);
	if (BC_OUTPUT_BYTES - o->used < bytes)
		bc_output_flush(o);
	return o->buffer + o->used;
}

void bc_output_text(struct bc_output *o, const void *text, size_t bytes)
{
	if (bytes > BC_OUTPUT_BYTES / 2) {
		bc_output_flush(o);
		write_all(o, text, bytes);
		return;
	}
	memcpy(bc_output_reserve(o, bytes), text, bytes);
	o->used += bytes;
}

void bc_output_vformat(struct bc_output *o, const char *format, va_list args)
{
	char *text;
	int n = vasprintf(&text, format, args);

	if (n < 0) {
		o->error = -ENOMEM;
		return;
	}
	bc_output_text(o, text, (size_t)n);
	free(text);
}

void bc_output_format(struct bc_output *o, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	bc_output_vformat(o, format, args);
	va_end(args);
}

static void write_pieces(struct bc_output *o, const char *text, size_t bytes, bool is_escaped)
{
	char piece[BC_SAFE_PIECE_MAX];

	for (size_t consumed; bytes != 0; text += consumed, bytes -= consumed) {
		consumed = bc_safe_piece(piece, text, bytes, is_escaped);
		bc_output_text(o, piece, strlen(piece));
	}
}

void bc_output_safe_bytes(struct bc_output *o, const char *text, size_t bytes)
{
	write_pieces(o, text, bytes, false);
}

void bc_output_safe(struct bc_output *o, const char *text)
{
	write_pieces(o, text, text != NULL ? strlen(text) : 0, false);
}

void bc_output_escaped(struct bc_output *o, const char *text)
{
	write_pieces(o, text, strlen(text), true);
}

static bool is_printable_ascii(const char *text, size_t bytes)
{
	bool is_printable = true;

	for (size_t i = 0; i < bytes; i++)
		is_printable &= text[i] >= 0x20 && text[i] < 0x7F;
	return is_printable;
}

void bc_output_json(struct bc_output *o, const char *json, size_t bytes)
{
	bool is_string = false;
	bool is_escaped = false;

	/* Nearly all texts are. */
	if (is_printable_ascii(json, bytes)) {
		bc_output_text(o, json, bytes);
		bytes = 0;
	}
	for (uint32_t consumed; bytes != 0; json += consumed, bytes -= consumed) {
		const unsigned char *p = (const unsigned char *)json;
		uint32_t length = bc_utf8_bytes(p, bytes);
		uint32_t code = length != 0 ? bc_utf8_code(p, length) : 0;
		bool is_control = code < 0x20 || (code >= 0x7F && code <= 0x9F);
		consumed = length != 0 ? length : 1;
		if (!is_string && (length == 0 || is_control)) {
			bc_output_text(o, " ", 1);
			continue;
		}
		if (length == 0)
			bc_output_text(o, "\\ufffd", 6);
		else if (is_control)
			bc_output_format(o, "\\u%04x", (unsigned)code);
		else
			bc_output_text(o, json, consumed);
		if (*json == '"' && !is_escaped)
			is_string = !is_string;
		is_escaped = is_string && *json == '\\' && !is_escaped;
	}
	bc_output_text(o, "\n", 1);
}

void bc_output_json_value(struct bc_output *o, json_t *value)
{
	char *text = bc_json_print(value);

	json_decref(value);
	if (text != NULL)
		bc_output_json(o, text, strlen(text)); /* jansson doesn't escape U+007F to U+009F */
	else
		o->error = -ENOMEM;
	free(text);
}

void bc_status_line(struct bc_output *o, const char *name, const char *format, ...)
{
	va_list args;

	bc_output_format(o, "  %-11s ", name);
	va_start(args, format);
	bc_output_vformat(o, format, args);
	va_end(args);
	bc_output_text(o, "\n", 1);
}

void bc_status_line_safe(struct bc_output *o, const char *name, const char *text)
{
	bc_output_format(o, "  %-11s ", name);
	bc_output_safe(o, text);
	bc_output_text(o, "\n", 1);
}

int bc_output_end(struct bc_output *o)
{
	bc_output_flush(o);
	free(o->buffer);
	o->buffer = NULL;
	return o->error != -EPIPE ? o->error : 0;
}

enum bc_exit bc_output_close(struct bc_output *o, const struct bc_console *console)
{
	int error = bc_output_end(o);

	if (error == 0)
		return BC_EXIT_OK;
	return bc_print_error(console, NULL, "%s%s; the output is incomplete",
		error != -ENOMEM ? "write error: " : "",
		error != -ENOMEM ? strerror(-error) : "out of memory");
}
