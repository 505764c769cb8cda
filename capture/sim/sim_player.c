#include "capture/sim/sim_player.h"

#define QUAD_BYTES  8u
#define CORE_CLOCKS 2 /* per instruction */

/* One access of at most 8 bytes, which does not cross a multiple of 8. */
static void access_quad(
	struct bc_sim_bus *bus, unsigned agent, const struct bc_sim_access *access, uint32_t bytes)
{
	switch (access->kind) {
	case BC_SIM_FETCH:
		bc_sim_fetch(bus, agent, access->address);
		break;
	case BC_SIM_READ:
		bc_sim_read(bus, agent, access->address, bytes);
		break;
	case BC_SIM_WRITE:
		bc_sim_write(bus, agent, access->address, bytes);
		break;
	}
}

void bc_sim_player_run(struct bc_sim_player *player, struct bc_sim_bus *bus, unsigned agent,
	const struct bc_sim_workload *workload)
{
	struct bc_sim_port *port = &bus->ports[agent];
	struct bc_sim_access *access = &player->access;

	while (!player->is_over && bc_sim_port_is_empty(port)) {
		if (access->bytes == 0) {
			player->is_over = !workload->next_access(workload->context, agent, access);
			if (!player->is_over && access->kind == BC_SIM_FETCH)
				bc_sim_think(port, CORE_CLOCKS);
			continue;
		}
		uint32_t room = QUAD_BYTES - access->address % QUAD_BYTES;
		uint32_t bytes = access->bytes < room ? access->bytes : room;
		access_quad(bus, agent, access, bytes);
		access->address += bytes;
		access->bytes -= bytes;
	}
}
