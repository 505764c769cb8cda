#include "daemon/decode.h"

#include <inttypes.h>
#include <string.h>

#include "formats/dialect.h"

static size_t plain_bytes(enum bc_format format)
{
	return format == BC_FORMAT_RAW6 ? BC_SAMPLE_BYTES : bc_dialect_bytes(format);
}

/* A record that the 12-byte form can't hold is missing in the recording, and said to be. */
static void refuse_record(struct bc_decoder *d, const uint8_t *in)
{
	uint64_t addr;
	uint64_t time;

	bc_dialect_fields(in, d->format, &addr, &time);
	bc_decode_damage(d,
		"record %" PRIu64 ": address %" PRIx64 ", time %" PRIx64
		": a value of more than 32 bits; left out",
		d->records_read, addr, time);
	bc_lane_gap(d->options.lane, BC_GAP_DAMAGED, 1, true);
	d->records_read++;
}

/* Makes a run of n whole records at `in`. Returns how many it took. */
static size_t begin_plain_run(struct bc_decoder *d, const uint8_t *in, size_t n)
{
	if (d->format == BC_FORMAT_RAW6) {
		d->samples = bc_samples_of_raw6(in, (uint32_t)n, d->raw_tick, d->raw_pace);
		d->run_kind = BC_RUN_SAMPLES;
		d->records_read += n;
		return n;
	}
	n = n < BC_SLICE_RECORDS ? n : BC_SLICE_RECORDS;
	size_t read = bc_dialect_read(d->slice, in, n, d->format);
	if (read == 0) {
		refuse_record(d, in);
		return 1;
	}
	d->records = (struct bc_records){.at = d->slice, .count = (uint32_t)read};
	d->run_kind = BC_RUN_RECORDS;
	d->records_read += read;
	return read;
}

/* Completes the record that the piece before ended in. Returns whether there is a whole one. */
static bool complete_carry(struct bc_decoder *d, size_t bytes)
{
	size_t want = bytes - d->carried;
	size_t n = want < d->left ? want : d->left;

	memcpy(d->carry + d->carried, d->at, n);
	d->carried += n;
	d->at += n;
	d->left -= n;
	return d->carried == bytes;
}

static uint64_t ticks_of(const struct bc_decoder *d, uint64_t ns)
{
	unsigned __int128 ticks = (unsigned __int128)ns * d->options.clock_hz / 1000000000;

	return ticks < BC_TICK_END ? (uint64_t)ticks : BC_TICK_END - 1;
}

void bc_decode_pace(struct bc_decoder *d, const struct bc_source_data *data)
{
	size_t samples = (d->carried + data->count) / BC_SAMPLE_BYTES;

	d->raw_tick = d->stamper.tick;
	d->raw_pace = bc_pace_of(1, 1);
	if (!data->has_times || samples == 0 || d->options.clock_hz == 0)
		return;
	uint64_t since = ticks_of(d, data->since_ns);
	uint64_t until = ticks_of(d, data->until_ns);
	if (d->has_begun && since < d->raw_tick) {
		/* Another recording's, whose time has begun anew. */
		bc_lane_submit(d->options.lane);
		bc_decode_epoch(d, since);
		bc_stamper_next_epoch(&d->stamper, d->stamper.epoch + 1);
		d->raw_tick = 0;
	}
	d->raw_tick = since > d->raw_tick ? since : d->raw_tick;
	d->raw_pace = bc_pace_of(until > d->raw_tick ? until - d->raw_tick : 0, (uint32_t)samples);
}

bool bc_decode_plain(struct bc_decoder *d)
{
	size_t bytes = plain_bytes(d->format);

	for (;;) {
		if (!bc_decode_drain(d))
			return false;
		if (d->is_over || d->left == 0)
			return true;
		if (d->carried != 0) {
			if (complete_carry(d, bytes)) {
				begin_plain_run(d, d->carry, 1);
				d->carried = 0;
			}
		} else if (d->left < bytes) {
			complete_carry(d, bytes);
		} else {
			size_t n = begin_plain_run(d, d->at, d->left / bytes) * bytes;
			d->at += n;
			d->left -= n;
		}
	}
}
