/* Detects text formats: tries the parsers on the whole lines at the start of a file.
 *
 * A format fits if its parser accepts nearly all lines, and most have what other texts lack, which
 * its parser decides (is_typical() in formats/trace/parser.h). */
#ifndef BC_FORMATS_READER_PROBE_TEXT_H
#define BC_FORMATS_READER_PROBE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/codec/format.h"

/* Whether the bytes can be text. A few may be control characters other than white space, such as
 * the Ctrl-Z that ends a file of CP/M and DOS. */
bool bc_is_text(const uint8_t *head, size_t bytes);

/* Returns the only text format that fits the lines, or BC_FORMAT_UNKNOWN with *err set to a clause.
 * `is_all`: the last line may lack its newline. */
enum bc_format bc_probe_text(
	const uint8_t *head, size_t bytes, bool is_all, char *err, size_t errlen);

#endif
