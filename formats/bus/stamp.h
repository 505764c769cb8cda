/* Samples become records: the mapping applied, the clock deltas stamped, into chunks.
 *
 * A stamper holds the time line of one recording. Give it runs of samples (or of records that are
 * BYU already) with bc_stamp_samples() and bc_stamp_records(); each fills the chunk until the run
 * is over, the chunk is full or a tick limit is reached, and advances the run, so that the call can
 * be repeated with the next chunk. Samples that nobody has room for go through bc_stamp_skip_*(),
 * which keeps the time line true.
 *
 * A record's `time` is the ticks since the record before it, across whatever was skipped. It is
 * BC_TIME_NONE where there is none before (first of the recording or epoch) or the delta has
 * 0xFFFFFFFF ticks or more; such a record gets an anchor event with its absolute tick. */
#ifndef BC_FORMATS_BUS_STAMP_H
#define BC_FORMATS_BUS_STAMP_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/bus/bcp1.h"
#include "formats/bus/chunk.h"
#include "formats/bus/mapping.h"

struct bc_stamper {
	const struct bc_mapping *mapping;
	uint64_t tick;        /* of the last sample, kept or not */
	uint64_t record_tick; /* of the last record */
	uint32_t epoch;
	bool is_first;      /* no record yet in this epoch */
	bool is_inexact;    /* a record's delta was not known: ticks are lower bounds since */
	bool is_delta_lost; /* the next record's isn't known either: it gets an anchor */
};

/* The ticks of samples that carry none (raw6): `ticks` spread evenly over `samples`, as whole
 * numbers. */
struct bc_pace {
	uint64_t step;    /* ticks a sample, */
	uint32_t rest;    /* and one more for so many of the samples; less than `samples` */
	uint32_t samples; /* never 0 */
	uint32_t phase;   /* grows by `rest` with each sample, modulo `samples` */
};

/* A row of samples. Made by bc_samples_of_frame() or bc_samples_of_raw6(), used up by stamping. */
struct bc_samples {
	const uint8_t *at;
	uint32_t count;
	uint64_t tick; /* of the sample before `at`; each sample's own ticks are added to it */
	struct bc_pace pace; /* of samples that carry no ticks */
	uint8_t proc;
	bool has_ticks; /* 8 bytes each, the last two its ticks; else 6 bytes */
	bool has_agent; /* the processor is in the control byte's low nibble */
};

/* A row of BYU records. */
struct bc_records {
	const uint8_t *at;
	uint32_t count;
	const struct bc_chunk *source; /* the chunk they stand in, for its anchors; or NULL */
	uint32_t position;             /* of `at` in that chunk */
};

struct bc_stamped {
	uint32_t taken;   /* samples used up: kept + invalid */
	uint32_t kept;    /* records made (or, when skipping, that would have been) */
	uint32_t invalid; /* invalid cycles dropped by the mapping */
	uint32_t unknown; /* special cycles that no document names, among the kept */
};

enum bc_stamp_end {
	BC_STAMP_DONE,  /* the run is used up */
	BC_STAMP_FULL,  /* the chunk has no room for the next record */
	BC_STAMP_LIMIT, /* the next sample's tick is at or past the limit */
};

#define BC_NO_TICK_LIMIT UINT64_MAX

/* A time line that begins at tick 0 of epoch 0. `mapping` is kept, not copied; NULL if only records
 * will come. */
void bc_stamper_init(struct bc_stamper *stamper, const struct bc_mapping *mapping);

/* Begins the next epoch: no delta leads into it. The chunk for it must be a new one. */
void bc_stamper_next_epoch(struct bc_stamper *stamper, uint32_t epoch);

/* `ticks` over `samples`, which is not 0; the last of them falls on the last tick. */
struct bc_pace bc_pace_of(uint64_t ticks, uint32_t samples);

/* The samples of a whole frame, or `count` raw samples that go on from `tick` at that pace. */
struct bc_samples bc_samples_of_frame(const struct bc_bcp1_frame *frame);
struct bc_samples bc_samples_of_raw6(
	const uint8_t *samples, uint32_t count, uint64_t tick, struct bc_pace pace);

/* Stamps as much of a run as fits into `chunk`, whose epoch must be the stamper's, below the tick
 * limit; `stamped` is set to what this call did. */
enum bc_stamp_end bc_stamp_samples(struct bc_stamper *stamper, struct bc_samples *run,
	uint64_t tick_limit, struct bc_chunk *chunk, struct bc_stamped *stamped);

/* The same for records, which keep their `time` but for what was skipped before them. A record with
 * BC_TIME_NONE takes its tick from its anchor in run->source; without one it adds no ticks, and its
 * anchor says that it is inexact, unless it is the first. */
enum bc_stamp_end bc_stamp_records(struct bc_stamper *stamper, struct bc_records *run,
	uint64_t tick_limit, struct bc_chunk *chunk, struct bc_stamped *stamped);

/* The tick of a run's next sample or record, of which there must be one. */
uint64_t bc_samples_next_tick(const struct bc_samples *run);
uint64_t bc_records_next_tick(const struct bc_stamper *stamper, const struct bc_records *run);

/* Passes over the run below the tick limit, keeping count of what it would have become. */
enum bc_stamp_end bc_stamp_skip_samples(struct bc_stamper *stamper, struct bc_samples *run,
	uint64_t tick_limit, struct bc_stamped *stamped);
enum bc_stamp_end bc_stamp_skip_records(struct bc_stamper *stamper, struct bc_records *run,
	uint64_t tick_limit, struct bc_stamped *stamped);

#endif
