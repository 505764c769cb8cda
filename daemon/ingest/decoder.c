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
#include "formats/bus/bcp1.h"
#include "formats/bus/dialect.h"
#include "formats/bus/stamp.h"

/* Each kind of stream is turned into a run: a row of samples or records that lie one after the
 * other in memory. drain_run() stamps the run into chunks. A piece that can't be taken whole is
 * offered again, so all state of it is in the struct. */

/* Records of a dialect are turned into BYU this many at a time. */
#define SLICE_RECORDS 2048u

#define CARRY_BYTES 24 /* the longest record of a plain format */

enum run_kind { RUN_NONE, RUN_SAMPLES, RUN_RECORDS };

struct bc_decoder {
	struct bc_decoder_options options;
	struct bc_stamper stamper;
	uint64_t tick_limit;
	bool is_over;
	bool has_begun; /* on_epoch() was called for the first */

	/* What is being stamped. Its bytes are the source's, or of the fields below. */
	enum run_kind run_kind;
	struct bc_samples samples;
	struct bc_records records;

	/* The piece being taken. */
	bool in_piece;
	const uint8_t *at;
	size_t left;
	bool is_judged;      /* a break: what came before it has been */
	uint64_t break_lost; /* and what it says is lost */
	uint32_t next_event; /* of its chunk */
	uint64_t clock_hz;   /* of its chunk's segment */

	/* bcp1 */
	bool is_bcp1;
	bool has_sequence;
	uint32_t sequence; /* expected next */
	bool has_tick;
	uint64_t seen_tick; /* of the latest sample or heartbeat */
	bool has_trigger;   /* the frame in hand wants a trigger event */
	bool wants_epoch;   /* the board may have begun anew: no delta leads into its next frame */
	uint64_t reported_lost; /* by headers, since the stream began or was restarted */
	uint64_t skipped;       /* of the reader's skipped_bytes, those counted */
	uint64_t explained;     /* and those that some report of damage has spoken of */
	bool is_in_damage; /* what is skipped now belongs to a damaged frame, reported already */
	struct bc_bcp1_reader bcp1;

	/* Plain formats */
	enum bc_format format;
	uint64_t records_read;
	uint64_t raw_tick;       /* raw6: of the sample taken last */
	struct bc_pace raw_pace; /* of those to come in this piece */
	size_t carried;          /* bytes of a record that the piece before ended in */
	uint8_t carry[CARRY_BYTES];
	uint8_t slice[SLICE_RECORDS * BC_RECORD_BYTES];
};

/* Says that something can't be read: a phrase with the place. */
static void report_damage(struct bc_decoder *d, const char *format, ...)
{
	char what[160];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	d->options.on_damage(d->options.context, what);
}

/* Tells the owner of an epoch, the first among them, that begins with this tick. */
static void start_epoch(struct bc_decoder *d, uint64_t first_tick)
{
	d->has_begun = true;
	d->options.on_epoch(d->options.context, first_tick);
}

/* The run in hand, whichever it is */

static uint32_t run_count(const struct bc_decoder *d)
{
	return d->run_kind == RUN_SAMPLES ? d->samples.count : d->records.count;
}

static enum bc_stamp_result stamp(
	struct bc_decoder *d, struct bc_chunk *chunk, struct bc_stamped *stamped)
{
	if (d->run_kind == RUN_SAMPLES)
		return bc_stamp_samples(&d->stamper, &d->samples, d->tick_limit, chunk, stamped);
	return bc_stamp_records(&d->stamper, &d->records, d->tick_limit, chunk, stamped);
}

static enum bc_stamp_result skip(struct bc_decoder *d, struct bc_stamped *stamped)
{
	if (d->run_kind == RUN_SAMPLES)
		return bc_stamp_skip_samples(&d->stamper, &d->samples, d->tick_limit, stamped);
	return bc_stamp_skip_records(&d->stamper, &d->records, d->tick_limit, stamped);
}

/* The tick of the run's next sample. */
static uint64_t next_tick(const struct bc_decoder *d)
{
	return d->run_kind == RUN_SAMPLES ? bc_samples_next_tick(&d->samples)
					  : bc_records_next_tick(&d->stamper, &d->records);
}

/* How much of a run may be taken before the recording is full, and the rest of it put back. */
static uint32_t hold_back(struct bc_decoder *d)
{
	uint64_t room = bc_channel_space(d->options.channel);
	uint32_t *count = d->run_kind == RUN_SAMPLES ? &d->samples.count : &d->records.count;
	uint32_t held = *count > room ? *count - (uint32_t)room : 0;

	*count -= held;
	return held;
}

static void put_back(struct bc_decoder *d, uint32_t held)
{
	if (d->run_kind == RUN_SAMPLES)
		d->samples.count += held;
	else
		d->records.count += held;
}

/* When the first record of the chunk being filled arrived: told by the chunk it comes from. */
static void carry_wall(struct bc_decoder *d)
{
	const struct bc_chunk_info *info = &d->records.source->info;
	double since = d->clock_hz != 0 ? (double)(int64_t)(d->stamper.tick - info->first_tick) *
						  1e9 / (double)d->clock_hz
					: 0;

	if (since < 0 || since > 9e18)
		since = 0;
	bc_channel_set_wall(d->options.channel, info->wall_ns + (int64_t)since);
}

/* Stamps the run in hand, or drops it. Returns false when it must wait. */
static bool drain_run(struct bc_decoder *d)
{
	struct bc_channel *channel = d->options.channel;
	struct bc_stamped stamped;

	while (!d->is_over && d->run_kind != RUN_NONE && run_count(d) != 0) {
		if (!d->has_begun)
			start_epoch(d, next_tick(d));
		struct bc_chunk *chunk = bc_channel_chunk(channel, &d->stamper);
		enum bc_stamp_result end;
		uint32_t held = 0;
		if (chunk != NULL) {
			if (d->run_kind == RUN_RECORDS && d->records.source != NULL)
				carry_wall(d);
			held = hold_back(d);
			end = stamp(d, chunk, &stamped);
			put_back(d, held);
			bc_channel_consumed(channel, &d->stamper, &stamped);
		} else if (d->options.is_live) {
			end = skip(d, &stamped);
			bc_channel_dropped(channel, &stamped);
		} else {
			return false;
		}
		if (d->is_over)
			break;
		if (end == BC_STAMP_FULL) {
			bc_channel_submit(channel);
		} else if (end == BC_STAMP_LIMIT) {
			switch (d->options.on_limit(d->options.context, next_tick(d))) {
			case BC_LIMIT_GO_ON:
				break;
			case BC_LIMIT_WAIT:
				return false;
			case BC_LIMIT_END:
				d->is_over = true;
				break;
			}
		}
	}
	if (d->run_kind == RUN_SAMPLES) {
		d->seen_tick = d->samples.tick;
		d->raw_tick = d->samples.tick;
		d->raw_pace = d->samples.pace;
	}
	d->run_kind = RUN_NONE;
	return true;
}

/* bcp1 */

static void count_skipped(struct bc_decoder *d)
{
	bc_channel_counts(d->options.channel)->skipped_bytes += d->bcp1.skipped_bytes - d->skipped;
	d->skipped = d->bcp1.skipped_bytes;
}

/* What a frame's header says beside its samples: a damaged frame's is as good. */
static void take_header(struct bc_decoder *d, const struct bc_bcp1_frame *frame)
{
	const struct bc_bcp1_header *h = &frame->header;
	struct bc_channel *channel = d->options.channel;

	if (d->has_sequence && h->sequence != d->sequence) {
		bc_channel_gap(channel, BC_GAP_SEQUENCE, 0, false);
		report_damage(d,
			"offset %" PRIu64 ": frame %" PRIu32 " follows where %" PRIu32
			" was expected",
			frame->offset, h->sequence, d->sequence);
	}
	d->sequence = h->sequence + 1;
	d->has_sequence = (h->flags & BC_BCP1_LAST) == 0;
	if (!d->has_sequence && d->options.on_last != NULL)
		d->options.on_last(d->options.context);
	if ((h->flags & BC_BCP1_LOSS) != 0) {
		bc_channel_counts(channel)->board_lost += h->lost;
		d->reported_lost += h->lost;
		bc_channel_gap(channel, BC_GAP_BOARD, h->lost, h->lost != BC_BCP1_LOST_MANY);
	}
	if (d->has_tick && (h->tick < d->seen_tick || d->wants_epoch)) {
		bc_channel_submit(channel);
		start_epoch(d, h->tick);
		bc_stamper_next_epoch(&d->stamper, d->stamper.epoch + 1);
	}
	d->wants_epoch = false;
	d->has_tick = true;
	d->seen_tick = h->tick;
	d->has_trigger = d->has_trigger || (h->flags & BC_BCP1_TRIGGER) != 0;
}

/* Says that bytes before this offset were skipped which no damaged frame accounts for. */
static void explain_skipped(struct bc_decoder *d, uint64_t offset)
{
	if (d->skipped != d->explained && !d->is_in_damage)
		report_damage(d, "before offset %" PRIu64 ": %" PRIu64 " bytes of no valid frame",
			offset, d->skipped - d->explained);
	d->explained = d->skipped;
	d->is_in_damage = false;
}

/* Looks for the next frame. Returns false when the bytes are used up. */
static bool next_frame(struct bc_decoder *d, bool is_last)
{
	struct bc_bcp1_frame frame;
	enum bc_bcp1_found found = bc_bcp1_next(&d->bcp1, &d->at, &d->left, is_last, &frame);

	count_skipped(d);
	switch (found) {
	case BC_BCP1_MORE:
		return false;
	case BC_BCP1_DAMAGED:
		d->is_in_damage = true;
		take_header(d, &frame);
		bc_channel_gap(d->options.channel, BC_GAP_CRC, frame.header.samples, false);
		report_damage(d,
			"offset %" PRIu64 ": frame %" PRIu32 ": its %" PRIu32
			" samples are torn or fail their CRC",
			frame.offset, frame.header.sequence, frame.header.samples);
		return true;
	case BC_BCP1_FRAME:
		explain_skipped(d, frame.offset);
		take_header(d, &frame);
		d->samples = bc_samples_of_frame(&frame);
		d->run_kind = RUN_SAMPLES;
		return true;
	}
	return false;
}

/* Sets the trigger event of the frame in hand. Returns false when it must wait. */
static bool set_trigger(struct bc_decoder *d)
{
	const struct bc_event event = {.kind = BC_EVENT_TRIGGER};

	if (!d->has_trigger || d->is_over)
		return true;
	/* Of a live source it stays until there is a chunk for it. */
	d->has_trigger = !bc_channel_event(d->options.channel, &d->stamper, &event, NULL);
	return !d->has_trigger || d->options.is_live;
}

/* Takes the piece's frames; with is_last nothing follows them. Returns false when it must wait. */
static bool decode_frames(struct bc_decoder *d, bool is_last)
{
	d->is_bcp1 = true;
	do {
		if (!set_trigger(d) || !drain_run(d))
			return false;
	} while (!d->is_over && next_frame(d, is_last));
	return true;
}

/* raw6 and the dialects of BYU */

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
	report_damage(d,
		"record %" PRIu64 ": address %" PRIx64 ", time %" PRIx64
		": a value of more than 32 bits; left out",
		d->records_read, addr, time);
	bc_channel_gap(d->options.channel, BC_GAP_DAMAGED, 1, true);
	d->records_read++;
}

/* Makes a run of n whole records at `in`. Returns how many it took. */
static size_t begin_plain_run(struct bc_decoder *d, const uint8_t *in, size_t n)
{
	if (d->format == BC_FORMAT_RAW6) {
		d->samples = bc_samples_of_raw6(in, (uint32_t)n, d->raw_tick, d->raw_pace);
		d->run_kind = RUN_SAMPLES;
		d->records_read += n;
		return n;
	}
	n = n < SLICE_RECORDS ? n : SLICE_RECORDS;
	size_t read = bc_dialect_read(d->slice, in, n, d->format);
	if (read == 0) {
		refuse_record(d, in);
		return 1;
	}
	d->records = (struct bc_records){.at = d->slice, .count = (uint32_t)read};
	d->run_kind = RUN_RECORDS;
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

/* raw6, before a piece: the times of its samples. They are as far apart as the piece's end is from
 * its beginning; where nobody knows that, a tick. */
static void pace_raw6(struct bc_decoder *d, const struct bc_source_data *data)
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
		bc_channel_submit(d->options.channel);
		start_epoch(d, since);
		bc_stamper_next_epoch(&d->stamper, d->stamper.epoch + 1);
		d->raw_tick = 0;
	}
	d->raw_tick = since > d->raw_tick ? since : d->raw_tick;
	d->raw_pace = bc_pace_of(until > d->raw_tick ? until - d->raw_tick : 0, (uint32_t)samples);
}

/* Takes the piece's records. Returns false when it must wait. */
static bool decode_plain(struct bc_decoder *d)
{
	size_t bytes = plain_bytes(d->format);

	for (;;) {
		if (!drain_run(d))
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

/* Chunks of a segment */

/* The tick before a chunk's first record: what that record's own delta is added to. */
static uint64_t tick_before(const struct bc_chunk *chunk)
{
	uint32_t time = chunk->info.records != 0 ? bc_le32(chunk->records + 8) : 0;

	return chunk->info.first_tick - (time != BC_TIME_NONE ? time : 0);
}

/* A chunk of a segment: first the one, then the other, which returns false when it must wait. */
static void start_chunk(struct bc_decoder *d, const struct bc_source_data *data)
{
	const struct bc_chunk *chunk = data->chunk;
	struct bc_channel *channel = d->options.channel;
	uint64_t tick = tick_before(chunk);

	if (data->missing != 0) {
		bc_channel_gap(channel, BC_GAP_DAMAGED, data->missing, true);
		report_damage(d, "%" PRIu64 " records are missing before record %" PRIu64,
			data->missing, chunk->info.first_record);
	}
	if (!d->has_begun || chunk->info.epoch != d->stamper.epoch) {
		bc_channel_submit(channel);
		start_epoch(d, chunk->info.first_tick);
		bc_stamper_next_epoch(&d->stamper, chunk->info.epoch);
		d->stamper.record_tick = tick;
	}
	d->stamper.tick = tick;
	d->next_event = 0;
	d->clock_hz = data->header != NULL && data->header->clock_hz != 0 ? data->header->clock_hz
									  : d->options.clock_hz;
	d->records = (struct bc_records){.at = chunk->records, .source = chunk};
	d->run_kind = RUN_RECORDS;
}

/* Takes the chunk's records up to its next event that is to be carried over, then that event.
 * Returns false when it must wait; sets *is_done behind the last. */
static bool push_event(struct bc_decoder *d, const struct bc_source_data *data, bool *is_done)
{
	const struct bc_chunk *chunk = data->chunk;
	struct bc_channel *channel = d->options.channel;

	while (d->next_event < chunk->info.events &&
		chunk->events[d->next_event].kind == BC_EVENT_ANCHOR)
		d->next_event++;
	bool has_event = d->next_event < chunk->info.events;
	const struct bc_event *event = &chunk->events[d->next_event];
	uint32_t until = has_event ? event->position : chunk->info.records;
	d->run_kind = RUN_RECORDS;
	d->records.count = until - d->records.position;
	if (!drain_run(d))
		return false;
	*is_done = d->is_over || !has_event;
	if (*is_done)
		return true;
	if (!bc_channel_event(channel, &d->stamper, event, chunk->text + event->text)) {
		if (!d->options.is_live)
			return false;
		if (event->kind == BC_EVENT_GAP)
			bc_channel_gap_lasting(channel,
				event->cause < BC_GAP_CAUSES ? event->cause : BC_GAP_DAMAGED,
				event->value, event->exact, event->duration_ns);
	}
	d->next_event++;
	return true;
}

static bool decode_chunk(struct bc_decoder *d, const struct bc_source_data *data)
{
	bool is_done = d->is_over;

	while (!is_done)
		if (!push_event(d, data, &is_done))
			return false;
	d->run_kind = RUN_NONE;
	return true;
}

/* Breaks, and the end */

/* Nothing follows what is held: judges it. Returns false when it must wait. */
static bool judge_rest(struct bc_decoder *d, const char *where)
{
	if (d->is_bcp1) {
		d->left = 0;
		if (!decode_frames(d, true))
			return false;
		explain_skipped(d, d->bcp1.offset);
	}
	if (d->carried != 0) {
		bc_channel_counts(d->options.channel)->skipped_bytes += d->carried;
		report_damage(d,
			"%s is torn: %zu bytes behind record %" PRIu64 ", fewer than a record has",
			where, d->carried, d->records_read);
		d->carried = 0;
	}
	return true;
}

/* What the board counts as lost, its frames may have told of already. */
static uint64_t untold_loss(struct bc_decoder *d, const struct bc_source_break *broken)
{
	uint64_t lost = broken->lost > d->reported_lost ? broken->lost - d->reported_lost : 0;

	d->reported_lost += lost;
	bc_channel_counts(d->options.channel)->board_lost += lost;
	return lost;
}

/* The stream breaks. Returns false when that must wait. */
static bool push_break(struct bc_decoder *d, const struct bc_source_break *broken)
{
	struct bc_channel *channel = d->options.channel;
	bool is_loss = broken->cause == BC_GAP_BOARD;
	struct bc_event gap = {
		.kind = BC_EVENT_GAP,
		.cause = (uint8_t)broken->cause,
		.duration_ns = broken->duration_ns,
	};

	if (!d->is_judged && broken->is_cut && !judge_rest(d, "the stream before a break"))
		return false;
	if (!d->is_judged) {
		d->is_judged = true;
		d->break_lost = is_loss ? untold_loss(d, broken) : 0;
	}
	gap.value = d->break_lost;
	gap.exact = is_loss;
	bool has_gap = !is_loss || gap.value != 0;
	if (has_gap && !bc_channel_event(channel, &d->stamper, &gap, NULL)) {
		if (!d->options.is_live)
			return false;
		bc_channel_gap_lasting(
			channel, broken->cause, gap.value, gap.exact, gap.duration_ns);
	}
	if (broken->is_restart) {
		d->has_sequence = false;
		d->wants_epoch = d->is_bcp1;
		d->reported_lost = 0;
	}
	return true;
}

bool bc_decoder_push(struct bc_decoder *d, const struct bc_source_data *data)
{
	bool is_done;

	if (d->is_over)
		return true;
	if (!d->in_piece) {
		d->in_piece = true;
		d->at = data->bytes;
		d->left = data->count;
		d->format = data->format;
		d->is_judged = false;
		if (data->format == BC_FORMAT_SEGMENT)
			start_chunk(d, data);
		if (data->format == BC_FORMAT_RAW6 && data->broken == NULL)
			pace_raw6(d, data);
	}
	if (data->broken != NULL) {
		is_done = push_break(d, data->broken);
		d->in_piece = !is_done;
		return is_done;
	}
	switch (data->format) {
	case BC_FORMAT_SEGMENT:
		is_done = decode_chunk(d, data);
		break;
	case BC_FORMAT_BCP1:
		is_done = decode_frames(d, false);
		break;
	default:
		is_done = decode_plain(d);
	}
	d->in_piece = !is_done;
	return is_done;
}

bool bc_decoder_finish(struct bc_decoder *d)
{
	return d->is_over || judge_rest(d, "the end");
}

/* Life */

int bc_decoder_open(struct bc_decoder **decoder, const struct bc_decoder_options *options)
{
	struct bc_decoder *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return -ENOMEM;
	d->options = *options;
	d->tick_limit = BC_NO_TICK_LIMIT;
	bc_stamper_init(&d->stamper, options->mapping);
	bc_bcp1_reader_init(&d->bcp1);
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

void bc_decoder_end(struct bc_decoder *d)
{
	d->is_over = true;
}

bool bc_decoder_is_over(const struct bc_decoder *d)
{
	return d->is_over;
}

size_t bc_decoder_carried(const struct bc_decoder *d, const uint8_t **bytes)
{
	*bytes = d->is_bcp1 ? d->bcp1.buffer + d->bcp1.start : d->carry;
	return d->is_bcp1 ? d->bcp1.end - d->bcp1.start : d->carried;
}

uint64_t bc_decoder_tick(const struct bc_decoder *d)
{
	return d->stamper.tick;
}
