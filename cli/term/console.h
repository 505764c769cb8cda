/* Where a command reads, writes and complains, and how it says how it ended.
 *
 * A command is a function of a console and its arguments: it touches no global stream, so that a
 * test can run it in its own process. */
#ifndef BC_CLI_TERM_CONSOLE_H
#define BC_CLI_TERM_CONSOLE_H

#include <stdint.h>
#include <stdio.h>

/* The first that applies, in the order of bc_exit_worse(). */
enum bc_exit {
	BC_EXIT_OK = 0,
	BC_EXIT_FAILED = 1,
	BC_EXIT_USAGE = 2,
	BC_EXIT_DAMAGED = 3, /* the input was damaged or torn; what was good has been delivered */
	BC_EXIT_UNREACHABLE = 6, /* the daemon can't be reached */
};

struct bc_console {
	int in; /* standard input, output and error */
	int out;
	FILE *err;
	const char *command; /* "dump" */
};

/* Writes one line to standard error: "buscap COMMAND: FILE: ...", the names and texts of others in
 * it made safe for a terminal. `file` may be NULL. */
void bc_print_error(const struct bc_console *console, const char *file, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Complains that memory ran out, and returns BC_EXIT_FAILED. */
enum bc_exit bc_print_no_memory(const struct bc_console *console);

/* Complains about a place in a file that can't be read. */
void bc_print_damage(const struct bc_console *console, const char *file, uint64_t offset,
	uint64_t bytes, const char *what);

/* The exit code of a command of which one part ended so and another so. */
enum bc_exit bc_exit_worse(enum bc_exit a, enum bc_exit b);

/* "1 chunk", "2 chunks": the letter that a number puts behind its word. */
static inline const char *bc_plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

#endif
