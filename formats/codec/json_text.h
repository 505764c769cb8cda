/* Strings of JSON from bytes that may be anything. Source: RFC 8259, section 7. */
#ifndef BC_FORMATS_CODEC_JSON_TEXT_H
#define BC_FORMATS_CODEC_JSON_TEXT_H

#include <stdint.h>

#include "formats/base/fast_format.h"

/* Writes the text with quotes around it, up to six bytes for each of its own and two. UTF-8 stands
 * as it is; a byte that belongs to no sequence of it as \u0080 to \u00ff, the character of its
 * number; controls are escaped. Returns the place behind. */
char *bc_json_write_text(char *out, struct bc_text text);

#endif
