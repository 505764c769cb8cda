/* What valgrind writes with --tool=lackey --trace-mem=yes: one reference a line, read, and printed
 * for people to look at; no trace is converted to it.
 *
 *   I  ADDR,SIZE    fetch
 *    L ADDR,SIZE    load
 *    S ADDR,SIZE    store
 *    M ADDR,SIZE    load and store of one instruction
 *
 * The address is hexadecimal, the size decimal; there is no time. Lines that begin with == are
 * valgrind's own words and passed over, as blank lines are; anything else, such as what the program
 * printed between them, is malformed. Source: Valgrind's manual, "Lackey". */
#ifndef BC_FORMATS_CODEC_LACKEY_H
#define BC_FORMATS_CODEC_LACKEY_H

#include "formats/trace/parser.h"
#include "formats/trace/printer.h"

extern const struct bc_parser bc_lackey_parser;

/* Prints lines as valgrind does. */
extern const struct bc_printer bc_lackey_printer;

#endif
