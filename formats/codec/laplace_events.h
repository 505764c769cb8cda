/* Laplace's kernel events: text, one event a line.
 *
 *   TAG TIMESTAMP REST     F 123456789abcdef7 100 77
 *
 * The tag says what the rest means, and only two are published; the rest is kept as it stands. The
 * timestamp is hexadecimal and of the same clock as the references' (formats/codec/laplace.h).
 *
 * An entry's letter is the tag's first character, which must be printable. A line that would not
 * be printed the same from its fields, because its spaces are more or its timestamp has leading
 * zeros or capitals, has all of it in entry->line, and is printed from there: every line that is
 * read is written as it stood. A blank line is no event, and passed over.
 *
 * Source: Scott F. Kaplan, "Laplace: Raw Trace Formats", 2002. */
#ifndef BC_FORMATS_CODEC_LAPLACE_EVENTS_H
#define BC_FORMATS_CODEC_LAPLACE_EVENTS_H

#include "formats/trace/parser.h"
#include "formats/trace/printer.h"

extern const struct bc_parser bc_laplace_events_parser;

/* An event of more than a line's length is -ERANGE. */
extern const struct bc_printer bc_laplace_events_printer;

#endif
