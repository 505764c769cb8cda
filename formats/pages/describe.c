/* Every recorded sample goes through this loop, so it does as little as possible per record.
 *
 * Records are counted in a hash table by page (or port) and request type: linear probing, at most
 * half full. Counting a record takes one multiplication, a look at the slot's key, and an addition
 * to its count. A chunk touches some hundred pages: the slots in use stay in the processor's first
 * cache. What follows from the key alone (the type and
 * the limits of the address) is noted only when a key is new.
 *
 * A full table is added to the counts, which become coarser if they have to; counting then goes on
 * with regions of that size, of which there are fewer. The keys are sorted by radix, in two passes
 * of 11 bits. */
#include "formats/pages/describe.h"

#include <string.h>

#include "formats/base/hash.h"

#define SLOT_BITS 13u
#define SLOTS     (1u << SLOT_BITS)
#define USED_MAX  (SLOTS / 2)

#define RADIX_BITS 11u
#define RADIX      (1u << RADIX_BITS)

/* A key has the request type in its lowest 8 bits, and the page from bit 12 on; or this bit, and
 * the port from bit 12 on. */
#define KEY_PORT 0x100u

/* No key has all bits set. */
#define FREE_SLOT UINT32_MAX

struct used {
	uint32_t place;
	uint32_t slot;
};

struct counter {
	uint8_t reach[256]; /* by size: how far a record of memory goes beyond its address */
	uint32_t page_mask; /* the bits of an address that tell regions apart */
	uint32_t port_mask;
	uint32_t low; /* limits of the addresses, as whole regions */
	uint32_t high;
	bool has_type[256];
	bool has_proc[256];
	uint32_t used;
	uint32_t keys[SLOTS];
	uint32_t counts[SLOTS];
	struct used list[USED_MAX];
	struct used sorted[USED_MAX];
	struct bc_region regions[USED_MAX];
};

static void set_up(struct counter *c)
{
	for (unsigned size = 0; size < 256; size++) {
		/* A burst stays in its aligned block, and so in its page. */
		bool is_burst = bc_burst_start(UINT8_MAX, size) != UINT8_MAX;
		c->reach[size] = is_burst || size == 0 ? 0 : (uint8_t)(size - 1);
	}
	memset(c->has_type, 0, sizeof(c->has_type));
	memset(c->has_proc, 0, sizeof(c->has_proc));
	c->low = UINT32_MAX;
	c->high = 0;
}

/* Starts an empty table with regions as large as those of the counts. */
static void clear_table(struct counter *c, const struct bc_page_counts *pages)
{
	c->page_mask = (uint32_t)(UINT64_MAX << (BC_PAGE_BITS + pages->page_shift));
	c->port_mask = (BC_PORTS - 1) & UINT32_MAX << pages->port_shift;
	for (unsigned i = 0; i < SLOTS; i++)
		c->keys[i] = FREE_SLOT;
	c->used = 0;
}

/* Returns the slot of a key that is not in the slot of its hash, or is new. Returns SLOTS if it is
 * new and the table is full. */
static __attribute__((noinline)) uint32_t find_slot(
	struct counter *c, uint32_t slot, uint32_t key, uint32_t addr)
{
	for (; c->keys[slot] != FREE_SLOT; slot = (slot + 1) % SLOTS)
		if (c->keys[slot] == key)
			return slot;
	if (c->used == USED_MAX)
		return SLOTS;
	uint32_t mask = (key & KEY_PORT) != 0 ? c->port_mask | ~(BC_PORTS - 1) : c->page_mask;
	c->low = (addr & mask) < c->low ? addr & mask : c->low;
	c->high = (addr | ~mask) > c->high ? addr | ~mask : c->high;
	c->has_type[key & UINT8_MAX] = true;
	c->keys[slot] = key;
	c->counts[slot] = 0;
	c->list[c->used++].slot = slot;
	return slot;
}

/* Counts records until the table is full. Returns the first that is not counted. */
static const uint8_t *count_records(
	struct counter *c, struct bc_page_counts *pages, const uint8_t *p, const uint8_t *end)
{
	const uint32_t page_mask = c->page_mask;
	uint32_t crossed = 0; /* bits in which the addresses of the first and last byte differ */
	uint32_t port_size = 0;

	for (; p < end; p += BC_RECORD_BYTES) {
		uint32_t addr = bc_le32(p);
		uint32_t fields = bc_le32(p + 4);
		uint32_t type = fields & UINT8_MAX;
		uint32_t size = fields >> 8 & UINT8_MAX;
		uint32_t key = (addr & page_mask) | type;
		c->has_proc[fields >> 24] = true;
		if (__builtin_expect(bc_is_port_access((uint8_t)type), 0)) {
			key = (addr & c->port_mask) << BC_PAGE_BITS | KEY_PORT | type;
			port_size = size > port_size ? size : port_size;
		} else {
			crossed |= addr ^ (addr + c->reach[size]);
		}
		uint32_t slot = key * 0x9E3779B1u >> (32 - SLOT_BITS);
		if (__builtin_expect(c->keys[slot] != key, 0)) {
			slot = find_slot(c, slot, key, addr);
			if (slot == SLOTS)
				break;
		}
		c->counts[slot]++;
	}
	pages->is_crossed = pages->is_crossed || crossed >= BC_PAGE_BYTES ||
			    port_size > BC_PORT_REACH;
	return p;
}

static void sort_pass(struct used *out, const struct used *in, uint32_t n, unsigned shift)
{
	uint32_t starts[RADIX + 1] = {0};

	for (uint32_t i = 0; i < n; i++)
		starts[(in[i].place >> shift) % RADIX + 1]++;
	for (unsigned i = 0; i < RADIX; i++)
		starts[i + 1] += starts[i];
	for (uint32_t i = 0; i < n; i++)
		out[starts[(in[i].place >> shift) % RADIX]++] = in[i];
}

static void add_table(struct counter *c, struct bc_page_counts *pages)
{
	struct bc_page_counts table = {.page_shift = pages->page_shift,
		.port_shift = pages->port_shift,
		.regions = c->regions};
	struct bc_region *region = NULL;

	for (uint32_t i = 0; i < c->used; i++) {
		uint32_t key = c->keys[c->list[i].slot];
		c->list[i].place = (key >> BC_PAGE_BITS) + ((key & KEY_PORT) != 0 ? BC_PORT_0 : 0);
	}
	sort_pass(c->sorted, c->list, c->used, 0);
	sort_pass(c->list, c->sorted, c->used, RADIX_BITS);
	for (uint32_t i = 0; i < c->used; i++) {
		uint32_t slot = c->list[i].slot;
		if (region == NULL || region->first != c->list[i].place) {
			region = &c->regions[table.count++];
			*region = (struct bc_region){.first = c->list[i].place};
		}
		region->counts[bc_page_class((uint8_t)c->keys[slot])] += c->counts[slot];
	}
	bc_page_counts_add(pages, &table);
}

void bc_chunk_describe(struct bc_chunk *chunk, struct bc_chunk_pages *chunk_pages)
{
	struct bc_chunk_info *info = &chunk->info;
	struct bc_page_counts *pages = &chunk_pages->counts;
	const uint8_t *end = chunk->records + (size_t)info->records * BC_RECORD_BYTES;
	struct counter c;

	set_up(&c);
	*pages = (struct bc_page_counts){
		.capacity = BC_CHUNK_REGIONS, .regions = chunk_pages->regions};
	for (const uint8_t *p = chunk->records; p < end;) {
		if (p != chunk->records) /* Otherwise random pages would fill it again and again. */
			bc_page_counts_limit(pages, USED_MAX / 4);
		clear_table(&c, pages);
		p = count_records(&c, pages, p, end);
		add_table(&c, pages);
	}
	info->addr_low = c.low;
	info->addr_high = c.high;
	memset(info->types, 0, sizeof(info->types));
	memset(info->procs, 0, sizeof(info->procs));
	for (unsigned i = 0; i < 256; i++) {
		info->types[i / 64] |= (uint64_t)c.has_type[i] << i % 64;
		info->procs[i / 64] |= (uint64_t)c.has_proc[i] << i % 64;
	}
	info->records_hash = bc_hash(chunk->records, (size_t)(end - chunk->records));
}
