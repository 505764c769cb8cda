#include "capture/sim/sim_player.h"

#define LINE_BYTES  32u
#define QUAD_BYTES  8u
#define CORE_CLOCKS 2 /* per instruction */

static void fetch(
	struct bc_sim_player *player, struct bc_sim_bus *bus, unsigned agent, uint32_t address)
{
	uint32_t quad = address & ~(QUAD_BYTES - 1);

	if (player->has_prefetched && player->prefetched == quad)
		return;
	player->has_prefetched = true;
	player->prefetched = quad;
	bc_sim_fetch_single(bus, agent, quad);
}

/* One access of at most 8 bytes, which does not cross a multiple of 8. */
static void access_quad(struct bc_sim_player *player, struct bc_sim_bus *bus, unsigned agent,
	const struct bc_sim_access *access, bool is_cached)
{
	switch (access->kind) {
	case BC_SIM_FETCH:
		if (is_cached)
			bc_sim_fetch(bus, agent, access->address);
		else
			fetch(player, bus, agent, access->address);
		break;
	case BC_SIM_READ:
		if (is_cached)
			bc_sim_read(bus, agent, access->address, access->bytes);
		else
			bc_sim_read_single(bus, agent, access->address, access->bytes);
		break;
	case BC_SIM_WRITE:
		if (is_cached)
			bc_sim_write(bus, agent, access->address, access->bytes);
		else
			bc_sim_write_single(bus, agent, access->address, access->bytes);
		break;
	}
}

void bc_sim_player_run(struct bc_sim_player *player, struct bc_sim_bus *bus, unsigned agent,
	const struct bc_sim_runs *runs)
{
	struct bc_sim_port *port = &bus->ports[agent];
	struct bc_sim_access *access = &player->access;

	while (!player->is_over && bc_sim_port_is_empty(port)) {
		if (access->bytes == 0) {
			player->is_over = !runs->next_access(runs->context, agent, access);
			if (!player->is_over && access->kind == BC_SIM_FETCH)
				bc_sim_think(port, CORE_CLOCKS);
			continue;
		}
		struct bc_sim_access quad = *access;
		uint32_t room = QUAD_BYTES - access->address % QUAD_BYTES;
		if (quad.bytes > room)
			quad.bytes = room;
		/* The cache model keeps no line at address 0. */
		access_quad(
			player, bus, agent, &quad, !runs->no_caches && quad.address >= LINE_BYTES);
		access->address += quad.bytes;
		access->bytes -= quad.bytes;
	}
}
