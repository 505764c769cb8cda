/* Tarmac: the trace format of Arm's models and simulators, also read by ISPRAS Trace Matcher. One
 * record per line.
 *
 *   TIME UNIT [CPU] IT|IS|IF [(ID)] ADDR OPCODE SET MODE : DISASSEMBLY     an instruction
 *   TIME UNIT       ES (ADDR:OPCODE) SET MODE: [CCFAIL] DISASSEMBLY        the same
 *   TIME UNIT [CPU] M<R|W><BYTES><ATTRIBUTE> ADDR DATA                     a memory access
 *   TIME UNIT       R08|W04|... [X] ADDR DATA                              the same
 *   TIME UNIT       LD|ST ADDR XXXXXXXX XXXXXXXX XXXXXXXX XXXXXXXX ...     accesses in 16 bytes
 *   TIME UNIT [CPU] R NAME VALUE                                           a register write
 *
 * UNIT is clk, ns, cs, cyc, tic, ps or us, with or without a space before it. A line without a time
 * has the time of the previous line. CPU is "cpu0", or just a number. ADDR is hexadecimal; ":PHYS",
 * "_NS" or another state, and a second ",ADDR" may follow. docs/formats.md has the details.
 *
 * Every line becomes one or more entries. The first has the verbatim line, the others are
 * is_continued. Lines of any other kind, comments and blank lines become a BC_ENTRY_LINE. A line is
 * malformed only if it starts like one of these records, but lacks a required number, the
 * instruction set, a register's name or value, or a closing parenthesis; if a number has more than
 * 64 bits; if a time is not in whole picoseconds; or if data does not match the size of its access.
 *
 * Sources: Trace Format of ISPRAS Trace Matcher; lines written by Arm's tools. */
#ifndef BC_FORMATS_CODEC_TARMAC_H
#define BC_FORMATS_CODEC_TARMAC_H

#include "formats/trace/parser.h"

extern const struct bc_parser bc_tarmac_parser;

#endif
