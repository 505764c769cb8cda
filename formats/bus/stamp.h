/* Stamping: turns samples into records with clock deltas, and appends them to chunks.
 *
 * A stamper keeps the timeline of one recording. bc_stamp_samples() and bc_stamp_records() consume
 * a run of samples, or of BYU records, until the run is used up, the chunk is full or a tick limit
 * is reached. They advance the run, so the call can be repeated with another chunk. Without a
 * chunk, because none is free, they consume samples and make no records; the timeline continues.
 *
 * A record's `time` is the number of ticks since the previous record, including skipped samples. It
 * is BC_TIME_NONE in the first record of the recording or epoch, and where the delta is 0xFFFFFFFF
 * ticks or more. Such a record gets an anchor event with its absolute tick. */
#ifndef BC_FORMATS_BUS_STAMP_H
#define BC_FORMATS_BUS_STAMP_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/bus/bcp1.h"
#include "formats/bus/chunk.h"
#include "formats/bus/sample.h"

struct bc_stamper {
	const struct bc_mapping *mapping;
	uint64_t tick;        /* of the last sample, kept or not */
	uint64_t record_tick; /* of the last record */
	uint32_t epoch;
	bool is_first;      /* no record yet in this epoch */
	bool is_inexact;    /* a delta was unknown: ticks since then are lower bounds */
	bool is_delta_lost; /* the next record's delta is unknown: it gets an anchor */
};

/* Spreads whole `ticks` evenly over `samples` without any (raw6), like Bresenham's lines. */
struct bc_pace {
	uint64_t step;    /* ticks per sample, rounded down */
	uint32_t rest;    /* number of samples, out of `samples`, that get one more tick */
	uint32_t samples; /* never 0 */
	uint32_t phase;   /* grows by `rest` with each sample, modulo `samples` */
};

/* A run of samples, made by bc_samples_of_frame() or bc_samples_of_raw6(); stamping advances it. */
struct bc_samples {
	const uint8_t *at;
	uint32_t count;
	uint64_t tick;       /* of the sample before `at`; each sample's own ticks are added */
	struct bc_pace pace; /* without has_ticks */
	uint8_t proc;        /* without has_agent */
	bool has_ticks;      /* 8 bytes each, the last two its ticks; otherwise 6 bytes */
	bool has_agent;      /* the processor is in the control byte's low nibble */
};

/* A run of BYU records. */
struct bc_records {
	const uint8_t *at;
	uint32_t count;
	const struct bc_chunk *source; /* the chunk that contains them, for its anchors; or NULL */
	uint32_t position;             /* of `at` in that chunk */
};

struct bc_stamped {
	uint32_t consumed; /* samples consumed: kept + invalid */
	uint32_t kept;     /* records made; when skipping, records that would have been made */
	uint32_t invalid;  /* invalid cycles dropped by the mapping */
	uint32_t unknown;  /* undocumented special cycles, included in `kept` */
};

enum bc_stamp_result {
	BC_STAMP_DONE,  /* the run is used up */
	BC_STAMP_FULL,  /* the chunk has no room for the next record */
	BC_STAMP_LIMIT, /* the next sample's tick has reached the limit */
};

#define BC_NO_TICK_LIMIT UINT64_MAX

/* Starts a timeline at tick 0 of epoch 0. `mapping` must stay valid; NULL: only for records. */
void bc_stamper_init(struct bc_stamper *stamper, const struct bc_mapping *mapping);

/* Starts an epoch; `tick` is before its first record, which has no delta and needs a new chunk. */
void bc_stamper_begin(struct bc_stamper *stamper, uint32_t epoch, uint64_t tick);

/* `samples` must not be 0. The last sample gets the last tick. */
struct bc_pace bc_pace_of(uint64_t ticks, uint32_t samples);

/* The samples of a whole frame. */
struct bc_samples bc_samples_of_frame(const struct bc_bcp1_frame *frame);

/* `count` raw6 samples; `tick` is the tick of the sample before them. */
struct bc_samples bc_samples_of_raw6(
	const uint8_t *samples, uint32_t count, uint64_t tick, struct bc_pace pace);

/* Stamps samples with ticks below the limit into `chunk`, whose epoch must be the stamper's. Sets
 * *stamped to the counts of this call. If `chunk` is NULL, only counts what they would become. */
enum bc_stamp_result bc_stamp_samples(struct bc_stamper *stamper, struct bc_samples *run,
	uint64_t tick_limit, struct bc_chunk *chunk, struct bc_stamped *stamped);

/* Stamps records in the same way. A record keeps its `time`, plus the ticks of records skipped
 * before it. A record with BC_TIME_NONE gets its tick from its anchor in run->source. Without an
 * anchor it adds no ticks, and its new anchor is inexact unless it is the first record. */
enum bc_stamp_result bc_stamp_records(struct bc_stamper *stamper, struct bc_records *run,
	uint64_t tick_limit, struct bc_chunk *chunk, struct bc_stamped *stamped);

/* The tick of the run's next sample or record. The run must not be empty. */
uint64_t bc_samples_next_tick(const struct bc_samples *run);
uint64_t bc_records_next_tick(const struct bc_stamper *stamper, const struct bc_records *run);

/* Skips a record that does not fit 12 bytes, `time` ticks (BC_TIME_NONE: unknown) later. */
void bc_stamp_skip_time(struct bc_stamper *stamper, uint64_t time);

#endif
