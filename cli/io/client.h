/* HTTP client for the daemon's Unix socket (docs/api.md).
 *
 *     bc_client_open() -> bc_client_call()... -> bc_client_close()
 *     bc_client_open() -> bc_client_stream() -> bc_client_wait()... -> bc_client_close()
 *
 * A call blocks until the response is complete. A stream is read in bc_client_wait(), which passes
 * on one line at a time and can poll other descriptors too. Calls may be made between two waits.
 *
 * The daemon is not trusted: responses and lines have a maximum length, calls have a timeout, and
 * error texts from the daemon are escaped.
 *
 * Nothing here prints unless its name says so. bc_client_error() has the error text of the last
 * call or wait. Results are
 *
 *   BC_EXIT_OK           status 2xx
 *   BC_EXIT_USAGE        status 400: the daemon rejected a value
 *   BC_EXIT_FAILED       another status, an invalid response, or out of memory
 *   BC_EXIT_UNREACHABLE  no socket, no permission, timeout, or the daemon closed the connection
 *
 * After an error the client can be used again. */
#ifndef BC_CLI_IO_CLIENT_H
#define BC_CLI_IO_CLIENT_H

#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/term/console.h"
#include "cli/term/output.h"
#include "formats/base/must_check.h"
#include "formats/base/user_paths.h"

/* ---- A growing byte buffer with a maximum size, for responses and partial lines. */

/* Set `max` and zero the rest before the first use. */
struct bc_byte_buffer {
	char *bytes; /* null-terminated; NULL before the first bc_byte_buffer_add() */
	size_t used;
	size_t capacity;
	size_t max;
	bool is_too_long;      /* `max` was exceeded */
	bool is_out_of_memory; /* an allocation failed */
};

/* Appends bytes. On failure, sets the reason, leaves the contents unchanged and returns false. */
bool bc_byte_buffer_add(struct bc_byte_buffer *buffer, const char *bytes, size_t n);

/* Frees the contents and zeroes the buffer. */
void bc_byte_buffer_free(struct bc_byte_buffer *buffer);

#define BC_CLIENT_RESPONSE_MAX (64u << 20) /* bytes of a response */
#define BC_CLIENT_LINE_MAX     (4u << 20)  /* bytes of a stream's line */
#define BC_CLIENT_TIMEOUT_MS   10000       /* default for calls */

/* Options and exit codes of the daemon's commands. Long options' letters exceed any character. */
enum {
	BC_CLIENT_OPT_SOCKET = 1000,
	BC_CLIENT_OPT_MORE /* the command's own options start here */
};
/* clang-format off */
#define BC_CLIENT_OPTION_SOCKET \
	{BC_CLIENT_OPT_SOCKET, "socket", "PATH", "file", \
		"the daemon's socket ($BUSCAP_SOCKET, or $XDG_RUNTIME_DIR/buscapd.sock of a user, or " BC_SYSTEM_SOCKET ")"}
/* clang-format on */
#define BC_CLIENT_EXITS "0 ok, 1 failed or refused, 2 wrong usage, 6 can't reach the daemon."

struct bc_client;

struct bc_response {
	json_t *json; /* the body, an object; NULL if the body is empty or not an object */
	char *text;   /* the body, null-terminated; NULL if empty */
	size_t bytes;
};

void bc_response_free(struct bc_response *response);

/* Uses the socket `path`. If that is NULL or empty: $BUSCAP_SOCKET. If that is unset or empty: at
 * each request, the user's own if a daemon has it, else the system's (formats/base/user_paths.h).
 * Does not connect yet. If out of memory, prints an error and returns BC_EXIT_FAILED. */
enum bc_exit bc_client_open(struct bc_client **client, const struct bc_console *console,
	const char *path) BC_MUST_CHECK;

/* Also closes the stream. NULL is allowed. */
void bc_client_close(struct bc_client *client);

/* Its path, for messages; those of all that were tried, if none has a daemon. */
const char *bc_client_path(const struct bc_client *client);

/* Sets the timeout of later calls, and of the time until a stream's status arrives. */
void bc_client_set_timeout(struct bc_client *client, long ms);

/* Sends a request: `method` is "GET", `path` is "/v1/status", `body` is an object or NULL. The
 * caller frees the response, whatever is returned. */
enum bc_exit bc_client_call(struct bc_client *client, const char *method, const char *path,
	const json_t *body, struct bc_response *response) BC_MUST_CHECK;

/* Like bc_client_call(): sets *dir to the directory of the recordings, allocated, or NULL. */
enum bc_exit bc_client_directory(struct bc_client *client, char **dir) BC_MUST_CHECK;

/* Starts a stream, GET of `path`, and closes the previous one. bc_client_wait() calls `line` with
 * each line, null-terminated and without its newline. The text is valid until `line` returns and
 * may be modified. `line` may not make calls; if it returns false, the stream ends. Returns
 * BC_EXIT_OK, BC_EXIT_FAILED (out of memory), or BC_EXIT_UNREACHABLE if it can't connect. Refusals
 * come from bc_client_wait(). */
enum bc_exit bc_client_stream(struct bc_client *client, const char *path,
	bool (*line)(void *context, char *text, size_t bytes), void *context) BC_MUST_CHECK;

/* Reads the stream until lines arrive, `timeout_ms` has passed (-1: no limit), or poll() reports
 * something for one of the `count` descriptors; sets their `revents`. The stream has ended if this
 * returns an error, or BC_EXIT_OK with bc_client_is_over(). It does not detect a daemon that has
 * stopped sending; callers can compare bc_client_lines(). */
enum bc_exit bc_client_wait(
	struct bc_client *client, struct pollfd *fds, unsigned count, int timeout_ms) BC_MUST_CHECK;

/* Returns the number of lines received in this stream. */
uint64_t bc_client_lines(const struct bc_client *client);

/* Returns whether there is no stream or it has ended. */
bool bc_client_is_over(const struct bc_client *client);

/* Returns the error text of the last call or wait: no newline, safe to print, valid until the next
 * call. For BC_EXIT_UNREACHABLE, the socket's path belongs before it. */
const char *bc_client_error(const struct bc_client *client);

/* True if the last call failed because nothing listens there (yet). */
bool bc_client_is_vacant(const struct bc_client *client);

/* Prints the error text on standard error, "buscap COMMAND: PATH: ...", and returns `code`. */
enum bc_exit bc_client_print_error(const struct bc_client *client, enum bc_exit code);

/* Prints that the response is not what docs/api.md describes, and returns BC_EXIT_FAILED. */
enum bc_exit bc_client_print_bad_response(const struct bc_client *client);

/* Writes a response's JSON on one line, unchanged but escaped; nothing if the body is empty. */
void bc_response_write_json(struct bc_output *output, const struct bc_response *response);

/* Adds the members of an object of strings to a path, as a query: "/v1/records?limit=5". Returns
 * allocated text, or NULL if out of memory. */
char *bc_client_query(const char *path, json_t *object);

/* Percent-encodes `text` for a path or a query. Returns allocated text; NULL: out of memory. */
char *bc_client_encode(const char *text);

#endif
