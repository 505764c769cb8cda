/* The daemon's socket, from its other end: HTTP over a Unix socket by libcurl (docs/api.md).
 *
 *     bc_client_open() -> bc_client_call()... -> bc_client_close()
 *     bc_client_open() -> bc_client_stream() -> bc_client_wait()... -> bc_client_close()
 *
 * A call waits for its answer. A stream is read in bc_client_wait(), which hands over line by line
 * and can look at other descriptors at the same time; calls may be made between two waits. Nothing
 * here prints: what went wrong is a sentence, bc_client_error(), which stays until the next call.
 * The daemon is not trusted: an answer and a line have a greatest length, a connection a time in
 * which something must come, and its sentences are made safe to print.
 *
 * What comes back says how it went:
 *   BC_EXIT_OK           it was answered with 2xx
 *   BC_EXIT_USAGE        it was refused with 400: a value that was asked with makes no sense (the
 *                        daemon's own sentence is in bc_client_error())
 *   BC_EXIT_FAILED       it was refused (the daemon's own sentence is in bc_client_error()), or
 * what was answered makes no sense, or memory ran out BC_EXIT_UNREACHABLE  nobody is there: no
 * socket, no permission, no answer in time, or the daemon left while it was asked After any of
 * these the client can be used again, to try once more. */
#ifndef BC_CLI_CLIENT_CLIENT_H
#define BC_CLI_CLIENT_CLIENT_H

#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/term/console.h"
#include "cli/term/output.h"
#include "formats/base/must_check.h"

#define BC_CLIENT_SOCKET "/run/buscapd/buscapd.sock"

#define BC_CLIENT_ANSWER_BYTES (64u << 20) /* the longest answer that is taken */
#define BC_CLIENT_LINE_BYTES   (4u << 20)  /* the longest line of a stream */
#define BC_CLIENT_TIMEOUT_MS   10000       /* a call's, unless told otherwise */

/* What all commands of the daemon share: the options --json and --socket, whose letters are above
 * those of single characters, and the exit codes. */
enum {
	BC_CLIENT_OPT_SOCKET = 1000,
	BC_CLIENT_OPT_JSON,
	BC_CLIENT_OPT_MORE /* others start here */
};
#define BC_CLIENT_OPTION_SOCKET                                                         \
	{                                                                               \
		BC_CLIENT_OPT_SOCKET, "socket", "PATH", "file",                         \
			"the daemon's socket ($BUSCAP_SOCKET, or " BC_CLIENT_SOCKET ")" \
	}
#define BC_CLIENT_EXITS "0 ok, 1 failed or refused, 2 wrong usage, 6 the daemon can't be reached."

struct bc_client;

/* What a call brought. `json` is NULL for an answer without a body. */
struct bc_answer {
	long status;  /* of HTTP: 200, 409, ...; 0: there was no answer */
	json_t *json; /* an object */
	char *text;   /* the body as it came, a zero behind it; NULL if empty */
	size_t bytes;
};

void bc_answer_free(struct bc_answer *answer);

/* The socket is `path`, or, where that is NULL or empty, $BUSCAP_SOCKET if it is set and not empty,
 * or BC_CLIENT_SOCKET. Connects to nothing yet. Complains and returns BC_EXIT_FAILED when memory
 * ran out. */
enum bc_exit bc_client_open(struct bc_client **client, const struct bc_console *console,
	const char *path) BC_MUST_CHECK;

/* Ends the stream, if there is one. NULL is allowed. */
void bc_client_close(struct bc_client *client);

/* The socket's path. */
const char *bc_client_path(const struct bc_client *client);

/* Calls that follow must be answered within this time. */
void bc_client_set_timeout(struct bc_client *client, long ms);

/* Asks `method` ("GET") of `path` ("/v1/status"), with an object as its body or NULL for none. The
 * answer is the caller's to free, whatever is returned; `answer` may be NULL where only the success
 * matters. */
enum bc_exit bc_client_call(struct bc_client *client, const char *method, const char *path,
	const json_t *body, struct bc_answer *answer) BC_MUST_CHECK;

/* Begins a stream, GET of `path`, in place of the one before it. `line` is called from within
 * bc_client_wait() with each line, without its newline and with a zero behind it; the text is valid
 * until it returns and may be written on. It returns false when nothing more is wanted: the stream
 * is then over. It may make no calls. Returns BC_EXIT_OK or BC_EXIT_FAILED (memory); whether
 * somebody is there turns out in bc_client_wait(). */
enum bc_exit bc_client_stream(struct bc_client *client, const char *path,
	bool (*line)(void *context, char *text, size_t bytes), void *context) BC_MUST_CHECK;

/* Reads the stream for `timeout_ms` (-1: for ever) or until one of the `count` descriptors has what
 * its `events` ask for (POLLIN, POLLOUT), or has failed or been hung up; their `revents` are set.
 * Returns earlier whenever lines came. When it returns anything but BC_EXIT_OK, or BC_EXIT_OK and
 * bc_client_is_over(), the stream has ended. A daemon that is silent for longer than a stream may
 * be (events: each second a status) is the caller's to notice. */
enum bc_exit bc_client_wait(
	struct bc_client *client, struct pollfd *fds, unsigned count, int timeout_ms) BC_MUST_CHECK;

/* How many lines the stream has brought: whoever minds silence compares. */
uint64_t bc_client_lines(const struct bc_client *client);

/* Whether there is no stream, or no more of it. */
bool bc_client_is_over(const struct bc_client *client);

/* Why the last call or wait did not return BC_EXIT_OK: a sentence without a newline, safe to
 * print; of a BC_EXIT_UNREACHABLE one that says what to do, to be put behind the socket's path. */
const char *bc_client_error(const struct bc_client *client);

/* Prints that on standard error, "buscap COMMAND: PATH: ...", and returns `code`. */
enum bc_exit bc_client_print_error(const struct bc_client *client, enum bc_exit code);

/* Complains that the daemon answered other than docs/api.md says, and returns BC_EXIT_FAILED. */
enum bc_exit bc_client_complain_answer(const struct bc_client *client);

/* Writes an answer's JSON as it came, made safe, in one line; nothing if it has no body. */
void bc_answer_write_json(struct bc_output *output, const struct bc_answer *answer);

/* `text` for a path or a query: all but letters, digits, '-', '.', '_' and '~' as %XX. NULL when
 * memory ran out; the caller's to free. */
char *bc_client_encode(const char *text);

#endif
