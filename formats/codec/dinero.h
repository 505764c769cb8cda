/* Dinero's traces: one reference a line.
 *
 *   din   LABEL HEXADDR      label 0 read, 1 write, 2 fetch, 3 miscellaneous, 4 flush; what follows
 *                            on the line is not looked at
 *   xdin  C HEXADDR HEXSIZE  r read, w write, i fetch, m miscellaneous, c copy back, v invalidate
 *
 * Neither holds a time. Addresses have up to 64 bits; both may have 0x before their digits when
 * read. A blank line is malformed: Dinero IV stops at one. Source: the manual of Dinero IV. */
#ifndef BC_FORMATS_CODEC_DINERO_H
#define BC_FORMATS_CODEC_DINERO_H

#include "formats/trace/parser.h"
#include "formats/trace/printer.h"

extern const struct bc_parser bc_din_parser;
extern const struct bc_parser bc_xdin_parser;

/* All addresses and sizes fit; an unknown size is printed as 0 in xdin. */
extern const struct bc_printer bc_din_printer;
extern const struct bc_printer bc_xdin_printer;

#endif
