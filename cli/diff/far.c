/* Far search: heuristic 5 of plan.c.
 *
 * Memory for every entry of a long trace would be too much, so both traces are sampled. A run of
 * RUN entries is a sample if its hash is a multiple of `rare`. That depends only on the contents,
 * so a common part has the same samples in both traces, wherever it is. If there are too many,
 * `rare` is doubled. The samples that occur once in each trace are matched; the longest chain in
 * which both positions increase shows the common parts, in order. The first sample whose successors
 * confirm it is where the traces meet again.
 *
 * This reads each trace once, up to BC_FAR_MAX entries ahead, and needs 10 MiB. */
#include "cli/diff/match_internal.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

/* Entries of a sample. */
#define RUN 16u

#define SAMPLES_MAX 131072u

/* Initially, one run in RARE is a sample. */
#define RARE 16u

#define FACTOR UINT64_C(0x9E3779B97F4A7C15)

/* This many of the next samples confirm that a common part begins. */
#define CONFIRMED 3u

struct sample {
	uint64_t hash;
	uint32_t at; /* position of the run's first entry, from the sampler's on */
};

struct sampler {
	uint64_t fields;
	uint64_t from;     /* position of the first entry of interest */
	uint64_t position; /* of the next entry */
	uint64_t keys[RUN];
	uint64_t sum;    /* of the last RUN keys, each times a power of FACTOR */
	uint64_t oldest; /* FACTOR to the power of RUN */
	uint64_t rare;   /* a power of 2 */
	struct sample *samples;
	size_t count;
};

/* Keeps only samples of a rarer kind. */
static void thin_out(struct sampler *s, uint64_t rare)
{
	size_t kept = 0;

	s->rare = rare;
	for (size_t i = 0; i < s->count; i++)
		if ((s->samples[i].hash & (rare - 1)) == 0)
			s->samples[kept++] = s->samples[i];
	s->count = kept;
}

static bool take_sample(struct sampler *s, const struct bc_entry *entry)
{
	uint64_t position = s->position++;

	if (position < s->from)
		return true;
	if (position - s->from >= BC_FAR_MAX)
		return false;
	uint64_t key = bc_compare_hash(entry, s->fields);
	uint64_t *slot = &s->keys[position % RUN];
	s->sum = s->sum * FACTOR + key - *slot * s->oldest;
	*slot = key;
	if (position - s->from + 1 < RUN)
		return true;
	uint64_t hash = (s->sum ^ s->sum >> 31) * FACTOR;
	hash ^= hash >> 29;
	if ((hash & (s->rare - 1)) != 0)
		return true;
	if (s->count == SAMPLES_MAX)
		thin_out(s, 2 * s->rare);
	if ((hash & (s->rare - 1)) == 0 && s->count < SAMPLES_MAX)
		s->samples[s->count++] = (struct sample){
			.hash = hash, .at = (uint32_t)(position - s->from) - (RUN - 1)};
	return true;
}

/* Returns 0; or -ENOTSUP if the trace can be read only once. */
static int take_samples(struct sampler *s, const struct bc_match_source *source)
{
	void *again = source->again(source->context);
	const struct bc_entry *run;
	size_t count;
	bool goes_on = true;

	if (again == NULL)
		return -ENOTSUP;
	while (goes_on && (count = source->next(again, &run)) != 0)
		for (size_t i = 0; goes_on && i < count; i++)
			goes_on = take_sample(s, &run[i]);
	source->close(again);
	return 0;
}

static int by_hash(const void *x, const void *y)
{
	const struct sample *a = x;
	const struct sample *b = y;

	return (a->hash > b->hash) - (a->hash < b->hash);
}

static int by_position(const void *x, const void *y)
{
	const struct bc_pair *a = x;
	const struct bc_pair *b = y;

	return (a->a > b->a) - (a->a < b->a);
}

/* Returns how many samples from the i-th on have the same hash. The samples must be sorted. */
static size_t count_same_hash(const struct sampler *s, size_t i)
{
	size_t n = 1;

	while (i + n < s->count && s->samples[i + n].hash == s->samples[i].hash)
		n++;
	return n;
}

/* Fills `pairs` with the longest chain of samples that each trace has once. Returns its length. */
static size_t chain_samples(
	struct sampler *a, struct sampler *b, struct bc_pair *pairs, uint32_t *work)
{
	size_t count = 0;

	qsort(a->samples, a->count, sizeof(*a->samples), by_hash);
	qsort(b->samples, b->count, sizeof(*b->samples), by_hash);
	for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
		const struct sample *x = &a->samples[i];
		const struct sample *y = &b->samples[j];
		size_t n = x->hash <= y->hash ? count_same_hash(a, i) : 0;
		size_t k = y->hash <= x->hash ? count_same_hash(b, j) : 0;
		if (n == 1 && k == 1)
			pairs[count++] = (struct bc_pair){.a = x->at, .b = y->at};
		i += n;
		j += k;
	}
	qsort(pairs, count, sizeof(*pairs), by_position);
	return bc_longest_chain(pairs, count, work);
}

/* True if the offset between the traces is the same at most of the next samples. */
static bool is_confirmed(const struct bc_pair *found, size_t count, size_t i)
{
	size_t same = 0;

	for (size_t k = i + 1; k < count && k <= i + CONFIRMED + 1; k++)
		same += found[k].b - found[k].a == found[i].b - found[i].a;
	return same >= CONFIRMED;
}

int bc_far_find(const struct bc_match_source *a, const struct bc_match_source *b, uint64_t fields,
	uint64_t *a_position, uint64_t *b_position, uint64_t *entries_read)
{
	struct sampler samplers[2] = {{.from = *a_position}, {.from = *b_position}};
	const struct bc_match_source *sources[2] = {a, b};
	struct bc_pair *pairs = calloc(SAMPLES_MAX, sizeof(*pairs));
	uint32_t *work = calloc(2 * SAMPLES_MAX, sizeof(*work));
	int rc = 0;

	for (unsigned i = 0; i < 2; i++) {
		struct sampler *s = &samplers[i];
		s->samples = calloc(SAMPLES_MAX, sizeof(*s->samples));
		if (pairs == NULL || work == NULL || s->samples == NULL)
			rc = -ENOMEM;
		s->fields = fields;
		s->rare = i == 0 ? RARE : samplers[0].rare;
		s->oldest = 1;
		for (unsigned k = 0; k < RUN; k++)
			s->oldest *= FACTOR;
		if (rc == 0)
			rc = take_samples(s, sources[i]);
		*entries_read += s->position;
	}
	if (rc == 0) {
		thin_out(&samplers[0], samplers[1].rare);
		size_t count = chain_samples(&samplers[0], &samplers[1], pairs, work);
		for (size_t i = 0; i < count && rc == 0; i++)
			if (is_confirmed(pairs, count, i)) {
				*a_position += pairs[i].a;
				*b_position += pairs[i].b;
				rc = 1;
			}
	}
	free(samplers[0].samples);
	free(samplers[1].samples);
	free(pairs);
	free(work);
	return rc;
}
