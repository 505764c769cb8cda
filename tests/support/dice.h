/* Reproducible random numbers for tests: a xorshift64* generator. */
#ifndef BC_TESTS_SUPPORT_DICE_H
#define BC_TESTS_SUPPORT_DICE_H

#include <stddef.h>
#include <stdint.h>

struct dice {
	uint64_t state; /* not 0 */
};

static inline uint64_t dice_roll(struct dice *dice)
{
	dice->state ^= dice->state >> 12;
	dice->state ^= dice->state << 25;
	dice->state ^= dice->state >> 27;
	return dice->state * UINT64_C(0x2545F4914F6CDD1D);
}

/* Returns a number from 0 to n - 1. */
static inline uint32_t dice_below(struct dice *dice, uint32_t n)
{
	return (uint32_t)((dice_roll(dice) >> 32) * n >> 32);
}

static inline void dice_fill(struct dice *dice, uint8_t *out, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		out[i] = (uint8_t)(dice_roll(dice) >> 56);
}

#endif
