/* Value change dump: references over time, for GTKWave, PulseView and other waveform viewers.
 *
 * The variables are the counter `seq` (from 0, one more with each reference), `addr`, `type`, its
 * `name`, `size`, `attr` and `proc`. Only changes are written, and an unknown value is x. Time is
 * the absolute time of the trace: in picoseconds, rounded down, if the clock rate is known
 * (clock_hz); otherwise a tick is shown as 1 ns. In a trace without times, each reference is one
 * tick after the previous one.
 *
 * Time cannot go back in a dump. If the trace's time does, or its clock restarts, later entries are
 * moved to after the last one written, and counted as a loss of time. If several references have
 * the same time, a viewer shows the last one. The others are counted as lost, but `seq` includes
 * them.
 *
 * Source: IEEE Std 1364, value change dump; the type `string` is GTKWave's. */
#ifndef BC_FORMATS_CODEC_VCD_H
#define BC_FORMATS_CODEC_VCD_H

#include "formats/trace/printer.h"

extern const struct bc_printer bc_vcd_printer;

#endif
