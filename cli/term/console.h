/* The streams of a command, and its errors.
 *
 * A command is a function that takes a console and arguments. It uses no global stream, so a test
 * can call it directly. */
#ifndef BC_CLI_TERM_CONSOLE_H
#define BC_CLI_TERM_CONSOLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "formats/base/text.h"
#include "formats/base/usage.h"

struct bc_console {
	int in; /* standard input, output and error */
	int out;
	FILE *err;
	const char *command; /* "dump"; NULL: none */
};

/* Makes a console that prints no messages, to be closed with fclose(silent->err). Returns false if
 * that failed. */
bool bc_console_silence(struct bc_console *silent, const struct bc_console *console);

/* Prints one line to standard error: "buscap COMMAND: FILE: ...". Control characters are escaped
 * (cli/term/text.h). `file` may be NULL. */
void bc_print_error(const struct bc_console *console, const char *file, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Prints "out of memory" and returns BC_EXIT_FAILED. */
enum bc_exit bc_print_no_memory(const struct bc_console *console);

/* Prints an error about `bytes` damaged bytes at `offset` of a file. */
void bc_print_damage(const struct bc_console *console, const char *file, uint64_t offset,
	uint64_t bytes, const char *what);

/* Returns the more severe code: 2 (usage), 6, 1, 3, 0. */
enum bc_exit bc_exit_worse(enum bc_exit a, enum bc_exit b);

#endif
