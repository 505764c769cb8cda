/* Writing the BYU address trace in its dialects (formats/bus/dialect.h). formats/codec/byu_row.h
 * says what each record's time is.
 *
 * An address, a size, a processor or a time that the record has no bits for is refused. */
#ifndef BC_FORMATS_CODEC_BYU_PRINTER_H
#define BC_FORMATS_CODEC_BYU_PRINTER_H

#include "formats/trace/printer.h"

extern const struct bc_printer bc_byu_printer;
extern const struct bc_printer bc_byu16_printer;
extern const struct bc_printer bc_byu24_printer;
extern const struct bc_printer bc_byu_be_printer;

#endif
