/* The simulated bus as a source: paced like a board, or as fast as the sink takes it. */
#ifndef BC_CAPTURE_SOURCE_SIM_SOURCE_H
#define BC_CAPTURE_SOURCE_SIM_SOURCE_H

#include <uv.h>

#include "capture/sim/sim.h"
#include "capture/source/source.h"
#include "formats/base/must_check.h"

/* Makes the source. `rate` is in samples a second of host time, and then the source is live (a rate
 * that the machine can't make is not reached); 0: as fast as the sink takes them, and it waits.
 * Returns 0, -EINVAL (options), -ENOMEM. */
int bc_sim_source_open(struct bc_source **source, uv_loop_t *loop,
	const struct bc_sim_options *options, uint64_t rate) BC_MUST_CHECK;

#endif
