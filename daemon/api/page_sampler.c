/* Counts a sample of the records (see the header) in fixed tables: types and processors by value,
 * pages in a set-associative table of weighted counts.
 *
 * Instead of lowering all counts as time passes, new requests get a growing weight: a count's value
 * is count / weight. All are scaled down together long before they could overflow.
 *
 * Invariant: of a page in the table, `counts` is at least its requests, and at most `errors` more;
 * a page that is not in the table has had at most the lowest count of its set. An unused way is all
 * zeros, as page 0 without requests; it comes after page 0's own way, if that has one. */
#include "daemon/api/page_sampler.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/json.h"
#include "formats/bus/record.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define SETS_LOG 9
#define SETS     (1u << SETS_LOG)

/* Equal types often follow each other. Counting them in turn in several counters avoids a
 * read-after-write dependency between increments. */
#define STRIPES 4u

/* Not a valid page number: addresses have 32 bits. */
#define NO_PAGE UINT32_MAX

/* When the weight exceeds this, all counts are scaled down, long before they could overflow. */
#define WEIGHT_MAX 0x1p+200

/* After this time a count is practically 0. */
#define AGE_MAX_NS (64 * BC_PAGE_SAMPLER_HALF_LIFE_NS)

struct set {
	uint32_t pages[BC_PAGE_SAMPLER_WAYS];
	double counts[BC_PAGE_SAMPLER_WAYS]; /* including the inherited count */
	double errors[BC_PAGE_SAMPLER_WAYS]; /* the inherited count */
};

struct bc_page_sampler {
	uint64_t seen;
	uint64_t sampled;
	uint64_t random;
	uint32_t position;     /* in the current block */
	uint32_t sample_start; /* position of the sample's first record */
	uint64_t types[256][STRIPES];
	uint64_t procs[256][STRIPES];
	double weight;
	double memory;
	uint64_t aged_ns; /* the time of the last call of bc_page_sampler_age(); 0: none */
	struct set sets[SETS];
};

_Static_assert(BC_PAGE_SAMPLER_PAGES == SETS * BC_PAGE_SAMPLER_WAYS, "pages are stored in sets");
_Static_assert((BC_PAGE_SAMPLER_BLOCK & (BC_PAGE_SAMPLER_BLOCK - 1)) == 0,
	"positions are computed with a mask");
_Static_assert(BC_PAGE_SAMPLER_SAMPLES % STRIPES == 0, "a sample is a multiple of the stripes");

/* splitmix64: the position must only be independent of the bus. */
static uint32_t random_position(struct bc_page_sampler *sampler)
{
	uint64_t x = sampler->random += UINT64_C(0x9E3779B97F4A7C15);

	x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
	return (uint32_t)(x >> 32) & (BC_PAGE_SAMPLER_BLOCK - 1);
}

int bc_page_sampler_open(struct bc_page_sampler **out)
{
	struct bc_page_sampler *sampler = calloc(1, sizeof(*sampler));

	*out = sampler;
	if (sampler == NULL)
		return -ENOMEM;
	sampler->weight = 1;
	sampler->sample_start = random_position(sampler);
	return 0;
}

void bc_page_sampler_close(struct bc_page_sampler *sampler)
{
	free(sampler);
}

/* Returns the way that has the page, or BC_PAGE_SAMPLER_WAYS. */
static unsigned find_way(const struct set *set, uint32_t page)
{
#ifdef __SSE2__
	_Static_assert(BC_PAGE_SAMPLER_WAYS == 8, "two times four");
	const __m128i *pages = (const __m128i *)(const void *)set->pages;
	__m128i key = _mm_set1_epi32((int)page);
	__m128i low = _mm_cmpeq_epi32(_mm_loadu_si128(pages), key);
	__m128i high = _mm_cmpeq_epi32(_mm_loadu_si128(pages + 1), key);
	__m128i both = _mm_packs_epi16(_mm_packs_epi32(low, high), _mm_setzero_si128());
	unsigned found = (unsigned)_mm_movemask_epi8(both);
#else
	unsigned found = 0;
	for (unsigned way = 0; way < BC_PAGE_SAMPLER_WAYS; way++)
		found |= (unsigned)(set->pages[way] == page) << way;
#endif
	return (unsigned)__builtin_ctz(found | 1u << BC_PAGE_SAMPLER_WAYS);
}

/* Returns the way with the lowest count, without a branch, which could not be predicted. Counts are
 * not negative, so their bits compare like their values; the way replaces the lowest three. */
static unsigned coldest_way(const struct set *set)
{
	uint64_t least = UINT64_MAX;

	for (unsigned way = 0; way < BC_PAGE_SAMPLER_WAYS; way++) {
		uint64_t bits;
		memcpy(&bits, &set->counts[way], sizeof(bits));
		bits = (bits & ~(uint64_t)(BC_PAGE_SAMPLER_WAYS - 1)) | way;
		least = bits < least ? bits : least;
	}
	return (unsigned)least & (BC_PAGE_SAMPLER_WAYS - 1);
}

static void count_page(struct bc_page_sampler *sampler, uint32_t page, double weight)
{
	struct set *set = &sampler->sets[(page * 0x9E3779B1u) >> (32 - SETS_LOG)];
	unsigned way = find_way(set, page);

	sampler->memory += weight;
	if (__builtin_expect(way == BC_PAGE_SAMPLER_WAYS, 0)) {
		way = coldest_way(set);
		set->pages[way] = page;
		set->errors[way] = set->counts[way];
	}
	set->counts[way] += weight;
}

/* Consecutive records are usually in the same page, so each run in a page is counted at once. */
static void count_records(struct bc_page_sampler *sampler, const uint8_t *record, uint32_t n)
{
	uint32_t page = NO_PAGE;
	uint32_t run = 0;

	for (uint32_t i = 0; i < n; i++, record += BC_RECORD_BYTES) {
		uint8_t type = record[4];
		sampler->types[type][i % STRIPES]++;
		sampler->procs[record[7]][i % STRIPES]++;
		if (type > BC_REQ_MEMWRITE)
			continue;
		uint32_t next = bc_le32(record) >> BC_PAGE_SAMPLER_PAGE_LOG;
		if (next == page) {
			run++;
			continue;
		}
		if (run != 0)
			count_page(sampler, page, run * sampler->weight);
		page = next;
		run = 1;
	}
	if (run != 0)
		count_page(sampler, page, run * sampler->weight);
	sampler->sampled += n;
}

/* Of the next n records of the block, counts those at positions `begin` to `end` - 1. */
static void count_part(struct bc_page_sampler *sampler, const uint8_t *records, uint32_t n,
	uint32_t begin, uint32_t end)
{
	uint32_t from = begin > sampler->position ? begin : sampler->position;
	uint32_t to = end < sampler->position + n ? end : sampler->position + n;

	if (from < to)
		count_records(sampler,
			records + (size_t)(from - sampler->position) * BC_RECORD_BYTES, to - from);
}

void bc_page_sampler_records(
	struct bc_page_sampler *sampler, const struct bc_chunk *chunk, uint32_t from)
{
	assert(from <= chunk->info.records);
	const uint8_t *records = chunk->records + (size_t)from * BC_RECORD_BYTES;
	uint32_t left = chunk->info.records - from;

	sampler->seen += left;
	while (left != 0) {
		uint32_t n = left < BC_PAGE_SAMPLER_BLOCK - sampler->position
				     ? left
				     : BC_PAGE_SAMPLER_BLOCK - sampler->position;
		uint32_t end = sampler->sample_start + BC_PAGE_SAMPLER_SAMPLES;
		/* A sample that passes the end of the block continues at its start. */
		if (end > BC_PAGE_SAMPLER_BLOCK)
			count_part(sampler, records, n, 0, end - BC_PAGE_SAMPLER_BLOCK);
		count_part(sampler, records, n, sampler->sample_start, end);
		records += (size_t)n * BC_RECORD_BYTES;
		left -= n;
		sampler->position += n;
		if (sampler->position == BC_PAGE_SAMPLER_BLOCK) {
			sampler->position = 0;
			sampler->sample_start = random_position(sampler);
		}
	}
}

static void scale_counts(struct bc_page_sampler *sampler, double factor)
{
	for (unsigned s = 0; s < SETS; s++) {
		for (unsigned way = 0; way < BC_PAGE_SAMPLER_WAYS; way++) {
			sampler->sets[s].counts[way] *= factor;
			sampler->sets[s].errors[way] *= factor;
		}
	}
	sampler->memory *= factor;
}

void bc_page_sampler_age(struct bc_page_sampler *sampler, uint64_t now_ns)
{
	uint64_t passed = sampler->aged_ns != 0 ? now_ns - sampler->aged_ns : 0;

	if (now_ns < sampler->aged_ns)
		return;
	sampler->aged_ns = now_ns;
	if (passed > AGE_MAX_NS) {
		scale_counts(sampler, 0);
		return;
	}
	sampler->weight *= exp2((double)passed / (double)BC_PAGE_SAMPLER_HALF_LIFE_NS);
	if (sampler->weight > WEIGHT_MAX) {
		scale_counts(sampler, 1 / sampler->weight);
		sampler->weight = 1;
	}
}

struct hot {
	uint32_t page;
	double min; /* requests */
	double max;
};

static bool is_hotter(const struct hot *a, const struct hot *b)
{
	return a->min != b->min ? a->min > b->min : a->page < b->page;
}

/* Round so that an error in the last bit does not change an integer. */
static uint64_t round_down(double value)
{
	return (uint64_t)floor(value * (1 + 0x1p-40));
}

static uint64_t round_up(double value)
{
	return (uint64_t)ceil(value * (1 - 0x1p-40));
}

/* Inserts a page into the n hottest so far, if it belongs there. Returns their new number. */
static unsigned insert_hottest(
	struct hot hottest[BC_PAGE_SAMPLER_REPORTED], unsigned n, const struct hot *hot)
{
	unsigned at = n;

	if (n == BC_PAGE_SAMPLER_REPORTED && !is_hotter(hot, &hottest[--at]))
		return n;
	for (; at != 0 && is_hotter(hot, &hottest[at - 1]); at--)
		hottest[at] = hottest[at - 1];
	hottest[at] = *hot;
	return n < BC_PAGE_SAMPLER_REPORTED ? n + 1 : n;
}

/* Collects the hottest pages with at least one certain request. Returns their number. */
static unsigned collect_hottest(
	const struct bc_page_sampler *sampler, struct hot hottest[BC_PAGE_SAMPLER_REPORTED])
{
	unsigned n = 0;

	for (unsigned s = 0; s < SETS; s++) {
		const struct set *set = &sampler->sets[s];
		for (unsigned way = 0; way < BC_PAGE_SAMPLER_WAYS; way++) {
			struct hot hot = {.page = set->pages[way],
				.min = (set->counts[way] - set->errors[way]) / sampler->weight,
				.max = set->counts[way] / sampler->weight};
			if (round_down(hot.min) != 0)
				n = insert_hottest(hottest, n, &hot);
		}
	}
	return n;
}

static json_t *page_json(const struct hot *hot)
{
	char text[16];
	uint64_t requests = round_down(hot->min);

	snprintf(text, sizeof(text), "0x%08x", hot->page << BC_PAGE_SAMPLER_PAGE_LOG);
	return json_pack("{s:s, s:o, s:o}", "addr", text, "requests", bc_json_u64(requests),
		"max_error", bc_json_u64(round_up(hot->max) - requests));
}

static json_t *pages_json(const struct bc_page_sampler *sampler)
{
	struct hot hottest[BC_PAGE_SAMPLER_REPORTED] = {0};
	unsigned n = collect_hottest(sampler, hottest);
	json_t *array = json_array();

	for (unsigned i = 0; i < n; i++)
		array = bc_json_append(array, page_json(&hottest[i]));
	return array;
}

static uint64_t sum_stripes(const uint64_t stripes[STRIPES])
{
	uint64_t all = 0;

	for (unsigned stripe = 0; stripe < STRIPES; stripe++)
		all += stripes[stripe];
	return all;
}

/* The counts that are not 0, by name of the type or number of the processor. */
static json_t *counts_json(const uint64_t counts[256][STRIPES], bool are_types)
{
	json_t *object = json_object();

	for (unsigned i = 0; i < 256; i++) {
		const char *name = are_types ? bc_reqtype_name((uint8_t)i) : NULL;
		char number[8];
		uint64_t n = sum_stripes(counts[i]);
		snprintf(number, sizeof(number), are_types ? "0x%02x" : "%u", i);
		if (n != 0)
			object = bc_json_merge(object,
				BC_JSON_OBJECT({name != NULL ? name : number, bc_json_u64(n)}));
	}
	return object;
}

json_t *bc_page_sampler_json(const struct bc_page_sampler *sampler)
{
	return BC_JSON_OBJECT({"records", bc_json_u64(sampler->seen)},
		{"sampled_records", bc_json_u64(sampler->sampled)},
		{"types", counts_json(sampler->types, true)},
		{"procs", counts_json(sampler->procs, false)},
		{"memory_requests", bc_json_u64(round_up(sampler->memory / sampler->weight))},
		{"pages", pages_json(sampler)});
}
