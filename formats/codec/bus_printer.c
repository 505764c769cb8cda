/* Printers of what a capture board sends: bus samples, bare (raw6, formats/bus/sample.h) or in
 * frames (bcp1, docs/board-protocol.md).
 *
 * An entry that has a bus sample is written as that sample. Any other entry is converted to bus
 * cycles (bus_encoder_start()), split at 8 bytes. Attributes and special cycles that these
 * cannot express are counted as lost. An address beyond 32 bits is an error, unless map=pages
 * assigns physical pages (formats/bus/page_map.h) to the addresses of fetches, reads and writes.
 * I/O, special cycles and existing samples keep their addresses.
 *
 * Only bcp1 holds times: the absolute ticks. All samples of one entry have the same tick. In a
 * trace without a clock, each sample takes one tick; the first is at tick 1. A frame has an 8-bit
 * processor id. Epochs, triggers and gaps are kept. A gap keeps whether its number is exact, but no
 * duration and no cause other than the board's and missing frames. Whatever is not kept is counted
 * as lost, and so are marks. */
#include "formats/codec/codecs.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/bus/bcp1.h"
#include "formats/bus/page_map.h"
#include "formats/bus/sample.h"
#include "formats/trace/entry.h"

/* Writes samples as bcp1 frames (docs/board-protocol.md).
 *
 *     bcp1_writer_add(), _gap(), _trigger() ...    in trace order
 *     bcp1_writer_finish()                         the last frame, with flag 8
 *
 * Each call appends complete frames to the output, BC_BCP1_WRITER_MAX bytes at most.
 *
 * A frame ends after 2048 samples, before a delta above 65,535 ticks or below 0, before a loss or a
 * trigger, and before a sample whose processor does not fit: either the low nibble of each control
 * byte is the sample's processor (flag 1), or all samples have the header's processor. */

#define BC_BCP1_WRITER_SAMPLES 2048
#define BC_BCP1_WRITER_FRAME \
	(BC_BCP1_HEADER_BYTES + BC_BCP1_WRITER_SAMPLES * BC_BCP1_SAMPLE_BYTES + BC_BCP1_CRC_BYTES)
#define BC_BCP1_WRITER_MAX (BC_BCP1_WRITER_FRAME + 2 * BC_BCP1_HEADER_BYTES)

struct bc_bcp1_writer {
	uint32_t sequence; /* of the next frame */
	bool has_started;  /* a header was written, or samples are in `frame` */
	uint64_t tick;     /* of the last sample or header */
	/* To be reported before the next sample. */
	bool has_loss;
	uint64_t lost;
	bool has_trigger;
	/* The frame being filled. */
	uint32_t samples;
	uint64_t first_tick;
	uint8_t proc;     /* of its first sample */
	bool is_one_proc; /* all samples have processor `proc` */
	bool is_agents;   /* each low nibble is the sample's processor */
	bool has_nibble;  /* some low nibble is not 0 */
	uint8_t frame[BC_BCP1_WRITER_FRAME];
};

/* Converts a reference to Pentium bus cycles: the inverse of formats/bus/sample.h by default.
 *
 *     bus_encoder_start()          selects the cycles and determines what they cannot express
 *     bus_encoder_next() ...       returns address and byte enables of one sample after another
 *
 *   type                  cycles
 *   FETCH                 I_FETCH, a burst, for 32 bytes with a known attr other than 0;
 *                         otherwise NC_I_FETCH
 *   MEMREAD               D_READ, a burst, on the same condition; otherwise NC_D_READ
 *   MEMWRITE              WRITE_BACK, a burst, for 32 bytes with an attr other than 0 and 1;
 *                         otherwise D_WRITE
 *   IOREAD IOWRITE INTA   IO_READ, IO_WRITE, INT_ACK
 *   SHUTDOWN ... HALT     SPECIAL, selected by byte enables; CNTRLAGNTRES has BE FF. Address
 *                         bit 4 is set for STOPCLKACK and clear for HALT
 *   F0 + n                the invalid cycle n
 *
 * A burst or a special cycle is one sample with the unchanged address; a burst has byte enables 00.
 * All other references are split at multiples of 8 bytes, the width of the bus: one sample per 8
 * bytes, with an aligned address. A reference without a size, or with size 0, is one sample with
 * the unchanged address and BE FF. */

struct bc_bus_encoder {
	uint64_t addr;   /* next byte; before the first sample, the address of the reference */
	uint64_t last;   /* address of the last byte, or `addr` if the address is used unchanged */
	uint8_t be;      /* byte enables of a sample that is not split */
	uint8_t control; /* of every sample: the cycle type, low nibble 0 */
	bool is_split;   /* split into samples of at most 8 bytes */
	bool is_memory;  /* the address is a memory address */
	bool is_over;
	uint32_t lost; /* traits of the reference that the cycles do not represent */
};

#define DELTA_MAX 0xFFFFu

/* The next frame's header, which reports any pending loss and trigger. */
static struct bc_bcp1_header next_header(struct bc_bcp1_writer *w, uint64_t tick)
{
	struct bc_bcp1_header header = {.sequence = w->sequence++, .tick = tick};

	if (w->has_loss) {
		header.flags |= BC_BCP1_LOSS;
		header.lost = w->lost < BC_BCP1_LOST_MANY ? (uint32_t)w->lost : BC_BCP1_LOST_MANY;
	}
	if (w->has_trigger)
		header.flags |= BC_BCP1_TRIGGER;
	w->has_loss = false;
	w->has_trigger = false;
	w->lost = 0;
	w->has_started = true;
	return header;
}

static void write_empty_frame(
	struct bc_bcp1_writer *w, struct bc_print *p, uint64_t tick, uint16_t flags)
{
	struct bc_bcp1_header header = next_header(w, tick);

	header.flags |= flags;
	w->tick = tick;
	p->used += bc_bcp1_write_frame((uint8_t *)p->out + p->used, &header);
}

/* Writes the frame that is being filled, if it has samples. */
static void flush_frame(struct bc_bcp1_writer *w, struct bc_print *p)
{
	if (w->samples == 0)
		return;
	struct bc_bcp1_header header = next_header(w, w->first_tick);
	header.samples = w->samples;
	/* If all samples have processor 0, both forms are possible: prefer the one without flag. */
	if (w->is_agents && (!w->is_one_proc || w->has_nibble))
		header.flags |= BC_BCP1_AGENT;
	else
		header.proc = w->proc;
	size_t bytes = bc_bcp1_write_frame(w->frame, &header);
	memcpy(p->out + p->used, w->frame, bytes);
	p->used += bytes;
	w->samples = 0;
}

/* True if the sample can be added to the frame. */
static bool fits_frame(const struct bc_bcp1_writer *w, unsigned proc, bool is_agent, uint64_t tick)
{
	return w->samples < BC_BCP1_WRITER_SAMPLES && tick >= w->tick &&
	       tick - w->tick <= DELTA_MAX &&
	       ((w->is_one_proc && proc == w->proc) || (w->is_agents && is_agent));
}

static void start_epoch(struct bc_bcp1_writer *w, struct bc_print *p, uint64_t tick)
{
	flush_frame(w, p);
	if (!w->has_started || tick < w->tick)
		return;
	if (w->tick == 0)
		write_empty_frame(w, p, 1, 0);
	write_empty_frame(w, p, 0, 0);
}

/* Adds a sample of a processor (below 256) at an absolute tick (below BC_TICK_END). A tick below
 * the previous sample's starts a new epoch at the receiver. With is_epoch, a new epoch always
 * starts: if the tick is not lower, empty frames with lower ticks are inserted. */
static void bcp1_writer_add(struct bc_bcp1_writer *w, struct bc_print *p,
	const uint8_t sample[BC_SAMPLE_BYTES], unsigned proc, uint64_t tick, bool is_epoch)
{
	unsigned nibble = sample[5] & 15;

	if (is_epoch)
		start_epoch(w, p, tick);
	else if (w->samples != 0 && !fits_frame(w, proc, nibble == proc, tick))
		flush_frame(w, p);
	if (w->samples == 0) {
		w->first_tick = tick;
		w->tick = tick;
		w->proc = (uint8_t)proc;
		w->is_one_proc = true;
		w->is_agents = true;
		w->has_nibble = false;
	}
	uint8_t *to = w->frame + BC_BCP1_HEADER_BYTES + (size_t)w->samples * BC_BCP1_SAMPLE_BYTES;
	memcpy(to, sample, BC_SAMPLE_BYTES);
	bc_write_le16(to + BC_SAMPLE_BYTES, (uint16_t)(tick - w->tick));
	w->is_one_proc &= proc == w->proc;
	w->is_agents &= nibble == proc;
	w->has_nibble |= nibble != 0;
	w->tick = tick;
	w->has_started = true;
	w->samples++;
}

/* Records that `lost` samples are missing here, exactly or at least. If not exact, a sequence
 * number is skipped, which means a gap of unknown size, and `lost` is reported as a loss, too. */
static void bcp1_writer_gap(
	struct bc_bcp1_writer *w, struct bc_print *p, uint64_t lost, bool is_exact)
{
	flush_frame(w, p);
	/* The first frame can have any number: a skipped number shows only after a frame. */
	if (!is_exact && !w->has_started)
		write_empty_frame(w, p, 0, 0);
	w->sequence += !is_exact;
	w->has_loss |= is_exact || lost != 0;
	w->lost += lost;
}

/* Records that the trigger fired at the next sample. */
static void bcp1_writer_trigger(struct bc_bcp1_writer *w, struct bc_print *p)
{
	flush_frame(w, p);
	/* A header can report only one trigger. */
	if (w->has_trigger)
		write_empty_frame(w, p, w->tick, 0);
	w->has_trigger = true;
}

/* Writes the last frame. */
static void bcp1_writer_finish(struct bc_bcp1_writer *w, struct bc_print *p)
{
	flush_frame(w, p);
	write_empty_frame(w, p, w->tick, BC_BCP1_LAST);
}

/* ---- bus encode */

#define BURST_BYTES 32
#define HALT_BIT    0x10u
#define BE_NONE     0xFF
#define BE_ALL      0x00

/* How the bus expresses a reference type. */
struct cycle_row {
	uint8_t cycle;
	uint8_t attr;  /* attribute that the mapping assigns to the cycle */
	uint8_t burst; /* its burst cycle; 0: none */
	bool is_memory;
};

static struct cycle_row cycle_row_of(unsigned type)
{
	switch (type) {
	case BC_REQ_FETCH:
		return (struct cycle_row){BC_CYCLE_NC_I_FETCH, 0, BC_CYCLE_I_FETCH, true};
	case BC_REQ_MEMREAD:
		return (struct cycle_row){BC_CYCLE_NC_D_READ, 0, BC_CYCLE_D_READ, true};
	case BC_REQ_MEMWRITE:
		return (struct cycle_row){BC_CYCLE_D_WRITE, 1, BC_CYCLE_WRITE_BACK, true};
	case BC_REQ_IOREAD:
		return (struct cycle_row){.cycle = BC_CYCLE_IO_READ};
	case BC_REQ_IOWRITE:
		return (struct cycle_row){.cycle = BC_CYCLE_IO_WRITE};
	case BC_REQ_INTA:
		return (struct cycle_row){.cycle = BC_CYCLE_INT_ACK};
	default:
		return (struct cycle_row){
			.cycle = type >= BC_REQ_INVALID ? type & 15 : BC_CYCLE_SPECIAL};
	}
}

static uint8_t special_enables(unsigned type)
{
	return type == BC_REQ_SHUTDOWN                            ? BC_SPECIAL_SHUTDOWN
	       : type == BC_REQ_FLUSH                             ? BC_SPECIAL_FLUSH
	       : type == BC_REQ_HALT || type == BC_REQ_STOPCLKACK ? BC_SPECIAL_HALT
	       : type == BC_REQ_SYNC                              ? BC_SPECIAL_WRITE_BACK
	       : type == BC_REQ_FLUSHACK                          ? BC_SPECIAL_FLUSH_ACK
	       : type == BC_REQ_BRTRACEREC                        ? BC_SPECIAL_BRANCH_TRACE
								  : BE_NONE; /* CNTRLAGNTRES */
}

/* Address bit 4 distinguishes the two cycles. If the address has to change, that is counted. */
static void set_halt(struct bc_bus_encoder *c, unsigned type)
{
	uint64_t addr = c->addr & ~(uint64_t)HALT_BIT;

	if (type == BC_REQ_STOPCLKACK)
		addr |= HALT_BIT;
	if (addr != c->addr)
		c->lost |= BC_TRAIT_CYCLE;
	c->addr = addr;
}

/* Starts encoding a reference. Its type must exist on a Pentium bus. Returns false, with *encoder
 * set, if the reference extends beyond 64 bits of address. */
static bool bus_encoder_start(struct bc_bus_encoder *c, const struct bc_entry *entry)
{
	struct cycle_row row = cycle_row_of(entry->type);
	bool has_attr = (entry->traits & BC_TRAIT_ATTR) != 0;
	bool is_special = row.cycle == BC_CYCLE_SPECIAL;
	bool is_burst = row.burst != 0 && has_attr && entry->size == BURST_BYTES &&
			entry->attr != 0 && entry->attr != row.attr;

	*c = (struct bc_bus_encoder){.addr = entry->addr,
		.be = is_burst ? BE_ALL : BE_NONE,
		.is_split = !is_burst && !is_special && entry->size != 0,
		.is_memory = row.is_memory};
	if (is_burst) {
		row.cycle = row.burst;
		row.attr = 3;
	}
	c->control = (uint8_t)(row.cycle << 4);
	if (is_special) {
		c->be = special_enables(entry->type);
		if (c->be == BC_SPECIAL_HALT)
			set_halt(c, entry->type);
		if (entry->size != 0)
			c->lost |= BC_TRAIT_SIZE;
	}
	if (has_attr && entry->attr != row.attr)
		c->lost |= BC_TRAIT_ATTR;
	c->last = c->addr + (c->is_split ? entry->size - 1 : 0);
	return c->last >= c->addr;
}

/* Returns address and byte enables of the next sample. Call only while !is_over. */
static void bus_encoder_next(struct bc_bus_encoder *c, uint64_t *addr, uint8_t *be)
{
	assert(!c->is_over);
	if (!c->is_split) {
		*addr = c->addr;
		*be = c->be;
		c->is_over = true;
		return;
	}
	uint64_t quad = c->addr & ~UINT64_C(7);
	bool is_last = c->last - quad < 8;
	unsigned first = (unsigned)(c->addr & 7);
	unsigned end = is_last ? (unsigned)(c->last & 7) + 1 : 8;
	*addr = quad;
	*be = (uint8_t) ~((1u << end) - (1u << first));
	c->is_over = is_last;
	c->addr = quad + 8;
}

/* ---- bus printer */

#define BUS_ROW_BITS 11

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
	uint64_t rows[1u << BUS_ROW_BITS]; /* see print_record_run() */
	struct bc_bcp1_writer writer;
};

_Static_assert(BC_BCP1_WRITER_MAX <= BC_PRINT_MAX, "the frames of one call fit");

static void bus_init(struct bus *bus, const struct bc_format_options *options, bool is_framed)
{
	bus->is_framed = is_framed;
	bus->has_map = options->map_pages;
	bus->is_ticked = (options->source_traits & BC_TRAIT_TIME) != 0;
	bus->has_agents = (options->source_traits & BC_TRAIT_PROC) != 0;
	bc_page_map_init(&bus->map, options->seed);
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
	if (entry->proc > UINT8_MAX)
		return BC_REFUSE(
			p, "processor 0x%x doesn't fit in the 8 bits of a frame", entry->proc);
	if ((entry->traits & BC_TRAIT_TIME) != 0 && entry->tick >= BC_TICK_END)
		return BC_REFUSE(p,
			"time 0x%" PRIx64 " doesn't fit in the 63 bits of a frame's tick",
			entry->tick);
	return 0;
}

static int check_address(const struct bus *bus, struct bc_print *p)
{
	const struct bc_bus_encoder *c = &bus->cycles;
	const char *hint = bus->has_map || !c->is_memory ? "" : "; try map=pages";

	if (c->last <= UINT32_MAX)
		return 0;
	bool is_start = c->addr > UINT32_MAX;
	return BC_REFUSE(p, "%saddress 0x%" PRIx64 " doesn't fit in the 32 bits of the bus%s",
		is_start ? "" : "end ", is_start ? c->addr : c->last, hint);
}

static int touch_pages(struct bus *bus, struct bc_print *p)
{
	const struct bc_bus_encoder *c = &bus->cycles;
	int rc = bc_page_map_touch(&bus->map, c->addr >> BC_PAGE_BITS, c->last >> BC_PAGE_BITS);

	if (rc == -ENOSPC)
		return BC_REFUSE(p,
			"address 0x%" PRIx64
			" needs a page, and all %u pages of 32 bits are in use",
			c->addr, BC_PAGES_MAX);
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
	if (!bus_encoder_start(c, p->entries))
		return BC_REFUSE(p,
			"0x%" PRIx32 " bytes at address 0x%" PRIx64
			" extend beyond 64 bits of address",
			p->entries->size, p->entries->addr);
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

	if ((entry->traits & BC_TRAIT_TIME) != 0) {
		if (entry->tick < bus->tick && entry->epoch == bus->epoch)
			bc_print_lose(p, BC_TRAIT_TIME);
		bus->tick = entry->tick;
	} else {
		bus->tick += !bus->is_ticked;
	}
	bool is_epoch = bus->has_epoch && entry->epoch != bus->epoch;
	bus->has_epoch = true;
	bus->epoch = entry->epoch;
	bcp1_writer_add(&bus->writer, p, sample, entry->proc, bus->tick, is_epoch);
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

	bus_encoder_next(&bus->cycles, &addr, &sample[4]);
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
		bc_print_lose(p, BC_TRAIT_EVENT);
	bcp1_writer_gap(&bus->writer, p, gap->value, gap->exact || is_many);
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
			bc_print_lose(p, BC_TRAIT_EVENT);
		bcp1_writer_trigger(&bus->writer, p);
		return;
	default:
		bc_print_lose(p, BC_TRAIT_EVENT);
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
		if ((entry->traits & BC_TRAIT_SAMPLE) != 0) {
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

/* ---- runs of records
 *
 * Adds records to the frame that is being filled, as open_reference() and bcp1_writer_add() do in
 * the usual case: the record is one sample, and its processor is in the low nibble. A recording of
 * bus samples has no others. print_bus() begins and ends frames, and writes all others.
 *
 * How a record is written depends on its type, size and attribute and on the low bits of its
 * address. Each combination is encoded once, by bus_encoder_start(), and kept in a table, so that
 * the loop does the same for every record: which one comes next is unpredictable. */

/* A row of the table. The key is the three fields as in a record, then the three bits. */
enum {
	KEY_ADDR = 24,
	IS_ROW = 1 << 27,
	AT_ALIGNED = 28, /* the address bits that a sample does not have: 7 or 0 */
	AT_LOSES = 31,   /* 1 if the attribute is lost */
	AT_SAMPLE = 32,  /* byte enables and control byte */
	KEY_MASK = (1 << AT_ALIGNED) - 1,
};

static unsigned row_of(uint32_t key)
{
	return key * UINT32_C(0x9E3779B1) >> (32 - BUS_ROW_BITS);
}

/* Returns the row of a record, or 0 if records like this one are unusual. */
static __attribute__((noinline)) uint64_t make_row(const uint8_t *record, uint32_t key)
{
	struct bc_bus_encoder c;
	struct bc_entry entry;
	uint64_t addr;
	uint8_t enables;

	bc_entry_of_record(&entry, record, 0, 0);
	if (cycle_row_of(entry.type).cycle == BC_CYCLE_SPECIAL || entry.type >= BC_REQ_INVALID)
		return 0;
	entry.addr = key >> KEY_ADDR & 7;
	if (!bus_encoder_start(&c, &entry))
		return 0;
	bool is_split = c.is_split;
	bool loses = c.lost != 0;
	bus_encoder_next(&c, &addr, &enables);
	if (!c.is_over)
		return 0;
	return key | (uint64_t)(is_split ? 7 : 0) << AT_ALIGNED | (uint64_t)loses << AT_LOSES |
	       (uint64_t)(enables | c.control << 8) << AT_SAMPLE;
}

static bool can_print_run(const struct bus *bus, const struct bc_record_run *run)
{
	const struct bc_bcp1_writer *w = &bus->writer;

	return w->samples != 0 && w->is_agents && bus->has_agents && !bus->has_map &&
	       run->epoch == bus->epoch && run->tick == w->tick &&
	       run->tick < BC_TICK_END - DELTA_MAX * BC_BCP1_WRITER_SAMPLES;
}

static void print_record_run(void *state, struct bc_print *p, struct bc_record_run *run)
{
	struct bus *bus = state;
	struct bc_bcp1_writer *w = &bus->writer;
	uint32_t first_proc = (uint32_t)w->proc << 24;
	uint32_t procs = 0; /* differences */
	uint64_t ticks = 0;
	uint64_t lost = 0;
	uint32_t n = 0;

	if (!can_print_run(bus, run))
		return;
	uint32_t room = BC_BCP1_WRITER_SAMPLES - w->samples;
	uint32_t max = run->count < room ? (uint32_t)run->count : room;
	const uint8_t *in = run->records;
	uint8_t *out = w->frame + BC_BCP1_HEADER_BYTES + (size_t)w->samples * BC_BCP1_SAMPLE_BYTES;
	for (; n < max; n++, in += BC_RECORD_BYTES, out += BC_BCP1_SAMPLE_BYTES) {
		uint32_t addr = bc_le32(in);
		uint32_t meta = bc_le32(in + 4);
		uint32_t time = bc_le32(in + 8);
		uint32_t key = (meta & 0xFFFFFF) | (addr & 7) << KEY_ADDR | IS_ROW;
		uint64_t row = bus->rows[row_of(key)];
		if ((meta >> 28 | time >> 16) != 0)
			break;
		if (((row ^ key) & KEY_MASK) != 0) {
			row = make_row(in, key);
			if (row == 0)
				break;
			bus->rows[row_of(key)] = row;
		}
		bc_write_be32(out, addr & ~(uint32_t)(row >> AT_ALIGNED & 7));
		bc_write_le32(
			out + 4, (uint32_t)(row >> AT_SAMPLE) | (meta >> 24) << 8 | time << 16);
		procs |= meta ^ first_proc;
		ticks += time;
		lost += row >> AT_LOSES & 1;
	}
	p->trait_losses[__builtin_ctz(BC_TRAIT_ATTR)] += lost;
	w->samples += n;
	w->is_one_proc &= procs >> 24 == 0;
	w->has_nibble |= procs >> 24 != 0; /* also if the first is not 0: it has that already */
	bc_record_run_skip(run, n, ticks);
	w->tick = bus->tick = run->tick;
}

static bool print_tail(void *state, struct bc_print *p)
{
	struct bus *bus = state;

	bcp1_writer_finish(&bus->writer, p);
	return true;
}

const struct bc_printer bc_raw6_printer = {
	.state_bytes = sizeof(struct bus), .init = raw6_init, .print = print_bus, .free = bus_free};

const struct bc_printer bc_bcp1_printer = {.state_bytes = sizeof(struct bus),
	.init = bcp1_init,
	.print = print_bus,
	.print_run = print_record_run,
	.tail = print_tail,
	.free = bus_free};
