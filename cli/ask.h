/* One question to the daemon and its answer, as most commands of the live side want it: from
 * connecting to the complaint. */
#ifndef BC_CLI_ASK_H
#define BC_CLI_ASK_H

#include "cli/client.h"
#include "cli/console.h"
#include "cli/output.h"

/* Letters of long options, above those of single characters. */
enum { BC_ASK_SOCKET = 1000, BC_ASK_JSON, BC_ASK_MORE /* others begin here */ };

/* Rows of the tables of those that ask, and their exit codes. */
#define BC_ASK_OPTION_SOCKET                                                            \
	{                                                                               \
		BC_ASK_SOCKET, "socket", "PATH", "file",                                \
			"the daemon's socket ($BUSCAP_SOCKET, or " BC_CLIENT_SOCKET ")" \
	}
#define BC_ASK_EXITS "0 ok, 1 failed or refused, 2 wrong usage, 6 the daemon can't be reached."

/* The time in which the daemon must have sealed what it answers for. */
#define BC_ASK_SEAL_MS 600000

/* Opens a client of the socket (NULL: see bc_client_open()). Complains and returns BC_EXIT_FAILED
 * when memory ran out. */
enum bc_exit bc_ask_open(
	struct bc_client **client, const struct bc_console *console, const char *socket);

/* One call, with an object as its body that is freed here, or NULL; `timeout_ms` 0: the usual time.
 * Complains of all but success. The answer is the caller's to free, whatever is returned. */
enum bc_exit bc_ask(const struct bc_console *console, const char *socket, const char *method,
	const char *path, cJSON *body, long timeout_ms, struct bc_answer *answer);

/* Prints an answer as it came, made safe, on standard output. */
enum bc_exit bc_ask_print_json(const struct bc_console *console, const struct bc_answer *answer);

/* Complains that the daemon answered other than docs/api.md says, and returns BC_EXIT_FAILED. */
enum bc_exit bc_ask_complain_answer(const struct bc_console *console);

/* `text` for a path or a query: all but letters, digits, '-', '.', '_' and '~' as %XX. NULL when
 * memory ran out; the caller's to free. */
char *bc_ask_encode(const char *text);

#endif
