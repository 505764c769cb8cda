/* What valgrind writes with --tool=lackey --trace-mem=yes: one reference a line, read only.
 *
 *   I  ADDR,SIZE    fetch
 *    L ADDR,SIZE    load
 *    S ADDR,SIZE    store
 *    M ADDR,SIZE    load and store of one instruction
 *
 * The address is hexadecimal, the size decimal; there is no time. Lines that begin with == are
 * valgrind's own words and passed over, as blank lines are; anything else, such as what the program
 * printed between them, is malformed. Source: Valgrind's manual, "Lackey". */
#ifndef BC_FORMATS_LACKEY_H
#define BC_FORMATS_LACKEY_H

#include "formats/parser.h"

extern const struct bc_parser bc_lackey_parser;

#endif
