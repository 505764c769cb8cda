#include "daemon/live/page_sampler.h"

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

/* Equal types come behind one another; so that each count needn't wait for the one before it, they
 * are counted in turns. */
#define LANES 4u

/* No page has this number: an address has 32 bits. */
#define NO_PAGE UINT32_MAX

/* Beyond this the weights are brought down to 1, long before they would overflow. */
#define WEIGHT_MAX 0x1p+200

/* What is older than this counts for nothing. */
#define AGE_MAX_NS (64 * BC_PAGE_SAMPLER_HALF_NS)

struct set {
	uint32_t pages[BC_PAGE_SAMPLER_WAYS];
	double counts[BC_PAGE_SAMPLER_WAYS]; /* with what it may have had before it came */
	double errors[BC_PAGE_SAMPLER_WAYS]; /* at most so much of it is not the page's own */
};

struct bc_page_sampler {
	uint64_t of;
	uint64_t sampled;
	uint64_t random;
	uint32_t at;    /* records of the running block that have gone by */
	uint32_t begin; /* of its sample, in the ring of the block */
	uint64_t types[256][LANES];
	uint64_t procs[256][LANES];
	/* Instead of halving all counts as time goes by, what is new weighs ever more: a count
	 * stands for count / weight. */
	double weight;
	double memory;
	uint64_t aged_ns; /* 0: not yet */
	struct set sets[SETS];
};

_Static_assert(BC_PAGE_SAMPLER_PAGES == SETS * BC_PAGE_SAMPLER_WAYS, "the pages are in the sets");
_Static_assert((BC_PAGE_SAMPLER_BLOCK & (BC_PAGE_SAMPLER_BLOCK - 1)) == 0,
	"a ring's place is taken by a mask");
_Static_assert(BC_PAGE_SAMPLER_SAMPLES % LANES == 0, "a sample is counted in whole turns");

/* splitmix64: all that is wanted is a place that has nothing to do with the bus. */
static uint32_t draw_place(struct bc_page_sampler *mix)
{
	uint64_t x = mix->random += UINT64_C(0x9E3779B97F4A7C15);

	x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
	return (uint32_t)(x >> 32) & (BC_PAGE_SAMPLER_BLOCK - 1);
}

int bc_page_sampler_open(struct bc_page_sampler **out)
{
	struct bc_page_sampler *mix = calloc(1, sizeof(*mix));

	*out = mix;
	if (mix == NULL)
		return -ENOMEM;
	for (unsigned s = 0; s < SETS; s++)
		for (unsigned way = 0; way < BC_PAGE_SAMPLER_WAYS; way++)
			mix->sets[s].pages[way] = NO_PAGE;
	mix->weight = 1;
	mix->begin = draw_place(mix);
	return 0;
}

void bc_page_sampler_close(struct bc_page_sampler *mix)
{
	free(mix);
}

/* Which of the set's places has the page; BC_PAGE_SAMPLER_WAYS: none. */
static unsigned find(const struct set *set, uint32_t page)
{
#ifdef __SSE2__
	_Static_assert(BC_PAGE_SAMPLER_WAYS == 8, "two times four");
	const __m128i *pages = (const __m128i *)(const void *)set->pages;
	__m128i wanted = _mm_set1_epi32((int)page);
	__m128i low = _mm_cmpeq_epi32(_mm_loadu_si128(pages), wanted);
	__m128i high = _mm_cmpeq_epi32(_mm_loadu_si128(pages + 1), wanted);
	__m128i both = _mm_packs_epi16(_mm_packs_epi32(low, high), _mm_setzero_si128());
	unsigned found = (unsigned)_mm_movemask_epi8(both);
#else
	unsigned found = 0;
	for (unsigned way = 0; way < BC_PAGE_SAMPLER_WAYS; way++)
		found |= (unsigned)(set->pages[way] == page) << way;
#endif
	return (unsigned)__builtin_ctz(found | 1u << BC_PAGE_SAMPLER_WAYS);
}

/* Without a branch, for which is the least can't be foretold: counts are never negative, so their
 * bits are in the same order as they are, and the last three make room for the place. */
static unsigned coldest(const struct set *set)
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

static void count_page(struct bc_page_sampler *mix, uint32_t page, double weight)
{
	struct set *set = &mix->sets[(page * 0x9E3779B1u) >> (32 - SETS_LOG)];
	unsigned way = find(set, page);

	mix->memory += weight;
	if (__builtin_expect(way == BC_PAGE_SAMPLER_WAYS, 0)) {
		way = coldest(set);
		set->pages[way] = page;
		set->errors[way] = set->counts[way];
	}
	set->counts[way] += weight;
}

/* Records of one page mostly come behind one another: each run is counted once. */
static void count_records(struct bc_page_sampler *mix, const uint8_t *record, uint32_t n)
{
	uint32_t page = NO_PAGE;
	uint32_t run = 0;

	for (uint32_t i = 0; i < n; i++, record += BC_RECORD_BYTES) {
		uint8_t type = record[4];
		mix->types[type][i % LANES]++;
		mix->procs[record[7]][i % LANES]++;
		if (type > BC_REQ_MEMWRITE)
			continue;
		uint32_t next = bc_le32(record) >> BC_PAGE_SAMPLER_PAGE_LOG;
		if (next == page) {
			run++;
			continue;
		}
		if (run != 0)
			count_page(mix, page, run * mix->weight);
		page = next;
		run = 1;
	}
	if (run != 0)
		count_page(mix, page, run * mix->weight);
	mix->sampled += n;
}

/* Counts those of n records, which are the block's from number `at` on, that lie in the part from
 * `begin` to `end`. */
static void count_part(struct bc_page_sampler *mix, const uint8_t *records, uint32_t n,
	uint32_t begin, uint32_t end)
{
	uint32_t from = begin > mix->at ? begin : mix->at;
	uint32_t to = end < mix->at + n ? end : mix->at + n;

	if (from < to)
		count_records(mix, records + (size_t)(from - mix->at) * BC_RECORD_BYTES, to - from);
}

void bc_page_sampler_records(
	struct bc_page_sampler *mix, const struct bc_chunk *chunk, uint32_t from)
{
	assert(from <= chunk->info.records);
	const uint8_t *records = chunk->records + (size_t)from * BC_RECORD_BYTES;
	uint32_t left = chunk->info.records - from;

	mix->of += left;
	while (left != 0) {
		uint32_t n = left < BC_PAGE_SAMPLER_BLOCK - mix->at
				     ? left
				     : BC_PAGE_SAMPLER_BLOCK - mix->at;
		uint32_t end = mix->begin + BC_PAGE_SAMPLER_SAMPLES;
		/* A sample that passes the block's end goes on at its beginning. */
		if (end > BC_PAGE_SAMPLER_BLOCK)
			count_part(mix, records, n, 0, end - BC_PAGE_SAMPLER_BLOCK);
		count_part(mix, records, n, mix->begin, end);
		records += (size_t)n * BC_RECORD_BYTES;
		left -= n;
		mix->at += n;
		if (mix->at == BC_PAGE_SAMPLER_BLOCK) {
			mix->at = 0;
			mix->begin = draw_place(mix);
		}
	}
}

static void scale(struct bc_page_sampler *mix, double factor)
{
	for (unsigned s = 0; s < SETS; s++) {
		for (unsigned way = 0; way < BC_PAGE_SAMPLER_WAYS; way++) {
			mix->sets[s].counts[way] *= factor;
			mix->sets[s].errors[way] *= factor;
		}
	}
	mix->memory *= factor;
}

void bc_page_sampler_age(struct bc_page_sampler *mix, uint64_t now_ns)
{
	uint64_t passed = mix->aged_ns != 0 ? now_ns - mix->aged_ns : 0;

	if (now_ns < mix->aged_ns)
		return;
	mix->aged_ns = now_ns;
	if (passed > AGE_MAX_NS) {
		scale(mix, 0);
		return;
	}
	mix->weight *= exp2((double)passed / (double)BC_PAGE_SAMPLER_HALF_NS);
	if (mix->weight > WEIGHT_MAX) {
		scale(mix, 1 / mix->weight);
		mix->weight = 1;
	}
}

struct hot {
	uint32_t page;
	double samples; /* at least */
	double most;
};

static bool is_hotter(const struct hot *a, const struct hot *b)
{
	return a->samples != b->samples ? a->samples > b->samples : a->page < b->page;
}

/* Rounded down so that an error of the last bit takes nothing off a whole number. */
static uint64_t whole_below(double value)
{
	return (uint64_t)floor(value * (1 + 0x1p-40));
}

static uint64_t whole_above(double value)
{
	return (uint64_t)ceil(value * (1 - 0x1p-40));
}

/* Puts it where it belongs among the n hottest so far, if it does. Returns how many they are now.
 */
static unsigned insert(struct hot hottest[BC_PAGE_SAMPLER_TOLD], unsigned n, const struct hot *hot)
{
	unsigned at = n;

	if (n == BC_PAGE_SAMPLER_TOLD && !is_hotter(hot, &hottest[--at]))
		return n;
	for (; at != 0 && is_hotter(hot, &hottest[at - 1]); at--)
		hottest[at] = hottest[at - 1];
	hottest[at] = *hot;
	return n < BC_PAGE_SAMPLER_TOLD ? n + 1 : n;
}

/* The hottest of those that had at least one sample of their own. */
static unsigned gather(const struct bc_page_sampler *mix, struct hot hottest[BC_PAGE_SAMPLER_TOLD])
{
	unsigned n = 0;

	for (unsigned s = 0; s < SETS; s++) {
		const struct set *set = &mix->sets[s];
		for (unsigned way = 0; way < BC_PAGE_SAMPLER_WAYS; way++) {
			struct hot hot = {.page = set->pages[way],
				.samples = (set->counts[way] - set->errors[way]) / mix->weight,
				.most = set->counts[way] / mix->weight};
			if (hot.page != NO_PAGE && whole_below(hot.samples) != 0)
				n = insert(hottest, n, &hot);
		}
	}
	return n;
}

static json_t *page_json(const struct hot *hot)
{
	char text[16];
	uint64_t samples = whole_below(hot->samples);

	snprintf(text, sizeof(text), "0x%08x", hot->page << BC_PAGE_SAMPLER_PAGE_LOG);
	return json_pack("{s:s, s:o, s:o}", "addr", text, "samples", bc_json_u64(samples), "more",
		bc_json_u64(whole_above(hot->most) - samples));
}

static json_t *pages_json(const struct bc_page_sampler *mix)
{
	struct hot hottest[BC_PAGE_SAMPLER_TOLD];
	unsigned n = gather(mix, hottest);
	json_t *array = json_array();
	bool ok = true;

	for (unsigned i = 0; i < n; i++)
		ok = json_array_append_new(array, page_json(&hottest[i])) == 0 && ok;
	if (ok)
		return array;
	json_decref(array);
	return NULL;
}

static uint64_t sum(const uint64_t channels[LANES])
{
	uint64_t all = 0;

	for (unsigned channel = 0; channel < LANES; channel++)
		all += channels[channel];
	return all;
}

/* Each count that is not 0, under the type's name or the processor's number. */
static json_t *counts_json(const uint64_t counts[256][LANES], bool are_types)
{
	json_t *object = json_object();
	bool ok = true;

	for (unsigned i = 0; i < 256; i++) {
		const char *name = are_types ? bc_reqtype_name((uint8_t)i) : NULL;
		char number[8];
		uint64_t n = sum(counts[i]);
		snprintf(number, sizeof(number), are_types ? "0x%02x" : "%u", i);
		if (n != 0)
			ok = json_object_set_new(
				     object, name != NULL ? name : number, bc_json_u64(n)) == 0 &&
			     ok;
	}
	if (ok)
		return object;
	json_decref(object);
	return NULL;
}

json_t *bc_page_sampler_json(const struct bc_page_sampler *mix)
{
	return bc_json_object((struct bc_json_member[]){
		{"sampled", bc_json_u64(mix->sampled)},
		{"of", bc_json_u64(mix->of)},
		{"types", counts_json(mix->types, true)},
		{"procs", counts_json(mix->procs, false)},
		{"memory", bc_json_u64(whole_above(mix->memory / mix->weight))},
		{"pages", pages_json(mix)},
		{NULL, NULL},
	});
}
