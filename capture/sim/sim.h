/* The simulated board: the bcp1 frames of a capture board on the bus of a Pentium-class machine.
 *
 * One to four processors with first-level caches run processes and a kernel. Their bus shows line
 * fills and write-backs, write-throughs, device memory, I/O, interrupts, and long idle times. It
 * uses only integers and a seed: the same options and calls give the same bytes on every machine.
 *
 * Call bc_sim_open(), then bc_sim_next() until it returns 0, then bc_sim_close(). The stream ends
 * after `count` samples, after bc_sim_stop(), or with the last program, with a last frame.
 *
 * The samples (their order, addresses and ticks) depend only on `seed`, `agents`, `no_caches` and
 * the programs, which bc_sim_open() and bc_sim_next() ask for their accesses. The ends of frames
 * and the positions of losses and corruption also depend on the `samples_max` of each call. The
 * same sequence of samples_max gives the same bytes. docs/board-protocol.md describes the frames.
 * With more than one agent, each sample has its agent's number and BC_BCP1_AGENT is set;
 * with one, the header's processor id is 0. The first sequence number is 0, the first tick not. */
#ifndef BC_CAPTURE_SIM_SIM_H
#define BC_CAPTURE_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/sim/sim_bus.h"
#include "formats/base/must_check.h"
#include "formats/bus/bcp1.h"

#define BC_SIM_CLOCK_HZ 66000000u /* ticks per second */

/* Mean number of ticks between samples, with idle times, of one to four agents without programs. */
#define BC_SIM_TICKS_PER_SAMPLE(agents) ((const uint8_t[]){0, 31, 54, 78, 91}[agents])

#define BC_SIM_FRAME_SAMPLES 2048 /* maximum per frame */

/* Size of the largest frame, in bytes. */
#define BC_SIM_FRAME_MAX \
	(BC_BCP1_HEADER_BYTES + BC_SIM_FRAME_SAMPLES * BC_BCP1_SAMPLE_BYTES + BC_BCP1_CRC_BYTES)

/* Maximum number of samples in one loss. */
#define BC_SIM_LOSS_MAX 4096

struct bc_sim_options {
	uint64_t seed;
	uint64_t count;  /* samples to send before the stream ends; 0: endless */
	unsigned agents; /* 1 .. 4 */

	/* Chance, in millionths, that the board loses 1 .. BC_SIM_LOSS_MAX samples before a frame
	 * with samples, except the first. The bus continues; lost samples are not in `count`. */
	uint32_t loss_ppm;

	/* Chance, in millionths, that one bit of a frame is flipped: of any frame, anywhere in its
	 * header, samples or CRC. */
	uint32_t corrupt_ppm;

	/* The stream ends with the last program. */
	struct bc_sim_workload workload;
	bool no_caches; /* with programs: the first-level caches are off */
};

struct bc_sim;

/* Creates a simulated board. Copies `options`. This is the only call that allocates: less than 1
 * MiB. Returns 0, and the caller closes *sim; -EINVAL if `agents` is not 1 .. 4 or a chance is
 * above a million; -ENOMEM. On failure *sim is NULL. */
int bc_sim_open(struct bc_sim **sim, const struct bc_sim_options *options) BC_MUST_CHECK;

/* Returns the tick of the next sample; UINT64_MAX if there is none: the next frame is the last. */
uint64_t bc_sim_next_tick(struct bc_sim *sim);

/* Writes the next whole frame, with at most `samples_max` and at most BC_SIM_FRAME_SAMPLES samples,
 * whose ticks are at most `until`. It may have fewer: a delta above 65,535 ticks starts a new
 * frame. If samples_max is 0, the frame is a heartbeat: no samples, and the tick of the last
 * sample. When `count` samples have been sent, or after bc_sim_stop(), it is the last frame: no
 * samples, BC_BCP1_LAST set. Returns the size of the frame, or 0 after the last frame. */
size_t bc_sim_next(
	struct bc_sim *sim, uint32_t samples_max, uint64_t until, uint8_t frame[BC_SIM_FRAME_MAX]);

/* Ends the stream: the next frame is the last. */
void bc_sim_stop(struct bc_sim *sim);

/* Frees it. NULL may be passed. */
void bc_sim_close(struct bc_sim *sim);

#endif
