/* Writes samples as bcp1 frames (docs/board-protocol.md).
 *
 *     bc_bcp1_writer_init()
 *     bc_bcp1_writer_add(), _gap(), _trigger() ...    in trace order
 *     bc_bcp1_writer_finish()                         the last frame, with flag 8
 *
 * Each call may complete frames. It writes them at `out`, at most BC_BCP1_WRITER_MAX bytes, and
 * returns their length.
 *
 * A frame ends after 2048 samples, before a delta above 65,535 ticks or below 0, before a loss or a
 * trigger, and before a sample whose processor does not fit: either the low nibble of each control
 * byte is the sample's processor (flag 1), or all samples have the header's processor. */
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

void bc_bcp1_writer_init(struct bc_bcp1_writer *writer);

/* Adds a sample of a processor (below 256) at an absolute tick (below BC_TICK_END). A tick below
 * that of the previous sample starts a new epoch at the receiver. With is_epoch, a new epoch always
 * starts: if the tick is not lower, empty frames with lower ticks are inserted. */
size_t bc_bcp1_writer_add(struct bc_bcp1_writer *writer, uint8_t *out,
	const uint8_t sample[BC_SAMPLE_BYTES], unsigned proc, uint64_t tick, bool is_epoch);

/* Records that `lost` samples are missing here, exactly or at least. If not exact, a sequence
 * number is skipped, which means a gap of unknown size, and `lost` is reported as a loss in
 * addition. */
size_t bc_bcp1_writer_gap(
	struct bc_bcp1_writer *writer, uint8_t *out, uint64_t lost, bool is_exact);

/* Records that the trigger fired at the next sample. */
size_t bc_bcp1_writer_trigger(struct bc_bcp1_writer *writer, uint8_t *out);

/* Writes the last frame. */
size_t bc_bcp1_writer_finish(struct bc_bcp1_writer *writer, uint8_t *out);

#endif
