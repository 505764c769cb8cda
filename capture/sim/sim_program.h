/* A simulated program's memory accesses: code with loops and calls, a stack, data with locality.
 *
 * A program has an address space of 4 KiB pages scattered in physical memory, a table of
 * consecutive functions in its code, and data: linked nodes, a table with random lookups, arrays
 * that are walked, and a frame buffer that some functions draw in. The address of code determines
 * what the code does.
 *
 * bc_sim_program_start() starts a run: a loop whose body calls a list of functions, the same list
 * for the same `run` number. bc_sim_program_step() executes 32 bytes of code and passes their
 * accesses to the bus. Call it until it reports that the run is over. */
#ifndef BC_CAPTURE_SIM_SIM_PROGRAM_H
#define BC_CAPTURE_SIM_SIM_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/sim/sim_bus.h"

#define BC_SIM_CODE_PAGES 64
#define BC_SIM_DATA_PAGES 256
#define BC_SIM_FUNCTIONS  192
#define BC_SIM_ARRAYS     4
#define BC_SIM_CALLS      64

struct bc_sim_function {
	uint16_t line; /* its first line in the program's code */
	uint8_t lines;
	uint8_t work; /* enum work: how it uses data */
	uint8_t loop; /* inner loop: lines [loop .. loop_end), */
	uint8_t loop_end;
	uint8_t loop_times; /* executed this many times */
	uint8_t array;
};

struct bc_sim_array {
	uint32_t begin; /* offset in the data */
	uint32_t bytes;
	uint32_t at; /* next offset of the walk */
	uint32_t stride;
};

struct bc_sim_program {
	struct bc_sim_random random;
	uint64_t salt;
	uint16_t code[BC_SIM_CODE_PAGES]; /* page numbers */
	uint16_t data[BC_SIM_DATA_PAGES];
	uint16_t stack;
	struct bc_sim_function functions[BC_SIM_FUNCTIONS];
	struct bc_sim_array arrays[BC_SIM_ARRAYS];

	/* The run. */
	uint32_t rounds_left;
	uint32_t main_line; /* first line of the calling loop */
	uint32_t calls;
	uint32_t call;
	uint32_t line;  /* in the called function */
	bool is_called; /* the function has been entered */
	uint32_t loop_left;
	uint32_t stack_at; /* offset of the stack pointer */
	uint32_t node;     /* current node */
	uint32_t pixel;    /* next offset to draw at */
	uint8_t list[BC_SIM_CALLS];
};

/* Initializes a process at random pages of memory. */
void bc_sim_program_init(struct bc_sim_program *program, uint64_t seed);

/* Initializes the kernel for one agent. With the same seed all agents share its code and data; each
 * has its own stack and random numbers. */
void bc_sim_program_init_kernel(struct bc_sim_program *program, uint64_t seed, unsigned agent);

/* Starts a run of `rounds` rounds, 1 or more, of `calls` calls each, 1 .. BC_SIM_CALLS. */
void bc_sim_program_start(
	struct bc_sim_program *program, uint32_t run, uint32_t calls, uint32_t rounds);

enum bc_sim_step {
	BC_SIM_STEP_CONTINUES,
	BC_SIM_STEP_ROUND, /* a round has ended, another follows */
	BC_SIM_STEP_OVER,  /* the run is over */
};

enum bc_sim_step bc_sim_program_step(
	struct bc_sim_program *program, struct bc_sim_bus *bus, unsigned agent);

/* Returns the physical address of an offset in the program's data, modulo its size. */
uint32_t bc_sim_program_data(const struct bc_sim_program *program, uint32_t offset);

#endif
