/* CSV: a header row, then one row per entry, for spreadsheets, pandas and similar tools.
 *
 * The columns are those of formats/codec/columns.h. Numbers are decimal. Addresses and other bit
 * patterns are hexadecimal with 0x, because many readers would take bare digits such as 1e5 for a
 * number. An unknown value is an empty cell. Text is quoted only if it contains a comma, a quote or
 * a line end; otherwise it is copied byte for byte. Rows end in a single newline. Source: RFC
 * 4180. */
#ifndef BC_FORMATS_CODEC_CSV_H
#define BC_FORMATS_CODEC_CSV_H

#include "formats/trace/printer.h"

extern const struct bc_printer bc_csv_printer;

#endif
