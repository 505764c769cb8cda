/* ClickHouse RowBinary, write only: a row of 32 bytes per entry, little-endian.
 *
 *   offset  bytes  column
 *   0       4      session  UInt32, from the option session=N (default 0)
 *   4       8      seq      UInt64, number of the row, from 0
 *   12      8      t        UInt64, absolute tick
 *   20      12     the BYU record (formats/bus/record.h): addr UInt32; reqtype, size, attr, proc
 *                  UInt8; time UInt32
 *
 * docs/clickhouse.md has the table definition. `t` restarts with each epoch, as the ticks do.
 * Without a clock, each entry takes one tick, from 1 on (formats/codec/byu_row.h). A value that
 * does not fit BYU is an error. Source: the manual of ClickHouse, RowBinary. */
#ifndef BC_FORMATS_CODEC_ROWBINARY_H
#define BC_FORMATS_CODEC_ROWBINARY_H

#include "formats/trace/printer.h"

#define BC_ROWBINARY_BYTES 32

extern const struct bc_printer bc_rowbinary_printer;

#endif
