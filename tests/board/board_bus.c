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

struct board_loop {
	uint64_t seed;
	unsigned agents;
	unsigned users;   /* buses, and `kept` below */
	uint8_t *samples; /* as in a bcp1 frame, each with its delta */
	uint64_t *ticks;  /* of each sample in the first lap */
	uint32_t *runs;   /* number of samples, from each one on, that fit in one frame */
	uint64_t lap;     /* ticks per lap */
};

/* Kept for the next bus, the latest one first: tests create board after board with the same two,
 * and making a loop costs more than most of what they do with a board. */
static struct board_loop *kept[2];

static void keep_frame(struct board_loop *loop, const uint8_t *frame, uint32_t *n)
{
	const uint8_t *sample = frame + BC_BCP1_HEADER_BYTES;
	struct bc_bcp1_header header;

	if (!bc_bcp1_read_header(&header, frame))
		return;
	uint64_t tick = header.tick;
	for (uint32_t i = 0; i < header.samples; i++, sample += BC_BCP1_SAMPLE_BYTES, ++*n) {
		tick += bc_le16(sample + 6);
		uint64_t delta = *n == 0 ? LAP_PAUSE : tick - loop->ticks[*n - 1];
		loop->ticks[*n] = tick;
		loop->runs[*n] = delta > UINT16_MAX; /* for now: whether a run starts here */
		uint8_t *out = loop->samples + (size_t)*n * BC_BCP1_SAMPLE_BYTES;
		memcpy(out, sample, BC_SAMPLE_BYTES);
		bc_write_le16(out + 6, delta > UINT16_MAX ? 0 : (uint16_t)delta);
	}
}

static void count_runs(struct board_loop *loop)
{
	uint32_t run = 0;

	for (uint32_t i = LOOP_SAMPLES; i-- > 0;) {
		bool is_first = loop->runs[i] != 0;
		loop->runs[i] = ++run;
		if (is_first)
			run = 0;
	}
}

static void drop_loop(struct board_loop *loop)
{
	if (loop == NULL || --loop->users != 0)
		return;
	free(loop->samples);
	free(loop->ticks);
	free(loop->runs);
	free(loop);
}

/* Returns a loop with one user, or NULL. */
static struct board_loop *make_loop(uint64_t seed, unsigned agents)
{
	struct bc_sim_options options = {.seed = seed, .count = LOOP_SAMPLES, .agents = agents};
	struct board_loop *loop = calloc(1, sizeof(*loop));
	struct bc_sim *sim = NULL;
	uint32_t n = 0;

	if (loop == NULL)
		return NULL;
	*loop = (struct board_loop){.seed = seed, .agents = agents, .users = 1};
	loop->samples = calloc(LOOP_SAMPLES, BC_BCP1_SAMPLE_BYTES);
	loop->ticks = calloc(LOOP_SAMPLES, sizeof(*loop->ticks));
	loop->runs = calloc(LOOP_SAMPLES, sizeof(*loop->runs));
	uint8_t *frame = malloc(BC_SIM_FRAME_MAX);
	if (frame == NULL || loop->samples == NULL || loop->ticks == NULL || loop->runs == NULL ||
		bc_sim_open(&sim, &options) != 0) {
		free(frame);
		drop_loop(loop);
		return NULL;
	}
	while (bc_sim_next(sim, BC_SIM_FRAME_SAMPLES, UINT64_MAX, frame) != 0)
		keep_frame(loop, frame, &n);
	bc_sim_close(sim);
	free(frame);
	count_runs(loop);
	loop->lap = loop->ticks[LOOP_SAMPLES - 1] - loop->ticks[0] + LAP_PAUSE;
	return loop;
}

static bool has_loop(const struct board_loop *loop, uint64_t seed, unsigned agents)
{
	return loop != NULL && loop->seed == seed && loop->agents == agents;
}

bool board_bus_init(struct board_bus *bus, uint64_t seed, unsigned agents)
{
	memset(bus, 0, sizeof(*bus));
	if (!has_loop(kept[0], seed, agents)) {
		struct board_loop *loop = kept[1];
		if (!has_loop(loop, seed, agents)) {
			loop = make_loop(seed, agents);
			if (loop == NULL)
				return false;
			drop_loop(kept[1]);
		}
		kept[1] = kept[0];
		kept[0] = loop;
	}
	kept[0]->users++;
	bus->loop = kept[0];
	return true;
}

void board_bus_free(struct board_bus *bus)
{
	drop_loop(bus->loop);
}

uint64_t board_bus_tick(const struct board_bus *bus)
{
	return bus->base + bus->loop->ticks[bus->at];
}

uint32_t board_bus_run(const struct board_bus *bus)
{
	return bus->loop->runs[bus->at];
}

uint64_t board_bus_read(struct board_bus *bus, uint8_t *out, uint32_t n)
{
	uint64_t last = bus->base + bus->loop->ticks[bus->at + n - 1];

	memcpy(out, bus->loop->samples + (size_t)bus->at * BC_BCP1_SAMPLE_BYTES,
		(size_t)n * BC_BCP1_SAMPLE_BYTES);
	bc_write_le16(out + 6, 0);
	board_bus_skip(bus, n);
	return last;
}

void board_bus_read_raw(struct board_bus *bus, uint8_t *out, uint32_t n)
{
	const uint8_t *sample = bus->loop->samples + (size_t)bus->at * BC_BCP1_SAMPLE_BYTES;

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

	bus->base += at / LOOP_SAMPLES * (bus->loop->lap + bus->idle);
	bus->ahead += at / LOOP_SAMPLES * bus->idle;
	bus->at = (uint32_t)(at % LOOP_SAMPLES);
}

void board_bus_rest(struct board_bus *bus, uint64_t ticks)
{
	bus->base += ticks;
}

void board_bus_power_on(struct board_bus *bus)
{
	/* May wrap around; only the sum matters. */
	bus->base = bus->loop->ticks[0] - bus->loop->ticks[bus->at];
	bus->ahead = 0;
}
