/* CSV: a header row, then a row an entry, for spreadsheets, pandas and whatever else reads tables.
 *
 * The columns are those of formats/codec/columns.h. Numbers are decimal; addresses and other
 * patterns of bits are hexadecimal with 0x before them, for bare digits such as 1e5 are taken for
 * numbers by many readers. What is unknown is an empty cell. Text is quoted where it has a comma, a
 * quote or a line's end in it, and otherwise stands byte for byte. Rows end in a newline alone.
 * Source: RFC 4180. */
#ifndef BC_FORMATS_CODEC_CSV_H
#define BC_FORMATS_CODEC_CSV_H

#include "formats/trace/printer.h"

extern const struct bc_printer bc_csv_printer;

#endif
