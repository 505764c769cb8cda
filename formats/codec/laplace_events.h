/* Laplace's kernel events: text, one event per line.
 *
 *   TAG TIMESTAMP REST     F 123456789abcdef7 100 77
 *
 * The meaning of the rest depends on the tag. Only two tags are published, so the rest is kept
 * verbatim. The timestamp is hexadecimal, from the same clock as the references
 * (formats/codec/laplace.h).
 *
 * The entry's letter is the first character of the tag, which must be printable. A line that would
 * be printed differently from its fields (because of extra spaces, leading zeros or capitals in the
 * timestamp) is kept in entry->line and printed from there. So every line is written as it was
 * read. Blank lines are skipped.
 *
 * Source: Scott F. Kaplan, "Laplace: Raw Trace Formats", 2002. */
#ifndef BC_FORMATS_CODEC_LAPLACE_EVENTS_H
#define BC_FORMATS_CODEC_LAPLACE_EVENTS_H

#include "formats/trace/parser.h"
#include "formats/trace/printer.h"

extern const struct bc_parser bc_laplace_events_parser;

extern const struct bc_printer bc_laplace_events_printer;

#endif
