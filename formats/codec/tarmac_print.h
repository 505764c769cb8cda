/* Prints entries as Tarmac.
 *
 * An entry read from Tarmac is printed as its original line, once for all entries of the line. Any
 * other entry is printed from its fields in the forms of ISPRAS Trace Matcher, with "cpu0" if it
 * has a processor:
 *
 *   12 clk MR4 00008034 000029b4                 a reference
 *   12 clk MW4 00008034 xxxxxxxx                 with unknown data
 *   12 clk IT (7) 00008000 fa000000 A svc_s : BLX {pc}+8
 *   12 clk IT (00008000) fa000000 A svc_s : BLX {pc}+8      an instruction without an index
 *   12 clk R r0 0000ab34
 *
 * Ticks without a named unit are printed as "clk". In a trace without times, each entry takes one
 * tick. An address has eight digits, or sixteen if needed; a physical address has twelve, as in
 * Fast Models, and then eight bytes of data have a '_' in the middle. */
#ifndef BC_FORMATS_CODEC_TARMAC_PRINT_H
#define BC_FORMATS_CODEC_TARMAC_PRINT_H

#include "formats/trace/printer.h"

/* Returns -ERANGE for a reference of unknown size, or larger than BC_TARMAC_ACCESS_MAX. */
extern const struct bc_printer bc_tarmac_printer;

/* Prints an instruction, reference or register write from its fields, ignoring `line`, with the
 * time `tick` and a newline. `out` has BC_PRINT_MAX bytes. Returns the end of the output, or NULL
 * for a reference that cannot be written. */
char *bc_tarmac_print_fields(char *out, const struct bc_entry *entry, uint64_t tick);

#endif
