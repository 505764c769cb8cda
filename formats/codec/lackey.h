/* Output of valgrind --tool=lackey --trace-mem=yes: one reference per line. It is parsed, and
 * printed only for display: no trace is converted to it.
 *
 *   I  ADDR,SIZE    fetch
 *    L ADDR,SIZE    load
 *    S ADDR,SIZE    store
 *    M ADDR,SIZE    load and store by one instruction
 *
 * The address is hexadecimal, the size decimal. There are no times. Blank lines, and lines that
 * start with == (valgrind's own messages), are skipped. Anything else, such as output of the traced
 * program, is malformed. Source: Valgrind's manual, "Lackey". */
#ifndef BC_FORMATS_CODEC_LACKEY_H
#define BC_FORMATS_CODEC_LACKEY_H

#include "formats/trace/parser.h"
#include "formats/trace/printer.h"

extern const struct bc_parser bc_lackey_parser;

/* Prints lines in valgrind's form. */
extern const struct bc_printer bc_lackey_printer;

#endif
