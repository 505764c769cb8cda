/* Puts samples into frames of bcp1 (docs/board-protocol.md), one after another.
 *
 *     bc_bcp1_writer_init()
 *     bc_bcp1_writer_add(), _gap(), _trigger() ...    in the order of the trace
 *     bc_bcp1_writer_end()                            the last frame, with flag 8
 *
 * Each call may complete what was held and puts that out: at most BC_BCP1_WRITER_MAX bytes at
 * `out`. Each returns how many.
 *
 * A frame ends after 2048 samples, before a delta of more than 65,535 ticks or less than none,
 * before a loss or a trigger, and where the processors of its samples can't be said in one frame:
 * it has flag 1 when the low nibble of each control byte is the sample's processor, else they are
 * all of the header's processor. */
#ifndef BC_FORMATS_BUS_BCP1_WRITER_H
#define BC_FORMATS_BUS_BCP1_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/bus/bcp1.h"
#include "formats/bus/sample.h"

#define BC_BCP1_WRITER_SAMPLES 2048
#define BC_BCP1_WRITER_FRAME \
	(BC_BCP1_HEADER_BYTES + BC_BCP1_WRITER_SAMPLES * BC_BCP1_SAMPLE_BYTES + BC_BCP1_CRC_BYTES)
#define BC_BCP1_WRITER_MAX (BC_BCP1_WRITER_FRAME + 2 * BC_BCP1_HEADER_BYTES)

struct bc_bcp1_writer {
	uint32_t sequence; /* of the next frame */
	bool has_begun;    /* a header was put out, or samples are held */
	uint64_t tick;     /* of the last sample or header */
	/* What is to be said before the next sample. */
	bool has_loss;
	uint64_t lost;
	bool has_trigger;
	/* The frame being filled. */
	uint32_t samples;
	uint64_t first_tick;
	uint8_t proc;     /* of its first sample */
	bool is_one_proc; /* all samples are of `proc` */
	bool is_agents;   /* each low nibble is the sample's processor */
	bool has_nibble;  /* some low nibble is not 0 */
	uint8_t frame[BC_BCP1_WRITER_FRAME];
};

void bc_bcp1_writer_init(struct bc_bcp1_writer *writer);

/* A sample of a processor, below 256, at an absolute tick below BC_TICK_END. A tick below that of
 * the sample before it begins a new epoch at the receiver. With is_epoch one begins here in any
 * case: where the tick doesn't fall, frames without samples make it. */
size_t bc_bcp1_writer_add(struct bc_bcp1_writer *writer, uint8_t *out,
	const uint8_t sample[BC_SAMPLE_BYTES], unsigned proc, uint64_t tick, bool is_epoch);

/* `lost` samples are missing here. Where it is not exact, that many or more: then the next frame's
 * sequence number is one too high, a gap of unknown length, and what is known of it is a loss. */
size_t bc_bcp1_writer_gap(
	struct bc_bcp1_writer *writer, uint8_t *out, uint64_t lost, bool is_exact);

/* The trigger fired at the next sample. */
size_t bc_bcp1_writer_trigger(struct bc_bcp1_writer *writer, uint8_t *out);

size_t bc_bcp1_writer_end(struct bc_bcp1_writer *writer, uint8_t *out);

#endif
