/* Text of others (a daemon, a device, a file) made safe for a terminal and for lines: what could
 * move the cursor, change colours, turn the direction of writing or end the line is written as the
 * numbers of its bytes, "\x1b"; so are bytes that are no UTF-8, and the backslash, so that it can
 * be told from those. */
#ifndef BC_CLI_TERM_SAFE_TEXT_H
#define BC_CLI_TERM_SAFE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Copies `text` (NULL: nothing) to `out`, cut to fit with its zero, never within an escape or a
 * character. Returns `out`. */
const char *bc_safe_text(char *out, size_t outlen, const char *text);

/* The next piece of a text of `n` bytes: what to write for it, with its zero. `is_escaped`: the
 * backslashes in it are escapes already, as in JSON, and stay. Returns how many bytes of the text
 * the piece is for. */
#define BC_SAFE_PIECE_MAX 20u
size_t bc_safe_piece(char out[BC_SAFE_PIECE_MAX], const char *text, size_t n, bool is_escaped);

/* Prints a text whose backslashes are escapes already. */
void bc_safe_print_escaped(FILE *out, const char *text);

#endif
