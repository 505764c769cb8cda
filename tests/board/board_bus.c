#include "tests/board/board_bus.h"

#include <stdlib.h>
#include <string.h>

#include "capture/sim/sim.h"
#include "formats/base/bytes.h"
#include "formats/bus/sample.h"

#define LOOP_SAMPLES (UINT32_C(1) << 17)

/* Ticks from the last sample of a lap to the first of the next: more than a delta can hold, so
 * that the frame ends there for a reason that a receiver knows. */
#define LAP_PAUSE 100000

static void keep_frame(struct board_bus *bus, const uint8_t *frame, uint32_t *n)
{
	const uint8_t *sample = frame + BC_BCP1_HEADER_BYTES;
	struct bc_bcp1_header header;

	if (!bc_bcp1_read_header(&header, frame))
		return;
	uint64_t tick = header.tick;
	for (uint32_t i = 0; i < header.samples; i++, sample += BC_BCP1_SAMPLE_BYTES, ++*n) {
		tick += bc_le16(sample + 6);
		uint64_t delta = *n == 0 ? LAP_PAUSE : tick - bus->ticks[*n - 1];
		bus->ticks[*n] = tick;
		bus->runs[*n] = delta > UINT16_MAX; /* for now: whether a run starts here */
		uint8_t *out = bus->samples + (size_t)*n * BC_BCP1_SAMPLE_BYTES;
		memcpy(out, sample, BC_SAMPLE_BYTES);
		bc_write_le16(out + 6, delta > UINT16_MAX ? 0 : (uint16_t)delta);
	}
}

static void count_runs(struct board_bus *bus)
{
	uint32_t run = 0;

	for (uint32_t i = LOOP_SAMPLES; i-- > 0;) {
		bool is_first = bus->runs[i] != 0;
		bus->runs[i] = ++run;
		if (is_first)
			run = 0;
	}
}

bool board_bus_init(struct board_bus *bus, uint64_t seed, unsigned agents)
{
	struct bc_sim_options options = {.seed = seed, .count = LOOP_SAMPLES, .agents = agents};
	uint8_t *frame = malloc(BC_SIM_FRAME_MAX);
	struct bc_sim *sim = NULL;
	uint32_t n = 0;

	memset(bus, 0, sizeof(*bus));
	bus->samples = calloc(LOOP_SAMPLES, BC_BCP1_SAMPLE_BYTES);
	bus->ticks = calloc(LOOP_SAMPLES, sizeof(*bus->ticks));
	bus->runs = calloc(LOOP_SAMPLES, sizeof(*bus->runs));
	if (frame == NULL || bus->samples == NULL || bus->ticks == NULL || bus->runs == NULL ||
		bc_sim_open(&sim, &options) != 0) {
		free(frame);
		board_bus_free(bus);
		return false;
	}
	while (bc_sim_next(sim, BC_SIM_FRAME_SAMPLES, frame) != 0)
		keep_frame(bus, frame, &n);
	bc_sim_close(sim);
	free(frame);
	count_runs(bus);
	bus->lap = bus->ticks[LOOP_SAMPLES - 1] - bus->ticks[0] + LAP_PAUSE;
	return true;
}

void board_bus_free(struct board_bus *bus)
{
	free(bus->samples);
	free(bus->ticks);
	free(bus->runs);
}

uint64_t board_bus_tick(const struct board_bus *bus)
{
	return bus->base + bus->ticks[bus->at];
}

uint32_t board_bus_run(const struct board_bus *bus)
{
	return bus->runs[bus->at];
}

uint64_t board_bus_read(struct board_bus *bus, uint8_t *out, uint32_t n)
{
	uint64_t last = bus->base + bus->ticks[bus->at + n - 1];

	memcpy(out, bus->samples + (size_t)bus->at * BC_BCP1_SAMPLE_BYTES,
		(size_t)n * BC_BCP1_SAMPLE_BYTES);
	bc_write_le16(out + 6, 0);
	board_bus_skip(bus, n);
	return last;
}

void board_bus_read_raw(struct board_bus *bus, uint8_t *out, uint32_t n)
{
	const uint8_t *sample = bus->samples + (size_t)bus->at * BC_BCP1_SAMPLE_BYTES;

	for (uint32_t i = 0; i < n; i++) {
		memcpy(out, sample, BC_SAMPLE_BYTES);
		out[5] &= 0xF0; /* with one agent, the agent bits are 0 */
		sample += BC_BCP1_SAMPLE_BYTES;
		out += BC_SAMPLE_BYTES;
	}
	board_bus_skip(bus, n);
}

void board_bus_skip(struct board_bus *bus, uint64_t n)
{
	uint64_t at = bus->at + n;

	bus->base += at / LOOP_SAMPLES * bus->lap;
	bus->at = (uint32_t)(at % LOOP_SAMPLES);
}

void board_bus_rest(struct board_bus *bus, uint64_t ticks)
{
	bus->base += ticks;
}

void board_bus_power_on(struct board_bus *bus)
{
	/* May wrap around; only the sum matters. */
	bus->base = bus->ticks[0] - bus->ticks[bus->at];
}
