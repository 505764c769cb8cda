/* Turns the agents' accesses into bus cycles: looks them up in the first-level caches, queues line
 * fills, write-backs and uncached accesses at the agent's port, keeps the caches coherent, and
 * grants the bus in the order of the requests. How long a cycle takes follows from the second-level
 * cache and the open rows of the memory.
 *
 * Invariant: a line is modified or exclusive in at most one cache; ticks increase. */
#include "capture/sim/sim_bus.h"

#include <assert.h>
#include <string.h>

#define LINE_BYTES 32u
#define LINE_MASK  (~(LINE_BYTES - 1))
#define STATE_MASK (LINE_BYTES - 1)

enum state {
	SHARED = 1,
	EXCLUSIVE = 2,
	MODIFIED = 3,
};

/* Lengths of cycles, in ticks. */
#define FILL_L2_TICKS   6  /* 3-1-1-1 */
#define FILL_ROW_TICKS  13 /* 7-2-2-2: row hit */
#define FILL_MISS_TICKS 18 /* 12-2-2-2: row miss */
#define WRITE_L2_TICKS  3
#define WRITE_ROW_TICKS 5
#define READ_L2_TICKS   3
#define READ_ROW_TICKS  7
#define READ_MISS_TICKS 12
#define LOCKED_TICKS    6
#define SPECIAL_TICKS   4
#define INT_ACK_TICKS   24
#define GLITCH_TICKS    2

#define GLITCH_CYCLES 20000

/* The memory refreshes one row every 15.6 us. */
#define REFRESH_EVERY_TICKS 1031
#define REFRESH_TICKS       6

void bc_sim_bus_init(struct bc_sim_bus *bus, uint64_t seed, unsigned agents, uint64_t tick)
{
	assert(agents >= 1 && agents <= BC_SIM_AGENTS_MAX);
	memset(bus, 0, sizeof(*bus));
	bus->random.state = seed;
	bus->glitch = bc_sim_between(&bus->random, 1, 2 * GLITCH_CYCLES);
	bus->free = tick;
	bus->refresh = tick;
	bus->agents = agents;
	for (unsigned i = 0; i < agents; i++)
		bus->ports[i].clock = tick;
}

/* Returns the entry of an address's line, moved to the front of its set; NULL on a miss. */
static uint32_t *cache_find(struct bc_sim_cache *cache, uint32_t address)
{
	uint32_t *ways = cache->sets[address / LINE_BYTES % BC_SIM_SETS];
	uint32_t line = address & LINE_MASK;

	if ((ways[0] & LINE_MASK) == line)
		return &ways[0];
	if ((ways[1] & LINE_MASK) != line)
		return NULL;
	uint32_t found = ways[1];
	ways[1] = ways[0];
	ways[0] = found;
	return &ways[0];
}

/* Inserts a line. Returns the evicted one, or 0. */
static uint32_t cache_insert(struct bc_sim_cache *cache, uint32_t address, enum state state)
{
	uint32_t *ways = cache->sets[address / LINE_BYTES % BC_SIM_SETS];
	uint32_t evicted = 0;

	if (ways[0] != 0) {
		evicted = ways[1];
		ways[1] = ways[0];
	}
	ways[0] = (address & LINE_MASK) | state;
	return evicted;
}

static void queue_cycle(struct bc_sim_bus *bus, unsigned agent, const struct bc_sim_cycle *cycle)
{
	struct bc_sim_port *port = &bus->ports[agent];

	if (bc_sim_port_is_empty(port))
		port->head = port->tail = 0;
	assert(port->tail < BC_SIM_QUEUE);
	struct bc_sim_cycle *queued = &port->queue[port->tail++];
	*queued = *cycle;
	queued->wait = port->core_clocks / BC_SIM_CORE_PER_TICK;
	port->core_clocks %= BC_SIM_CORE_PER_TICK;
}

static uint8_t control_of(enum bc_cycle cycle, unsigned agent)
{
	return (uint8_t)((unsigned)cycle << 4 | agent);
}

/* Byte enables are active low: a zero bit for each byte. */
static uint8_t enables_of(uint32_t address, unsigned bytes)
{
	return (uint8_t) ~(((1u << bytes) - 1) << (address & 7));
}

enum memory {
	IN_L2,
	IN_OPEN_ROW,
	IN_CLOSED_ROW,
};

/* Returns the memory that responds. A fill puts the line into the second-level cache. */
static enum memory access_memory(struct bc_sim_bus *bus, uint32_t address, bool fills)
{
	uint16_t *l2 = &bus->l2[address / LINE_BYTES % BC_SIM_L2_LINES];
	uint16_t tag = (uint16_t)(address / (LINE_BYTES * BC_SIM_L2_LINES) + 1);

	if (*l2 == tag)
		return IN_L2;
	if (fills)
		*l2 = tag;
	uint32_t *row = &bus->rows[address >> 12 & (BC_SIM_BANKS - 1)];
	if (*row == address >> 14)
		return IN_OPEN_ROW;
	*row = address >> 14;
	return IN_CLOSED_ROW;
}

static void queue_burst(struct bc_sim_bus *bus, unsigned owner, unsigned agent, enum bc_cycle cycle,
	uint32_t address, uint8_t enables)
{
	static const uint8_t ticks[] = {
		[IN_L2] = FILL_L2_TICKS,
		[IN_OPEN_ROW] = FILL_ROW_TICKS,
		[IN_CLOSED_ROW] = FILL_MISS_TICKS,
	};

	queue_cycle(bus, owner,
		&(struct bc_sim_cycle){
			.address = address & ~7u,
			.enables = enables,
			.control = control_of(cycle, agent),
			.ticks = ticks[access_memory(bus, address, cycle != BC_CYCLE_WRITE_BACK)],
		});
}

static bool is_coherent(const struct bc_sim_bus *bus, uint32_t address)
{
	return bus->agents > 1 && address >= BC_SIM_SHARED_BEGIN && address < BC_SIM_SHARED_END;
}

/* Snoops the other agents' caches when `agent` accesses a line. A modified line is written back by
 * its owner; that cycle goes into the queue of `agent`, which waits for it. Returns whether another
 * cache keeps the line. */
static bool snoop(struct bc_sim_bus *bus, unsigned agent, uint32_t address, bool is_write)
{
	bool kept = false;

	for (unsigned other = 0; other < bus->agents; other++) {
		if (other == agent)
			continue;
		uint32_t *entry = cache_find(&bus->ports[other].data, address);
		if (entry == NULL)
			continue;
		if ((*entry & STATE_MASK) == MODIFIED)
			queue_burst(bus, agent, other, BC_CYCLE_WRITE_BACK, address & LINE_MASK, 0);
		*entry = is_write ? 0 : (address & LINE_MASK) | SHARED;
		kept = kept || !is_write;
	}
	return kept;
}

/* An empty entry of a cache would match the line at address 0. */
static bool is_cached(const struct bc_sim_bus *bus, uint32_t address)
{
	return !bus->no_caches && address >= LINE_BYTES;
}

static void read_uncached(struct bc_sim_bus *bus, unsigned agent, enum bc_cycle cycle,
	uint32_t address, unsigned bytes)
{
	static const uint8_t ticks[] = {
		[IN_L2] = READ_L2_TICKS,
		[IN_OPEN_ROW] = READ_ROW_TICKS,
		[IN_CLOSED_ROW] = READ_MISS_TICKS,
	};

	bc_sim_single(bus, agent, cycle, address, bytes, ticks[access_memory(bus, address, true)]);
}

static void fetch_uncached(struct bc_sim_bus *bus, unsigned agent, uint32_t address)
{
	struct bc_sim_port *port = &bus->ports[agent];
	uint32_t quad = address & ~7u;

	if (port->prefetched == quad + 1)
		return;
	port->prefetched = quad + 1;
	read_uncached(bus, agent, BC_CYCLE_NC_I_FETCH, quad, 8);
}

void bc_sim_fetch(struct bc_sim_bus *bus, unsigned agent, uint32_t address)
{
	struct bc_sim_cache *cache = &bus->ports[agent].code;

	if (!is_cached(bus, address)) {
		fetch_uncached(bus, agent, address);
		return;
	}
	if (cache_find(cache, address) != NULL)
		return;
	cache_insert(cache, address, SHARED);
	queue_burst(bus, agent, agent, BC_CYCLE_I_FETCH, address, 0);
}

void bc_sim_read(struct bc_sim_bus *bus, unsigned agent, uint32_t address, unsigned bytes)
{
	struct bc_sim_cache *cache = &bus->ports[agent].data;

	if (!is_cached(bus, address)) {
		read_uncached(bus, agent, BC_CYCLE_NC_D_READ, address, bytes);
		return;
	}
	if (cache_find(cache, address) != NULL)
		return;
	enum state state = EXCLUSIVE;
	if (is_coherent(bus, address) && snoop(bus, agent, address, false))
		state = SHARED;
	queue_burst(bus, agent, agent, BC_CYCLE_D_READ, address, enables_of(address, bytes));

	/* The fill comes first; the evicted line waits in the write-back buffer. */
	uint32_t evicted = cache_insert(cache, address, state);
	if ((evicted & STATE_MASK) == MODIFIED)
		queue_burst(bus, agent, agent, BC_CYCLE_WRITE_BACK, evicted & LINE_MASK, 0);
}

/* Returns whether a write hits a line in the cache that no other agent has. */
static bool write_cached(struct bc_sim_bus *bus, unsigned agent, uint32_t address)
{
	uint32_t *entry = cache_find(&bus->ports[agent].data, address);

	if (entry != NULL && (*entry & STATE_MASK) != SHARED) {
		*entry = (address & LINE_MASK) | MODIFIED;
		return true;
	}
	if (is_coherent(bus, address))
		snoop(bus, agent, address, true);
	if (entry != NULL)
		*entry = (address & LINE_MASK) | EXCLUSIVE;
	return false;
}

void bc_sim_write(struct bc_sim_bus *bus, unsigned agent, uint32_t address, unsigned bytes)
{
	if (is_cached(bus, address) && write_cached(bus, agent, address))
		return;
	uint8_t ticks = access_memory(bus, address, false) == IN_L2 ? WRITE_L2_TICKS
								    : WRITE_ROW_TICKS;
	bc_sim_single(bus, agent, BC_CYCLE_D_WRITE, address, bytes, ticks);
}

void bc_sim_single(struct bc_sim_bus *bus, unsigned agent, enum bc_cycle cycle, uint32_t address,
	unsigned bytes, uint8_t ticks)
{
	queue_cycle(bus, agent,
		&(struct bc_sim_cycle){
			.address = address & ~7u,
			.enables = enables_of(address, bytes),
			.control = control_of(cycle, agent),
			.ticks = ticks,
		});
}

/* Locks the bus from the last queued cycle to the next one. */
static void lock_last(struct bc_sim_port *port)
{
	port->queue[port->tail - 1].locked = true;
}

void bc_sim_exchange(struct bc_sim_bus *bus, unsigned agent, uint32_t address)
{
	bc_sim_single(bus, agent, BC_CYCLE_NC_D_READ, address, 4, LOCKED_TICKS);
	lock_last(&bus->ports[agent]);
	bc_sim_single(bus, agent, BC_CYCLE_D_WRITE, address, 4, LOCKED_TICKS);
}

void bc_sim_special(
	struct bc_sim_bus *bus, unsigned agent, enum bc_special special, uint32_t address)
{
	queue_cycle(bus, agent,
		&(struct bc_sim_cycle){
			.address = address,
			.enables = (uint8_t)special,
			.control = control_of(BC_CYCLE_SPECIAL, agent),
			.ticks = SPECIAL_TICKS,
		});
}

void bc_sim_int_ack(struct bc_sim_bus *bus, unsigned agent)
{
	bc_sim_single(bus, agent, BC_CYCLE_INT_ACK, 4, 1, INT_ACK_TICKS);
	lock_last(&bus->ports[agent]);
	bc_sim_single(bus, agent, BC_CYCLE_INT_ACK, 0, 1, INT_ACK_TICKS);
}

void bc_sim_write_back_all(struct bc_sim_bus *bus, unsigned agent)
{
	struct bc_sim_port *port = &bus->ports[agent];

	for (unsigned set = 0; set < BC_SIM_SETS; set++)
		for (unsigned way = 0; way < BC_SIM_WAYS; way++) {
			uint32_t line = port->data.sets[set][way];
			if ((line & STATE_MASK) == MODIFIED)
				queue_burst(bus, agent, agent, BC_CYCLE_WRITE_BACK,
					line & LINE_MASK, 0);
		}
	memset(&port->code, 0, sizeof(port->code));
	memset(&port->data, 0, sizeof(port->data));
}

/* Makes an invalid cycle, as a board reports when it samples at the wrong moment: the previous
 * address with an undefined type. */
static void make_glitch(struct bc_sim_bus *bus, struct bc_sim_cycle *cycle)
{
	static const uint8_t types[] = {0, 2, 4, 6, 10, 11};
	uint32_t type = types[bc_sim_between(&bus->random, 0, sizeof(types) - 1)];
	uint32_t agent = bc_sim_between(&bus->random, 0, bus->agents - 1);

	*cycle = (struct bc_sim_cycle){
		.address = bus->last_address,
		.enables = (uint8_t)bc_sim_between(&bus->random, 0, 255),
		.control = (uint8_t)(type << 4 | agent),
		.ticks = GLITCH_TICKS,
	};
	bus->glitch = bc_sim_between(&bus->random, 1, 2 * GLITCH_CYCLES);
}

static uint64_t request_tick(const struct bc_sim_port *port)
{
	return port->clock + port->queue[port->head].wait;
}

/* Returns BC_SIM_BUS_IDLE if no port has a cycle queued. */
static int earliest_port(const struct bc_sim_bus *bus)
{
	uint64_t earliest = UINT64_MAX;
	int first = BC_SIM_BUS_IDLE;

	for (unsigned i = 0; i < bus->agents; i++) {
		const struct bc_sim_port *port = &bus->ports[i];
		if (!bc_sim_port_is_empty(port) && request_tick(port) < earliest) {
			earliest = request_tick(port);
			first = (int)i;
		}
	}
	return first;
}

int bc_sim_bus_pop(struct bc_sim_bus *bus, struct bc_sim_cycle *cycle, uint64_t *tick)
{
	if (bus->glitch == 0 && !bus->is_locked) {
		make_glitch(bus, cycle);
		*tick = bus->free;
		bus->free += cycle->ticks;
		return BC_SIM_BUS_GLITCH;
	}
	bus->glitch -= bus->glitch != 0;

	if (!bus->is_locked)
		bus->owner = earliest_port(bus);
	if (bus->owner == BC_SIM_BUS_IDLE)
		return BC_SIM_BUS_IDLE;
	struct bc_sim_port *port = &bus->ports[bus->owner];
	uint64_t start = request_tick(port);
	*cycle = port->queue[port->head++];
	if (start < bus->free)
		start = bus->free;
	if (start >= bus->refresh) {
		bus->refresh = start - start % REFRESH_EVERY_TICKS + REFRESH_EVERY_TICKS;
		start += REFRESH_TICKS;
	}
	bus->free = start + cycle->ticks;
	port->clock = bus->free;
	bus->is_locked = cycle->locked;
	bus->last_address = cycle->address;
	*tick = start;
	return bus->owner;
}
