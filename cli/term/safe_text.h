/* Escapes untrusted text (from a daemon, a device, a file) for a terminal. Characters that could
 * move the cursor, change colours, change the writing direction or end the line are printed as
 * their bytes: "\x1b". So are bytes that are not UTF-8, and the backslash itself, which keeps the
 * result unambiguous. */
#ifndef BC_CLI_TERM_SAFE_TEXT_H
#define BC_CLI_TERM_SAFE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Copies `text` (NULL: nothing) to `out`, truncated to fit including the terminating zero, but
 * never within an escape or a character. Returns `out`. */
const char *bc_safe_text(char *out, size_t outlen, const char *text);

/* Escapes the first character of a string of `n` bytes and writes it to `out`, zero-terminated.
 * With `is_escaped`, backslashes already start escapes, as in JSON, and are kept. Returns the
 * number of bytes consumed. */
#define BC_SAFE_PIECE_MAX 20u
size_t bc_safe_piece(char out[BC_SAFE_PIECE_MAX], const char *text, size_t n, bool is_escaped);

/* Prints a string whose backslashes already start escapes. */
void bc_safe_print_escaped(FILE *out, const char *text);

#endif
