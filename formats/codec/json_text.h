/* JSON strings from arbitrary bytes. Source: RFC 8259, section 7. */
#ifndef BC_FORMATS_CODEC_JSON_TEXT_H
#define BC_FORMATS_CODEC_JSON_TEXT_H

#include <stdint.h>

#include "formats/base/fast_format.h"

/* Writes the text in quotes: at most six bytes per input byte, plus two. UTF-8 is copied, control
 * characters are escaped, and a byte that is not part of a UTF-8 sequence becomes \u0080 to \u00ff,
 * the character with its number. Returns the end of the output. */
char *bc_json_write_text(char *out, struct bc_text text);

#endif
