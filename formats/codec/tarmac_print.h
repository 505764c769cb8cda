/* Entries as lines of Tarmac.
 *
 * What was read from Tarmac is printed as it stood, once for all entries of its line. Anything else
 * is printed from its fields, in the forms of ISPRAS Trace Matcher, with its processor as "cpu0"
 * where it has one:
 *
 *   12 clk MR4 00008034 000029b4                 a reference
 *   12 clk MW4 00008034 xxxxxxxx                 its data is unknown
 *   12 clk IT (7) 00008000 fa000000 A svc_s : BLX {pc}+8
 *   12 clk IT (00008000) fa000000 A svc_s : BLX {pc}+8      an instruction without an index
 *   12 clk R r0 0000ab34
 *
 * Ticks of no named unit are "clk". Where a trace has no time its entries are one tick apart. An
 * address has eight digits, or sixteen where it needs more; a physical one twelve, as Fast Models
 * write them, which also parts data of eight bytes by '_' then. */
#ifndef BC_FORMATS_CODEC_TARMAC_PRINT_H
#define BC_FORMATS_CODEC_TARMAC_PRINT_H

#include "formats/trace/printer.h"

/* A reference whose size is unknown, or above BC_TARMAC_ACCESS_MAX, can't be written. */
extern const struct bc_printer bc_tarmac_printer;

/* Prints an instruction, reference or register write from its fields, whatever its `line` is, as of
 * *tick*, with a newline. `out` has BC_PRINT_MAX bytes. Returns the place behind it, or NULL for a
 * reference that can't be written. */
char *bc_tarmac_print_fields(char *out, const struct bc_entry *entry, uint64_t tick);

#endif
