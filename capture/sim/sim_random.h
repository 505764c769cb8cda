/* Random numbers of the simulated bus: a splitmix64 generator, the same on every machine.
 *
 * The state is one word. Never draw twice in one expression: the compiler could then choose which
 * draw comes first. */
#ifndef BC_CAPTURE_SIM_SIM_RANDOM_H
#define BC_CAPTURE_SIM_SIM_RANDOM_H

#include <stdint.h>

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

#endif
