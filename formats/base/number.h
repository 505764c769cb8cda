/* Reads whole texts as numbers: values of options, settings and requests. */
#ifndef BC_FORMATS_BASE_NUMBER_H
#define BC_FORMATS_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/must_check.h"

/* Reads a decimal integer, which is all of the text. Returns false if it is not one, or does not
 * fit. */
bool bc_number_read(uint64_t *value, const char *text) BC_MUST_CHECK;

#endif
