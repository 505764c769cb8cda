#include "formats/codec/bus_printer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "formats/base/bytes.h"
#include "formats/bus/bcp1_writer.h"
#include "formats/bus/page_map.h"
#include "formats/codec/bus_encode.h"

struct bus {
	bool is_framed;
	bool has_map;
	bool is_ticked;  /* the trace has times */
	bool has_agents; /* the trace has processors */
	/* The reference whose samples are being written. */
	bool is_open;
	struct bc_bus_encoder cycles;
	struct bc_page_map map;
	/* Used only with frames. */
	uint64_t tick;
	uint32_t epoch;
	bool has_epoch;
	struct bc_bcp1_writer writer;
};

_Static_assert(BC_BCP1_WRITER_MAX <= BC_PRINT_MAX, "the frames of one call fit");

static void bus_init(struct bus *bus, const struct bc_format_options *options, bool is_framed)
{
	bus->is_framed = is_framed;
	bus->has_map = options->map_pages;
	bus->is_ticked = (options->source_holds & BC_HAS_TIME) != 0;
	bus->has_agents = (options->source_holds & BC_HAS_PROC) != 0;
	bc_page_map_init(&bus->map, options->seed);
	if (is_framed)
		bc_bcp1_writer_init(&bus->writer);
}

static void raw6_init(void *state, const struct bc_format_options *options)
{
	bus_init(state, options, false);
}

static void bcp1_init(void *state, const struct bc_format_options *options)
{
	bus_init(state, options, true);
}

static void bus_free(void *state)
{
	struct bus *bus = state;

	bc_page_map_free(&bus->map);
}

static int check_frame_fields(const struct bus *bus, struct bc_print *p)
{
	const struct bc_entry *entry = p->entries;

	if (!bus->is_framed)
		return 0;
	if (entry->proc > UINT8_MAX) {
		snprintf(p->err, sizeof(p->err),
			"processor 0x%x doesn't fit in the 8 bits of a frame", entry->proc);
		return -ERANGE;
	}
	if ((entry->has & BC_HAS_TIME) != 0 && entry->tick >= BC_TICK_END) {
		snprintf(p->err, sizeof(p->err),
			"time 0x%" PRIx64 " doesn't fit in the 63 bits of a frame's tick",
			entry->tick);
		return -ERANGE;
	}
	return 0;
}

static int check_address(const struct bus *bus, struct bc_print *p)
{
	const struct bc_bus_encoder *c = &bus->cycles;
	const char *hint = bus->has_map || !c->is_memory ? "" : "; try map=pages";

	if (c->last <= UINT32_MAX)
		return 0;
	if (c->addr > UINT32_MAX)
		snprintf(p->err, sizeof(p->err),
			"address 0x%" PRIx64 " doesn't fit in the 32 bits of the bus%s", c->addr,
			hint);
	else
		snprintf(p->err, sizeof(p->err),
			"end address 0x%" PRIx64 " doesn't fit in the 32 bits of the bus%s",
			c->last, hint);
	return -ERANGE;
}

static int touch_pages(struct bus *bus, struct bc_print *p)
{
	const struct bc_bus_encoder *c = &bus->cycles;
	int rc = bc_page_map_touch(&bus->map, c->addr >> BC_PAGE_BITS, c->last >> BC_PAGE_BITS);

	if (rc == -ENOSPC) {
		snprintf(p->err, sizeof(p->err),
			"address 0x%" PRIx64
			" needs a page, and all %u pages of 32 bits are in use",
			c->addr, BC_PAGES_MAX);
		return -ERANGE;
	}
	if (rc != 0)
		snprintf(p->err, sizeof(p->err), "out of memory for the page map");
	return rc;
}

/* Checks the whole reference before its first sample is written. */
static int open_reference(struct bus *bus, struct bc_print *p)
{
	struct bc_bus_encoder *c = &bus->cycles;
	int rc = check_frame_fields(bus, p);

	if (rc != 0)
		return rc;
	if (!bc_bus_encoder_start(c, p->entries)) {
		snprintf(p->err, sizeof(p->err),
			"0x%" PRIx32 " bytes at address 0x%" PRIx64
			" extend beyond 64 bits of address",
			p->entries->size, p->entries->addr);
		return -ERANGE;
	}
	rc = bus->has_map && c->is_memory ? touch_pages(bus, p) : check_address(bus, p);
	if (rc != 0)
		return rc;
	for (uint32_t lost = c->lost; lost != 0; lost &= lost - 1)
		bc_print_lose(p, lost & (0 - lost));
	p->splits += c->is_split && c->addr / 8 != c->last / 8;
	bus->is_open = true;
	return 0;
}

static void write_framed(struct bus *bus, struct bc_print *p, const uint8_t sample[BC_SAMPLE_BYTES])
{
	const struct bc_entry *entry = p->entries;

	if ((entry->has & BC_HAS_TIME) != 0) {
		if (entry->tick < bus->tick && entry->epoch == bus->epoch)
			bc_print_lose(p, BC_HAS_TIME);
		bus->tick = entry->tick;
	} else {
		bus->tick += !bus->is_ticked;
	}
	bool is_epoch = bus->has_epoch && entry->epoch != bus->epoch;
	bus->has_epoch = true;
	bus->epoch = entry->epoch;
	p->used += bc_bcp1_writer_add(&bus->writer, (uint8_t *)p->out + p->used, sample,
		entry->proc, bus->tick, is_epoch);
}

static void write_sample(struct bus *bus, struct bc_print *p, const uint8_t sample[BC_SAMPLE_BYTES])
{
	if (bus->is_framed) {
		write_framed(bus, p, sample);
		return;
	}
	memcpy(p->out + p->used, sample, BC_SAMPLE_BYTES);
	p->used += BC_SAMPLE_BYTES;
}

/* Writes the next sample of the open reference. */
static void write_cycle(struct bus *bus, struct bc_print *p)
{
	uint8_t sample[BC_SAMPLE_BYTES];
	uint64_t addr;

	bc_bus_encoder_next(&bus->cycles, &addr, &sample[4]);
	if (bus->has_map && bus->cycles.is_memory) {
		uint64_t low = addr & ((1u << BC_PAGE_BITS) - 1);
		uint64_t frame = bc_page_map_frame(&bus->map, addr >> BC_PAGE_BITS);
		addr = frame << BC_PAGE_BITS | low;
	}
	bc_write_be32(sample, (uint32_t)addr);
	sample[5] = bus->cycles.control;
	if (bus->is_framed && bus->has_agents && p->entries->proc < 16)
		sample[5] |= (uint8_t)p->entries->proc;
	write_sample(bus, p, sample);
}

static void write_gap(struct bus *bus, struct bc_print *p, const struct bc_event *gap)
{
	/* A board that has lost count sends this number. */
	bool is_many = gap->cause == BC_GAP_BOARD && gap->value >= BC_BCP1_LOST_MANY;
	bool is_held = false;

	if (gap->cause == BC_GAP_SEQUENCE)
		is_held = !gap->exact && gap->value == 0;
	else if (gap->cause == BC_GAP_BOARD)
		is_held = gap->exact ? !is_many : gap->value == BC_BCP1_LOST_MANY;
	if (!is_held || gap->duration_ns != 0)
		bc_print_lose(p, BC_CAN_EVENT);
	p->used += bc_bcp1_writer_gap(
		&bus->writer, (uint8_t *)p->out + p->used, gap->value, gap->exact || is_many);
}

/* A new epoch needs no event: its first entry carries the epoch. */
static void write_event(struct bus *bus, struct bc_print *p)
{
	const struct bc_entry *entry = p->entries;

	switch (entry->note.event.kind) {
	case 0:
		return;
	case BC_EVENT_GAP:
		write_gap(bus, p, &entry->note.event);
		return;
	case BC_EVENT_TRIGGER:
		if (entry->note.text.bytes != 0)
			bc_print_lose(p, BC_CAN_EVENT);
		p->used += bc_bcp1_writer_trigger(&bus->writer, (uint8_t *)p->out + p->used);
		return;
	default:
		bc_print_lose(p, BC_CAN_EVENT);
	}
}

static int print_bus(void *state, struct bc_print *p)
{
	struct bus *bus = state;
	int rc = 0;

	for (; p->count != 0 && bc_print_has_room(p); p->count--, p->entries++) {
		const struct bc_entry *entry = p->entries;
		if (entry->kind == BC_ENTRY_EVENT) {
			write_event(bus, p);
			continue;
		}
		if ((entry->has & BC_HAS_SAMPLE) != 0) {
			rc = check_frame_fields(bus, p);
			if (rc != 0)
				return rc;
			write_sample(bus, p, entry->sample);
			continue;
		}
		if (!bus->is_open)
			rc = open_reference(bus, p);
		if (rc != 0)
			return rc;
		while (!bus->cycles.is_over) {
			/* A long reference continues in the next call. */
			if (!bc_print_has_room(p))
				return 0;
			write_cycle(bus, p);
		}
		bus->is_open = false;
	}
	return 0;
}

static bool print_tail(void *state, struct bc_print *p)
{
	struct bus *bus = state;

	p->used += bc_bcp1_writer_finish(&bus->writer, (uint8_t *)p->out + p->used);
	return true;
}

const struct bc_printer bc_raw6_printer = {
	.state_bytes = sizeof(struct bus), .init = raw6_init, .print = print_bus, .free = bus_free};

const struct bc_printer bc_bcp1_printer = {.state_bytes = sizeof(struct bus),
	.init = bcp1_init,
	.print = print_bus,
	.tail = print_tail,
	.free = bus_free};
