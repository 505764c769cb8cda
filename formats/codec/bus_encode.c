#include "formats/codec/bus_encode.h"

#include <assert.h>

#define BURST_BYTES 32
#define HALT_BIT    0x10u
#define BE_NONE     0xFF
#define BE_ALL      0x00

/* How the bus expresses a reference type. */
struct cycle_row {
	uint8_t cycle;
	uint8_t attr;  /* attribute that the mapping assigns to the cycle */
	uint8_t burst; /* its burst cycle; 0: none */
	bool is_memory;
};

static struct cycle_row cycle_row_of(unsigned type)
{
	switch (type) {
	case BC_REQ_FETCH:
		return (struct cycle_row){BC_CYCLE_NC_I_FETCH, 0, BC_CYCLE_I_FETCH, true};
	case BC_REQ_MEMREAD:
		return (struct cycle_row){BC_CYCLE_NC_D_READ, 0, BC_CYCLE_D_READ, true};
	case BC_REQ_MEMWRITE:
		return (struct cycle_row){BC_CYCLE_D_WRITE, 1, BC_CYCLE_WRITE_BACK, true};
	case BC_REQ_IOREAD:
		return (struct cycle_row){.cycle = BC_CYCLE_IO_READ};
	case BC_REQ_IOWRITE:
		return (struct cycle_row){.cycle = BC_CYCLE_IO_WRITE};
	case BC_REQ_INTA:
		return (struct cycle_row){.cycle = BC_CYCLE_INT_ACK};
	default:
		return (struct cycle_row){
			.cycle = type >= BC_REQ_INVALID ? type & 15 : BC_CYCLE_SPECIAL};
	}
}

static uint8_t special_enables(unsigned type)
{
	switch (type) {
	case BC_REQ_SHUTDOWN:
		return BC_SPECIAL_SHUTDOWN;
	case BC_REQ_FLUSH:
		return BC_SPECIAL_FLUSH;
	case BC_REQ_HALT:
	case BC_REQ_STOPCLKACK:
		return BC_SPECIAL_HALT;
	case BC_REQ_SYNC:
		return BC_SPECIAL_WRITE_BACK;
	case BC_REQ_FLUSHACK:
		return BC_SPECIAL_FLUSH_ACK;
	case BC_REQ_BRTRACEREC:
		return BC_SPECIAL_BRANCH_TRACE;
	default:
		assert(type == BC_REQ_CNTRLAGNTRES);
		return BE_NONE;
	}
}

/* Address bit 4 distinguishes the two cycles. If the address has to change, that is counted. */
static void set_halt(struct bc_bus_encoder *c, unsigned type)
{
	uint64_t addr = c->addr & ~(uint64_t)HALT_BIT;

	if (type == BC_REQ_STOPCLKACK)
		addr |= HALT_BIT;
	if (addr != c->addr)
		c->lost |= BC_CAN_CYCLE;
	c->addr = addr;
}

bool bc_bus_encoder_start(struct bc_bus_encoder *c, const struct bc_entry *entry)
{
	struct cycle_row row = cycle_row_of(entry->type);
	bool has_attr = (entry->has & BC_HAS_ATTR) != 0;
	bool is_special = row.cycle == BC_CYCLE_SPECIAL;
	bool is_burst = row.burst != 0 && has_attr && entry->size == BURST_BYTES &&
			entry->attr != 0 && entry->attr != row.attr;

	*c = (struct bc_bus_encoder){.addr = entry->addr,
		.be = is_burst ? BE_ALL : BE_NONE,
		.is_split = !is_burst && !is_special && entry->size != 0,
		.is_memory = row.is_memory};
	if (is_burst) {
		row.cycle = row.burst;
		row.attr = 3;
	}
	c->control = (uint8_t)(row.cycle << 4);
	if (is_special) {
		c->be = special_enables(entry->type);
		if (c->be == BC_SPECIAL_HALT)
			set_halt(c, entry->type);
		if (entry->size != 0)
			c->lost |= BC_HAS_SIZE;
	}
	if (has_attr && entry->attr != row.attr)
		c->lost |= BC_HAS_ATTR;
	c->last = c->addr + (c->is_split ? entry->size - 1 : 0);
	return c->last >= c->addr;
}

void bc_bus_encoder_next(struct bc_bus_encoder *c, uint64_t *addr, uint8_t *be)
{
	assert(!c->is_over);
	if (!c->is_split) {
		*addr = c->addr;
		*be = c->be;
		c->is_over = true;
		return;
	}
	uint64_t quad = c->addr & ~UINT64_C(7);
	bool is_last = c->last - quad < 8;
	unsigned first = (unsigned)(c->addr & 7);
	unsigned end = is_last ? (unsigned)(c->last & 7) + 1 : 8;
	*addr = quad;
	*be = (uint8_t) ~((1u << end) - (1u << first));
	c->is_over = is_last;
	c->addr = quad + 8;
}
