/* Human-readable amounts: three significant digits and a unit. */
#ifndef BC_CLI_TERM_HUMANIZE_H
#define BC_CLI_TERM_HUMANIZE_H

#include <stdint.h>

#define BC_HUMANIZE_MAX 40

/* Each function writes to `out` and returns it. */
const char *bc_humanize_bytes(char out[BC_HUMANIZE_MAX], double bytes);   /* "1.24 GB" */
const char *bc_humanize_count(char out[BC_HUMANIZE_MAX], uint64_t count); /* "1,234,567" */
const char *bc_humanize_rate(char out[BC_HUMANIZE_MAX], double per_s);    /* "5.01 M" */
const char *bc_humanize_time(char out[BC_HUMANIZE_MAX], double seconds);  /* "3 d 4 h", "12 s" */

#endif
