/* Every recorded sample goes through this loop, so it does as little as possible per record.
 *
 * Records are counted in a hash table by page (or port) and request type: linear probing, at most
 * half full. With AVX2, the keys and slots of eight records are computed at once; then each needs
 * only a comparison with its slot's key and an addition to its count. Accesses to ports, and
 * records that may reach into the next page, are rare and take a path of their own. A chunk touches
 * some hundred pages: the slots in use stay in the processor's first cache. What follows from the
 * key alone (the type and, except at a port, the limits of the address) is recorded only when a key
 * is new.
 *
 * A full table is added to the counts, which become coarser if necessary; counting then continues
 * with regions of that size, of which there are fewer. The keys are sorted by radix, in two passes
 * of 11 bits. */
#include "formats/bus/describe.h"

#include <string.h>
#if defined(__x86_64__) && defined(__GNUC__) && !defined(BC_NO_SIMD)
#define HAS_AVX2 __builtin_cpu_supports("avx2")
#include <immintrin.h>
#else
#define HAS_AVX2 false
#endif

#include "formats/base/hash.h"

#define SLOT_BITS 13u
#define SLOTS     (1u << SLOT_BITS)
#define USED_MAX  (SLOTS / 2)

_Static_assert(BC_CHUNK_REGIONS >= USED_MAX, "the counts have room for a table");

/* Records counted in one step. */
#define TOGETHER 8u

/* Counts in a slot. Records next to each other use different ones: an addition would wait for the
 * one before it if that was to the same count. */
#define LANES 3u

/* Another core has written the records, so they come from memory shared by the cores. Asking for
 * those this many bytes ahead halves the time. */
#define AHEAD 2048

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

/* A slot is never in two cache lines. */
struct slot {
	_Alignas(16) uint32_t key;
	uint32_t counts[LANES];
};

struct counter {
	uint8_t reach[256]; /* by size: how far a record of memory goes beyond its address */
	uint32_t page_mask; /* the bits of an address that tell regions apart */
	uint32_t port_mask;
	bool is_crossed;
	uint32_t low; /* limits of the addresses, as whole regions */
	uint32_t high;
	bool has_type[256];
	bool has_proc[256];
	uint32_t used;
	struct slot slots[SLOTS];
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
	c->is_crossed = false;
	c->low = UINT32_MAX;
	c->high = 0;
}

/* Starts an empty table with regions of the same size as in the counts. */
static void clear_table(struct counter *c, const struct bc_page_counts *pages)
{
	c->page_mask = (uint32_t)(UINT64_MAX << (BC_PAGE_BITS + pages->page_shift));
	c->port_mask = (BC_PORTS - 1) & UINT32_MAX << pages->port_shift;
	for (unsigned i = 0; i < SLOTS; i++)
		c->slots[i].key = FREE_SLOT;
	c->used = 0;
}

/* Notes an address, whose region `mask` tells. */
static inline void note_limits(struct counter *c, uint32_t addr, uint32_t mask)
{
	c->low = (addr & mask) < c->low ? addr & mask : c->low;
	c->high = (addr | ~mask) > c->high ? addr | ~mask : c->high;
}

/* Returns the slot of a key that is not in the slot of its hash, or is new. */
static __attribute__((noinline)) struct slot *find_slot(
	struct counter *c, struct slot *slot, uint32_t key, uint32_t addr)
{
	for (; slot->key != FREE_SLOT; slot = &c->slots[(slot - c->slots + 1) % SLOTS])
		if (slot->key == key)
			return slot;
	if ((key & KEY_PORT) == 0)
		note_limits(c, addr, c->page_mask);
	c->has_type[key & UINT8_MAX] = true;
	*slot = (struct slot){.key = key};
	c->list[c->used++].slot = (uint32_t)(slot - c->slots);
	return slot;
}

/* The hash multiplies both halves of the key, which is one instruction for four keys. */
#define LOW_FACTOR  21023
#define HIGH_FACTOR 27229
#define HASH_SHIFT  8
#define OFFSET_MASK ((SLOTS - 1) * (uint32_t)sizeof(struct slot))

/* Returns the offset of a key's slot in bytes, which saves a multiplication. */
static uint32_t hash_key(uint32_t key)
{
	int32_t hash = (int16_t)key * LOW_FACTOR + (int16_t)(key >> 16) * HIGH_FACTOR;

	return (uint32_t)hash >> HASH_SHIFT & OFFSET_MASK;
}

/* Counts a record by its key. */
static inline void count_key(
	struct counter *c, uint32_t key, uint32_t offset, unsigned lane, const uint8_t *p)
{
	struct slot *slot = (struct slot *)(void *)((uint8_t *)c->slots + offset);

	c->has_proc[p[7]] = true;
	if (__builtin_expect(slot->key != key, 0))
		slot = find_slot(c, slot, key, bc_le32(p));
	slot->counts[lane]++;
}

/* Counts any record. */
static void count_record(struct counter *c, const uint8_t *p)
{
	uint32_t addr = bc_le32(p);
	uint8_t type = p[4];
	uint8_t size = p[5];
	uint32_t key = (addr & c->page_mask) | type;

	if (bc_is_port_access(type)) {
		key = (addr & c->port_mask) << BC_PAGE_BITS | KEY_PORT | type;
		/* The key lacks the upper half of the address. */
		note_limits(c, addr, c->port_mask | ~(BC_PORTS - 1));
		c->is_crossed = c->is_crossed || size > BC_PORT_REACH;
	} else if ((addr ^ (addr + c->reach[size])) >= BC_PAGE_BYTES) {
		c->is_crossed = true;
	}
	count_key(c, key, hash_key(key), 0, p);
}

/* Counts records until the table is full. Returns the first that is not counted. */
static const uint8_t *count_records(struct counter *c, const uint8_t *p, const uint8_t *end)
{
	for (; p < end && c->used < USED_MAX; p += BC_RECORD_BYTES)
		count_record(c, p);
	return p;
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(BC_NO_SIMD)
#define AVX2 __attribute__((target("avx2")))

/* Loads 16 bytes at p, and 16 at the same place of four records later. */
static inline AVX2 __m256 load_words(const uint8_t *p)
{
	__m256i low = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)p));
	__m128i high = _mm_loadu_si128((const __m128i *)(p + (size_t)4 * BC_RECORD_BYTES));

	return _mm256_castsi256_ps(_mm256_inserti128_si256(low, high, 1));
}

/* Counts eight records. Returns false, with none counted, if one of them is at a port or may reach
 * into the next page. */
static inline AVX2 bool count_together(struct counter *c, const uint8_t *p)
{
	/* The records have three words each, of which the first two, A and B, are needed. In each
	 * half: A0 B0 C0 A1 - B1 C1 A2 B2 - C2 A3 B3 C3. */
	__builtin_prefetch(p + AHEAD);
	__builtin_prefetch(p + AHEAD + 64);
	__m256 first = load_words(p);
	__m256 second = load_words(p + 16);
	__m256 third = load_words(p + 32);
	__m256 a23 = _mm256_shuffle_ps(second, third, _MM_SHUFFLE(1, 1, 2, 2));
	__m256 b01 = _mm256_shuffle_ps(first, second, _MM_SHUFFLE(0, 0, 1, 1));
	__m256 b23 = _mm256_shuffle_ps(second, third, _MM_SHUFFLE(2, 2, 3, 3));
	__m256i addrs = _mm256_castps_si256(_mm256_shuffle_ps(first, a23, _MM_SHUFFLE(2, 0, 3, 0)));
	__m256i fields = _mm256_castps_si256(_mm256_shuffle_ps(b01, b23, _MM_SHUFFLE(2, 0, 2, 0)));

	__m256i types = _mm256_and_si256(fields, _mm256_set1_epi32(UINT8_MAX));
	__m256i sizes = _mm256_srli_epi32(_mm256_slli_epi32(fields, 16), 24);
	__m256i ends = _mm256_add_epi32(
		_mm256_and_si256(addrs, _mm256_set1_epi32(BC_PAGE_BYTES - 1)), sizes);
	__m256i is_far = _mm256_cmpgt_epi32(ends, _mm256_set1_epi32(BC_PAGE_BYTES));
	__m256i is_port = _mm256_cmpeq_epi32(_mm256_and_si256(fields, _mm256_set1_epi32(0xFE)),
		_mm256_set1_epi32(BC_REQ_IOREAD));
	if (_mm256_movemask_epi8(_mm256_or_si256(is_far, is_port)) != 0)
		return false;

	uint32_t keys[TOGETHER];
	uint32_t offsets[TOGETHER];
	__m256i page_mask = _mm256_set1_epi32((int)c->page_mask);
	__m256i key = _mm256_or_si256(_mm256_and_si256(addrs, page_mask), types);
	__m256i hash = _mm256_madd_epi16(key, _mm256_set1_epi32(HIGH_FACTOR << 16 | LOW_FACTOR));
	__m256i offset = _mm256_and_si256(
		_mm256_srli_epi32(hash, HASH_SHIFT), _mm256_set1_epi32((int)OFFSET_MASK));
	_mm256_storeu_si256((__m256i *)keys, key);
	_mm256_storeu_si256((__m256i *)offsets, offset);
	count_key(c, keys[0], offsets[0], 0, p);
	count_key(c, keys[1], offsets[1], 1, p + BC_RECORD_BYTES);
	count_key(c, keys[2], offsets[2], 2, p + BC_RECORD_BYTES * 2);
	count_key(c, keys[3], offsets[3], 0, p + BC_RECORD_BYTES * 3);
	count_key(c, keys[4], offsets[4], 1, p + BC_RECORD_BYTES * 4);
	count_key(c, keys[5], offsets[5], 2, p + BC_RECORD_BYTES * 5);
	count_key(c, keys[6], offsets[6], 0, p + BC_RECORD_BYTES * 6);
	count_key(c, keys[7], offsets[7], 1, p + BC_RECORD_BYTES * 7);
	return true;
}

/* The same as count_records(), for processors with AVX2. */
static AVX2 const uint8_t *count_records_avx2(
	struct counter *c, const uint8_t *p, const uint8_t *end)
{
	const size_t step = (size_t)TOGETHER * BC_RECORD_BYTES;

	while ((size_t)(end - p) >= step && c->used <= USED_MAX - TOGETHER) {
		if (!count_together(c, p))
			count_records(c, p, p + step);
		p += step;
	}
	return (size_t)(end - p) < step ? count_records(c, p, end) : p;
}
#else
#define count_records_avx2 count_records
#endif

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
	struct bc_page_counts *to = pages->count == 0 ? pages : &table;
	struct bc_region *region = NULL;

	for (uint32_t i = 0; i < c->used; i++) {
		uint32_t key = c->slots[c->list[i].slot].key;
		c->list[i].place = (key >> BC_PAGE_BITS) + ((key & KEY_PORT) != 0 ? BC_PORT_0 : 0);
	}
	sort_pass(c->sorted, c->list, c->used, 0);
	sort_pass(c->list, c->sorted, c->used, RADIX_BITS);
	for (uint32_t i = 0; i < c->used; i++) {
		uint32_t slot = c->list[i].slot;
		if (region == NULL || region->first != c->list[i].place) {
			region = &to->regions[to->count++];
			*region = (struct bc_region){.first = c->list[i].place};
		}
		uint64_t *count = &region->counts[bc_page_class((uint8_t)c->slots[slot].key)];
		for (unsigned lane = 0; lane < LANES; lane++)
			*count += c->slots[slot].counts[lane];
	}
	if (to != pages)
		bc_page_counts_add(pages, to);
}

void bc_chunk_count(struct bc_chunk *chunk, struct bc_chunk_pages *chunk_pages)
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
		p = HAS_AVX2 ? count_records_avx2(&c, p, end) : count_records(&c, p, end);
		add_table(&c, pages);
	}
	pages->is_crossed = c.is_crossed;
	info->addr_low = c.low;
	info->addr_high = c.high;
	memset(info->types, 0, sizeof(info->types));
	memset(info->procs, 0, sizeof(info->procs));
	for (unsigned i = 0; i < 256; i++) {
		info->types[i / 64] |= (uint64_t)c.has_type[i] << i % 64;
		info->procs[i / 64] |= (uint64_t)c.has_proc[i] << i % 64;
	}
}

void bc_chunk_describe(struct bc_chunk *chunk, struct bc_chunk_pages *chunk_pages)
{
	bc_chunk_count(chunk, chunk_pages);
	chunk->info.records_hash = bc_hash(
		chunk->records, (size_t)chunk->info.records * BC_RECORD_BYTES);
}
