/* The simulated processor bus: the agents' first-level caches, and the bus cycles that they leave.
 *
 * An agent tells its port what it does: bc_sim_think() for time spent inside the processor,
 * bc_sim_fetch(), bc_sim_read() and bc_sim_write() for cacheable memory, bc_sim_single() for what
 * no cache may hold, bc_sim_special() and bc_sim_int_ack(). What the caches can't answer is queued
 * at the port as bus cycles. bc_sim_bus_pop() grants the bus to the port that asked first, and
 * gives that cycle with its tick. A port is fed only while its queue is empty
 * (bc_sim_port_is_empty()): its clock is then exact.
 *
 * The caches are those of the first Pentiums: 8 KiB of code and 8 KiB of data, two ways of 128
 * lines of 32 bytes, the least recently used of the two replaced. Code lines are read only. Data
 * lines are modified, exclusive or shared; a write that misses goes to the bus and brings no line
 * in; a write to a shared line goes to the bus and makes the line the writer's alone. A line that
 * another agent needs and that is modified is written back first. A cycle's length follows from a
 * direct-mapped second-level cache of 512 KiB and the open rows of the memory behind it. */
#ifndef BC_CAPTURE_SIM_SIM_BUS_H
#define BC_CAPTURE_SIM_SIM_BUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/sim/sim_random.h"
#include "formats/bus/sample.h"

#define BC_SIM_AGENTS_MAX 4

/* The processor's own clock runs at this many times the bus clock. */
#define BC_SIM_CORE_PER_TICK 2

/* Physical memory below this many bytes is there; data between the two marks is seen by all agents
 * and kept coherent. */
#define BC_SIM_SHARED_BEGIN 0x00200000u
#define BC_SIM_SHARED_END   0x00400000u
#define BC_SIM_MEMORY_END   0x04000000u

#define BC_SIM_SETS 128
#define BC_SIM_WAYS 2

/* A line's address with its state in the low bits; 0: an empty place. The way used last is first.
 */
struct bc_sim_cache {
	uint32_t sets[BC_SIM_SETS][BC_SIM_WAYS];
};

struct bc_sim_cycle {
	uint32_t address; /* as on A31..A3: the low three bits are 0 */
	uint32_t wait;    /* ticks from the end of the port's cycle before to this request */
	uint8_t enables;
	uint8_t control; /* type and agent, as in a sample */
	uint8_t ticks;   /* that the cycle holds the bus */
	bool locked;     /* no other agent gets the bus before the port's next cycle */
};

/* Room for a write-back of every line of a cache, and what goes with it. */
#define BC_SIM_QUEUE (BC_SIM_SETS * BC_SIM_WAYS + 64)

struct bc_sim_port {
	uint64_t clock;       /* tick at which its last cycle ended */
	uint32_t core_clocks; /* spent inside the processor since the last cycle queued */
	uint32_t head;        /* queue[head .. tail) waits */
	uint32_t tail;
	struct bc_sim_cache code;
	struct bc_sim_cache data;
	struct bc_sim_cycle queue[BC_SIM_QUEUE];
};

#define BC_SIM_L2_LINES 16384
#define BC_SIM_BANKS    4

struct bc_sim_bus {
	struct bc_sim_random random;
	uint64_t free;    /* tick from which the bus is free */
	uint64_t refresh; /* tick of the next refresh of the memory, which delays a cycle */
	uint32_t glitch;  /* cycles until the next invalid one */
	uint32_t last_address;
	unsigned agents;
	int owner;      /* port of the cycle before */
	bool is_locked; /* to its owner */
	struct bc_sim_port ports[BC_SIM_AGENTS_MAX];
	uint32_t rows[BC_SIM_BANKS]; /* open in each bank of memory */
	uint8_t l2[BC_SIM_L2_LINES]; /* address bits above its size, + 1; 0: empty */
};

/* Makes an idle bus with empty caches, of 1 to BC_SIM_AGENTS_MAX agents, that begins at `tick`. */
void bc_sim_bus_init(struct bc_sim_bus *bus, uint64_t seed, unsigned agents, uint64_t tick);

static inline bool bc_sim_port_is_empty(const struct bc_sim_port *port)
{
	return port->head == port->tail;
}

/* Where a port's own time stands; exact while its queue is empty. */
static inline uint64_t bc_sim_port_now(const struct bc_sim_port *port)
{
	return port->clock + port->core_clocks / BC_SIM_CORE_PER_TICK;
}

/* Lets core clocks pass inside the processor. */
static inline void bc_sim_think(struct bc_sim_port *port, uint32_t core_clocks)
{
	port->core_clocks += core_clocks;
}

/* A code fetch, a data read or a data write at an address of cacheable memory other than its first
 * 32 bytes. `bytes` is 1, 2, 4 or 8 and the address a multiple of it. */
void bc_sim_fetch(struct bc_sim_bus *bus, unsigned agent, uint32_t address);
void bc_sim_read(struct bc_sim_bus *bus, unsigned agent, uint32_t address, unsigned bytes);
void bc_sim_write(struct bc_sim_bus *bus, unsigned agent, uint32_t address, unsigned bytes);

/* A cycle past the caches: I/O or device memory. It holds the bus for `ticks`. */
void bc_sim_single(struct bc_sim_bus *bus, unsigned agent, enum bc_cycle cycle, uint32_t address,
	unsigned bytes, uint8_t ticks);

/* A locked exchange of four bytes that no cache may hold: a read and a write of the bus. */
void bc_sim_exchange(struct bc_sim_bus *bus, unsigned agent, uint32_t address);

/* A special cycle; `address` is what stands on the bus meanwhile. */
void bc_sim_special(
	struct bc_sim_bus *bus, unsigned agent, enum bc_special special, uint32_t address);

/* The two interrupt acknowledge cycles, locked together: byte 4 of address 0, then byte 0, which
 * brings the vector (Intel's Pentium Processor Family Developer's Manual). */
void bc_sim_int_ack(struct bc_sim_bus *bus, unsigned agent);

/* Writes back all modified lines of an agent and empties both its caches. At most once while its
 * queue fills. */
void bc_sim_write_back_all(struct bc_sim_bus *bus, unsigned agent);

/* Grants the bus to the port that asks first, the lowest number on a tie; every port must have a
 * cycle queued. Gives the cycle and its tick, and returns its port. Once in some 20,000 cycles it
 * gives an invalid cycle in between, and returns -1. Ticks rise from call to call. */
int bc_sim_bus_pop(struct bc_sim_bus *bus, struct bc_sim_cycle *cycle, uint64_t *tick);

#endif
