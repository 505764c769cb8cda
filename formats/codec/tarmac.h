/* Tarmac: what Arm's models and simulators write, and ISPRAS Trace Matcher compares; a record a
 * line.
 *
 *   TIME UNIT [CPU] IT|IS|IF [(ID)] ADDR OPCODE SET MODE : DISASSEMBLY     an instruction
 *   TIME UNIT       ES (ADDR:OPCODE) SET MODE: [CCFAIL] DISASSEMBLY        the same
 *   TIME UNIT [CPU] M<R|W><BYTES><ATTRIBUTE> ADDR DATA                     a memory access
 *   TIME UNIT       R08|W04|... [X] ADDR DATA                              the same
 *   TIME UNIT       LD|ST ADDR XXXXXXXX XXXXXXXX XXXXXXXX XXXXXXXX ...     accesses in 16 bytes
 *   TIME UNIT [CPU] R NAME VALUE                                           a register write
 *
 * UNIT is clk, ns, cs, cyc, tic, ps or us, with or without a space before it. A line without a time
 * has that of the line before. CPU is "cpu0", or a number alone. ADDR is hexadecimal and may have
 * ":PHYS", "_NS" or another state behind that, and a second ",ADDR". docs/formats.md has all of it.
 *
 * Every line becomes one entry or several, of which all but the first are is_continued; the first
 * has the line as it stands. A line of any other kind is a BC_ENTRY_LINE, blank ones and comments
 * too. Malformed is only what begins as one of these records and has no number where one must be,
 * or one of more than 64 bits.
 *
 * Sources: Trace Format of ISPRAS Trace Matcher; lines that Arm's tools write. */
#ifndef BC_FORMATS_CODEC_TARMAC_H
#define BC_FORMATS_CODEC_TARMAC_H

#include "formats/trace/parser.h"

extern const struct bc_parser bc_tarmac_parser;

#endif
