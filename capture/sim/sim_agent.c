/* A processor of the simulated bus as a state machine: it runs a process (USER), a call into the
 * kernel (SYSCALL), an interrupt (HANDLER, then TRANSFER if the device has data), the scheduler
 * (SWITCH), the idle loop (IDLE), or has halted until an interrupt (HALTED).
 *
 *     USER -> SYSCALL -> USER                       after a few rounds of the process
 *     USER -> SWITCH | IDLE | USER                  at the end of a phase
 *     USER, HALTED -> HANDLER [-> TRANSFER] -> USER | SWITCH | IDLE
 *     IDLE -> HALTED;  SWITCH -> USER
 *
 * Invariant: an agent acts only while its port has no cycle queued: then its clock is exact. */
#include "capture/sim/sim_agent.h"

#include <string.h>

#define TIMER_TICKS 660000u /* 100 Hz */

#define DEVICE_TICKS_MIN 30000u
#define DEVICE_TICKS_MAX 900000u

/* Load by number of processors: the more there are, the more often each is idle. */
static const struct load {
	uint8_t idle_per_64; /* runs out of 64 after which the processor goes idle */
	uint32_t idle_ticks_max;
} loads[] = {
	[1] = {8, 800000},
	[2] = {62, 800000},
	[3] = {62, 2000000},
	[4] = {62, 3200000},
};

#define IDLE_TICKS_MIN 20000u

/* All states except USER and HALTED run kernel code, with interrupts off. */
enum state {
	USER,
	SYSCALL,
	HANDLER,  /* interrupt handler */
	TRANSFER, /* reading data from a device, in a handler */
	SWITCH,   /* to another process */
	IDLE,
	HALTED,
};

enum device {
	TIMER,
	DISK,
	SERIAL,
	NETWORK,
};

/* Run numbers of the kernel: its own work, then the system calls. */
enum run {
	RUN_TIMER,
	RUN_DISK,
	RUN_SERIAL,
	RUN_NETWORK,
	RUN_SWITCH,
	RUN_IDLE,
	RUN_SYSCALLS,
};

#define SYSCALLS     16
#define PROCESS_RUNS 256 /* different runs of a process */

/* I/O ports on the ISA and PCI buses, and how long an access holds the processor bus. */
#define PORT_PIC1        0x20
#define PORT_PIT_COUNT   0x40
#define PORT_PIT_MODE    0x43
#define PORT_PIC2        0xA0
#define PORT_APM         0xB2
#define PORT_SERIAL_DATA 0x3F8
#define PORT_SERIAL_IIR  0x3FA
#define PORT_SERIAL_LSR  0x3FD
#define ISA_TICKS        44

#define PORT_DISK_DATA   0x1F0
#define PORT_DISK_STATUS 0x1F7
#define PORT_NETWORK     0xFCC0
#define PCI_TICKS        20

#define FIRMWARE       0x000F8000u
#define FIRMWARE_TICKS 36
#define NETWORK_MEMORY 0xFEBF0000u

/* Offsets in the kernel's data: interrupt descriptors, locks, transfer buffers. */
#define IDT_AT        0xE0000u
#define LOCKS_AT      0xE1000u
#define BUFFERS_AT    0xB0000u
#define BUFFERS_BYTES 0x20000u
#define SECTOR_WORDS  128
#define PACKET_WORDS  96

static struct bc_sim_port *port_of(const struct bc_sim_agent *a, struct bc_sim_bus *bus)
{
	return &bus->ports[a->number];
}

static uint8_t port_ticks(uint32_t port)
{
	bool is_pci = port >= PORT_NETWORK || (port >= PORT_DISK_DATA && port <= PORT_DISK_STATUS);

	return is_pci ? PCI_TICKS : ISA_TICKS;
}

static void io_read(struct bc_sim_agent *a, struct bc_sim_bus *bus, uint32_t port, unsigned bytes)
{
	bc_sim_single(bus, a->number, BC_CYCLE_IO_READ, port, bytes, port_ticks(port));
}

static void io_write(struct bc_sim_agent *a, struct bc_sim_bus *bus, uint32_t port, unsigned bytes)
{
	bc_sim_single(bus, a->number, BC_CYCLE_IO_WRITE, port, bytes, port_ticks(port));
}

static void start_process(struct bc_sim_agent *a, unsigned process)
{
	bc_sim_program_init(&a->processes[process], bc_sim_random(&a->random));
}

static void start_phase(struct bc_sim_agent *a)
{
	uint32_t run = bc_sim_between(&a->random, 0, PROCESS_RUNS - 1);
	uint32_t calls = bc_sim_between(&a->random, 14, 30);
	uint32_t rounds = bc_sim_between(&a->random, 8, 10);

	bc_sim_program_start(&a->processes[a->current], run, calls, rounds);
	a->state = USER;
}

/* Switches to another process; one time in 16, to a new one that replaces a finished one. */
static void start_turn(struct bc_sim_agent *a)
{
	a->current = bc_sim_between(&a->random, 0, BC_SIM_PROCESSES - 1);
	if (bc_sim_one_in(&a->random, 16))
		start_process(a, a->current);
	start_phase(a);
}

static void start_kernel(struct bc_sim_agent *a, enum state state, uint32_t run, uint32_t calls)
{
	bc_sim_program_start(&a->kernel, run, calls, 1);
	a->state = state;
}

static void set_device_tick(struct bc_sim_agent *a, uint64_t now)
{
	/* Only agent 0 has devices. */
	uint32_t wait = bc_sim_between(&a->random, DEVICE_TICKS_MIN, DEVICE_TICKS_MAX);

	a->device_tick = a->number == 0 ? now + wait : UINT64_MAX;
}

void bc_sim_agent_init(
	struct bc_sim_agent *a, uint64_t seed, unsigned number, const struct bc_sim_bus *bus)
{
	memset(a, 0, sizeof(*a));
	a->random.state = bc_sim_mix(seed + number);
	a->number = number;
	a->call_rounds = 1;
	a->timer_tick = bus->free + bc_sim_between(&a->random, 1, TIMER_TICKS);
	set_device_tick(a, bus->free);
	bc_sim_program_init_kernel(&a->kernel, seed, number);
	for (unsigned i = 0; i < BC_SIM_PROCESSES; i++)
		start_process(a, i);
	start_phase(a);
}

/* Acknowledges an interrupt, reads its gate descriptor and starts its handler. */
static void enter_interrupt(struct bc_sim_agent *a, struct bc_sim_bus *bus, enum device device)
{
	static const struct {
		uint8_t vector, run, calls;
	} handlers[] = {
		[TIMER] = {0x20, RUN_TIMER, 8},
		[DISK] = {0x2E, RUN_DISK, 10},
		[SERIAL] = {0x24, RUN_SERIAL, 5},
		[NETWORK] = {0x2B, RUN_NETWORK, 12},
	};

	if (a->number == 0)
		bc_sim_int_ack(bus, 0);
	uint32_t gate = bc_sim_program_data(&a->kernel, IDT_AT + handlers[device].vector * 8u);
	bc_sim_read(bus, a->number, gate, 8);
	a->device = device;
	start_kernel(a, HANDLER, handlers[device].run, handlers[device].calls);
}

static void write_end_of_interrupt(struct bc_sim_agent *a, struct bc_sim_bus *bus)
{
	if (a->number != 0)
		return;
	if (a->device == DISK || a->device == NETWORK)
		io_write(a, bus, PORT_PIC2, 1);
	io_write(a, bus, PORT_PIC1, 1);
}

/* Enters the handler of a pending interrupt. Returns false if none is pending. */
static bool enter_due_interrupt(struct bc_sim_agent *a, struct bc_sim_bus *bus)
{
	uint64_t now = bc_sim_port_now(port_of(a, bus));

	if (now >= a->timer_tick) {
		a->timer_tick += TIMER_TICKS;
		enter_interrupt(a, bus, TIMER);
		return true;
	}
	if (now >= a->device_tick) {
		set_device_tick(a, now);
		enter_interrupt(a, bus, (enum device)bc_sim_between(&a->random, DISK, NETWORK));
		return true;
	}
	return false;
}

static void call_kernel(struct bc_sim_agent *a, struct bc_sim_bus *bus)
{
	uint32_t number = bc_sim_between(&a->random, 0, SYSCALLS - 1);

	a->call_rounds = bc_sim_between(&a->random, 4, 7);
	if (bc_sim_one_in(&a->random, 4))
		bc_sim_exchange(
			bus, a->number, bc_sim_program_data(&a->kernel, LOCKS_AT + number * 32));
	start_kernel(a, SYSCALL, RUN_SYSCALLS + number, 6 + number);
}

/* No process is ready. A processor waits for its interrupts, or for work from another processor. */
static void go_idle(struct bc_sim_agent *a, const struct bc_sim_bus *bus)
{
	uint32_t wait = bc_sim_between(
		&a->random, IDLE_TICKS_MIN, loads[bus->agents].idle_ticks_max);

	a->is_idle = true;
	a->idle_until = bus->ports[a->number].clock + wait;
	start_kernel(a, IDLE, RUN_IDLE, 2);
}

/* Flushes the caches: by WBINVD, as after a change of memory types, or by the FLUSH# pin. */
static void flush_caches(struct bc_sim_agent *a, struct bc_sim_bus *bus)
{
	bool is_pin = bc_sim_one_in(&a->random, 3);

	bc_sim_write_back_all(bus, a->number);
	if (is_pin) {
		bc_sim_special(bus, a->number, BC_SPECIAL_FLUSH_ACK, 0);
	} else {
		bc_sim_special(bus, a->number, BC_SPECIAL_WRITE_BACK, 0);
		bc_sim_special(bus, a->number, BC_SPECIAL_FLUSH, 0);
	}
}

/* A process has finished a phase: the processor goes idle, switches or continues. */
static void end_phase(struct bc_sim_agent *a, struct bc_sim_bus *bus)
{
	if (bc_sim_one_in(&a->random, 64))
		flush_caches(a, bus);
	if (bc_sim_between(&a->random, 0, 63) < loads[bus->agents].idle_per_64)
		go_idle(a, bus);
	else if (bc_sim_one_in(&a->random, 2))
		start_kernel(a, SWITCH, RUN_SWITCH, 6);
	else
		start_phase(a);
}

static void run_user(struct bc_sim_agent *a, struct bc_sim_bus *bus)
{
	if (enter_due_interrupt(a, bus))
		return;
	switch (bc_sim_program_step(&a->processes[a->current], bus, a->number)) {
	case BC_SIM_STEP_CONTINUES:
		break;
	case BC_SIM_STEP_ROUND:
		if (--a->call_rounds == 0)
			call_kernel(a, bus);
		break;
	case BC_SIM_STEP_OVER:
		end_phase(a, bus);
		break;
	}
}

static void access_device(struct bc_sim_agent *a, struct bc_sim_bus *bus)
{
	uint32_t slots = BUFFERS_BYTES / (SECTOR_WORDS * 4) - 1;

	a->transfer_at = BUFFERS_AT + bc_sim_between(&a->random, 0, slots) * SECTOR_WORDS * 4;
	switch ((enum device)a->device) {
	case TIMER:
		io_write(a, bus, PORT_PIT_MODE, 1);
		io_read(a, bus, PORT_PIT_COUNT, 1);
		io_read(a, bus, PORT_PIT_COUNT, 1);
		break;
	case DISK:
		io_read(a, bus, PORT_DISK_STATUS, 1);
		a->words_left = SECTOR_WORDS;
		break;
	case SERIAL:
		io_read(a, bus, PORT_SERIAL_IIR, 1);
		io_read(a, bus, PORT_SERIAL_LSR, 1);
		io_read(a, bus, PORT_SERIAL_DATA, 1);
		io_write(a, bus, PORT_SERIAL_DATA, 1);
		break;
	case NETWORK:
		io_read(a, bus, PORT_NETWORK, 2);
		io_write(a, bus, PORT_NETWORK + 4, 4);
		a->words_left = PACKET_WORDS;
		break;
	}
}

/* After an interrupt the processor continues where it was. It switches to another process if a
 * timer tick ends the turn, or if its idle time is over. */
static void finish_interrupt(struct bc_sim_agent *a, struct bc_sim_bus *bus)
{
	bool was_idle = a->is_idle;

	write_end_of_interrupt(a, bus);
	a->is_idle = was_idle && bc_sim_port_now(port_of(a, bus)) < a->idle_until;
	if (a->is_idle)
		start_kernel(a, IDLE, RUN_IDLE, 2);
	else if (was_idle || (a->device == TIMER && bc_sim_one_in(&a->random, 2)))
		start_kernel(a, SWITCH, RUN_SWITCH, 6);
	else
		a->state = USER;
}

static void run_handler(struct bc_sim_agent *a, struct bc_sim_bus *bus)
{
	if (bc_sim_program_step(&a->kernel, bus, a->number) != BC_SIM_STEP_OVER)
		return;
	if (a->number == 0)
		access_device(a, bus);
	if (a->words_left != 0)
		a->state = TRANSFER;
	else
		finish_interrupt(a, bus);
}

static void run_transfer(struct bc_sim_agent *a, struct bc_sim_bus *bus)
{
	if (a->device == DISK)
		io_read(a, bus, PORT_DISK_DATA, 4);
	else
		bc_sim_single(bus, a->number, BC_CYCLE_NC_D_READ,
			NETWORK_MEMORY + (PACKET_WORDS - a->words_left) * 4, 4, PCI_TICKS);
	bc_sim_write(bus, a->number, bc_sim_program_data(&a->kernel, a->transfer_at), 4);
	a->transfer_at += 4;
	a->words_left--;
	if (a->words_left == 0)
		finish_interrupt(a, bus);
}

static void run_idle(struct bc_sim_agent *a, struct bc_sim_bus *bus)
{
	if (bc_sim_program_step(&a->kernel, bus, a->number) != BC_SIM_STEP_OVER)
		return;
	if (a->number == 0 && bc_sim_one_in(&a->random, 4)) {
		/* The firmware in ROM stops the processor's clock. */
		for (uint32_t i = 0; i < 24; i++)
			bc_sim_single(
				bus, 0, BC_CYCLE_NC_I_FETCH, FIRMWARE + i * 8, 8, FIRMWARE_TICKS);
		io_write(a, bus, PORT_APM, 1);
		bc_sim_special(bus, 0, BC_SPECIAL_HALT, 0x10);
	} else {
		bc_sim_special(bus, a->number, BC_SPECIAL_HALT, 0);
	}
	a->state = HALTED;
}

static uint64_t earlier(uint64_t tick, uint64_t other)
{
	return tick < other ? tick : other;
}

static void run_halted(struct bc_sim_agent *a, struct bc_sim_bus *bus)
{
	struct bc_sim_port *port = port_of(a, bus);
	uint64_t now = bc_sim_port_now(port);
	uint64_t next = earlier(a->timer_tick, a->device_tick);

	if (bus->agents > 1)
		next = earlier(next, a->idle_until);
	if (next > now)
		bc_sim_think(port, (uint32_t)(next - now) * BC_SIM_CORE_PER_TICK);
	if (enter_due_interrupt(a, bus))
		return;
	a->is_idle = false;
	start_turn(a);
}

void bc_sim_agent_run(struct bc_sim_agent *a, struct bc_sim_bus *bus)
{
	while (bc_sim_port_is_empty(port_of(a, bus))) {
		switch ((enum state)a->state) {
		case USER:
			run_user(a, bus);
			break;
		case SYSCALL:
			if (bc_sim_program_step(&a->kernel, bus, a->number) == BC_SIM_STEP_OVER)
				a->state = USER;
			break;
		case HANDLER:
			run_handler(a, bus);
			break;
		case TRANSFER:
			run_transfer(a, bus);
			break;
		case SWITCH:
			if (bc_sim_program_step(&a->kernel, bus, a->number) == BC_SIM_STEP_OVER)
				start_turn(a);
			break;
		case IDLE:
			run_idle(a, bus);
			break;
		case HALTED:
			run_halted(a, bus);
			break;
		}
	}
}
