/* Printers of the BYU address trace in its dialects (formats/bus/dialect.h).
 * formats/codec/byu_row.h defines the time of each record.
 *
 * An address, size, processor or time that does not fit its field is an error. */
#ifndef BC_FORMATS_CODEC_BYU_PRINTER_H
#define BC_FORMATS_CODEC_BYU_PRINTER_H

#include "formats/trace/printer.h"

extern const struct bc_printer bc_byu_printer;
extern const struct bc_printer bc_byu16_printer;
extern const struct bc_printer bc_byu24_printer;
extern const struct bc_printer bc_byu_be_printer;

#endif
