/* NDJSON: one JSON object a line for each entry.
 *
 * The keys are the columns of formats/codec/columns.h, in their order, `kind` always first; what is
 * unknown or not of the entry's kind is left out. Numbers are JSON integers of up to 64 bits;
 * addresses and other patterns of bits are strings with 0x, for many readers keep no more than 53
 * bits of a number. Text that is UTF-8 stands as it is; a byte that belongs to no UTF-8 sequence
 * stands as \u0080 to \u00ff, the character of its number. Source: RFC 8259. */
#ifndef BC_FORMATS_CODEC_NDJSON_H
#define BC_FORMATS_CODEC_NDJSON_H

#include "formats/trace/printer.h"

extern const struct bc_printer bc_ndjson_printer;

#endif
