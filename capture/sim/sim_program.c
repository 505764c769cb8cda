/* Makes the accesses of a program that look like real ones: code with functions, loops and calls, a
 * stack, and data with locality.
 *
 * The seed decides where its pages are and what its functions are like; the address of a line of
 * code (`nature`, a hash) decides what that line does, so that it does the same each time. Each
 * step executes one line of 32 bytes and makes the accesses of the function's work (enum work). */
#include "capture/sim/sim_program.h"

#include <assert.h>
#include <string.h>

#define LINE_BYTES     32u
#define PAGE_BYTES     4096u
#define LINES_PER_PAGE (PAGE_BYTES / LINE_BYTES)

/* Memory layout, in page numbers. */
#define KERNEL_CODE_PAGE  0x100 /* 1 MiB */
#define KERNEL_STACK_PAGE 0x180
#define KERNEL_DATA_PAGE  (BC_SIM_SHARED_BEGIN / PAGE_BYTES)
#define SEGMENT_PAGE      (BC_SIM_SHARED_BEGIN / PAGE_BYTES + 256) /* memory that processes share */
#define PROCESS_PAGE      (BC_SIM_SHARED_END / PAGE_BYTES)
#define PROCESS_PAGE_END  (BC_SIM_MEMORY_END / PAGE_BYTES)

/* Layout of a program's data, in offsets. */
#define TABLE_BEGIN   0x10000u
#define TABLE_BYTES   0x8000u
#define ARRAYS_BEGIN  0x20000u
#define ARRAY_BYTES   0x30000u
#define SEGMENT_BEGIN 0xF0000u /* the shared segment of processes */
#define SEGMENT_BYTES 0x10000u

#define NODE_BYTES 64u
#define NODES      512u /* a power of two */

#define SCREEN       0xE0000000u
#define SCREEN_BYTES 0x00080000u
#define DRAW_TICKS   4
#define PEEK_TICKS   22

#define MAIN_LINES 16 /* lines of the calling loops, before the functions */

#define FUNCTION_LINES_MAX 20

/* How a function uses data. */
enum work {
	WORK_LOCAL,
	WORK_CHASE,
	WORK_LOOK_UP,
	WORK_WALK,
	WORK_UPDATE,
	WORK_COPY,
	WORK_SEGMENT,
	WORK_DRAW,
};

/* How many of 32 functions do each kind of work. */
static const uint8_t shares[] = {
	[WORK_LOCAL] = 15,
	[WORK_CHASE] = 6,
	[WORK_LOOK_UP] = 1,
	[WORK_WALK] = 4,
	[WORK_UPDATE] = 2,
	[WORK_COPY] = 2,
	[WORK_SEGMENT] = 1,
	[WORK_DRAW] = 1,
};

#define SHARES 32

/* Spreads the kinds of work over the functions with an odd step, so that any consecutive functions
 * have about the same mix. Programs then differ in their addresses, not in their character. */
static enum work work_of(unsigned function)
{
	unsigned at = function * 13 % SHARES;
	unsigned work = WORK_LOCAL;

	while (at >= shares[work])
		at -= shares[work++];
	return (enum work)work;
}

/* Allocates pages as an operating system does: mostly in short consecutive runs. */
static void scatter_pages(struct bc_sim_random *random, uint16_t *pages, unsigned n)
{
	uint32_t page = 0;

	for (unsigned i = 0; i < n; i++) {
		if (i == 0 || bc_sim_one_in(random, 4))
			page = bc_sim_between(random, PROCESS_PAGE, PROCESS_PAGE_END - n - 1);
		else
			page++;
		pages[i] = (uint16_t)page;
	}
}

static void set_consecutive_pages(uint16_t *pages, unsigned n, uint32_t first)
{
	for (unsigned i = 0; i < n; i++)
		pages[i] = (uint16_t)(first + i);
}

static void draw_function(
	struct bc_sim_random *random, struct bc_sim_function *f, unsigned number, uint32_t line)
{
	f->work = (uint8_t)work_of(number);
	f->line = (uint16_t)line;
	f->lines = (uint8_t)bc_sim_between(random, 4, FUNCTION_LINES_MAX);
	f->array = (uint8_t)bc_sim_between(random, 0, BC_SIM_ARRAYS - 1);
	f->loop = (uint8_t)bc_sim_between(random, 0, f->lines - 1u);
	f->loop_end = (uint8_t)bc_sim_between(random, f->loop + 1u, f->lines);
	f->loop_times = (uint8_t)bc_sim_between(random, 1, f->work == WORK_LOCAL ? 2 : 4);
}

static void draw_parts(struct bc_sim_program *p)
{
	static const uint8_t strides[] = {8, 8, 16, 32, 32, 64};
	uint32_t line = MAIN_LINES;

	for (unsigned i = 0; i < BC_SIM_FUNCTIONS; i++) {
		draw_function(&p->random, &p->functions[i], i, line);
		line += p->functions[i].lines;
		/* If the functions do not fit into the code, the last ones overlap the first. */
		if (line + FUNCTION_LINES_MAX > BC_SIM_CODE_PAGES * LINES_PER_PAGE)
			line = MAIN_LINES;
	}
	for (unsigned i = 0; i < BC_SIM_ARRAYS; i++) {
		uint32_t stride = bc_sim_between(&p->random, 0, sizeof(strides) - 1);
		p->arrays[i] = (struct bc_sim_array){
			.begin = ARRAYS_BEGIN + i * ARRAY_BYTES,
			.bytes = bc_sim_between(&p->random, 1, 6) * PAGE_BYTES,
			.stride = strides[stride],
		};
	}
}

void bc_sim_program_init(struct bc_sim_program *p, uint64_t seed)
{
	memset(p, 0, sizeof(*p));
	p->random.state = seed;
	p->salt = bc_sim_random(&p->random);
	scatter_pages(&p->random, p->code, BC_SIM_CODE_PAGES);
	scatter_pages(&p->random, p->data, BC_SIM_DATA_PAGES);
	scatter_pages(&p->random, &p->stack, 1);
	set_consecutive_pages(
		p->data + SEGMENT_BEGIN / PAGE_BYTES, SEGMENT_BYTES / PAGE_BYTES, SEGMENT_PAGE);
	p->pixel = bc_sim_between(&p->random, 0, SCREEN_BYTES / 8 - 1) * 8;
	draw_parts(p);
}

void bc_sim_program_init_kernel(struct bc_sim_program *p, uint64_t seed, unsigned agent)
{
	memset(p, 0, sizeof(*p));
	p->random.state = seed;
	p->salt = bc_sim_random(&p->random);
	set_consecutive_pages(p->code, BC_SIM_CODE_PAGES, KERNEL_CODE_PAGE);
	set_consecutive_pages(p->data, BC_SIM_DATA_PAGES, KERNEL_DATA_PAGE);
	p->stack = (uint16_t)(KERNEL_STACK_PAGE + agent);
	draw_parts(p);
	p->random.state += bc_sim_mix(agent + 1);
}

void bc_sim_program_start(struct bc_sim_program *p, uint32_t run, uint32_t calls, uint32_t rounds)
{
	assert(calls >= 1 && calls <= BC_SIM_CALLS);
	uint64_t key = bc_sim_mix(p->salt + run);

	/* Neighbours: functions that call each other are linked together. */
	uint32_t home = (uint32_t)(key % BC_SIM_FUNCTIONS);
	for (uint32_t i = 0; i < calls; i++)
		p->list[i] = (uint8_t)((home + i * 2 + bc_sim_mix(key + i) % 2) % BC_SIM_FUNCTIONS);
	p->main_line = (uint32_t)(key >> 32) % MAIN_LINES;
	p->calls = calls;
	p->call = 0;
	p->line = 0;
	p->is_called = false;
	p->loop_left = 0;
	p->rounds_left = rounds;
}

uint32_t bc_sim_program_data(const struct bc_sim_program *p, uint32_t offset)
{
	return p->data[offset / PAGE_BYTES % BC_SIM_DATA_PAGES] * PAGE_BYTES + offset % PAGE_BYTES;
}

static uint32_t code_address(const struct bc_sim_program *p, uint32_t line)
{
	return p->code[line / LINES_PER_PAGE] * PAGE_BYTES + line % LINES_PER_PAGE * LINE_BYTES;
}

static uint32_t stack_address(const struct bc_sim_program *p, uint32_t offset)
{
	return p->stack * PAGE_BYTES + offset;
}

/* Access sizes: mostly words; some doublewords, bytes and halfwords. */
static unsigned bytes_of(uint64_t nature)
{
	static const uint8_t bytes[16] = {4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 8, 8, 1, 1, 2, 4};

	return bytes[nature >> 32 & 15];
}

static uint32_t aligned(uint32_t address, unsigned bytes)
{
	return address & ~(uint32_t)(bytes - 1);
}

static void use_stack(
	struct bc_sim_program *p, struct bc_sim_bus *bus, unsigned agent, uint64_t nature)
{
	uint32_t slot = p->stack_at + (uint32_t)(nature >> 40 & 0x1F) * 4;

	if ((nature >> 36 & 3) == 0)
		bc_sim_write(bus, agent, stack_address(p, slot), 4);
	else if ((nature >> 36 & 3) == 1)
		bc_sim_read(bus, agent, stack_address(p, slot), 4);
}

static void chase_nodes(
	struct bc_sim_program *p, struct bc_sim_bus *bus, unsigned agent, uint64_t nature)
{
	/* Visits all nodes in an order that depends on the program. */
	p->node = (p->node * 5 + ((uint32_t)p->salt | 1)) % NODES;
	uint32_t node = bc_sim_program_data(p, p->node * NODE_BYTES);

	bc_sim_read(bus, agent, node, 4);
	if ((nature >> 40 & 3) == 0)
		bc_sim_read(bus, agent, node + 32 + (uint32_t)(nature >> 44 & 3) * 8, 4);
	if ((nature >> 46 & 3) == 0)
		bc_sim_write(bus, agent, node + 4, 4);
}

static void look_up_table(
	struct bc_sim_program *p, struct bc_sim_bus *bus, unsigned agent, uint64_t nature)
{
	/* The lower of two random numbers: the start of the table is used most. */
	unsigned bytes = bytes_of(nature);
	uint64_t draw = bc_sim_random(&p->random);
	uint32_t at = (uint32_t)draw % TABLE_BYTES;
	uint32_t other = (uint32_t)(draw >> 32) % TABLE_BYTES;

	at = aligned(at < other ? at : other, bytes);
	bc_sim_read(bus, agent, bc_sim_program_data(p, TABLE_BEGIN + at), bytes);
}

static void walk_array(struct bc_sim_program *p, struct bc_sim_bus *bus, unsigned agent,
	const struct bc_sim_function *f, uint64_t nature)
{
	struct bc_sim_array *array = &p->arrays[f->array];
	unsigned bytes = bytes_of(nature);
	uint32_t address = aligned(bc_sim_program_data(p, array->begin + array->at), bytes);

	bc_sim_read(bus, agent, address, bytes);
	if (f->work == WORK_UPDATE)
		bc_sim_write(bus, agent, address, bytes);
	array->at += array->stride;
	if (array->at >= array->bytes)
		array->at = 0;
}

static void copy_array(struct bc_sim_program *p, struct bc_sim_bus *bus, unsigned agent,
	const struct bc_sim_function *f)
{
	struct bc_sim_array *array = &p->arrays[f->array];
	uint32_t to = p->arrays[(f->array + 1) % BC_SIM_ARRAYS].begin;

	bc_sim_read(bus, agent, bc_sim_program_data(p, array->begin + array->at), 8);
	bc_sim_write(bus, agent, bc_sim_program_data(p, to + array->at), 8);
	array->at += 8;
	if (array->at >= array->bytes)
		array->at = 0;
}

static void use_segment(
	struct bc_sim_program *p, struct bc_sim_bus *bus, unsigned agent, uint64_t nature)
{
	uint32_t at = bc_sim_between(&p->random, 0, 255) * LINE_BYTES;
	uint32_t address = bc_sim_program_data(p, SEGMENT_BEGIN + at);

	bc_sim_read(bus, agent, address, 4);
	if ((nature >> 40 & 1) == 0)
		bc_sim_write(bus, agent, address + 8, 4);
}

static void draw_pixels(
	struct bc_sim_program *p, struct bc_sim_bus *bus, unsigned agent, uint64_t nature)
{
	unsigned bytes = bytes_of(nature);

	if ((nature >> 40 & 3) == 0)
		bc_sim_single(bus, agent, BC_CYCLE_NC_D_READ, SCREEN + p->pixel, bytes, PEEK_TICKS);
	bc_sim_single(bus, agent, BC_CYCLE_D_WRITE, SCREEN + p->pixel, bytes, DRAW_TICKS);
	p->pixel = (p->pixel + 8) % SCREEN_BYTES;
}

static void use_data(struct bc_sim_program *p, struct bc_sim_bus *bus, unsigned agent,
	const struct bc_sim_function *f, uint64_t nature)
{
	switch ((enum work)f->work) {
	case WORK_LOCAL:
		use_stack(p, bus, agent, nature);
		break;
	case WORK_CHASE:
		chase_nodes(p, bus, agent, nature);
		break;
	case WORK_LOOK_UP:
		look_up_table(p, bus, agent, nature);
		break;
	case WORK_WALK:
	case WORK_UPDATE:
		walk_array(p, bus, agent, f, nature);
		break;
	case WORK_COPY:
		copy_array(p, bus, agent, f);
		break;
	case WORK_SEGMENT:
		use_segment(p, bus, agent, nature);
		break;
	case WORK_DRAW:
		draw_pixels(p, bus, agent, nature);
		break;
	}
}

/* A call from the main loop: fetches its line, pushes the return address and sets the data that the
 * function starts with, nearly always the same for the same function. */
static void call_function(struct bc_sim_program *p, struct bc_sim_bus *bus, unsigned agent,
	const struct bc_sim_function *f)
{
	uint32_t line = (p->main_line + p->call / 4) % MAIN_LINES;
	uint64_t nature = bc_sim_mix(p->salt ^ p->list[p->call]);
	struct bc_sim_array *array = &p->arrays[f->array];

	bc_sim_fetch(bus, agent, code_address(p, line) + p->call % 4 * 8);
	p->stack_at = 1024 + (uint32_t)(nature & 15) * 64;
	bc_sim_write(bus, agent, stack_address(p, p->stack_at), 4);
	p->is_called = true;
	p->loop_left = f->loop_times;
	if (f->work == WORK_CHASE && !bc_sim_one_in(&p->random, 64))
		p->node = (uint32_t)(nature >> 8) % NODES;
	if (!bc_sim_one_in(&p->random, 8))
		array->at = aligned((uint32_t)(nature >> 16) % array->bytes, 64);
}

/* Advances to the next line of the function. Returns false at its end. */
static bool advance(struct bc_sim_program *p, const struct bc_sim_function *f, uint64_t nature)
{
	p->line++;
	if (p->line == f->loop_end && p->loop_left > 1) {
		p->loop_left--;
		p->line = f->loop;
	} else if ((nature >> 52 & 31) == 0 && bc_sim_one_in(&p->random, 2)) {
		p->line += 1 + (uint32_t)(nature >> 56 & 3); /* a branch over 1 to 4 lines */
	}
	return p->line < f->lines;
}

enum bc_sim_step bc_sim_program_step(
	struct bc_sim_program *p, struct bc_sim_bus *bus, unsigned agent)
{
	const struct bc_sim_function *f = &p->functions[p->list[p->call]];
	uint32_t line = f->line + p->line;
	uint64_t nature = bc_sim_mix(p->salt + line);

	assert(p->rounds_left != 0);
	if (!p->is_called)
		call_function(p, bus, agent, f);
	/* Sequential code is fetched from the start of its line, a jump target from within it. */
	uint32_t entry = p->line == 0 || p->line == f->loop ? (uint32_t)(nature >> 60 & 3) * 8 : 0;
	bc_sim_fetch(bus, agent, code_address(p, line) + entry);
	bc_sim_think(&bus->ports[agent], 6 + (uint32_t)(nature & 3) * 4);
	use_data(p, bus, agent, f, nature);

	if (advance(p, f, nature))
		return BC_SIM_STEP_CONTINUES;
	p->line = 0;
	p->is_called = false;
	if (++p->call < p->calls)
		return BC_SIM_STEP_CONTINUES;
	p->call = 0;
	return --p->rounds_left != 0 ? BC_SIM_STEP_ROUND : BC_SIM_STEP_OVER;
}
