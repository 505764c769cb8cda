/* The bus that a board stands on: a loop of samples, taken once from capture/sim/sim.h and gone
 * round for ever, so that a lap costs a memcpy. A loop is much longer than what LZ4 looks back on:
 * the stream packs as well as the simulated bus itself. Ticks rise from lap to lap.
 *
 * board_bus_init(), then any of the others, then board_bus_free(). */
#ifndef BC_TESTS_BOARD_BOARD_BUS_H
#define BC_TESTS_BOARD_BOARD_BUS_H

#include <stdbool.h>
#include <stdint.h>

struct board_bus {
	uint8_t *samples; /* as they stand in a bcp1 frame, each with its delta */
	uint64_t *ticks;  /* of each sample, in the first lap */
	uint32_t *runs;   /* how many samples from each on may share a frame */
	uint64_t lap;     /* ticks of a lap */
	uint64_t base;    /* added to ticks[] */
	uint32_t at;      /* the next sample */
};

/* Returns false when memory ran out or `agents` is not 1 .. 4; nothing is to be freed then. */
bool board_bus_init(struct board_bus *bus, uint64_t seed, unsigned agents);
void board_bus_free(struct board_bus *bus);

/* The tick of the next sample. */
uint64_t board_bus_tick(const struct board_bus *bus);

/* How many samples, the next and those behind it, may share a frame: up to the first delta that is
 * too long, or the end of the loop. At least 1. */
uint32_t board_bus_run(const struct board_bus *bus);

/* Copies the next n samples, at most a run: 8 bytes each, the first with a delta of 0. Returns the
 * tick of the last. */
uint64_t board_bus_take(struct board_bus *bus, uint8_t *out, uint32_t n);

/* The same as raw6: 6 bytes each. */
void board_bus_take_raw(struct board_bus *bus, uint8_t *out, uint32_t n);

/* Passes over n samples. */
void board_bus_skip(struct board_bus *bus, uint64_t n);

/* Lets the bus be silent for so many ticks before the next sample. */
void board_bus_rest(struct board_bus *bus, uint64_t ticks);

/* The tick counter starts anew. */
void board_bus_power_on(struct board_bus *bus);

#endif
