/* Every format is reduced to a run: samples or records that are contiguous in memory. Samples of a
 * valid bcp1 frame or of raw6 and BYU records are used where they are; records of other dialects
 * are converted in slices; a replayed chunk's records are a run already. drain_run() stamps the run
 * into chunks. So all formats share one loop, with one set of rules for full chunks, limits and
 * drops, and samples are usually copied only once, by the stamper.
 *
 * A run ends early if no chunk is free or at a limit. The source then offers the same piece again.
 *
 * Invariants:
 *   - All progress is in struct bc_decoder, not on the stack: a piece may be offered again at any
 *     point. The bytes of a run belong to the source until drain_run() has returned true.
 *   - A loss is one gap, where it was detected: by a frame's header (board), a missing frame
 *     (sequence), a damaged frame (crc), a record that does not fit or a hole in a recording
 *     (damaged). What a break reports is counted only as far as no frame has reported it.
 *   - The state of each format is separate, because a live stream that breaks settles the old one.
 *
 * Costs the stamping per sample, and a CRC and a few comparisons per frame. */
#include "daemon/ingest/decoder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/source/source.h"
#include "daemon/ingest/channel.h"
#include "daemon/ingest/counts.h"
#include "formats/base/clock.h"
#include "formats/base/text.h"
#include "formats/bus/bcp1.h"
#include "formats/bus/chunk.h"
#include "formats/bus/record.h"
#include "formats/bus/stamp.h"
#include "formats/bus/tick_time.h"

/* Records of a dialect are converted to BYU this many at a time. */
#define SLICE_RECORDS 2048u

#define CARRY_BYTES 24 /* the longest record of a plain format */

enum run_kind { RUN_NONE, RUN_SAMPLES, RUN_RECORDS };

/* What is being stamped. Its bytes belong to the source, the bcp1 reader or plain_state. */
struct run {
	enum run_kind kind;
	struct bc_samples samples;
	struct bc_records records;
};

enum piece_state {
	PIECE_NONE,    /* the next piece is a new one */
	PIECE_STARTED, /* it is offered again until it is decoded */
	PIECE_SETTLED, /* it is a break, and the input before it is decoded or reported */
};

struct piece {
	enum piece_state state;
	const uint8_t *at;
	size_t left;
	bool has_loss; /* a break with a loss that no frame has reported, */
	uint64_t lost; /* of at least this many samples */
};

struct bcp1_state {
	struct bc_bcp1_reader reader;
	bool is_used;
	bool has_sequence;
	uint32_t sequence; /* expected next */
	bool has_tick;
	uint64_t seen_tick;     /* of the latest sample or heartbeat */
	bool is_at_last;        /* the latest header is a last frame's */
	bool has_trigger;       /* a trigger event is to be written */
	bool needs_epoch;       /* the board may have restarted: the next frame starts an epoch */
	uint64_t first_lost;    /* by the first header since the stream started or restarted */
	uint64_t reported_lost; /* by later ones */
	uint64_t skipped;       /* how many of reader.skipped_bytes are counted */
	uint64_t skipped_reported; /* and how many are covered by a damage report */
	bool is_in_damage; /* bytes skipped now belong to a damaged frame already reported */
	bool has_torn; /* after a stop: a damaged frame, which is damage if a frame follows it */
	struct bc_bcp1_frame torn;
};

/* raw6 and the BYU dialects */
struct plain_state {
	enum bc_format format;
	uint64_t records_read;
	uint64_t raw_tick;       /* raw6: of the last sample decoded */
	struct bc_pace raw_pace; /* of the remaining samples of this piece */
	size_t carried;          /* bytes of a record cut off at the end of the previous piece */
	uint8_t carry[CARRY_BYTES];
	uint8_t slice[SLICE_RECORDS * BC_RECORD_BYTES];
};

/* A chunk of a segment, and the recording it is from */
struct chunk_state {
	uint32_t next_event; /* to be copied */
	uint64_t clock_hz;
	uint64_t tag;
	uint32_t epoch;
	uint64_t first_clock_hz; /* of the first recording */
	uint64_t reported_tag;   /* the recording whose clock rate was reported last */
};

struct bc_decoder {
	struct bc_decoder_options options;
	struct bc_stamper stamper;
	uint64_t tick_limit;
	bool has_started; /* on_epoch() has been called */
	bool is_stopped;  /* bc_decoder_stop() */
	bool is_over;     /* the rest of the stream is ignored */
	struct run run;
	struct piece piece;
	struct bcp1_state bcp1;
	struct plain_state plain;
	struct chunk_state chunk;
};

/* Reports damage; the text includes the place. */
static void report_damage(struct bc_decoder *d, const char *format, ...)
{
	char what[160];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	d->options.on_damage(d->options.context, what);
}

/* Reports the start of an epoch, including the first, to the owner. */
static void report_epoch(struct bc_decoder *d, uint64_t first_tick)
{
	d->has_started = true;
	d->options.on_epoch(d->options.context, first_tick);
}

/* Starts an epoch whose first record is at `first_tick`, and in which `tick` is before it. */
static void begin_epoch(struct bc_decoder *d, uint32_t epoch, uint64_t tick, uint64_t first_tick)
{
	report_epoch(d, first_tick);
	bc_channel_begin_epoch(d->options.channel, &d->stamper, epoch, tick);
}

/* The run */

static uint32_t *run_count(struct bc_decoder *d)
{
	return d->run.kind == RUN_SAMPLES ? &d->run.samples.count : &d->run.records.count;
}

/* Skips the run if chunk is NULL. */
static enum bc_stamp_result stamp_run(
	struct bc_decoder *d, struct bc_chunk *chunk, struct bc_stamped *stamped)
{
	if (d->run.kind == RUN_SAMPLES)
		return bc_stamp_samples(
			&d->stamper, &d->run.samples, d->tick_limit, chunk, stamped);
	return bc_stamp_records(&d->stamper, &d->run.records, d->tick_limit, chunk, stamped);
}

/* Returns the tick of the run's next sample. */
static uint64_t next_run_tick(const struct bc_decoder *d)
{
	return d->run.kind == RUN_SAMPLES ? bc_samples_next_tick(&d->run.samples)
					  : bc_records_next_tick(&d->stamper, &d->run.records);
}

/* A source that can wait has no relation to the host's time: its chunks get the wall time of the
 * replayed chunk or of the first record, plus the time on the bus since then. */
static void set_wall(struct bc_decoder *d)
{
	const struct bc_chunk *source = d->run.kind == RUN_RECORDS ? d->run.records.source : NULL;
	struct bc_channel *channel = d->options.channel;

	if (source != NULL)
		bc_channel_set_wall(
			channel, source->info.wall_ns, source->info.first_tick, d->chunk.clock_hz);
	else if (d->stamper.is_first && !d->options.is_live && d->options.clock_hz != 0)
		bc_channel_set_wall(channel, bc_wall_ns(), next_run_tick(d), d->options.clock_hz);
}

/* Stamps the run, or drops a live source's if no chunk is free. Returns false when it must wait. */
static bool drain_run(struct bc_decoder *d)
{
	struct bc_channel *channel = d->options.channel;
	struct bc_stamped stamped;

	while (!d->is_over && d->run.kind != RUN_NONE && *run_count(d) != 0) {
		if (!d->has_started)
			report_epoch(d, next_run_tick(d));
		struct bc_chunk *chunk = bc_channel_chunk(channel, &d->stamper);
		enum bc_stamp_result end;
		if (chunk != NULL) {
			set_wall(d);
			/* No more than the recording's record limit permits. */
			uint64_t left = bc_channel_records_left(channel);
			uint32_t *count = run_count(d);
			uint32_t held = *count > left ? *count - (uint32_t)left : 0;
			*count -= held;
			end = stamp_run(d, chunk, &stamped);
			*count += held;
			bc_channel_consumed(channel, &d->stamper, &stamped);
		} else if (d->options.is_live) {
			end = stamp_run(d, NULL, &stamped);
			bc_channel_dropped(channel, &stamped);
		} else {
			return false;
		}
		if (d->is_over)
			break;
		if (end == BC_STAMP_FULL) {
			bc_channel_submit(channel);
		} else if (end == BC_STAMP_LIMIT) {
			switch (d->options.on_limit(d->options.context, next_run_tick(d))) {
			case BC_LIMIT_CONTINUE:
				break;
			case BC_LIMIT_WAIT:
				return false;
			case BC_LIMIT_END:
				d->is_over = true;
				break;
			}
		}
	}
	if (d->run.kind == RUN_SAMPLES) {
		d->bcp1.seen_tick = d->run.samples.tick;
		d->plain.raw_tick = d->run.samples.tick;
		d->plain.raw_pace = d->run.samples.pace;
	}
	d->run.kind = RUN_NONE;
	return true;
}

/* bcp1 */

static void count_skipped(struct bc_decoder *d)
{
	bc_channel_counts(d->options.channel)->skipped_bytes += d->bcp1.reader.skipped_bytes -
								d->bcp1.skipped;
	d->bcp1.skipped = d->bcp1.reader.skipped_bytes;
}

/* Processes a frame's header, which is valid even if the frame is damaged: losses, the end of the
 * stream, a new epoch, triggers. */
static void process_header(struct bc_decoder *d, const struct bc_bcp1_frame *frame)
{
	const struct bc_bcp1_header *h = &frame->header;
	struct bc_channel *channel = d->options.channel;
	bool is_first = !d->bcp1.has_sequence;

	if (d->bcp1.has_sequence && h->sequence != d->bcp1.sequence) {
		bc_channel_gap(channel, BC_GAP_SEQUENCE, 0, false);
		report_damage(d,
			"offset %" PRIu64 ": expected frame %" PRIu32 ", found frame %" PRIu32,
			frame->offset, d->bcp1.sequence, h->sequence);
	}
	d->bcp1.sequence = h->sequence + 1;
	d->bcp1.is_at_last = (h->flags & BC_BCP1_LAST) != 0;
	d->bcp1.has_sequence = !d->bcp1.is_at_last;
	if ((h->flags & BC_BCP1_LOSS) != 0) {
		*(is_first ? &d->bcp1.first_lost : &d->bcp1.reported_lost) += h->lost;
		bc_channel_gap(channel, BC_GAP_BOARD, h->lost, h->lost != BC_BCP1_LOST_MANY);
	}
	if (d->bcp1.has_tick && (h->tick < d->bcp1.seen_tick || d->bcp1.needs_epoch))
		begin_epoch(d, d->stamper.epoch + 1, 0, h->tick);
	d->bcp1.needs_epoch = false;
	d->bcp1.has_tick = true;
	d->bcp1.seen_tick = h->tick;
	d->bcp1.has_trigger = d->bcp1.has_trigger || (h->flags & BC_BCP1_TRIGGER) != 0;
}

/* Reports skipped bytes before this offset that are not part of a damaged frame. */
static void report_skipped(struct bc_decoder *d, uint64_t offset)
{
	if (d->bcp1.skipped != d->bcp1.skipped_reported && !d->bcp1.is_in_damage)
		report_damage(d, "before offset %" PRIu64 ": %s bytes skipped (no valid frame)",
			offset, BC_GROUPED(d->bcp1.skipped - d->bcp1.skipped_reported));
	d->bcp1.skipped_reported = d->bcp1.skipped;
	d->bcp1.is_in_damage = false;
}

static void report_torn(struct bc_decoder *d, const struct bc_bcp1_frame *frame)
{
	d->bcp1.is_in_damage = true;
	process_header(d, frame);
	bc_channel_gap(d->options.channel, BC_GAP_CRC, frame->header.samples, true);
	report_damage(d,
		"offset %" PRIu64 ": frame %" PRIu32 ": %" PRIu32 " samples lost (torn or bad CRC)",
		frame->offset, frame->header.sequence, frame->header.samples);
}

/* Reports the damaged frame that was kept back: something follows it. */
static void report_kept_back(struct bc_decoder *d)
{
	if (d->bcp1.has_torn)
		report_torn(d, &d->bcp1.torn);
	d->bcp1.has_torn = false;
}

/* Finds the next frame. Returns false when the input is exhausted.
 *
 * A stop may cut the stream anywhere and leave garbage at its end. So after it, anything but a
 * whole frame is damage only if a frame follows. */
static bool next_frame(struct bc_decoder *d, bool is_last)
{
	struct bc_bcp1_frame frame;
	enum bc_bcp1_found found = bc_bcp1_next(
		&d->bcp1.reader, &d->piece.at, &d->piece.left, is_last, &frame);

	if (found != BC_BCP1_MORE)
		report_kept_back(d);
	if (!d->is_stopped || found == BC_BCP1_FRAME)
		count_skipped(d);
	switch (found) {
	case BC_BCP1_MORE:
		return false;
	case BC_BCP1_DAMAGED:
		if (d->is_stopped) {
			d->bcp1.has_torn = true;
			d->bcp1.torn = frame;
		} else {
			report_torn(d, &frame);
		}
		return true;
	case BC_BCP1_FRAME:
		report_skipped(d, frame.offset);
		process_header(d, &frame);
		d->run.samples = bc_samples_of_frame(&frame);
		d->run.kind = RUN_SAMPLES;
		return true;
	}
	return false;
}

/* Writes the current frame's trigger event. Returns false when it must wait. */
static bool write_trigger(struct bc_decoder *d)
{
	const struct bc_event event = {.kind = BC_EVENT_TRIGGER};

	if (!d->bcp1.has_trigger || d->is_over)
		return true;
	/* A live source does not wait: the event remains until a chunk is free. */
	d->bcp1.has_trigger = !bc_channel_event(d->options.channel, &d->stamper, &event, NULL);
	return !d->bcp1.has_trigger || d->options.is_live;
}

/* Decodes the piece's frames; is_last: nothing follows. Returns false when it must wait. */
static bool decode_frames(struct bc_decoder *d, bool is_last)
{
	d->bcp1.is_used = true;
	do {
		if (!write_trigger(d) || !drain_run(d))
			return false;
	} while (!d->is_over && next_frame(d, is_last));
	/* Not if a frame follows: a board may start with the last frame of an earlier stream. */
	if (d->bcp1.is_at_last && d->options.on_last != NULL)
		d->options.on_last(d->options.context);
	d->bcp1.is_at_last = false;
	return true;
}

/* raw6 and the BYU dialects */

/* Replaces a record whose values do not fit into 12 bytes with a gap. Its time still passes. */
static void leave_out_record(struct bc_decoder *d, const uint8_t *in)
{
	uint64_t addr;
	uint64_t time;

	(void)bc_dialect_fields(in, d->plain.format, &addr, &time);
	report_damage(d,
		"record %" PRIu64 ": address %" PRIx64 ", time %" PRIx64
		": more than 32 bits; left out",
		d->plain.records_read, addr, time);
	bc_channel_gap(d->options.channel, BC_GAP_DAMAGED, 1, true);
	bc_stamp_skip_time(&d->stamper, time);
	d->plain.records_read++;
}

/* Makes a run of up to n whole records at `in`. Returns how many it consumed. */
static size_t start_plain_run(struct bc_decoder *d, const uint8_t *in, size_t n)
{
	if (d->plain.format == BC_FORMAT_RAW6) {
		d->run.samples = bc_samples_of_raw6(
			in, (uint32_t)n, d->plain.raw_tick, d->plain.raw_pace);
		d->run.kind = RUN_SAMPLES;
		d->plain.records_read += n;
		return n;
	}
	size_t read = n;
	if (d->plain.format != BC_FORMAT_BYU) {
		n = n < SLICE_RECORDS ? n : SLICE_RECORDS;
		read = bc_dialect_read(d->plain.slice, in, n, d->plain.format);
		if (read == 0) {
			leave_out_record(d, in);
			return 1;
		}
		in = d->plain.slice;
	}
	d->run.records = (struct bc_records){.at = in, .count = (uint32_t)read};
	d->run.kind = RUN_RECORDS;
	d->plain.records_read += read;
	return read;
}

/* Continues the record that the previous piece has begun. Returns true if it is complete. */
static bool complete_carry(struct bc_decoder *d, size_t bytes)
{
	size_t missing = bytes - d->plain.carried;
	size_t n = missing < d->piece.left ? missing : d->piece.left;

	memcpy(d->plain.carry + d->plain.carried, d->piece.at, n);
	d->plain.carried += n;
	d->piece.at += n;
	d->piece.left -= n;
	return d->plain.carried == bytes;
}

static uint64_t ticks_of(const struct bc_decoder *d, uint64_t ns)
{
	uint64_t ticks = bc_ticks_of_ns(ns, d->options.clock_hz);

	return ticks < BC_TICK_END ? ticks : BC_TICK_END - 1;
}

/* Sets the times of a raw6 piece's samples, which carry none: spread evenly from the piece's first
 * to its last arrival, or one tick apart if these are unknown. */
static void pace_raw6(struct bc_decoder *d, const struct bc_source_data *data)
{
	size_t samples = (d->plain.carried + data->count) / BC_SAMPLE_BYTES;

	d->plain.raw_tick = d->stamper.tick;
	d->plain.raw_pace = bc_pace_of(1, 1);
	if (!data->has_times || samples == 0 || d->options.clock_hz == 0)
		return;
	uint64_t since = ticks_of(d, data->since_ns);
	uint64_t until = ticks_of(d, data->until_ns);
	d->plain.raw_tick = since > d->plain.raw_tick ? since : d->plain.raw_tick;
	d->plain.raw_pace = bc_pace_of(
		until > d->plain.raw_tick ? until - d->plain.raw_tick : 0, (uint32_t)samples);
}

/* Decodes the piece's records. Returns false when it must wait. */
static bool decode_plain(struct bc_decoder *d)
{
	size_t bytes = d->plain.format == BC_FORMAT_RAW6 ? BC_SAMPLE_BYTES
							 : bc_dialect_bytes(d->plain.format);

	for (;;) {
		if (!drain_run(d))
			return false;
		if (d->is_over || d->piece.left == 0)
			return true;
		if (d->plain.carried != 0) {
			if (complete_carry(d, bytes)) {
				start_plain_run(d, d->plain.carry, 1);
				d->plain.carried = 0;
			}
		} else if (d->piece.left < bytes) {
			complete_carry(d, bytes);
		} else {
			size_t n = start_plain_run(d, d->piece.at, d->piece.left / bytes) * bytes;
			d->piece.at += n;
			d->piece.left -= n;
		}
	}
}

/* Chunks of a segment */

/* Adds gaps for losses that only the chunk's counts show. */
static void report_unreported(
	struct bc_decoder *d, const struct bc_source_data *data, const struct bc_missing *missing)
{
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++) {
		uint64_t lost = missing->lost[cause];
		if (lost != 0)
			bc_channel_gap(d->options.channel, cause != 0 ? cause : BC_GAP_DAMAGED,
				lost, false);
	}
	report_damage(d, "%s samples lost before record %" PRIu64 ", but no gap reports them",
		BC_GROUPED(missing->samples), data->chunk->info.first_record);
}

/* Adds gaps for the records that are missing before a chunk. */
static void report_missing(
	struct bc_decoder *d, const struct bc_source_data *data, const struct bc_missing *missing)
{
	const struct bc_missing_segments *place = &missing->place;
	char what[BC_MISSING_TEXT];

	if (missing->records != 0)
		bc_channel_gap(d->options.channel, BC_GAP_DAMAGED, missing->records, true);
	if (bc_is_missing(place))
		report_damage(d, "%s", bc_missing_write(what, place));
	if (missing->samples != 0)
		report_unreported(d, data, missing);
}

/* Returns whether a chunk starts an epoch: a new one, another recording, or ticks that go back. */
static bool starts_epoch(const struct bc_decoder *d, const struct bc_chunk_info *info)
{
	return !d->has_started || info->recording_tag != d->chunk.tag ||
	       info->epoch != d->chunk.epoch || info->first_tick < d->stamper.tick;
}

/* The segments written get the clock rate of the first recording unless one is configured, so the
 * times of a recording with another rate are wrong. */
static void check_clock(struct bc_decoder *d, const struct bc_source_data *data)
{
	uint64_t hz = data->header != NULL ? data->header->clock_hz : 0;

	if (!d->has_started)
		d->chunk.first_clock_hz = hz;
	if (hz == 0 || d->chunk.first_clock_hz == 0 || hz == d->chunk.first_clock_hz ||
		d->options.clock_hz != d->chunk.first_clock_hz ||
		data->chunk->info.recording_tag == d->chunk.reported_tag)
		return;
	d->chunk.reported_tag = data->chunk->info.recording_tag;
	report_damage(d,
		"chunk %" PRIu32 ": clock rate is %" PRIu64 " Hz, not %" PRIu64
		" Hz as in the first recording: times are wrong",
		data->chunk->info.number, hz, d->chunk.first_clock_hz);
}

/* Prepares to decode a chunk of a segment: gap, epoch, run. */
static void start_chunk(struct bc_decoder *d, const struct bc_source_data *data)
{
	const struct bc_chunk *chunk = data->chunk;
	uint64_t tick = bc_chunk_tick_before(&chunk->info, chunk->records);

	if (data->missing != NULL)
		report_missing(d, data, data->missing);
	if (data->is_late)
		report_damage(d, "chunk %" PRIu32 " is out of order: later chunks precede it",
			chunk->info.number);
	check_clock(d, data);
	if (starts_epoch(d, &chunk->info)) {
		uint32_t next = d->has_started ? d->stamper.epoch + 1 : 0;
		begin_epoch(d, chunk->info.epoch > next ? chunk->info.epoch : next, tick,
			chunk->info.first_tick);
	}
	d->chunk.tag = chunk->info.recording_tag;
	d->chunk.epoch = chunk->info.epoch;
	d->stamper.tick = tick;
	d->chunk.next_event = 0;
	d->chunk.clock_hz = data->header != NULL && data->header->clock_hz != 0
				    ? data->header->clock_hz
				    : d->options.clock_hz;
	d->run.records = (struct bc_records){.at = chunk->records, .source = chunk};
	d->run.kind = RUN_RECORDS;
}

/* Writes an event. If no chunk is free, a live source does not wait: a gap is kept for the next
 * chunk, other events are dropped. Returns false when it must wait. */
static bool write_event(struct bc_decoder *d, const struct bc_event *event, const char *text)
{
	struct bc_channel *channel = d->options.channel;

	if (bc_channel_event(channel, &d->stamper, event, text))
		return true;
	if (d->options.is_live && event->kind == BC_EVENT_GAP)
		bc_channel_gap_lasting(channel,
			event->cause < BC_GAP_CAUSES ? event->cause : BC_GAP_DAMAGED, event->value,
			event->exact, event->duration_ns);
	return d->options.is_live;
}

/* Decodes the chunk's records up to its next event, then copies that event. Anchors are not copied:
 * the stamper makes its own. Returns false when it must wait; sets *is_done after the last. */
static bool push_event(struct bc_decoder *d, const struct bc_source_data *data, bool *is_done)
{
	const struct bc_chunk *chunk = data->chunk;

	while (d->chunk.next_event < chunk->info.events &&
		(chunk->events[d->chunk.next_event].kind == BC_EVENT_ANCHOR ||
			chunk->events[d->chunk.next_event].kind == BC_EVENT_END))
		d->chunk.next_event++;
	bool has_event = d->chunk.next_event < chunk->info.events;
	const struct bc_event *event = &chunk->events[d->chunk.next_event];
	uint32_t until = has_event ? event->position : chunk->info.records;
	d->run.kind = RUN_RECORDS;
	d->run.records.count = until - d->run.records.position;
	if (!drain_run(d))
		return false;
	*is_done = d->is_over || !has_event;
	if (*is_done)
		return true;
	if (!write_event(d, event, chunk->text + event->text))
		return false;
	d->chunk.next_event++;
	return true;
}

static bool decode_chunk(struct bc_decoder *d, const struct bc_source_data *data)
{
	bool is_done = d->is_over;

	while (!is_done)
		if (!push_event(d, data, &is_done))
			return false;
	d->run.kind = RUN_NONE;
	return true;
}

/* Breaks and the end */

/* Decodes the last, partial input, or reports it as damage. Returns false when it must wait. */
static bool settle_rest(struct bc_decoder *d, const char *place)
{
	if (d->bcp1.is_used) {
		d->piece.left = 0;
		if (!decode_frames(d, true))
			return false;
		report_kept_back(d);
		count_skipped(d);
		report_skipped(d, d->bcp1.reader.offset);
	}
	if (d->plain.carried != 0) {
		bc_channel_counts(d->options.channel)->skipped_bytes += d->plain.carried;
		report_damage(d, "incomplete record %s: %zu bytes after record %" PRIu64, place,
			d->plain.carried, d->plain.records_read);
		d->plain.carried = 0;
	}
	return true;
}

/* Finds the samples that the board has counted as lost since START, but not reported in a frame.
 * The first frame's count is usually older loss; it may overlap. */
static void find_unreported_loss(struct bc_decoder *d, const struct bc_source_break *broken)
{
	uint64_t lost = broken->lost > d->bcp1.reported_lost ? broken->lost - d->bcp1.reported_lost
							     : 0;

	d->bcp1.reported_lost += lost;
	d->piece.has_loss = lost != 0;
	d->piece.lost = lost > d->bcp1.first_lost ? lost - d->bcp1.first_lost : 0;
}

/* Processes a break in the stream. Returns false when it must wait. */
static bool push_break(struct bc_decoder *d, const struct bc_source_break *broken)
{
	bool is_loss = broken->cause == BC_GAP_BOARD;
	struct bc_event gap = {
		.kind = BC_EVENT_GAP,
		.cause = (uint8_t)broken->cause,
		.duration_ns = broken->duration_ns,
	};

	if (d->piece.state == PIECE_STARTED) {
		if (broken->is_cut && !settle_rest(d, "before a break"))
			return false;
		d->piece.state = PIECE_SETTLED;
		d->piece.lost = 0;
		if (is_loss)
			find_unreported_loss(d, broken);
	}
	gap.value = d->piece.lost;
	gap.exact = is_loss && d->bcp1.first_lost == 0;
	bool has_gap = !is_loss || d->piece.has_loss;
	if (has_gap && !write_event(d, &gap, NULL))
		return false;
	if (broken->is_restart) {
		d->bcp1.has_sequence = false;
		d->bcp1.needs_epoch = d->bcp1.is_used;
		d->bcp1.first_lost = 0;
		d->bcp1.reported_lost = 0;
	}
	return true;
}

static void start_piece(struct bc_decoder *d, const struct bc_source_data *data)
{
	d->piece.state = PIECE_STARTED;
	d->piece.at = data->bytes;
	d->piece.left = data->count;
	d->plain.format = data->format;
	if (data->format == BC_FORMAT_SEGMENT)
		start_chunk(d, data);
	if (data->format == BC_FORMAT_RAW6 && data->broken == NULL)
		pace_raw6(d, data);
}

bool bc_decoder_push(struct bc_decoder *d, const struct bc_source_data *data)
{
	bool is_done;

	if (d->is_over)
		return true;
	if (d->piece.state == PIECE_NONE)
		start_piece(d, data);
	if (data->broken != NULL)
		is_done = push_break(d, data->broken);
	else if (data->format == BC_FORMAT_SEGMENT)
		is_done = decode_chunk(d, data);
	else if (data->format == BC_FORMAT_BCP1)
		is_done = decode_frames(d, false);
	else
		is_done = decode_plain(d);
	if (is_done)
		d->piece.state = PIECE_NONE;
	return is_done;
}

bool bc_decoder_finish(struct bc_decoder *d)
{
	if (d->is_over)
		return true;
	if (!d->is_stopped)
		return settle_rest(d, "at the end");
	/* The rest was cut off, but may contain whole frames. */
	d->piece.left = 0;
	return !d->bcp1.is_used || decode_frames(d, true);
}

/* Open and close */

int bc_decoder_open(struct bc_decoder **decoder, const struct bc_decoder_options *options)
{
	struct bc_decoder *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return -ENOMEM;
	d->options = *options;
	d->tick_limit = BC_NO_TICK_LIMIT;
	bc_stamper_init(&d->stamper, options->mapping);
	bc_bcp1_reader_init(&d->bcp1.reader);
	*decoder = d;
	return 0;
}

void bc_decoder_close(struct bc_decoder *d)
{
	free(d);
}

void bc_decoder_set_clock(struct bc_decoder *d, uint64_t clock_hz)
{
	d->options.clock_hz = clock_hz;
}

void bc_decoder_set_tick_limit(struct bc_decoder *d, uint64_t tick)
{
	d->tick_limit = tick;
}

void bc_decoder_stop(struct bc_decoder *d)
{
	d->is_stopped = true;
}

void bc_decoder_end(struct bc_decoder *d)
{
	d->is_over = true;
}

bool bc_decoder_is_over(const struct bc_decoder *d)
{
	return d->is_over;
}

uint64_t bc_decoder_tick(const struct bc_decoder *d)
{
	return d->stamper.tick;
}
