/* Numbers in texts: values of options, settings and requests; counts, and words after them. */
#ifndef BC_FORMATS_BASE_NUMBER_H
#define BC_FORMATS_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/must_check.h"

/* Reads a decimal integer, which is all of the text. Returns false if it is not one, or does not
 * fit. */
bool bc_number_read(uint64_t *value, const char *text) BC_MUST_CHECK;

/* Reads one at the start of a text, and sets *rest to what follows it. */
bool bc_number_read_start(uint64_t *value, const char *text, const char **rest) BC_MUST_CHECK;

/* Reads "100-199", "100-", "-199" or "100". Returns false if it is none of these; it may end before
 * it starts. */
bool bc_number_read_range(uint64_t *first, uint64_t *last, const char *text) BC_MUST_CHECK;

/* Reads hexadecimal digits, with an optional "0x". Returns the position after them; NULL if there
 * are none, or more than fit in 64 bits. */
const char *bc_hex_read(const char *at, const char *end, uint64_t *value);

/* Returns the plural suffix: "1 chunk", "2 chunks". */
static inline const char *bc_plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* Writes a number with commas: "1,234,567". Returns `out`. */
#define BC_GROUPED_MAX 28
const char *bc_number_group(char out[BC_GROUPED_MAX], uint64_t n);

#endif
