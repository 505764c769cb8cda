/* Writing what a capture board sends: bus samples, bare (raw6, formats/bus/sample.h) or in frames
 * (bcp1, formats/bus/bcp1_writer.h).
 *
 * An entry that has its sample is written as that stands. Any other is turned into bus cycles
 * (formats/codec/bus_encode.h), cut at the bus's 8 bytes; what those can't say of attr, or of a
 * special cycle, is counted. An address that ends behind 32 bits is refused, unless map=pages gives
 * the addresses of fetches, reads and writes physical pages (formats/bus/page_map.h); I/O, special
 * cycles and samples that are there already keep their addresses.
 *
 * Times are held by bcp1 alone: the absolute ticks, those of all samples of one entry being the
 * same. A trace without a clock has a tick a sample, the first at tick 1. A frame's processor id
 * is of 8 bits. Epochs, triggers and gaps are held: of a gap whether its number is exact, but no
 * cause other than the board's and that of missing frames, and no duration. What is not is counted,
 * as are marks. */
#ifndef BC_FORMATS_CODEC_BUS_PRINTER_H
#define BC_FORMATS_CODEC_BUS_PRINTER_H

#include "formats/trace/printer.h"

extern const struct bc_printer bc_raw6_printer;
extern const struct bc_printer bc_bcp1_printer;

#endif
