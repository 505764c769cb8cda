/* The bus that a board captures: a loop of samples from capture/sim/sim.h, so that each lap costs
 * only a memcpy. The loop is much longer than LZ4's window, so the stream compresses like the
 * simulated bus itself. Ticks increase from lap to lap.
 *
 * Buses with the same seed and agents share a loop, which never changes; the latest one is kept for
 * the next. Init and free buses on one thread.
 *
 * Call board_bus_init(), then any of the others, then board_bus_free(). */
#ifndef BC_TESTS_BOARD_BOARD_BUS_H
#define BC_TESTS_BOARD_BOARD_BUS_H

#include <stdbool.h>
#include <stdint.h>

struct board_bus {
	struct board_loop *loop;
	uint64_t base;  /* added to the loop's ticks */
	uint32_t at;    /* the next sample */
	uint64_t idle;  /* ticks of silence after each lap */
	uint64_t ahead; /* ticks of such silence: how far this bus is ahead of the clock */
};

/* Returns false if out of memory or `agents` is not 1 .. 4; then nothing needs to be freed. */
bool board_bus_init(struct board_bus *bus, uint64_t seed, unsigned agents);
void board_bus_free(struct board_bus *bus);

/* Returns the tick of the next sample. */
uint64_t board_bus_tick(const struct board_bus *bus);

/* Returns how many of the next samples fit in one frame: up to the first delta that is too long,
 * or the end of the loop. At least 1. */
uint32_t board_bus_run(const struct board_bus *bus);

/* Copies the next n samples, at most a run: 8 bytes each, the first with a delta of 0. Returns the
 * tick of the last. */
uint64_t board_bus_read(struct board_bus *bus, uint8_t *out, uint32_t n);

/* The same as raw6, 6 bytes each. */
void board_bus_read_raw(struct board_bus *bus, uint8_t *out, uint32_t n);

/* Skips n samples. */
void board_bus_skip(struct board_bus *bus, uint64_t n);

/* Inserts a silence of `ticks` before the next sample, in which time passes. */
void board_bus_rest(struct board_bus *bus, uint64_t ticks);

/* Resets the tick counter. */
void board_bus_power_on(struct board_bus *bus);

#endif
