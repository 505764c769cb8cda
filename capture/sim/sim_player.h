/* A simulated processor that runs a given program: its accesses come from the simulator's caller
 * (struct bc_sim_workload). An instruction takes two core clocks, besides waiting for the bus. */
#ifndef BC_CAPTURE_SIM_SIM_PLAYER_H
#define BC_CAPTURE_SIM_SIM_PLAYER_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/sim/sim_access.h"
#include "capture/sim/sim_bus.h"

struct bc_sim_player {
	struct bc_sim_access access; /* what is left of it; 0 bytes: none */
	bool is_over;
};

/* Runs the program until the agent's port has a cycle queued or the program is over. */
void bc_sim_player_run(struct bc_sim_player *player, struct bc_sim_bus *bus, unsigned agent,
	const struct bc_sim_workload *workload);

#endif
