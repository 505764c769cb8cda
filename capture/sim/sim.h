/* The simulated board: a Pentium-class machine whose bus never ends, as the bcp1 frames that a
 * capture board would send of it.
 *
 * One to four processors with their first-level caches on run processes and a kernel: line fills
 * and write-backs, writes through to memory, device memory, I/O, interrupts, and long silences when
 * the machine is idle. It is made by rules and a seed, with integers alone: the same options and
 * the same calls give the same bytes on every machine.
 *
 * bc_sim_open(), then bc_sim_next() until it returns 0, then bc_sim_close(). The stream ends after
 * `count` samples, or after bc_sim_stop(), with a frame that says so.
 *
 * The samples (their order, addresses and ticks) depend on `seed` and `agents` alone. Where a frame
 * ends follows from `samples_max` of each call, and with it where losses and corruption strike;
 * with the same row of samples_max all bytes are the same. Frames are as in docs/board-protocol.md.
 * With more than one agent their number is in each sample and BC_BCP1_AGENT is set; with one, the
 * header's processor id is 0. The first sequence number is 0; the first tick is not. */
#ifndef BC_CAPTURE_SIM_SIM_H
#define BC_CAPTURE_SIM_SIM_H

#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/bus/bcp1.h"

#define BC_SIM_CLOCK_HZ 66000000u /* ticks a second */

#define BC_SIM_FRAME_SAMPLES 2048 /* in a frame at most */

/* Bytes of the largest frame. */
#define BC_SIM_FRAME_MAX \
	(BC_BCP1_HEADER_BYTES + BC_SIM_FRAME_SAMPLES * BC_BCP1_SAMPLE_BYTES + BC_BCP1_CRC_BYTES)

/* The most samples that one loss takes. */
#define BC_SIM_LOSS_MAX 4096

struct bc_sim_options {
	uint64_t seed;
	uint64_t count;  /* samples to send before the stream ends by itself; 0: endless */
	unsigned agents; /* 1 .. 4 */

	/* Chance, in millionths, that the board loses 1 .. BC_SIM_LOSS_MAX samples before a frame
	 * with samples that is not the first. The bus goes on; what is lost doesn't count in
	 * `count`. */
	uint32_t loss_ppm;

	/* Chance, in millionths, that one bit of a frame, any frame and any bit of its header,
	 * samples or CRC, is flipped on its way. */
	uint32_t corrupt_ppm;
};

/* What was sent so far: the truth that a receiver's counts are held against. */
struct bc_sim_sent {
	uint64_t frames; /* the last one and heartbeats included */
	uint64_t samples;
	uint64_t lost;              /* not sent; the sum of what headers were given to say */
	uint64_t corrupted_frames;  /* of `frames`, those with a flipped bit */
	uint64_t corrupted_samples; /* of `samples`, those in such frames */
	uint64_t corrupted_lost;    /* of `lost`, what stood in headers that were hit themselves */
};

struct bc_sim;

/* Makes a simulated board. `options` is copied. This is the only call that allocates, and it takes
 * less than 1 MiB. Returns 0, with *sim the caller's to close; -EINVAL when `agents` is not 1 .. 4
 * or a chance is above a million; -ENOMEM. On failure *sim is NULL. */
int bc_sim_open(struct bc_sim **sim, const struct bc_sim_options *options) BC_MUST_CHECK;

/* Writes the next whole frame, of at most `samples_max` samples and of BC_SIM_FRAME_SAMPLES. It may
 * have fewer, for a new frame begins where a delta would pass 65,535 ticks. With a samples_max of 0
 * it is a heartbeat, with no sample and the tick of the last. When `count` samples are sent, or
 * after bc_sim_stop(), it is the last frame: no sample, BC_BCP1_LAST set. Returns the frame's
 * bytes; 0, with nothing written, when the last frame has been given. */
size_t bc_sim_next(struct bc_sim *sim, uint32_t samples_max, uint8_t frame[BC_SIM_FRAME_MAX]);

/* Ends the stream: the next frame is the last. */
void bc_sim_stop(struct bc_sim *sim);

/* The tick of the last sample sent; before the first, one at or before it. */
uint64_t bc_sim_tick(const struct bc_sim *sim);

struct bc_sim_sent bc_sim_sent(const struct bc_sim *sim);

/* Frees it. NULL may be passed. */
void bc_sim_close(struct bc_sim *sim);

#endif
