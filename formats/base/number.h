/* Numbers in texts: values of options, settings and requests; counts, and words after them. */
#ifndef BC_FORMATS_BASE_NUMBER_H
#define BC_FORMATS_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/must_check.h"

/* Reads a decimal integer, which is all of the text. Returns false if it is not one, or does not
 * fit. */
bool bc_number_read(uint64_t *value, const char *text) BC_MUST_CHECK;

/* Returns the plural suffix: "1 chunk", "2 chunks". */
static inline const char *bc_plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* Writes a number with commas: "1,234,567". Returns `out`. */
#define BC_GROUPED_MAX 28
const char *bc_number_group(char out[BC_GROUPED_MAX], uint64_t n);

#endif
