/* Value change dump: references over time, for GTKWave, PulseView and other viewers of signals.
 *
 * The variables are the counter `seq` (from 0, one up with each reference), `addr`, `type`, its
 * `name`, `size`, `attr` and `proc`; only what changes is written, and what is unknown is x. Time
 * is the trace's absolute time: picoseconds if the clock was told (clock_hz), rounded down; else 1
 * tick is 1 ns. What has no time stands a tick behind what is before it.
 *
 * Time never goes back in a dump: where a trace's does, or its clock starts over, what follows is
 * moved behind what is there, and that is counted as a loss of time. Of several references at one
 * time a viewer shows the last; the others are counted as lost, and `seq` counts them, too.
 *
 * Source: IEEE Std 1364, value change dump; the type `string` is GTKWave's. */
#ifndef BC_FORMATS_CODEC_VCD_H
#define BC_FORMATS_CODEC_VCD_H

#include "formats/trace/printer.h"

extern const struct bc_printer bc_vcd_printer;

#endif
