/* Printers of what a capture board sends: bus samples, bare (raw6, formats/bus/sample.h) or in
 * frames (bcp1, formats/bus/bcp1_writer.h).
 *
 * An entry that has a bus sample is written as that sample. Any other entry is converted to bus
 * cycles (formats/codec/bus_encode.h), split at 8 bytes. Attributes and special cycles that these
 * cannot express are counted as lost. An address beyond 32 bits is an error, unless map=pages
 * assigns physical pages (formats/bus/page_map.h) to the addresses of fetches, reads and writes.
 * I/O, special cycles and existing samples keep their addresses.
 *
 * Only bcp1 holds times: the absolute ticks. All samples of one entry have the same tick. In a
 * trace without a clock, each sample takes one tick; the first is at tick 1. A frame has an 8-bit
 * processor id. Epochs, triggers and gaps are kept. A gap keeps whether its number is exact, but no
 * duration and no cause other than the board's and missing frames. Whatever is not kept is counted
 * as lost, and so are marks. */
#ifndef BC_FORMATS_CODEC_BUS_PRINTER_H
#define BC_FORMATS_CODEC_BUS_PRINTER_H

#include "formats/trace/printer.h"

extern const struct bc_printer bc_raw6_printer;
extern const struct bc_printer bc_bcp1_printer;

#endif
