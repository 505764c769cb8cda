/* What a simulated processor does all day: it runs its processes and the kernel under them, and
 * takes interrupts.
 *
 * Processes run in turn and call the kernel; a timer ticks 100 times a second; when nothing is to
 * be done the processor halts until the next interrupt. Agent 0 has the interrupt controllers and
 * the devices: it acknowledges interrupts on the bus, speaks to the timer, the disk, the serial
 * line and the network card, and calls the firmware to save power. The others get their ticks from
 * within and leave no such cycles. */
#ifndef BC_CAPTURE_SIM_SIM_AGENT_H
#define BC_CAPTURE_SIM_SIM_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/sim/sim_bus.h"
#include "capture/sim/sim_program.h"
#include "capture/sim/sim_random.h"

#define BC_SIM_PROCESSES 3

struct bc_sim_agent {
	struct bc_sim_random random;
	unsigned number;
	unsigned state;       /* enum state of sim_agent.c */
	unsigned device;      /* enum device: whose interrupt is being handled */
	unsigned current;     /* process */
	uint32_t call_rounds; /* rounds of processes until one calls the kernel */
	uint32_t words_left;  /* of a transfer from the device */
	uint32_t transfer_at; /* offset in the kernel's data where the next goes */
	bool is_idle;         /* no process wants to run, until idle_until */
	uint64_t idle_until;  /* bus tick */
	uint64_t timer_tick;  /* bus tick of the next timer interrupt */
	uint64_t device_tick; /* and of the next device's */
	struct bc_sim_program kernel;
	struct bc_sim_program processes[BC_SIM_PROCESSES];
};

/* Starts a processor up. Agents of one bus have the same seed. */
void bc_sim_agent_init(
	struct bc_sim_agent *agent, uint64_t seed, unsigned number, const struct bc_sim_bus *bus);

/* Runs, with its port's queue empty, until the port has a cycle queued. */
void bc_sim_agent_run(struct bc_sim_agent *agent, struct bc_sim_bus *bus);

#endif
