/* Printers of the BYU dialects (formats/bus/record.h). byu_row() defines the time of each record.
 *
 * An address, size, processor or time that does not fit its field is an error. */

/* ClickHouse RowBinary, write only: a row of 32 bytes per entry, little-endian.
 *
 *   offset  bytes  column
 *   0       4      session  UInt32, from the option session=N (default 0)
 *   4       8      seq      UInt64, number of the row, from 0
 *   12      8      t        UInt64, absolute tick
 *   20      12     the BYU record (formats/bus/record.h): addr UInt32; reqtype, size, attr, proc
 *                  UInt8; time UInt32
 *
 * docs/clickhouse.md has the table definition. `t` restarts with each epoch, as the ticks do.
 * Without a clock, each entry takes one tick, from 1 on (byu_row()). A value that
 * does not fit BYU is an error. Source: the manual of ClickHouse, RowBinary. */
#include "formats/codec/codecs.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>

#include "formats/base/bytes.h"
#include "formats/bus/chunk.h"
#include "formats/bus/record.h"

/* Converts entries to the fields of BYU records, for the printers of BYU and RowBinary.
 *
 * byu_row() converts each entry to one row, in order. The row's `time` is the entry's original
 * delta if that agrees with the absolute ticks of this entry and the previous one. Otherwise
 * (because entries between them were left out or traces were merged), and if there is no delta, it
 * is the difference of the ticks. The first delta of a slice is kept. The time is BC_TIME_NONE
 *
 *   for a first entry without a delta,
 *   at the start of an epoch,
 *   if the difference does not fit the field, or the ticks go back (both counted as lost),
 *   if an entry has no time but others of its trace do.
 *
 * The first tick of a trace or epoch is lost if the target has only times that don't add up to it.
 *
 * In a trace without a clock, each entry takes one tick; the first is at tick 1. Each bus sample
 * that was left out also counts as a tick. */

struct bc_byu_clock {
	uint64_t tick;   /* of the previous entry */
	uint64_t number; /* of the previous entry */
	uint32_t epoch;
	bool has_tick;    /* there was a previous entry with a time */
	bool is_ticked;   /* the trace has times */
	bool is_relative; /* the target has no absolute ticks: its first tick is its first time */
};

struct byu_row {
	uint64_t addr;
	uint8_t meta[4]; /* reqtype, size, attr, proc */
	uint64_t time;
	uint64_t tick; /* absolute */
};

static int refuse_field(struct bc_print *print, const char *what, uint64_t value, unsigned bits)
{
	return BC_REFUSE(print, "%s 0x%" PRIx64 " doesn't fit in the %u bits of a BYU record", what,
		value, bits);
}

/* Time field of an entry without a time. */
static uint64_t count_time(struct bc_byu_clock *clock, const struct bc_entry *entry)
{
	bool is_sample = (entry->traits & BC_TRAIT_SAMPLE) != 0;
	uint64_t step = 1;

	if (clock->is_ticked)
		return BC_TIME_NONE;
	if (!clock->has_tick) {
		clock->has_tick = true;
		clock->tick = is_sample ? entry->number + 1 : 1;
		return BC_TIME_NONE;
	}
	if (is_sample && entry->number > clock->number)
		step = entry->number - clock->number;
	clock->tick += step;
	return step < BC_TIME_NONE ? step : BC_TIME_NONE;
}

/* Returns the time of the first entry of a trace or an epoch. Counts its tick as lost if a reader
 * that adds the times would get a different tick. */
static uint64_t first_time(const struct bc_byu_clock *clock, const struct bc_entry *entry,
	struct bc_print *print, uint64_t time)
{
	if (clock->is_relative && entry->tick != (time != BC_TIME_NONE ? time : 0))
		bc_print_lose(print, BC_TRAIT_TIME);
	return time;
}

static uint64_t time_of(struct bc_byu_clock *clock, const struct bc_entry *entry,
	struct bc_print *print, uint64_t max)
{
	uint64_t difference = entry->tick - clock->tick;
	uint64_t reported = entry->delta != BC_TIME_NONE ? entry->delta : 0;
	bool has_fallen = entry->tick < clock->tick;

	if (!clock->has_tick)
		return first_time(
			clock, entry, print, entry->has_delta ? entry->delta : BC_TIME_NONE);
	if (entry->epoch != clock->epoch)
		return first_time(clock, entry, print, BC_TIME_NONE);
	/* Do not invent a delta from ticks that are only lower bounds. */
	if (entry->has_delta && entry->delta == BC_TIME_NONE && entry->is_inexact)
		return BC_TIME_NONE;
	/* A lower tick with a delta: the next of several files begins. Keep the delta. */
	if (entry->has_delta && (has_fallen || reported == difference))
		return entry->delta;
	if (!has_fallen && difference <= max && difference != BC_TIME_NONE)
		return difference;
	bc_print_lose(print, BC_TRAIT_TIME);
	return BC_TIME_NONE;
}

/* Converts print->entries[0], whose type must be below 0x100. addr_max and time_max are the largest
 * values of these fields: 32 or 64 bits, all set. Returns 0, or -ERANGE with print->err set. */
static inline __attribute__((always_inline)) int byu_row(struct byu_row *row,
	struct bc_byu_clock *clock, struct bc_print *print, uint64_t addr_max, uint64_t time_max)
{
	const struct bc_entry *entry = print->entries;

	assert(entry->kind == BC_ENTRY_REFERENCE && entry->type <= UINT8_MAX);
	if (entry->addr > addr_max)
		return refuse_field(print, "address", entry->addr, 32);
	if (entry->size > UINT8_MAX)
		return refuse_field(print, "size", entry->size, 8);
	if (entry->proc > UINT8_MAX)
		return refuse_field(print, "processor", entry->proc, 8);
	if ((entry->traits & BC_TRAIT_TIME) != 0) {
		uint64_t time = time_of(clock, entry, print, time_max);
		if (time > time_max)
			return refuse_field(print, "time", time, 32);
		row->time = time;
		clock->has_tick = true;
		clock->tick = entry->tick;
		clock->epoch = entry->epoch;
	} else {
		row->time = count_time(clock, entry);
	}
	clock->number = entry->number;
	row->tick = clock->tick;
	row->addr = entry->addr;
	row->meta[0] = (uint8_t)entry->type;
	row->meta[1] = (uint8_t)entry->size;
	row->meta[2] = entry->attr;
	row->meta[3] = (uint8_t)entry->proc;
	return 0;
}

/* ---- byu printer */

static void byu_init(void *state, const struct bc_format_options *options)
{
	struct bc_byu_clock *clock = state;

	clock->is_ticked = (options->source_traits & BC_TRAIT_TIME) != 0;
	clock->is_relative = true;
}

static inline __attribute__((always_inline)) int print_records(
	struct bc_byu_clock *clock, struct bc_print *p, enum bc_format format)
{
	uint64_t addr_max = format == BC_FORMAT_BYU16 || format == BC_FORMAT_BYU24 ? UINT64_MAX
										   : UINT32_MAX;
	uint64_t time_max = format == BC_FORMAT_BYU24 ? UINT64_MAX : UINT32_MAX;
	size_t bytes = bc_dialect_bytes(format);

	for (; p->count != 0 && bc_print_has_room(p); p->count--, p->entries++) {
		struct byu_row row = {.addr = 0};
		int rc = byu_row(&row, clock, p, addr_max, time_max);
		if (rc != 0)
			return rc;
		bc_dialect_write((uint8_t *)p->out + p->used, format, row.addr, row.meta, row.time);
		p->used += bytes;
	}
	return 0;
}

/* Records keep their times if nothing was left out before the first. */
static void print_record_run(void *state, struct bc_print *p, struct bc_record_run *run)
{
	struct bc_byu_clock *clock = state;

	if (!clock->has_tick || run->tick != clock->tick || run->epoch != clock->epoch)
		return;
	uint64_t ticks = bc_records_ticks(run->records, run->count, 0);
	p->same = run->records;
	p->same_bytes = run->count * BC_RECORD_BYTES;
	bc_record_run_skip(run, run->count, ticks);
	clock->tick = run->tick;
	clock->number = run->number - 1;
}

/* One function per dialect, so that the dialect is a compile-time constant. */
#define DIALECT(name, format, run)                                                                 \
	static int print_##name(void *state, struct bc_print *p)                                   \
	{                                                                                          \
		return print_records(state, p, format);                                            \
	}                                                                                          \
	const struct bc_printer bc_##name##_printer = {.state_bytes = sizeof(struct bc_byu_clock), \
		.init = byu_init,                                                                  \
		.print = print_##name,                                                             \
		.print_run = (run)}

DIALECT(byu, BC_FORMAT_BYU, print_record_run);
DIALECT(byu16, BC_FORMAT_BYU16, NULL);
DIALECT(byu24, BC_FORMAT_BYU24, NULL);
DIALECT(byu_be, BC_FORMAT_BYU_BE, NULL);

/* ---- rowbinary */

#define ROW_BYTES 32

struct rowbinary {
	struct bc_byu_clock clock;
	uint32_t session;
	bool is_segment;
	uint64_t seq;  /* of the next row */
	uint64_t base; /* segments: what is added to the number of a record */
};

static void rowbinary_init(void *state, const struct bc_format_options *options)
{
	struct rowbinary *r = state;

	r->clock.is_ticked = (options->source_traits & BC_TRAIT_TIME) != 0;
	r->session = options->session;
	r->is_segment = options->source_is_segment;
}

/* The number of a record is the same however its recording is converted. If it doesn't go up, as
 * where a second recording begins, the rows count on from there: no two have the same number. */
static uint64_t next_seq(struct rowbinary *r, const struct bc_entry *entry)
{
	uint64_t seq = r->is_segment ? r->base + entry->number : r->seq;

	if (seq < r->seq) {
		r->base = r->seq - entry->number;
		seq = r->seq;
	}
	r->seq = seq + 1;
	return seq;
}

static int print_rows(void *state, struct bc_print *p)
{
	struct rowbinary *r = state;

	for (; p->count != 0 && bc_print_has_room(p); p->count--, p->entries++) {
		struct byu_row row = {.addr = 0};
		int rc = byu_row(&row, &r->clock, p, UINT32_MAX, UINT32_MAX);
		if (rc != 0)
			return rc;
		uint8_t *out = (uint8_t *)p->out + p->used;
		bc_write_le32(out, r->session);
		bc_write_le64(out + 4, next_seq(r, p->entries));
		bc_write_le64(out + 12, row.tick);
		bc_dialect_write(out + 20, BC_FORMAT_BYU, row.addr, row.meta, row.time);
		p->used += ROW_BYTES;
	}
	return 0;
}

/* At least two rows of a session, with rising numbers and known types. */
static bool rowbinary_begins(const uint8_t *head, size_t bytes)
{
	for (size_t at = ROW_BYTES; at + ROW_BYTES <= bytes; at += ROW_BYTES) {
		const uint8_t *row = head + at;
		const uint8_t *last = row - ROW_BYTES;
		bool is_known = bc_reqtype_name(row[24]) != NULL || row[24] >= BC_REQ_INVALID;
		if (!is_known || bc_le32(row) != bc_le32(last) ||
			bc_le64(row + 4) <= bc_le64(last + 4))
			return false;
	}
	return bytes >= (size_t)2 * ROW_BYTES;
}

const struct bc_printer bc_rowbinary_printer = {.state_bytes = sizeof(struct rowbinary),
	.init = rowbinary_init,
	.print = print_rows,
	.begins = rowbinary_begins,
	.what = "buscap's rowbinary"};
