#include "formats/codec/byu_row.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

void bc_byu_clock_init(struct bc_byu_clock *clock, const struct bc_format_options *options)
{
	*clock = (struct bc_byu_clock){.is_ticked = (options->source_holds & BC_HAS_TIME) != 0};
}

static int refuse_field(struct bc_print *print, const char *what, uint64_t value, unsigned bits)
{
	snprintf(print->err, sizeof(print->err),
		"%s 0x%" PRIx64 " doesn't fit in the %u bits of a BYU record", what, value, bits);
	return -ERANGE;
}

/* Time field of an entry without a time. */
static uint64_t count_time(struct bc_byu_clock *clock, const struct bc_entry *entry)
{
	bool is_sample = (entry->has & BC_HAS_SAMPLE) != 0;
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
 * that adds the times would get another one. */
static uint64_t first_time(const struct bc_byu_clock *clock, const struct bc_entry *entry,
	struct bc_print *print, uint64_t time)
{
	if (clock->is_relative && entry->tick != (time != BC_TIME_NONE ? time : 0))
		bc_print_lose(print, BC_HAS_TIME);
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
	/* A lower tick with a delta means that the next of several files has started: keep its
	 * delta. */
	if (entry->has_delta && (has_fallen || reported == difference))
		return entry->delta;
	if (!has_fallen && difference <= max && difference != BC_TIME_NONE)
		return difference;
	bc_print_lose(print, BC_HAS_TIME);
	return BC_TIME_NONE;
}

int bc_byu_row(struct bc_byu_row *row, struct bc_byu_clock *clock, struct bc_print *print,
	uint64_t addr_max, uint64_t time_max)
{
	const struct bc_entry *entry = print->entries;

	assert(entry->kind == BC_ENTRY_REFERENCE && entry->type <= UINT8_MAX);
	if (entry->addr > addr_max)
		return refuse_field(print, "address", entry->addr, 32);
	if (entry->size > UINT8_MAX)
		return refuse_field(print, "size", entry->size, 8);
	if (entry->proc > UINT8_MAX)
		return refuse_field(print, "processor", entry->proc, 8);
	if ((entry->has & BC_HAS_TIME) != 0) {
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
