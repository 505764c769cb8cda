/* The simulated processor bus: the agents' first-level caches, and the bus cycles that they cause.
 *
 * Each agent has a port and reports its actions there: bc_sim_think() for time spent inside the
 * processor; bc_sim_fetch(), bc_sim_read() and bc_sim_write() for cacheable memory; bc_sim_single()
 * for uncacheable accesses; bc_sim_special() and bc_sim_int_ack(). Cache misses are queued at the
 * port as bus cycles. bc_sim_bus_pop() grants the bus to the port with the earliest request and
 * returns its cycle and tick. Use a port only while its queue is empty (bc_sim_port_is_empty()):
 * only then is its clock exact.
 *
 * The caches are like the first Pentiums': 8 KiB of code and 8 KiB of data, 128 sets of two
 * ways, lines of 32 bytes, LRU replacement. Code lines are read-only. Data lines are modified,
 * exclusive or shared. A write miss goes to the bus without allocating a line. A write to a shared
 * line goes to the bus and makes the line exclusive to the writer. A modified line is written back
 * before another agent gets it. The length of a cycle depends on a direct-mapped second-level cache
 * of 512 KiB and on the open rows of the memory.
 *
 * With the first-level caches off, each access is a cycle. Code is fetched 8 bytes at a time, and
 * the processor remembers those that it fetched last, as in its prefetch buffer. */
#ifndef BC_CAPTURE_SIM_SIM_BUS_H
#define BC_CAPTURE_SIM_SIM_BUS_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/bus/sample.h"

#define BC_SIM_AGENTS_MAX 4

/* Random numbers of the simulated bus: a splitmix64 generator, the same on every machine.
 * Never draw twice in one expression: the compiler could then choose which draw comes first. */
struct bc_sim_random {
	uint64_t state;
};

/* Spreads a number over all 64 bits. */
static inline uint64_t bc_sim_mix(uint64_t z)
{
	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

static inline uint64_t bc_sim_random(struct bc_sim_random *random)
{
	random->state += UINT64_C(0x9E3779B97F4A7C15);
	return bc_sim_mix(random->state);
}

/* Returns a number from `low` to `high`, inclusive. high - low must be below 0xFFFFFFFF. */
static inline uint32_t bc_sim_between(struct bc_sim_random *random, uint32_t low, uint32_t high)
{
	uint64_t draw = bc_sim_random(random) >> 32;

	return low + (uint32_t)(draw * (high - low + 1) >> 32);
}

/* Returns true with a chance of 1 in `n`. */
static inline int bc_sim_one_in(struct bc_sim_random *random, uint32_t n)
{
	return bc_sim_between(random, 1, n) == 1;
}

/* A memory access of a program that a simulated processor runs. */
enum bc_sim_access_kind {
	BC_SIM_FETCH,
	BC_SIM_READ,
	BC_SIM_WRITE,
};

struct bc_sim_access {
	enum bc_sim_access_kind kind;
	uint32_t address; /* physical */
	uint32_t bytes;   /* at least 1; does not pass the end of the address space */
};

/* Programs to run instead of the simulated ones. */
struct bc_sim_workload {
	/* Sets the next access of a processor's program, or returns false if the program is over;
	 * it is not called again then. NULL: run the simulated programs. */
	bool (*next_access)(void *context, unsigned agent, struct bc_sim_access *access);
	void *context;
};

/* The processor's own clock runs at this many times the bus clock. */
#define BC_SIM_CORE_PER_TICK 2

/* Physical memory ends at BC_SIM_MEMORY_END. All agents share the data from BC_SIM_SHARED_BEGIN to
 * BC_SIM_SHARED_END, which is kept coherent. */
#define BC_SIM_SHARED_BEGIN 0x00200000u
#define BC_SIM_SHARED_END   0x00400000u
#define BC_SIM_MEMORY_END   0x04000000u

#define BC_SIM_SETS 128
#define BC_SIM_WAYS 2

/* Each entry is a line's address, its state in the low bits; 0: empty. Most recently used first. */
struct bc_sim_cache {
	uint32_t sets[BC_SIM_SETS][BC_SIM_WAYS];
};

struct bc_sim_cycle {
	uint32_t address; /* as on A31..A3: the low three bits are 0 */
	uint32_t wait;    /* ticks from the end of the port's previous cycle to this request */
	uint8_t enables;
	uint8_t control; /* type and agent, as in a sample */
	uint8_t ticks;   /* for which the cycle holds the bus */
	bool locked;     /* no other agent gets the bus until the port's next cycle */
};

/* Enough to write back every line of a cache, plus the cycles that accompany this. */
#define BC_SIM_QUEUE (BC_SIM_SETS * BC_SIM_WAYS + 64)

struct bc_sim_port {
	uint64_t clock;       /* tick at which its last cycle ended */
	uint32_t core_clocks; /* spent inside the processor since the last queued cycle */
	uint32_t head;        /* queue[head .. tail) is pending */
	uint32_t tail;
	uint32_t prefetched; /* uncached: address of the 8 bytes fetched last, plus 1; 0: none */
	struct bc_sim_cache code;
	struct bc_sim_cache data;
	struct bc_sim_cycle queue[BC_SIM_QUEUE];
};

#define BC_SIM_L2_LINES 16384
#define BC_SIM_BANKS    4

struct bc_sim_bus {
	struct bc_sim_random random;
	uint64_t free;    /* tick from which the bus is free */
	uint64_t refresh; /* tick of the next memory refresh, which delays a cycle */
	uint32_t glitch;  /* cycles until the next invalid one */
	uint32_t last_address;
	unsigned agents;
	bool no_caches; /* the first-level caches are off; set it before the first cycle */
	int owner;      /* port of the previous cycle */
	bool is_locked; /* by its owner */
	struct bc_sim_port ports[BC_SIM_AGENTS_MAX];
	uint32_t rows[BC_SIM_BANKS];  /* open row of each memory bank */
	uint16_t l2[BC_SIM_L2_LINES]; /* tags (address bits above the cache size) + 1; 0: empty */
};

/* Starts an idle bus at `tick`, with empty caches and 1 to BC_SIM_AGENTS_MAX agents. */
void bc_sim_bus_init(struct bc_sim_bus *bus, uint64_t seed, unsigned agents, uint64_t tick);

static inline bool bc_sim_port_is_empty(const struct bc_sim_port *port)
{
	return port->head == port->tail;
}

/* Returns the port's current tick; exact while its queue is empty. */
static inline uint64_t bc_sim_port_now(const struct bc_sim_port *port)
{
	return port->clock + port->core_clocks / BC_SIM_CORE_PER_TICK;
}

/* Spends core clocks inside the processor. */
static inline void bc_sim_think(struct bc_sim_port *port, uint32_t core_clocks)
{
	port->core_clocks += core_clocks;
}

/* A code fetch, a data read or a data write in cacheable memory. The `bytes` are in one group of 8
 * that starts at a multiple of 8. The first 32 bytes of memory are never cached. */
void bc_sim_fetch(struct bc_sim_bus *bus, unsigned agent, uint32_t address);
void bc_sim_read(struct bc_sim_bus *bus, unsigned agent, uint32_t address, unsigned bytes);
void bc_sim_write(struct bc_sim_bus *bus, unsigned agent, uint32_t address, unsigned bytes);

/* An uncached cycle: I/O or device memory. It holds the bus for `ticks`. */
void bc_sim_single(struct bc_sim_bus *bus, unsigned agent, enum bc_cycle cycle, uint32_t address,
	unsigned bytes, uint8_t ticks);

/* A locked exchange of four bytes, uncached: a read and a write cycle. */
void bc_sim_exchange(struct bc_sim_bus *bus, unsigned agent, uint32_t address);

/* A special cycle, with `address` on the address lines. */
void bc_sim_special(
	struct bc_sim_bus *bus, unsigned agent, enum bc_special special, uint32_t address);

/* The two locked interrupt acknowledge cycles: byte 4 of address 0, then byte 0, which returns the
 * vector (Intel's Pentium Processor Family Developer's Manual). */
void bc_sim_int_ack(struct bc_sim_bus *bus, unsigned agent);

/* Writes back all modified lines of an agent and empties both its caches. Call it at most once
 * before its queue is popped. */
void bc_sim_write_back_all(struct bc_sim_bus *bus, unsigned agent);

/* Results of bc_sim_bus_pop() other than a port. */
enum {
	BC_SIM_BUS_GLITCH = -1,
	BC_SIM_BUS_IDLE = -2,
};

/* Grants the bus to the port with the earliest request, or on a tie to the lowest number. Sets the
 * cycle and its tick, and returns the port. About once in 20,000 cycles it inserts an invalid cycle
 * and returns BC_SIM_BUS_GLITCH. If no port has a cycle queued, it returns BC_SIM_BUS_IDLE and sets
 * nothing. Ticks increase from call to call. */
int bc_sim_bus_pop(struct bc_sim_bus *bus, struct bc_sim_cycle *cycle, uint64_t *tick);

#endif
