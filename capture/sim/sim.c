/* Makes the simulated board's frames: takes cycles from the simulated bus, which runs the agents
 * whose requests are due, and writes them as samples of bcp1 frames, with the losses and flipped
 * bits that the options ask for.
 *
 * Invariant: at most one cycle has been popped and not sent (has_cycle), so a frame may end at any
 * sample; `tick` belongs to the last sample sent, whatever was lost in between. */
#include "capture/sim/sim.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "capture/sim/sim_agent.h"
#include "capture/sim/sim_bus.h"
#include "formats/base/bytes.h"

#define MILLION 1000000u

/* Of a program's access: what a cycle transfers at most, and what an instruction takes. */
#define QUAD_BYTES  8u
#define CORE_CLOCKS 2 /* per instruction */

/* The board has been running for up to about a minute. */
#define FIRST_TICK_MAX 0xFFFFFFFEu

/* Plays a given program: its accesses come from the caller (struct bc_sim_workload). */
struct player {
	struct bc_sim_access access; /* what is left of it; 0 bytes: none */
	bool is_over;
};

struct bc_sim {
	struct bc_sim_options options;
	uint64_t samples; /* sent so far */
	struct bc_sim_random loss;
	struct bc_sim_random corruption;
	uint32_t sequence;
	uint64_t tick;  /* of the last sample sent */
	bool has_cycle; /* `cycle` was popped from the bus and not sent yet */
	bool is_stopped;
	bool is_over;
	struct bc_sim_cycle cycle;
	uint64_t cycle_tick;
	struct bc_sim_bus bus;
	struct bc_sim_agent agents[BC_SIM_AGENTS_MAX];
	struct player players[BC_SIM_AGENTS_MAX];
};

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

/* Runs the program until the agent's port has a cycle queued or the program is over. An instruction
 * takes two core clocks, besides waiting for the bus. */
static void play(struct player *player, struct bc_sim_bus *bus, unsigned agent,
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

/* Runs a processor until it has a cycle queued or its program is over. */
static void sim_run_agent(struct bc_sim *sim, unsigned agent)
{
	if (sim->options.workload.next_access != NULL)
		play(&sim->players[agent], &sim->bus, agent, &sim->options.workload);
	else
		bc_sim_agent_run(&sim->agents[agent], &sim->bus);
}

int bc_sim_open(struct bc_sim **sim, const struct bc_sim_options *options)
{
	*sim = NULL;
	if (options->agents < 1 || options->agents > BC_SIM_AGENTS_MAX ||
		options->loss_ppm > MILLION || options->corrupt_ppm > MILLION)
		return -EINVAL;
	struct bc_sim *s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;

	struct bc_sim_random random = {.state = options->seed};
	s->options = *options;
	s->loss.state = bc_sim_random(&random);
	s->corruption.state = bc_sim_random(&random);
	s->tick = (uint64_t)1 + bc_sim_between(&random, 0, FIRST_TICK_MAX);
	uint64_t bus_seed = bc_sim_random(&random);
	uint64_t agent_seed = bc_sim_random(&random);
	bc_sim_bus_init(&s->bus, bus_seed, options->agents, s->tick);
	s->bus.no_caches = options->no_caches;
	for (unsigned i = 0; i < options->agents; i++) {
		bc_sim_agent_init(&s->agents[i], agent_seed, i, &s->bus);
		sim_run_agent(s, i);
	}
	*sim = s;
	return 0;
}

void bc_sim_close(struct bc_sim *sim)
{
	free(sim);
}

void bc_sim_stop(struct bc_sim *sim)
{
	sim->is_stopped = true;
}

/* Pops the next cycle of the bus, unless one is pending. Returns false if all programs are over. */
static bool sim_fetch_cycle(struct bc_sim *sim)
{
	if (sim->has_cycle)
		return true;
	int port = bc_sim_bus_pop(&sim->bus, &sim->cycle, &sim->cycle_tick);
	if (port == BC_SIM_BUS_IDLE)
		return false;
	if (port >= 0 && bc_sim_port_is_empty(&sim->bus.ports[port]))
		sim_run_agent(sim, (unsigned)port);
	sim->has_cycle = true;
	return true;
}

/* True if all that is to be sent is sent. */
static bool sim_is_over(struct bc_sim *sim)
{
	return sim->is_stopped || !sim_fetch_cycle(sim) ||
	       (sim->options.count != 0 && sim->samples == sim->options.count);
}

uint64_t bc_sim_next_tick(struct bc_sim *sim)
{
	return sim_is_over(sim) ? UINT64_MAX : sim->cycle_tick;
}

/* Fetches the next cycle if its tick is at most `until`. */
static bool sim_fetch_due(struct bc_sim *sim, uint64_t until)
{
	return sim_fetch_cycle(sim) && sim->cycle_tick <= until;
}

/* Skips the samples that are lost before a frame, if any. Returns their number. */
static uint32_t sim_lose_samples(struct bc_sim *sim, uint64_t until)
{
	if (bc_sim_between(&sim->loss, 1, MILLION) > sim->options.loss_ppm || sim->samples == 0)
		return 0;
	uint32_t most = bc_sim_between(&sim->loss, 1, BC_SIM_LOSS_MAX);
	uint32_t lost = 0;
	for (; lost < most && sim_fetch_due(sim, until); lost++)
		sim->has_cycle = false;
	return lost;
}

/* Writes samples until the frame is full or a delta is too long. Returns their number. */
static uint32_t sim_write_samples(
	struct bc_sim *sim, uint32_t samples_max, uint64_t until, uint8_t *out)
{
	uint32_t n = 0;

	for (; n < samples_max; n++, out += BC_BCP1_SAMPLE_BYTES) {
		if (!sim_fetch_due(sim, until))
			break;
		uint64_t delta = n == 0 ? 0 : sim->cycle_tick - sim->tick;
		if (delta > UINT16_MAX)
			break;
		bc_write_be32(out, sim->cycle.address);
		out[4] = sim->cycle.enables;
		out[5] = sim->cycle.control;
		bc_write_le16(out + 6, (uint16_t)delta);
		sim->tick = sim->cycle_tick;
		sim->has_cycle = false;
	}
	return n;
}

/* Flips one bit of a frame, with the configured probability. */
static void sim_corrupt_frame(struct bc_sim *sim, uint8_t *frame, size_t bytes)
{
	if (bc_sim_between(&sim->corruption, 1, MILLION) > sim->options.corrupt_ppm)
		return;
	uint32_t bit = bc_sim_between(&sim->corruption, 0, (uint32_t)bytes * 8 - 1);

	frame[bit / 8] = (uint8_t)(frame[bit / 8] ^ 1u << bit % 8);
}

static uint32_t sim_limit_samples(const struct bc_sim *sim, uint32_t samples_max)
{
	uint64_t left = sim->options.count - sim->samples;

	if (samples_max > BC_SIM_FRAME_SAMPLES)
		samples_max = BC_SIM_FRAME_SAMPLES;
	return sim->options.count != 0 && left < samples_max ? (uint32_t)left : samples_max;
}

size_t bc_sim_next(
	struct bc_sim *sim, uint32_t samples_max, uint64_t until, uint8_t frame[BC_SIM_FRAME_MAX])
{
	if (sim->is_over)
		return 0;

	struct bc_bcp1_header header = {
		.flags = sim->options.agents > 1 ? BC_BCP1_AGENT : 0,
		.sequence = sim->sequence++,
		.tick = sim->tick,
	};
	if (sim_is_over(sim)) {
		header.flags |= BC_BCP1_LAST;
		sim->is_over = true;
	} else if (samples_max != 0) {
		header.lost = sim_lose_samples(sim, until);
		if (header.lost != 0)
			header.flags |= BC_BCP1_LOSS;
		header.tick = sim_fetch_due(sim, until) ? sim->cycle_tick : sim->tick;
		header.samples = sim_write_samples(sim, sim_limit_samples(sim, samples_max), until,
			frame + BC_BCP1_HEADER_BYTES);
	}
	size_t bytes = bc_bcp1_write_frame(frame, &header);
	sim->samples += header.samples;
	sim_corrupt_frame(sim, frame, bytes);
	return bytes;
}
