/* Every recorded sample goes through this loop, so it does as little as possible per record.
 *
 * Records are counted in a hash table by page (or port) and request type: linear probing, at most
 * half full. The keys and slots of a batch are found first, with AVX2 eight at once; then each
 * record needs only a comparison with its slot's key and an addition to its count. A chunk touches
 * some hundred pages: the slots in use stay in the processor's first cache. What follows from the
 * key (the type and, except at a port, the address's limits) is recorded when a key is new.
 *
 * A full table is added to the counts, which become coarser if necessary; counting then continues
 * with regions of that size, of which there are fewer. The keys are sorted by radix, twice. */
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

/* Records whose keys AVX2 finds at once. */
#define TOGETHER 8u

/* Records whose keys are found before they are counted: whole groups for AVX2, and for lanes. */
#define BATCH 192u

/* Counts in a slot. Records next to each other use different ones: an addition would wait for the
 * one before it if that was to the same count. Each gets at most 3 of 8 records of a chunk. */
#define LANES 6u

_Static_assert(BATCH % TOGETHER == 0 && BATCH % LANES == 0, "a batch has whole groups");

/* Another core has written the records, so they come from memory shared by the cores. Asking for
 * those this many bytes ahead halves the time. */
#define AHEAD 2048

#define RADIX_BITS 11u
#define RADIX      (1u << RADIX_BITS)

/* A key: the request type in the low 8 bits; from bit 12, the page or, with this bit, the port. */
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
	uint16_t counts[LANES];
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
	uint32_t keys[BATCH];    /* of a batch of records, */
	uint32_t offsets[BATCH]; /* and where their slots are, in bytes */
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
	struct counter *c, struct slot *slot, uint32_t key)
{
	for (; slot->key != FREE_SLOT; slot = &c->slots[(slot - c->slots + 1) % SLOTS])
		if (slot->key == key)
			return slot;
	if ((key & KEY_PORT) == 0)
		note_limits(c, key, c->page_mask);
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

/* Finds the keys of n records, the first of which has number `first` in the batch, and notes what
 * does not follow from a key. */
static void find_keys(struct counter *c, const uint8_t *p, uint32_t first, uint32_t n)
{
	for (uint32_t i = first; i < first + n; i++, p += BC_RECORD_BYTES) {
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
		c->has_proc[p[7]] = true;
		c->keys[i] = key;
		c->offsets[i] = hash_key(key);
	}
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

/* The same as find_keys() for the n records of a batch. */
static AVX2 void find_keys_avx2(struct counter *c, const uint8_t *p, uint32_t n)
{
	const __m256i page_mask = _mm256_set1_epi32((int)c->page_mask);
	__m256i is_crossed = _mm256_setzero_si256();
	__m256i proc = _mm256_set1_epi32(-1);
	uint32_t i = 0;

	for (; i + TOGETHER <= n; i += TOGETHER, p += (size_t)TOGETHER * BC_RECORD_BYTES) {
		/* The records have three words each, of which the first two, A and B, are needed.
		 * In each half: A0 B0 C0 A1 - B1 C1 A2 B2 - C2 A3 B3 C3. */
		__builtin_prefetch(p + AHEAD);
		__builtin_prefetch(p + AHEAD + 64);
		__m256 one = load_words(p);
		__m256 two = load_words(p + 16);
		__m256 three = load_words(p + 32);
		__m256 a23 = _mm256_shuffle_ps(two, three, _MM_SHUFFLE(1, 1, 2, 2));
		__m256 b01 = _mm256_shuffle_ps(one, two, _MM_SHUFFLE(0, 0, 1, 1));
		__m256 b23 = _mm256_shuffle_ps(two, three, _MM_SHUFFLE(2, 2, 3, 3));
		__m256i addrs = _mm256_castps_si256(
			_mm256_shuffle_ps(one, a23, _MM_SHUFFLE(2, 0, 3, 0)));
		__m256i fields = _mm256_castps_si256(
			_mm256_shuffle_ps(b01, b23, _MM_SHUFFLE(2, 0, 2, 0)));

		__m256i is_port = _mm256_cmpeq_epi32(
			_mm256_and_si256(fields, _mm256_set1_epi32(0xFE)),
			_mm256_set1_epi32(BC_REQ_IOREAD));
		if (_mm256_movemask_epi8(is_port) != 0) {
			find_keys(c, p, i, TOGETHER);
			continue;
		}
		__m256i is_same = _mm256_cmpeq_epi32(_mm256_srli_epi32(fields, 24), proc);
		if (_mm256_movemask_epi8(is_same) != -1) {
			for (unsigned r = 0; r < TOGETHER; r++)
				c->has_proc[p[r * BC_RECORD_BYTES + 7]] = true;
			proc = _mm256_set1_epi32(p[7]);
		}
		/* Only sizes of 16 and 32, bursts, stay in their page always. */
		__m256i sizes = _mm256_srli_epi32(_mm256_slli_epi32(fields, 16), 24);
		__m256i ends = _mm256_add_epi32(
			_mm256_and_si256(addrs, _mm256_set1_epi32(BC_PAGE_BYTES - 1)), sizes);
		__m256i is_burst = _mm256_or_si256(_mm256_cmpeq_epi32(sizes, _mm256_set1_epi32(16)),
			_mm256_cmpeq_epi32(sizes, _mm256_set1_epi32(32)));
		is_crossed = _mm256_or_si256(is_crossed,
			_mm256_andnot_si256(is_burst,
				_mm256_cmpgt_epi32(ends, _mm256_set1_epi32(BC_PAGE_BYTES))));

		__m256i keys = _mm256_or_si256(_mm256_and_si256(addrs, page_mask),
			_mm256_and_si256(fields, _mm256_set1_epi32(UINT8_MAX)));
		__m256i hashes = _mm256_madd_epi16(
			keys, _mm256_set1_epi32(HIGH_FACTOR << 16 | LOW_FACTOR));
		__m256i offsets = _mm256_and_si256(
			_mm256_srli_epi32(hashes, HASH_SHIFT), _mm256_set1_epi32((int)OFFSET_MASK));
		_mm256_storeu_si256((__m256i *)(c->keys + i), keys);
		_mm256_storeu_si256((__m256i *)(c->offsets + i), offsets);
	}
	c->is_crossed = c->is_crossed || _mm256_movemask_epi8(is_crossed) != 0;
	find_keys(c, p, i, n - i);
}
#else
#define find_keys_avx2(c, p, n) find_keys(c, p, 0, n)
#endif

/* Counts record i of the batch. */
static inline void count_key(struct counter *c, uint32_t i, unsigned lane)
{
	struct slot *slot = (struct slot *)(void *)((uint8_t *)c->slots + c->offsets[i]);

	if (__builtin_expect(slot->key != c->keys[i], 0))
		slot = find_slot(c, slot, c->keys[i]);
	slot->counts[lane]++;
}

static void count_batch(struct counter *c, uint32_t n)
{
	uint32_t i = 0;

	for (; i + LANES <= n; i += LANES) {
		count_key(c, i, 0);
		count_key(c, i + 1, 1);
		count_key(c, i + 2, 2);
		count_key(c, i + 3, 3);
		count_key(c, i + 4, 4);
		count_key(c, i + 5, 5);
	}
	for (; i < n; i++)
		count_key(c, i, 0);
}

/* How many records can be counted next, of `left`: each may need a slot. */
static uint32_t batch_records(const struct counter *c, size_t left)
{
	uint32_t n = USED_MAX - c->used < BATCH ? USED_MAX - c->used : BATCH;

	n = n < left ? n : (uint32_t)left;
	return left < TOGETHER ? n : n / TOGETHER * TOGETHER;
}

/* Counts records until the table is full. Returns the first that is not counted. */
static const uint8_t *count_records(struct counter *c, const uint8_t *p, const uint8_t *end)
{
	uint32_t n;

	for (; (n = batch_records(c, (size_t)(end - p) / BC_RECORD_BYTES)) != 0;
		p += (size_t)n * BC_RECORD_BYTES) {
		if (HAS_AVX2)
			find_keys_avx2(c, p, n);
		else
			find_keys(c, p, 0, n);
		count_batch(c, n);
	}
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

void bc_chunk_count(
	struct bc_chunk_info *info, const uint8_t *records, struct bc_chunk_pages *chunk_pages)
{
	struct bc_page_counts *pages = &chunk_pages->counts;
	const uint8_t *end = records + (size_t)info->records * BC_RECORD_BYTES;
	struct counter c;

	set_up(&c);
	*pages = (struct bc_page_counts){
		.capacity = BC_CHUNK_REGIONS, .regions = chunk_pages->regions};
	for (const uint8_t *p = records; p < end;) {
		if (p != records) /* Otherwise random pages would fill it again and again. */
			bc_page_counts_limit(pages, USED_MAX / 4);
		clear_table(&c, pages);
		p = count_records(&c, p, end);
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
	bc_chunk_count(&chunk->info, chunk->records, chunk_pages);
	chunk->info.records_hash = bc_hash(
		chunk->records, (size_t)chunk->info.records * BC_RECORD_BYTES);
}
