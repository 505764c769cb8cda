/* A simulated processor: runs processes and a kernel, and handles interrupts.
 *
 * Processes take turns and call the kernel. A timer ticks 100 times per second. When there is
 * nothing to do, the processor halts until the next interrupt. Only agent 0 has interrupt
 * controllers and devices: it acknowledges interrupts on the bus, accesses the timer, disk, serial
 * line and network card, and calls the firmware to save power. Others have internal timers. */
#ifndef BC_CAPTURE_SIM_SIM_AGENT_H
#define BC_CAPTURE_SIM_SIM_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/sim/sim_bus.h"
#include "capture/sim/sim_program.h"

#define BC_SIM_PROCESSES 3

struct bc_sim_agent {
	struct bc_sim_random random;
	unsigned number;
	unsigned state;       /* enum state of sim_agent.c */
	unsigned device;      /* enum device: the one whose interrupt is being handled */
	unsigned current;     /* process */
	uint32_t call_rounds; /* process rounds until the next kernel call */
	uint32_t words_left;  /* of a transfer from the device */
	uint32_t transfer_at; /* offset in the kernel's data for the next word */
	bool is_idle;         /* no process is ready until idle_until */
	uint64_t idle_until;  /* bus tick */
	uint64_t timer_tick;  /* bus tick of the next timer interrupt */
	uint64_t device_tick; /* bus tick of the next device interrupt */
	struct bc_sim_program kernel;
	struct bc_sim_program processes[BC_SIM_PROCESSES];
};

/* Initializes a processor. All agents of a bus use the same seed. */
void bc_sim_agent_init(
	struct bc_sim_agent *agent, uint64_t seed, unsigned number, const struct bc_sim_bus *bus);

/* Runs until the agent's port has a cycle queued. The queue must be empty. */
void bc_sim_agent_run(struct bc_sim_agent *agent, struct bc_sim_bus *bus);

#endif
