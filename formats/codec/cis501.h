/* CIS501: one x86 micro-op per line, in fourteen columns separated by white space.
 *
 *   1 step      number of the micro-op in its macro-op, from 1
 *   2 PC        hexadecimal
 *   3 src1  4 src2  5 dest     registers, -1: none
 *   6 flags     R, W or -      condition codes read, written
 *   7 branch    T, N or -      taken, not taken
 *   8 access    L, S or -      load, store
 *   9 immediate decimal, signed, 64 bits
 *  10 memory address  11 fallthrough PC  12 target PC     hexadecimal
 *  13 macro opcode  14 micro opcode
 *
 * The printer aligns the columns like the traces of the course. The parser skips blank lines. A cut
 * trace may start in the middle of a macro-op. Source: University of Pennsylvania, CIS 501,
 * "Instruction Trace Format", 2011. */
#ifndef BC_FORMATS_CODEC_CIS501_H
#define BC_FORMATS_CODEC_CIS501_H

#include "formats/trace/parser.h"
#include "formats/trace/printer.h"

/* Option used: `size`, the bytes of every load and store. */
extern const struct bc_parser bc_cis501_parser;

extern const struct bc_printer bc_cis501_printer;

#endif
