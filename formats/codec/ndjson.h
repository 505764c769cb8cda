/* NDJSON: one JSON object per line for each entry.
 *
 * The keys are the columns of formats/codec/columns.h, in their order, and `kind` is always first.
 * Keys that are unknown or do not apply are left out. Numbers are JSON integers of up to 64 bits.
 * Addresses and other bit patterns are strings with 0x, because many readers keep only 53 bits of a
 * number. Text is copied if it is UTF-8; a byte that is not part of a UTF-8 sequence becomes \u0080
 * to \u00ff, the character with its number. Source: RFC 8259. */
#ifndef BC_FORMATS_CODEC_NDJSON_H
#define BC_FORMATS_CODEC_NDJSON_H

#include "formats/trace/printer.h"

extern const struct bc_printer bc_ndjson_printer;

#endif
