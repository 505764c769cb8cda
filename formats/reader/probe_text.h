/* Detects text formats: tries the parsers on the whole lines at the start of a file. */
#ifndef BC_FORMATS_READER_PROBE_TEXT_H
#define BC_FORMATS_READER_PROBE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/codec/format.h"

/* Whether the bytes can be text: no control characters other than white space. */
bool bc_is_text(const uint8_t *head, size_t bytes);

/* Returns the only text format that fits the lines, or BC_FORMAT_UNKNOWN with *err set to a clause.
 * `is_all`: the last line may lack its newline. */
enum bc_format bc_probe_text(
	const uint8_t *head, size_t bytes, bool is_all, char *err, size_t errlen);

#endif
