/* The simulated bus as a source: paced like a board, or as fast as the sink accepts it. */
#ifndef BC_CAPTURE_SOURCE_SIM_SOURCE_H
#define BC_CAPTURE_SOURCE_SIM_SOURCE_H

#include <uv.h>

#include "capture/sim/sim.h"
#include "capture/source/source.h"
#include "formats/base/must_check.h"

/* Creates the source. `rate` is in samples per second of host time and makes the source live; if
 * the machine is too slow, the actual rate is lower. The clock is one at which the bus has about
 * `rate` samples per second. 0: as fast as the sink accepts them; the source pauses when the sink
 * is full, and the clock is BC_SIM_CLOCK_HZ. Returns 0, -EINVAL (options) or -ENOMEM. */
int bc_sim_source_open(struct bc_source **source, uv_loop_t *loop,
	const struct bc_sim_options *options, uint64_t rate) BC_MUST_CHECK;

#endif
