/* Dinero's traces: one reference per line.
 *
 *   din   LABEL HEXADDR      label 0 read, 1 write, 2 fetch, 3 miscellaneous, 4 flush; the
 *                            rest of the line is ignored
 *   xdin  C HEXADDR HEXSIZE  r read, w write, i fetch, m miscellaneous, c copy back,
 *                            v invalidate
 *
 * Neither format has times. Addresses have up to 64 bits. The parsers accept 0x before digits. A
 * blank line is malformed, because Dinero IV stops at one. Source: the manual of Dinero IV. */
#ifndef BC_FORMATS_CODEC_DINERO_H
#define BC_FORMATS_CODEC_DINERO_H

#include "formats/trace/parser.h"
#include "formats/trace/printer.h"

extern const struct bc_parser bc_din_parser;
extern const struct bc_parser bc_xdin_parser;

/* All addresses and sizes fit. In xdin, an unknown size is printed as 0. */
extern const struct bc_printer bc_din_printer;
extern const struct bc_printer bc_xdin_printer;

#endif
