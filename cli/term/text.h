/* Escapes untrusted text (from a daemon, a device, a file) for a terminal. Characters that could
 * move the cursor, change colours, change the writing direction or end the line are printed as
 * their bytes: "\x1b". So are backslashes, and bytes that are not UTF-8. */
#ifndef BC_CLI_TERM_TEXT_H
#define BC_CLI_TERM_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies `text` (NULL: nothing) to `out`, truncated to fit including the terminating zero, but
 * never within an escape or a character. Returns `out`. */
const char *bc_safe_text(char *out, size_t outlen, const char *text);

/* The same for a text whose backslashes already start escapes, as in JSON: they are kept. */
const char *bc_safe_escaped(char *out, size_t outlen, const char *text);

/* Escapes the first character of a string of `n` bytes and writes it to `out`, zero-terminated.
 * With `is_escaped`, backslashes are kept. Returns the number of bytes consumed. */
#define BC_SAFE_PIECE_MAX 20u
size_t bc_safe_piece(char out[BC_SAFE_PIECE_MAX], const char *text, size_t n, bool is_escaped);

/* ---- Human-readable amounts: three significant digits and a unit. */

#define BC_HUMANIZE_MAX 40

/* Each function writes to `out` and returns it. */
const char *bc_humanize_bytes(char out[BC_HUMANIZE_MAX], double bytes);  /* "1.24 GB" */
const char *bc_humanize_rate(char out[BC_HUMANIZE_MAX], double per_s);   /* "5.01 M" */
const char *bc_humanize_time(char out[BC_HUMANIZE_MAX], double seconds); /* "3 d 4 h", "12 s" */

#endif
