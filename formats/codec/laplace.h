/* Laplace's traces of references: as records, and the same as text.
 *
 *   laplace       18 bytes: type, a char; u64 timestamp; u8 length; u32 address space; u32 virtual
 *                 address. Packed; little-endian unless told endian=big.
 *   laplace-text  TYPE TIMESTAMP LENGTH SPACE ADDRESS, hexadecimal: r 123456789abcdef0 4 9f8e7
 *                 9a8b7c6d; addresses have up to 64 bits here. A blank line is passed over.
 *
 * Types: r read, w write, f fetch; i is a fetch whose letter is kept. The document names none: any
 * other printable character is kept as a type that is known by its letter alone. A length of 0 is
 * read as unknown, and an unknown one printed so. Timestamps are absolute.
 *
 * What comes without a time gets one tick each, counted on from the reference before; what comes
 * without an address space stands in space 0; what has no letter is printed as r, w or f.
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

/* -ERANGE: an address of more than 32 bits, a size over 255 bytes. */
extern const struct bc_printer bc_laplace_printer;
extern const struct bc_printer bc_laplace_text_printer;

#endif
