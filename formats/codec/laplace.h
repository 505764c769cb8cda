/* Laplace's reference traces, as binary records and as text.
 *
 *   laplace       18 bytes: type, a char; u64 timestamp; u8 length; u32 address space; u32 virtual
 *                 address. Packed; little-endian, or big-endian with endian=big.
 *   laplace-text  TYPE TIMESTAMP LENGTH SPACE ADDRESS, hexadecimal, addresses of up to 64 bits:
 *                     r 123456789abcdef0 4 9f8e7 9a8b7c6d
 *                 Blank lines are skipped.
 *
 * Types: r read, w write, f fetch; i is a fetch that keeps its letter. The specification does not
 * list the types: any other printable character is kept as a type that only its letter identifies.
 * Length 0 means unknown, in both directions. Timestamps are absolute.
 *
 * When printed, an entry without a time gets the tick after the previous reference, an entry
 * without an address space is in space 0, and an entry without a letter is r, w or f.
 *
 * Source: Scott F. Kaplan, "Laplace: Raw Trace Formats", 2002. */
#ifndef BC_FORMATS_CODEC_LAPLACE_H
#define BC_FORMATS_CODEC_LAPLACE_H

#include "formats/trace/parser.h"
#include "formats/trace/printer.h"

#define BC_LAPLACE_BYTES 18

/* A record whose type is not printable is malformed. */
extern const struct bc_parser bc_laplace_parser;
extern const struct bc_parser bc_laplace_text_parser;

/* Returns -ERANGE for an address above 32 bits or a size above 255 bytes. */
extern const struct bc_printer bc_laplace_printer;
extern const struct bc_printer bc_laplace_text_printer;

#endif
